//! What a requested compaction did, or would do.

use hermes_conversation::picture::Change;
use serde::{Deserialize, Serialize};

/// What came of `/compress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "compression", rename_all = "kebab-case")]
pub enum Compression {
    /// A new view was adopted.
    Adopted,
    /// There are fewer messages than any engine folds.
    TooFew {
        /// How many there are.
        messages: usize,
        /// How many it takes.
        least: usize,
    },
    /// `compression.enabled` is false.
    Off,
    /// The engine has nothing to propose.
    Nothing,
    /// The engine failed, or its plan was refused; the user was told why.
    Failed,
    /// The user stopped it before there was a new view.
    Stopped,
}

/// What `/compress` would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// Who would do it.
    pub by: String,
    /// The engine's line.
    pub reason: String,
    /// Stretch by stretch of the view that it would make.
    pub changes: Vec<Change>,
    /// Estimated tokens of the messages before.
    pub before: u32,
    /// Estimated tokens of the messages after.
    pub after: u32,
}
