//! The store in memory obeys the rules of the port.

use hermes_testkit::MemoryStore;

async fn open() -> ((), MemoryStore) {
    ((), MemoryStore::default())
}

hermes_testkit::session_store_rules!(open);
