//! `approvals.json`: the user's permanent approvals, shared by all processes of a home folder.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use hermes_plugin_host::Identity;

use super::right::{COMMAND, Right};

/// The file of permanent approvals; it may be missing.
#[derive(Debug, Clone)]
pub struct Kept {
    file: PathBuf,
}

/// A permanent approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptApproval {
    /// The plugin's name.
    pub plugin: String,
    /// Its version, for people. Only the digest is compared.
    pub version: String,
    /// The digest of its component. After a change the user is asked again.
    pub digest: String,
    /// The tool, `process:` or `variables:` and the program, or `command:` and a pattern of commands.
    pub what: String,
    /// What else must match: the file behind the program's name, or the reason of a hook.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// When the user gave it.
    pub at: String,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The content is not valid.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The file cannot be written.
    #[error("{path} cannot be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    approvals: Vec<KeptApproval>,
}

/// The most bytes of the file.
const LARGEST: u64 = 16 << 20;
/// The version of the file format.
const VERSION: u32 = 1;

impl Kept {
    /// The file of a home folder.
    pub fn in_home(home: &Path) -> Self {
        Self { file: home.join("approvals.json") }
    }

    /// All approvals, oldest first.
    pub fn all(&self) -> Result<Vec<KeptApproval>, KeptError> {
        let bytes = match hermes_private_files::read_regular(&self.file, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(KeptError::Read { path: self.file.clone(), source }),
        };
        let damaged = |why: String| KeptError::Damaged { path: self.file.clone(), why };
        let content: Content =
            serde_json::from_slice(&bytes).map_err(|error| damaged(hermes_diagnostic::json_fault(&error)))?;
        match content.version {
            VERSION => Ok(content.approvals),
            other => Err(damaged(format!("its format is version {other}, and this Hermes reads version {VERSION}"))),
        }
    }

    pub(super) fn has(&self, right: &Right) -> Result<bool, KeptError> {
        // Without a digest the plugin cannot be recognised later.
        Ok(!right.plugin.digest.is_empty() && self.all()?.iter().any(|kept| kept.is(right)))
    }

    /// The patterns of commands that a plugin may run.
    pub(super) fn commands(&self, plugin: &Identity) -> Result<Vec<String>, KeptError> {
        let is_of = |kept: &KeptApproval| {
            !plugin.digest.is_empty() && kept.plugin == plugin.name && kept.digest == plugin.digest
        };
        let kept = self.all()?.into_iter().filter(is_of);
        Ok(kept.filter_map(|kept| kept.what.strip_prefix(COMMAND).map(str::to_owned)).collect())
    }

    /// Adds approvals. They replace approvals of the same action for other digests of the plugin.
    pub(super) fn add(&self, rights: &[Right]) -> Result<(), KeptError> {
        let at = jiff::Timestamp::now().to_string();
        self.change(|approvals| {
            for right in rights {
                approvals.retain(|kept| !kept.is_about(right));
                approvals.push(KeptApproval {
                    plugin: right.plugin.name.clone(),
                    version: right.plugin.version.clone(),
                    digest: right.plugin.digest.clone(),
                    what: right.what.clone(),
                    of: right.of.clone(),
                    at: at.clone(),
                });
            }
        })
    }

    /// Removes the approvals of a plugin. Returns how many there were.
    pub fn forget(&self, plugin: &str) -> Result<usize, KeptError> {
        if self.all()?.iter().all(|kept| kept.plugin != plugin) {
            return Ok(0);
        }
        let mut forgotten = 0;
        self.change(|approvals| {
            let before = approvals.len();
            approvals.retain(|kept| kept.plugin != plugin);
            forgotten = before - approvals.len();
        })?;
        Ok(forgotten)
    }

    /// Reads, changes and replaces the file under a lock.
    fn change(&self, change: impl FnOnce(&mut Vec<KeptApproval>)) -> Result<(), KeptError> {
        let failed = |source| KeptError::Write { path: self.file.clone(), source };
        let _lock = self.lock().map_err(failed)?;
        let mut approvals = self.all()?;
        change(&mut approvals);
        let text =
            serde_json::to_string_pretty(&Content { version: VERSION, approvals }).map_err(|e| failed(e.into()))?;
        hermes_private_files::write_whole(&self.file, (text + "\n").as_bytes()).map_err(failed)
    }

    /// Locks a separate file, because the file itself is replaced.
    fn lock(&self) -> std::io::Result<File> {
        let lock = hermes_private_files::append_file(&self.file.with_extension("json.lock"))?;
        lock.lock()?;
        Ok(lock)
    }
}

impl KeptApproval {
    fn is(&self, right: &Right) -> bool {
        self.is_about(right) && self.digest == right.plugin.digest
    }

    fn is_about(&self, right: &Right) -> bool {
        (&self.plugin, &self.what, &self.of) == (&right.plugin.name, &right.what, &right.of)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::super::tests::right;
    use super::*;

    #[test]
    fn an_approval_is_valid_for_one_digest_and_one_program_file() {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::in_home(home.path());
        let git = Right { of: "/usr/bin/git".to_owned(), ..right("runner", "process:git") };
        assert!(!kept.has(&git).unwrap());
        kept.add(std::slice::from_ref(&git)).unwrap();
        assert!(Kept::in_home(home.path()).has(&git).unwrap());
        let mut updated = git.clone();
        updated.plugin.digest = "other".to_owned();
        let moved = Right { of: "/tmp/git".to_owned(), ..git.clone() };
        for other in [&updated, &moved, &right("runner", "process:git"), &right("runner", "git")] {
            assert!(!kept.has(other).unwrap(), "{other:?}");
        }
        kept.add(&[updated.clone()]).unwrap();
        assert!(kept.has(&updated).unwrap() && !kept.has(&git).unwrap());
        assert_eq!(kept.all().unwrap().len(), 1);
    }

    #[test]
    fn forgetting_a_plugin_leaves_the_approvals_of_others() {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::in_home(home.path());
        assert_eq!(kept.forget("runner").unwrap(), 0);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing to forget, and something was written");
        kept.add(&[right("runner", "a"), right("runner", "b"), right("other", "a")]).unwrap();
        assert_eq!(kept.forget("runner").unwrap(), 2);
        assert_eq!(kept.all().unwrap().iter().map(|kept| kept.plugin.as_str()).collect::<Vec<_>>(), ["other"]);
    }

    #[test]
    fn a_damaged_file_approves_nothing_and_stays_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::in_home(home.path());
        for text in ["", "{", "[]", r#"{"version":2,"approvals":[]}"#, r#"{"version":1,"approvals":[{"plugin":"x"}]}"#]
        {
            fs::write(home.path().join("approvals.json"), text).unwrap();
            assert!(matches!(kept.has(&right("runner", "a")), Err(KeptError::Damaged { .. })), "{text}");
            assert!(kept.add(&[right("runner", "a")]).is_err());
            assert_eq!(fs::read_to_string(home.path().join("approvals.json")).unwrap(), text);
        }
    }

    #[test]
    fn a_plugin_without_a_digest_gets_no_permanent_approval() {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::in_home(home.path());
        let mut nameless = right("runner", "a");
        nameless.plugin.digest.clear();
        kept.add(std::slice::from_ref(&nameless)).unwrap();
        assert!(!kept.has(&nameless).unwrap());
    }

    #[test]
    fn concurrent_approvals_are_all_stored() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let kept = Kept::in_home(home.path());
                scope.spawn(move || kept.add(&[right("runner", &format!("tool{number}"))]).unwrap());
            }
        });
        assert_eq!(Kept::in_home(home.path()).all().unwrap().len(), 16);
    }
}
