//! Opening a home folder in all its states.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::new_session;
use hermes_conversation::{Draft, Message, SessionId};
use hermes_diagnostic::Diagnose as _;
use hermes_store::{APPLICATION_ID, Depth, Frozen, NewSession, SCHEMA_VERSION, SearchQuery, Store, StoreError};
use proptest::prelude::*;
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

/// Checks that both ways of opening fail and change nothing. Returns the error.
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
fn an_existing_home_keeps_its_mode() {
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
fn leftovers_of_a_killed_creation_are_ignored() {
    let home = tempfile::tempdir().unwrap();
    for file in ["state.db.new", "state.db.new-journal", "state.db.new-wal"] {
        fs::write(home.path().join(file), "half of a database").unwrap();
    }
    drop(Store::open(home.path()).unwrap());
    assert_eq!(contents(home.path()).into_keys().collect::<Vec<_>>(), ["locks", "state.db"]);
}

#[test]
fn a_database_of_another_program_is_not_changed() {
    for (mode, id) in [("wal", 0), ("wal", 0x0123_4567), ("delete", 0)] {
        let home = tempfile::tempdir().unwrap();
        let other = Connection::open(home.path().join("state.db")).unwrap();
        other.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(())).unwrap();
        other.pragma_update(None, "application_id", id).unwrap();
        other.execute_batch("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('theirs');").unwrap();
        other.close().unwrap();
        let error = refused(home.path());
        assert!(matches!(error, StoreError::Foreign { found, .. } if found == id));
        assert!(error.diagnose().fix.to_string().contains("HERMES_HOME"), "{error}");
    }
}

#[test]
fn an_open_database_of_another_program_is_not_changed() {
    let home = tempfile::tempdir().unwrap();
    let other = Connection::open(home.path().join("state.db")).unwrap();
    other.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    other.execute_batch("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('theirs');").unwrap();
    assert!(matches!(refused(home.path()), StoreError::Foreign { found: 0, .. }));
}

#[test]
fn a_store_of_a_newer_version_is_not_changed() {
    let home = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let newer = Connection::open(home.path().join("state.db")).unwrap();
    newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    newer.close().unwrap();
    let error = refused(home.path());
    assert!(
        matches!(error, StoreError::NewerSchema { found, known, .. } if (found, known) == (SCHEMA_VERSION + 1, SCHEMA_VERSION))
    );
    assert!(error.diagnose().fix.to_string().contains("HERMES_HOME"), "{error}");
}

#[test]
fn a_newer_version_in_the_write_ahead_log_is_detected() {
    let home = tempfile::tempdir().unwrap();
    let crashed = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let newer = Connection::open(home.path().join("state.db")).unwrap();
    newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    // The state after a crash: the log is not yet in the database.
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
fn a_file_that_is_not_a_database_is_not_changed() {
    let png = b"\x89PNG\r\n\x1a\n".repeat(100);
    let half = b"SQLite format 3\0".to_vec();
    for bytes in [b"x".to_vec(), b"notes\n".repeat(1000), png, half, vec![0; 8192]] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("state.db"), &bytes).unwrap();
        let error = refused(home.path());
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
        assert!(error.diagnose().fix.to_string().contains("HERMES_HOME"), "{error}");
    }
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("state.db")).unwrap();
    assert!(matches!(refused(home.path()), StoreError::NotADatabase { .. }));
}

#[test]
fn a_log_without_its_database_is_not_changed() {
    for suffix in ["-wal", "-journal"] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(format!("state.db{suffix}")), "perhaps messages").unwrap();
        assert!(matches!(refused(home.path()), StoreError::Orphan { .. }));
    }
}

