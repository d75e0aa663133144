//! The frozen prompt: the common beginning of all requests of a session.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Position of a frozen prompt within its session, counted from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptNumber(pub u64);

impl fmt::Display for PromptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// System prompt and tools of a session, byte for byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Assigned by the store.
    pub number: PromptNumber,
    /// The system prompt.
    pub system_prompt: String,
    /// The byte lengths of the prompt's layers, as JSON text. The store does not read it.
    pub layers: String,
    /// The tools, as JSON text.
    pub tools: String,
    /// Why it was built, in one line.
    pub reason: String,
}
