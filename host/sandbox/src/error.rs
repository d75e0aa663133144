//! Why a process cannot be confined.

use std::io;
use std::path::{Path, PathBuf};

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step}{}: {source}", .path.as_ref().map(|path| format!(" at {}", path.display())).unwrap_or_default())]
pub struct SetupError {
    /// What failed.
    pub step: &'static str,
    /// The path that it failed at.
    pub path: Option<PathBuf>,
    /// The system's error.
    pub source: io::Error,
}

impl SetupError {
    pub(crate) fn new(step: &'static str, source: impl Into<io::Error>) -> Self {
        Self { step, path: None, source: source.into() }
    }

    pub(crate) fn at(step: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self { step, path: Some(path.to_owned()), source: source.into() }
    }
}
