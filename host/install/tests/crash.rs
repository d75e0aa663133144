//! Ends the process at each step of a command and checks that the old state or the new one results, also when the
//! recovering process ends as well. The test starts itself as a child that aborts at the step.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermes_install::{InstallError, Installer, Rewrite, Silent, Source, State, Wanted};
use hermes_plugin_host::{Catalog, Digest, LimitSet, Permissions};

const CHILD: &str = "HERMES_TEST_INSTALL_CHILD";

/// Lists every file below a folder. Folders are listed with a slash, except the two that may be left empty.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if path.is_dir() {
                if !name.ends_with("plugins") && !name.ends_with("plugins/.previous") {
                    found.insert(name.join(""), Vec::new());
                }
                folders.push(path);
            } else if !name.ends_with("plugins/.lock") {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Creates a source whose version and bytes depend on a number.
fn source(folder: &Path, version: u32) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("plugin.yaml"), format!("name: mine\nversion: {version}.0.0\n")).unwrap();
    fs::write(folder.join("mine.wasm"), format!("code of {version}")).unwrap();
}

fn installer(home: &Path) -> Installer {
    Installer::new(home, ["bundled".to_owned()])
}

fn bring(home: &Path, from: &Path, steps: &(dyn Fn(&str) + Sync)) -> Result<(), InstallError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let wanted = Wanted { source: Source::Folder(from.to_owned()), name: None, insecure: false, key: None };
    let mut prepared = runtime.block_on(installer(home).prepare(&wanted, &Silent))?;
    if prepared.replaces_another() {
        prepared.rewrite(Some(without_the_plugin(home)));
    }
    steps("prepared");
    installer(home).commit(&prepared, Permissions::default(), LimitSet::default(), steps).map(drop)
}

const CONFIGURATION: (&str, &str) = ("# mine\nplugins: {enabled: [mine]}\n", "# mine\n");

fn without_the_plugin(home: &Path) -> Rewrite {
    Rewrite {
        file: home.join("config.yaml"),
        before: Digest::of(CONFIGURATION.0.as_bytes()),
        after: CONFIGURATION.1.to_owned(),
    }
}

fn remove(home: &Path, steps: &(dyn Fn(&str) + Sync)) -> Result<(), InstallError> {
    installer(home).remove("mine", Some(without_the_plugin(home)), true, steps)
}

/// The state of a home before a command, and the command.
fn before(command: &str, ground: &Path) {
    let (home, from) = (ground.join("home"), ground.join("source"));
    fs::create_dir_all(home.join("data/mine")).unwrap();
    // With a known key, equal locks have equal seals.
    fs::write(home.join("plugins.key"), [7; 32]).unwrap();
    fs::write(home.join("data/mine/plugin.db"), "kept").unwrap();
    fs::write(home.join("config.yaml"), CONFIGURATION.0).unwrap();
    let versions = match command {
        "install" => 0,
        "update" | "replace" => 1,
        "remove" | "rollback" | "update again" => 2,
        other => panic!("{other}"),
    };
    for version in 1..=versions {
        source(&from, version);
        bring(&home, &from, &|_| ()).unwrap();
    }
    source(&from, versions + 1);
    source(&ground.join("other"), versions + 1);
    // The first installation set the data of an unknown origin aside.
    fs::create_dir_all(home.join("data/mine")).unwrap();
    fs::write(home.join("data/mine/plugin.db"), "of the plugin").unwrap();
}

fn carry_out(command: &str, ground: &Path, steps: &(dyn Fn(&str) + Sync)) {
    let (home, from) = (ground.join("home"), ground.join("source"));
    match command {
        "install" | "update" | "update again" => bring(&home, &from, steps).unwrap(),
        "replace" => bring(&home, &ground.join("other"), steps).unwrap(),
        "replace back" => {
            fs::write(home.join("config.yaml"), CONFIGURATION.0).unwrap();
            fs::create_dir_all(home.join("data/mine")).unwrap();
            fs::write(home.join("data/mine/plugin.db"), "of the other").unwrap();
            bring(&home, &from, steps).unwrap();
        }
        "rollback" => drop(installer(&home).roll_back("mine", steps).unwrap()),
        "remove" => remove(&home, steps).unwrap(),
        "recover" => drop(installer(&home).recover(steps).unwrap()),
        other => panic!("{other}"),
    }
}

