//! Why an undo is not possible.

use std::io;
use std::path::PathBuf;

use hermes_diagnostic::{Diagnose, Fix, Parts};

use serde::{Deserialize, Serialize};

use crate::path::RelPath;

hermes_diagnostic::codes! {
    /// The codes of checkpoints.
    pub mod codes {
        STORE = "checkpoint.store", Category::General, "the store of checkpoints cannot be used";
        NOTHING = "checkpoint.nothing", Category::General, "no files were changed, so there is nothing to undo or to show";
        CHANGED = "checkpoint.changed", Category::General, "files that an undo would restore have changed since";
        BUSY = "checkpoint.busy", Category::General, "another process undoes changes of the session";
        FAILED = "checkpoint.failed", Category::General, "an undo failed; the files are as they were before it";
        TORN = "checkpoint.torn", Category::General, "an undo is neither complete nor taken back";
    }
}

/// Why a file cannot be restored without losing something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It differs from what Hermes left there.
    ChangedSince,
    /// It was changed by somebody else between two changes of Hermes.
    ChangedBetween,
    /// It changed while a program ran in the background: that program or the user changed it.
    InBackground,
    /// A link or a file is in the place of a folder above it, or a folder with other files in its own place.
    Obstructed,
}

impl Cause {
    /// In words, after the path.
    pub fn words(self) -> &'static str {
        match self {
            Self::ChangedSince => "changed since",
            Self::ChangedBetween => "also changed by somebody else in between",
            Self::InBackground => "changed while a program ran in the background",
            Self::Obstructed => "something else is in its place",
        }
    }
}

/// A file that cannot be restored without losing something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The file.
    pub path: RelPath,
    /// Why.
    pub cause: Cause,
}

/// Why an undo is not possible. Unless it is [`UndoError::Torn`], no file has changed.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The store cannot be read or written.
    #[error("{}: {source}", path.display())]
    Store {
        /// The file or folder of the store.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No turn changed files, or all were undone.
    #[error("no turn of this session has changed files that are not undone yet")]
    Nothing,
    /// There is no such turn.
    #[error("this session has no change {number} that is not undone yet")]
    NoSuchTurn {
        /// The number of its changes.
        number: u32,
    },
    /// The workspace cannot be opened.
    #[error("the folder {} cannot be opened: {source}", path.display())]
    Workspace {
        /// The workspace.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Files have changed since.
    #[error("{}", listed(conflicts))]
    Changed {
        /// These files.
        conflicts: Vec<Conflict>,
    },
    /// Another process undoes changes of this session.
    #[error("another process undoes changes of this session")]
    Busy,
    /// A file could not be restored. The others are as they were before the undo.
    #[error("{path} cannot be restored: {source}")]
    Failed {
        /// The file.
        path: RelPath,
        /// The cause.
        source: io::Error,
    },
    /// Some files are restored, and others not.
    #[error("{path} can neither be restored nor brought back: {source}; the next start of Hermes tries again")]
    Torn {
        /// The file.
        path: RelPath,
        /// The cause.
        source: io::Error,
    },
}

/// The most files that an error names.
const SHOWN: usize = 20;

fn listed(conflicts: &[Conflict]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for conflict in conflicts.iter().take(SHOWN) {
        texts.push(format!("{} ({})", conflict.path, conflict.cause.words()));
    }
    let more = match conflicts.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}{more}", texts.join(", "))
}

impl UndoError {
    pub(crate) fn store(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Store { path, source }
    }
}

impl Diagnose for UndoError {
    fn parts(&self) -> Parts {
        const WHAT: &str = "nothing was undone";
        let (code, what, fix) = match self {
            Self::Store { .. } => {
                (codes::STORE, WHAT, "check the permissions of the folder `checkpoints` in the home folder")
            }
            Self::Nothing => (
                codes::NOTHING,
                "there is nothing to undo",
                "continue; `/rewind` removes messages from the conversation",
            ),
            Self::NoSuchTurn { .. } => {
                (codes::NOTHING, WHAT, "choose a number that `hermes sessions undo --list` shows")
            }
            Self::Workspace { .. } => (codes::STORE, WHAT, "make the folder available again"),
            Self::Changed { conflicts } if conflicts.iter().any(|conflict| conflict.cause == Cause::Obstructed) => (
                codes::CHANGED,
                WHAT,
                "move away what is in the place of others, and undo again; or restore only the others with \
                 `--skip-changed`, or with `--force` also those that changed since",
            ),
            Self::Changed { .. } => (
                codes::CHANGED,
                WHAT,
                "keep what these files contain now and restore only the others with `--skip-changed`, or restore them \
                 too with `--force`",
            ),
            Self::Busy => (codes::BUSY, WHAT, "wait until it is done"),
            Self::Failed { .. } => (codes::FAILED, WHAT, "remove the cause, and try again"),
            Self::Torn { .. } => (codes::TORN, "the undo is not complete", "remove the cause, and start Hermes again"),
        };
        (code, what.into(), Fix::words(fix))
    }
}
