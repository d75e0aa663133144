#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::plan::{Planned, Start};
use super::*;

struct Fixture {
    top: tempfile::TempDir,
    confined: Confined,
}

impl Fixture {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().canonicalize().unwrap().join(name);
        for folder in ["work", "home", "other"] {
            fs::create_dir(at(folder)).unwrap();
        }
        let sandbox = Sandbox {
            rules: SandboxRules::default(),
            home: at("home"),
            writable: vec![at("work")],
            readable: Vec::new(),
            guarded: Vec::new(),
            listed: Arc::new(Listed::default()),
        };
        let scratch = scratch(&sandbox.home).unwrap();
        Self { confined: Confined::new(sandbox, scratch), top }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn repository(&self, name: &str) {
        for part in ["objects/x", "refs/x", "hooks/pre-commit.sample"] {
            self.write(&format!("{name}/{part}"), "");
        }
        self.write(&format!("{name}/HEAD"), "ref: refs/heads/main\n");
        self.write(&format!("{name}/config"), "[core]\n\tbare = false\n");
    }

    fn plan(&self) -> Planned {
        let folder = self.at("work");
        Planned::new(&self.confined, Start { folder: &folder, environment: &[], background: false, files: Vec::new() })
            .unwrap()
    }
}

fn has(paths: &[PathBuf], path: &Path) -> bool {
    paths.iter().any(|known| known == path)
}

#[test]
fn what_starts_programs_is_read_only_and_repositories_cannot_move() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    fixture.repository("work/.git/modules/lib/part");
    fixture.repository("work/a/b/.git");
    fixture.write("work/.envrc", "");
    fixture.write("work/.github/workflows/ci.yml", "");
    fixture.write("work/node_modules/x/.envrc", "");
    let plan = fixture.plan().plan;
    for pinned in [".git", ".git/modules/lib/part", "a/b/.git"] {
        assert!(has(&plan.pinned, &fixture.at("work").join(pinned)), "{pinned}: {:?}", plan.pinned);
    }
    for kept in
        [".git/config", ".git/hooks", ".git/modules/lib/part/config", "a/b/.git/hooks", ".envrc", ".github/workflows"]
    {
        assert!(has(&plan.read_only, &fixture.at("work").join(kept)), "{kept}: {:?}", plan.read_only);
    }
    assert!(
        !plan.read_only.iter().any(|path| path.ends_with("HEAD") || path.to_string_lossy().contains("node_modules"))
    );
    assert!(has(&plan.hidden, &fixture.at("home")) && !plan.network);
}

#[test]
fn a_folder_for_temporary_files_takes_the_place_of_no_other_folder() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.at("other/own")).unwrap();
    std::os::unix::fs::symlink("/etc", fixture.at("other/link")).unwrap();
    let (own, link) = (fixture.at("other/own"), fixture.at("other/link"));
    let scratch = fixture.confined.scratch.path().canonicalize().unwrap();
    assert!(scratch.starts_with(fixture.at("home/cache")), "{}", scratch.display());
    for (value, is_covered, is_kept) in [
        (own.to_str().unwrap(), true, true),
        (fixture.at("work").to_str().unwrap(), false, true),
        ("/dev/shm", false, true),
        ("/tmp", true, true),
        ("/", false, false),
        ("/etc", false, false),
        ("/usr/lib", false, false),
        ("/home", false, false),
        (link.to_str().unwrap(), false, false),
        (fixture.at("missing").to_str().unwrap(), false, false),
        ("a\nb", false, false),
        ("", false, false),
    ] {
        let folder = fixture.at("work");
        let environment = [(TMPDIR.into(), value.into())];
        let start = Start { folder: &folder, environment: &environment, background: false, files: Vec::new() };
        let planned = Planned::new(&fixture.confined, start).unwrap();
        let places = planned.plan.temporary.unwrap().at;
        assert_eq!(has(&places, Path::new(value)), is_covered, "{value:?}: {places:?}");
        assert!(!places.iter().any(|place| place.starts_with("/etc") || place.parent().is_none()), "{places:?}");
        assert_eq!(planned.other_temporary.is_none(), is_kept, "{value:?}: {:?}", planned.other_temporary);
    }
}

