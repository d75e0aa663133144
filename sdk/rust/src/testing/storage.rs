//! Documents, and SQL: answered by the test, or by SQLite with the feature `sqlite`.

use std::collections::BTreeMap;

use super::Host;
use crate::Error;
use crate::bindings::imports::{documents as wit, sql};

/// Bytes of a document.
const DOCUMENT: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Documents {
    /// The content, and how often it was written.
    documents: BTreeMap<String, (String, u32)>,
}

impl Documents {
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<wit::Document>, Error> {
        let document = |(content, version): &(String, u32)| wit::Document {
            content: content.clone(),
            version: version.to_string(),
        };
        Ok(self.documents.get(name).map(document))
    }

    pub(crate) fn write(
        &mut self,
        name: &str,
        content: &str,
        version: Option<&str>,
    ) -> Result<wit::WriteOutcome, Error> {
        if content.len() > DOCUMENT {
            return Err(Error::exhausted(format!("{name} would have more than 1 MiB")).with_code("too-long"));
        }
        let current = self.read(name)?;
        if current.as_ref().map(|document| document.version.as_str()) != version {
            // None is at no version, so it conflicts only with a version of a document that is gone.
            let gone = wit::Document { content: String::new(), version: String::new() };
            return Ok(wit::WriteOutcome::Conflict(current.unwrap_or(gone)));
        }
        Ok(wit::WriteOutcome::Written(self.put(name, content)))
    }

    fn put(&mut self, name: &str, content: &str) -> String {
        let (own, version) = self.documents.entry(name.to_owned()).or_default();
        content.clone_into(own);
        *version += 1;
        version.to_string()
    }
}

type Answerer = Box<dyn FnMut(&sql::Statement) -> Result<sql::Rows, Error>>;

#[derive(Default)]
pub(crate) enum Database {
    #[default]
    None,
    Answerer(Answerer),
    #[cfg(feature = "sqlite")]
    Sqlite(super::sqlite::Sqlite),
}

impl Database {
    pub(crate) fn query(&mut self, statement: &sql::Statement) -> Result<sql::Rows, Error> {
        match self {
            Self::None => panic!(
                "the test has no database for `{}`: add `.sql(|statement| …)` to its host, or `.database()` with the SDK's \
                 feature `sqlite`",
                statement.sql
            ),
            Self::Answerer(answerer) => answerer(statement),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.query(statement),
        }
    }

    pub(crate) fn execute(&mut self, statements: &[sql::Statement]) -> Result<Vec<u64>, Error> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.execute(statements),
            _ => statements.iter().map(|statement| Ok(self.query(statement)?.rows.len() as u64)).collect(),
        }
    }
}

impl Host {
    /// Writes a document, also as another writer in the middle of a test.
    pub fn document(self, name: &str, content: &str) -> Self {
        self.state.documents.borrow_mut().put(name, content);
        self
    }

    /// The content of a document.
    pub fn document_text(&self, name: &str) -> Option<String> {
        self.state.documents.borrow().documents.get(name).map(|(content, _)| content.clone())
    }

    /// Answers the statements of [`sql`](crate::sql). For a statement that writes, the number of rows counts as the changed ones.
    pub fn sql(self, answerer: impl FnMut(&sql::Statement) -> Result<sql::Rows, Error> + 'static) -> Self {
        *self.state.sql.borrow_mut() = Database::Answerer(Box::new(answerer));
        self
    }

    /// Gives the plugin an empty SQLite database in memory. Needs the feature `sqlite`:
    ///
    /// ```toml
    /// [dev-dependencies]
    /// hermes-plugin = { path = "vendor/hermes-plugin", features = ["sqlite"] }
    /// ```
    ///
    /// The real host also has limits for time and size, and refuses `ATTACH`, most pragmas and temporary tables.
    ///
    /// # Panics
    ///
    /// If SQLite cannot be opened.
    #[cfg(feature = "sqlite")]
    pub fn database(self) -> Self {
        *self.state.sql.borrow_mut() = Database::Sqlite(super::sqlite::Sqlite::new());
        self
    }
}
