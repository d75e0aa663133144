//! Repairs of a damaged store.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io::Cursor;
use std::path::Path;

use common::new_session;
use hermes_conversation::{Draft, Item, Message, MessageRange, SessionId, Summary, View};
use hermes_store::{
    Depth, Layout, Outcome, RequestRecord, SearchQuery, SessionError, Store, StoreError, Trust, repair,
};
use rusqlite::Connection;

const PAGE: usize = 4096;

/// A digest of a file's bytes, for short messages of failed comparisons.
fn digest(path: &Path) -> (usize, u64) {
    let bytes = fs::read(path).unwrap();
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    (bytes.len(), hasher.finish())
}

fn files(home: &Path) -> BTreeMap<String, (usize, u64)> {
    let entries = fs::read_dir(home).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), digest(&entry.path()))).collect()
}

/// Two sessions whose messages fill many pages, and a view.
fn filled(home: &Path) -> [(SessionId, Vec<Message>); 2] {
    let store = Store::open(home).unwrap();
    [0, 1].map(|_| {
        let session = store.create_session(new_session()).unwrap().id;
        let drafts: Vec<Draft> =
            (0..200).map(|at| Draft::user(format!("{at} {}", "lorem ipsum ".repeat(30)), at)).collect();
        let messages = store.append(&session, &drafts).unwrap();
        let covers = vec![MessageRange::new(messages[0].id, messages[99].id)];
        let summary = Summary { key: "s".into(), content: "a hundred".into(), covers };
        let view = View { items: vec![Item::Summary(summary)], through: Some(messages[99].id) };
        store.put_view(&session, &view, "", "e").unwrap();
        (session, messages)
    })
}

/// The pages of a table or index in the order of the file.
fn pages_of(home: &Path, name: &str) -> Vec<usize> {
    let connection = Connection::open(home.join("state.db")).unwrap();
    let mut statement = connection.prepare("SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = 'leaf'").unwrap();
    let pages = statement.query_map([name], |row| row.get::<_, i64>(0)).unwrap();
    pages.map(|page| usize::try_from(page.unwrap()).unwrap()).collect()
}

fn overwrite(home: &Path, page: usize) {
    overwrite_with(home, page, 0x5a);
}

fn overwrite_with(home: &Path, page: usize, byte: u8) {
    let path = home.join("state.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[(page - 1) * PAGE..page * PAGE].fill(byte);
    fs::write(&path, bytes).unwrap();
}

/// The overflow pages of a row that is longer than a page. The last one contains only text.
fn overflow_pages_of(home: &Path, name: &str) -> Vec<usize> {
    let connection = Connection::open(home.join("state.db")).unwrap();
    let sql = "SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = 'overflow' ORDER BY pageno";
    let mut statement = connection.prepare(sql).unwrap();
    let pages = statement.query_map([name], |row| row.get::<_, i64>(0)).unwrap();
    pages.map(|page| usize::try_from(page.unwrap()).unwrap()).collect()
}

#[test]
fn a_sound_store_is_not_changed() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    let before = files(home.path());
    let done = repair(home.path()).unwrap();
    assert_eq!((done.outcome, done.backup, done.problems.len()), (Outcome::Sound, None, 0));
    assert_eq!(files(home.path()), before);
    assert!(!home.path().join("state.repair").exists());

    let empty = tempfile::tempdir().unwrap();
    assert_eq!(repair(empty.path()).unwrap().outcome, Outcome::Sound);
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn derived_data_is_rebuilt_and_the_damaged_store_is_backed_up() {
    let home = tempfile::tempdir().unwrap();
    let sessions = filled(home.path());
    // An index that contradicts its table: one letter of an id in it is changed.
    let path = home.path().join("state.db");
    let mut bytes = fs::read(&path).unwrap();
    let page = pages_of(home.path(), "messages_by_session")[0];
    let id = sessions.iter().map(|(session, _)| session.as_str()).min().unwrap().as_bytes();
    let index = &mut bytes[(page - 1) * PAGE..page * PAGE];
    let at = index.windows(id.len()).rposition(|window| window == id).unwrap();
    index[at] = b'9';
    fs::write(&path, &bytes).unwrap();
    let problems = Store::open(home.path()).unwrap().check(Depth::Full).unwrap().problems;
    assert!(!problems.is_empty());

    let damaged = files(home.path());
    let done = repair(home.path()).unwrap();
    assert_eq!((done.outcome, done.problems, done.lost.len()), (Outcome::Rebuilt, problems, 0));
    let backup = done.backup.unwrap();
    assert_eq!(digest(&backup), damaged["state.db"]);
    assert!(backup.file_name().unwrap().to_str().unwrap().starts_with("state.db.backup-"));
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.check(Depth::Full).unwrap().problems, Vec::<String>::new());
    for (session, messages) in &sessions {
        assert_eq!(store.conversation(session).unwrap(), *messages);
        assert_eq!(store.view(session).unwrap().items.len(), 1);
    }
}

