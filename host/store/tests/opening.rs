//! What opening a home folder does to what is there.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hermes_conversation::{Draft, Model};
use hermes_store::{APPLICATION_ID, Frozen, NewSession, SCHEMA_VERSION, Store, StoreError};
use rusqlite::Connection;

/// Every file of a folder by name, with its bytes.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let bytes =
            if entry.file_type().unwrap().is_dir() { b"folder".to_vec() } else { fs::read(entry.path()).unwrap() };
        contents.insert(name, bytes);
    }
    contents
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn new_session() -> NewSession {
    NewSession {
        source: "cli".into(),
        workspace: "/home/ada".into(),
        engine: "compressor".into(),
        model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
        title: None,
        frozen: None,
        started_at: 1_795_300_000_000,
        parent: None,
    }
}

/// Both ways of opening refuse it and leave it as it is; answers why.
fn refused(home: &Path) -> StoreError {
    let before = contents(home);
    Store::open_read_only(home).unwrap_err();
    let error = Store::open(home).unwrap_err();
    assert_eq!(contents(home), before, "{error}");
    error
}

#[test]
fn a_new_home_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("new/home with ?%#");
    let store = Store::open(&home).unwrap();
    let session = store.create_session(new_session()).unwrap();
    let _lease = store.lease(&session.id).unwrap();
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("locks")), 0o700);
    for file in ["state.db", "state.db-wal", "state.db-shm", &format!("locks/{}.lock", session.id)] {
        assert_eq!(mode(&home.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_home_that_is_there_keeps_its_mode() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    drop(Store::open(home.path()).unwrap());
    assert_eq!(mode(home.path()), 0o755);
}

#[test]
fn opening_again_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let before = contents(home.path());
    drop(Store::open(home.path()).unwrap());
    assert_eq!(contents(home.path()), before);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["locks", "state.db"]);
}

#[test]
fn an_empty_file_becomes_a_store() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("state.db"), "").unwrap();
    assert!(Store::open_read_only(home.path()).unwrap().is_none());
    let store = Store::open(home.path()).unwrap();
    assert!(store.sessions().unwrap().is_empty());
}

#[test]
fn what_a_killed_creator_left_is_no_hindrance() {
    let home = tempfile::tempdir().unwrap();
    for file in ["state.db.new", "state.db.new-journal", "state.db.new-wal"] {
        fs::write(home.path().join(file), "half of a database").unwrap();
    }
    drop(Store::open(home.path()).unwrap());
    assert_eq!(contents(home.path()).into_keys().collect::<Vec<_>>(), ["locks", "state.db"]);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    for (mode, id) in [("wal", 0), ("wal", 0x0123_4567), ("delete", 0)] {
        let home = tempfile::tempdir().unwrap();
        let other = Connection::open(home.path().join("state.db")).unwrap();
        other.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(())).unwrap();
        other.pragma_update(None, "application_id", id).unwrap();
        other.execute_batch("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('theirs');").unwrap();
        other.close().unwrap();
        let error = refused(home.path());
        assert!(matches!(error, StoreError::Foreign { found, .. } if found == id));
        assert!(error.to_string().contains("HERMES_HOME"), "{error}");
    }
}

#[test]
fn a_database_that_another_program_has_open_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let other = Connection::open(home.path().join("state.db")).unwrap();
    other.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    other.execute_batch("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('theirs');").unwrap();
    assert!(matches!(refused(home.path()), StoreError::Foreign { found: 0, .. }));
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let newer = Connection::open(home.path().join("state.db")).unwrap();
    newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    newer.close().unwrap();
    let error = refused(home.path());
    assert!(
        matches!(error, StoreError::NewerSchema { found, known, .. } if (found, known) == (SCHEMA_VERSION + 1, SCHEMA_VERSION))
    );
    assert!(error.to_string().contains("HERMES_HOME"), "{error}");
}

