//! The errors of installing a plugin.

use std::io;
use std::path::{Path, PathBuf};

use hermes_diagnostic::Diagnostic;
use hermes_plugin_host::{LockError, ManifestError};

/// Why nothing was changed. A failure before the commit leaves everything as it was.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The source is not valid.
    #[error("`{text}` is not a source of a plugin: {why}")]
    Source {
        /// The source as given.
        text: String,
        /// What is wrong with the source.
        why: String,
    },
    /// The source cannot be fetched.
    #[error("{from} cannot be fetched: {why}")]
    Fetch {
        /// The address.
        from: String,
        /// The cause, with a remedy if there is one.
        why: String,
    },
    /// An address without encryption.
    #[error("{0} is not encrypted, so that anybody on the way can change what arrives")]
    Insecure(String),
    /// The server answered an encrypted request without encryption.
    #[error("{0} cannot be fetched: the server does not speak TLS")]
    WithoutTls(String),
    /// The archive breaks a rule.
    #[error("the archive is refused: {0}")]
    Archive(String),
    /// The source does not contain a plugin.
    #[error("{from} holds no plugin: {why}")]
    NoPlugin {
        /// Where it came from.
        from: String,
        /// What is missing and how to correct it.
        why: String,
    },
    /// The manifest is not valid.
    #[error("plugin.yaml of {from}: {source}")]
    Manifest {
        /// Where it came from.
        from: String,
        /// The cause.
        source: ManifestError,
    },
    /// A signature that does not match.
    #[error("the signature is refused: {0}")]
    Signature(String),
    /// The publisher's key is not the pinned one.
    #[error(
        "`{name}` was signed with the key {pinned} when it was installed, and now {}",
        now.as_ref().map_or_else(|| "it is not signed".to_owned(), |key| format!("with {key}"))
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
    #[error("`{name}` {version} does not work here, so it was not installed: {why}")]
    Broken {
        /// The plugin.
        name: String,
        /// Its version.
        version: String,
        /// The cause.
        why: String,
    },
    /// The plugin is a native library, and the user has not agreed to one.
    #[error("`{0}` is a native library, which nothing contains: it can do all that you can")]
    Native(String),
    /// The user wants a native library, and the plugin has none.
    #[error(
        "`{0}` has no native library for this machine ({target})",
        target = hermes_runtime::TARGET
    )]
    NoLibrary(String),
    /// A plugin of this name is installed already.
    #[error("`{name}` {version} is installed already, from {source_text}")]
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
    #[error("no plugin `{name}` is installed; installed are: {}", listed(there))]
    Unknown {
        /// The name that was given.
        name: String,
        /// The installed plugins.
        there: Vec<String>,
    },
    /// The plugin is bundled, so it is part of the program.
    #[error("`{0}` is part of Hermes and is neither installed nor removed")]
    Bundled(String),
    /// A folder of that name exists that is not in the lock.
    #[error("{folder} is there and was not installed by this command")]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// The plugin's name.
        name: String,
    },
    /// There is no earlier version to restore.
    #[error("no earlier version of `{0}` was kept")]
    NoPrevious(String),
    /// The fetched plugin differs from the one that the lock pins.
    #[error("{from} is not what plugins.lock pins for `{name}`: {why}")]
    NotPinned {
        /// The plugin.
        name: String,
        /// Where it came from.
        from: String,
        /// The difference.
        why: String,
    },
    /// The plugin does not request this right.
    #[error("`{name}` does not ask for `{right}`; it asks for: {}", listed(asked))]
    NotAsked {
        /// The plugin.
        name: String,
        /// The right that was named.
        right: String,
        /// The rights that it asks for.
        asked: Vec<String>,
    },
    /// Another command changed the same thing at the same time.
    #[error("`{0}` was changed by another command in the meantime")]
    Raced(String),
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
