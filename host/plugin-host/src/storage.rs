//! The storage of plugins: below the user's home, or in memory if nothing may remain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_capabilities::documents::{DocumentQuota, Documents};
use hermes_capabilities::sql::Database;
use hermes_runtime::{Limit, Limits};

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
    /// The storage of a plugin, the same at every call. The limits of the first call count.
    pub(crate) fn of(&self, plugin: &str, limits: &Limits) -> Stores {
        let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (documents, database) = stores.entry(plugin.to_owned()).or_insert_with(|| {
            let documents = Documents::in_memory_within(document_quota(limits));
            (Arc::new(documents), Arc::new(Database::in_memory()))
        });
        (Arc::clone(documents), Arc::clone(database))
    }
}

/// How much a plugin with these limits may store in documents.
pub(crate) fn document_quota(limits: &Limits) -> DocumentQuota {
    DocumentQuota { count: limits.get(Limit::DocumentCount), bytes: limits.get(Limit::DocumentBytes) }
}
