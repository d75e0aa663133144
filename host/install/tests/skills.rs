//! Skills: what the files and the lock are after each command, also if the process ends at any step of it. The test starts
//! itself as a child that aborts at the step.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermes_install::skills::{Change, SkillInstaller, StagedSkill};
use hermes_install::{InstallError, Silent, Source};

const CHILD: &str = "HERMES_TEST_SKILLS_CHILD";

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.ends_with("skills/.lock") => {}
                false => drop(found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap())),
            }
        }
    }
    found
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A source with the skills `tea` and `milk`.
fn source(folder: &Path, version: u32) {
    let _ = fs::remove_dir_all(folder);
    write(&folder.join("skills/tea/SKILL.md"), &format!("---\nname: tea\ndescription: Tea {version}.\n---\n"));
    write(&folder.join(format!("skills/tea/leaves/{version}.md")), "Sencha.\n");
    write(&folder.join("skills/tea/.hidden"), "not installed\n");
    write(&folder.join("skills/drinks/milk/SKILL.md"), "---\ndescription: Milk.\n---\n");
    write(&folder.join("template/SKILL.md"), "---\nname: template\ndescription: not offered\n---\n");
}

fn staged(home: &Path, from: &Path, name: &str) -> Result<StagedSkill, InstallError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let installer = SkillInstaller::new(home);
    let fetched = runtime.block_on(installer.fetch(&Source::Folder(from.to_owned()), false, &Silent))?;
    installer.stage(&fetched, name)
}

fn bring(home: &Path, from: &Path, name: &str, steps: &(dyn Fn(&str) + Sync)) -> Result<(), InstallError> {
    let staged = staged(home, from, name)?;
    staged.replaces_nothing_of_the_user()?;
    SkillInstaller::new(home).commit(&staged, "2026-11-27T00:00:00Z", steps)
}

fn before(command: &str, ground: &Path) {
    let (home, from) = (ground.join("home"), ground.join("source"));
    source(&from, 1);
    write(&home.join("skills/own/SKILL.md"), "---\ndescription: My own.\n---\n");
    if command != "install" {
        bring(&home, &from, "tea", &|_| ()).unwrap();
    }
    source(&from, 2);
}

fn carry_out(command: &str, ground: &Path, steps: &(dyn Fn(&str) + Sync)) {
    let (home, from) = (ground.join("home"), ground.join("source"));
    match command {
        "install" | "update" => bring(&home, &from, "tea", steps).unwrap(),
        "remove" => SkillInstaller::new(&home).remove("tea", false, steps).unwrap(),
        "recover" => drop(SkillInstaller::new(&home).recover(steps).unwrap()),
        other => panic!("{other}"),
    }
}

/// The child process of the test below. Run as a test, it checks that its own child aborts exactly at the given step.
#[test]
fn a_child_aborts_at_the_step_that_it_was_given() {
    let Ok(given) = std::env::var(CHILD) else {
        let ground = tempfile::tempdir().unwrap();
        before("install", ground.path());
        assert!(ended("install", 0, ground.path()), "the child went on");
        assert!(!ended("install", usize::MAX, ground.path()), "the child aborted without such a step");
        return;
    };
    let [command, at, ground] = given.splitn(3, ':').collect::<Vec<_>>().try_into().unwrap();
    let (at, seen): (usize, _) = (at.parse().unwrap(), AtomicUsize::new(0));
    carry_out(command, Path::new(ground), &|_| {
        if seen.fetch_add(1, Ordering::Relaxed) == at {
            std::process::abort();
        }
    });
}

fn ended(command: &str, at: usize, ground: &Path) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_child_aborts_at_the_step_that_it_was_given", "--nocapture"]);
    let output = child.env(CHILD, format!("{command}:{at}:{}", ground.display())).output().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        let signal = output.status.signal();
        assert!(output.status.success() || signal == Some(6), "{}", String::from_utf8_lossy(&output.stderr));
    }
    !output.status.success()
}

