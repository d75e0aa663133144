//! Export and import of sessions: a file with one JSON record per line. `docs/use/sessions.md` describes the format.

use std::io::{BufRead, Seek};
use std::path::PathBuf;

use hermes_conversation::SessionId;
use serde::Serialize;

/// How the records of an export are arranged in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One JSON object per line.
    Lines,
    /// The same objects as elements of one JSON array.
    Array,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Sessions.
    pub sessions: u64,
    /// Their messages.
    pub messages: u64,
}

/// A file to import. It is read more than once.
pub trait ImportFile: BufRead + Seek + Send {}

impl<T: BufRead + Seek + Send> ImportFile for T {}

/// What an import stored, and what it did not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// New sessions.
    pub sessions: Vec<SessionId>,
    /// Their messages.
    pub messages: u64,
    /// Sessions that existed already and stay unchanged.
    pub skipped: Vec<SessionId>,
    /// Sessions whose title was taken, with the title that they got instead.
    pub renamed: Vec<(SessionId, String)>,
    /// Delegates, and branches without messages of their parent, whose parent does not exist: they become independent
    /// sessions.
    pub detached: Vec<SessionId>,
    /// Sessions that were not stored, each with its parent: the parent has other messages here, or was not stored
    /// either.
    pub left_out: Vec<(SessionId, SessionId)>,
    /// Whether this home exported the file, and nobody has changed it since.
    pub is_own: bool,
    /// What the file decides for the new sessions if the user accepts it.
    pub of_file: Vec<OfFile>,
}

/// What a file decides for a session if the user accepts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfFile {
    /// The session.
    pub session: SessionId,
    /// The folder in which it would work.
    pub workspace: PathBuf,
    /// The characters of its newest system prompt; 0 without one.
    pub prompt_characters: u64,
    /// The tools in front of that prompt.
    pub tools: u64,
}

/// What an import accepts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The folders and prompts of the sessions wait for the user's decision, unless this home wrote the file.
    OwnFiles,
    /// The user vouches for the file: its sessions are like those of this home.
    ThisFile,
}
