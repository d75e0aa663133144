//! The errors of installing a plugin or a skill.

use std::io;
use std::path::{Path, PathBuf};

use hermes_diagnostic::{Diagnostic, Fix};
use hermes_plugin_host::{LockError, ManifestError};

use crate::skills::{FileChange, SkillFlaw};

/// A cause, and the remedy for it. Without a remedy, that of the error applies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Reason {
    /// The cause.
    pub why: String,
    /// The remedy.
    pub fix: Fix,
}

impl Reason {
    pub(crate) fn new(why: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { why: why.into(), fix: fix.into() }
    }

    /// The remedy, or the one for the error as a whole.
    pub(crate) fn fix_or(&self, usual: Fix) -> Fix {
        if self.fix.is_empty() { usual } else { self.fix.clone() }
    }
}

impl From<String> for Reason {
    fn from(why: String) -> Self {
        Self { why, fix: Fix::none() }
    }
}

impl From<&str> for Reason {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// Why nothing was changed. A failure before the commit leaves everything as it was.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The source is not valid.
    #[error("`{text}` is not a valid source: {reason}")]
    Source {
        /// The source as given.
        text: String,
        /// What is wrong with the source.
        reason: Reason,
    },
    /// The source cannot be fetched.
    #[error("{from} cannot be fetched: {reason}")]
    Fetch {
        /// The address.
        from: String,
        /// The cause.
        reason: Reason,
    },
    /// A registry does not take the plugin.
    #[error("{to} cannot be pushed: {reason}")]
    Push {
        /// The image.
        to: String,
        /// The cause.
        reason: Reason,
    },
    /// An address without encryption.
    #[error("the connection to {0} is not encrypted, so its content could be replaced on its way")]
    Insecure(String),
    /// The server answered an encrypted request without encryption.
    #[error("{0} cannot be fetched: the server does not speak TLS")]
    WithoutTls(String),
    /// The archive breaks a rule.
    #[error("the archive cannot be used: {0}")]
    Archive(String),
    /// The file has another format.
    #[error("{from} is not a gzip or zip archive")]
    NotAnArchive {
        /// The file or address.
        from: String,
    },
    /// The source does not contain a plugin.
    #[error("{from} contains no usable plugin: {reason}")]
    NoPlugin {
        /// Where it came from.
        from: String,
        /// What is missing.
        reason: Reason,
    },
    /// The manifest is not valid.
    #[error("the plugin.yaml of {from} is invalid: {source}")]
    Manifest {
        /// Where it came from.
        from: String,
        /// The cause.
        source: ManifestError,
    },
    /// A signature that does not match.
    #[error("the signature cannot be accepted: {0}")]
    Signature(Reason),
    /// The secret key cannot sign this plugin.
    #[error("the plugin cannot be signed: {0}")]
    SigningKey(Reason),
    /// A signed version that is older than the installed one by the same key.
    #[error("`{name}` {installed} by the same publisher is installed, and {found} is older")]
    Older {
        /// The plugin.
        name: String,
        /// The installed version.
        installed: String,
        /// The older version.
        found: String,
    },
    /// The publisher's key is not the pinned one.
    #[error(
        "the first installed version of `{name}` was signed by key {pinned}, and this version is {}",
        now.as_ref().map_or_else(|| "not signed".to_owned(), |key| format!("signed by key {key}"))
    )]
    Key {
        /// The plugin.
        name: String,
        /// The key that the plugin was signed with when it was first installed.
        pinned: String,
        /// The key of this version.
        now: Option<String>,
    },
    /// The plugin cannot be loaded, so it is not installed.
    #[error("`{name}` {version} does not work with this installation: {why}")]
    Broken {
        /// The plugin.
        name: String,
        /// Its version.
        version: String,
        /// The cause.
        why: String,
        /// Whether its installed files were changed by hand.
        was_edited: bool,
    },
    /// The plugin is a native library, and the user has not agreed to one.
    #[error("`{0}` is a native library, which runs outside the sandbox and can do everything that you can do")]
    Native(String),
    /// The plugin uses draft interfaces of the contract, and the user has not allowed them.
    #[error(
        "`{name}` {version} uses draft interfaces of the contract, which a later version of Hermes may change or remove: {}",
        listed(drafts)
    )]
    Drafts {
        /// The plugin.
        name: String,
        /// Its version.
        version: String,
        /// The interfaces with their versions.
        drafts: Vec<String>,
    },
    /// The user wants a native library, and the plugin has none.
    #[error(
        "`{0}` has no native library for this machine ({target})",
        target = hermes_runtime::TARGET
    )]
    NoLibrary(String),
    /// A plugin of this name is installed already.
    #[error("`{name}` {version} is already installed from {source_text}")]
    Installed {
        /// The plugin.
        name: String,
        /// The installed version.
        version: String,
        /// Its source.
        source_text: String,
    },
    /// A folder among the plugins that is not a plugin.
    #[error("`{name}` cannot be used: {}", problem.why)]
    Unusable {
        /// The name that was given.
        name: String,
        /// The cause and the remedy.
        problem: Box<Diagnostic>,
    },
    /// No plugin of this name is installed.
    #[error("no plugin `{name}` is installed (installed plugins: {})", listed(there))]
    Unknown {
        /// The name that was given.
        name: String,
        /// The installed plugins.
        there: Vec<String>,
    },
    /// The plugin is bundled, so it is part of the program.
    #[error("`{0}` is part of Hermes, which manages it and its permissions")]
    Bundled(String),
    /// A plugin from elsewhere has the name of a bundled one.
    #[error("`{0}` is the name of a bundled plugin")]
    BundledName(String),
    /// A folder of that name exists that is not in the lock.
    #[error("{folder} exists already and is not listed in plugins.lock")]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// The plugin's name.
        name: String,
    },
    /// There is no earlier version to restore.
    #[error("no earlier version of `{0}` is stored")]
    NoPrevious(String),
    /// The fetched plugin differs from the one that the lock pins.
    #[error("{from} differs from what plugins.lock pins for `{name}`: {why}")]
    NotPinned {
        /// The plugin.
        name: String,
        /// Where it came from.
        from: String,
        /// The difference.
        why: String,
    },
    /// The plugin does not request this permission.
    #[error("`{name}` does not request the permission `{permission}` (it requests: {})", listed(asked))]
    NotAsked {
        /// The plugin.
        name: String,
        /// The permission that was named.
        permission: String,
        /// The permissions that it requests.
        asked: Vec<String>,
    },
    /// The source contains no skill.
    #[error("{from} contains no usable skill: {reason}")]
    NoSkill {
        /// Where it came from.
        from: String,
        /// What is missing.
        reason: Reason,
    },
    /// The source does not have this skill.
    #[error("{from} has no skill `{name}` (its skills: {})", few(there))]
    NoSuchSkill {
        /// The name that was given.
        name: String,
        /// The source.
        from: String,
        /// The skills that it has.
        there: Vec<String>,
    },
    /// Several skills of a source have this name.
    #[error("{from} has several skills `{name}`, in the folders {}", few(paths))]
    SkillTwice {
        /// The name that was given.
        name: String,
        /// The source.
        from: String,
        /// Their folders.
        paths: Vec<String>,
    },
    /// The skill breaks a rule.
    #[error("the skill `{name}` cannot be used: {flaw}")]
    SkillBroken {
        /// Its name.
        name: String,
        /// What is wrong.
        flaw: SkillFlaw,
    },
    /// A skill that Hermes did not install has this name.
    #[error("the skill `{name}` in your skills folder was not installed by Hermes")]
    SkillOccupied {
        /// Its name.
        name: String,
    },
    /// The user edited the skill.
    #[error("you changed the skill `{name}` since it was installed: {}", few(&edits.iter().map(|edit| edit.name.clone()).collect::<Vec<_>>()))]
    SkillEdited {
        /// Its name.
        name: String,
        /// The changed files.
        edits: Vec<FileChange>,
    },
    /// A skill from another source has this name.
    #[error("the skill `{name}` is already installed from {source_text}")]
    SkillInstalled {
        /// Its name.
        name: String,
        /// Its source.
        source_text: String,
    },
    /// A skill in another folder has this name.
    #[error("the skill in {folder} is called `{name}` too, and the model would see only one of them")]
    SkillName {
        /// The name.
        name: String,
        /// The folder of the other one.
        folder: PathBuf,
    },
    /// No skill of this name is installed.
    #[error("no skill `{name}` is installed (installed skills: {})", few(there))]
    UnknownSkill {
        /// The name that was given.
        name: String,
        /// The installed skills.
        there: Vec<String>,
    },
    /// `skills.lock` cannot be used.
    #[error("{path} is damaged: {why}")]
    SkillsLock {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// Another command changed the same thing at the same time.
    #[error("another command changed `{0}` in the meantime")]
    Raced(String),
    /// The journal of an interrupted command cannot be read.
    #[error("{path}, the journal of an interrupted command, is damaged: {why}")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The system refused an operation.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The first names of a list.
fn few(names: &[String]) -> String {
    const MOST: usize = 12;
    let more = names.len().saturating_sub(MOST);
    let shown = listed(&names[..names.len() - more]);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Adds the file or folder to an error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, InstallError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, InstallError> {
        self.map_err(|source| InstallError::File { path: path.to_owned(), source })
    }
}
