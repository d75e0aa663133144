//! What front ends see of a delegated task.

use hermes_conversation::{DelegationState, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A delegated task, for one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStatus {
    /// Counts the tasks of the session, from 1.
    pub number: u32,
    /// What is to be done, in one line.
    pub goal: String,
    /// The session that works on it, once it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What became of it.
    pub state: DelegationState,
    /// Whether the session's turn does not wait for it.
    #[serde(default)]
    pub background: bool,
    /// The tool that its agent called last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Replies of the model so far.
    pub requests: u64,
    /// Tokens of these requests and their replies.
    pub tokens: u64,
    /// Cost in US dollars, once the task is over and as far as prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Time since it began, in milliseconds.
    pub elapsed_ms: u64,
    /// Why it gave no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