#[test]
fn a_crash_at_any_step_leaves_the_old_state_or_the_new_one() {
    let place = tempfile::tempdir().unwrap();
    let ground = place.path().join("ground");
    let home = ground.join("home");
    let fresh = |command: &str| {
        let _ = fs::remove_dir_all(&ground);
        before(command, &ground);
    };
    for command in ["install", "update", "remove"] {
        fresh(command);
        let old = files(&home);
        carry_out(command, &ground, &|_| ());
        let new = files(&home);
        assert_ne!(old, new);
        let (mut olds, mut news) = (0, 0);
        for at in 0.. {
            fresh(command);
            if !ended(command, at, &ground) {
                break;
            }
            // The recovering process may end at any step as well.
            let steps = (0..).take_while(|again| ended("recover", *again, &ground)).count();
            assert!(steps < 20);
            match files(&home) {
                now if now == old => olds += 1,
                now if now == new => news += 1,
                now => panic!("{command} at {at} leaves neither:\n{:?}", now.keys().collect::<Vec<_>>()),
            }
        }
        assert!(olds >= 1 && news >= 4, "{command}: {olds} times the old state, {news} times the new one");
    }
}

#[test]
fn a_skill_is_installed_updated_and_removed_without_a_trace() {
    let ground = tempfile::tempdir().unwrap();
    let (home, from) = (ground.path().join("home"), ground.path().join("source"));
    before("install", ground.path());
    let old = files(&home);
    bring(&home, &from, "tea", &|_| ()).unwrap();
    let lock = SkillInstaller::new(&home).lock().unwrap();
    let entry = &lock.skills["tea"];
    assert_eq!(
        (entry.path.as_str(), entry.files.keys().map(String::as_str).collect::<Vec<_>>()),
        ("skills/tea", vec!["SKILL.md", "leaves/2.md"])
    );
    assert!(!home.join("skills/tea/.hidden").exists());
    assert!(staged(&home, &from, "tea").unwrap().is_installed());
    source(&from, 3);
    let update = staged(&home, &from, "tea").unwrap();
    let changes: Vec<_> = update.changes().into_iter().map(|change| (change.name, change.change)).collect();
    let expected = [("SKILL.md", Change::Changed), ("leaves/2.md", Change::Removed), ("leaves/3.md", Change::Added)];
    assert_eq!(changes, expected.map(|(name, change)| (name.to_owned(), change)));
    assert!(update.has_same_source() && !update.is_installed());
    drop(update);
    SkillInstaller::new(&home).remove("tea", false, &|_| ()).unwrap();
    assert_eq!(files(&home), old);
    // A skill without a name has that of its folder.
    bring(&home, &from, "milk", &|_| ()).unwrap();
    assert!(home.join("skills/milk/SKILL.md").exists());
    assert!(matches!(staged(&home, &from, "template"), Err(InstallError::NoSuchSkill { .. })));
}

#[test]
fn files_of_the_user_are_neither_replaced_nor_removed() {
    let ground = tempfile::tempdir().unwrap();
    let (home, from) = (ground.path().join("home"), ground.path().join("source"));
    before("update", ground.path());
    let installer = SkillInstaller::new(&home);
    for edit in ["skills/tea/SKILL.md", "skills/tea/notes.md", "skills/tea/.env"] {
        let before = fs::read(home.join(edit)).ok();
        write(&home.join(edit), "---\nname: tea\ndescription: Mine.\n---\n");
        assert!(matches!(bring(&home, &from, "tea", &|_| ()), Err(InstallError::SkillEdited { .. })), "{edit}");
        assert!(matches!(installer.remove("tea", false, &|_| ()), Err(InstallError::SkillEdited { .. })), "{edit}");
        assert_eq!(fs::read_to_string(home.join(edit)).unwrap(), "---\nname: tea\ndescription: Mine.\n---\n");
        match before {
            Some(before) => fs::write(home.join(edit), before).unwrap(),
            None => fs::remove_file(home.join(edit)).unwrap(),
        }
    }
    // What interpreters leave behind is no change.
    write(&home.join("skills/tea/scripts/__pycache__/x.pyc"), "x");
    bring(&home, &from, "tea", &|_| ()).unwrap();
    assert!(matches!(installer.remove("own", true, &|_| ()), Err(InstallError::SkillOccupied { .. })));
    write(&from.join("skills/own/SKILL.md"), "---\ndescription: Theirs.\n---\n");
    assert!(matches!(bring(&home, &from, "own", &|_| ()), Err(InstallError::SkillOccupied { .. })));
    // The name of a skill in another folder.
    write(&home.join("skills/drinks/mine/SKILL.md"), "---\nname: milk\ndescription: Mine.\n---\n");
    assert!(matches!(bring(&home, &from, "milk", &|_| ()), Err(InstallError::SkillName { .. })));
    let other = ground.path().join("other");
    source(&other, 9);
    assert!(matches!(bring(&home, &other, "tea", &|_| ()), Err(InstallError::SkillInstalled { .. })));
}

