//! Errors below a root, in words for the model or the user.

use std::io;
use std::path::PathBuf;

use super::guard::Change;
use crate::fault::{Fault, FaultKind};

/// An error below a root. Every message names the path, the root and the fix.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// No root with this name was granted.
    #[error("there is no root `{root}` here: {}", granted(.known))]
    NoSuchRoot {
        /// The requested name.
        root: String,
        /// The names that were granted.
        known: Vec<String>,
    },
    /// The root's own folder cannot be opened.
    #[error("cannot open the root `{root}` at {}: {source}; see that it is a folder that can be read", .path.display())]
    Unopened {
        /// The root.
        root: String,
        /// Its path.
        path: std::path::PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path is not valid below a root.
    #[error(
        "`{path}` cannot be a path in the root `{root}`: {reason}; give one relative to the root, such as `src/main.rs`"
    )]
    BadPath {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The path leads out of the root through a link.
    #[error(
        "`{path}` leads out of the root `{root}` through a link: name a file inside the root, or have the user grant the place that the link leads to"
    )]
    Outside {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The path is, contains or leads to a denied place.
    #[error(
        "`{path}` in the root `{root}` is closed to plugins, since it belongs to the host itself: use another path"
    )]
    Denied {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The change would be in a folder of git.
    #[error(
        "`{path}` in the root `{root}` is part of git's own files, which can start programs: no file tool changes them; run \
         git itself, or ask the user to"
    )]
    Repository {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The path leads to an interface of the kernel.
    #[error("`{path}` in the root `{root}` is an interface of the system and not a file: plugins cannot use it")]
    Kernel {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The change needs the user's approval.
    #[error("`{path}` in the root `{root}` was not changed: the change needs the user's approval")]
    Approval {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// The change.
        change: Box<Change>,
    },
    /// The folder has too many entries to look at each before it moves.
    #[error(
        "the directory `{path}` in the root `{root}` has more than {limit} entries, too many to check before it moves: move \
         smaller parts, or let the user move it"
    )]
    Unchecked {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// A folder cannot be moved, because files of it would then start programs or instruct agents, and the user could not see
    /// them all.
    #[error(
        "`{path}` in the root `{root}` is not moved as a whole: {} would then be a file that starts programs or instructs agents; \
         move or write such files one by one, so that the user can see each",
        would_be.display()
    )]
    Together {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// The path that the first of them would have.
        would_be: PathBuf,
    },
    /// Nothing is at the path.
    #[error("there is no `{path}` in the root `{root}`: list its folder or search for it")]
    NotFound {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The root was granted for reading only.
    #[error("the root `{root}` may only be read, so `{path}` stays as it is: the user can grant the root for writing")]
    ReadOnly {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The file itself is marked read-only.
    #[error("`{path}` in the root `{root}` is marked read-only: the user can make it writable with `chmod u+w`")]
    Protected {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The file has another version than the writer named.
    #[error("`{path}` in the root `{root}` {}: read it again and repeat the change", moved_on(.current.as_deref()))]
    Conflict {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// Its current version. None if the file is gone.
        current: Option<String>,
    },
    /// A rename would replace an existing entry.
    #[error("`{path}` in the root `{root}` exists already: remove it first, or choose another name")]
    Exists {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The directory is not empty.
    #[error("the directory `{path}` in the root `{root}` is not empty: remove what it holds first")]
    NotEmpty {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The entry is not a file.
    #[error("`{path}` in the root `{root}` is {found} and not a regular file: name a file")]
    NotAFile {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// Its type, with an article.
        found: &'static str,
    },
    /// The entry is not a directory.
    #[error("`{path}` in the root `{root}` is not a directory, or a part of it is not: name a directory")]
    NotADirectory {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The listing has too many entries.
    #[error("`{path}` in the root `{root}` has more than {limit} entries: search it by a glob instead of listing it")]
    TooMany {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// The write has too many bytes.
    #[error(
        "{size} bytes for `{path}` in the root `{root}` are more than the {limit} that one write may have: write several files"
    )]
    TooLarge {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// The given size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A glob or a regular expression is invalid.
    #[error("cannot search the root `{root}` for `{pattern}`: {reason}")]
    BadPattern {
        /// The root.
        root: String,
        /// The glob or the expression, cut if it is long.
        pattern: String,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// Another writer holds the lock of the directory.
    #[error("`{path}` in the root `{root}` is being written by another process: try again in a moment")]
    Busy {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
    },
    /// The caller no longer waits.
    #[error("the search of the root `{root}` was cancelled: nothing was changed")]
    Cancelled {
        /// The root.
        root: String,
    },
    /// The system returned an error.
    #[error("cannot {action} `{path}` in the root `{root}`: {source}; {}", remedy(.source))]
    Io {
        /// The root.
        root: String,
        /// The path as given.
        path: String,
        /// The failed operation, as a verb.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl FilesError {
    /// The `error-kind` of the contract.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::BadPath { .. }
            | Self::NotFound { .. }
            | Self::NotEmpty { .. }
            | Self::NotAFile { .. }
            | Self::NotADirectory { .. }
            | Self::BadPattern { .. } => FaultKind::InvalidInput,
            Self::NoSuchRoot { .. }
            | Self::Outside { .. }
            | Self::Denied { .. }
            | Self::Repository { .. }
            | Self::Kernel { .. }
            | Self::Approval { .. }
            | Self::Together { .. }
            | Self::ReadOnly { .. }
            | Self::Protected { .. } => FaultKind::Denied,
            Self::Conflict { .. } | Self::Exists { .. } => FaultKind::Conflict,
            Self::TooMany { .. } | Self::Unchecked { .. } | Self::TooLarge { .. } => FaultKind::Exhausted,
            Self::Busy { .. } => FaultKind::Unavailable,
            Self::Cancelled { .. } => FaultKind::Cancelled,
            Self::Io { source, .. } if is_full(source) => FaultKind::Exhausted,
            Self::Unopened { .. } | Self::Io { .. } => FaultKind::Failed,
        }
    }

    /// The more specific `code` of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchRoot { .. } => "no-such-root",
            Self::Unopened { .. } => "no-root",
            Self::BadPath { .. } => "bad-path",
            Self::Outside { .. } => "outside",
            Self::Denied { .. } => "closed",
            Self::Repository { .. } => "git",
            Self::Kernel { .. } => "kernel",
            Self::Approval { .. } => "approval",
            Self::Unchecked { .. } => "too-many",
            Self::Together { .. } => "listed",
            Self::NotFound { .. } => "not-found",
            Self::ReadOnly { .. } => "read-only",
            Self::Protected { .. } => "protected",
            Self::Conflict { .. } => "conflict",
            Self::Exists { .. } => "exists",
            Self::NotEmpty { .. } => "not-empty",
            Self::NotAFile { .. } => "not-a-file",
            Self::NotADirectory { .. } => "not-a-directory",
            Self::TooMany { .. } => "too-many",
            Self::TooLarge { .. } => "too-large",
            Self::BadPattern { .. } => "bad-pattern",
            Self::Busy { .. } => "locked",
            Self::Cancelled { .. } => "cancelled",
            Self::Io { source, .. } if is_full(source) => "disk-full",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => "permission",
            Self::Io { .. } => "io",
        }
    }
}

impl From<FilesError> for Fault {
    fn from(error: FilesError) -> Self {
        Self::new(error.kind(), error.code(), error.to_string())
    }
}

fn granted(known: &[String]) -> String {
    if known.is_empty() {
        return "none was granted; the user can grant one".to_owned();
    }
    format!("granted are `{}`; use one of them", known.join("`, `"))
}

fn moved_on(current: Option<&str>) -> String {
    match current {
        Some(version) => format!("was changed meanwhile and is at version `{version}`"),
        None => "is not there any more".to_owned(),
    }
}

fn is_full(source: &io::Error) -> bool {
    matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "the user can change who may read and write it",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the disk",
        io::ErrorKind::InvalidFilename => "choose a shorter or plainer name",
        _ => "nothing was changed",
    }
}
