//! Why a document cannot be read or written.

use std::io;
use std::path::PathBuf;

use super::{DocumentQuota, MAX_DOCUMENT};
use crate::fault::{Fault, FaultKind};

/// An error of a document. Every message names the document and the fix.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// The name is not valid.
    #[error(
        "`{name}` cannot be the name of a document: use up to 64 letters, digits, `.`, `_` and `-` that begin with a letter or digit and do not end in `.lock`"
    )]
    BadName {
        /// The name as given, cut if it is long.
        name: String,
    },
    /// The plugin may not use this document.
    #[error("the document `{name}` is not open to this plugin: it may use {}; ask the user to grant more", listed(.allowed))]
    Denied {
        /// The name.
        name: String,
        /// The names that it may use.
        allowed: Vec<String>,
    },
    /// The text is too large, in the file or as given.
    #[error("the document `{name}` at {} has more than {MAX_DOCUMENT} bytes: shorten it; nothing was overwritten", .path.display())]
    TooLarge {
        /// The name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// The plugin has as many documents, or as many bytes in them, as it may have.
    #[error("the document `{name}` cannot be stored: this plugin may have {} documents with {} KiB together; it can shorten others, and the user can raise the limits `document_count` and `document_bytes`; nothing was overwritten", .quota.count, .quota.bytes >> 10)]
    Full {
        /// The name.
        name: String,
        /// The quota.
        quota: DocumentQuota,
    },
    /// The file is not UTF-8 text.
    #[error("{} is not valid UTF-8, so the document `{name}` cannot be used: correct the file or move it away; nothing was overwritten", .path.display())]
    NotText {
        /// The name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// Something other than a file is at the path.
    #[error("{} is not a regular file, so the document `{name}` cannot be used: move it away", .path.display())]
    NotAFile {
        /// The name.
        name: String,
        /// What is there.
        path: PathBuf,
    },
    /// The file is marked read-only.
    #[error("{} is marked read-only, so the document `{name}` stays as it is: the user can make it writable with `chmod u+w`", .path.display())]
    Protected {
        /// The name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// Another writer holds the lock.
    #[error("the document `{name}` is being written by another process, which holds the lock of {}: try again in a moment", .lock.display())]
    Busy {
        /// The name.
        name: String,
        /// The lock file, or the folder.
        lock: PathBuf,
    },
    /// The system returned an error.
    #[error("cannot {action} {} for the document `{name}`: {source}; see that the folder is there, can be written and has room", .path.display())]
    Io {
        /// The name.
        name: String,
        /// The file or folder.
        path: PathBuf,
        /// The failed operation, as a verb.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl DocumentsError {
    /// The `error-kind` of the contract.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::BadName { .. } => FaultKind::InvalidInput,
            Self::Denied { .. } | Self::Protected { .. } => FaultKind::Denied,
            Self::TooLarge { .. } | Self::Full { .. } => FaultKind::Exhausted,
            Self::Busy { .. } => FaultKind::Unavailable,
            Self::NotText { .. } | Self::NotAFile { .. } | Self::Io { .. } => FaultKind::Failed,
        }
    }

    /// The more specific `code` of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "bad-name",
            Self::Denied { .. } => "closed",
            Self::TooLarge { .. } => "too-large",
            Self::Full { .. } => "quota",
            Self::NotText { .. } => "not-text",
            Self::NotAFile { .. } => "not-a-file",
            Self::Protected { .. } => "protected",
            Self::Busy { .. } => "locked",
            Self::Io { .. } => "io",
        }
    }
}

impl From<DocumentsError> for Fault {
    fn from(error: DocumentsError) -> Self {
        Self::new(error.kind(), error.code(), error.to_string())
    }
}

fn listed(allowed: &[String]) -> String {
    if allowed.is_empty() { "none".to_owned() } else { format!("`{}`", allowed.join("`, `")) }
}
