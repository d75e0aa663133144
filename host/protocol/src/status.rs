//! The numbers of a status line.

use hermes_conversation::Effort;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mode::Mode;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The numbers of a status line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The model's name.
    pub model: String,
    /// The engine's name.
    pub engine: String,
    /// The estimated tokens of the next request.
    pub prompt_tokens: u32,
    /// The window in tokens.
    pub context_length: u32,
    /// How much the model should think, if that is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// What the user is asked about.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// Messages in the conversation.
    pub messages: usize,
}
