//! A change that needs the user's approval, and the approval of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ListedFile;

/// A change of a file that needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happens.
    pub deed: Deed,
    /// The file, with links resolved.
    pub path: PathBuf,
    /// Why it needs approval; at least one.
    pub concerns: Vec<Concern>,
}

/// What happens to a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// A new file with this content.
    Create(Vec<u8>),
    /// Another content of the file.
    Replace {
        /// The size before, in bytes.
        size: u64,
        /// The new content.
        content: Vec<u8>,
    },
    /// It moves.
    Rename {
        /// Its new path.
        to: PathBuf,
        /// The content of a file, or the target of a link, that is on the list only at its new place.
        content: Option<Vec<u8>>,
    },
    /// It is removed.
    Remove,
}

/// Why a change needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concern {
    /// A file of the list.
    Listed {
        /// The file, or a link that may lead to one.
        path: PathBuf,
        /// The pattern of the list.
        pattern: String,
        /// The reason that the list gives.
        reason: String,
        /// The version of a file that is on the list only after its move: the user agrees to this content. Empty if the content
        /// is a part of the call, or does not change.
        version: String,
    },
    /// The session has not read what the file contains now.
    Unread {
        /// The file; when a folder moves, the first of the unread files in it.
        path: PathBuf,
        /// The version that would be lost, or leave its place.
        version: String,
    },
    /// An ordinary change, while every change needs approval.
    Edit {
        /// The file.
        path: PathBuf,
        /// What it contains now, unless that is too much to be shown.
        before: Option<Vec<u8>>,
    },
}

/// Whether every change of a file in the workspace needs approval at the moment. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct EveryChange(Arc<AtomicBool>);

impl EveryChange {
    /// Sets it from now on.
    pub fn set(&self, needs_approval: bool) {
        self.0.store(needs_approval, Ordering::Relaxed);
    }

    /// Whether it is so.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Concern {
    /// The pattern of the list, if the file is on it.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            Self::Listed { pattern, .. } => Some(pattern),
            Self::Unread { .. } | Self::Edit { .. } => None,
        }
    }

    pub(super) fn listed(path: &Path, listed: &ListedFile) -> Self {
        let (pattern, reason) = (listed.pattern.to_string(), listed.reason.to_string());
        Self::Listed { path: path.to_owned(), pattern, reason, version: String::new() }
    }

    /// The same concern, for this content only.
    pub(in crate::files) fn of_content(self, content: &str) -> Self {
        match self {
            Self::Listed { path, pattern, reason, .. } => {
                Self::Listed { path, pattern, reason, version: content.to_owned() }
            }
            other @ (Self::Unread { .. } | Self::Edit { .. }) => other,
        }
    }
}

/// What the user has agreed to during one operation.
#[derive(Debug, Clone, Default)]
pub struct Agreed {
    to: Vec<Concern>,
    /// Tests of other rules do not wait for approval.
    #[cfg(test)]
    to_all: bool,
}

impl Agreed {
    /// To nothing yet.
    pub fn to_nothing() -> Self {
        Self::default()
    }

    #[cfg(test)]
    pub(crate) fn to_all() -> Self {
        Self { to_all: true, ..Self::default() }
    }

    /// To this change too.
    pub fn add(&mut self, change: &Change) {
        self.to.extend(change.concerns.iter().cloned());
    }

    /// The concerns that the user has not agreed to.
    pub(in crate::files) fn open(&self, concerns: Vec<Concern>) -> Vec<Concern> {
        #[cfg(test)]
        if self.to_all {
            return Vec::new();
        }
        concerns.into_iter().filter(|concern| !self.to.contains(concern)).collect()
    }
}
