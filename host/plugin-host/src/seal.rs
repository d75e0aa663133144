//! The seal of an entry in `plugins.lock`: a keyed digest, which only the home that wrote the entry can compute.
//!
//! An entry that another home wrote, or that was changed outside of Hermes, has no seal that fits, and grants nothing here.

use std::io;
use std::path::{Path, PathBuf};

use hermes_private_files as private;
use serde_json::{Value, json};

use crate::lock::error::LockError;

/// The file with the key, beside `plugins.lock`.
const NAME: &str = "plugins.key";
const KEY_BYTES: usize = 32;

/// Who wrote an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Author {
    /// Somebody else: no seal of this home fits.
    #[default]
    Foreign,
    /// Hermes, in this home.
    Home,
    /// An earlier version of Hermes, which wrote no seals, in a home that has no key yet.
    Earlier,
}

/// The key of a home.
pub(crate) struct Key([u8; KEY_BYTES]);

impl Key {
    /// The key's file in the home of a lock.
    pub(crate) fn path(lock: &Path) -> PathBuf {
        lock.with_file_name(NAME)
    }

    /// The key of the home of a lock. None if it has no key yet.
    pub(crate) fn known(lock: &Path) -> Result<Option<Self>, LockError> {
        let path = Self::path(lock);
        let damaged = |path| LockError::Damaged { path, why: format!("it does not have {KEY_BYTES} bytes") };
        match private::read_regular(&path, KEY_BYTES as u64) {
            Ok(bytes) => Ok(Some(Self(bytes.try_into().map_err(|_| damaged(path))?))),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                io::ErrorKind::FileTooLarge => Err(damaged(path)),
                _ => Err(LockError::File { path, source: error }),
            },
        }
    }

    /// The same. A missing key is created: the caller is the only process that writes the lock.
    pub(crate) fn open(lock: &Path) -> Result<Self, LockError> {
        if let Some(known) = Self::known(lock)? {
            return Ok(known);
        }
        let mut key = [0; KEY_BYTES];
        let path = Self::path(lock);
        let written = getrandom::fill(&mut key).map_err(io::Error::other);
        written.and_then(|()| private::write_whole(&path, &key)).map_err(|source| LockError::File { path, source })?;
        Ok(Self(key))
    }

    /// Tells the key from another one.
    pub(crate) fn mark(&self) -> blake3::Hash {
        blake3::hash(&self.0)
    }

    /// The seal of an entry, which is given as JSON.
    pub(crate) fn seal(&self, name: &str, entry: &Value) -> String {
        self.hash(name, entry).to_hex().to_string()
    }

    fn hash(&self, name: &str, entry: &Value) -> blake3::Hash {
        let mut members: Vec<_> = entry.as_object().into_iter().flatten().filter(|(name, _)| *name != "seal").collect();
        members.sort_by_key(|(name, _)| *name);
        let members: Vec<_> = members.into_iter().map(|(name, value)| json!([name, canonical(value)])).collect();
        blake3::keyed_hash(&self.0, json!([name, members]).to_string().as_bytes())
    }

    /// Whether a seal is that of an entry. Takes the same time wherever the two differ.
    fn fits(&self, name: &str, entry: &Value, seal: &str) -> bool {
        blake3::Hash::from_hex(seal).is_ok_and(|seal| seal == self.hash(name, entry))
    }
}

/// Who wrote this entry of a lock.
pub(crate) fn author(name: &str, entry: &Value, key: Option<&Key>) -> Author {
    let seal = entry.get("seal").and_then(Value::as_str);
    match (key, seal) {
        (None, None) => Author::Earlier,
        (Some(key), Some(seal)) if key.fits(name, entry, seal) => Author::Home,
        // With a seal and without a key, the entry comes from another home, or the key is lost.
        _ => Author::Foreign,
    }
}

/// The same value with sorted members: a lock may be formatted again.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            Value::Object(sorted.into_iter().map(|(name, value)| (name.clone(), canonical(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}
