//! The storage of plugins: below the user's home, or in memory if nothing may remain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_capabilities::documents::Documents;
use hermes_capabilities::sql::Database;

/// Where plugins keep their own documents and databases.
#[derive(Debug, Clone)]
pub enum Storage {
    /// In folders below `$HERMES_HOME`.
    Home,
    /// In memory, for the lab. Sessions that share a value share its contents.
    Memory(Arc<Memory>),
}

/// The documents and databases of plugins, for the lifetime of this value.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, Stores>>);

type Stores = (Arc<Documents>, Arc<Database>);

impl Memory {
    /// The storage of a plugin, the same at every call.
    pub(crate) fn of(&self, plugin: &str) -> Stores {
        let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (documents, database) = stores
            .entry(plugin.to_owned())
            .or_insert_with(|| (Arc::new(Documents::in_memory()), Arc::new(Database::in_memory())));
        (Arc::clone(documents), Arc::clone(database))
    }
}
