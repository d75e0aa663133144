//! Searches across sessions.

use hermes_conversation::{MessageId, Role, SessionId};
use serde::Serialize;

/// A search in the messages of all sessions but delegates. Every text is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallQuery {
    /// The text to find.
    pub text: String,
    /// How the text is read.
    pub reading: Reading,
    /// Restricts the author; empty for everyone.
    pub roles: Vec<Role>,
    /// Restricts the front end; empty for all.
    pub sources: Vec<String>,
    /// Front ends to leave out.
    pub without_sources: Vec<String>,
    /// Leaves out the sessions that belong together with this one: those that it continues, and those that continue them.
    pub asking: Option<SessionId>,
    /// Created at this time or later, in Unix milliseconds.
    pub since: Option<u64>,
    /// Created before this time, in Unix milliseconds.
    pub until: Option<u64>,
    /// The order of the findings.
    pub order: RecallOrder,
    /// The most findings.
    pub limit: usize,
    /// The most neighbours on either side of each.
    pub neighbours: usize,
}

/// How the text of a [`RecallQuery`] is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Words without operators: at least one must occur, and more are better. In the order [`RecallOrder::Best`], what was said
    /// beside good findings may be a finding too.
    Words,
    /// The query language: all words must occur, `OR` separates alternatives, quotes enclose phrases.
    Language,
}

/// The order of findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecallOrder {
    /// Best first.
    #[default]
    Best,
    /// Newest first.
    Newest,
    /// Oldest first.
    Oldest,
}

/// A message that a [`RecallQuery`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The message.
    pub message: MessageId,
    /// The session that stored it.
    pub session: SessionId,
    /// The oldest session from which that one continues.
    pub origin: SessionId,
    /// The session's title.
    pub title: Option<String>,
    /// The front end, such as `cli`.
    pub source: String,
    /// Whether the session came from somebody's file and waits for the user's decision.
    pub imported: bool,
    /// The author's role.
    pub role: Role,
    /// The tool that answered.
    pub tool_name: Option<String>,
    /// Unix time in milliseconds.
    pub created_at: u64,
    /// Whether it matches; otherwise it stands beside messages that do.
    pub matches: bool,
    /// About 600 characters around the best match.
    pub excerpt: String,
    /// The byte of the excerpt at which the first match begins.
    pub focus: usize,
    /// The nearest messages before it in its session, oldest first: of the user and the model, and with text.
    pub before: Vec<Neighbour>,
    /// The nearest messages after it, likewise.
    pub after: Vec<Neighbour>,
}

/// The beginning of a message next to a found one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    /// The message.
    pub message: MessageId,
    /// The author's role.
    pub role: Role,
    /// The first 200 characters.
    pub text: String,
}
