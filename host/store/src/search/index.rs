//! Keeping the indexes: triggers do it message by message. What they missed, and what is damaged, is made anew from the
//! log, in steps so short that no writer waits for them.

use rusqlite::{Connection, OptionalExtension as _};

use super::text::LONGEST;
use crate::error::Fault;
use crate::{Store, StoreError};

/// Messages of a step, at most.
const STEP: usize = 200;
/// Bytes of their text, at most, but for a message that is longer by itself: what takes the indexes about a tenth of a second.
const STEP_BYTES: usize = LONGEST;
/// Messages from which on, or bytes, taking them in is worth a warning: some seconds.
const MANY: u64 = 10_000;
const MUCH: u64 = 8 << 20;
/// In `state_meta`: messages up to this id are not in the indexes yet.
const PENDING: &str = "search_pending";
const TABLES: [&str; 2] = ["messages_fts", "messages_fts_trigram"];

impl Store {
    /// Rebuilds the search indexes from the log, whatever their state, and returns how many messages they contain.
    /// Others may write meanwhile; until it is done, a search can miss messages.
    ///
    /// If the process ends in the middle, the next one that opens the store continues.
    pub fn rebuild_search(&self) -> Result<u64, StoreError> {
        self.write(|connection| {
            for table in TABLES {
                // Recreated from the schema: dropping is safe, while emptying would read what is damaged.
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
        // To SQLite the check is a write, although it does not change the file.
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

    /// How many messages are not indexed: older than the indexes, until the store is opened for writing.
    pub fn missing_in_search(&self) -> Result<u64, StoreError> {
        self.read(|connection| Ok(missing(connection)?.0))
    }

    /// Indexes messages that are older than the indexes. Costs one query if there are none.
    pub(crate) fn complete_search(&self) -> Result<(), StoreError> {
        if self.read(pending)?.is_none() {
            return Ok(());
        }
        let (messages, bytes) = self.read(missing)?;
        if messages >= MANY || bytes >= MUCH {
            tracing::warn!(
                path = %self.path().display(), messages, megabytes = bytes >> 20,
                "taking earlier messages into the search, which is done once and may take minutes; others can go on meanwhile"
            );
        } else {
            tracing::info!(path = %self.path().display(), messages, "taking earlier messages into the search");
        }
        while self.write(step)? {}
        Ok(())
    }
}

/// Messages that are not indexed, and their bytes. Reads only the length of long ones.
fn missing(connection: &Connection) -> Result<(u64, u64), Fault> {
    let Some(last) = pending(connection)? else { return Ok((0, 0)) };
    let sql = format!("SELECT count(*), coalesce(sum({SIZE}), 0) FROM messages WHERE id <= ?1 AND origin = 'said'");
    let (messages, bytes): (i64, i64) = connection.query_row(&sql, [last], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((messages.cast_unsigned(), bytes.cast_unsigned()))
}

/// Bytes of a message: about as many as are searched, or more.
pub(crate) const SIZE: &str = "octet_length(content) + coalesce(octet_length(tool_calls), 0)";

/// Messages up to this id are not indexed.
fn pending(connection: &Connection) -> Result<Option<i64>, Fault> {
    let found = connection
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = ?1")?
        .query_row([PENDING], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// Indexes the newest of the missing messages; returns whether there are more.
///
/// Two processes can do this at once: each finds what the other one left.
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

/// Where a step begins that ends at this message; `None` if no message is left.
fn first_of_step(connection: &Connection, last: i64) -> Result<Option<i64>, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, CASE origin WHEN 'said' THEN {SIZE} ELSE 0 END FROM messages WHERE id <= ?1 ORDER BY id DESC"
    ))?;
    let mut rows = statement.query([last])?;
    let (mut first, mut messages, mut bytes) = (None, 0, 0);
    while let Some(row) = rows.next()? {
        messages += 1;
        bytes += usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX).min(LONGEST);
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
    fn a_step_is_short_in_messages_and_in_text() {
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
        // The last message, the long one by itself, two of 200 KiB with as many as fit beside them, then by number.
        let mut steps = Vec::new();
        while store.write(step).unwrap() {
            steps.push(store.read(pending).unwrap().unwrap());
        }
        assert_eq!(steps, [454, 453, 451, 251, 51, 0]);
        assert_eq!(store.missing_in_search().unwrap(), 0);
        assert!(store.check_search().unwrap());
    }
}
