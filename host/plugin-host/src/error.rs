//! What stops a session from having the plugins that it was told to have.

use std::path::PathBuf;

use hermes_diagnostic::Diagnostic;
use hermes_runtime::LoadError;

use crate::catalog::Ungranted;
use crate::lock::LockError;
use crate::manifest::ManifestError;
use crate::settings::PreferredSource;

/// A plugin that was asked for and cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PluginsError {
    /// No plugin has the name.
    #[error("there is no {kind} `{name}`")]
    Missing {
        /// What was asked for, in words: `context engine`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Those that there are, with where they lie.
        found: Vec<String>,
        /// Where others are looked for.
        folder: PathBuf,
    },
    /// A plugin has the name but is something else.
    #[error("the plugin `{name}` is not a {kind}: it exports {}", exports.join(", "))]
    OtherKind {
        /// What was asked for.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What it exports.
        exports: Vec<&'static str>,
        /// Those that there are.
        found: Vec<String>,
        /// Where others are looked for.
        folder: PathBuf,
    },
    /// What was of a kind is not any more.
    #[error("the plugin `{name}` is not a {kind} any more: it exports {}", exports.join(", "))]
    NoLonger {
        /// What it was.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What it exports now.
        exports: Vec<&'static str>,
    },
    /// Its component cannot be used.
    #[error("the plugin `{name}` ({place}) does not load: {source}")]
    Load {
        /// Its name.
        name: String,
        /// Where it lies.
        place: String,
        /// Why.
        source: LoadError,
    },
    /// Somebody put a folder there that is no plugin.
    #[error("{folder} has no plugin.yaml, so it is no plugin")]
    NoManifest {
        /// The folder.
        folder: PathBuf,
    },
    /// Its folder holds no component.
    #[error(
        "the plugin in {folder} has no component{}",
        file.as_ref().map_or_else(String::new, |file| format!(": `{file}`, which its plugin.yaml names, is not there"))
    )]
    Unbuilt {
        /// The folder.
        folder: PathBuf,
        /// What the manifest names.
        file: Option<String>,
    },
    /// Its folder holds several components, and none is named.
    #[error("the plugin in {folder} has {found} components")]
    Component {
        /// The folder.
        folder: PathBuf,
        /// How many there are.
        found: usize,
    },
    /// It has native libraries, none of them for this machine, and no component.
    #[error(
        "the plugin `{name}` has native libraries for {}, and none for this machine ({}) and no component", targets.join(", "), hermes_runtime::TARGET
    )]
    OtherMachine {
        /// Its name.
        name: String,
        /// What they are for.
        targets: Vec<String>,
    },
    /// It may not run.
    #[error("the plugin `{name}` does not run: {why}")]
    Ungranted {
        /// Its name.
        name: String,
        /// Why.
        why: Ungranted,
    },
    /// It claims to be what it is not.
    #[error("the manifest of the plugin `{name}` says that it provides {}, and its component does not export that", claims.join(", "))]
    Claims {
        /// Its name.
        name: String,
        /// What it lacks.
        claims: Vec<String>,
    },
    /// The user's section for it does not fit.
    #[error("the configuration does not fit the plugin `{name}`: {}", misfits.join("; "))]
    Configuration {
        /// Its name.
        name: String,
        /// What does not fit.
        misfits: Vec<String>,
    },
    /// What was granted cannot be told.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its manifest is no good.
    #[error("{path}: {source}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ManifestError,
    },
    /// Another plugin has the same name.
    #[error("{path}: the plugin `{name}` is there already ({other}), so this one is left out")]
    Twice {
        /// The one left out.
        path: PathBuf,
        /// The name.
        name: String,
        /// Where the other one lies.
        other: String,
        /// Whether the other one is part of the program.
        is_bundled: bool,
    },
    /// The configuration names a source that has no plugin of that name.
    #[error("`plugins.settings.{name}.source` is `{wanted}`, and no plugin of that name is {wanted}")]
    Source {
        /// The plugin.
        name: String,
        /// Where it should come from.
        wanted: PreferredSource,
    },
    /// It is there and not to be had.
    #[error("the plugin `{name}` cannot be used: {}", problem.why)]
    Unusable {
        /// Its name.
        name: String,
        /// Why, and what to do.
        problem: Box<Diagnostic>,
    },
    /// Nobody tells when a plugin changes.
    #[error("{folder} cannot be watched, so plugins that change are taken up by the next start: {why}")]
    Watch {
        /// The folder.
        folder: PathBuf,
        /// Why.
        why: String,
    },
    /// It asks for a folder that cannot be opened.
    #[error("the folder `{root}` for the plugin `{name}` cannot be opened: {why}")]
    Folder {
        /// The plugin.
        name: String,
        /// The folder's name in the manifest.
        root: String,
        /// Why.
        why: String,
    },
}
