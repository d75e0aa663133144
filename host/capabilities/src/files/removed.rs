//! The permissions of files that were removed last. A tool that takes a removal back writes the same content again, and the
//! contract has no words for permissions.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How many files are remembered.
const MOST: usize = 64;

/// Files that were removed: the path, the version of the content, and the bits of the permissions.
#[derive(Debug, Default)]
pub(super) struct Removed(Mutex<VecDeque<(PathBuf, String, u32)>>);

impl Removed {
    pub(super) fn add(&self, path: &Path, version: String, bits: u32) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(known, ..)| known != path);
        files.push_back((path.to_owned(), version, bits));
        if files.len() > MOST {
            files.pop_front();
        }
    }

    /// The permissions of a file that had this content when it was removed.
    pub(super) fn bits(&self, path: &Path, version: &str) -> Option<u32> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().find(|(known, content, _)| known == path && content == version).map(|(.., bits)| *bits)
    }
}
