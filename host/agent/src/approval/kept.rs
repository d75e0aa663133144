//! `approvals.json`: what the user approved for good, shared by all processes of a home.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::right::Right;

/// The file; it need not be there.
#[derive(Debug, Clone)]
pub struct Kept {
    file: PathBuf,
}

/// An approval in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptApproval {
    /// The plugin's name.
    pub plugin: String,
    /// Its version, for people: what counts is the digest.
    pub version: String,
    /// Of its component. With another one the user is asked again.
    pub digest: String,
    /// The tool, or `process:` and the program.
    pub what: String,
    /// What else must be the same: the file behind the program's name, the reason of a hook.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// When it was given.
    pub at: String,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is not what was written.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It cannot be written.
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

/// Of the file's form.
const VERSION: u32 = 1;

impl Kept {
    /// That of a home.
    pub fn in_home(home: &Path) -> Self {
        Self { file: home.join("approvals.json") }
    }

    /// All of them, in the order in which they were given.
    pub fn all(&self) -> Result<Vec<KeptApproval>, KeptError> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(KeptError::Read { path: self.file.clone(), source }),
        };
        let damaged = |why: String| KeptError::Damaged { path: self.file.clone(), why };
        let content: Content = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        match content.version {
            VERSION => Ok(content.approvals),
            other => Err(damaged(format!("it has the form {other}, and this version of Hermes knows {VERSION}"))),
        }
    }

    pub(super) fn has(&self, right: &Right) -> Result<bool, KeptError> {
        // A plugin without a digest is not known well enough to be trusted for good.
        Ok(!right.plugin.digest.is_empty() && self.all()?.iter().any(|kept| kept.is(right)))
    }

    /// Adds approvals; those of the same for another state of the plugin are dropped.
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

    /// Forgets those of a plugin; says how many there were.
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

    /// Reads, changes and replaces the file, while no other process does.
    fn change(&self, change: impl FnOnce(&mut Vec<KeptApproval>)) -> Result<(), KeptError> {
        let failed = |source| KeptError::Write { path: self.file.clone(), source };
        let _lock = self.lock().map_err(failed)?;
        let mut approvals = self.all()?;
        change(&mut approvals);
        let text =
            serde_json::to_string_pretty(&Content { version: VERSION, approvals }).map_err(|e| failed(e.into()))?;
        hermes_private_files::write_whole(&self.file, (text + "\n").as_bytes()).map_err(failed)
    }

    /// Another file, since this one is replaced.
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
    use super::super::tests::right;
    use super::*;

    #[test]
    fn an_approval_is_for_one_state_of_the_plugin_and_one_file_behind_the_name() {
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
    fn what_is_forgotten_is_forgotten_for_one_plugin() {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::in_home(home.path());
        assert_eq!(kept.forget("runner").unwrap(), 0);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing to forget, and something was written");
        kept.add(&[right("runner", "a"), right("runner", "b"), right("other", "a")]).unwrap();
        assert_eq!(kept.forget("runner").unwrap(), 2);
        assert_eq!(kept.all().unwrap().iter().map(|kept| kept.plugin.as_str()).collect::<Vec<_>>(), ["other"]);
    }

    #[test]
    fn a_damaged_file_approves_nothing_and_is_left_as_it_is() {
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
    fn a_plugin_without_a_digest_is_never_trusted_for_good() {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::in_home(home.path());
        let mut nameless = right("runner", "a");
        nameless.plugin.digest.clear();
        kept.add(std::slice::from_ref(&nameless)).unwrap();
        assert!(!kept.has(&nameless).unwrap());
    }

    #[test]
    fn processes_that_approve_at_once_lose_nothing() {
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
