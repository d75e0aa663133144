//! The turns that a memory provider has not stored, for people.

use hermes_diagnostic::counted;
use hermes_store::{QueueState, QueuedTurn, Store, StoreError};
use serde::Serialize;

use crate::Home;

/// The turns of all sessions that a memory provider has not stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Undelivered {
    /// Turns that wait for their delivery.
    pub waiting: Option<Turns>,
    /// Turns that the provider rejected.
    pub set_aside: Option<Turns>,
}

/// Some undelivered turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turns {
    /// How many there are.
    pub count: u64,
    /// When the oldest turn ended, in Unix milliseconds.
    pub since: u64,
    /// Why a delivery failed last.
    pub error: Option<String>,
}

impl Undelivered {
    /// Reads the outbox of a home. Without a store nothing waits.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn read(home: &Home, provider: &str) -> Result<Self, StoreError> {
        let Some(store) = Store::open_read_only(home.path())? else { return Ok(Self::default()) };
        let turns: Vec<QueuedTurn> = store.outbox()?.into_iter().filter(|turn| turn.provider == provider).collect();
        let (set_aside, waiting) = turns.into_iter().partition(|turn| turn.state == QueueState::SetAside);
        Ok(Self { waiting: Turns::of(waiting), set_aside: Turns::of(set_aside) })
    }
}

impl Turns {
    fn of(turns: Vec<QueuedTurn>) -> Option<Self> {
        let since = turns.iter().map(|turn| turn.ended_at).min()?;
        let error = turns.iter().rev().find_map(|turn| turn.error.clone());
        Some(Self { count: turns.len() as u64, since, error })
    }

    /// Their number, age and cause, as in `2 turns since 2026-11-21 08:10 UTC: the server is away`.
    pub fn line(&self) -> String {
        let since = i64::try_from(self.since).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        let since = since.map_or_else(String::new, |at| format!(" since {} UTC", at.strftime("%Y-%m-%d %H:%M")));
        let why = self.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
        format!("{}{since}{why}", counted(self.count, "turn"))
    }
}
