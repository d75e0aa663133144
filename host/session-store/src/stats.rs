//! What a store contains, and how large it is.

use serde::Serialize;

use crate::Totals;

/// Statistics of the store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// All sessions.
    pub sessions: u64,
    /// Delegates among them.
    pub delegates: u64,
    /// Messages, by role and in total.
    pub messages: Messages,
    /// Tokens, requests and dollars of all sessions.
    pub totals: Totals,
    /// When the oldest session began; Unix time in milliseconds.
    pub oldest: Option<u64>,
    /// Time of the newest message.
    pub newest: Option<u64>,
    /// Bytes on the disk.
    pub sizes: Sizes,
}

/// Messages in the log, rewound ones included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named as in `Role`")]
pub struct Messages {
    pub user: u64,
    pub assistant: u64,
    pub tool: u64,
    /// Rewound messages among these.
    pub rewound: u64,
}

/// Bytes on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The database file.
    pub file: u64,
    /// The write-ahead log beside it.
    pub log: u64,
    /// Free bytes of the file, which new rows will use.
    pub free: u64,
    /// Bytes of each table and index by name, largest first.
    pub parts: Vec<(String, u64)>,
}
