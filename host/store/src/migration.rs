//! Migrations: numbered steps from one schema version to the next. All missing steps are one transaction, so that a store that
//! was interrupted has its old version or the newest one. There is no way back.

use rusqlite::{Connection, TransactionBehavior};

/// The newest schema that this program knows.
pub const SCHEMA_VERSION: u32 = 11;

/// A step; its number is the resulting schema version.
pub(crate) struct Migration {
    pub(crate) number: u32,
    pub(crate) sql: &'static str,
}

/// All steps, oldest first.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, sql: include_str!("../schema/0001.sql") },
    Migration { number: 2, sql: include_str!("../schema/0002.sql") },
    Migration { number: 3, sql: include_str!("../schema/0003.sql") },
    Migration { number: 4, sql: include_str!("../schema/0004.sql") },
    Migration { number: 5, sql: include_str!("../schema/0005.sql") },
    Migration { number: 6, sql: include_str!("../schema/0006.sql") },
    Migration { number: 7, sql: include_str!("../schema/0007.sql") },
    Migration { number: 8, sql: include_str!("../schema/0008.sql") },
    Migration { number: 9, sql: include_str!("../schema/0009.sql") },
    Migration { number: 10, sql: include_str!("../schema/0010.sql") },
    Migration { number: 11, sql: include_str!("../schema/0011.sql") },
];

/// The schema version of a database, including its write-ahead log.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    let version: i32 = connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    // A negative version, which this program never sets, counts as newer than all others.
    Ok(version.cast_unsigned())
}

/// Applies the missing steps to a database, all or none.
///
/// The version is read again under the write lock, so that only one of several processes applies them.
pub(crate) fn run(connection: &mut Connection, migrations: &[Migration]) -> rusqlite::Result<()> {
    let missing = |version: u32| migrations.iter().filter(move |migration| migration.number > version);
    if missing(version(connection)?).next().is_none() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in missing(version(&transaction)?) {
        transaction.execute_batch(migration.sql)?;
        transaction.pragma_update(None, "user_version", migration.number)?;
    }
    transaction.commit()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tables(connection: &Connection) -> Vec<String> {
        let mut statement = connection.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn steps_are_numbered_from_one_without_gaps_and_end_at_the_version() {
        let numbers: Vec<u32> = MIGRATIONS.iter().map(|migration| migration.number).collect();
        assert_eq!(numbers, (1..=SCHEMA_VERSION).collect::<Vec<_>>());
    }

    #[test]
    fn a_second_run_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection, MIGRATIONS).unwrap();
        let once = tables(&connection);
        run(&mut connection, MIGRATIONS).unwrap();
        assert_eq!(tables(&connection), once);
        assert_eq!(version(&connection).unwrap(), SCHEMA_VERSION);
    }

    #[test]
    fn later_steps_continue_from_earlier_ones() {
        let steps = [
            Migration { number: 1, sql: "CREATE TABLE a (x); INSERT INTO a VALUES (7);" },
            Migration { number: 2, sql: "ALTER TABLE a ADD COLUMN y DEFAULT 8;" },
            Migration { number: 3, sql: "CREATE TABLE b AS SELECT x + y AS z FROM a;" },
        ];
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection, &steps[..1]).unwrap();
        run(&mut connection, &steps).unwrap();
        assert_eq!(connection.query_row("SELECT z FROM b", [], |row| row.get::<_, i64>(0)).unwrap(), 15);
        assert_eq!(version(&connection).unwrap(), 3);
    }

    #[test]
    fn a_failed_step_leaves_the_version_from_before_the_migration() {
        let steps = [
            Migration { number: 1, sql: "CREATE TABLE a (x);" },
            Migration { number: 2, sql: "CREATE TABLE b (x);" },
            Migration { number: 3, sql: "CREATE TABLE c (x); INSERT INTO nowhere VALUES (1);" },
        ];
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection, &steps[..1]).unwrap();
        run(&mut connection, &steps).unwrap_err();
        assert_eq!(tables(&connection), ["a"]);
        assert_eq!(version(&connection).unwrap(), 1);
    }

    #[test]
    fn migrating_from_version_2_keeps_titles_views_and_summaries() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        run(&mut connection, &MIGRATIONS[..2]).unwrap();
        connection
            .execute_batch(
                "INSERT INTO sessions (id, source, title, workspace, engine, provider, model, context_length, started_at, \
                 updated_at) VALUES ('a', '', 'same', '', '', '', '', 1, 1, 9), ('b', '', 'same', '', '', '', '', 1, 2, 2), \
                 ('c', '', NULL, '', '', '', '', 1, 3, 3), ('d', '', 'own', '', '', '', '', 1, 4, 4);
                 INSERT INTO messages (session_id, role, content, origin, created_at) VALUES ('a', 'user', 'x', 'said', 1);
                 INSERT INTO views (session_id, number, through, engine, reason, created_at) VALUES ('a', 1, 1, '', '', 1);
                 INSERT INTO summaries (id, session_id, key, content, covers, view_id) VALUES (7, 'a', 'k', 'text', '[]', 1);
                 INSERT INTO view_items (view_id, position, kind, summary_id) VALUES (1, 0, 'summary', 7);",
            )
            .unwrap();
        run(&mut connection, MIGRATIONS).unwrap();
        let mut titles = connection.prepare("SELECT title FROM sessions ORDER BY id").unwrap();
        let titles: Vec<Option<String>> = titles.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(titles, [None, Some("same".into()), None, Some("own".into())]);
        let item = "SELECT summaries.content FROM view_items JOIN summaries ON summaries.id = summary_id";
        assert_eq!(connection.query_row(item, [], |row| row.get::<_, String>(0)).unwrap(), "text");
        let broken = "SELECT count(*) FROM pragma_foreign_key_check";
        assert_eq!(connection.query_row(broken, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        connection.execute("UPDATE summaries SET content = 'other'", []).unwrap_err();
        connection.execute("DELETE FROM sessions WHERE id = 'a'", []).unwrap();
        assert_eq!(connection.query_row("SELECT count(*) FROM summaries", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}
