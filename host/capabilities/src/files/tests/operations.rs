//! What reading, writing, renaming, removing and listing promise.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use super::super::*;
use super::Ground;
use crate::FaultKind;

#[test]
fn a_read_answers_a_slice_the_whole_size_and_the_version_that_stat_and_entries_answer() {
    let ground = Ground::new();
    let written = ground.write("src/text", "0123456789", None).unwrap();
    for (offset, limit, expected) in
        [(0, 4, "0123"), (4, 100, "456789"), (9, 1, "9"), (10, 5, ""), (u64::MAX, u32::MAX, ""), (3, 0, "")]
    {
        let slice = ground.roots.read("workspace", "src/text", offset, limit).unwrap();
        assert_eq!(slice, Slice { content: expected.into(), total: 10, version: written.clone() });
    }
    assert_eq!(ground.roots.stat("workspace", "src/text").unwrap().version, written);
    let entries = ground.roots.entries("workspace", "src").unwrap();
    assert_eq!(entries[1].version, written);
    assert_eq!(written.len(), 32);

    // Larger than what is hashed: still sliced, still versioned, still answered in pieces.
    let large = fs::File::create(ground.at("root/large")).unwrap();
    large.set_len(MAX_HASHED + 10).unwrap();
    let slice = ground.roots.read("workspace", "large", 0, u32::MAX).unwrap();
    assert_eq!((slice.content.len(), slice.total), (MAX_READ as usize, MAX_HASHED + 10));
    let slice = ground.roots.read("workspace", "large", u64::MAX, 100).unwrap();
    assert!(slice.content.is_empty());
    let slice = ground.roots.read("workspace", "large", MAX_HASHED + 5, 100).unwrap();
    assert_eq!(slice.content, [0; 5]);
    let body = vec![b'x'; MAX_HASHED as usize + 1];
    let next = ground.roots.write("workspace", "large", &body, Some(&slice.version)).unwrap();
    assert_ne!(next, slice.version);
    assert_eq!(ground.roots.stat("workspace", "large").unwrap().version, next);
    let conflict = ground.roots.write("workspace", "large", b"x", Some(&slice.version)).unwrap_err();
    assert_eq!(conflict.kind(), FaultKind::Conflict);
}

#[test]
fn a_write_makes_directories_keeps_permissions_and_leaves_nothing_else_behind() {
    let ground = Ground::new();
    ground.write("a/b/run.sh", "one", None).unwrap();
    fs::set_permissions(ground.at("root/a/b/run.sh"), fs::Permissions::from_mode(0o4750)).unwrap();
    ground.write("a/b/run.sh", "two", None).unwrap();
    assert_eq!(ground.read("a/b/run.sh").unwrap(), "two");
    let mode = ground.at("root/a/b/run.sh").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);

    fs::set_permissions(ground.at("root/a/b/run.sh"), fs::Permissions::from_mode(0o440)).unwrap();
    assert_eq!(ground.write("a/b/run.sh", "three", None).unwrap_err().code(), "protected");
    assert_eq!(ground.roots.remove("workspace", "a/b/run.sh").unwrap_err().code(), "protected");
    assert_eq!(ground.names("a/b"), ["a/b/run.sh"]);
    let too_large = vec![0; MAX_WRITE + 1];
    assert_eq!(ground.roots.write("workspace", "x", &too_large, None).unwrap_err().kind(), FaultKind::Exhausted);
}

#[test]
fn a_write_at_another_version_is_a_conflict_that_changes_nothing() {
    let ground = Ground::new();
    let first = ground.write("notes", "one", None).unwrap();
    let second = ground.write("notes", "two", Some(&first)).unwrap();
    match ground.write("notes", "three", Some(&first)).unwrap_err() {
        FilesError::Conflict { current, .. } => assert_eq!(current, Some(second)),
        error => panic!("{error}"),
    }
    assert_eq!(ground.read("notes").unwrap(), "two");
    for path in ["gone", "no/folder/gone"] {
        assert_eq!(ground.write(path, "x", Some(&first)).unwrap_err().kind(), FaultKind::Conflict);
        assert_eq!(ground.write(path, "x", Some("")).unwrap_err().kind(), FaultKind::Conflict);
    }
    assert!(!ground.at("root/no").exists());
}

