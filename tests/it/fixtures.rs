//! What several tests share: long texts, the ledger, the scripted engine, a working day.

pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod planner;
pub(crate) mod workday;
