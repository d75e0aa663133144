//! The records of an export, version 2. A session's records are consecutive and follow those of its parent.

use std::path::PathBuf;

use hermes_conversation::{Excerpt, Message, MessageId, MessageRange, SessionId};
use serde::{Deserialize, Serialize};

use crate::{Frozen, ParentKind, RequestRecord, Totals};

pub(super) const FORMAT: &str = "hermes-sessions";
/// The version for messages with parts or authors.
pub(super) const VERSION: u32 = 2;
/// The version for other messages, which older programs can read.
pub(super) const VERSION_OF_TEXT: u32 = 1;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Record {
    Header(Header),
    Session(Box<Session>),
    Prompt(Prompt),
    Message(Box<Message>),
    Rewind(Rewind),
    View(View),
    Request(Box<RequestRecord>),
    End(End),
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) exported_at: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) source: String,
    pub(super) title: Option<String>,
    pub(super) workspace: PathBuf,
    pub(super) engine: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) context_length: u32,
    pub(super) started_at: u64,
    pub(super) updated_at: u64,
    pub(super) totals: Totals,
    pub(super) parent: Option<Parent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parent {
    pub(super) id: SessionId,
    pub(super) kind: ParentKind,
    /// The last message of the parent's conversation that belongs to this one.
    pub(super) through: Option<MessageId>,
    /// The parent's own views and rewinds up to these numbers belong to this conversation too; 0 for none.
    pub(super) view: u64,
    pub(super) rewind: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prompt {
    #[serde(flatten)]
    pub(super) frozen: Frozen,
    pub(super) created_at: u64,
}

/// The messages that were rewound in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rewind {
    pub(super) number: u64,
    pub(super) rewound_at: u64,
    pub(super) messages: Vec<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct View {
    /// Unique in the file: requests refer to it.
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) through: Option<MessageId>,
    pub(super) engine: String,
    pub(super) reason: String,
    pub(super) created_at: u64,
    /// The summaries that are new in it; others are named by their ids.
    pub(super) summaries: Vec<Summary>,
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Summary {
    /// Unique in the file.
    pub(super) id: u64,
    pub(super) key: String,
    pub(super) content: String,
    pub(super) covers: Vec<MessageRange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Item {
    Messages(MessageRange),
    Excerpt(Excerpt),
    Summary(u64),
}

/// The last line. A file without it was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) sessions: u64,
    pub(super) messages: u64,
    /// The seal of the lines before, if the home that wrote the file could seal it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seal: Option<String>,
}
