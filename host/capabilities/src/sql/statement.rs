//! Runs a plugin's statements on one connection.

use std::ops::{Deref, DerefMut};

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, CachedStatement, Connection, params_from_iter};

use super::connection::{Guarded, retry_while_busy};
use super::error::Failure;
use super::{Budget, MAX_VALUE, Quota, Rows, SqlError, Statement, Value};

/// Most bytes of a statement that stays compiled.
const KEPT: usize = 8 << 10;
/// Bytes that a value counts in addition to its text.
const VALUE: usize = 16;

impl Guarded {
    /// Runs one statement that only reads.
    pub(super) fn query(&mut self, statement: &Statement, budget: &Budget, quota: &Quota) -> Result<Rows, Failure> {
        self.watched(budget, |connection| retry_while_busy(budget, || query(connection, statement, quota)))
    }

    /// Runs all statements in one transaction.
    pub(super) fn execute(&mut self, statements: &[Statement], budget: &Budget) -> Result<Vec<u64>, Failure> {
        let (gate, watch) = (&self.gate, &self.watch);
        let done = self.watched(budget, |connection| {
            retry_while_busy(budget, || self.begin())?;
            let mut changes = Vec::with_capacity(statements.len());
            for statement in statements {
                // Small statements end before SQLite calls the progress handler, each of them and all together.
                if watch.look() {
                    return Err(SqlError::Time.into());
                }
                changes.push(execute(connection, statement)?);
            }
            retry_while_busy(budget, || Ok(gate.open_for(|| connection.execute_batch("COMMIT"))?))?;
            Ok(changes)
        });
        if done.is_err() {
            self.roll_back();
        }
        done
    }

    /// Replaces SQLite's error by the reason for which a statement was stopped or refused.
    fn watched<T>(&self, budget: &Budget, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        self.watch.begin(budget);
        let done = work(&self.connection);
        let stopped = self.watch.end();
        let refused = self.gate.refused();
        done.map_err(|failure| match (stopped, refused) {
            (Some(stopped), _) => stopped.into(),
            (None, Some(what)) => SqlError::Refused(what).into(),
            (None, None) => failure,
        })
    }
}

fn query(connection: &Connection, statement: &Statement, quota: &Quota) -> Result<Rows, Failure> {
    let mut prepared = prepare(connection, &statement.sql)?;
    if !prepared.readonly() {
        return Err(SqlError::Writes.into());
    }
    let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
    let mut bytes: usize = columns.iter().map(String::len).sum();
    if bytes > quota.answer {
        return Err(SqlError::Answer { most: quota.answer }.into());
    }
    let mut found = prepared.query(params_from_iter(&statement.params))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        if rows.len() == quota.rows {
            return Err(SqlError::Rows { most: quota.rows }.into());
        }
        let mut values = Vec::with_capacity(columns.len());
        for column in 0..columns.len() {
            let value = row.get_ref(column)?;
            bytes += VALUE + size(value);
            if bytes > quota.answer {
                return Err(SqlError::Answer { most: quota.answer }.into());
            }
            values.push(owned(value));
        }
        rows.push(values);
    }
    Ok(Rows { columns, rows })
}

/// Runs a statement to its end, reading its rows, and returns how many rows it changed.
fn execute(connection: &Connection, statement: &Statement) -> Result<u64, Failure> {
    let before = connection.total_changes();
    let mut prepared = prepare(connection, &statement.sql)?;
    let mut rows = prepared.query(params_from_iter(&statement.params))?;
    while rows.next()?.is_some() {}
    drop(rows);
    // For a statement that changes no rows, SQLite reports the count of the previous one; and creating a full-text index
    // writes internal rows.
    let changed = connection.total_changes() != before && !is_about_the_schema(&statement.sql);
    Ok(if changed { connection.changes() } else { 0 })
}

fn is_about_the_schema(sql: &str) -> bool {
    let word = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["CREATE", "DROP", "ALTER", "ANALYZE", "REINDEX", "PRAGMA"].iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// A compiled statement. Short ones are cached.
enum Prepared<'a> {
    Kept(CachedStatement<'a>),
    Once(rusqlite::Statement<'a>),
}

impl<'a> Deref for Prepared<'a> {
    type Target = rusqlite::Statement<'a>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Kept(statement) => statement,
            Self::Once(statement) => statement,
        }
    }
}

impl DerefMut for Prepared<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Kept(statement) => statement,
            Self::Once(statement) => statement,
        }
    }
}

/// Compiles the only statement of a text.
fn prepare<'a>(connection: &'a Connection, sql: &'a str) -> Result<Prepared<'a>, Failure> {
    if sql.len() > MAX_VALUE {
        return Err(SqlError::TooLong.into());
    }
    if sql.contains('\0') {
        // SQLite would read only the text before it.
        return Err(SqlError::Statement("there is a NUL character in the statement".to_owned()).into());
    }
    let text = sql.trim_end_matches(|c: char| c.is_ascii_whitespace() || c == ';');
    if !text.contains(';') && text.len() <= KEPT {
        let statement = connection.prepare_cached(text)?;
        // A text with only comments gives an empty statement. A few real statements look the same, but have a text.
        if statement.column_count() == 0 && statement.readonly() && statement.expanded_sql().is_none() {
            return Err(SqlError::Empty.into());
        }
        return Ok(Prepared::Kept(statement));
    }
    // Compile one statement after the other. A recursive check for further statements would need a stack frame for each.
    let mut batch = Batch::new(connection, text);
    let statement = batch.next()?.ok_or(SqlError::Empty)?;
    match batch.next() {
        Ok(None) => Ok(Prepared::Once(statement)),
        // Or there is another statement that is not valid.
        Ok(Some(_)) | Err(_) => Err(SqlError::Several.into()),
    }
}

fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
    }
}

/// A text up to its first byte that is not UTF-8.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}
