//! Ids in events and commands that do not come from the store.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One lifetime of a feed. Sequence numbers of different epochs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Epoch(pub String);

/// A position in the events of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The epoch of the sequence number.
    pub epoch: Epoch,
    /// The sequence number of an event.
    pub sequence: u64,
}

/// A turn, numbered from 1 within its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TurnNumber(pub u32);

/// The id that the model gave to a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(pub String);

/// A question to the user, numbered within its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct QuestionId(pub u64);

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
