//! What a hostile program, another process or a kill may do between a change and its undo.

use super::*;

#[test]
fn a_link_in_the_place_of_a_folder_leads_nowhere() {
    let world = World::new();
    let outside = world.root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "untouched").unwrap();
    world.write("dir/a", "1");
    world.write("dir/gone", "1");
    world.program(|| {
        world.write("dir/a", "2");
        fs::remove_file(world.path("dir/gone")).unwrap();
        world.write("dir/made", "3");
    });
    fs::rename(world.path("dir"), world.path("moved")).unwrap();
    symlink(&outside, world.path("dir")).unwrap();
    fs::write(outside.join("made"), "3").unwrap();
    assert_eq!(world.refused(), ["dir/a something else is in its place", "dir/gone something else is in its place"]);
    for on_conflict in [OnConflict::Skip, OnConflict::Overwrite] {
        let _ = world.undo(Turns::Last(1), on_conflict);
        assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "untouched");
        assert_eq!(fs::read_to_string(outside.join("made")).unwrap(), "3");
        assert!(!outside.join("gone").exists());
    }
}

/// A folder `d` with the files `d/f` and `d/e/g`. A program replaces it.
fn with_replaced_folder(replace: impl FnOnce(&World)) -> World {
    let world = World::new();
    world.write("d/f", "inside");
    world.write("d/e/g", "deep");
    world.write("other/f", "other");
    world.program(|| replace(&world));
    world
}

#[track_caller]
fn assert_folder_is_back(world: &World) {
    assert_eq!((world.read("d/f"), world.read("d/e/g")), ("inside".into(), "deep".into()));
    assert!(!world.path("d").is_symlink() && world.read("other/f") == "other");
}

#[test]
fn a_folder_that_a_turn_replaced_by_a_link_or_a_file_is_restored_with_its_files() {
    let replacements: [fn(&World); 4] = [
        |world| symlink("other", world.path("d")).unwrap(),
        |world| symlink("nowhere", world.path("d")).unwrap(),
        |world| world.write("d", "a file"),
        |world| {
            world.write("d/e", "a file in its place");
            world.write("d/new", "new");
        },
    ];
    for replacement in replacements {
        let world = with_replaced_folder(|world| {
            fs::remove_dir_all(world.path("d")).unwrap();
            replacement(world);
        });
        world.undone();
        assert_folder_is_back(&world);
        assert!(!world.exists("d/new"));
    }
    let world = with_replaced_folder(|world| {
        fs::rename(world.path("d"), world.path("d2")).unwrap();
        symlink("d2", world.path("d")).unwrap();
    });
    world.undone();
    assert_folder_is_back(&world);
    // A change in one turn, the link in the next.
    let world = with_replaced_folder(|world| world.write("d/f", "changed"));
    world.recorder.turn_begins(2, "second");
    world.program(|| {
        fs::remove_dir_all(world.path("d")).unwrap();
        symlink("other", world.path("d")).unwrap();
    });
    world.undo(Turns::Last(2), OnConflict::Refuse).unwrap();
    assert_folder_is_back(&world);
}

#[test]
fn a_link_in_the_place_of_a_folder_is_refused_only_if_the_user_changed_it_since() {
    let world = with_replaced_folder(|world| {
        fs::remove_dir_all(world.path("d")).unwrap();
        symlink("other", world.path("d")).unwrap();
    });
    fs::remove_file(world.path("d")).unwrap();
    symlink("nowhere", world.path("d")).unwrap();
    let all = ["d", "d/e", "d/e/g", "d/f"];
    assert_eq!(world.refused(), all.map(|path| format!("{path} changed since")));
    let undo = world.undo(Turns::Last(1), OnConflict::Overwrite).unwrap();
    assert_eq!((undo.restored.len(), undo.left.len()), (4, 0));
    assert_folder_is_back(&world);
}