#[test]
fn what_the_configuration_of_git_names_is_read_only_and_stays_in_its_place() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    for name in ["ci/hooks/pre-commit", "ci/watch", "ci/more", "free", "clean.sh", "origin"] {
        fixture.write(&format!("work/{name}"), "");
    }
    fixture.write(
        "work/.git/config",
        "[core]\n\thooksPath = ci/hooks\n\tfsmonitor = ci/watch\n\tworktree = ..\n[include]\n\tpath = ../ci/more\n[filter \"x\"]\n\tclean = sh \
         clean.sh\n[remote \"origin\"]\n\turl = ./free\n\tuploadpack = .\n[branch \"main\"]\n\tremote = origin\n[alias]\n\tx = !.git/run\n",
    );
    let plan = fixture.plan().plan;
    for kept in ["ci/hooks", "ci/watch", "ci/more", "clean.sh"] {
        assert!(has(&plan.read_only, &fixture.at("work").join(kept)), "{kept}: {:?}", plan.read_only);
    }
    assert!(has(&plan.pinned, &fixture.at("work/ci")), "{:?}", plan.pinned);
    for free in ["", ".git", "free", "origin", "ci"] {
        assert!(!has(&plan.read_only, &fixture.at("work").join(free)), "{free}: {:?}", plan.read_only);
    }
    // One that is not there yet.
    fixture.write("work/.git/config", "[core]\n\thooksPath = new/hooks\n");
    let said = after(&fixture, || fixture.write("work/new/hooks/pre-commit", ""));
    assert!(said.iter().any(|line| line.contains("\"hooks.denied\"")), "{said:?}");
    assert!(!fixture.at("work/new/hooks").exists());
}

#[test]
fn what_appears_is_renamed_and_what_was_there_stays() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    fixture.write("work/.envrc", "mine");
    let planned = fixture.plan();
    assert_eq!(planned.undo(), Vec::<String>::new());

    fixture.write("work/AGENTS.md", "evil");
    fixture.write("work/.huskyrc.js", "evil");
    fixture.write("work/sub/.vscode/tasks.json", "evil");
    fixture.write("work/.git/commondir", "../evil");
    fixture.repository("work/plain/.git");
    fixture.repository("work/armed/.git");
    fixture.write("work/armed/.git/hooks/post-checkout", "evil");
    fixture.write("work/link/.git", "gitdir: ../../other\n");
    let said = planned.undo();
    for gone in ["AGENTS.md", ".huskyrc.js", "sub/.vscode", ".git/commondir", "armed/.git", "link/.git"] {
        let path = fixture.at("work").join(gone);
        assert!(path.symlink_metadata().is_err(), "{gone} is there");
        assert!(said.iter().any(|line| line.contains(&path.display().to_string())), "{gone}: {said:?}");
    }
    assert_eq!(fs::read_to_string(fixture.at("work/AGENTS.md.denied")).unwrap(), "evil");
    assert!(fixture.at("work/plain/.git").exists() && fixture.at("work/.envrc").exists());
    assert_eq!(planned.undo(), Vec::<String>::new(), "a renamed file is not renamed again");
}

#[test]
fn what_appears_beside_a_program_in_the_background_is_only_named() {
    let fixture = Fixture::new();
    let folder = fixture.at("work");
    let start = Start { folder: &folder, environment: &[], background: true, files: Vec::new() };
    let planned = Planned::new(&fixture.confined, start).unwrap();
    fixture.write("work/AGENTS.md", "the user's");
    let said = planned.undo();
    assert!(said.len() == 1 && said[0].contains("appeared while the program ran"), "{said:?}");
    assert!(fixture.at("work/AGENTS.md").exists());
}

