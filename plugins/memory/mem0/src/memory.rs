//! What all places of memories have in common.

use hermes_plugin::Error;

/// The most bytes of a memory's text that reach the model or a store.
pub(crate) const TEXT: usize = 4 * 1024;
/// The most bytes of a query.
pub(crate) const QUERY: usize = 4 * 1024;

/// A stored memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    pub(crate) id: String,
    pub(crate) text: String,
    /// How well it fits the query: the higher the better.
    pub(crate) score: f64,
    /// The session whose turn it comes from; none if a tool wrote it.
    pub(crate) session: Option<String>,
}

/// What became of a text that was to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is stored; with its id, if the service says it.
    Stored(Option<String>),
    /// The service stores it later. The id of this work.
    Queued(String),
    /// The same text was there already.
    Known,
}

/// A place where memories are.
pub(crate) trait Store {
    /// The best memories for a query, best first. `rerank` is a wish.
    fn search(&self, query: &str, most: u32, rerank: bool, time: u32) -> Result<Vec<Memory>, Error>;
    /// Stores a fact as it is.
    fn add(&self, fact: &str) -> Result<Added, Error>;
    /// A memory of the user, if there is one with this id.
    fn get(&self, id: &str) -> Result<Option<Memory>, Error>;
    /// Replaces the text of an existing memory.
    fn update(&self, id: &str, text: &str) -> Result<(), Error>;
    /// Deletes an existing memory.
    fn delete(&self, id: &str) -> Result<(), Error>;
}
