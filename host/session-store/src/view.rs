//! Stored views.

use hermes_conversation::{View, ViewId};

/// A view with its identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredView {
    /// Assigned by the store; [`ViewId::WHOLE`] for a session without a view.
    pub id: ViewId,
    /// The engine that made it, or `host`; empty for a session without a view.
    pub engine: String,
    /// The view.
    pub view: View,
}

/// A view in the history of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewRecord {
    /// Assigned by the store.
    pub id: ViewId,
    /// Counted from 1 in the session that stored it, which may be a parent.
    pub number: u64,
    /// The engine that made it, or `host`.
    pub engine: String,
    /// Why, in one line.
    pub reason: String,
    /// Unix time in milliseconds.
    pub created_at: u64,
    /// The view.
    pub view: View,
}
