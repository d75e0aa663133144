//! `sql`: a database of the plugin's own.

use hermes_bindings::hermes::plugin as imported;
use imported::sql as wit;
use imported::types::Error;

use crate::context::Context;
use crate::convert::fault;
use crate::error::Fault;

impl wit::Host for Context {
    async fn query(&mut self, _: wit::Statement) -> Result<wit::Rows, Error> {
        Err(fault(Fault::denied("sql")))
    }

    async fn execute(&mut self, _: Vec<wit::Statement>) -> Result<Vec<u64>, Error> {
        Err(fault(Fault::denied("sql")))
    }
}