#[test]
fn a_newer_version_that_only_the_write_ahead_log_knows_of_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let crashed = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let newer = Connection::open(home.path().join("state.db")).unwrap();
    newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    // What a crash leaves: the log is not yet in the database.
    for file in ["state.db", "state.db-wal"] {
        fs::copy(home.path().join(file), crashed.path().join(file)).unwrap();
    }
    let before = contents(crashed.path());
    assert!(!before["state.db-wal"].is_empty());
    let error = Store::open(crashed.path()).unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { .. }), "{error}");
    for (name, bytes) in &before {
        assert!(fs::read(crashed.path().join(name)).unwrap() == *bytes, "{name} has changed");
    }
}

#[test]
fn what_is_no_database_is_left_alone() {
    let png = b"\x89PNG\r\n\x1a\n".repeat(100);
    let half = b"SQLite format 3\0".to_vec();
    for bytes in [b"x".to_vec(), b"notes\n".repeat(1000), png, half, vec![0; 8192]] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("state.db"), &bytes).unwrap();
        let error = refused(home.path());
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
        assert!(error.to_string().contains("HERMES_HOME"), "{error}");
    }
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("state.db")).unwrap();
    assert!(matches!(refused(home.path()), StoreError::NotADatabase { .. }));
}

#[test]
fn a_log_without_its_database_is_left_alone() {
    for suffix in ["-wal", "-journal"] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(format!("state.db{suffix}")), "perhaps messages").unwrap();
        assert!(matches!(refused(home.path()), StoreError::Orphan { .. }));
    }
}

#[test]
fn a_damaged_store_says_so() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    store.append(&session, &[Draft::user("x".repeat(100_000), 1)]).unwrap();
    drop(store);
    let path = home.path().join("state.db");
    let whole = fs::read(&path).unwrap();

    let mut tables = whole.clone();
    tables[4096..].fill(0x5a);
    fs::write(&path, &tables).unwrap();
    let error = Store::open(home.path()).and_then(|store| store.conversation(&session)).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");

    let mut schema = whole;
    schema[100..4096].fill(0x5a);
    fs::write(&path, &schema).unwrap();
    let error = Store::open(home.path()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), schema);
}

#[test]
fn a_home_that_is_a_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::write(&home, "").unwrap();
    let error = Store::open(&home).unwrap_err();
    assert!(matches!(error, StoreError::Home { .. }), "{error}");
    assert!(error.to_string().contains("HERMES_HOME"), "{error}");
}

#[test]
fn reading_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    assert!(Store::open_read_only(&home).unwrap().is_none());
    assert!(!home.exists());

    let store = Store::open(&home).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    drop(store);
    let before = contents(&home);
    let store = Store::open_read_only(&home).unwrap().unwrap();
    assert_eq!(store.sessions().unwrap()[0].id, session);
    let error = store.append(&session, &[Draft::user("no", 1)]).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    drop(store);
    assert_eq!(contents(&home), before);
}

#[test]
fn a_reader_sees_what_a_writer_has_not_put_into_the_database_yet() {
    let home = tempfile::tempdir().unwrap();
    let writer = Store::open(home.path()).unwrap();
    let session = writer.create_session(new_session()).unwrap().id;
    let reader = Store::open_read_only(home.path()).unwrap().unwrap();
    let written = writer.append(&session, &[Draft::user("new", 1)]).unwrap();
    assert_eq!(reader.conversation(&session).unwrap(), written);
}