#[test]
fn a_moved_folder_keeps_its_protected_files_and_an_exchanged_link_does_not_stay() {
    let fixture = Fixture::new();
    fixture.write("work/a/AGENTS.md", "mine");
    fixture.repository("work/a/.git");
    fixture.write("work/a/.git/config", "[alias]\n\tst = !mine\n");
    fixture.write("work/real", "mine");
    std::os::unix::fs::symlink("real", fixture.at("work/CLAUDE.md")).unwrap();
    let planned = fixture.plan();
    fs::rename(fixture.at("work/a"), fixture.at("work/b")).unwrap();
    assert_eq!(planned.undo(), Vec::<String>::new());
    fs::remove_file(fixture.at("work/CLAUDE.md")).unwrap();
    std::os::unix::fs::symlink("evil", fixture.at("work/CLAUDE.md")).unwrap();
    assert_eq!(planned.undo().len(), 1);
    assert!(fixture.at("work/CLAUDE.md").symlink_metadata().is_err());
}

#[test]
fn a_home_in_the_workspace_stays_hidden_with_everything_in_it() {
    let mut fixture = Fixture::new();
    fixture.confined.sandbox.home = fixture.at("work/home");
    fixture.repository("work/home/skills/.git");
    fixture.write("work/home/skills/SKILL.md", "");
    let plan = fixture.plan().plan;
    assert!(has(&plan.hidden, &fixture.at("work/home")));
    assert_eq!((plan.pinned, plan.read_only), (Vec::new(), Vec::new()));
}

#[test]
fn the_whole_file_system_is_no_writable_folder() {
    let mut fixture = Fixture::new();
    fixture.confined.sandbox.writable = vec!["/".into()];
    let folder = fixture.at("work");
    let start = Start { folder: &folder, environment: &[], background: false, files: Vec::new() };
    let error = Planned::new(&fixture.confined, start).unwrap_err();
    assert!(error.to_string().contains("`sandbox.mode: off`"), "{error}");
}

/// A run in which this happens, and the lines about it.
fn after(fixture: &Fixture, act: impl FnOnce()) -> Vec<String> {
    let planned = fixture.plan();
    act();
    planned.undo()
}

#[track_caller]
fn assert_named(said: &[String], paths: &[&str]) {
    for path in paths {
        assert!(said.iter().any(|line| line.contains(&format!("/{path}\""))), "{path} is not named: {said:#?}");
    }
    assert_eq!(said.len(), paths.len(), "{said:#?}");
}

#[test]
fn the_folders_around_submodules_work_trees_and_hidden_folders_cannot_be_moved() {
    let mut fixture = Fixture::new();
    fixture.confined.sandbox.home = fixture.at("work/.config/hermes");
    fs::create_dir_all(fixture.at("work/.config/hermes")).unwrap();
    fixture.repository("work/.git");
    fixture.repository("work/.git/modules/lib/part");
    fixture.write("work/.git/worktrees/tree/commondir", "../..\n");
    // Incomplete: a program could complete it in its next run.
    fixture.write("work/.git/modules/half/config", "");
    let plan = fixture.plan().plan;
    for pinned in
        [".git/modules", ".git/modules/lib", ".git/worktrees", ".git/worktrees/tree", ".git/modules/half", ".config"]
    {
        assert!(has(&plan.pinned, &fixture.at("work").join(pinned)), "{pinned}: {:?}", plan.pinned);
    }
    for kept in [".git/worktrees/tree/commondir", ".git/modules/half/config"] {
        assert!(has(&plan.read_only, &fixture.at("work").join(kept)), "{kept}: {:?}", plan.read_only);
    }
    assert!(!has(&plan.pinned, &fixture.at("work")));
}

#[test]
fn a_new_submodule_or_work_tree_stays_only_if_it_starts_nothing() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    fixture.repository("work/.git/modules/there");
    let said = after(&fixture, || {
        fixture.repository("work/.git/modules/plain");
        fixture.write("work/.git/modules/plain/config", "[core]\n\tworktree = ../../../plain\n");
        fixture.write("work/plain/.git", "gitdir: ../.git/modules/plain\n");
        fixture.write("work/.git/worktrees/plain/commondir", "../..\n");
        fixture.repository("work/.git/modules/armed");
        fixture.write("work/.git/modules/armed/config", "[core]\n\tfsmonitor = evil\n");
        fixture.repository("work/.git/modules/hooked");
        fixture.write("work/.git/modules/hooked/hooks/post-checkout", "evil");
        fixture.write("work/.git/worktrees/armed/commondir", "../../../other\n");
    });
    assert_named(&said, &[".git/modules/armed", ".git/modules/hooked", ".git/worktrees/armed"]);
    for (name, stays) in [("plain", true), ("there", true), ("armed", false), ("hooked", false)] {
        assert_eq!(fixture.at("work/.git/modules").join(name).exists(), stays, "{name}");
    }
}

