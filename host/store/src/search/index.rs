//! Keeping the indexes: triggers do it message by message. What they missed, and what is damaged, is made anew from the
//! log, in steps so short that no writer waits for them.

use rusqlite::{Connection, OptionalExtension as _};

use crate::error::Fault;
use crate::{Store, StoreError};

/// Messages of a step.
const STEP: i64 = 200;
/// In `state_meta`: messages up to this id are not in the indexes yet.
const PENDING: &str = "search_pending";
const TABLES: [&str; 2] = ["messages_fts", "messages_fts_trigram"];

impl Store {
    /// Makes the indexes of the search anew from the log, whatever state they are in, and answers how many messages are
    /// in them. Others may go on writing; what they search for meanwhile may not be found.
    ///
    /// A process that ends in the middle leaves the rest to the next one that opens the store.
    pub fn rebuild_search(&self) -> Result<u64, StoreError> {
        self.write(|connection| {
            for table in TABLES {
                // As the schema has it: dropping is safe where emptying would read what is damaged.
                let sql: String =
                    connection.query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))?;
                connection.execute_batch(&format!("DROP TABLE {table}; {sql};"))?;
            }
            connection.execute("DELETE FROM state_meta WHERE key = ?1", [PENDING])?;
            connection.execute(
                "INSERT INTO state_meta (key, value) SELECT ?1, max(id) FROM messages HAVING max(id) IS NOT NULL",
                [PENDING],
            )?;
            Ok(())
        })?;
        self.complete_search()?;
        self.read(|connection| {
            let rows: i64 = connection.query_row("SELECT count(*) FROM messages_fts_docsize", [], |row| row.get(0))?;
            Ok(rows.cast_unsigned())
        })
    }

    /// Whether the indexes are sound and hold the messages that they should: reads them as a whole.
    pub fn check_search(&self) -> Result<bool, StoreError> {
        // Asking for the check is a write to SQLite, though none to the file.
        self.write(|connection| {
            if pending(connection)?.is_some() {
                return Ok(false);
            }
            for table in TABLES {
                let asked = format!("INSERT INTO {table} ({table}) VALUES ('integrity-check')");
                match connection.execute(&asked, []) {
                    Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
                        return Ok(false);
                    }
                    asked => asked?,
                };
                let sql = format!(
                    "SELECT EXISTS (SELECT id FROM messages WHERE origin = 'said' EXCEPT SELECT id FROM {table}_docsize) \
                     OR EXISTS (SELECT id FROM {table}_docsize EXCEPT SELECT id FROM messages WHERE origin = 'said')"
                );
                if connection.query_row(&sql, [], |row| row.get(0))? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Takes messages into the indexes that were stored before there were any. One question where there are none.
    pub(crate) fn complete_search(&self) -> Result<(), StoreError> {
        if self.read(pending)?.is_none() {
            return Ok(());
        }
        tracing::info!(path = %self.path().display(), "taking earlier messages into the search");
        while self.write(step)? {}
        Ok(())
    }
}

/// Messages up to this id are not in the indexes.
fn pending(connection: &Connection) -> Result<Option<i64>, Fault> {
    let found = connection
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = ?1")?
        .query_row([PENDING], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// The newest messages of those that are missing; whether there are more.
///
/// Of two processes at work on this, each finds what the other one left.
fn step(connection: &Connection) -> Result<bool, Fault> {
    let Some(last) = pending(connection)? else { return Ok(false) };
    let first: Option<i64> = connection.query_row(
        "SELECT min(id) FROM (SELECT id FROM messages WHERE id <= ?1 ORDER BY id DESC LIMIT ?2)",
        [last, STEP],
        |row| row.get(0),
    )?;
    let Some(first) = first else {
        connection.execute("DELETE FROM state_meta WHERE key = ?1", [PENDING])?;
        return Ok(false);
    };
    for (table, column, made_by) in
        [("messages_fts", "words", "search_words"), ("messages_fts_trigram", "text", "search_grams")]
    {
        connection
            .prepare_cached(&format!(
                "INSERT INTO {table} (rowid, {column}) SELECT id, {made_by}(search_text(content, tool_name, tool_calls)) \
                 FROM messages WHERE id BETWEEN ?1 AND ?2 AND origin = 'said' ORDER BY id"
            ))?
            .execute([first, last])?;
    }
    connection.execute("UPDATE state_meta SET value = ?2 WHERE key = ?1", (PENDING, (first - 1).to_string()))?;
    Ok(true)
}
