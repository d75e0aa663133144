//! `$HERMES_HOME`: its location, and the paths of its files.

use std::path::{Path, PathBuf};

use hermes_runtime::{CodeFolder, Compiler, Runtime};

use crate::AppError;

/// The path of the home folder. Creating a `Home` creates no files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// `$HERMES_HOME`, else `~/.hermes`.
    ///
    /// # Errors
    ///
    /// When no variable names a folder, or its path cannot be made absolute.
    pub fn locate() -> Result<Self, AppError> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = || set("HOME").or_else(|| set("USERPROFILE"));
        let path = set("HERMES_HOME").or_else(|| user().map(|home| home.join(".hermes"))).ok_or(AppError::NoHome)?;
        let path = std::path::absolute(&path).map_err(|source| AppError::HomePath { path, source })?;
        Ok(Self(path))
    }

    /// The home at this path.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `config.yaml`.
    pub fn config(&self) -> PathBuf {
        self.0.join("config.yaml")
    }

    /// `.env`.
    pub fn dotenv(&self) -> PathBuf {
        self.0.join(".env")
    }

    /// `auth.json`: logins whose access tokens are refreshed.
    pub fn auth(&self) -> PathBuf {
        self.0.join("auth.json")
    }

    /// `prices.json`: list prices of the user, which take precedence over the built-in ones.
    pub fn prices(&self) -> PathBuf {
        self.0.join("prices.json")
    }

    /// The folder of installed plugins.
    pub fn plugins(&self) -> PathBuf {
        self.0.join("plugins")
    }

    /// The folder of the user's skills.
    pub fn skills(&self) -> PathBuf {
        self.0.join("skills")
    }

    /// What sources of skills contained when they were last fetched.
    pub fn skill_indexes(&self) -> PathBuf {
        self.0.join("cache").join("skills")
    }

    /// The folder of logs.
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// The history of the chat's lines.
    pub fn history(&self) -> PathBuf {
        self.0.join("history")
    }

    /// A runtime that keeps compiled plugins in this home.
    pub fn runtime(&self, compiler: Compiler) -> Runtime {
        crate::bundled::runtime(CodeFolder { path: self.code(), key: self.code_key() }, compiler)
    }

    /// Compiled plugins.
    pub fn code(&self) -> PathBuf {
        self.0.join("cache").join("code")
    }

    /// The key that authenticates compiled plugins. It lies outside the cache, so that a cache copied from elsewhere
    /// does not bring its own key.
    pub fn code_key(&self) -> PathBuf {
        self.0.join("code.key")
    }
}
