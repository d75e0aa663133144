//! The plugin's own SQLite database, shared by all its sessions. Needs the permission `sql`.
//!
//! ```no_run
//! use hermes_plugin::{Error, params, sql};
//!
//! fn remember(session: &str, text: &str) -> Result<Vec<(i64, String)>, Error> {
//!     sql::execute(&[
//!         sql::Statement::new("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, session TEXT, text TEXT)", params![]),
//!         sql::Statement::new("INSERT INTO notes (session, text) VALUES (?1, ?2)", params![session, text]),
//!     ])?;
//!     sql::query_as("SELECT id, text FROM notes WHERE session = ?1 ORDER BY id", params![session])
//! }
//! ```

use crate::Error;
use crate::imports::sql as wit;

pub use wit::{Rows, Statement, Value};

/// Runs one read-only statement.
pub fn query(sql: &str, params: Vec<Value>) -> Result<Rows, Error> {
    wit::query(&Statement::new(sql, params))
}

/// Like [`query`], with each row converted to a tuple.
pub fn query_as<T: FromRow>(sql: &str, params: Vec<Value>) -> Result<Vec<T>, Error> {
    query(sql, params)?.rows.into_iter().map(T::from_row).collect()
}

/// Like [`query_as`], for at most one row; ignores further rows.
pub fn query_one<T: FromRow>(sql: &str, params: Vec<Value>) -> Result<Option<T>, Error> {
    query(sql, params)?.rows.into_iter().next().map(T::from_row).transpose()
}

/// Runs the statements in one transaction. Returns the changed rows of each.
pub fn execute(statements: &[Statement]) -> Result<Vec<u64>, Error> {
    wit::execute(statements)
}

/// The parameters of a statement: anything that converts to [`Value`].
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        ::std::vec![$($crate::sql::Value::from($value)),*]
    };
}

impl Statement {
    /// A statement with placeholders `?1`, `?2`, …
    pub fn new(sql: impl Into<String>, params: Vec<Value>) -> Self {
        Self { sql: sql.into(), params }
    }
}

impl Value {
    /// The value if it is an integer.
    pub fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    /// The value if it is a text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The name of the value's type, for messages.
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "an integer",
            Self::Real(_) => "a real number",
            Self::Text(_) => "a text",
            Self::Blob(_) => "a blob",
        }
    }
}

/// A type that a column's value converts to.
pub trait FromValue: Sized {
    /// Converts the value, or returns it unchanged.
    fn from_value(value: Value) -> Result<Self, Value>;
}

/// A type that a row converts to: a tuple with one element per column.
pub trait FromRow: Sized {
    /// Converts the row. A column of another type is an error of the kind `failed` that names the column.
    fn from_row(row: Vec<Value>) -> Result<Self, Error>;
}

macro_rules! from_value {
    ($($type:ty: $pattern:pat => $read:expr,)*) => {$(
        impl FromValue for $type {
            fn from_value(value: Value) -> Result<Self, Value> {
                match value {
                    $pattern => $read,
                    other => Err(other),
                }
            }
        }
    )*};
}

from_value! {
    i64: Value::Integer(number) => Ok(number),
    u64: Value::Integer(number) => u64::try_from(number).map_err(|_| Value::Integer(number)),
    u32: Value::Integer(number) => u32::try_from(number).map_err(|_| Value::Integer(number)),
    bool: Value::Integer(number) => Ok(number != 0),
    f64: Value::Real(number) => Ok(number),
    String: Value::Text(text) => Ok(text),
    Vec<u8>: Value::Blob(bytes) => Ok(bytes),
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, Value> {
        if matches!(value, Value::Null) { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

macro_rules! from_row {
    ($($name:ident),+) => {
        impl<$($name: FromValue),+> FromRow for ($($name,)+) {
            fn from_row(row: Vec<Value>) -> Result<Self, Error> {
                let mut row = (1..).zip(row);
                Ok(($(read::<$name>(row.next())?,)+))
            }
        }
    };
}

from_row!(A);
from_row!(A, B);
from_row!(A, B, C);
from_row!(A, B, C, D);
from_row!(A, B, C, D, E);
from_row!(A, B, C, D, E, F);
from_row!(A, B, C, D, E, F, G);
from_row!(A, B, C, D, E, F, G, H);

fn read<T: FromValue>(column: Option<(u32, Value)>) -> Result<T, Error> {
    let Some((number, value)) = column else {
        return Err(Error::failed("the row has fewer columns than the tuple"));
    };
    T::from_value(value).map_err(|value| {
        let (found, wanted) = (value.kind(), std::any::type_name::<T>());
        Error::failed(format!("column {number} of the row is {found}, which cannot be read as {wanted}"))
    })
}

macro_rules! into_value {
    ($($type:ty => |$from:ident| $value:expr,)*) => {$(
        impl From<$type> for Value {
            fn from($from: $type) -> Self {
                $value
            }
        }
    )*};
}

into_value! {
    i64 => |number| Self::Integer(number),
    i32 => |number| Self::Integer(number.into()),
    u32 => |number| Self::Integer(number.into()),
    bool => |truth| Self::Integer(truth.into()),
    f64 => |number| Self::Real(number),
    String => |text| Self::Text(text),
    &str => |text| Self::Text(text.to_owned()),
    &String => |text| Self::Text(text.clone()),
    Vec<u8> => |bytes| Self::Blob(bytes),
    &[u8] => |bytes| Self::Blob(bytes.to_vec()),
}

impl From<u64> for Value {
    /// SQLite has only signed integers: larger values become the largest one.
    fn from(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_row_converts_to_the_stored_values() {
        let row = params![7_u64, "tea", None::<i64>, 0.5, true, vec![1_u8]];
        let read = <(u64, String, Option<i64>, f64, bool, Vec<u8>)>::from_row(row).unwrap();
        assert_eq!(read, (7, "tea".to_owned(), None, 0.5, true, vec![1]));
    }

    #[test]
    fn an_error_names_the_column_of_another_type() {
        let error = <(i64, u32)>::from_row(params![1, -1]).unwrap_err();
        assert!(error.message.contains("column 2") && error.message.contains("u32"), "{error}");
        assert!(<(i64,)>::from_row(params!["text"]).unwrap_err().message.contains("a text"));
        assert!(<(i64, i64)>::from_row(params![1]).unwrap_err().message.contains("fewer columns"));
    }
}
