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
    // Root may write everywhere.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    world.write("a", "1");
    world.write("locked/b", "1");
    world.program(|| {
        world.write("a", "2");
        world.write("locked/b", "2");
    });
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    let failed = world.undo(Turns::Last(1), OnConflict::Refuse);
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
        world.program(|| {
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

#[test]
fn a_file_that_changed_after_a_kill_is_left_and_named() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    world.program(|| ["a", "b"].iter().for_each(|path| world.write(path, "2")));
    let record = &world.records()[0];
    let steps = record.changes.iter().map(|change| crate::undo::Step {
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
    world.write("b", "mine");
    let recovered: Vec<Recovered> = recover(&world.store, &LIMITS).into_iter().map(Result::unwrap).collect();
    assert_eq!((recovered[0].restored.len(), recovered[0].left.len()), (1, 1));
    assert_eq!((world.read("a"), world.read("b")), ("1".into(), "mine".into()));
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
