//! Recall across sessions.

use crate::export::Slot;
use crate::{Error, Extra, MessageRange, Plugin};

use crate::bindings::memory_provider::exports::hermes::memory::memory_provider as wit;
pub use wit::{Query, Recollection, Turn};

impl Recollection {
    /// A text to recall. The host shows it under its key only once while the conversation still shows it.
    pub fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        Self { key: key.into(), text: text.into(), extra: Extra::new() }
    }
}

impl Query {
    /// A message of the user in the first turn, for tests.
    pub fn new(text: impl Into<String>, budget: u32) -> Self {
        Self { turn: 1, author: None, text: text.into(), budget, extra: Extra::new() }
    }
}

impl Turn {
    /// A finished turn of the session `session-1` with two messages, for tests.
    pub fn new(number: u32, user: impl Into<String>, assistant: impl Into<String>) -> Self {
        let first = u64::from(number.saturating_sub(1)) * 2 + 1;
        Self {
            session_id: "session-1".to_owned(),
            number,
            ended_at: 0,
            author: None,
            user: user.into(),
            assistant: assistant.into(),
            messages: MessageRange::new(first, first + 1),
            extra: Extra::new(),
        }
    }
}

/// A memory provider. Write it as plain blocking code: the host limits the time of [`recall`](MemoryProvider::recall) and
/// calls [`sync_turn`](MemoryProvider::sync_turn) in the background.
pub trait MemoryProvider: Plugin {
    /// Static text for the system prompt, frozen for the session; empty for none. Return an error if the text is unavailable:
    /// a session that already has a text keeps it.
    fn system_prompt(&mut self) -> Result<String, Error> {
        Ok(String::new())
    }

    /// What is relevant for this turn, best first.
    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        let _ = query;
        Ok(Vec::new())
    }

    /// Receives a finished turn, in order. After `unavailable`, `timeout`, `exhausted`, `conflict` or a crash the host delivers the
    /// same turn again, also in a later process. After any other error it sets the turn aside and tells the user.
    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        let _ = turn;
        Ok(())
    }
}

impl<S: Slot<Plugin: MemoryProvider>> wit::Guest for S {
    fn system_prompt() -> Result<String, Error> {
        S::call("system-prompt", |provider| provider.system_prompt())
    }

    fn recall(query: Query) -> Result<Vec<Recollection>, Error> {
        S::call("recall", |provider| provider.recall(&query))
    }

    fn sync_turn(turn: Turn) -> Result<(), Error> {
        S::call("sync-turn", |provider| provider.sync_turn(&turn))
    }
}
