//! Messages as the log stores them.

use serde::{Deserialize, Serialize};

use crate::part::{Author, Part, ToolResult};
use crate::{Media, MessageId, fence};

/// The author's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions; never part of the log.
    System,
    /// The user.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Unique within its message.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// A JSON object, exactly as the model wrote it.
    pub arguments: String,
}

/// The origin of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The user, the model or a tool.
    #[default]
    Said,
    /// The host, to close an interrupted turn.
    Host,
}

/// A message that the store has not numbered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The author's role.
    pub role: Role,
    /// The text without additions: people, search and plugins see this text.
    pub content: String,
    /// The text that the model is sent, if it differs: with recalled memories, or a long result cut.
    pub sent: Option<String>,
    /// The model's reasoning, if the provider returns it.
    pub reasoning: Option<String>,
    /// The calls of an assistant message.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// The tool that answered.
    pub tool_name: Option<String>,
    /// The whole message, if the fields above cannot express it: pictures, files, provider payloads, failed results.
    /// Empty otherwise. Set it with [`Draft::with_parts`], which keeps the fields above consistent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The person, in a conversation with several people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// The user, model or tool, or the host.
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
            parts: Vec::new(),
            author: None,
            origin: Origin::Said,
            created_at,
        }
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>, created_at: u64) -> Self {
        Self::bare(Role::User, content.into(), created_at)
    }

    /// A message of the model.
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

    /// The same message, written by the host.
    pub fn by_host(self) -> Self {
        Self { origin: Origin::Host, ..self }
    }

    /// A message that consists of these parts. Its text fields repeat the words of the parts. The list is stored only
    /// if the fields cannot express it.
    pub fn of_parts(role: Role, parts: Vec<Part>, created_at: u64) -> Self {
        Self::bare(role, String::new(), created_at).with_parts(parts)
    }

    /// The same message with other parts.
    pub fn with_parts(mut self, parts: Vec<Part>) -> Self {
        let inner = parts.iter().find_map(|part| match part {
            Part::ToolResult(result) if self.role == Role::Tool => Some(result),
            _ => None,
        });
        if let Some(result) = inner {
            self.tool_call_id = Some(result.call_id.clone());
            self.tool_name.clone_from(&result.tool_name);
        }
        self.content = words(inner.map_or(parts.as_slice(), |result| &result.parts));
        let thoughts = parts.iter().filter_map(|part| match part {
            Part::Reasoning { text, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let thoughts = thoughts.collect::<Vec<_>>().join("\n\n");
        self.reasoning = (!thoughts.is_empty()).then_some(thoughts);
        let calls = parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.clone()),
            _ => None,
        });
        self.tool_calls = calls.collect();
        self.parts = Vec::new();
        if self.all_parts() != parts {
            self.parts = parts;
        }
        self
    }

    /// Every part of the message, in order, even if it has no list of parts.
    pub fn all_parts(&self) -> Vec<Part> {
        if !self.parts.is_empty() {
            return self.parts.clone();
        }
        let text = (!self.content.is_empty()).then(|| Part::text(self.content.clone()));
        if self.role == Role::Tool {
            return vec![Part::ToolResult(ToolResult {
                call_id: self.tool_call_id.clone().unwrap_or_default(),
                tool_name: self.tool_name.clone(),
                parts: text.into_iter().collect(),
                failed: false,
                structured: None,
                reminder: None,
            })];
        }
        let reasoning = self.reasoning.clone().map(|text| Part::Reasoning { text, payload: None });
        let calls = self.tool_calls.iter().cloned().map(Part::ToolCall);
        reasoning.into_iter().chain(text).chain(calls).collect()
    }

    /// The parts, with those of a result in place of the result.
    pub fn inner_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().flat_map(|part| match part {
            Part::ToolResult(result) => result.parts.as_slice(),
            other => std::slice::from_ref(other),
        })
    }

    /// Its pictures and files.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        self.inner_parts().filter_map(Part::media)
    }

    /// Its pictures and files, to be changed.
    pub fn media_mut(&mut self) -> impl Iterator<Item = &mut Media> {
        media_of(&mut self.parts)
    }

    /// How many pictures it has.
    pub fn images(&self) -> u32 {
        let images = self.inner_parts().filter(|part| matches!(part, Part::Image(_))).count();
        u32::try_from(images).unwrap_or(u32::MAX)
    }

    /// Its text, and a line for each part that is not text.
    pub fn told(&self) -> std::borrow::Cow<'_, str> {
        let mentions: Vec<String> = self.inner_parts().filter_map(Part::mention).collect();
        if mentions.is_empty() {
            return self.content.as_str().into();
        }
        let words = (!self.content.is_empty()).then(|| self.content.clone());
        words.into_iter().chain(mentions).collect::<Vec<_>>().join("\n").into()
    }

    /// The text, with the results of background subagents that were sent with it. Nothing else in the conversation contains these
    /// results. An engine that folds the message must know them.
    ///
    /// ```
    /// use hermes_conversation::Draft;
    ///
    /// let mut said = Draft::user("Go on.", 0);
    /// said.sent = Some("Go on.\n\n<subagent-results>\nFound.\n</subagent-results>".to_owned());
    /// assert!(said.with_results().ends_with("Found.\n</subagent-results>"));
    /// said.sent = Some("Go on.\n\n<memory-context>\nTea.\n</memory-context>".to_owned());
    /// assert_eq!(said.with_results(), "Go on.");
    /// ```
    pub fn with_results(&self) -> std::borrow::Cow<'_, str> {
        let results = self.sent.as_deref().and_then(|sent| fence::block(sent, fence::SUBAGENT_RESULTS));
        match results.filter(|results| !self.content.contains(results)) {
            None => self.content.as_str().into(),
            Some(results) if self.content.is_empty() => results.into(),
            Some(results) => format!("{}\n\n{results}", self.content).into(),
        }
    }

    /// The text that the model is sent.
    pub fn text_sent(&self) -> &str {
        self.sent.as_deref().unwrap_or(&self.content)
    }

    /// The stored message with this id.
    pub fn numbered(self, id: MessageId) -> Message {
        Message { id, draft: self }
    }
}

fn words(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } | Part::Refusal { text } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n\n")
}

/// The pictures and files of parts, including those of results.
pub(crate) fn media_of(parts: &mut [Part]) -> impl Iterator<Item = &mut Media> {
    parts
        .iter_mut()
        .flat_map(|part| match part {
            Part::ToolResult(result) => result.parts.as_mut_slice(),
            other => std::slice::from_mut(other),
        })
        .filter_map(Part::media_mut)
}

/// A stored message: never changed, never removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Its content.
    #[serde(flatten)]
    pub draft: Draft,
}

impl std::ops::Deref for Message {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

/// A message without its texts: context engines plan with headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its id.
    pub id: MessageId,
    /// The author's role.
    pub role: Role,
    /// Counted from 1. A turn begins with a message of the user.
    pub turn: u32,
    /// The id of the calling message, shared by a message with calls and the results of these calls.
    pub group: u64,
    /// The tool that answered.
    pub tool_name: Option<String>,
    /// Token estimate of text and arguments as they are sent.
    pub tokens: u32,
    /// Bytes of text and arguments as they are sent.
    pub bytes: u32,
    /// Pictures in it.
    pub images: u32,
    /// Unix time in milliseconds.
    pub created_at: u64,
}
