//! What several tests share: long texts, the ledger, a server for plugins, the scripted engine, a working day, the store of an older version.

pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod listener;
pub(crate) mod old_store;
pub(crate) mod planner;
pub(crate) mod released;
pub(crate) mod workday;
