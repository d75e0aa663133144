//! Messages as the log keeps them.

use serde::{Deserialize, Serialize};

use crate::MessageId;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions; never part of the log.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool's answer to a call.
    Tool,
}

impl Role {
    /// The name on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// The reverse of [`Role::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Role::System, Role::User, Role::Assistant, Role::Tool].into_iter().find(|role| role.as_str() == text)
    }
}

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Unique among the tools of a session.
    pub name: String,
    /// For the model.
    pub description: String,
    /// A JSON Schema object, as text.
    pub parameters: String,
}

/// A call that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the message that makes it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// A JSON object, exactly as the model wrote it.
    pub arguments: String,
}

/// Where a message comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A person, a model or a tool said it.
    #[default]
    Said,
    /// The host wrote it, to close what an interrupt or a crash left open.
    Host,
}

/// A message that the store has not numbered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Who speaks.
    pub role: Role,
    /// What was said, clean: this is what people, search and plugins see.
    pub content: String,
    /// What the model is sent where that differs: recalled memory behind it, a long result cut.
    pub sent: Option<String>,
    /// The model's reasoning, where the provider gives it.
    pub reasoning: Option<String>,
    /// Calls that an assistant message makes.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// The tool that answered.
    pub tool_name: Option<String>,
    /// Who wrote it.
    pub origin: Origin,
    /// Unix time in milliseconds.
    pub created_at: u64,
}

impl Draft {
    fn bare(role: Role, content: String, created_at: u64) -> Self {
        Self {
            role,
            content,
            sent: None,
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            origin: Origin::Said,
            created_at,
        }
    }

    /// What a person said.
    pub fn user(content: impl Into<String>, created_at: u64) -> Self {
        Self::bare(Role::User, content.into(), created_at)
    }

    /// What the model answered.
    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ToolCall>, created_at: u64) -> Self {
        Self { tool_calls, ..Self::bare(Role::Assistant, content.into(), created_at) }
    }

    /// A tool's answer to a call.
    pub fn result(call: &ToolCall, content: impl Into<String>, created_at: u64) -> Self {
        Self {
            tool_call_id: Some(call.id.clone()),
            tool_name: Some(call.name.clone()),
            ..Self::bare(Role::Tool, content.into(), created_at)
        }
    }

    /// The same, written by the host.
    pub fn by_host(self) -> Self {
        Self { origin: Origin::Host, ..self }
    }

    /// The text that the model is sent.
    pub fn text_sent(&self) -> &str {
        self.sent.as_deref().unwrap_or(&self.content)
    }

    /// With a number from the store.
    pub fn numbered(self, id: MessageId) -> Message {
        Message { id, draft: self }
    }
}

/// A stored message: never changed, never removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its number.
    pub id: MessageId,
    /// What it says.
    #[serde(flatten)]
    pub draft: Draft,
}

impl std::ops::Deref for Message {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

/// A message without its texts: what context engines plan with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its number.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// Counts from 1: a turn begins with what the user said.
    pub turn: u32,
    /// A message that calls tools and the results that answer it share one: the id of the caller.
    pub group: u64,
    /// The tool that answered.
    pub tool_name: Option<String>,
    /// Estimate of what it costs as it is sent: text and arguments.
    pub tokens: u32,
    /// Bytes of text and arguments as they are sent.
    pub bytes: u32,
    /// Unix time in milliseconds.
    pub created_at: u64,
}
