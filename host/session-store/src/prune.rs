//! Old sessions to delete, chosen by filters.

use std::path::PathBuf;

use hermes_conversation::SessionId;
use serde::Serialize;

use crate::SessionSummary;

/// Which sessions are deleted: those that match every filter that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneFilter {
    /// No message since this time, in Unix milliseconds.
    pub silent_since: u64,
    /// The front end, such as `cli`.
    pub source: Option<String>,
    /// The session works in this folder or one below it.
    pub workspace: Option<PathBuf>,
    /// The model's name contains this text.
    pub model: Option<String>,
    /// The title contains this text.
    pub title: Option<String>,
    /// The minimum number of the session's own messages.
    pub min_messages: Option<u64>,
    /// The maximum number of the session's own messages, rewound ones included. 0 never matches a session that shows
    /// messages of another one.
    pub max_messages: Option<u64>,
    /// Started at this time or later.
    pub started_after: Option<u64>,
    /// Started before this time.
    pub started_before: Option<u64>,
}

impl PruneFilter {
    /// Every session without a message since this time.
    pub fn silent_since(silent_since: u64) -> Self {
        Self {
            silent_since,
            source: None,
            workspace: None,
            model: None,
            title: None,
            min_messages: None,
            max_messages: None,
            started_after: None,
            started_before: None,
        }
    }
}

/// Why a session is kept although it matches the filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "why")]
pub enum Kept {
    /// A process is working on it or on one of its delegates.
    InUse,
    /// `--continue` would choose it in its folder.
    Newest,
    /// A session that is kept continues it.
    Needed {
        /// The session that continues it.
        by: SessionId,
    },
}

/// What pruning deletes and keeps.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Pruning {
    /// The deleted sessions, newest first. Their delegates are deleted with them.
    pub sessions: Vec<SessionSummary>,
    /// Sessions that match but are kept.
    pub kept: Vec<(SessionId, Kept)>,
}
