//! The key of an installation: what it has compiled carries a tag that only it can make.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use super::{is_ours, open_plainly};

/// Two keys, each for one purpose, out of the one that is stored.
#[derive(Clone)]
pub(crate) struct Key {
    pub(super) tag: [u8; 32],
    pub(super) seal: [u8; 32],
}

/// What is wrong with a key that lies there.
enum Unfit {
    Missing,
    Because(String),
}

impl Key {
    /// The key in this file. One that others could have read, or that is no key, is replaced: what carries its tags is
    /// then compiled anew.
    pub(super) fn read_or_make(path: &Path) -> io::Result<Self> {
        match Self::read(path) {
            Ok(key) => Ok(key),
            Err(Unfit::Missing) => {
                match written(path)?.persist_noclobber(path) {
                    Ok(_) => {}
                    // Another process was quicker.
                    Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error.error),
                }
                Self::read(path).map_err(|unfit| unfit.into_error(path))
            }
            Err(Unfit::Because(why)) => {
                tracing::warn!(path = %path.display(), why, "the key of compiled code is replaced");
                written(path)?.persist(path).map_err(|error| error.error)?;
                Self::read(path).map_err(|unfit| unfit.into_error(path))
            }
        }
    }

    fn read(path: &Path) -> Result<Self, Unfit> {
        let mut file = open_plainly(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Unfit::Missing,
            _ => Unfit::Because(error.to_string()),
        })?;
        let found = file.metadata().map_err(|error| Unfit::Because(error.to_string()))?;
        if !found.is_file() || !is_ours(&found, 0o077) {
            return Err(Unfit::Because("it is not a file of this user that nobody else can read".to_owned()));
        }
        if found.len() != 32 {
            return Err(Unfit::Because(format!("it has {} bytes in place of 32", found.len())));
        }
        let mut stored = [0; 32];
        file.read_exact(&mut stored).map_err(|error| Unfit::Because(error.to_string()))?;
        Ok(Self::of(&stored))
    }

    pub(super) fn of(stored: &[u8; 32]) -> Self {
        Self {
            tag: blake3::derive_key("hermes: tag of compiled code", stored),
            seal: blake3::derive_key("hermes: seal of compiled code that was checked", stored),
        }
    }
}

impl Unfit {
    fn into_error(self, path: &Path) -> io::Error {
        match self {
            Self::Missing => io::Error::new(io::ErrorKind::NotFound, format!("{} was removed again", path.display())),
            Self::Because(why) => io::Error::other(why),
        }
    }
}

/// A new key beside its place.
fn written(path: &Path) -> io::Result<tempfile::NamedTempFile> {
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
