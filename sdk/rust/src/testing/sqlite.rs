//! An SQLite database in memory.

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, params_from_iter};

use crate::Error;
use crate::bindings::imports::sql as wit;

pub(crate) struct Sqlite(Connection);

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self(Connection::open_in_memory().expect("SQLite opens a database in memory"))
    }

    pub(crate) fn query(&mut self, statement: &wit::Statement) -> Result<wit::Rows, Error> {
        let mut prepared = self.0.prepare(&statement.sql).map_err(invalid)?;
        if !prepared.readonly() {
            return Err(Error::invalid("`query` runs statements that only read: use `execute`").with_code("sql"));
        }
        let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
        let mut rows = prepared.query(params_from_iter(statement.params.iter().map(value))).map_err(invalid)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(invalid)? {
            let cells = (0..columns.len()).map(|column| row.get_ref(column).map(read).map_err(invalid));
            found.push(cells.collect::<Result<Vec<_>, Error>>()?);
        }
        Ok(wit::Rows { columns, rows: found })
    }

    /// All statements or none.
    pub(crate) fn execute(&mut self, statements: &[wit::Statement]) -> Result<Vec<u64>, Error> {
        let transaction = self.0.transaction().map_err(invalid)?;
        let mut changed = Vec::new();
        for statement in statements {
            let params = params_from_iter(statement.params.iter().map(value));
            changed.push(transaction.execute(&statement.sql, params).map_err(invalid)? as u64);
        }
        transaction.commit().map_err(invalid)?;
        Ok(changed)
    }
}

fn invalid(error: rusqlite::Error) -> Error {
    Error::invalid(error.to_string()).with_code("sql")
}

fn value(value: &wit::Value) -> Sql {
    match value {
        wit::Value::Null => Sql::Null,
        wit::Value::Integer(number) => Sql::Integer(*number),
        wit::Value::Real(number) => Sql::Real(*number),
        wit::Value::Text(text) => Sql::Text(text.clone()),
        wit::Value::Blob(bytes) => Sql::Blob(bytes.clone()),
    }
}

fn read(value: ValueRef<'_>) -> wit::Value {
    match value {
        ValueRef::Null => wit::Value::Null,
        ValueRef::Integer(number) => wit::Value::Integer(number),
        ValueRef::Real(number) => wit::Value::Real(number),
        ValueRef::Text(text) => wit::Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => wit::Value::Blob(bytes.to_vec()),
    }
}
