//! Copies readable rows from a damaged database into a new one.

mod references;

use std::collections::HashSet;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::COUNTS;
use crate::connection::connect;
use crate::database::NAME;
use crate::error::Fault;
use crate::{Store, StoreError, blobs};

/// Tables to which others refer come first.
const TABLES: [&str; 16] = [
    "sessions",
    "messages",
    "blobs",
    "message_blobs",
    "prompts",
    "views",
    "summaries",
    "view_items",
    "ephemeral_layers",
    "requests",
    "auxiliary_requests",
    "rewound",
    "state_meta",
    "engine_faults",
    "outbox",
    "delegations",
];
/// If rows of these are lost, a view would leave out messages.
const OF_VIEWS: [&str; 3] = ["views", "summaries", "view_items"];

pub(super) struct Salvaged {
    pub(super) saved: Vec<(String, u64)>,
    pub(super) lost: Vec<String>,
}

/// Creates a store in a folder and copies into it what can be read.
pub(super) fn salvage(damaged: &Path, folder: &Path) -> Result<Salvaged, StoreError> {
    drop(Store::open(folder)?);
    let path = folder.join(NAME);
    let failed = |error: rusqlite::Error| StoreError::sqlite(&path, error);
    let new = connect(&path)?;
    new.pragma_update(None, "foreign_keys", false).map_err(failed)?;
    let old = Connection::open_with_flags(damaged, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| StoreError::sqlite(damaged, error))?;
    let salvaged = (|| -> Result<Salvaged, Fault> {
        // Accepts a schema with errors.
        old.pragma_update(None, "writable_schema", true)?;
        let mut salvaged = Salvaged { saved: Vec::new(), lost: Vec::new() };
        let mut views_are_whole = true;
        new.execute_batch("BEGIN IMMEDIATE")?;
        for table in TABLES {
            let copied = copy(&old, &new, table)?;
            salvaged.saved.push((table.to_owned(), copied.rows));
            views_are_whole &= !copied.gap || !OF_VIEWS.contains(&table);
            if copied.gap {
                salvaged.lost.push(format!("rows of `{table}` on damaged pages"));
            }
            if copied.refused > 0 {
                salvaged.lost.push(format!("{} rows of `{table}` with invalid values", copied.refused));
                views_are_whole &= !OF_VIEWS.contains(&table);
            }
        }
        // Messages without an index entry got one when they were inserted.
        new.execute("DELETE FROM state_meta WHERE key = 'search_pending'", [])?;
        mend(&new, views_are_whole, &mut salvaged.lost)?;
        new.execute_batch(COUNTS)?;
        new.execute_batch("COMMIT")?;
        Ok(salvaged)
    })();
    let salvaged = salvaged.map_err(|fault| fault.at(&path))?;
    new.close().map_err(|(_, error)| failed(error))?;
    if salvaged.saved.iter().all(|(_, rows)| *rows == 0) {
        let detail = "none of its rows can be read".to_owned();
        return Err(StoreError::Corrupt { path: damaged.to_owned(), detail });
    }
    Ok(salvaged)
}

#[derive(Debug, Default)]
struct Copied {
    rows: u64,
    refused: u64,
    /// Some rows could not be read.
    gap: bool,
}

fn copy(old: &Connection, new: &Connection, table: &str) -> rusqlite::Result<Copied> {
    let mut copied = Copied::default();
    let columns = common_columns(old, new, table)?;
    if columns.is_empty() {
        copied.gap = true;
        return Ok(copied);
    }
    let list = columns.join(", ");
    let places: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
    let mut insert = new.prepare(&format!("INSERT INTO {table} ({list}) VALUES ({})", places.join(", ")))?;
    let mut put = |values: Vec<Value>, copied: &mut Copied| match insert.execute(params_from_iter(values)) {
        Ok(_) => copied.rows += 1,
        Err(_) => copied.refused += 1,
    };
    if table == "state_meta" {
        // This table has no row ids, and little in it matters.
        copied.gap = each(old, &format!("SELECT 0, {list} FROM {table}"), None, columns.len(), |_, values| {
            put(values, &mut copied);
        })
        .is_err();
        return Ok(copied);
    }
    let sql = format!("SELECT rowid, {list} FROM {table} WHERE rowid >= ?1 ORDER BY rowid");
    // In a damaged table rows can come again, and out of order.
    let mut seen = HashSet::new();
    let mut next = Some(i64::MIN);
    while let Some(start) = next {
        let mut highest = start.saturating_sub(1);
        let read = each(old, &sql, Some(start), columns.len(), |row, values| {
            highest = highest.max(row);
            if seen.insert(row) {
                put(values, &mut copied);
            }
        });
        next = None;
        if read.is_err() {
            copied.gap = true;
            // Do not start at the same row again: the row may be found although its text cannot be read.
            next = beyond(old, table, highest.max(start).max(0));
        }
    }
    Ok(copied)
}

