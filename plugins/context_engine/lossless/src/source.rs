//! What the rules look up, as the host answers it; in tests a conversation in memory and a SQLite of their own.

use hermes_plugin::history::{Hit, Page, Query};
use hermes_plugin::sql::{Rows, Statement, Value};
use hermes_plugin::{Error, Header, MessageRange, history, llm, sql};

/// The log and its rulers.
pub(crate) trait Source {
    /// The first messages of a range: some megabytes, and where the rest begins.
    fn page(&self, range: MessageRange) -> Result<Page, Error>;
    /// Messages without their texts.
    fn headers(&self, range: MessageRange) -> Result<Vec<Header>, Error>;
    /// From the first message of the conversation to the last.
    fn whole(&self) -> Result<Option<MessageRange>, Error>;
    /// What was said, by what it says.
    fn search(&self, query: &Query) -> Result<Vec<Hit>, Error>;
    /// Tokens of a text, by the ruler of the headers.
    fn count(&self, text: &str) -> u32;
}

/// The plugin's database.
pub(crate) trait Database {
    /// One statement that only reads.
    fn query(&self, sql: &str, params: Vec<Value>) -> Result<Rows, Error>;
    /// All or nothing.
    fn execute(&self, statements: &[Statement]) -> Result<(), Error>;
}

/// The host's imports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host;

impl Source for Host {
    fn page(&self, range: MessageRange) -> Result<Page, Error> {
        history::read(range).map_err(|error| error.context("reading the conversation"))
    }

    fn headers(&self, range: MessageRange) -> Result<Vec<Header>, Error> {
        history::headers(range).map_err(|error| error.context("reading the conversation"))
    }

    fn whole(&self) -> Result<Option<MessageRange>, Error> {
        history::whole().map_err(|error| error.context("reading the conversation"))
    }

    fn search(&self, query: &Query) -> Result<Vec<Hit>, Error> {
        history::search(query).map_err(|error| error.context("searching the conversation"))
    }

    fn count(&self, text: &str) -> u32 {
        llm::count_tokens(text)
    }
}

impl Database for Host {
    fn query(&self, statement: &str, params: Vec<Value>) -> Result<Rows, Error> {
        sql::query(statement, params)
    }

    fn execute(&self, statements: &[Statement]) -> Result<(), Error> {
        sql::execute(statements).map(drop)
    }
}
