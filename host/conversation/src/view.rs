//! What a model sees of a conversation.

use serde::{Deserialize, Serialize};

use crate::{MessageId, MessageRange};

/// One message shown shorter than it was said. Role, id and tool linkage stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The message.
    pub id: MessageId,
    /// The text to show; none leaves it as it is.
    pub content: Option<String>,
    /// By call id, the arguments to show instead: each a JSON object.
    pub arguments: Vec<(String, String)>,
}

/// A text that stands for messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Unique in the conversation: under one key, text and covers never change.
    pub key: String,
    /// What the model reads, in the host's frame.
    pub content: String,
    /// The messages it stands for.
    pub covers: Vec<MessageRange>,
}

/// A part of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Item {
    /// Messages as they are sent.
    Messages(MessageRange),
    /// A message shown shorter.
    Excerpt(Excerpt),
    /// A text that stands for others.
    Summary(Summary),
}

/// An ordered list of items; messages stored after it was made follow it as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Oldest first.
    pub items: Vec<Item>,
    /// The newest message that the items account for. None: the whole conversation follows.
    pub through: Option<MessageId>,
}

impl View {
    /// The summaries in it, oldest first.
    pub fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.items.iter().filter_map(|item| match item {
            Item::Summary(summary) => Some(summary),
            _ => None,
        })
    }
}
