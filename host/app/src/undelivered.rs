//! The turns that a memory provider has not stored, for people.

use hermes_diagnostic::counted;
use hermes_session_store::{QueueState, QueuedTurn};
use serde::Serialize;

use crate::{AppError, Home, store};

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
    pub async fn read(home: &Home, provider: &str) -> Result<Self, AppError> {
        let Some(store) = store::open_to_read(home.path())? else { return Ok(Self::default()) };
        Ok(Self::among(&store.outbox().await?, provider))
    }

    /// Those of a provider among the turns of an outbox.
    pub fn among(outbox: &[QueuedTurn], provider: &str) -> Self {
        let of_provider = outbox.iter().filter(|turn| turn.provider == provider);
        let (set_aside, waiting): (Vec<_>, Vec<_>) = of_provider.partition(|turn| turn.state == QueueState::SetAside);
        Self { waiting: Turns::of(&waiting), set_aside: Turns::of(&set_aside) }
    }
}

impl Turns {
    fn of(turns: &[&QueuedTurn]) -> Option<Self> {
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