#[test]
fn a_damaged_store_is_an_error() {
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
    assert!(error.diagnose().fix.to_string().contains("HERMES_HOME"), "{error}");
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
fn a_reader_sees_commits_in_the_write_ahead_log() {
    let home = tempfile::tempdir().unwrap();
    let writer = Store::open(home.path()).unwrap();
    let session = writer.create_session(new_session()).unwrap().id;
    let reader = Store::open_read_only(home.path()).unwrap().unwrap();
    let written = writer.append(&session, &[Draft::user("new", 1)]).unwrap();
    assert_eq!(reader.conversation(&session).unwrap(), written);
}

#[test]
fn a_read_only_home_can_be_listed_and_searched() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    store.append(&session, &[Draft::user("needle C++", 1)]).unwrap();
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
        for text in ["needle", "C++"] {
            assert_eq!(store.search(&SearchQuery::new(text)).unwrap().len(), 1, "{text}");
        }
    }
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn the_schema_refuses_changes_of_the_log() {
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
fn a_session_is_deleted_completely_unless_others_continue_it() {
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
fn a_store_is_recognised_by_its_application_id() {
    let home = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let connection = Connection::open(home.path().join("state.db")).unwrap();
    let id: u32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).unwrap();
    assert_eq!((id, id.to_be_bytes()), (APPLICATION_ID, *b"Hrms"));
}

/// A checkpoint copies the log's pages in order, and the first page contains the new size. After an interruption the file
/// is shorter than its header says, but the log still has all pages.
#[test]
fn a_store_opens_after_a_kill_during_a_checkpoint() {
    const PAGE: usize = 4096;
    let (home, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    store.append(&session, &[Draft::user("x".repeat(50 * PAGE), 1)]).unwrap();
    let name = |suffix: &str| format!("state.db{suffix}");
    for suffix in ["", "-wal"] {
        fs::copy(home.path().join(name(suffix)), killed.path().join(name(suffix))).unwrap();
    }
    // Closing the last connection runs a checkpoint. The killed process has written its first page.
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

/// A store with a conversation, and its files at a moment when a process might be killed.
fn killed_with_a_log() -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>, SessionId, Vec<Message>) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let mut written = Vec::new();
    for at in 0..30 {
        written.extend(store.append(&session, &[Draft::user("x".repeat(3_000), at), Draft::user("y", at)]).unwrap());
    }
    let files = contents(home.path());
    assert!(files["state.db-wal"].len() > files["state.db"].len());
    (home, files, session, written)
}

#[test]
fn an_unreadable_log_in_a_read_only_home_is_an_error() {
    let (_home, files, ..) = killed_with_a_log();
    let home = tempfile::tempdir().unwrap();
    for name in ["state.db", "state.db-wal"] {
        fs::write(home.path().join(name), &files[name]).unwrap();
        fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(0o400)).unwrap();
    }
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let superuser = fs::write(home.path().join("probe"), "").is_ok();
    if !superuser {
        let before = contents(home.path());
        for error in [Store::open(home.path()).unwrap_err(), Store::open_read_only(home.path()).unwrap_err()] {
            assert!(matches!(error, StoreError::ReadOnlyLog { .. }), "{error}");
        }
        assert_eq!(contents(home.path()), before);
    }
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

/// Copies files into a new home and checks that both ways of opening find the same conversation.
fn reopened(files: &BTreeMap<String, Vec<u8>>, session: &SessionId) -> Vec<Message> {
    let home = tempfile::tempdir().unwrap();
    let put = |home: &Path| {
        for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("state.db")) {
            fs::write(home.join(name), bytes).unwrap();
        }
    };
    put(home.path());
    let read = Store::open_read_only(home.path()).unwrap().unwrap().conversation(session).unwrap();
    put(home.path());
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.conversation(session).unwrap().len(), read.len());
    assert_eq!(store.check(Depth::Full).unwrap().problems, Vec::<String>::new());
    store.append(session, &[Draft::user("goes on", 1)]).unwrap();
    read
}

#[test]
fn a_log_with_a_missing_or_wrong_index_is_read() {
    let (_home, files, session, written) = killed_with_a_log();
    let mut without = files.clone();
    without.remove("state.db-shm");
    assert_eq!(reopened(&without, &session), written);
    for garbage in [Vec::new(), vec![0x5a; 100], vec![0x5a; 32_768], vec![0; 32_768]] {
        let mut wrong = files.clone();
        wrong.insert("state.db-shm".into(), garbage);
        assert_eq!(reopened(&wrong, &session), written);
    }
}

