//! Why a store refuses a call.
//!
//! A message ends in `; what to do` where there is a remedy, and no text of a user or another program follows that `; `.

use std::error::Error;
use std::path::PathBuf;

use hermes_conversation::{MessageId, SessionId};

/// Why a call of a [`crate::SessionStore`] failed. Nothing of the call was stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A rule that every store enforces.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store cannot be used at all: it is damaged, or belongs to a newer version or another program.
    #[error(transparent)]
    Unusable(Box<dyn Error + Send + Sync>),
    /// This call failed: a full disk, a lock held for too long.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

/// A rule about sessions that every store enforces.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session has this id, or an id or title like it.
    #[error("no session has the id or title `{0}`; `hermes sessions list` shows those that there are")]
    UnknownSession(String),
    /// Several sessions have an id with this prefix.
    #[error("`{prefix}` fits {} sessions: {}; give more of the id", candidates.len(), shown(candidates))]
    AmbiguousSession {
        /// The prefix.
        prefix: String,
        /// All sessions that match, newest first.
        candidates: Vec<SessionId>,
    },
    /// Another process, or another task of this process, holds the session's lease.
    #[error(
        "session {session} is in use by {}; end that one first, or go on from a copy with `--branch`",
        holder(*pid)
    )]
    InUse {
        /// The session.
        session: SessionId,
        /// The process that holds the lease, where known.
        pid: Option<u32>,
    },
    /// Other sessions show messages of the session to delete.
    #[error(
        "session {session} cannot be deleted: {} from it, {}; delete them with it by `--with-children`, or keep it",
        continuing(children.len()),
        shown(children)
    )]
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
    #[error(
        "message {message} of session {session} is not the user's; take back one that is, with all that follows it"
    )]
    NotTheUsers {
        /// The session.
        session: SessionId,
        /// The message.
        message: MessageId,
    },
    /// There is no rewind to undo.
    #[error("nothing was taken back in session {0}")]
    NothingRewound(SessionId),
    /// Undoing the rewind would restore messages in front of newer ones.
    #[error(
        "something was said in session {session} since the last rewind, up to message {message}; take that back first"
    )]
    SaidSince {
        /// The session.
        session: SessionId,
        /// The last message of its conversation.
        message: MessageId,
    },
    /// A stored summary has the same key but another text or other covers.
    #[error(
        "the summary `{key}` of session {session} is stored with another text or other covers; a new one needs a new key"
    )]
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
    #[error("the title `{title}` belongs to session {holder}, and nobody has `{free}`; choose that one or another")]
    TitleTaken {
        /// The title after cleaning.
        title: String,
        /// The session that has it.
        holder: SessionId,
        /// The next free title of its series.
        free: String,
    },
    /// The workspace's path is not Unicode, so it could not be found again.
    #[error("the path {} is not valid Unicode; start from a folder whose name is", .0.display())]
    WorkspaceName(PathBuf),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn continuing(children: usize) -> String {
    if children == 1 { "a session goes on".to_owned() } else { format!("{children} sessions go on") }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_follows_the_last_semicolon_whatever_a_title_contains() {
        let text = || "fix; mallory".to_owned();
        let session = || SessionId("s".into());
        let errors = [
            SessionError::UnknownSession(text()),
            SessionError::AmbiguousSession { prefix: text(), candidates: vec![session()] },
            SessionError::SummaryChanged { session: session(), key: text() },
            SessionError::TitleTaken { title: text(), holder: session(), free: text() },
            SessionError::WorkspaceName("/home/ada; mallory/x".into()),
        ];
        for error in errors {
            let told = error.to_string();
            let (why, fix) = told.rsplit_once("; ").unwrap();
            assert!(why.contains("; mallory") && !fix.contains("mallory"), "{told}");
        }
    }
}
