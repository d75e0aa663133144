//! The errors of one request: each names the path as the plugin gave it, and the root.

use std::io;
use std::path::Path;

use cap_std::fs::Metadata;

use super::FilesError;
use super::guard::Change;
use super::walk::Request;

impl Request<'_> {
    fn at(&self) -> (String, String) {
        let path = if self.path.is_empty() { "." } else { self.path };
        (self.root.name.clone(), path.to_owned())
    }

    pub(super) fn denied(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::Denied { root, path }
    }

    pub(super) fn repository(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::Repository { root, path }
    }

    pub(super) fn kernel(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::Kernel { root, path }
    }

    pub(super) fn approval(&self, change: Change) -> FilesError {
        let (root, path) = self.at();
        FilesError::Approval { root, path, change: Box::new(change) }
    }

    pub(super) fn unchecked(&self, limit: usize) -> FilesError {
        let (root, path) = self.at();
        FilesError::Unchecked { root, path, limit }
    }

    pub(super) fn together(&self, would_be: &Path) -> FilesError {
        let (root, path) = self.at();
        FilesError::Together { root, path, would_be: would_be.to_owned() }
    }

    pub(super) fn outside(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::Outside { root, path }
    }

    pub(super) fn not_found(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::NotFound { root, path }
    }

    pub(super) fn not_a_directory(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::NotADirectory { root, path }
    }

    pub(super) fn not_a_file(&self, meta: &Metadata) -> FilesError {
        let (root, path) = self.at();
        let found = if meta.is_dir() {
            "a directory"
        } else if meta.is_symlink() {
            "a link"
        } else {
            "a pipe, socket or device"
        };
        FilesError::NotAFile { root, path, found }
    }

    pub(super) fn read_only(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::ReadOnly { root, path }
    }

    pub(super) fn protected(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::Protected { root, path }
    }

    pub(super) fn conflict(&self, current: Option<String>) -> FilesError {
        let (root, path) = self.at();
        FilesError::Conflict { root, path, current }
    }

    pub(super) fn exists(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::Exists { root, path }
    }

    pub(super) fn not_empty(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::NotEmpty { root, path }
    }

    pub(super) fn too_many(&self, limit: usize) -> FilesError {
        let (root, path) = self.at();
        FilesError::TooMany { root, path, limit }
    }

    pub(super) fn too_large(&self, size: usize, limit: usize) -> FilesError {
        let (root, path) = self.at();
        FilesError::TooLarge { root, path, size, limit }
    }

    pub(super) fn busy(&self) -> FilesError {
        let (root, path) = self.at();
        FilesError::Busy { root, path }
    }

    pub(super) fn bad_path(&self, reason: &'static str) -> FilesError {
        let (root, mut path) = self.at();
        if let Some((cut, _)) = path.char_indices().nth(200) {
            path.truncate(cut);
            path.push('…');
        }
        FilesError::BadPath { root, path, reason }
    }

    pub(super) fn io(&self, action: &'static str, source: io::Error) -> FilesError {
        let (root, path) = self.at();
        FilesError::Io { root, path, action, source }
    }
}
