//! Sessions: who talks to which model where, and which session they continue.

use std::path::PathBuf;

use hermes_conversation::{MessageId, Model, SessionId};
use serde::{Deserialize, Serialize};

use crate::Frozen;

/// How a session relates to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParentKind {
    /// A copy of the parent's conversation that continues on its own.
    Branch,
    /// The same conversation in a new session.
    Continuation,
    /// A delegated task without the parent's conversation.
    Delegate,
}

impl ParentKind {
    /// The name under which a store keeps it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Continuation => "continuation",
            Self::Delegate => "delegate",
        }
    }

    /// The kind with this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Branch, Self::Continuation, Self::Delegate].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The session that another session continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parent {
    /// Its id.
    pub id: SessionId,
    /// How the child relates to it.
    pub kind: ParentKind,
    /// The last message of the parent's conversation that belongs to the child.
    ///
    /// In a [`NewSession`], `None` means the last message at that moment; later messages of the parent never belong to
    /// the child. In a stored [`Session`], `None` means that the child has no message of the parent.
    pub through: Option<MessageId>,
}

/// A session to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The front end, such as `cli`.
    pub source: String,
    /// The folder in which the session works.
    pub workspace: PathBuf,
    /// The name of the context engine.
    pub engine: String,
    /// The model that answers.
    pub model: Model,
    /// The store cleans the title, and numbers it where necessary, as in `set_title`.
    pub title: Option<String>,
    /// `None` until the prompt is frozen; a branch inherits its parent's.
    pub frozen: Option<Frozen>,
    /// Unix time in milliseconds. The id shows it in local time.
    pub started_at: u64,
    /// The session to continue.
    pub parent: Option<Parent>,
}

impl NewSession {
    /// A branch: same front end, folder, engine and model, and the conversation up to a message or to the end. Without a
    /// title, it gets the next number of its parent's title.
    #[must_use]
    pub fn branch_of(parent: Session, through: Option<MessageId>, title: Option<&str>, started_at: u64) -> Self {
        Self {
            source: parent.source,
            workspace: parent.workspace,
            engine: parent.engine,
            model: parent.model,
            title: title.map(str::to_owned).or(parent.title),
            frozen: None,
            started_at,
            parent: Some(Parent { id: parent.id, kind: ParentKind::Branch, through }),
        }
    }
}

/// Sums over all requests of a session; [`hermes_conversation::Usage`] defines the token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named as in `Usage`")]
pub struct Totals {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub reasoning: u64,
    /// Requests to the model.
    pub requests: u64,
    /// US dollars, counting the requests whose price is known.
    pub cost: f64,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Session {
    /// `YYYYMMDD_HHMMSS_` in local time and six hexadecimal digits.
    pub id: SessionId,
    /// The front end, such as `cli`.
    pub source: String,
    /// Chosen by the user or generated.
    pub title: Option<String>,
    /// The folder in which the session works.
    pub workspace: PathBuf,
    /// The name of the context engine.
    pub engine: String,
    /// The model that answers.
    pub model: Model,
    /// The newest frozen prompt; `None` before the first request is built.
    pub frozen: Option<Frozen>,
    /// Unix time in milliseconds.
    pub started_at: u64,
    /// Creation time of the newest message, in Unix milliseconds.
    pub updated_at: u64,
    /// Visible messages of this session, without those of a parent.
    pub message_count: u64,
    /// Tokens so far.
    pub totals: Totals,
    /// The session that this one continues.
    pub parent: Option<Parent>,
    /// Whether the session came from somebody's file, and the user has not decided yet about the folder and the prompt that
    /// the file names.
    pub imported: bool,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// The front end, such as `cli`.
    pub source: String,
    /// Unix time in milliseconds.
    pub started_at: u64,
    /// Creation time of its newest message, in Unix milliseconds.
    pub updated_at: u64,
    /// Visible messages of its own, without those of a parent.
    pub message_count: u64,
    /// Visible messages of its conversation, with those that it has from its parents.
    pub conversation_messages: u64,
    /// The session's folder.
    pub workspace: PathBuf,
    /// The model that answers.
    pub model: Model,
    /// The session that it continues.
    pub parent: Option<Parent>,
    /// The first 60 characters that the user wrote, on one line; empty if the user wrote nothing. A session without messages of
    /// its own has those of its parents.
    pub preview: String,
    /// Whether it came from somebody's file, and waits for the user's decision about the folder and prompt of the file.
    pub imported: bool,
}

/// What a deletion removes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Deletion {
    /// The deleted sessions: those named, their delegates, and children where requested. Children precede parents.
    pub sessions: Vec<SessionId>,
    /// Sessions that lose their parent but contain none of its messages: they stay, without a parent.
    pub detached: Vec<SessionId>,
}

/// Consecutive failures of a context engine in one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFaults {
    /// The engine's name and version.
    pub engine: String,
    /// Failures without a success in between.
    pub in_a_row: u32,
    /// The cause of the last failure.
    pub cause: String,
}
