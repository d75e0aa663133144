//! What is not saved, and why.

use super::*;

#[test]
fn the_store_is_for_its_owner_alone_and_has_each_content_once() {
    let world = World::new();
    for path in ["a", "b", "c"] {
        world.write(path, "the same");
    }
    world.program(|| world.write("a", "another"));
    let (mut files, mut contents) = (0, 0);
    let mut open = vec![world.root.path().join("home/checkpoints")];
    while let Some(folder) = open.pop() {
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
                continue;
            }
            assert_eq!(fs::metadata(&entry).unwrap().permissions().mode() & 0o777, 0o600, "{}", entry.display());
            files += 1;
            contents += usize::from(entry.to_string_lossy().contains("/blobs/"));
        }
    }
    assert_eq!(contents, 2);
    assert!(files > 3, "{files}");
}

#[test]
fn large_files_and_secrets_are_named_and_never_copied() {
    let world = World::with(Limits { max_file: 100, ..LIMITS });
    world.write("big", vec![b'x'; 200]);
    world.write(".env", "KEY=hidden");
    world.write("a", "1");
    world.program(|| {
        world.write("big", vec![b'y'; 200]);
        world.write(".env", "KEY=changed");
        world.write("new-big", vec![b'z'; 200]);
        world.write("a", "2");
    });
    let undo = world.undo(Turns::Last(1), OnConflict::Refuse).unwrap();
    let unsaved: Vec<String> = undo.unsaved.iter().map(|(path, why)| format!("{path}: {}", why.why())).collect();
    assert_eq!(
        unsaved,
        [
            ".env: files with this name hold secrets",
            "big: it is larger than checkpoints.max_file_size",
            // An undo that removed it could not bring it back.
            "new-big: it is larger than checkpoints.max_file_size",
        ]
    );
    assert_eq!(world.read("a"), "1");
    assert_eq!(world.read(".env"), "KEY=changed");
    for entry in walk(&world.root.path().join("home")) {
        assert!(!fs::read(&entry).unwrap().windows(6).any(|part| part == b"hidden"), "{}", entry.display());
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_workspace_with_too_many_files_is_not_saved_and_says_so_once() {
    let world = World::with(Limits { max_files: 10, ..LIMITS });
    for number in 0..20 {
        world.write(&number.to_string(), "x");
    }
    world.program(|| world.write("1", "2"));
    world.program(|| {});
    let told = world.told.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            "/undo restores only what file tools change, not what commands change: the folder has more than 10 files that \
          git does not ignore"
        ]
    );
    // A file tool needs no look at the workspace.
    world.tool("2", "3");
    let undo = world.undo(Turns::Last(1), OnConflict::Refuse).unwrap();
    assert_eq!((undo.restored.len(), undo.unrecorded.len()), (1, 1));
    assert_eq!((world.read("1"), world.read("2")), ("2".into(), "x".into()));
}

#[test]
fn a_home_folder_and_the_root_are_not_looked_through() {
    let user = tempfile::tempdir().unwrap();
    let user = user.path().canonicalize().unwrap();
    for (workspace, what) in [
        (user.clone(), "your home folder"),
        (user.parent().unwrap().to_owned(), "a folder that contains your home folder"),
        (PathBuf::from("/"), "the root of the file system"),
    ] {
        let why = crate::scan::check_width(&workspace, Some(&user)).unwrap_err().to_string();
        assert!(why.contains(what), "{why}");
    }
    assert_eq!(crate::scan::check_width(&user.join("project"), Some(&user)), Ok(()));
}

#[test]
fn old_records_and_contents_make_room_and_a_session_notices() {
    let world = World::new();
    world.write("a", "1".repeat(1000));
    world.tool("a", &"2".repeat(1000));
    world.recorder.turn_begins(2, "");
    world.program(|| world.write("b", "3"));
    let now = std::time::SystemTime::now();
    let blobs = || walk(&world.root.path().join("home/checkpoints/blobs")).len();
    assert_eq!(blobs(), 3);
    assert!(crate::room::make(&world.store, &LIMITS, now).unwrap());
    assert_eq!((blobs(), world.records().len()), (3, 2));
    // The index and the newest record name the newer contents.
    let small = Limits { max_bytes: 1_500, ..LIMITS };
    assert!(crate::room::make(&world.store, &small, now).unwrap());
    assert_eq!((blobs(), world.records().len()), (2, 1));
    assert!(crate::room::make(&world.store, &LIMITS, now + LIMITS.max_age * 2).unwrap());
    assert_eq!((blobs(), world.records().len()), (0, 0));
    // The session saves again what it needs.
    world.recorder.turn_begins(3, "");
    world.program(|| world.write("a", "4"));
    assert_eq!(world.undone(), ["a"]);
    assert_eq!(world.read("a"), "2".repeat(1000));
}

#[test]
fn nothing_is_removed_while_a_program_runs() {
    let world = World::new();
    world.write("a", "1");
    let window = world.recorder.program_begins("sh", false);
    let late = std::time::SystemTime::now() + LIMITS.max_age * 2;
    assert!(!crate::room::make(&world.store, &LIMITS, late).unwrap());
    world.write("a", "2");
    window.end();
    world.undone();
    assert_eq!(world.read("a"), "1");
}

#[test]
fn a_deleted_session_leaves_no_content() {
    let world = World::new();
    world.tool("a", "1");
    forget_sessions(&world.store, &LIMITS, |id| id != SESSION).unwrap();
    assert_eq!(world.records().len(), 1);
    forget_sessions(&world.store, &LIMITS, |id| id == SESSION).unwrap();
    assert_eq!(world.records().len(), 0);
    assert_eq!(walk(&world.root.path().join("home/checkpoints/blobs")), Vec::<PathBuf>::new());
}
