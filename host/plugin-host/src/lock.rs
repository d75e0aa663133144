//! `$HERMES_HOME/plugins.lock`: the source and digest of each installed plugin, and what the user granted it.
//!
//! The file records the user's decision. A plugin runs only from the folder in its entry, and only with the bytes there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hermes_runtime::LimitSet;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::permission::Permissions;

/// The format that this version reads and writes.
const FORM: u32 = 1;
/// A larger file is damaged.
pub(crate) const MOST_BYTES: u64 = 8 << 20;

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    form: u32,
    /// The installed plugins by name.
    #[serde(default)]
    pub plugins: BTreeMap<String, Entry>,
}

/// An installed plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The current version.
    #[serde(flatten)]
    pub pin: Pin,
    /// The version that `rollback` restores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Pin>,
}

/// A plugin's bytes by their digest, their source, and what was granted to exactly these bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pin {
    /// The argument of `install` in full: an absolute path or an address.
    pub source: String,
    /// The resolved source: the commit of a repository, the digest of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The plugin's folder, relative to `$HERMES_HOME/plugins`.
    pub folder: String,
    /// The version in the plugin's manifest.
    pub version: semver::Version,
    /// The digest of everything in the plugin's folder.
    pub digest: Digest,
    /// The public key of the publisher; none if the plugin is not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The exports that the user saw when granting. None in a lock of a version that did not show them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exports: Option<Vec<String>>,
    /// The draft interfaces of the contract that it uses. The user allowed them when granting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<String>,
    /// The granted permissions; none if the plugin may not run.
    pub granted: Option<Permissions>,
    /// The limits that were raised for the plugin.
    #[serde(default, skip_serializing_if = "LimitSet::is_empty")]
    pub limits: LimitSet,
    /// Whether exactly these bytes may run as a native library, outside of the sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
}

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

impl Default for Lock {
    fn default() -> Self {
        Self { form: FORM, plugins: BTreeMap::new() }
    }
}

impl Lock {
    /// The file's path in a home.
    pub fn path(home: &Path) -> PathBuf {
        home.join("plugins.lock")
    }

    /// Reads the file. A missing file is an empty lock.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::File { path: path.to_owned(), source };
        match hermes_private_files::read_regular(path, MOST_BYTES) {
            Ok(bytes) => Self::parse(&bytes, path),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(Self::default()),
                io::ErrorKind::FileTooLarge => {
                    Err(LockError::Damaged { path: path.to_owned(), why: "it is far too large".to_owned() })
                }
                _ => Err(failed(error)),
            },
        }
    }

    pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct Form {
            form: u32,
        }
        let damaged = |error: serde_json::Error| {
            let why = hermes_diagnostic::json_fault(&error);
            LockError::Damaged { path: path.to_owned(), why }
        };
        let Form { form } = serde_json::from_slice(bytes).map_err(damaged)?;
        if form != FORM {
            return Err(LockError::Newer { path: path.to_owned(), form });
        }
        let lock: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        // Hermes joins these folders to a path, and removes them with their contents.
        for (name, entry) in &lock.plugins {
            for pin in std::iter::once(&entry.pin).chain(&entry.previous) {
                if !is_plugin_folder(&pin.folder) || !crate::manifest::is_plugin_name(name) {
                    let why = format!("`{}` is not a folder for the plugin `{name}`", pin.folder);
                    return Err(LockError::Damaged { path: path.to_owned(), why });
                }
            }
        }
        Ok(lock)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("names, digests and permissions are JSON");
        text.push('\n');
        text
    }

    /// Writes the file atomically.
    pub fn write(&self, path: &Path) -> Result<(), LockError> {
        hermes_private_files::write_whole(path, self.text().as_bytes())
            .map_err(|source| LockError::File { path: path.to_owned(), source })
    }
}

/// Whether this is `name` or `kind/name`.
fn is_plugin_folder(folder: &str) -> bool {
    let plain =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0', ':']) && part != "..";
    let parts: Vec<&str> = folder.split('/').collect();
    parts.len() <= 2 && parts.iter().all(|part| plain(part))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use hermes_diagnostic::Diagnose as _;

    use super::*;

    fn pin(folder: &str) -> Pin {
        Pin {
            source: "/src".to_owned(),
            resolved: None,
            folder: folder.to_owned(),
            version: semver::Version::new(1, 2, 3),
            digest: Digest::of(b"f"),
            signer: None,
            exports: None,
            drafts: Vec::new(),
            granted: Some(Permissions { history: true, ..Permissions::default() }),
            limits: LimitSet::default(),
            native: false,
        }
    }

    fn lock(folder: &str) -> Lock {
        let entry = Entry { pin: pin(folder), previous: Some(pin(folder)) };
        Lock { plugins: BTreeMap::from([("mine".to_owned(), entry)]), ..Lock::default() }
    }

    #[test]
    fn a_written_lock_is_read_back() {
        let home = tempfile::tempdir().unwrap();
        let path = Lock::path(home.path());
        assert_eq!(Lock::read(&path).unwrap(), Lock::default());
        let lock = lock("tools/mine");
        lock.write(&path).unwrap();
        assert_eq!(Lock::read(&path).unwrap(), lock);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_damaged_or_newer_file_is_refused_with_a_remedy() {
        let path = Path::new("plugins.lock");
        let newer = Lock::parse(br#"{"form": 2, "plugins": {}, "more": 1}"#, path).unwrap_err();
        assert!(matches!(newer, LockError::Newer { form: 2, .. }), "{newer}");
        for bad in ["", "{}", "[]", r#"{"form": 1, "plugins": {"mine": {}}}"#, r#"{"form": 1, "other": 1}"#] {
            let error = Lock::parse(bad.as_bytes(), path).unwrap_err();
            assert!(error.sentence().contains("grant the plugins again"), "{bad}: {error}");
        }
    }

    #[test]
    fn no_entry_names_a_folder_outside_of_the_plugins() {
        for place in ["", ".", "..", "../x", "a/../b", "/etc", "a/b/c", ".stage-1", "a/.previous", "a\\b", "c:x"] {
            assert!(Lock::parse(lock(place).text().as_bytes(), Path::new("l")).is_err(), "{place}");
        }
        assert!(Lock::parse(lock("tools/mine").text().as_bytes(), Path::new("l")).is_ok());
    }
}