mod attack {
    use super::*;

    #[test]
    fn a_change_during_a_question_is_not_overwritten() {
        let ground = tempfile::tempdir().unwrap();
        let (home, from) = (ground.path().join("home"), ground.path().join("source"));
        before("update", ground.path());
        let staged = staged(&home, &from, "tea").unwrap();
        write(&home.join("skills/tea/mine.md"), "typed meanwhile");
        let late = SkillInstaller::new(&home).commit(&staged, "x", &|_| ());
        assert!(matches!(late, Err(InstallError::Raced(_))), "{late:?}");
        assert!(home.join("skills/tea/mine.md").exists());
    }

    #[cfg(unix)]
    #[test]
    fn links_devices_and_too_much_of_anything_are_refused() {
        use std::os::unix::fs::symlink;
        let ground = tempfile::tempdir().unwrap();
        let (home, from) = (ground.path().join("home"), ground.path().join("source"));
        let skill = from.join("skills/tea");
        let refused = |says: &str| {
            let error = staged(&home, &from, "tea").unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        source(&from, 1);
        symlink("/etc/passwd", skill.join("leaves/passwd")).unwrap();
        refused("`leaves/passwd` is a link");
        source(&from, 1);
        symlink("leaves", skill.join("inside")).unwrap();
        refused("`inside` is a link");
        source(&from, 1);
        assert!(Command::new("mkfifo").arg(skill.join("pipe")).status().unwrap().success());
        refused("neither a file nor a folder");
        source(&from, 1);
        fs::File::create(skill.join("big.bin")).unwrap().set_len((4 << 20) + 1).unwrap();
        refused("larger than 4096 KiB");
        source(&from, 1);
        (0..5).for_each(|at| {
            fs::File::create(skill.join(format!("{at}.bin"))).unwrap().set_len(4 << 20).unwrap();
        });
        refused("more than 16 MiB");
        source(&from, 1);
        (0..500).for_each(|at| write(&skill.join(format!("many/{at}.md")), ""));
        refused("more than 500 files");
        source(&from, 1);
        write(&skill.join("a/b/c/d/e/f/g/x.md"), "");
        refused("folders deep");
        source(&from, 1);
        write(&skill.join("SKILL.md"), &"x".repeat((256 << 10) + 1));
        refused("larger than 256 KiB");
        source(&from, 1);
        write(&skill.join("a\u{1b}[31mb.md"), "");
        refused("control character");
        for name in ["../../tea", "/tea", ".stage-1", ".lock", "a/b", "nul"] {
            source(&from, 1);
            write(&skill.join("SKILL.md"), &format!("---\nname: {name}\ndescription: x\n---\n"));
            // By its folder, since the name may be one that can be read and not installed.
            let error = staged(&home, &from, "skills/tea").unwrap_err().to_string();
            assert!(error.contains("cannot be used: its name"), "{name}: {error}");
        }
        assert!(files(&home).is_empty(), "{:?}", files(&home).keys());
    }
}
