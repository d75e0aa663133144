//! What requests used.

use hermes_conversation::{SessionId, Usage};

/// What one request used.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    /// The session.
    pub session: SessionId,
    /// The session of a person whose agent delegated to it, directly or through others; `None` if that is the session itself.
    pub delegated_by: Option<SessionId>,
    /// The plugin that asked; `None` for a request of the conversation.
    pub plugin: Option<String>,
    /// The plugin's task.
    pub task: Option<String>,
    /// Unix time in milliseconds.
    pub sent_at: u64,
    /// The provider's name.
    pub provider: String,
    /// The model that answered, or else the one that was asked.
    pub model: String,
    /// What the provider reported; `None` if it reported nothing, or if the process ended before.
    pub usage: Option<Usage>,
    /// Cost in US dollars, if the price is known.
    pub cost: Option<f64>,
}