#[test]
fn what_another_program_replaced_is_named_and_stays() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    fixture.write("work/AGENTS.md", "mine");
    std::os::unix::fs::symlink("hooks", fixture.at("work/.git/config.worktree")).unwrap();
    let replace = |name: &str, text: &str| {
        fixture.write(&format!("{name}.new"), text);
        fs::rename(fixture.at(&format!("{name}.new")), fixture.at(name)).unwrap();
    };
    let said = after(&fixture, || {
        replace("work/.git/config", "[core]\n\tfsmonitor = evil\n");
        fixture.write("work/.git/hooks/pre-commit", "evil");
        fs::remove_file(fixture.at("work/.git/config.worktree")).unwrap();
        fixture.write("work/.git/config.worktree", "evil");
        replace("work/AGENTS.md", "the user's");
    });
    assert_named(&said, &[".git/config", ".git/hooks", ".git/config.worktree", "AGENTS.md"]);
    assert_eq!(fs::read_to_string(fixture.at("work/AGENTS.md")).unwrap(), "the user's");
}

#[test]
fn git_is_found_beside_any_number_of_files() {
    let fixture = Fixture::new();
    for number in 0..6_000 {
        fs::write(fixture.at("work").join(format!("aa{number}")), "").unwrap();
    }
    fixture.repository("work/.git");
    fixture.write("work/.envrc", "");
    let plan = fixture.plan().plan;
    assert!(has(&plan.read_only, &fixture.at("work/.git/config")) && has(&plan.read_only, &fixture.at("work/.envrc")));
}

#[test]
fn a_second_name_or_a_link_does_not_pass_as_something_harmless() {
    let fixture = Fixture::new();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, fixture.at(name)).unwrap();
    let said = after(&fixture, || {
        fixture.repository("work/new/.git");
        fs::hard_link(fixture.at("work/new/.git/config"), fixture.at("work/plain")).unwrap();
        fixture.write("work/c/config.toml", "evil");
        link("c", "work/.cargo");
    });
    assert_named(&said, &["new/.git", ".cargo"]);
}

#[test]
fn a_workspace_that_became_a_folder_of_git_is_none_any_more() {
    let fixture = Fixture::new();
    let said = after(&fixture, || {
        fixture.repository("work");
        fixture.write("work/config", "[core]\n\tfsmonitor = evil\n");
    });
    assert_named(&said, &["work/HEAD"]);
    assert!(!fixture.at("work/HEAD").exists() && fixture.at("work/HEAD.denied").exists());
}

#[test]
fn pipes_devices_and_long_names_neither_stop_hermes_nor_stay_unnamed() {
    let fixture = Fixture::new();
    let long = format!("CLAUDE.{}.md", "x".repeat(240));
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let said = after(&fixture, || {
            let pipe = fixture.at("work/d/commondir");
            fixture.write("work/d/gitdir", "");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
            assert!(made.success());
            fixture.write("work/e/.git", "gitdir: ../d\n");
            std::os::unix::fs::symlink("/dev/zero", fixture.at("work/f")).unwrap();
            fixture.write("work/.envrc", "evil");
            fixture.write(&format!("work/{long}"), "evil");
        });
        assert_named(&said, &["e/.git", ".envrc", &long]);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(std::time::Duration::from_secs(60)).expect("it waited for a pipe");
}

