//! Identifiers. Each has its own type, so that they cannot be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Identity of a message in the store. Ids grow in conversation order and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct MessageId(pub u64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identity of a session, such as `20261121_223301_9f3a1c`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SessionId(pub String);

impl SessionId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identity of a stored view. The store assigns it; equal ids mean the same view, and no other meaning is promised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ViewId(pub u64);

impl ViewId {
    /// The view of a session that was never compacted: the whole conversation follows it.
    pub const WHOLE: Self = Self(0);
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The messages of one conversation whose ids lie between two ids, both included.
///
/// Ids in between may belong to other conversations: a range names only what the conversation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageRange {
    /// The lowest id.
    pub first: MessageId,
    /// The highest id.
    pub last: MessageId,
}

impl MessageRange {
    /// A range of one.
    pub fn one(id: MessageId) -> Self {
        Self { first: id, last: id }
    }

    /// From one id to another, both included.
    pub fn new(first: MessageId, last: MessageId) -> Self {
        Self { first, last }
    }

    /// Whether an id lies in it.
    pub fn contains(&self, id: MessageId) -> bool {
        self.first <= id && id <= self.last
    }
}

impl fmt::Display for MessageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}