#[test]
fn what_a_forced_undo_cannot_restore_stays_to_be_undone() {
    let paths = |paths: &[RelPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    let world = with_replaced_folder(|world| {
        world.write("a", "made");
        world.write("d/f", "changed");
    });
    fs::rename(world.path("d"), world.path("away")).unwrap();
    symlink("other", world.path("d")).unwrap();
    for restored in [vec!["a"], vec![]] {
        let undo = world.undo(Turns::Last(1), OnConflict::Overwrite).unwrap();
        assert_eq!(
            (paths(&undo.restored), paths(&undo.left)),
            (restored.iter().map(ToString::to_string).collect(), vec!["d/f".to_owned()])
        );
        assert!(world.records()[0].is_open() && !world.exists("a"));
    }
    assert_eq!(world.refused(), ["d/f something else is in its place"]);
    fs::remove_file(world.path("d")).unwrap();
    fs::rename(world.path("away"), world.path("d")).unwrap();
    // What was restored and is the user's since then is left alone.
    world.write("a", "mine");
    assert_eq!(world.undone(), ["d/f"]);
    assert_folder_is_back(&world);
    assert_eq!(world.read("a"), "mine");
    let told = untold(&world.store, SESSION);
    assert_eq!(told[0].undone.as_ref().map(|undone| paths(&undone.restored)).unwrap(), ["a", "d/f"]);
    assert!(matches!(world.undo(Turns::Last(1), OnConflict::Refuse), Err(UndoError::Nothing)));
    // `--skip-changed` gives up what is in the way.
    world.recorder.turn_begins(2, "second");
    world.program(|| world.write("d/f", "changed"));
    fs::rename(world.path("d"), world.path("away")).unwrap();
    symlink("other", world.path("d")).unwrap();
    world.undo(Turns::Last(1), OnConflict::Overwrite).unwrap();
    world.undo(Turns::Last(1), OnConflict::Skip).unwrap();
    assert!(matches!(world.undo(Turns::Last(1), OnConflict::Refuse), Err(UndoError::Nothing)));
}

#[test]
fn a_folder_with_a_file_of_the_user_deep_inside_gives_way_to_nothing() {
    let world = World::new();
    world.write("x", "file");
    world.program(|| {
        fs::remove_file(world.path("x")).unwrap();
        world.write("x/sub/made", "made");
    });
    world.write("x/sub/mine", "mine");
    assert_eq!(world.refused(), ["x something else is in its place"]);
    let undo = world.undo(Turns::Last(1), OnConflict::Overwrite).unwrap();
    assert_eq!(undo.left.len(), 1);
    assert_eq!(world.read("x/sub/mine"), "mine");
    fs::remove_dir_all(world.path("x/sub")).unwrap();
    assert_eq!(world.undone(), ["x"]);
    assert_eq!(world.read("x"), "file");
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_its_target_is_not() {
    let world = World::new();
    let outside = world.root.path().join("secret");
    fs::write(&outside, "untouched").unwrap();
    world.write("a", "1");
    world.program(|| world.write("a", "2"));
    fs::remove_file(world.path("a")).unwrap();
    symlink(&outside, world.path("a")).unwrap();
    assert_eq!(world.refused(), ["a changed since"]);
    world.undo(Turns::Last(1), OnConflict::Overwrite).unwrap();
    assert_eq!(world.read("a"), "1");
    assert!(!world.path("a").is_symlink());
    assert_eq!(fs::read_to_string(outside).unwrap(), "untouched");
}

#[test]
fn a_link_is_not_followed_when_files_are_saved() {
    let world = World::new();
    let outside = world.root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("password"), "hidden").unwrap();
    symlink(&outside, world.path("link")).unwrap();
    symlink(outside.join("password"), world.path("file-link")).unwrap();
    world.program(|| {});
    assert!(!world.root.path().join("home/checkpoints/blobs").exists());
}

#[test]
fn a_workspace_that_became_a_link_is_refused() {
    let world = World::new();
    world.write("a", "1");
    world.program(|| world.write("a", "2"));
    let other = world.root.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a"), "2").unwrap();
    fs::rename(world.root.path().join("work"), world.root.path().join("moved")).unwrap();
    symlink(&other, world.root.path().join("work")).unwrap();
    let refused = world.undo(Turns::Last(1), OnConflict::Overwrite);
    assert!(matches!(refused, Err(UndoError::Workspace { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(other.join("a")).unwrap(), "2");
}

#[test]
fn a_pipe_and_a_device_are_not_opened() {
    let world = World::new();
    assert!(std::process::Command::new("mkfifo").arg(world.path("pipe")).status().unwrap().success());
    world.write("a", "1");
    world.program(|| {
        world.write("a", "2");
        fs::remove_file(world.path("pipe")).unwrap();
    });
    let undo = world.undo(Turns::Last(1), OnConflict::Refuse).unwrap();
    assert_eq!(undo.unsaved.len(), 1);
    assert_eq!(world.read("a"), "1");
}

#[test]
fn a_damaged_content_is_named_and_not_restored() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1 of b");
    world.program(|| ["a", "b"].iter().for_each(|path| world.write(path, "2")));
    fs::write(world.store.blob(&crate::state::Digest::of(b"1")), "0").unwrap();
    let undo = world.undo(Turns::Last(1), OnConflict::Refuse).unwrap();
    assert_eq!((undo.unsaved.len(), undo.restored.len()), (1, 1));
    assert_eq!((world.read("a"), world.read("b")), ("2".into(), "1 of b".into()));
}

#[test]
fn an_undo_that_cannot_be_completed_is_taken_back() {
    let world = World::new();
    world.write("a", "1");
    world.write("locked/b", "1");
    world.program(|| {
        world.write("a", "2");
        world.write("locked/b", "2");
    });
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    let failed = hermes_test_data::as_ordinary_user(|| world.undo(Turns::Last(1), OnConflict::Refuse));
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(failed, Err(UndoError::Failed { .. })), "{failed:?}");
    assert_eq!((world.read("a"), world.read("locked/b")), ("2".into(), "2".into()));
    world.undone();
}

/// A child process is killed at many moments of its undo. What it leaves is completed.
#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_state_after_the_next_start() {
    const FILES: usize = 60;
    const CHILD: &str = "HERMES_TEST_UNDO";
    if let Some(home) = std::env::var_os(CHILD) {
        let done = undo(&Store::in_home(Path::new(&home)), SESSION, Turns::Last(1), OnConflict::Refuse, &LIMITS);
        return assert!(done.is_ok(), "{done:?}");
    }
    let mut outcomes = std::collections::BTreeSet::new();
    for round in 0_u64..8 {
        let world = World::new();
        for number in 0..FILES {
            world.write(&format!("d{}/f{number}", number % 5), format!("old {number}"));
        }
        world.write("replaced/deep/f", "old");
        world.program(|| {
            fs::remove_dir_all(world.path("replaced")).unwrap();
            symlink("d0", world.path("replaced")).unwrap();
            for number in 0..FILES {
                let path = format!("d{}/f{number}", number % 5);
                match number % 3 {
                    0 => fs::remove_file(world.path(&path)).unwrap(),
                    _ => world.write(&path, format!("new {number}")),
                }
                world.write(&format!("made{number}/file"), "made");
            }
        });
        let home = world.root.path().join("home");
        let name = "tests::attack::a_kill_at_any_moment_leaves_the_old_or_the_new_state_after_the_next_start";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args([name, "--exact"]).env(CHILD, &home).stdout(std::process::Stdio::null());
        let mut child = child.stderr(std::process::Stdio::null()).spawn().unwrap();
        let journal = home.join("checkpoints/undo").join(format!("{SESSION}.json"));
        while !journal.exists() && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(round * 700));
        let _ = child.kill();
        child.wait().unwrap();
        let was_under_way = journal.exists();
        let recovered = recover(&world.store, &LIMITS);
        assert!(recovered.iter().all(Result::is_ok), "{recovered:?}");
        let files: Vec<String> = (0..FILES).map(|number| world.read(&format!("d{}/f{number}", number % 5))).collect();
        let is_old = files.iter().enumerate().all(|(number, text)| *text == format!("old {number}"));
        let made = (0..FILES).filter(|number| world.exists(&format!("made{number}"))).count();
        assert!(is_old && made == 0, "round {round}: {files:?}, {made} folders");
        assert_eq!(world.read("replaced/deep/f"), "old", "round {round}");
        for folder in 0..5 {
            let names = fs::read_dir(world.path(&format!("d{folder}"))).unwrap();
            let drafts = names.filter(|name| crate::tree::is_draft(&name.as_ref().unwrap().file_name())).count();
            assert_eq!(drafts, 0);
        }
        assert!(world.records()[0].undone.is_some());
        outcomes.insert(was_under_way);
    }
    assert!(outcomes.contains(&true), "no kill met an undo that was under way");
}

