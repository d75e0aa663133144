//! Searches within one conversation.

use hermes_conversation::{MessageId, MessageRange, Role, SessionId};

/// How the words of a query must occur in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// At least one of them; more is better. What was said beside good hits may be a hit too: an answer often has none of the
    /// words of its question.
    Any,
    /// All of them.
    All,
    /// Exactly this text, ignoring case, from three characters on.
    Phrase,
}

/// A search within one conversation. Every text is valid; none has operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageQuery {
    /// The text to find.
    pub text: String,
    /// How its words must occur.
    pub words: Words,
    /// Restricts the author; empty for everyone.
    pub roles: Vec<Role>,
    /// Restricts the tool that was called or answered; empty for all messages.
    pub tools: Vec<String>,
    /// Restricts the messages.
    pub within: Option<MessageRange>,
    /// Hits to skip.
    pub offset: usize,
    /// Hits to return.
    pub limit: usize,
}

/// A message that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// The message.
    pub message: MessageId,
    /// The session that stored it.
    pub session: SessionId,
    /// About 600 characters around the best match.
    pub excerpt: String,
    /// Higher is better. Scores of different searches are not comparable.
    pub score: f64,
}
