//! The steps of an undo, and its result.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Conflict;
use crate::git::Head;
use crate::path::RelPath;
use crate::state::{State, Unsaved};

/// What an undo does at one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) path: RelPath,
    /// What is there.
    pub(crate) from: State,
    /// What will be there.
    pub(crate) to: State,
}

/// The result of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The numbers of the turns, the oldest first.
    pub turns: Vec<u32>,
    /// What the user wrote at the beginning of the oldest one.
    pub words: String,
    /// The paths that are as they were before.
    pub restored: Vec<RelPath>,
    /// The paths that were left as they are.
    pub skipped: Vec<Conflict>,
    /// The paths that were to be restored whatever is there now, and could not be. A later undo still can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<RelPath>,
    /// The paths whose content was not saved, or that could not be brought back again.
    pub unsaved: Vec<(RelPath, Unsaved)>,
    /// The folders that stay, because they have other files.
    pub kept_folders: Vec<RelPath>,
    /// The head of git before and after, if it moved.
    pub heads: Option<(Head, Head)>,
    /// The programs that ran: they may have done more than change files.
    pub programs: Vec<String>,
    /// Further programs.
    pub more_programs: u32,
    /// Why changes of programs are not known.
    pub unrecorded: Vec<String>,
    /// Files outside of the workspace that changed.
    pub outside: Vec<PathBuf>,
}
