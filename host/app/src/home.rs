//! `$HERMES_HOME`: its location, and the paths of its files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_private_files::{Documents, FileDocuments, append_file, create_folder, rotate, write_whole};
use hermes_runtime::{CodeFolder, Compiler, Runtime};

use crate::AppError;
use crate::desk::Tenant;

/// A log with more bytes than this is renamed, and replaces the older one.
const LARGEST_LOG: u64 = 5 << 20;

/// The path of the home folder. Creating a `Home` creates no files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The sessions, memories, data and logs.
    path: PathBuf,
    /// The configuration, the plugins and the logins: of a tenant, those of the owner.
    shared: PathBuf,
}

/// The files of a plugin's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginLog {
    /// The present one.
    pub path: PathBuf,
    /// The full one before it.
    pub older: PathBuf,
}

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
        Ok(Self::at(&path))
    }

    /// The home at this path.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), shared: path.to_owned() }
    }

    /// The home of a tenant, in the folder `tenants` of its owner's home.
    pub(crate) fn of_tenant(&self, tenant: &Tenant) -> Self {
        Self { path: self.shared.join("tenants").join(tenant.as_str()), shared: self.shared.clone() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the configuration, the plugins and the logins: the same, unless this is the home of a tenant.
    pub fn shared(&self) -> &Path {
        &self.shared
    }

    /// The small documents of its sessions: approvals, and the lists of tool servers.
    pub fn documents(&self) -> Arc<dyn Documents> {
        FileDocuments::below(&self.path)
    }

    /// Those of its owner: the cooldowns of keys and models.
    pub(crate) fn shared_documents(&self) -> Arc<dyn Documents> {
        FileDocuments::below(&self.shared)
    }

    /// `config.yaml`.
    pub fn config(&self) -> PathBuf {
        self.shared.join("config.yaml")
    }

    /// `.env`.
    pub fn dotenv(&self) -> PathBuf {
        self.shared.join(".env")
    }

    /// `auth.json`: logins whose access tokens are refreshed.
    pub fn auth(&self) -> PathBuf {
        self.shared.join("auth.json")
    }

    /// `prices.json`: list prices of the user, which take precedence over the built-in ones.
    pub fn prices(&self) -> PathBuf {
        self.shared.join("prices.json")
    }

    /// Keeps list prices of the user.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn keep_prices(&self, text: &str) -> io::Result<()> {
        write_whole(&self.prices(), text.as_bytes())
    }

    /// The folder of installed plugins.
    pub fn plugins(&self) -> PathBuf {
        self.shared.join("plugins")
    }

    /// The folder of the user's skills.
    pub fn skills(&self) -> PathBuf {
        self.shared.join("skills")
    }

    /// What sources of skills contained when they were last fetched.
    pub fn skill_indexes(&self) -> PathBuf {
        self.shared.join("cache").join("skills")
    }

    /// The folder of logs.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Opens the log of the program to append to it. A large log begins anew.
    ///
    /// # Errors
    ///
    /// When the file or its folder cannot be created.
    pub fn open_log(&self) -> io::Result<File> {
        let folder = self.logs();
        create_folder(&folder)?;
        let path = folder.join("hermes.log");
        if fs::metadata(&path).is_ok_and(|found| found.len() > LARGEST_LOG) {
            rotate(&path, &folder.join("hermes.log.1"))?;
        }
        append_file(&path)
    }

    /// The log of a plugin. The name must be one of a plugin: it becomes part of a path.
    pub fn plugin_log(&self, name: &str) -> PluginLog {
        let path = self.logs().join(format!("{name}.jsonl"));
        PluginLog { older: hermes_agent::older_log(&path), path }
    }

    /// The history of the chat's lines.
    pub fn history(&self) -> PathBuf {
        self.path.join("history")
    }

    /// A runtime that keeps compiled plugins in this home.
    pub fn runtime(&self, compiler: Compiler) -> Runtime {
        crate::bundled::runtime(CodeFolder { path: self.code(), key: self.code_key() }, compiler)
    }

    /// Compiled plugins.
    pub fn code(&self) -> PathBuf {
        self.shared.join("cache").join("code")
    }

    /// The key that authenticates compiled plugins. It lies outside the cache, so that a cache copied from elsewhere
    /// does not bring its own key.
    pub fn code_key(&self) -> PathBuf {
        self.shared.join("code.key")
    }
}