/// The child process of all tests here. Run as a test, it checks that its own child aborts exactly at the given step.
#[test]
fn a_child_aborts_at_the_step_that_it_was_given() {
    let Ok(given) = std::env::var(CHILD) else {
        let ground = tempfile::tempdir().unwrap();
        before("install", ground.path());
        assert!(ended("install", 0, ground.path()), "the child went on");
        fresh(ground.path());
        before("install", ground.path());
        assert!(!ended("install", usize::MAX, ground.path()), "the child aborted without such a step");
        return;
    };
    let [command, at, ground] = given.splitn(3, ':').collect::<Vec<_>>().try_into().unwrap();
    let (at, seen): (usize, _) = (at.parse().unwrap(), AtomicUsize::new(0));
    let steps = |_: &str| {
        if seen.fetch_add(1, Ordering::Relaxed) == at {
            std::process::abort();
        }
    };
    carry_out(command, Path::new(ground), &steps);
}

/// Runs a command in a child that aborts at a step. Returns whether the child reached the step.
fn ended(command: &str, at: usize, ground: &Path) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_child_aborts_at_the_step_that_it_was_given", "--nocapture"]);
    child.env(CHILD, format!("{command}:{at}:{}", ground.display()));
    let output = child.output().unwrap();
    if output.status.success() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(6), "{}", String::from_utf8_lossy(&output.stderr));
    }
    true
}

fn look(home: &Path) -> (Files, Vec<State>) {
    let catalog = Catalog::find(&[], &home.join("plugins"), &HashMap::new());
    let findings = installer(home).verify(&catalog).unwrap();
    (files(home), findings.iter().map(|finding| finding.state).collect())
}

fn fresh(ground: &Path) {
    let _ = fs::remove_dir_all(ground);
    fs::create_dir_all(ground).unwrap();
}

#[test]
fn a_crash_at_any_step_leaves_the_old_state_or_the_new_one() {
    let place = tempfile::tempdir().unwrap();
    // All commands use the same folder, because the lock stores its path.
    let ground = place.path().join("ground");
    let home = ground.join("home");
    for command in ["install", "update", "update again", "replace", "rollback", "remove"] {
        fresh(&ground);
        before(command, &ground);
        let old = files(&home);
        carry_out(command, &ground, &|_| ());
        let new = files(&home);
        assert_ne!(old, new);
        let (mut olds, mut news) = (0, 0);
        for at in 0.. {
            fresh(&ground);
            before(command, &ground);
            assert_eq!(files(&home), old, "{command} does not begin where it did");
            if !ended(command, at, &ground) {
                break;
            }
            // The recovering process may end at any step as well.
            for again in 0.. {
                if !ended("recover", again, &ground) {
                    break;
                }
            }
            let (now, states) = look(&home);
            assert!(states.iter().all(|state| *state == State::Ok), "{command} at {at}: {states:?}");
            match () {
                () if now == old => olds += 1,
                () if now == new => news += 1,
                () => panic!("{command} at {at} leaves neither:\n{:?}", now.keys().collect::<Vec<_>>()),
            }
        }
        assert!(olds >= 1 && news >= 4, "{command}: {olds} times the old state, {news} times the new one");
    }
}

#[test]
fn files_edited_after_the_crash_are_not_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let ground = place.path().join("ground");
    let home = ground.join("home");
    before("remove", &ground);
    // After the journal and the moves, before the configuration.
    let at = (0..).find(|at| {
        fresh(&ground);
        before("remove", &ground);
        ended("remove", *at, &ground);
        !home.join("plugins/mine").exists()
    });
    assert!(at.is_some());
    fs::write(home.join("config.yaml"), "mine: edited\n").unwrap();
    assert_eq!(installer(&home).recover(&|_| ()).unwrap().as_deref(), Some("mine"));
    assert_eq!(fs::read_to_string(home.join("config.yaml")).unwrap(), "mine: edited\n");
    assert!(!home.join("plugins/mine").exists() && !home.join("plugins.lock").exists());
}

mod attack {
    use super::*;

    fn data(home: &Path) -> Option<String> {
        fs::read_to_string(home.join("data/mine/plugin.db")).ok()
    }

