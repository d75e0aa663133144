//! The key of an installation, with which it tags the code that it compiles.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use super::{is_ours, open_plainly};

/// Two keys, each for one purpose, derived from the stored one.
#[derive(Clone)]
pub(crate) struct Key {
    pub(super) tag: [u8; 32],
    pub(super) seal: [u8; 32],
}

/// Why a stored key cannot be used.
enum KeyProblem {
    Missing,
    Because(String),
}

impl Key {
    /// Reads the key in this file, or creates one. A key that is malformed, or that other users could have read, is
    /// replaced: code with the old tags is then compiled again.
    pub(super) fn read_or_create(path: &Path) -> io::Result<Self> {
        match Self::read(path) {
            Ok(key) => Ok(key),
            Err(KeyProblem::Missing) => {
                match new_key_file(path)?.persist_noclobber(path) {
                    Ok(_) => {}
                    // Another process created it first.
                    Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error.error),
                }
                Self::read(path).map_err(|problem| problem.into_error(path))
            }
            Err(KeyProblem::Because(why)) => {
                tracing::warn!(path = %path.display(), why, "replacing the key of compiled code");
                new_key_file(path)?.persist(path).map_err(|error| error.error)?;
                Self::read(path).map_err(|problem| problem.into_error(path))
            }
        }
    }

    fn read(path: &Path) -> Result<Self, KeyProblem> {
        let mut file = open_plainly(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => KeyProblem::Missing,
            _ => KeyProblem::Because(error.to_string()),
        })?;
        let found = file.metadata().map_err(|error| KeyProblem::Because(error.to_string()))?;
        if !found.is_file() || !is_ours(&found, 0o077) {
            return Err(KeyProblem::Because("it does not belong to this user, or other users can read it".to_owned()));
        }
        if found.len() != 32 {
            return Err(KeyProblem::Because(format!("it has {} bytes instead of 32", found.len())));
        }
        let mut stored = [0; 32];
        file.read_exact(&mut stored).map_err(|error| KeyProblem::Because(error.to_string()))?;
        Ok(Self::of(&stored))
    }

    pub(super) fn of(stored: &[u8; 32]) -> Self {
        Self {
            tag: blake3::derive_key("hermes: tag of compiled code", stored),
            seal: blake3::derive_key("hermes: seal of compiled code that was checked", stored),
        }
    }
}

impl KeyProblem {
    fn into_error(self, path: &Path) -> io::Error {
        match self {
            Self::Missing => io::Error::new(io::ErrorKind::NotFound, format!("{} was removed again", path.display())),
            Self::Because(why) => io::Error::other(why),
        }
    }
}

/// A new key in a temporary file in the same folder.
fn new_key_file(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    if !folder.is_dir() {
        super::make_private(folder)?;
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&key)?;
    File::sync_all(file.as_file())?;
    Ok(file)
}
