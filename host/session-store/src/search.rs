//! Searches within one conversation, and in the messages of all sessions.

use std::path::PathBuf;

use hermes_conversation::{MessageId, MessageRange, Role, SessionId};
use serde::Serialize;

use crate::Neighbour;

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

/// A search. Filters that are `None` allow everything; empty lists allow nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// The text of the query.
    pub text: String,
    /// How the text is read.
    pub matching: Matching,
    /// Roles of the messages.
    pub roles: Option<Vec<Role>>,
    /// Front ends of the sessions, such as `cli`.
    pub sources: Option<Vec<String>>,
    /// Front ends to leave out.
    pub without_sources: Vec<String>,
    /// Only this session, without the messages of its parent.
    pub session: Option<SessionId>,
    /// Sessions to leave out.
    pub without_sessions: Vec<SessionId>,
    /// Whether delegated tasks are searched too.
    pub delegates: bool,
    /// Only in sessions of this folder.
    pub workspace: Option<PathBuf>,
    /// The tool that was called or answered.
    pub tools: Option<Vec<String>>,
    /// Only these messages.
    pub within: Option<MessageRange>,
    /// Created at this time or later, in Unix milliseconds.
    pub since: Option<u64>,
    /// Created before this time, in Unix milliseconds.
    pub until: Option<u64>,
    /// The order of hits.
    pub sort: Sort,
    /// The maximum number of hits.
    pub limit: usize,
    /// The number of hits to skip.
    pub offset: usize,
}

/// How the text of a query is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Matching {
    /// In the language of `docs/use/search.md`.
    #[default]
    Language,
    /// Words without operators; at least one must occur. For questions: in the order of rank, messages beside good hits are hits
    /// too, because an answer often has none of the words of its question.
    Any,
    /// Words without operators; all must occur.
    All,
    /// Exactly this text, ignoring case: any part of a message, from three characters on.
    Phrase,
}

/// The order of hits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Best first. Newest first if hits cannot be ranked.
    #[default]
    Rank,
    /// Newest first.
    Newest,
    /// Oldest first.
    Oldest,
}

impl SearchQuery {
    /// Searches all messages for the best twenty hits.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            matching: Matching::Language,
            roles: None,
            sources: None,
            without_sources: Vec::new(),
            session: None,
            without_sessions: Vec::new(),
            delegates: true,
            workspace: None,
            tools: None,
            within: None,
            since: None,
            until: None,
            sort: Sort::Rank,
            limit: 20,
            offset: 0,
        }
    }
}

/// A found message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The message.
    pub message: MessageId,
    /// Its session.
    pub session: SessionId,
    /// The session's title.
    pub title: Option<String>,
    /// The author's role.
    pub role: Role,
    /// The tool that answered.
    pub tool_name: Option<String>,
    /// Unix time in milliseconds.
    pub created_at: u64,
    /// The front end, such as `cli`.
    pub source: String,
    /// The session's model.
    pub model: String,
    /// When the session started, in Unix milliseconds.
    pub session_started_at: u64,
    /// The part of the message that shows why it was found.
    pub snippet: Vec<Fragment>,
    /// The message before it in its session.
    pub before: Option<Neighbour>,
    /// The message after it.
    pub after: Option<Neighbour>,
}

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fragment {
    /// The text of the message; `…` if something was left out before or after it.
    pub text: String,
    /// Whether it matches the query.
    pub matched: bool,
}