#[test]
fn a_workspace_that_cannot_be_read_runs_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let folder = fixture.at("work");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o311)).unwrap();
    let start = Start { folder: &folder, environment: &[], background: false, files: Vec::new() };
    let is_refused = hermes_test_data::as_ordinary_user(|| Planned::new(&fixture.confined, start).is_err());
    assert!(is_refused);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn another_folder_in_the_place_of_one_around_a_listed_file_does_not_keep_its_file() {
    let fixture = Fixture::new();
    fixture.write("work/sub/.envrc", "mine");
    fixture.write("work/.github/workflows/ci.yml", "mine");
    let planned = fixture.plan();
    for (from, to) in [("sub", "old"), (".github", "gh")] {
        fs::rename(fixture.at("work").join(from), fixture.at("work").join(to)).unwrap();
    }
    fixture.write("work/sub/.envrc", "evil");
    fixture.write("work/.github/workflows/ci.yml", "evil");
    assert_eq!(planned.undo().len(), 2);
    for gone in ["sub/.envrc", ".github/workflows"] {
        assert!(!fixture.at("work").join(gone).exists(), "{gone} is there");
    }
    assert_eq!(fs::read_to_string(fixture.at("work/old/.envrc")).unwrap(), "mine");
}

#[test]
fn a_file_that_another_program_replaced_in_its_folder_stays() {
    let fixture = Fixture::new();
    fixture.write("work/sub/.envrc", "mine");
    let planned = fixture.plan();
    fixture.write("work/sub/new", "edited");
    fs::rename(fixture.at("work/sub/new"), fixture.at("work/sub/.envrc")).unwrap();
    let said = planned.undo();
    assert!(said.len() == 1 && said[0].contains("was replaced while the program ran"), "{said:?}");
    assert_eq!(fs::read_to_string(fixture.at("work/sub/.envrc")).unwrap(), "edited");
}

#[test]
fn no_folder_becomes_a_repository_piece_by_piece() {
    let fixture = Fixture::new();
    // An empty folder is harmless, and so is one that `git init` fills.
    fs::create_dir_all(fixture.at("work/.git")).unwrap();
    fs::create_dir_all(fixture.at("work/sub/.git")).unwrap();
    let planned = fixture.plan();
    fixture.write("work/.git/hooks/pre-commit", "evil");
    fixture.repository("work/sub/.git");
    assert_eq!(planned.undo().len(), 1);
    assert!(!fixture.at("work/.git").exists() && fixture.at("work/sub/.git").exists());

    // A repository without its `HEAD` is still protected.
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    let planned = fixture.plan();
    fs::rename(fixture.at("work/.git/HEAD"), fixture.at("work/.git/H")).unwrap();
    assert_eq!(planned.undo(), Vec::<String>::new());
    let plan = fixture.plan().plan;
    assert!(has(&plan.pinned, &fixture.at("work/.git")) && has(&plan.read_only, &fixture.at("work/.git/config")));
}

#[test]
fn a_new_submodule_names_no_other_work_tree() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    fixture.write("work/.git/modules/keep", "");
    let planned = fixture.plan();
    for (name, tree) in [("good", "../../../good"), ("evil", "../../../../other")] {
        fixture.repository(&format!("work/.git/modules/{name}"));
        fixture.write(&format!("work/.git/modules/{name}/config"), &format!("[core]\n\tworktree = {tree}\n"));
        fixture.write(&format!("work/{name}/.git"), &format!("gitdir: ../.git/modules/{name}\n"));
    }
    let said = planned.undo();
    assert!(fixture.at("work/good/.git").exists() && fixture.at("work/.git/modules/good").exists(), "{said:?}");
    assert!(!fixture.at("work/evil/.git").exists() && !fixture.at("work/.git/modules/evil").exists(), "{said:?}");
}

#[test]
fn names_that_were_taken_before_do_not_keep_a_file_in_its_place() {
    let fixture = Fixture::new();
    let planned = fixture.plan();
    for number in 0..1_000 {
        fixture.write(&format!("work/.envrc.denied-{number}"), "");
        fixture.write(&format!("work/denied-{number}"), "");
    }
    for name in [".envrc", ".envrc.denied", "denied"] {
        fixture.write(&format!("work/{name}"), "evil");
    }
    assert_eq!(planned.undo().len(), 1);
    assert!(!fixture.at("work/.envrc").exists());
}