#[test]
fn a_damaged_search_index_is_rebuilt_without_loss() {
    let home = tempfile::tempdir().unwrap();
    let sessions = filled(home.path());
    for page in pages_of(home.path(), "messages_fts_data") {
        overwrite(home.path(), page);
    }
    let done = repair(home.path()).unwrap();
    assert!(done.outcome != Outcome::Sound && done.lost.is_empty(), "{done:?}");
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.conversation(&sessions[0].0).unwrap(), sessions[0].1);
    assert_eq!(store.search(&SearchQuery::new("ipsum 199")).unwrap().len(), 2);
}

/// A repair of such a store never ended: behind the copies it found their rows, which come before the damage, again and again.
#[test]
fn rows_around_copies_of_an_earlier_page_are_saved() {
    let home = tempfile::tempdir().unwrap();
    let sessions = filled(home.path());
    let pages = pages_of(home.path(), "messages");
    let path = home.path().join("state.db");
    let mut bytes = fs::read(&path).unwrap();
    for copy in [pages[8], pages[9]] {
        bytes.copy_within((pages[0] - 1) * PAGE..pages[0] * PAGE, (copy - 1) * PAGE);
    }
    fs::write(&path, bytes).unwrap();
    overwrite(home.path(), pages[10]);
    let done = repair(home.path()).unwrap();
    assert_eq!(done.lost[0], "rows of `messages` on damaged pages");
    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.check(Depth::Full).unwrap().problems, Vec::<String>::new());
    let saved: Vec<Message> = sessions.iter().flat_map(|(session, _)| store.conversation(session).unwrap()).collect();
    let all: Vec<&Message> = sessions.iter().flat_map(|(_, messages)| messages).collect();
    assert!(saved.iter().all(|message| all.contains(&message)));
    // Three pages with at most ten messages each are lost, in the middle.
    assert!(saved.len() >= all.len() - 30 && saved.len() < all.len(), "{} of {}", saved.len(), all.len());
    assert_eq!((saved.first(), saved.last()), (all.first().copied(), all.last().copied()));
}

#[test]
fn rows_around_a_damaged_page_are_saved() {
    let home = tempfile::tempdir().unwrap();
    let sessions = filled(home.path());
    let pages = pages_of(home.path(), "messages");
    assert!(pages.len() > 20);
    overwrite(home.path(), pages[3]);
    overwrite(home.path(), pages[4]);
    overwrite(home.path(), pages[15]);
    let older = home.path().join("state.db.backup-20260131-120000");
    fs::write(&older, "an earlier copy").unwrap();
    fs::write(home.path().join("state.db.backup-20260131-120000-wal"), "and its log").unwrap();
    let damaged = files(home.path());
    let done = repair(home.path()).unwrap();
    assert_eq!(done.outcome, Outcome::Salvaged);
    assert_eq!(digest(&done.backup.unwrap()), damaged["state.db"]);
    assert_eq!(done.older_backups, [older]);
    assert_eq!(done.lost, ["rows of `messages` on damaged pages"]);

    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.check(Depth::Full).unwrap().problems, Vec::<String>::new());
    let mut left = 0;
    for (session, messages) in &sessions {
        let saved = store.conversation(session).unwrap();
        assert!(saved.iter().all(|message| messages.contains(message)));
        assert_eq!(store.session(session).unwrap().message_count, saved.len() as u64);
        assert_eq!(store.view(session).unwrap().items.len(), 1);
        left += saved.len();
    }
    // A page contains about ten messages.
    assert!((350..400).contains(&left), "{left}");
    assert!(done.saved.contains(&("messages".to_owned(), left as u64)));
    let next = store.append(&sessions[0].0, &[Draft::user("goes on", 1)]).unwrap();
    assert!(next[0].id > sessions[1].1[199].id);
}

