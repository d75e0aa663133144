//! Requests of plugins to the user's models, and the replies.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hermes_capabilities::Fault;
use hermes_conversation::{Media, Model, Role, Usage};

/// A request that a plugin makes to the user's models.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The task, such as `compression` or `memory`.
    pub task: String,
    /// The messages; none of `Role::Tool`.
    pub messages: Vec<PromptMessage>,
    /// The most tokens of the reply.
    pub max_tokens: Option<u32>,
    /// The sampling temperature, passed to the provider unchanged.
    pub temperature: Option<f32>,
    /// A JSON Schema that the reply must follow.
    pub schema: Option<String>,
}

/// A message of a prompt.
#[derive(Debug, Clone)]
pub struct PromptMessage {
    /// Its author.
    pub role: Role,
    /// Its parts, at least one.
    pub content: Vec<PromptPart>,
}

/// A part of a message of a prompt.
#[derive(Debug, Clone)]
pub enum PromptPart {
    /// A text.
    Text(String),
    /// A picture, with its bytes.
    Image(Media),
}

impl PromptMessage {
    /// A message of text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![PromptPart::Text(text.into())] }
    }

    /// Its texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|part| match part {
            PromptPart::Text(text) => Some(text.as_str()),
            PromptPart::Image(_) => None,
        })
    }

    /// Its pictures.
    pub fn images(&self) -> impl Iterator<Item = &Media> {
        self.content.iter().filter_map(|part| match part {
            PromptPart::Image(image) => Some(image),
            PromptPart::Text(_) => None,
        })
    }
}

impl ModelRequest {
    /// The texts of all messages.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(PromptMessage::texts)
    }

    /// The pictures of all messages.
    pub fn images(&self) -> impl Iterator<Item = &Media> {
        self.messages.iter().flat_map(PromptMessage::images)
    }
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The reply is complete.
    Stop,
    /// The reply reached the token limit.
    Length,
    /// The model or its provider refused.
    Refused,
}

/// A model's reply to a plugin.
#[derive(Debug, Clone)]
pub struct ModelReply {
    /// The text.
    pub text: String,
    /// Why the model stopped.
    pub finish: Finish,
    /// The name of the model that answered.
    pub model: String,
    /// The tokens that the request used.
    pub usage: Usage,
}

/// A piece of a reply that arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// More of the text.
    Text(String),
    /// More of the reasoning.
    Reasoning(String),
}

/// Where the pieces of a reply go while it arrives: to a caller that streams, or nowhere. Clones share the pieces.
#[derive(Debug, Clone, Default)]
pub struct Pieces(Option<Arc<Mutex<Kept>>>);

#[derive(Debug, Default)]
struct Kept {
    queue: VecDeque<Piece>,
    /// All bytes so far, taken or not.
    bytes: u64,
}

impl Pieces {
    /// The caller waits for the whole reply.
    pub fn ignored() -> Self {
        Self(None)
    }

    /// The caller takes the pieces.
    pub fn kept() -> Self {
        Self(Some(Arc::default()))
    }

    /// Whether the caller takes the pieces.
    pub fn are_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a piece. It joins the last one if the caller has not taken that one yet.
    pub fn push(&self, piece: Piece) {
        let Some(mut kept) = self.locked() else { return };
        let (Piece::Text(text) | Piece::Reasoning(text)) = &piece;
        kept.bytes += text.len() as u64;
        match (kept.queue.back_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) | (Some(Piece::Reasoning(text)), Piece::Reasoning(more)) => {
                text.push_str(&more)
            }
            (_, piece) => kept.queue.push_back(piece),
        }
    }

    /// The first piece that was not taken yet.
    pub fn take(&self) -> Option<Piece> {
        self.locked()?.queue.pop_front()
    }

    /// The bytes of all pieces so far.
    pub fn bytes(&self) -> u64 {
        self.locked().map_or(0, |kept| kept.bytes)
    }

    fn locked(&self) -> Option<MutexGuard<'_, Kept>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The user's models, for the imports `llm` and `llm-stream`.
#[async_trait]
pub trait Models: Send + Sync {
    /// The model that serves a task; an error with code `no-model` if there is none.
    fn resolve(&self, task: &str) -> Result<Model, Fault>;
    /// Sends one request, and passes on the reply's pieces as they arrive. The future is dropped when the plugin's time is up, or when
    /// the plugin drops the generation. A provider that does not stream passes on no pieces.
    async fn stream(&self, request: ModelRequest, pieces: &Pieces) -> Result<ModelReply, Fault>;
    /// Sends one request and waits for the whole reply.
    async fn complete(&self, request: ModelRequest) -> Result<ModelReply, Fault> {
        self.stream(request, &Pieces::ignored()).await
    }
    /// The same models for one plugin, if it matters who asks.
    fn of_plugin(&self, _plugin: &str) -> Option<Arc<dyn Models>> {
        None
    }
    /// Estimates the tokens of a text for the session's model.
    fn count_tokens(&self, text: &str) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_kind_are_joined_until_they_are_taken() {
        let pieces = Pieces::kept();
        for piece in ["a", "b"] {
            pieces.push(Piece::Text(piece.to_owned()));
        }
        pieces.push(Piece::Reasoning("c".to_owned()));
        assert_eq!(pieces.take(), Some(Piece::Text("ab".to_owned())));
        pieces.push(Piece::Text("d".to_owned()));
        assert_eq!(pieces.take(), Some(Piece::Reasoning("c".to_owned())));
        assert_eq!((pieces.take(), pieces.take()), (Some(Piece::Text("d".to_owned())), None));
    }
}
