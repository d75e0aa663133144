//! The import `sql`: the plugin's own database. The work runs off the thread that drives the guest, which also waits no longer
//! than its call lasts for a statement that does not stop.

use std::sync::Arc;

use hermes_bindings::imported;
use imported::sql as wit;
use imported::types::Error;

use crate::context::{Context, margin};
use crate::convert::fault;
use crate::error::Fault;
use hermes_capabilities::sql::{Budget, Database, SqlError, Statement, Value};

impl Context {
    async fn on_database<T, F>(&mut self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Database, &Budget) -> Result<T, SqlError> + Send + 'static,
    {
        let Some(database) = self.services.database.clone() else { return Err(fault(Fault::denied("sql"))) };
        let call = self.call.clone();
        // Work ends two margins before the call, and the host waits for it until one margin before.
        let (until, grace) = (call.work_until(), margin(call.time_left()) / 2);
        let budget = Budget { until, grace, cancelled: Arc::new(move || call.is_cancelled()) };
        self.off_thread(move || Ok(work(&database, &budget)?)).await.map_err(fault)
    }
}

fn statement(statement: wit::Statement) -> Statement {
    Statement { sql: statement.sql, params: statement.params.into_iter().map(value_back).collect() }
}

fn value_back(value: wit::Value) -> Value {
    match value {
        wit::Value::Null => Value::Null,
        wit::Value::Integer(number) => Value::Integer(number),
        wit::Value::Real(number) => Value::Real(number),
        wit::Value::Text(text) => Value::Text(text),
        wit::Value::Blob(bytes) => Value::Blob(bytes),
    }
}

fn value(value: Value) -> wit::Value {
    match value {
        Value::Null => wit::Value::Null,
        Value::Integer(number) => wit::Value::Integer(number),
        Value::Real(number) => wit::Value::Real(number),
        Value::Text(text) => wit::Value::Text(text),
        Value::Blob(bytes) => wit::Value::Blob(bytes),
    }
}

impl wit::Host for Context {
    async fn query(&mut self, query: wit::Statement) -> Result<wit::Rows, Error> {
        self.on_database(move |database, budget| {
            let found = database.query(&statement(query), budget)?;
            let rows = found.rows.into_iter().map(|row| row.into_iter().map(value).collect());
            Ok(wit::Rows { columns: found.columns, rows: rows.collect() })
        })
        .await
    }

    async fn execute(&mut self, batch: Vec<wit::Statement>) -> Result<Vec<u64>, Error> {
        self.on_database(move |database, budget| {
            let statements: Vec<Statement> = batch.into_iter().map(statement).collect();
            database.execute(&statements, budget)
        })
        .await
    }
}