/// Neither a broken chain of pages nor an invalid text may keep a salvage at the same row forever.
#[test]
fn a_row_with_unreadable_text_is_skipped() {
    let made = tempfile::tempdir().unwrap();
    let store = Store::open(made.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let long = "lorem ipsum ".repeat(3 * PAGE / 12);
    store.append(&session, &[Draft::user("first", 1), Draft::user(long, 2), Draft::user("last", 3)]).unwrap();
    drop(store);
    let pages = overflow_pages_of(made.path(), "messages");
    assert!(pages.len() >= 2, "{pages:?}");
    for page in pages {
        for byte in [0xff, 0x80] {
            let home = tempfile::tempdir().unwrap();
            fs::copy(made.path().join("state.db"), home.path().join("state.db")).unwrap();
            overwrite_with(home.path(), page, byte);
            if repair(home.path()).unwrap().outcome == Outcome::Sound {
                // A last page has free space after its text and no pointer to a next page.
                continue;
            }
            let store = Store::open(home.path()).unwrap();
            let kept = store.conversation(&session).unwrap();
            let said: Vec<&str> = kept.iter().map(|message| message.content.as_str()).collect();
            assert!(said.contains(&"first") && said.contains(&"last"), "page {page} of {byte:#x}: {}", said.len());
        }
    }
}

#[test]
fn references_to_lost_rows_are_repaired_so_that_an_export_can_be_imported() {
    let home = tempfile::tempdir().unwrap();
    let [(root, messages), _] = filled(home.path());
    let store = Store::open(home.path()).unwrap();
    let row = store.view_in_force(&root).unwrap().id;
    for at in [40, 150] {
        let through = Some(messages[at].id);
        store.record_request(&root, &RequestRecord { view: row, through, ..RequestRecord::default() }).unwrap();
    }
    let branches: Vec<SessionId> = (0..200)
        .step_by(4)
        .map(|at| store.branch(&root, Some(messages[at].id), None, 1_795_300_000_001).unwrap().id)
        .collect();
    store.append(&branches[20], &[Draft::user("of a branch", 1)]).unwrap();
    drop(store);
    for page in pages_of(home.path(), "messages").into_iter().take(20).step_by(2) {
        overwrite(home.path(), page);
    }
    // The parent's own row is lost, so it is recovered after its children.
    let connection = Connection::open(home.path().join("state.db")).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection.execute("UPDATE sessions SET id = 'other' WHERE id = ?1", [root.as_str()]).unwrap();
    drop(connection);
    let done = repair(home.path()).unwrap();
    assert_eq!(done.outcome, Outcome::Salvaged);

    let store = Store::open(home.path()).unwrap();
    assert_eq!(store.check(Depth::Full).unwrap().problems, Vec::<String>::new());
    let mut file = Vec::new();
    let exported = store.export(None, Layout::Lines, &mut file).unwrap();
    let fresh = tempfile::tempdir().unwrap();
    let fresh = Store::open(fresh.path()).unwrap();
    let imported = fresh.import(&mut Cursor::new(file), 1_800_000_000_000, Trust::OwnFiles).unwrap();
    assert_eq!((imported.sessions.len() as u64, imported.messages), (exported.sessions, exported.messages));
    let drafts = |store: &Store, id: &SessionId| -> Vec<Draft> {
        store.conversation(id).unwrap().into_iter().map(|message| message.draft).collect()
    };
    for session in store.sessions().unwrap() {
        assert_eq!(drafts(&fresh, &session.id), drafts(&store, &session.id));
    }
}

#[test]
fn messages_without_their_session_get_a_new_session_row() {
    let home = tempfile::tempdir().unwrap();
    let sessions = filled(home.path());
    for page in pages_of(home.path(), "sessions").into_iter().chain(pages_of(home.path(), "views")) {
        overwrite(home.path(), page);
    }
    let done = repair(home.path()).unwrap();
    assert_eq!(done.outcome, Outcome::Salvaged);
    let lost = done.lost.join("\n");
    assert!(lost.contains("everything but the messages of 2 sessions") && lost.contains("all views"), "{lost}");
    let store = Store::open(home.path()).unwrap();
    for (session, messages) in &sessions {
        assert_eq!(store.conversation(session).unwrap(), *messages);
        assert_eq!(store.view(session).unwrap(), View::default());
        assert_eq!(store.session(session).unwrap().source, "recovered");
    }
}

#[test]
fn an_irreparable_store_stays_unchanged_and_its_copy_is_named() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    overwrite(home.path(), 1);
    fs::write(home.path().join("state.db-wal"), "not a log").unwrap();
    fs::create_dir_all(home.path().join("state.repair/left by a killed repair")).unwrap();
    let before = files(home.path());
    let error = repair(home.path()).unwrap_err();
    let StoreError::BeyondRepair { backup, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains(backup.to_str().unwrap()), "{error}");
    assert_eq!(digest(backup), before["state.db"]);
    let mut after = files(home.path());
    after.retain(|name, _| !name.contains(".backup-"));
    assert_eq!(after, before);
    assert!(!home.path().join("state.repair").exists());
    // A second copy does not replace the first one.
    let StoreError::BeyondRepair { backup: second, .. } = repair(home.path()).unwrap_err() else { panic!() };
    assert_ne!(second, *backup);
}