#[test]
fn a_truncated_log_contains_only_complete_transactions() {
    let (_home, files, session, written) = killed_with_a_log();
    let log = &files["state.db-wal"];
    let mut seen = std::collections::BTreeSet::new();
    for end in (0..log.len()).step_by(log.len() / 40).chain([1, 31, 32, 33, log.len() - 1]) {
        let mut cut = files.clone();
        cut.insert("state.db-wal".into(), log[..end].to_vec());
        cut.remove("state.db-shm");
        let home = tempfile::tempdir().unwrap();
        for (name, bytes) in cut.iter().filter(|(name, _)| name.starts_with("state.db")) {
            fs::write(home.path().join(name), bytes).unwrap();
        }
        let store = Store::open(home.path()).unwrap();
        // Before the session was stored there is none.
        let Ok(conversation) = store.conversation(&session) else { continue };
        assert_eq!(conversation, written[..conversation.len()]);
        assert_eq!(conversation.len() % 2, 0, "two messages were stored in one transaction");
        seen.insert(conversation.len());
    }
    assert!(seen.len() > 10, "{seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// An interrupted checkpoint may have written any of the pages, and the file may have grown; the log is complete.
    #[test]
    fn a_store_opens_after_any_partial_checkpoint(written in prop::collection::vec(any::<bool>(), 200), grown in any::<bool>()) {
        const PAGE: usize = 4096;
        let (home, files, session, messages) = killed_with_a_log();
        // The database after a complete checkpoint, when the store was closed.
        let done = fs::read(home.path().join("state.db")).unwrap();
        let mut half = files["state.db"].clone();
        let most = written.iter().rposition(|written| *written).map_or(0, |last| (last + 1) * PAGE).min(done.len());
        let length = if grown { done.len() } else { half.len().max(most) };
        half.resize(length, 0);
        for (at, page) in done.chunks(PAGE).enumerate().filter(|(at, _)| written.get(*at).copied().unwrap_or_default()) {
            half[at * PAGE..][..page.len()].copy_from_slice(page);
        }
        let mut files = files;
        files.insert("state.db".into(), half);
        files.remove("state.db-shm");
        prop_assert_eq!(reopened(&files, &session), messages);
    }
}

#[test]
fn a_kill_within_a_transaction_leaves_nothing_of_it() {
    let (home, _, session, written) = killed_with_a_log();
    let connection = Connection::open(home.path().join("state.db")).unwrap();
    // The log already contains pages of the open transaction, because they do not fit into memory.
    connection.pragma_update(None, "cache_size", 5).unwrap();
    connection
        .execute_batch(
            "BEGIN IMMEDIATE; CREATE TABLE half (x);
             WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 2000)
             INSERT INTO half SELECT randomblob(500) FROM many; PRAGMA user_version = 99;",
        )
        .unwrap();
    let before = fs::metadata(home.path().join("state.db-wal")).unwrap().len();
    assert!(before > 500_000, "{before}");
    assert_eq!(reopened(&contents(home.path()), &session), written);
    // Another process opens the store during the transaction.
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.conversation(&session).unwrap(), written);
}

#[test]
fn a_rollback_journal_is_played_back() {
    let home = tempfile::tempdir().unwrap();
    drop(Store::open(home.path()).unwrap());
    let connection = Connection::open(home.path().join("state.db")).unwrap();
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).unwrap();
    connection.pragma_update(None, "cache_size", 5).unwrap();
    connection
        .execute_batch(
            "BEGIN IMMEDIATE; CREATE TABLE half (x);
             WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 500)
             INSERT INTO half SELECT randomblob(500) FROM many;",
        )
        .unwrap();
    let files = contents(home.path());
    assert!(!files["state.db-journal"].is_empty());
    let killed = tempfile::tempdir().unwrap();
    for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("state.db")) {
        fs::write(killed.path().join(name), bytes).unwrap();
    }
    let store = Store::open(killed.path()).unwrap();
    assert_eq!(store.check(Depth::Full).unwrap().problems, Vec::<String>::new());
    assert!(!killed.path().join("state.db-journal").exists());
}

#[test]
fn a_read_only_store_refuses_writes_completely() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let said = store.append(&session, &[Draft::user("a", 1)]).unwrap();
    drop(store);
    let reader = Store::open_read_only(home.path()).unwrap().unwrap();
    let refused = [
        reader.append(&session, &[Draft::user("no", 1)]).map(drop),
        reader.create_session(new_session()).map(drop),
        reader.set_title(&session, "no").map(drop),
        reader.rewind(&session, said[0].id).map(drop),
        reader.delete(std::slice::from_ref(&session), false).map(drop),
        reader.set_note("a", Some("b")),
        reader.branch(&session, None, None, 1).map(drop),
    ];
    for result in refused {
        assert!(matches!(result, Err(StoreError::ReadOnly { .. })), "{result:?}");
    }
    assert_eq!(reader.conversation(&session).unwrap(), said);
}
