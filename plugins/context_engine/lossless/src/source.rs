//! Access to the log and the database: the host's imports, or in tests a conversation in memory and a local SQLite.

use hermes_guest_engine::parts;
use hermes_plugin::history::{Hit, Page, Query};
use hermes_plugin::sql::{Rows, Statement, Value};
use hermes_plugin::{Error, Header, MessageRange, history, llm, sql};

/// The message log and its token counter.
pub(crate) trait Source {
    /// The first messages of a range (a few megabytes) with descriptions of their parts, and the id at which the rest begins.
    fn page(&self, range: MessageRange) -> Result<Page, Error>;
    /// Message metadata, without texts.
    fn headers(&self, range: MessageRange) -> Result<Vec<Header>, Error>;
    /// The range from the first message of the conversation to the last.
    fn whole(&self) -> Result<Option<MessageRange>, Error>;
    /// Full-text search.
    fn search(&self, query: &Query) -> Result<Vec<Hit>, Error>;
    /// Tokens of a text, by the same estimate as the headers.
    fn count(&self, text: &str) -> u32;
}

/// The plugin's database.
pub(crate) trait Database {
    /// Runs one read-only statement.
    fn query(&self, sql: &str, params: Vec<Value>) -> Result<Rows, Error>;
    /// Runs the statements in one transaction.
    fn execute(&self, statements: &[Statement]) -> Result<(), Error>;
}

/// The host's imports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host;

impl Source for Host {
    fn page(&self, range: MessageRange) -> Result<Page, Error> {
        let read = |page: Page| Ok(Page { messages: parts::described(page.messages)?, ..page });
        history::read(range).and_then(read).map_err(|error| error.context("reading the conversation"))
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
