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
            listed: Arc::new(Listed::default()),
        };
        let scratch = Arc::new(Scratch::new().unwrap());
        Self { confined: Confined { sandbox, readable: Vec::new(), closed: Vec::new(), scratch }, top }
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