/// What a process leaves that is killed when it begins to undo the first turn.
fn killed_undo(world: &World) {
    let record = &world.records()[0];
    let steps = record.changes.iter().map(|change| crate::outcome::Step {
        path: change.path.clone(),
        from: change.after.clone(),
        to: change.before.clone(),
    });
    let journal = serde_json::json!({
        "session": SESSION, "workspace": record.workspace, "turns": [1], "steps": steps.collect::<Vec<_>>(),
    });
    let folder = world.root.path().join("home/checkpoints/undo");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(format!("{SESSION}.json")), journal.to_string()).unwrap();
}

#[test]
fn a_file_that_changed_after_a_kill_is_left_and_named() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    world.program(|| ["a", "b"].iter().for_each(|path| world.write(path, "2")));
    killed_undo(&world);
    world.write("b", "mine");
    let recovered: Vec<Recovered> = recover(&world.store, &LIMITS).into_iter().map(Result::unwrap).collect();
    assert_eq!((recovered[0].restored.len(), recovered[0].left.len()), (1, 1));
    assert_eq!((world.read("a"), world.read("b")), ("1".into(), "mine".into()));
    assert_eq!(recover(&world.store, &LIMITS).len(), 0);
}

/// Another session may make room before the next start completes the undo, and by then the records are old.
#[test]
fn an_undo_that_was_killed_keeps_its_contents_until_it_is_completed() {
    let world = World::new();
    world.write("a", "1");
    world.program(|| world.write("a", "2"));
    killed_undo(&world);
    let late = std::time::SystemTime::now() + LIMITS.max_age + Duration::from_secs(60);
    assert!(crate::room::make(&world.store, &LIMITS, late).unwrap());
    assert_eq!(world.records().len(), 0);
    let recovered: Vec<Recovered> = recover(&world.store, &LIMITS).into_iter().map(Result::unwrap).collect();
    assert_eq!((recovered.len(), recovered[0].restored.len(), world.read("a")), (1, 1, "1".to_owned()));
    // It is completed once. When it could not be recorded, each start carried it out and failed.
    assert_eq!(recover(&world.store, &LIMITS).len(), 0);
}

#[test]
fn an_undo_that_was_killed_is_completed_after_its_session_was_deleted() {
    let world = World::new();
    world.write("a", "1");
    world.program(|| world.write("a", "2"));
    killed_undo(&world);
    forget_sessions(&world.store, &LIMITS, |id| id == SESSION).unwrap();
    let recovered: Vec<Recovered> = recover(&world.store, &LIMITS).into_iter().map(Result::unwrap).collect();
    assert_eq!((recovered.len(), world.read("a")), (1, "1".to_owned()));
    assert_eq!(recover(&world.store, &LIMITS).len(), 0);
}

#[test]
fn only_one_process_undoes_at_a_time() {
    let world = World::new();
    world.write("a", "1");
    world.program(|| world.write("a", "2"));
    let folder = world.root.path().join("home/checkpoints/undo");
    fs::create_dir(&folder).unwrap();
    let lock = fs::File::create(folder.join(format!("{SESSION}.lock"))).unwrap();
    lock.lock().unwrap();
    assert!(matches!(world.undo(Turns::Last(1), OnConflict::Refuse), Err(UndoError::Busy)));
    assert_eq!(world.read("a"), "2");
    drop(lock);
    world.undone();
}
