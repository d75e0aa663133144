//! The outbox: finished turns that memory providers have not stored yet.
//!
//! A turn enters it in the write that ends the turn, and leaves it when the provider has stored the turn. So no turn is
//! lost if the provider fails or the process ends.

use hermes_conversation::{MessageRange, SessionId};
use serde::{Deserialize, Serialize};

/// A finished turn that a memory provider has not stored yet. Session, first message and provider identify it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedTurn {
    /// The session in which the turn took place.
    pub session: SessionId,
    /// The memory provider's name.
    pub provider: String,
    /// The turn's messages.
    pub messages: MessageRange,
    /// When the turn ended, in Unix milliseconds.
    pub ended_at: u64,
    /// How often its delivery failed.
    pub attempts: u32,
    /// Whether and when it is delivered again.
    pub state: QueueState,
    /// Why the last delivery failed; `None` before the first failure.
    pub error: Option<String>,
}

/// Whether a queued turn is delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueState {
    /// It waits for its delivery, or for the next one.
    Waiting {
        /// Not delivered before this moment while the session stays open, in Unix milliseconds.
        due_at: u64,
    },
    /// The provider rejected it. It is kept for the user and never delivered by itself.
    SetAside,
}

/// What happened to a queued turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The provider stored the turn: it leaves the outbox.
    Stored,
    /// The delivery failed, and the turn waits for the next one.
    Postponed {
        /// Why it failed.
        error: String,
        /// When to try again, in Unix milliseconds.
        due_at: u64,
    },
    /// The host ended the delivery. The provider did not fail, so only the reason is kept.
    CutOff {
        /// When and why.
        error: String,
    },
    /// The provider rejected the turn: later turns go on without it.
    SetAside {
        /// Why it was rejected.
        error: String,
    },
}

/// A turn that ended with an answer, or because the user stopped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTurn {
    /// Its session.
    pub session: SessionId,
    /// From the user's message to the last one.
    pub messages: MessageRange,
    /// Unix time in milliseconds.
    pub ended_at: u64,
}
