//! Maintains the indexes. Triggers index each new message. Missing or damaged entries are rebuilt from the log, in steps
//! so short that writers hardly wait.

use rusqlite::{Connection, OptionalExtension as _};

use super::text::MAX_BYTES;
use crate::error::Fault;
use crate::{Store, StoreError};

/// The most messages of a step.
const STEP: usize = 200;
/// The most bytes of a step, unless a single message is longer. Indexing them takes about a tenth of a second.
const STEP_BYTES: usize = MAX_BYTES;
/// From this number of messages or bytes on, indexing takes seconds and is announced.
const ANNOUNCED_MESSAGES: u64 = 10_000;
const ANNOUNCED_BYTES: u64 = 8 << 20;
/// The key in `state_meta` of the last message that is not indexed yet.
const PENDING: &str = "search_pending";
const TABLES: [&str; 2] = ["messages_fts", "messages_fts_trigram"];

impl Store {
    /// Rebuilds the search indexes from the log and returns how many messages they contain. Other processes may write
    /// meanwhile; a search can miss messages until the end.
    ///
    /// After an interruption the next process that opens the store continues.
    pub fn rebuild_search(&self) -> Result<u64, StoreError> {
        self.write(|connection| {
            for table in TABLES {
                // Dropping is safe, while emptying would read the damaged table.
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

    /// Whether the indexes are sound and contain exactly the messages that they should. Reads the whole indexes.
    pub fn check_search(&self) -> Result<bool, StoreError> {
        // SQLite treats the check as a write, although it does not change the file.
        self.write(|connection| {
            if pending(connection)?.is_some() {
                return Ok(false);
            }
            for table in TABLES {
                let sql = format!("INSERT INTO {table} ({table}) VALUES ('integrity-check')");
                match connection.execute(&sql, []) {
                    Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
                        return Ok(false);
                    }
                    sql => sql?,
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

    /// The number of messages that are not indexed. Messages older than the indexes are indexed when the store is opened
    /// for writing.
    pub fn missing_in_search(&self) -> Result<u64, StoreError> {
        self.read(|connection| Ok(missing(connection)?.0))
    }

    /// Indexes messages that are older than the indexes. Costs one query if there are none.
    pub(crate) fn complete_search(&self) -> Result<(), StoreError> {
        if self.read(pending)?.is_none() {
            return Ok(());
        }
        let (messages, bytes) = self.read(missing)?;
        if messages >= ANNOUNCED_MESSAGES || bytes >= ANNOUNCED_BYTES {
            tracing::warn!(
                path = %self.path().display(), messages, megabytes = bytes >> 20,
                "indexing earlier messages for the search; this happens once and may take minutes, and other processes can continue"
            );
        } else {
            tracing::info!(path = %self.path().display(), messages, "indexing earlier messages for the search");
        }
        while self.write(step)? {}
        Ok(())
    }
}

/// The number of messages that are not indexed, and their bytes. Reads only the length of long messages.
fn missing(connection: &Connection) -> Result<(u64, u64), Fault> {
    let Some(last) = pending(connection)? else { return Ok((0, 0)) };
    let sql = format!("SELECT count(*), coalesce(sum({SIZE}), 0) FROM messages WHERE id <= ?1 AND origin = 'said'");
    let (messages, bytes): (i64, i64) = connection.query_row(&sql, [last], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((messages.cast_unsigned(), bytes.cast_unsigned()))
}

/// The bytes of a message: an upper estimate of the searched text.
pub(crate) const SIZE: &str = "octet_length(content) + coalesce(octet_length(tool_calls), 0)";

/// The last message that is not indexed.
fn pending(connection: &Connection) -> Result<Option<i64>, Fault> {
    let found = connection
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = ?1")?
        .query_row([PENDING], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// Indexes the newest missing messages. Returns whether there are more.
///
/// Two processes can do this at once: each continues where the other one stopped.
fn step(connection: &Connection) -> Result<bool, Fault> {
    let Some(last) = pending(connection)? else { return Ok(false) };
    let Some(first) = first_of_step(connection, last)? else {
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

/// The first message of the step that ends at a message; `None` if no message is left.
fn first_of_step(connection: &Connection, last: i64) -> Result<Option<i64>, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, CASE origin WHEN 'said' THEN {SIZE} ELSE 0 END FROM messages WHERE id <= ?1 ORDER BY id DESC"
    ))?;
    let mut rows = statement.query([last])?;
    let (mut first, mut messages, mut bytes) = (None, 0, 0);
    while let Some(row) = rows.next()? {
        messages += 1;
        bytes += usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX).min(MAX_BYTES);
        if messages > STEP || (first.is_some() && bytes > STEP_BYTES) {
            break;
        }
        first = Some(row.get(0)?);
    }
    Ok(first)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Draft;

    use super::*;
    use crate::testing::{new_session, store};

    #[test]
    fn a_step_is_limited_in_messages_and_bytes() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let short: Vec<Draft> = (1..=450).map(|at| Draft::user("needle", at)).collect();
        store.append(&session, &short).unwrap();
        for length in [100 << 10, 100 << 10, 100 << 10, 1 << 20, 100 << 10] {
            store.append(&session, &[Draft::user("x ".repeat(length / 2), 1)]).unwrap();
        }
        store
            .write(|connection| {
                connection.execute_batch(
                    "DELETE FROM messages_fts; DELETE FROM messages_fts_trigram; \
                     INSERT INTO state_meta (key, value) SELECT 'search_pending', max(id) FROM messages",
                )?;
                Ok(())
            })
            .unwrap();
        assert_eq!(store.missing_in_search().unwrap(), 455);
        // The last message, then the long one alone, then two of 200 KiB with others, then as many as the limit allows.
        let mut steps = Vec::new();
        while store.write(step).unwrap() {
            steps.push(store.read(pending).unwrap().unwrap());
        }
        assert_eq!(steps, [454, 453, 451, 251, 51, 0]);
        assert_eq!(store.missing_in_search().unwrap(), 0);
        assert!(store.check_search().unwrap());
    }
}