/// Reads rows up to the first unreadable one.
fn each(
    connection: &Connection,
    sql: &str,
    start: Option<i64>,
    columns: usize,
    mut take: impl FnMut(i64, Vec<Value>),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params_from_iter(start))?;
    while let Some(row) = rows.next()? {
        let values = (1..=columns).map(|at| row.get::<_, Value>(at)).collect::<Result<_, _>>()?;
        take(row.get(0)?, values);
    }
    Ok(())
}

/// The next readable row id, which is greater than `last`: searches further and further away, then as near as possible.
fn beyond(old: &Connection, table: &str, last: i64) -> Option<i64> {
    let sql = format!("SELECT rowid, * FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
    let first_from = |start: i64| -> rusqlite::Result<Option<i64>> {
        let mut statement = old.prepare(&sql)?;
        let mut rows = statement.query([start])?;
        match rows.next()?.map(|row| row.get(0)).transpose()? {
            // Only a damaged page has a row from before the start. From there the search would never end.
            Some(found) if found < start => Err(rusqlite::Error::IntegralValueOutOfRange(0, found)),
            found => Ok(found),
        }
    };
    let mut step = 1i64;
    while let Some(start) = last.checked_add(step) {
        match first_from(start) {
            Ok(None) => return None,
            Ok(Some(found)) => {
                let (mut damaged, mut sound) = (last.saturating_add(step / 2), start);
                while damaged + 1 < sound {
                    let middle = damaged + (sound - damaged) / 2;
                    match first_from(middle) {
                        Ok(Some(_)) => sound = middle,
                        _ => damaged = middle,
                    }
                }
                return Some(first_from(sound).ok().flatten().unwrap_or(found));
            }
            Err(_) => step = step.checked_mul(2)?,
        }
    }
    None
}

fn common_columns(old: &Connection, new: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let columns = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let names = statement.query_map([table], |row| row.get(0))?;
        names.collect()
    };
    // A table whose schema cannot be read has no columns.
    let existing = columns(old).unwrap_or_default();
    Ok(columns(new)?.into_iter().filter(|name| existing.contains(name)).collect())
}

/// Removes every reference to a lost row. Messages keep a session; everything else is removed.
fn mend(new: &Connection, views_are_whole: bool, lost: &mut Vec<String>) -> Result<(), Fault> {
    let recovered = new.execute(
        "INSERT INTO sessions (id, source, workspace, engine, provider, model, context_length, started_at, updated_at) \
         SELECT session_id, 'recovered', '/', 'compressor', 'offline', 'offline', 32000, min(created_at), max(created_at) \
         FROM messages WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id",
        [],
    )?;
    if recovered > 0 {
        lost.push(format!("everything but the messages of {recovered} sessions"));
    }
    let detached = new.execute(
        "UPDATE sessions SET parent_id = NULL, parent_kind = NULL, parent_through = NULL, parent_view = NULL \
         WHERE parent_id NOT IN (SELECT id FROM sessions)",
        [],
    )?;
    if detached > 0 {
        lost.push(format!("the parents of {detached} sessions"));
    }
    if !views_are_whole {
        new.execute_batch("DELETE FROM view_items; DELETE FROM summaries; DELETE FROM views;")?;
        lost.push("all views: sessions show their whole conversation again".to_owned());
    }
    references::mend(new, lost)?;
    blobs::references::mend(new, lost)?;
    loop {
        let mut statement = new.prepare("SELECT \"table\", rowid FROM pragma_foreign_key_check")?;
        let orphans: Vec<(String, i64)> =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        if orphans.is_empty() {
            return Ok(());
        }
        lost.push(format!("{} rows that referred to lost rows", orphans.len()));
        for (table, row) in orphans {
            new.execute(&format!("DELETE FROM \"{table}\" WHERE rowid = ?1"), [row])?;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::store;

    #[test]
    fn every_table_is_salvaged() {
        let (_home, store) = store();
        let connection = connect(store.path()).unwrap();
        let sql = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
                   AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let mut statement = connection.prepare(sql).unwrap();
        let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let mut known = TABLES.map(str::to_owned);
        known.sort();
        assert_eq!(names, known);
    }
}
