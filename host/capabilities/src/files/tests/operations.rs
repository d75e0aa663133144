//! The regular behaviour of reading, writing, renaming, removing and listing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use super::super::*;
use super::Fixture;
use crate::FaultKind;

#[test]
fn a_read_returns_a_slice_the_total_size_and_the_version_that_stat_and_entries_return() {
    let fixture = Fixture::new();
    let written = fixture.write("src/text", "0123456789", None).unwrap();
    for (offset, limit, expected) in
        [(0, 4, "0123"), (4, 100, "456789"), (9, 1, "9"), (10, 5, ""), (u64::MAX, u32::MAX, ""), (3, 0, "")]
    {
        let slice = fixture.roots.read("workspace", "src/text", offset, limit).unwrap();
        assert_eq!(slice, Slice { content: expected.into(), total: 10, version: written.clone() });
    }
    assert_eq!(fixture.roots.stat("workspace", "src/text").unwrap().version, written);
    let entries = fixture.roots.entries("workspace", "src").unwrap();
    assert_eq!(entries[1].version, written);
    assert_eq!(written.len(), 32);

    // Larger than the limit for hashing: still has slices and a version.
    let large = fs::File::create(fixture.at("root/large")).unwrap();
    large.set_len(MAX_HASHED + 10).unwrap();
    let slice = fixture.roots.read("workspace", "large", 0, u32::MAX).unwrap();
    assert_eq!((slice.content.len(), slice.total), (MAX_READ as usize, MAX_HASHED + 10));
    let slice = fixture.roots.read("workspace", "large", u64::MAX, 100).unwrap();
    assert!(slice.content.is_empty());
    let slice = fixture.roots.read("workspace", "large", MAX_HASHED + 5, 100).unwrap();
    assert_eq!(slice.content, [0; 5]);
    let body = vec![b'x'; MAX_HASHED as usize + 1];
    let next = fixture.roots.write("workspace", "large", &body, Some(&slice.version), &Agreed::to_all()).unwrap();
    assert_ne!(next, slice.version);
    assert_eq!(fixture.roots.stat("workspace", "large").unwrap().version, next);
    let conflict =
        fixture.roots.write("workspace", "large", b"x", Some(&slice.version), &Agreed::to_all()).unwrap_err();
    assert_eq!(conflict.kind(), FaultKind::Conflict);
}

