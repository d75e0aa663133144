//! What the configuration says about plugins, compared with the plugins of this home.

use hermes_config::{Environment, most_similar};
use hermes_diagnostic::{Action, Fix};
use hermes_plugin_host::record::Failure;
use hermes_runtime::{CodeFolder, Compiler};

pub use hermes_install::codes::UNKNOWN;
pub use hermes_plugin_host::record::{Record, Returned, Suspension};
pub use hermes_plugin_host::rehearsal::Shown;
pub use hermes_plugin_host::{
    Catalog, Code, Digest, Found, GrantStatus, Limit, LimitSet, Manifest, Origin, Permissions, Pin, PluginOrigin,
    PluginsError, RequiredVariable, Right, Selection, Trial, Variables, try_out,
};
pub use hermes_runtime::{Effect, LIMITS, Runtime, Tier, Tool};

use crate::{AppError, Home};

/// How a session uses a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// As its context engine.
    Engine,
    /// As its memory provider.
    Memory,
    /// For tools, skills or hooks.
    Other,
}

impl Role {
    /// By the exported kinds: an engine with tools is an engine.
    pub fn of(kinds: &[&str]) -> Self {
        match kinds {
            kinds if kinds.contains(&"context-engine") => Self::Engine,
            kinds if kinds.contains(&"memory-provider") => Self::Memory,
            _ => Self::Other,
        }
    }
}

/// A plugin that the configuration selects and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPlugin {
    /// The key that names it.
    pub key: &'static str,
    /// Its name.
    pub name: String,
    /// A similar name of an existing plugin.
    pub nearest: Option<String>,
    /// The names of all plugins.
    pub existing: Vec<String>,
}

impl MissingPlugin {
    /// What to do.
    pub fn fix(&self) -> Fix {
        let correct = match &self.nearest {
            Some(near) => format!("correct it to `{near}`"),
            None => format!("choose one of: {}", self.existing.join(", ")),
        };
        Fix::words(correct).or(Action::InstallPlugin)
    }
}

/// The selected plugins that do not exist.
pub fn missing_plugins(selection: &Selection, catalog: &Catalog) -> Vec<MissingPlugin> {
    let existing = || catalog.all().iter().map(|found| found.manifest.name.clone());
    let engine = ("context.engine", selection.engine.as_str());
    let memory = selection.memory.iter().map(|name| ("memory.provider", name.as_str()));
    let embedder = selection.embedder.iter().map(|name| ("auxiliary.embeddings.plugin", name.as_str()));
    let enabled = selection.enabled.iter().map(|name| ("plugins.enabled", name.as_str()));
    // A section for a plugin that is not installed may wait for it; a misspelt name waits for nothing.
    let sections = selection.entries.keys().filter(|name| most_similar(name, existing()).is_some());
    std::iter::once(engine)
        .chain(memory)
        .chain(embedder)
        .chain(enabled)
        .chain(sections.map(|name| ("plugins.entries", name.as_str())))
        .filter(|(_, name)| catalog.get(name).is_none())
        .map(|(key, name)| MissingPlugin {
            key,
            name: name.to_owned(),
            nearest: most_similar(name, existing()),
            existing: existing().collect(),
        })
        .collect()
}

/// The variables that a plugin requires and that are not set.
pub fn unset_variables<'a>(
    manifest: &'a Manifest,
    environment: &'a Environment,
) -> impl Iterator<Item = &'a RequiredVariable> {
    manifest.requires_env.iter().filter(|wanted| environment.var(wanted.name.as_str()).is_none())
}

/// The draft interfaces of the contract that a component uses: later versions of Hermes may change or remove them. A component that
/// does not fit this host has none; that is reported when it is loaded.
pub fn drafts(manifest: &Manifest, component: &[u8]) -> Vec<String> {
    hermes_runtime::draft_interfaces(component, manifest.later_versions()).unwrap_or_default()
}

/// The draft interfaces that a plugin uses as it runs: a native library uses none.
pub fn drafts_of(found: &Found) -> Vec<String> {
    match found.code() {
        Ok(Code::Component(component)) => drafts(&found.manifest, &component),
        _ => Vec::new(),
    }
}

/// A failed call of a plugin in one line.
pub fn mishap(error: &Failure) -> String {
    let at = i64::try_from(error.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.map_or_else(String::new, |at| format!("{} UTC: ", at.strftime("%Y-%m-%d %H:%M")));
    format!("{at}`{}` of version {}: {}", error.call, error.version, error.cause)
}

/// The storage of compiled code for an operation that must not create anything in the home.
#[derive(Debug)]
pub enum CodeStorage {
    /// In the home, whose folder for code exists.
    InHome,
    /// In a folder that is removed with this value.
    Temporary(tempfile::TempDir),
}

impl CodeStorage {
    /// Chooses the folder of the home if it exists.
    ///
    /// # Errors
    ///
    /// When no temporary folder can be created.
    pub fn of(home: &Home) -> Result<Self, AppError> {
        if home.code().is_dir() {
            return Ok(Self::InHome);
        }
        let folder = tempfile::Builder::new().prefix("hermes-").tempdir();
        Ok(Self::Temporary(folder.map_err(|source| AppError::Temporary { source })?))
    }

    /// A runtime that keeps compiled code there.
    pub fn runtime(&self, home: &Home, compiler: Compiler) -> Runtime {
        match self {
            Self::InHome => home.runtime(compiler),
            Self::Temporary(folder) => crate::runtime(CodeFolder::alone(folder.path().join("code")), compiler),
        }
    }
}
