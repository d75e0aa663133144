//! Whether a store is damaged.

use serde::Serialize;

/// How thorough a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Every page, but not whether indexes match their tables. Takes about as long as reading the file.
    Quick,
    /// Everything, including every message and picture.
    Full,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The schema's version.
    pub schema: u32,
    /// Sessions.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// The problems, one per line; empty if the store is sound.
    pub problems: Vec<String>,
}