#[test]
fn a_removal_that_is_taken_back_keeps_the_permissions() {
    let fixture = Fixture::new();
    let bits = |path: &str| fixture.at(path).metadata().unwrap().permissions().mode() & 0o777;
    let removed = |content: &str| {
        fixture.write("run.sh", content, None).unwrap();
        fs::set_permissions(fixture.at("root/run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
        fixture.roots.remove("workspace", "run.sh", &Agreed::to_all()).unwrap();
    };
    removed("one");
    fixture.write("run.sh", "one", None).unwrap();
    assert_eq!(bits("root/run.sh"), 0o750);
    // Another content is another file.
    removed("one");
    fixture.write("run.sh", "two", None).unwrap();
    assert_eq!(bits("root/run.sh") & 0o111, 0);
}

#[test]
fn a_write_creates_directories_keeps_permissions_and_leaves_no_temporary_files() {
    let fixture = Fixture::new();
    fixture.write("a/b/run.sh", "one", None).unwrap();
    fs::set_permissions(fixture.at("root/a/b/run.sh"), fs::Permissions::from_mode(0o4750)).unwrap();
    fixture.write("a/b/run.sh", "two", None).unwrap();
    assert_eq!(fixture.read("a/b/run.sh").unwrap(), "two");
    let mode = fixture.at("root/a/b/run.sh").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);

    fs::set_permissions(fixture.at("root/a/b/run.sh"), fs::Permissions::from_mode(0o440)).unwrap();
    assert_eq!(fixture.write("a/b/run.sh", "three", None).unwrap_err().code(), "protected");
    assert_eq!(fixture.roots.remove("workspace", "a/b/run.sh", &Agreed::to_all()).unwrap_err().code(), "protected");
    assert_eq!(fixture.names("a/b"), ["a/b/run.sh"]);
    let too_large = vec![0; MAX_WRITE + 1];
    assert_eq!(
        fixture.roots.write("workspace", "x", &too_large, None, &Agreed::to_all()).unwrap_err().kind(),
        FaultKind::Exhausted
    );
}

#[test]
fn a_write_at_another_version_is_a_conflict_that_changes_nothing() {
    let fixture = Fixture::new();
    let first = fixture.write("notes", "one", None).unwrap();
    let second = fixture.write("notes", "two", Some(&first)).unwrap();
    match fixture.write("notes", "three", Some(&first)).unwrap_err() {
        FilesError::Conflict { current, .. } => assert_eq!(current, Some(second)),
        error => panic!("{error}"),
    }
    assert_eq!(fixture.read("notes").unwrap(), "two");
    for path in ["gone", "no/folder/gone"] {
        assert_eq!(fixture.write(path, "x", Some(&first)).unwrap_err().kind(), FaultKind::Conflict);
        assert_eq!(fixture.write(path, "x", Some("")).unwrap_err().kind(), FaultKind::Conflict);
    }
    assert!(!fixture.at("root/no").exists());
}

#[test]
fn writers_that_compare_versions_lose_no_update() {
    let fixture = Fixture::new();
    fixture.write("count", "0", None).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    loop {
                        let slice = fixture.roots.read("workspace", "count", 0, 100).unwrap();
                        let count: u32 = String::from_utf8(slice.content).unwrap().parse().unwrap();
                        match fixture.write("count", &(count + 1).to_string(), Some(&slice.version)) {
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
    assert_eq!(fixture.read("count").unwrap(), "80");
}

#[test]
fn a_rename_replaces_nothing_and_only_empty_directories_are_removed() {
    let fixture = Fixture::new();
    fixture.write("a/file", "a", None).unwrap();
    fixture.write("b/file", "b", None).unwrap();
    let rename = |from: &str, to: &str| {
        fixture.roots.rename("workspace", from, to, &Agreed::to_all()).map_err(|error| error.code())
    };
    let remove = |path: &str| fixture.roots.remove("workspace", path, &Agreed::to_all()).map_err(|error| error.code());
    assert_eq!(rename("a/file", "b/file"), Err("exists"));
    assert_eq!(rename("a", "b"), Err("exists"));
    assert_eq!(rename("a/nothing", "c"), Err("not-found"));
    assert_eq!(rename("a", "a/deeper"), Err("io"));
    assert_eq!(rename("a/file", "new/folder/file"), Ok(()));
    assert_eq!(fixture.read("new/folder/file").unwrap(), "a");
    assert_eq!(remove("b"), Err("not-empty"));
    assert_eq!(remove("b/file"), Ok(()));
    assert_eq!(remove("b"), Ok(()));
    assert_eq!(remove("b"), Err("not-found"));
}

#[test]
fn a_read_only_root_cannot_be_changed_and_an_unknown_root_is_named() {
    let fixture = Fixture::new();
    let roots = &fixture.roots;
    assert_eq!(roots.read("frozen", "src/main.rs", 0, 100).unwrap().total, 13);
    for result in [
        roots.write("frozen", "src/main.rs", b"x", None, &Agreed::to_all()).map(drop),
        roots.rename("frozen", "src/main.rs", "x", &Agreed::to_all()),
        roots.remove("frozen", "src/main.rs", &Agreed::to_all()),
    ] {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.code()), (FaultKind::Denied, "read-only"));
    }
    let error = roots.stat("skills", "").unwrap_err();
    assert!(error.to_string().contains("`skills`") && error.to_string().contains("`workspace`, `frozen`"));
    let roots = roots.roots();
    assert_eq!((roots[1].name.as_str(), roots[1].writable), ("frozen", false));
    assert_eq!(roots[0].path, fixture.at("root").display().to_string());
    assert!(Root::open("x", fixture.at("nowhere"), false, []).is_err());
    assert!(Root::open("x", fixture.at("outside/secret"), false, []).is_err());
}

#[test]
fn the_limits_of_files_are_those_of_the_contract() {
    assert_eq!((MAX_ENTRIES, MAX_READ), (10_000, 8 << 20));
}

#[test]
fn a_listing_that_is_too_long_suggests_a_search() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.at("root/many")).unwrap();
    for number in 0..MAX_ENTRIES {
        fs::File::create(fixture.at(&format!("root/many/{number}"))).unwrap();
    }
    assert_eq!(fixture.names("many").len(), MAX_ENTRIES);
    fs::File::create(fixture.at("root/many/last")).unwrap();
    let error = fixture.roots.entries("workspace", "many").unwrap_err();
    assert_eq!(error.kind(), FaultKind::Exhausted);
    assert!(error.to_string().contains("search"));
}
