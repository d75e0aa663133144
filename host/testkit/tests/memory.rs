//! The store in memory follows the common rules of session stores.

use hermes_testkit::MemoryStore;

async fn open() -> ((), MemoryStore) {
    ((), MemoryStore::default())
}

hermes_testkit::session_store_rules!(open);
