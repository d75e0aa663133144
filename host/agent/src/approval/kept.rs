//! `approvals.json`: the user's permanent approvals, shared by all processes of a home folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_plugin_host::Identity;
use hermes_private_files::{Document, Documents};
use serde::{Deserialize, Serialize};

use super::right::{COMMAND, Right};

/// The list of permanent approvals; it may be missing.
#[derive(Debug, Clone)]
pub struct Kept {
    documents: Arc<dyn Documents>,
    document: Document,
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

/// Why the list cannot be used.
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

/// The most bytes of the list.
const LARGEST: u64 = 16 << 20;
/// The version of its format.
const VERSION: u32 = 1;
/// How long to wait for other processes that change it.
const PATIENCE: Duration = Duration::from_secs(60);

impl Kept {
    /// The approvals of a home.
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        let document = Document { name: "approvals.json".to_owned(), most: LARGEST, lasting: true };
        Self { documents, document }
    }

    fn path(&self) -> PathBuf {
        self.documents.location(&self.document)
    }

    /// All approvals, oldest first.
    pub fn all(&self) -> Result<Vec<KeptApproval>, KeptError> {
        self.parse(self.documents.read(&self.document))
    }

    fn parse(&self, read: std::io::Result<Option<Vec<u8>>>) -> Result<Vec<KeptApproval>, KeptError> {
        let Some(bytes) = read.map_err(|source| KeptError::Read { path: self.path(), source })? else {
            return Ok(Vec::new());
        };
        let damaged = |why: String| KeptError::Damaged { path: self.path(), why };
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

    /// Changes the list. One that cannot be read stays as it is.
    fn change(&self, mut change: impl FnMut(&mut Vec<KeptApproval>)) -> Result<(), KeptError> {
        let failed = |source| KeptError::Write { path: self.path(), source };
        let mut changed = Ok(());
        self.documents
            .change(&self.document, PATIENCE, &mut |read| {
                let change = || {
                    let mut approvals = self.parse(read)?;
                    change(&mut approvals);
                    let content = Content { version: VERSION, approvals };
                    serde_json::to_string_pretty(&content).map_err(|error| failed(error.into()))
                };
                match change() {
                    Ok(text) => Some((text + "\n").into_bytes()),
                    Err(error) => {
                        changed = Err(error);
                        None
                    }
                }
            })
            .map_err(failed)?;
        changed
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

    use hermes_private_files::FileDocuments;

    use super::super::tests::right;
    use super::*;

    fn kept_in(home: &tempfile::TempDir) -> Kept {
        Kept::new(FileDocuments::below(home.path()))
    }

    #[test]
    fn an_approval_is_valid_for_one_digest_and_one_program_file() {
        let home = tempfile::tempdir().unwrap();
        let kept = kept_in(&home);
        let git = Right { of: "/usr/bin/git".to_owned(), ..right("runner", "process:git") };
        assert!(!kept.has(&git).unwrap());
        kept.add(std::slice::from_ref(&git)).unwrap();
        assert!(kept_in(&home).has(&git).unwrap());
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
        let kept = kept_in(&home);
        assert_eq!(kept.forget("runner").unwrap(), 0);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing to forget, and something was written");
        kept.add(&[right("runner", "a"), right("runner", "b"), right("other", "a")]).unwrap();
        assert_eq!(kept.forget("runner").unwrap(), 2);
        assert_eq!(kept.all().unwrap().iter().map(|kept| kept.plugin.as_str()).collect::<Vec<_>>(), ["other"]);
    }

    #[test]
    fn a_damaged_file_approves_nothing_and_stays_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let kept = kept_in(&home);
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
        let kept = kept_in(&home);
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
                let kept = kept_in(&home);
                scope.spawn(move || kept.add(&[right("runner", &format!("tool{number}"))]).unwrap());
            }
        });
        assert_eq!(kept_in(&home).all().unwrap().len(), 16);
    }
}
