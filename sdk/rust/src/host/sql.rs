//! A SQLite database of the plugin's own, shared by all its sessions. Needs the permission `sql`.

use crate::Error;
use crate::bindings::hermes::plugin::sql as wit;

pub use wit::{Rows, Statement, Value};

/// One statement that only reads.
pub fn query(sql: &str, params: Vec<Value>) -> Result<Rows, Error> {
    wit::query(&Statement::new(sql, params))
}

/// Statements that take effect together or not at all; rows changed by each.
pub fn execute(statements: &[Statement]) -> Result<Vec<u64>, Error> {
    wit::execute(statements)
}

impl Statement {
    /// A statement with `?1`, `?2`, … for its parameters.
    pub fn new(sql: impl Into<String>, params: Vec<Value>) -> Self {
        Self { sql: sql.into(), params }
    }
}

impl Value {
    /// The number, where it is one.
    pub fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u64> for Value {
    /// SQLite has signed numbers only: what is larger becomes the largest.
    fn from(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
