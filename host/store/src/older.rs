//! Reads a store of an older version without migrating it, if a migration is impossible: on a read-only or full disk, or
//! while another process keeps the store locked.

use std::ops::RangeInclusive;

use rusqlite::Connection;

/// The last schema before messages had parts: that of commit 4403e97.
const BEFORE_PARTS: u32 = 5;

/// The older schemas that can be read without a migration.
pub(crate) const READABLE: RangeInclusive<u32> = BEFORE_PARTS..=9;
/// The last schema without the lifetime of what a request cached.
const BEFORE_CACHE_TTL: u32 = 9;
/// The last schema without requests beside the conversation.
const BEFORE_AUXILIARY_REQUESTS: u32 = 8;
/// The last schema without the model that answered.
const BEFORE_ANSWERED_BY: u32 = 7;
/// The last schema without an outbox.
const BEFORE_OUTBOX: u32 = 6;

/// Temporary views and tables of this connection. They hide the stored tables of the same names, because SQLite searches
/// the temporary schema first. This one adds the column that version 9 lacks.
const WITHOUT_CACHE_TTL: &str = "
CREATE TEMP VIEW requests AS SELECT *, NULL AS cache_ttl FROM main.requests;
";

/// Creates the table that version 8 lacks.
const WITHOUT_AUXILIARY_REQUESTS: &str = "
CREATE TEMP TABLE auxiliary_requests (id INTEGER PRIMARY KEY, session_id TEXT, plugin TEXT, task TEXT, sent_at INTEGER, \
provider TEXT, model TEXT, answered_by TEXT, input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER, \
cache_write_tokens INTEGER, cost REAL);
";

/// Adds the columns that version 7 lacks.
const WITHOUT_ANSWERED_BY: &str = "
CREATE TEMP VIEW requests AS SELECT *, NULL AS answered_by, NULL AS cache_ttl FROM main.requests;
";

/// Creates the table that version 6 lacks.
const WITHOUT_OUTBOX: &str = "
CREATE TEMP TABLE outbox (provider TEXT, session_id TEXT, first_id INTEGER, last_id INTEGER, ended_at INTEGER, \
attempts INTEGER, error TEXT, due_at INTEGER);
";

/// Creates what version 5 lacks in addition.
const WITHOUT_PARTS: &str = "
CREATE TEMP VIEW messages AS SELECT *, NULL AS parts, NULL AS author FROM main.messages;
CREATE TEMP VIEW requests AS SELECT *, 0 AS payloads_replayed, 0 AS payloads_dropped, NULL AS answered_by, NULL AS cache_ttl \
FROM main.requests;
CREATE TEMP TABLE blobs (hash TEXT PRIMARY KEY, media_type TEXT, size INTEGER, bytes BLOB);
CREATE TEMP TABLE message_blobs (message_id INTEGER, hash TEXT);
";

