//! Why the lock, or the key of its seals, cannot be used.

use std::io;
use std::path::PathBuf;

/// The format that this version reads and writes.
pub(super) const FORM: u32 = 1;

/// Why the lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read or written.
    #[error("{path} cannot be used: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not a valid lock.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// A newer version wrote the file.
    #[error("{path} was written by a newer version of Hermes (format {form}; this version reads format {FORM})")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        form: u32,
    },
}