#[test]
fn many_created_files_are_all_renamed_and_a_few_are_named() {
    let fixture = Fixture::new();
    let planned = fixture.plan();
    for number in 0..300 {
        fixture.write(&format!("work/d{number}/.envrc"), "evil");
        fixture.write(&format!("work/d{number}/other/file"), "");
    }
    let said = planned.undo();
    assert_eq!(said.len(), 21);
    assert!(said[20].contains("280 more"), "{}", said[20]);
    assert!(!(0..300).any(|number| fixture.at(&format!("work/d{number}/.envrc")).exists()));
}

/// An index of version 2 with these entries.
fn index_with(paths: &[&str]) -> Vec<u8> {
    let mut all = [b"DIRC", &2_u32.to_be_bytes()[..], &(paths.len() as u32).to_be_bytes()].concat();
    for path in paths {
        let start = all.len();
        all.extend([&[0; 24][..], &0o100_755_u32.to_be_bytes(), &[0; 32]].concat());
        all.extend((path.len() as u16).to_be_bytes());
        all.extend(path.as_bytes());
        all.resize(start + ((all.len() - start + 8) & !7), 0);
    }
    [all, vec![0; 20]].concat()
}

#[test]
fn an_index_that_makes_git_write_elsewhere_is_renamed() {
    for (evil, entry) in [
        (index_with(&[".git/hooks/post-checkout", "a"]), ".git/hooks/post-checkout"),
        (index_with(&["../escape", "a"]), "../escape"),
        (b"DIRC".to_vec(), "cannot read it"),
    ] {
        let fixture = Fixture::new();
        for folder in ["work/.git", "work/.git/modules/lib"] {
            fixture.repository(folder);
            fs::write(fixture.at(folder).join("index"), index_with(&["a"])).unwrap();
        }
        fixture.write("work/.git/worktrees/tree/commondir", "../..\n");
        let folders = ["work/.git", "work/.git/modules/lib", "work/.git/worktrees/tree"];
        let planned = fixture.plan();
        folders.iter().for_each(|folder| fs::write(fixture.at(folder).join("index"), &evil).unwrap());
        let said = planned.undo();
        assert_eq!(said.len(), 3, "{said:#?}");
        assert!(said.iter().all(|line| line.contains(entry) && line.contains("`git reset`")), "{said:#?}");
        for folder in folders {
            assert!(!fixture.at(folder).join("index").exists() && fixture.at(folder).join("index.denied").exists());
        }
        assert_eq!(planned.undo(), Vec::<String>::new());
    }
}

#[test]
fn the_index_that_another_one_shares_entries_with_is_read_and_an_index_of_the_user_stays() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    fs::write(fixture.at("work/.git/index"), "of the user").unwrap();
    let shared = [index_with(&[]), vec![]].concat();
    let link = [&b"link"[..], &20_u32.to_be_bytes(), &[1; 20]].concat();
    let split = [&shared[..12], &link, &[0; 20]].concat();
    let planned = fixture.plan();
    fs::write(fixture.at("work/.git/index"), "of another program").unwrap();
    assert_eq!(planned.undo(), Vec::<String>::new(), "it was unreadable before");

    fs::write(fixture.at("work/.git/index"), split).unwrap();
    let planned = fixture.plan();
    let name = format!("work/.git/sharedindex.{}", "01".repeat(20));
    fs::write(fixture.at(&name), index_with(&["../escape"])).unwrap();
    let said = planned.undo();
    assert!(said.len() == 1 && said[0].contains("../escape"), "{said:#?}");
    assert!(!fixture.at("work/.git/index").exists());
}

#[test]
fn new_entries_of_the_index_that_start_programs_are_named() {
    let fixture = Fixture::new();
    fixture.repository("work/.git");
    fs::write(fixture.at("work/.git/index"), index_with(&["AGENTS.md", "a"])).unwrap();
    let planned = fixture.plan();
    assert_eq!(planned.undo(), Vec::<String>::new());
    fs::write(fixture.at("work/.git/index"), index_with(&[".envrc", "AGENTS.md", "a", "b"])).unwrap();
    let said = planned.undo();
    assert!(said.len() == 1 && said[0].contains("has \".envrc\" since"), "{said:#?}");
    assert!(fixture.at("work/.git/index").exists());
}

