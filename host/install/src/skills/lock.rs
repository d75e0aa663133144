//! `$HERMES_HOME/skills.lock`: the source and the digests of each skill that `hermes skills` installed.
//!
//! The file says which folders Hermes may replace or remove. It grants nothing: a skill is read whether the file lists it or
//! not. So it has no seals, unlike `plugins.lock`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_plugin_host::Digest;
use serde::{Deserialize, Serialize};

use super::header::is_skill_name;
use crate::error::{At, InstallError};

/// The format that this version reads and writes.
const FORM: u32 = 1;
/// A larger file is damaged.
const MOST_BYTES: u64 = 8 << 20;

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillsLock {
    form: u32,
    /// The installed skills by name, which is also the name of the folder.
    #[serde(default)]
    pub skills: BTreeMap<String, SkillEntry>,
}

/// An installed skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillEntry {
    /// The argument of `install` in full: an absolute path or an address.
    pub source: String,
    /// The commit of a repository, or the digest of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The skill's folder in the source; empty if the source is the skill.
    #[serde(default)]
    pub path: String,
    /// The digest of all files.
    pub digest: Digest,
    /// When it was installed or updated, in RFC 3339.
    pub installed: String,
    /// The digest of each file.
    pub files: BTreeMap<String, Digest>,
    /// What the scan found, if the user accepted exactly this digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
}

impl Default for SkillsLock {
    fn default() -> Self {
        Self { form: FORM, skills: BTreeMap::new() }
    }
}

impl SkillsLock {
    /// The file's path in a home.
    pub fn path(home: &Path) -> PathBuf {
        home.join("skills.lock")
    }

    /// Reads the file. A missing file is an empty lock.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is damaged, or has another format.
    pub fn read(path: &Path) -> Result<Self, InstallError> {
        let damaged = |why: String| InstallError::SkillsLock { path: path.to_owned(), why };
        let bytes = match hermes_private_files::read_regular(path, MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => return Ok(Self::default()),
                io::ErrorKind::FileTooLarge => return Err(damaged("it is far too large".to_owned())),
                _ => return Err(InstallError::File { path: path.to_owned(), source: error }),
            },
        };
        let lock: Self =
            serde_json::from_slice(&bytes).map_err(|error| damaged(hermes_diagnostic::json_fault(&error)))?;
        if lock.form != FORM {
            return Err(damaged(format!(
                "it has format {}, and this version of Hermes reads format {FORM}",
                lock.form
            )));
        }
        // Hermes joins these names to a path, and removes what is there.
        if let Some(name) = lock.skills.keys().find(|name| !is_skill_name(name)) {
            return Err(damaged(format!("`{name}` cannot be the folder of a skill")));
        }
        Ok(lock)
    }

    /// Writes the file as a whole, or removes it if nothing is installed.
    pub(crate) fn write(&self, path: &Path) -> Result<(), InstallError> {
        if self.skills.is_empty() {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at(path),
                _ => Ok(()),
            };
        }
        let mut text = serde_json::to_string_pretty(self).expect("names and digests are JSON");
        text.push('\n');
        hermes_private_files::write_whole(path, text.as_bytes()).at(path)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod attack {
    use super::*;

    #[test]
    fn a_lock_names_no_folder_outside_of_the_skills() {
        let home = tempfile::tempdir().unwrap();
        let path = SkillsLock::path(home.path());
        let digest = Digest::of(b"");
        let entry = |name: &str| {
            serde_json::json!({"form": 1, "skills": {name: {
                "source": "/s", "digest": digest, "installed": "2026-11-27T00:00:00Z", "files": {}
            }}})
        };
        fs::write(&path, entry("pdf").to_string()).unwrap();
        assert!(SkillsLock::read(&path).unwrap().skills.contains_key("pdf"));
        for name in ["", ".", "..", "../x", "/etc", "a/b", ".stage-1", ".lock", "a\\b", "c:"] {
            fs::write(&path, entry(name).to_string()).unwrap();
            assert!(SkillsLock::read(&path).is_err(), "{name}");
        }
        for damaged in ["", "{", "{\"form\": 2}", "{\"form\": 1, \"plugins\": {}}"] {
            fs::write(&path, damaged).unwrap();
            assert!(SkillsLock::read(&path).is_err(), "{damaged}");
        }
    }
}
