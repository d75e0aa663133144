//! The user's limits for delegated tasks.

use std::time::Duration;

/// The settings of delegated tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationSettings {
    /// The most requests with tools for one message to a delegated session.
    pub max_iterations: u32,
    /// How many tasks of a session run beside each other.
    pub max_concurrent_children: u32,
    /// How deep agents may delegate: with 1, a delegated session delegates nothing.
    pub max_spawn_depth: u32,
    /// The most characters of a result that the parent's model gets.
    pub max_summary_chars: u32,
    /// How long a task may take; `None` for any time.
    pub child_timeout: Option<Duration>,
    /// The provider of the model; `None` for the parent's.
    pub provider: Option<String>,
    /// The model of delegated sessions; `None` for the parent's.
    pub model: Option<String>,
    /// Further models that a call may choose.
    pub models: Vec<String>,
}

impl Default for DelegationSettings {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            max_concurrent_children: 3,
            max_spawn_depth: 1,
            max_summary_chars: 24_000,
            child_timeout: None,
            provider: None,
            model: None,
            models: Vec::new(),
        }
    }
}