#[test]
fn links_where_git_writes_are_renamed_and_those_of_the_user_stay() {
    let fixture = Fixture::new();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, fixture.at(name)).unwrap();
    fixture.repository("work/.git");
    fixture.repository("work/.git/modules/lib");
    fs::create_dir_all(fixture.at("work/.git/logs/refs/heads")).unwrap();
    link("refs/heads/main", "work/.git/REFERENCE");
    let planned = fixture.plan();
    let made = [".git/logs/HEAD", ".git/COMMIT_EDITMSG", ".git/logs/refs/heads/x", ".git/refs/heads", ".git/rr-cache"];
    let made = made.iter().chain(&[".git/modules/lib/COMMIT_EDITMSG", ".git/modules/link"]);
    let made: Vec<String> = made.map(|name| format!("work/{name}")).collect();
    made.iter().for_each(|name| link("../../../home/.bashrc", name));
    let said = planned.undo();
    assert_eq!(said.len(), made.len(), "{said:#?}");
    assert!(said.iter().all(|line| line.contains(".denied")), "{said:#?}");
    assert!(made.iter().all(|name| fixture.at(name).symlink_metadata().is_err()), "{said:#?}");
    assert!(fixture.at("work/.git/REFERENCE").is_symlink());
    assert!(fixture.at("work/.git/.COMMIT_EDITMSG.denied").is_symlink());
}

#[test]
fn what_protected_links_and_hooks_lead_to_neither_changes_nor_moves() {
    let fixture = Fixture::new();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, fixture.at(name)).unwrap();
    fixture.repository("work/.git");
    fixture.repository("work/other/store/git");
    fixture.write("work/env/main", "mine");
    fixture.write("work/deep/scripts/pre-commit.sh", "mine");
    fixture.write("work/tools/hooks/post-merge", "mine");
    link("env/main", "work/.envrc");
    link("../../deep/scripts/pre-commit.sh", "work/.git/hooks/pre-commit");
    link("store/git", "work/other/.git");
    fs::remove_dir_all(fixture.at("work/other/store/git/hooks")).unwrap();
    link("../../../tools/hooks", "work/other/store/git/hooks");
    let plan = fixture.plan().plan;
    for kept in ["env/main", "deep/scripts/pre-commit.sh", "tools/hooks"] {
        assert!(has(&plan.read_only, &fixture.at("work").join(kept)), "{kept}: {:?}", plan.read_only);
    }
    for pinned in ["env", "deep", "deep/scripts", "tools", "other/store"] {
        assert!(has(&plan.pinned, &fixture.at("work").join(pinned)), "{pinned}: {:?}", plan.pinned);
    }
    assert!(!has(&plan.pinned, &fixture.at("work")));
}

/// The folders on the way to a protected file must not make a part of a read-only folder writable.
#[test]
fn no_folder_on_the_way_makes_a_protected_one_writable() {
    let fixture = Fixture::new();
    fixture.write("work/.config/mise/env/main", "mine");
    std::os::unix::fs::symlink(".config/mise/env/main", fixture.at("work/.envrc")).unwrap();
    let plan = fixture.plan().plan;
    assert!(has(&plan.read_only, &fixture.at("work/.config/mise")), "{:?}", plan.read_only);
    assert!(has(&plan.pinned, &fixture.at("work/.config")), "{:?}", plan.pinned);
    assert!(!plan.pinned.iter().any(|path| path.starts_with(fixture.at("work/.config/mise"))), "{:?}", plan.pinned);
}

