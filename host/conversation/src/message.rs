//! Messages as the log keeps them.

use serde::{Deserialize, Serialize};

use crate::part::{Author, Part, ToolResult};
use crate::{Media, MessageId};

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
    /// The whole message, where the fields above cannot say all of it: pictures, files, payloads of providers. Empty
    /// otherwise. Set it with [`Draft::with_parts`], which keeps the fields above in step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Which person, where several talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
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
            parts: Vec::new(),
            author: None,
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

    /// A message of these parts. Its text fields become what the parts say in words; the list itself is kept only where
    /// the fields cannot say all of it.
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

    /// Every part of the message, in order, whether it has a list of parts or not.
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
            })];
        }
        let reasoning = self.reasoning.clone().map(|text| Part::Reasoning { text, payload: None });
        let calls = self.tool_calls.iter().cloned().map(Part::ToolCall);
        reasoning.into_iter().chain(text).chain(calls).collect()
    }

    /// The parts without the layer of results: what was said, or what a tool answered.
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

    /// Its words, and a line for each part that is not words.
    pub fn told(&self) -> std::borrow::Cow<'_, str> {
        let mentions: Vec<String> = self.inner_parts().filter_map(Part::mention).collect();
        if mentions.is_empty() {
            return self.content.as_str().into();
        }
        let words = (!self.content.is_empty()).then(|| self.content.clone());
        words.into_iter().chain(mentions).collect::<Vec<_>>().join("\n").into()
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

fn words(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } | Part::Refusal { text } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n\n")
}

/// The pictures and files of parts, those of results too.
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
    /// Pictures in it.
    pub images: u32,
    /// Unix time in milliseconds.
    pub created_at: u64,
}