/// Adapts the tables of an older version to the queries of this version. The file is not changed.
pub(crate) fn adapt(connection: &Connection, version: u32) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA temp_store = MEMORY")?;
    if version <= BEFORE_AUXILIARY_REQUESTS {
        connection.execute_batch(WITHOUT_AUXILIARY_REQUESTS)?;
    }
    if version <= BEFORE_OUTBOX {
        connection.execute_batch(WITHOUT_OUTBOX)?;
    }
    // One view has all columns of the requests that a version lacks.
    if version <= BEFORE_PARTS {
        return connection.execute_batch(WITHOUT_PARTS);
    }
    if version <= BEFORE_ANSWERED_BY {
        return connection.execute_batch(WITHOUT_ANSWERED_BY);
    }
    if version <= BEFORE_CACHE_TTL {
        return connection.execute_batch(WITHOUT_CACHE_TTL);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::SessionId;
    use rusqlite::Connection;

    use super::*;
    use crate::migration::{MIGRATIONS, run};
    use crate::{Depth, SearchQuery, Store, StoreError, connection, header, search};

    /// Creates a store of the older version with a session of two messages.
    fn old(home: &std::path::Path) {
        let mut connection = Connection::open(home.join("state.db")).unwrap();
        connection.pragma_update(None, "application_id", header::APPLICATION_ID).unwrap();
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        search::register(&connection).unwrap();
        run(&mut connection, &MIGRATIONS[..5]).unwrap();
        connection
            .execute_batch(
                "INSERT INTO sessions (id, source, workspace, engine, provider, model, context_length, started_at, updated_at, \
                 message_count) VALUES ('old', 'cli', '/w', 'e', 'p', 'm', 1, 1, 1, 2);
                 INSERT INTO messages (session_id, role, content, origin, created_at) VALUES \
                 ('old', 'user', 'where is the needle', 'said', 1), ('old', 'assistant', 'in the haystack', 'said', 2);
                 INSERT INTO requests (session_id, number, sent_at, provider, model, api_mode, prompt, view, bytes, fingerprint, \
                 prefix_bytes) VALUES ('old', 1, 1, 'p', 'm', 'chat_completions', 1, 0, 1, 'f', 0);",
            )
            .unwrap();
    }

    #[test]
    fn a_locked_older_store_is_read_without_a_migration() {
        let home = tempfile::tempdir().unwrap();
        old(home.path());
        let before = std::fs::read(home.path().join("state.db")).unwrap();
        // Another process keeps the store locked: it can be read, but not migrated.
        let holder = Connection::open(home.path().join("state.db")).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let store = Store::open_read_only(home.path()).unwrap().unwrap();
        let id = SessionId("old".into());
        let said: Vec<String> =
            store.conversation(&id).unwrap().into_iter().map(|message| message.draft.content).collect();
        assert_eq!(said, ["where is the needle", "in the haystack"]);
        assert_eq!(store.sessions().unwrap().len(), 1);
        assert_eq!(store.search(&SearchQuery::new("needle")).unwrap().len(), 1);
        assert_eq!(store.requests(&id).unwrap()[0].payloads_replayed, 0);
        assert_eq!(store.blobs().unwrap(), (0, 0));
        let health = store.check(Depth::Full).unwrap();
        assert_eq!((health.schema, health.problems), (BEFORE_PARTS, Vec::new()));
        let mut export = Vec::new();
        store.export(None, crate::Layout::Lines, &mut export).unwrap();
        assert!(String::from_utf8(export).unwrap().contains("haystack"));
        let refused = store.append(&id, &[hermes_conversation::Draft::user("no", 1)]).unwrap_err();
        assert!(matches!(refused, StoreError::ReadOnly { .. } | StoreError::Busy { .. }), "{refused}");
        drop(store);
        holder.execute_batch("ROLLBACK").unwrap();
        drop(holder);
        assert_eq!(std::fs::read(home.path().join("state.db")).unwrap(), before);
        // After the lock is released, the store is migrated.
        let store = Store::open_read_only(home.path()).unwrap().unwrap();
        assert_eq!(store.check(Depth::Full).unwrap().schema, crate::SCHEMA_VERSION);
        assert_eq!(store.conversation(&id).unwrap().len(), 2);
    }

    #[test]
    fn a_locked_store_of_every_readable_version_is_read_without_a_migration() {
        for version in READABLE.skip(1) {
            let home = tempfile::tempdir().unwrap();
            old(home.path());
            let path = home.path().join("state.db");
            let mut holder = Connection::open(&path).unwrap();
            search::register(&holder).unwrap();
            run(&mut holder, &MIGRATIONS[..version as usize]).unwrap();
            holder.execute_batch("BEGIN IMMEDIATE").unwrap();
            let store = Store::open_read_only(home.path()).unwrap().unwrap();
            assert_eq!(store.check(Depth::Full).unwrap().schema, version);
            assert_eq!(store.outbox().unwrap(), []);
            let id = SessionId("old".into());
            assert_eq!(store.conversation(&id).unwrap().len(), 2);
            let requests = store.requests(&id).unwrap();
            let known = (requests[0].answered_by.as_deref(), requests[0].cache_ttl.as_deref());
            assert_eq!((requests.len(), known), (1, (None, None)), "{version}");
            assert_eq!(store.usage(0, None).unwrap().len(), 1, "{version}");
        }
    }

    #[test]
    fn an_older_store_on_a_read_only_disk_is_read_without_creating_files() {
        let home = tempfile::tempdir().unwrap();
        old(home.path());
        let path = home.path().join("state.db");
        let connection = connection::connect_alone(&path).unwrap();
        adapt(&connection, BEFORE_PARTS).unwrap();
        let sql = format!("SELECT {} FROM messages ORDER BY id", crate::log::COLUMNS);
        let mut statement = connection.prepare(&sql).unwrap();
        let messages: Vec<_> = statement.query_map([], crate::log::from_row).unwrap().map(Result::unwrap).collect();
        assert_eq!((messages.len(), messages[0].content.as_str()), (2, "where is the needle"));
        assert!(!header::beside(&path, "-wal").exists());
    }
}
