//! The outcome of a requested compaction, and its preview.

use hermes_conversation::picture::Change;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of `/compress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "compression", rename_all = "kebab-case")]
pub enum Compression {
    /// A new view was adopted.
    Adopted,
    /// The conversation is too short to fold.
    TooFew {
        /// Messages in the conversation.
        messages: usize,
        /// Messages that a compaction needs.
        least: usize,
    },
    /// `compression.enabled` is false.
    Off,
    /// The engine proposed nothing.
    Nothing,
    /// The engine failed, or its plan was refused. A notice gave the reason.
    Failed,
    /// The user stopped the compaction before a new view was adopted.
    Stopped,
}

/// The preview of `/compress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompressionPreview {
    /// The engine that made the plan.
    pub by: String,
    /// The engine's reason, one line.
    pub reason: String,
    /// The changes, one for each part of the new view.
    pub changes: Vec<Change>,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
}
