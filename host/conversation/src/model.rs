//! The model of a session, and the usage of a request.

use serde::{Deserialize, Serialize};

/// A model and its window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Model {
    /// The provider's name in the configuration, such as `openrouter` or `offline`.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub name: String,
    /// Window in tokens: prompt and reply together.
    pub context_length: u32,
}

/// Tokens as the provider billed them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// The whole prompt, its cached part included.
    pub input: u32,
    /// The reply, its reasoning included.
    pub output: u32,
    /// Part of `input` read from the provider's cache.
    pub cache_read: u32,
    /// Part of `input` written to the provider's cache.
    pub cache_write: u32,
    /// Part of `output` spent on reasoning.
    pub reasoning: u32,
}
