//! What keeps a plugin from being installed, in sentences that end in a way out where there is one.

use std::io;
use std::path::{Path, PathBuf};

use hermes_diagnostic::Diagnostic;
use hermes_plugin_host::{LockError, ManifestError};

/// Why nothing was changed. Whatever fails before the commit leaves everything as it was.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// What to install cannot be told.
    #[error("`{text}` is no source of a plugin: {why}")]
    Source {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// It cannot be fetched.
    #[error("{from} cannot be fetched: {why}")]
    Fetch {
        /// The address.
        from: String,
        /// Why, with a way out where there is one.
        why: String,
    },
    /// An address that anybody on the way could answer for.
    #[error("{0} is not encrypted, so that anybody on the way can change what arrives")]
    Insecure(String),
    /// The server answers an encrypted request without encryption.
    #[error("{0} cannot be fetched: the server does not speak TLS")]
    WithoutTls(String),
    /// An archive that breaks a rule.
    #[error("the archive is refused: {0}")]
    Archive(String),
    /// What was fetched is no plugin.
    #[error("{from} holds no plugin: {why}")]
    NoPlugin {
        /// Where it came from.
        from: String,
        /// What is missing, and how to put it right.
        why: String,
    },
    /// Its manifest is no good.
    #[error("plugin.yaml of {from}: {source}")]
    Manifest {
        /// Where it came from.
        from: String,
        /// Why.
        source: ManifestError,
    },
    /// A signature that does not fit.
    #[error("the signature is refused: {0}")]
    Signature(String),
    /// The publisher's key is not the one that was pinned.
    #[error(
        "`{name}` was signed with the key {pinned} when it was installed, and now {}",
        now.as_ref().map_or_else(|| "it is not signed".to_owned(), |key| format!("with {key}"))
    )]
    Key {
        /// The plugin.
        name: String,
        /// The key of the first install.
        pinned: String,
        /// The key that it has now.
        now: Option<String>,
    },
    /// It cannot be loaded, so it is not installed.
    #[error("`{name}` {version} does not work here, so it was not installed: {why}")]
    Broken {
        /// The plugin.
        name: String,
        /// Its version.
        version: String,
        /// Why.
        why: String,
    },
    /// A native library, and nobody agreed to that.
    #[error("`{0}` is a native library, which nothing contains: it can do all that you can")]
    Native(String),
    /// It is to run as a native library, and there is none.
    #[error(
        "`{0}` has no native library for this machine ({target})",
        target = hermes_runtime::TARGET
    )]
    NoLibrary(String),
    /// It is there already.
    #[error("`{name}` {version} is installed already, from {source_text}")]
    Installed {
        /// The plugin.
        name: String,
        /// The version that is there.
        version: String,
        /// Where that came from.
        source_text: String,
    },
    /// A plugin that is there and is none.
    #[error("`{name}` cannot be used: {}", problem.why)]
    Unusable {
        /// What was asked for.
        name: String,
        /// Why, and what to do.
        problem: Box<Diagnostic>,
    },
    /// A plugin that nobody installed.
    #[error("there is no plugin `{name}` among the installed ones; there are: {}", listed(there))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// A bundled plugin is part of the program.
    #[error("`{0}` is part of Hermes and is neither installed nor removed")]
    Bundled(String),
    /// A folder of that name is there that no lock knows.
    #[error("{folder} is there and was not installed by this command")]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// The plugin's name.
        name: String,
    },
    /// There is nothing to go back to.
    #[error("no earlier version of `{0}` was kept")]
    NoPrevious(String),
    /// What the lock pins and what arrived differ.
    #[error("{from} is not what plugins.lock pins for `{name}`: {why}")]
    NotPinned {
        /// The plugin.
        name: String,
        /// Where it came from.
        from: String,
        /// What differs.
        why: String,
    },
    /// A right that the plugin does not ask for.
    #[error("`{name}` does not ask for `{right}`; it asks for: {}", listed(asked))]
    NotAsked {
        /// The plugin.
        name: String,
        /// The right.
        right: String,
        /// What it asks for.
        asked: Vec<String>,
    },
    /// Another command has changed the same thing in the meantime.
    #[error("`{0}` was changed by another command in the meantime")]
    Raced(String),
    /// The lock is no good.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The system says no.
    #[error("{path}: {source}")]
    File {
        /// File or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Says of which file or folder an error speaks.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, InstallError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, InstallError> {
        self.map_err(|source| InstallError::File { path: path.to_owned(), source })
    }
}
