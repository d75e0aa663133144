//! What a model sees of a conversation.

use serde::{Deserialize, Serialize};

use crate::{MessageId, MessageRange};

/// A shortened message. Role, id and calls stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The message.
    pub id: MessageId,
    /// The text to show; `None` keeps the original.
    pub content: Option<String>,
    /// Arguments to show instead, by call id: each a JSON object.
    pub arguments: Vec<(String, String)>,
    /// Whether pictures and files stay. If not, a line of text names each of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_images: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A text that replaces messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Unique in the conversation: under one key, text and covers never change.
    pub key: String,
    /// What the model reads, within the host's frame.
    pub content: String,
    /// The messages that it replaces.
    pub covers: Vec<MessageRange>,
}

/// A part of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Item {
    /// Messages in full.
    Messages(MessageRange),
    /// A shortened message.
    Excerpt(Excerpt),
    /// A text that replaces others.
    Summary(Summary),
}

/// An ordered list of items. Messages stored later follow them in full.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Oldest first.
    pub items: Vec<Item>,
    /// The newest message that the items account for. `None` means that the whole conversation follows.
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