#[test]
fn what_protected_links_lead_to_is_looked_at_where_it_cannot_be_protected() {
    let fixture = Fixture::new();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, fixture.at(name)).unwrap();
    fixture.write("work/env/one/main", "mine");
    fixture.write("work/env/two/main", "evil");
    fixture.write("work/.npmrc", "mine");
    fs::hard_link(fixture.at("work/.npmrc"), fixture.at("work/hard")).unwrap();
    fs::create_dir(fixture.at("work/a")).unwrap();
    link("one", "work/env/now");
    link("env/now/main", "work/.envrc");
    link("a/real.md", "work/AGENTS.md");
    let planned = fixture.plan();
    assert_eq!(planned.undo(), Vec::<String>::new());
    fs::remove_file(fixture.at("work/env/now")).unwrap();
    link("two", "work/env/now");
    fixture.write("work/hard", "evil");
    fixture.write("work/a/real.md", "evil");
    let said = planned.undo();
    assert_named(&said, &[".envrc", ".npmrc", "a/real.md"]);
    assert!(!fixture.at("work/a/real.md").exists() && fixture.at("work/a/real.md.denied").exists());
}

#[test]
fn of_very_many_protected_files_the_oldest_stay_protected() {
    let fixture = Fixture::new();
    fixture.write("work/.envrc", "mine");
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    for number in 0..4_100 {
        fs::write(fixture.at("work").join(format!("AGENTS.{number}.md")), "").unwrap();
    }
    let planned = fixture.plan();
    assert!(planned.plan.read_only.len() == 4_000 && has(&planned.plan.read_only, &fixture.at("work/.envrc")));
    let said = planned.undo();
    assert!(said.len() == 1 && said[0].contains("the newest 101 "), "{said:#?}");
}

/// Versions, hashes, shared and sparse indexes, and the extensions for threads, as git itself writes them.
#[test]
fn an_index_that_git_writes_stays() {
    let fixture = Fixture::new();
    let git = |folder: &Path, arguments: &[&str], input: &str| {
        use std::io::Write as _;
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "index.threads=4"]).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(folder).stdout(std::process::Stdio::null());
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    };
    for format in ["sha1", "sha256"] {
        let folder = fixture.at("work").join(format);
        fs::create_dir(&folder).unwrap();
        git(&folder, &["init", "-q", "--object-format", format], "");
        fixture.write(&format!("work/{format}/deep/down/a"), "");
        fixture.write(&format!("work/{format}/b"), "");
        fixture.write(&format!("work/{format}/.git/info/sparse-checkout"), "/*\n!/*/\n");
        let sparse =
            ["-c", "core.sparseCheckout=true", "-c", "core.sparseCheckoutCone=true", "-c", "index.sparse=true"];
        let blob = if format == "sha1" { "7".repeat(40) } else { "7".repeat(64) };
        let many: String =
            (0..30_000).map(|number| format!("100644 {blob}\tmany/{}/{number}\n", number % 90)).collect();
        for (version, arguments, input) in [
            ("2", &["add", "."][..], ""),
            ("3", &["add", "--intent-to-add", "b"], ""),
            ("2", &["commit", "-q", "-m", "first"], ""),
            ("3", &[&sparse[..], &["read-tree", "-m", "-u", "HEAD"]].concat(), ""),
            ("2", &["update-index", "--index-info"], &many),
            ("4", &["add", "b"], ""),
            ("4", &["update-index", "--split-index"], ""),
            ("4", &["update-index", "--add", "--cacheinfo", &format!("100644,{blob},c")], ""),
        ] {
            let planned = fixture.plan();
            git(&folder, &["update-index", "--index-version", version], "");
            git(&folder, arguments, input);
            assert_eq!(planned.undo(), Vec::<String>::new(), "{format} {arguments:?}");
        }
        assert!(folder.join(".git/index").exists());
    }
}

#[test]
fn a_file_in_the_place_of_the_scratch_folder_is_named() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("cache/scratch");
    fs::create_dir(home.path().join("cache")).and_then(|()| fs::write(&root, "")).unwrap();
    let error = scratch(home.path()).unwrap_err();
    let no = error.get_ref().and_then(|inner| inner.downcast_ref::<NoScratch>()).unwrap();
    assert_eq!(no.root, root);
    assert!(error.to_string().starts_with(&root.display().to_string()), "{error}");
}
