//! Requests of servers to a model of the user (sampling): what is asked, within limits.
//!
//! A server sees nothing of the session: only its own messages are sent, whatever context it wants included.

// The protocol calls sampling deprecated since its version 2026-07-28; servers of earlier versions use it.
#![allow(deprecated)]

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage, SamplingMessageContentBlock,
};

use crate::limits;

/// What a server asks a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Instructions for the model.
    pub system: Option<String>,
    /// The messages, each with its author.
    pub messages: Vec<(Author, String)>,
    /// The most tokens of the reply.
    pub max_tokens: u32,
    /// The sampling temperature.
    pub temperature: Option<f32>,
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The server, in the role of the user.
    User,
    /// The model.
    Model,
}

/// The reply of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Its text.
    pub text: String,
    /// The model's name.
    pub model: String,
    /// Whether it ended because of its length.
    pub is_cut: bool,
}

impl Sampling {
    /// Reads a request, or says why it cannot be carried out.
    pub(crate) fn of(request: CreateMessageRequestParams) -> Result<Self, String> {
        if request.tools.is_some_and(|tools| !tools.is_empty()) {
            return Err("the model gets no tools here".to_owned());
        }
        let mut messages = Vec::with_capacity(request.messages.len().min(limits::SAMPLED_MESSAGES));
        let mut bytes = request.system_prompt.as_deref().map_or(0, str::len);
        for message in request.messages {
            let author = match message.role {
                Role::User => Author::User,
                Role::Assistant => Author::Model,
            };
            for block in message.content.into_vec() {
                let SamplingMessageContentBlock::Text(text) = block else {
                    return Err("only text can be sent to the model".to_owned());
                };
                bytes += text.text.len();
                messages.push((author, text.text));
            }
        }
        if messages.is_empty() {
            return Err("there is no message".to_owned());
        }
        if messages.len() > limits::SAMPLED_MESSAGES || bytes > limits::SAMPLED {
            return Err(format!(
                "it has {} messages with {bytes} bytes; at most {} with {} are sent",
                messages.len(),
                limits::SAMPLED_MESSAGES,
                limits::SAMPLED
            ));
        }
        Ok(Self {
            system: request.system_prompt.filter(|text| !text.trim().is_empty()),
            messages,
            max_tokens: request.max_tokens.clamp(1, limits::SAMPLED_TOKENS),
            temperature: request.temperature,
        })
    }
}

impl From<Sampled> for CreateMessageResult {
    fn from(sampled: Sampled) -> Self {
        let message = SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(sampled.text));
        let reason = if sampled.is_cut { Self::STOP_REASON_END_MAX_TOKEN } else { Self::STOP_REASON_END_TURN };
        Self::new(message, sampled.model).with_stop_reason(reason)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(request: Value) -> Result<Sampling, String> {
        Sampling::of(serde_json::from_value(request).unwrap())
    }

    fn user(content: Value) -> Value {
        json!({ "role": "user", "content": content })
    }

    #[test]
    fn a_request_is_text_within_limits() {
        let text = user(json!({ "type": "text", "text": "Name a bird." }));
        let request =
            json!({ "messages": [text], "maxTokens": 1_000_000, "systemPrompt": " ", "includeContext": "allServers" });
        let read_one = read(request).unwrap();
        assert_eq!(read_one.messages, [(Author::User, "Name a bird.".to_owned())]);
        assert_eq!((read_one.max_tokens, read_one.system), (limits::SAMPLED_TOKENS, None));
        for (request, why) in [
            (json!({ "messages": [], "maxTokens": 1 }), "there is no message"),
            (
                json!({ "messages": [user(json!({ "type": "image", "data": "", "mimeType": "image/png" }))], "maxTokens": 1 }),
                "only text",
            ),
            (
                json!({ "messages": [user(json!({ "type": "text", "text": "x".repeat(limits::SAMPLED + 1) }))], "maxTokens": 1 }),
                "at most",
            ),
            (json!({ "messages": vec![text.clone(); limits::SAMPLED_MESSAGES + 1], "maxTokens": 1 }), "at most"),
            (
                json!({ "messages": [text], "maxTokens": 1, "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }),
                "no tools",
            ),
        ] {
            let refused = read(request).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