#[test]
fn a_home_that_cannot_be_written_can_be_listed() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    drop(store);
    let path = home.path().join("state.db");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let superuser = fs::write(home.path().join("probe"), "").is_ok();
    if !superuser {
        let error = Store::open(home.path()).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        let store = Store::open_read_only(home.path()).unwrap().unwrap();
        assert_eq!(store.sessions().unwrap()[0].id, session);
    }
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn the_log_refuses_to_be_rewritten() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let written = store.append(&session, &[Draft::user("a", 1), Draft::user("b", 2)]).unwrap();
    store.freeze(&session, &Frozen { system_prompt: "prompt".into(), ..Frozen::default() }, 3).unwrap();

    let other = Connection::open(store.path()).unwrap();
    for sql in [
        "UPDATE messages SET content = 'c'",
        "UPDATE messages SET created_at = 3 WHERE id = 1",
        "DELETE FROM messages",
        "DELETE FROM messages WHERE id = 2",
        "INSERT OR REPLACE INTO messages (id, session_id, role, content, origin, created_at) \
         SELECT id, session_id, role, 'c', origin, created_at FROM messages",
        "UPDATE OR REPLACE messages SET id = 2 WHERE id = 1",
        "UPDATE prompts SET system_prompt = 'another'",
        "DELETE FROM prompts",
    ] {
        other.execute(sql, []).expect_err(sql);
    }
    assert_eq!(store.conversation(&session).unwrap(), written);
    assert_eq!(store.session(&session).unwrap().frozen.unwrap().system_prompt, "prompt");
}

#[test]
fn a_session_leaves_as_a_whole_unless_others_go_on_from_it() {
    use hermes_conversation::{Item, MessageRange, Summary, View};
    use hermes_store::{Parent, ParentKind};

    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let root = store.create_session(new_session()).unwrap().id;
    let first = store.append(&root, &[Draft::user("a", 1), Draft::user("b", 2)]).unwrap();
    let covers = vec![MessageRange::one(first[0].id)];
    let summary = Summary { key: "s".into(), content: "a".into(), covers };
    let view = View { items: vec![Item::Summary(summary)], through: Some(first[1].id) };
    store.put_view(&root, &view, "", "e").unwrap();
    let parent = Some(Parent { id: root.clone(), kind: ParentKind::Branch, through: None });
    let branch = store.create_session(NewSession { parent, ..new_session() }).unwrap().id;
    store.put_view(&branch, &view, "", "e").unwrap();

    let other = Connection::open(store.path()).unwrap();
    other.pragma_update(None, "foreign_keys", true).unwrap();
    let delete = |id: &str| other.execute("DELETE FROM sessions WHERE id = ?1", [id]);
    delete(root.as_str()).unwrap_err();
    assert_eq!(store.conversation(&branch).unwrap(), first);
    delete(branch.as_str()).unwrap();
    delete(root.as_str()).unwrap();
    for table in ["sessions", "messages", "views", "view_items", "summaries"] {
        let rows: i64 = other.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    let session = store.create_session(new_session()).unwrap().id;
    let next = store.append(&session, &[Draft::user("c", 3)]).unwrap();
    assert!(next[0].id > first[1].id, "numbers are never used again");
}

#[test]
fn the_store_is_told_by_its_application_id() {
    let home = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let connection = Connection::open(home.path().join("state.db")).unwrap();
    let id: u32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).unwrap();
    assert_eq!((id, id.to_be_bytes()), (APPLICATION_ID, *b"Hrms"));
}

/// A checkpoint copies the log's pages in order, the first one with the new size in front. Ended in between, the
/// file is shorter than it says; the log beside it still has everything.
#[test]
fn a_process_that_was_killed_during_a_checkpoint_leaves_a_store_that_opens() {
    const PAGE: usize = 4096;
    let (home, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    store.append(&session, &[Draft::user("x".repeat(50 * PAGE), 1)]).unwrap();
    let name = |suffix: &str| format!("state.db{suffix}");
    for suffix in ["", "-wal"] {
        fs::copy(home.path().join(name(suffix)), killed.path().join(name(suffix))).unwrap();
    }
    // Closing the last connection checkpoints: its first page is what the killed process got to write.
    drop(store);
    let done = fs::read(home.path().join("state.db")).unwrap();
    let mut half = fs::read(killed.path().join("state.db")).unwrap();
    assert!(half.len() < done.len());
    half[..PAGE].copy_from_slice(&done[..PAGE]);
    fs::write(killed.path().join("state.db"), half).unwrap();

    for reopened in [Store::open_read_only(killed.path()).unwrap().unwrap(), Store::open(killed.path()).unwrap()] {
        assert_eq!(reopened.conversation(&session).unwrap().len(), 1);
    }
}
