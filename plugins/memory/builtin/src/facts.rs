//! Facts that a message mentions. The index of the document is kept until the document changes.

use hermes_notes::{Index, Notes, Target, entry_id};
use hermes_plugin::memory_provider::Recollection;
use hermes_plugin::{Error, documents};

/// The most facts for a message.
const MOST: usize = 6;

#[derive(Default)]
pub(crate) struct Facts {
    /// Empty for a document that does not exist.
    version: String,
    entries: Vec<String>,
    index: Index,
}

impl Facts {
    /// The facts that share words with a message, the best first.
    pub(crate) fn find(&mut self, message: &str) -> Result<Vec<Recollection>, Error> {
        let Some(document) = documents::read(Target::Facts.document())? else {
            *self = Self::default();
            return Ok(Vec::new());
        };
        if document.version != self.version {
            let entries = Notes::parse(&document.content).entries().to_vec();
            let index = Index::of(entries.iter().map(String::as_str));
            *self = Self { version: document.version, entries, index };
        }
        let found = self.index.find(message).into_iter().take(MOST);
        let entries = found.filter_map(|at| self.entries.get(at));
        Ok(entries.map(|entry| Recollection::new(entry_id(Target::Facts, entry), entry.clone())).collect())
    }
}
