//! What became of a delegated task.

use std::path::PathBuf;

use hermes_conversation::{DelegationState, SessionId};

/// Why a task that ran when its session was closed has no result.
pub(super) const INTERRUPTED: &str = "Hermes ended while it ran";

/// What became of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) state: DelegationState,
    pub(super) session: Option<SessionId>,
    /// The answer or the summary, or why there is none.
    pub(super) text: String,
    /// Paths that its file tools changed.
    pub(super) changed: Vec<PathBuf>,
}
