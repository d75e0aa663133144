//! `$HERMES_HOME`: where it is and what lies where in it.

use std::io;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Kind};

/// The folder that holds everything. Nothing is created by naming it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// `$HERMES_HOME`, else `~/.hermes`.
    pub(crate) fn locate() -> Result<Self, Failure> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = || set("HOME").or_else(|| set("USERPROFILE"));
        let path = set("HERMES_HOME").or_else(|| user().map(|home| home.join(".hermes"))).ok_or_else(|| {
            failure("neither HERMES_HOME nor HOME is set", "set HERMES_HOME to a folder for conversations and settings")
        })?;
        let path = std::path::absolute(&path).map_err(|error| {
            failure(&format!("{}: {error}", path.display()), "set HERMES_HOME to a folder by its full path")
        })?;
        Ok(Self(path))
    }

    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("config.yaml")
    }

    pub(crate) fn dotenv(&self) -> PathBuf {
        self.0.join(".env")
    }

    pub(crate) fn plugins(&self) -> PathBuf {
        self.0.join("plugins")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    pub(crate) fn history(&self) -> PathBuf {
        self.0.join("history")
    }

    /// Compiled plugins.
    pub(crate) fn code(&self) -> PathBuf {
        self.0.join("cache").join("code")
    }

    /// The key of their tags, where a cache that was brought in from elsewhere does not reach.
    pub(crate) fn code_key(&self) -> PathBuf {
        self.0.join("code.key")
    }
}

fn failure(why: &str, fix: &str) -> Failure {
    Failure::new(Kind::Configuration, "the home folder cannot be used", why, fix)
}

/// A folder that only its owner can open, with those above it.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A file to append to that only its owner can read.
pub(crate) fn append_private(file: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}
