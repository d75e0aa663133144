//! Why a store refuses a call. `Display` gives the cause; `diagnosis.rs` has the remedies.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use hermes_conversation::{MessageId, SessionId};
use hermes_diagnostic::{Diagnose, Parts};

/// Why a call of a [`crate::SessionStore`] failed. Nothing of the call was stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A rule that every store enforces.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A file of sessions cannot be written or read.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The store cannot be used at all: it is damaged, or belongs to a newer version or another program.
    #[error(transparent)]
    Unusable(AdapterError),
    /// This call failed: a full disk, a lock held for too long.
    #[error(transparent)]
    Failed(AdapterError),
}

/// An error of the adapter, with the adapter's own code and remedy.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct AdapterError {
    parts: Box<Parts>,
    #[source]
    error: Box<dyn Error + Send + Sync>,
}

impl AdapterError {
    /// Keeps the diagnosis of the error.
    pub fn new<E: Diagnose + Error + Send + Sync + 'static>(error: E) -> Self {
        Self { parts: Box::new(error.parts()), error: Box::new(error) }
    }
}

impl Diagnose for AdapterError {
    fn parts(&self) -> Parts {
        Parts::clone(&self.parts)
    }
}

/// Why a file of sessions cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// An export cannot be written to its destination.
    #[error("the export cannot be written: {0}")]
    Output(io::Error),
    /// The file to import cannot be read.
    #[error("the file cannot be read: {0}")]
    Input(io::Error),
    /// The file to import is not an export, or is invalid.
    #[error("line {line}: {problem}")]
    Import {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: ImportProblem,
    },
    /// An import stopped in the middle.
    #[error("the import stopped after {stored} sessions, each of them whole: {source}")]
    ImportStopped {
        /// Sessions that are stored.
        stored: u64,
        /// The reason.
        source: AdapterError,
    },
}

/// Why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// The file has no line.
    #[error("the file is empty")]
    Empty,
    /// The first line is not the header of an export.
    #[error("this is not an export of sessions: the header is missing")]
    NoHeader,
    /// A newer version of Hermes wrote the file.
    #[error("the export has version {found}, and this version of Hermes reads versions up to {known}")]
    Newer {
        /// The version in the header.
        found: u32,
        /// The newest version that can be read.
        known: u32,
    },
    /// The last line is missing.
    #[error("the file was cut off: its end is missing")]
    CutOff,
    /// The last line counts other records than the file contains.
    #[error("the end record counts {counted}, but the file contains {found}")]
    Counts {
        /// What the last line counts.
        counted: String,
        /// What the file contains.
        found: String,
    },
    /// A record is invalid.
    #[error("{0}")]
    Record(String),
}

impl From<String> for ImportProblem {
    fn from(problem: String) -> Self {
        Self::Record(problem)
    }
}

impl From<&str> for ImportProblem {
    fn from(problem: &str) -> Self {
        Self::Record(problem.to_owned())
    }
}

/// A rule about sessions that every store enforces.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session has this id, or an id or title like it.
    #[error("no session has the id or title `{0}`")]
    UnknownSession(String),
    /// Several sessions have an id with this prefix.
    #[error("`{prefix}` fits {} sessions: {}", candidates.len(), shown(candidates))]
    AmbiguousSession {
        /// The prefix.
        prefix: String,
        /// All sessions that match, newest first.
        candidates: Vec<SessionId>,
    },
    /// Another process, or another task of this process, holds the session's lease.
    #[error(
        "session {session} is in use by {}",
        holder(*pid)
    )]
    InUse {
        /// The session.
        session: SessionId,
        /// The process that holds the lease, where known.
        pid: Option<u32>,
    },
    /// Other sessions show messages of the session to delete.
    #[error("{}", continuing(session, children))]
    HasChildren {
        /// The session.
        session: SessionId,
        /// The sessions that show its messages.
        children: Vec<SessionId>,
    },
    /// The conversation does not contain the message.
    #[error("message {message} is not part of the conversation of session {session}")]
    NoSuchMessage {
        /// The session.
        session: SessionId,
        /// The message.
        message: MessageId,
    },
    /// A rewind must begin at a message of the user.
    #[error("message {message} of session {session} is not a message of the user")]
    NotTheUsers {
        /// The session.
        session: SessionId,
        /// The message.
        message: MessageId,
    },
    /// There is no rewind to undo.
    #[error("session {0} has no rewind to undo")]
    NothingRewound(SessionId),
    /// Undoing the rewind would restore messages in front of newer ones.
    #[error("session {session} has newer messages than the last rewind, up to message {message}")]
    SaidSince {
        /// The session.
        session: SessionId,
        /// The last message of its conversation.
        message: MessageId,
    },
    /// A stored summary has the same key but another text or other covers.
    #[error("the summary `{key}` of session {session} is stored with another text or other covers")]
    SummaryChanged {
        /// The session.
        session: SessionId,
        /// The key.
        key: String,
    },
    /// A system message was appended to the log.
    #[error("a system message cannot be stored in the log: the system prompt is kept with the session")]
    SystemMessage,
    /// The title is too long to display.
    #[error("the title has {length} characters, at most {most} are allowed")]
    TitleTooLong {
        /// Its length after cleaning.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// Another session has the title.
    #[error("the title `{title}` belongs to session {holder}, and `{free}` is free")]
    TitleTaken {
        /// The title after cleaning.
        title: String,
        /// The session that has it.
        holder: SessionId,
        /// The next free title of its series.
        free: String,
    },
    /// The workspace's path is not Unicode, so it could not be found again.
    #[error("the path {} is not valid Unicode", .0.display())]
    WorkspaceName(PathBuf),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn continuing(session: &SessionId, children: &[SessionId]) -> String {
    match children {
        [child] => format!("session {child} continues session {session}"),
        _ => format!("{} sessions continue session {session}: {}", children.len(), shown(children)),
    }
}

/// The first few sessions.
fn shown(candidates: &[SessionId]) -> String {
    const MOST: usize = 8;
    let mut text: Vec<&str> = candidates.iter().take(MOST).map(SessionId::as_str).collect();
    if candidates.len() > MOST {
        text.push("…");
    }
    text.join(", ")
}
