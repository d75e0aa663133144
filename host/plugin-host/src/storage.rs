//! Where plugins keep what is theirs: below the user's home, or in memory where nothing is to stay.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_capabilities::documents::Documents;
use hermes_capabilities::sql::Database;

/// Where plugins keep documents and databases of their own.
#[derive(Debug, Clone)]
pub enum Storage {
    /// In folders below `$HERMES_HOME`.
    Home,
    /// In memory, for laboratories: sessions that share it find what they left there.
    Memory(Arc<Memory>),
}

/// What plugins keep as long as somebody has this.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, Kept>>);

type Kept = (Arc<Documents>, Arc<Database>);

impl Memory {
    /// Of the plugin of this name, the same at every call.
    pub(crate) fn of(&self, plugin: &str) -> Kept {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (documents, database) = kept
            .entry(plugin.to_owned())
            .or_insert_with(|| (Arc::new(Documents::in_memory()), Arc::new(Database::in_memory())));
        (Arc::clone(documents), Arc::clone(database))
    }
}
