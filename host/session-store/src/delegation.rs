//! Tasks that a session's agent delegated, each to a session of its own.

use hermes_conversation::{DelegationState, MessageId, SessionId};
use serde::Serialize;

/// A task that a session's agent delegated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delegation {
    /// Counts the tasks of the session, from 1; 0 for a task that is not stored.
    pub number: u32,
    /// The session that works on the task, once it has begun.
    pub child: Option<SessionId>,
    /// The tool call: the message with the call, a dot, and the position of the call in it.
    pub call: String,
    /// What is to be done.
    pub goal: String,
    /// Whether the parent does not wait for the result.
    pub background: bool,
    /// What became of it.
    pub state: DelegationState,
    /// What the parent's model gets of a task in the background.
    pub report: Option<String>,
    /// The message of the parent that has the report; `None` while the report waits.
    pub delivered_in: Option<MessageId>,
    /// Unix time in milliseconds.
    pub started_at: u64,
    /// Unix time in milliseconds; `None` while the task runs.
    pub ended_at: Option<u64>,
}