#[test]
fn a_store_in_use_is_not_repaired() {
    let home = tempfile::tempdir().unwrap();
    let [(session, messages), _] = filled(home.path());
    let store = Store::open(home.path()).unwrap();
    let before: Vec<String> = files(home.path()).into_keys().collect();
    let error = repair(home.path()).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    let lease = store.lease(&session).unwrap();
    let error = repair(home.path()).unwrap_err();
    assert!(matches!(error, StoreError::Session(SessionError::InUse { .. })), "{error}");
    assert_eq!(files(home.path()).into_keys().collect::<Vec<_>>(), before);
    assert_eq!(store.conversation(&session).unwrap(), messages);
    drop((lease, store));
    assert_eq!(repair(home.path()).unwrap().outcome, Outcome::Sound);
}

#[test]
fn commits_in_the_write_ahead_log_are_salvaged() {
    let (home, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sessions = filled(home.path());
    let store = Store::open(home.path()).unwrap();
    let late = store.append(&sessions[0].0, &[Draft::user("late", 1)]).unwrap();
    for name in ["state.db", "state.db-wal"] {
        fs::copy(home.path().join(name), killed.path().join(name)).unwrap();
    }
    let page = pages_of(home.path(), "messages")[5];
    overwrite(killed.path(), page);
    let done = repair(killed.path()).unwrap();
    assert_eq!(done.outcome, Outcome::Salvaged);
    let saved = Store::open(killed.path()).unwrap().conversation(&sessions[0].0).unwrap();
    assert_eq!(saved.last(), late.last());
}

#[test]
fn a_database_of_another_program_is_not_repaired() {
    let home = tempfile::tempdir().unwrap();
    let other = Connection::open(home.path().join("state.db")).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(other);
    let before = files(home.path());
    assert!(matches!(repair(home.path()).unwrap_err(), StoreError::Foreign { .. }));
    assert_eq!(files(home.path()), before);
}
