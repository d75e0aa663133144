//! What several tests share: long texts, the ledger, servers for plugins and stand-ins of memory services, an identity provider, the scripted engine, a home of Hermes Agent, a working day, the store of an older version.

pub(crate) mod backend;
pub(crate) mod honcho;
pub(crate) mod identity;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod listener;
pub(crate) mod mem0;
pub(crate) mod old_store;
#[cfg(unix)]
pub(crate) mod outside;
pub(crate) mod peer;
pub(crate) mod planner;
pub(crate) mod released;
pub(crate) mod service;
pub(crate) mod workday;