    #[test]
    fn data_follows_its_origin_through_replacements() {
        let place = tempfile::tempdir().unwrap();
        let (ground, home) = (place.path(), place.path().join("home"));
        before("replace", ground);
        assert_eq!(data(&home).as_deref(), Some("of the plugin"));
        carry_out("replace", ground, &|_| ());
        assert_eq!(data(&home), None, "another origin has the data");
        assert_eq!(fs::read_to_string(home.join("config.yaml")).unwrap(), CONFIGURATION.1);
        assert!(installer(&home).entry("mine").unwrap().previous.is_none(), "a rollback would lead to another origin");
        carry_out("replace back", ground, &|_| ());
        assert_eq!(data(&home).as_deref(), Some("of the plugin"));
        // The data of the other one, and what was there before the first installation.
        let aside = installer(&home).data_aside("mine");
        let unknown = aside.iter().filter(|aside| aside.origin.is_none()).count();
        assert_eq!((aside.len(), unknown), (2, 1), "{aside:?}");
    }

    #[test]
    fn a_changed_journal_grants_nothing() {
        for is_changed in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let (ground, home) = (place.path(), place.path().join("home"));
            before("install", ground);
            // After the journal was written.
            assert!(ended("install", 2, ground));
            let journal = home.join("plugins/.journal");
            let mut note: serde_json::Value = serde_json::from_slice(&fs::read(&journal).unwrap()).unwrap();
            if is_changed {
                note["entry"]["granted"] = serde_json::json!({ "history": true });
            }
            fs::write(&journal, note.to_string()).unwrap();
            assert_eq!(installer(&home).recover(&|_| ()).unwrap().as_deref(), Some("mine"));
            assert_eq!(installer(&home).entry("mine").unwrap().is_ours(), !is_changed);
            assert_eq!(look(&home).1, [if is_changed { State::Foreign } else { State::Ok }]);
        }
    }

    #[test]
    fn an_altered_or_foreign_record_of_an_origin_gives_nothing() {
        for record in ["", "{", "{\"source\": 1}", "{\"source\": \"/elsewhere\"}"] {
            let place = tempfile::tempdir().unwrap();
            let (ground, home) = (place.path(), place.path().join("home"));
            before("update", ground);
            fs::write(home.join("data/mine/origin.json"), record).unwrap();
            installer(&home).remove("mine", None, false, &|_| ()).unwrap();
            // A removal knows the origin better than a damaged record, but not better than another one.
            let is_whole = record.contains("elsewhere");
            carry_out("install", ground, &|_| ());
            assert_eq!(data(&home).is_none(), is_whole, "{record}");
        }
    }
}

#[test]
fn install_and_remove_restore_the_old_state() {
    let place = tempfile::tempdir().unwrap();
    let ground = place.path();
    before("install", ground);
    let home = ground.join("home");
    fs::remove_dir_all(home.join("data")).unwrap();
    let old = files(&home);
    bring(&home, &ground.join("source"), &|_| ()).unwrap();
    assert_ne!(files(&home), old);
    installer(&home).remove("mine", None, false, &|_| ()).unwrap();
    assert_eq!(files(&home), old);
}

#[test]
fn changes_during_a_question_are_not_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let (home, from) = (place.path().join("home"), place.path().join("source"));
    source(&from, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let wanted = Wanted { source: Source::Folder(from.clone()), name: None, insecure: false, key: None };
    let prepared = runtime.block_on(installer(&home).prepare(&wanted, &Silent)).unwrap();
    bring(&home, &from, &|_| ()).unwrap();
    let late = installer(&home).commit(&prepared, Permissions::default(), LimitSet::default(), &|_| ());
    assert!(matches!(late, Err(InstallError::Raced(_))), "{late:?}");
    drop(prepared);
    assert_eq!(look(&home).1, [State::Ok]);
}

#[test]
fn names_in_use_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let (home, from) = (place.path().join("home"), place.path().join("source"));
    source(&from, 1);
    fs::write(from.join("plugin.yaml"), "name: bundled\n").unwrap();
    assert!(matches!(bring(&home, &from, &|_| ()), Err(InstallError::BundledName(_))));
    source(&from, 1);
    fs::create_dir_all(home.join("plugins/mine")).unwrap();
    fs::write(home.join("plugins/mine/x"), "theirs").unwrap();
    assert!(matches!(bring(&home, &from, &|_| ()), Err(InstallError::Occupied { .. })));
    assert_eq!(fs::read_to_string(home.join("plugins/mine/x")).unwrap(), "theirs");
}