#[test]
fn of_writers_that_compare_first_none_loses_what_another_wrote() {
    let ground = Ground::new();
    ground.write("count", "0", None).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    loop {
                        let slice = ground.roots.read("workspace", "count", 0, 100).unwrap();
                        let count: u32 = String::from_utf8(slice.content).unwrap().parse().unwrap();
                        match ground.write("count", &(count + 1).to_string(), Some(&slice.version)) {
                            Ok(_) => break,
                            Err(error) => {
                                assert!(matches!(error.kind(), FaultKind::Conflict | FaultKind::Unavailable), "{error}")
                            }
                        }
                    }
                }
            });
        }
    });
    assert_eq!(ground.read("count").unwrap(), "80");
}

#[test]
fn renaming_replaces_nothing_and_removing_takes_only_what_is_empty() {
    let ground = Ground::new();
    ground.write("a/file", "a", None).unwrap();
    ground.write("b/file", "b", None).unwrap();
    let rename = |from: &str, to: &str| ground.roots.rename("workspace", from, to).map_err(|error| error.code());
    let remove = |path: &str| ground.roots.remove("workspace", path).map_err(|error| error.code());
    assert_eq!(rename("a/file", "b/file"), Err("exists"));
    assert_eq!(rename("a", "b"), Err("exists"));
    assert_eq!(rename("a/nothing", "c"), Err("not-found"));
    assert_eq!(rename("a", "a/deeper"), Err("io"));
    assert_eq!(rename("a/file", "new/folder/file"), Ok(()));
    assert_eq!(ground.read("new/folder/file").unwrap(), "a");
    assert_eq!(remove("b"), Err("not-empty"));
    assert_eq!(remove("b/file"), Ok(()));
    assert_eq!(remove("b"), Ok(()));
    assert_eq!(remove("b"), Err("not-found"));
}

#[test]
fn a_root_for_reading_is_read_and_an_unknown_one_named() {
    let ground = Ground::new();
    let roots = &ground.roots;
    assert_eq!(roots.read("frozen", "src/main.rs", 0, 100).unwrap().total, 13);
    for result in [
        roots.write("frozen", "src/main.rs", b"x", None).map(drop),
        roots.rename("frozen", "src/main.rs", "x"),
        roots.remove("frozen", "src/main.rs"),
    ] {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.code()), (FaultKind::Denied, "read-only"));
    }
    let error = roots.stat("skills", "").unwrap_err();
    assert!(error.to_string().contains("`skills`") && error.to_string().contains("`workspace`, `frozen`"));
    let told = roots.roots();
    assert_eq!((told[1].name.as_str(), told[1].writable), ("frozen", false));
    assert_eq!(told[0].path, ground.at("root").display().to_string());
    assert!(Root::open("x", ground.at("nowhere"), false, []).is_err());
    assert!(Root::open("x", ground.at("outside/secret"), false, []).is_err());
}

#[test]
fn a_listing_that_is_too_long_says_to_search() {
    let ground = Ground::new();
    fs::create_dir(ground.at("root/many")).unwrap();
    for number in 0..MAX_ENTRIES {
        fs::File::create(ground.at(&format!("root/many/{number}"))).unwrap();
    }
    assert_eq!(ground.names("many").len(), MAX_ENTRIES);
    fs::File::create(ground.at("root/many/last")).unwrap();
    let error = ground.roots.entries("workspace", "many").unwrap_err();
    assert_eq!(error.kind(), FaultKind::Exhausted);
    assert!(error.to_string().contains("search"));
}
