//! Why a session cannot use a plugin.

use std::path::PathBuf;

use hermes_diagnostic::Diagnostic;
use hermes_runtime::LoadError;

use crate::lock::LockError;
use crate::manifest::ManifestError;
use crate::settings::PreferredSource;
use crate::ungranted::Ungranted;

/// A plugin cannot be used, or something about plugins needs the user's attention.
#[derive(Debug, thiserror::Error)]
pub enum PluginsError {
    /// No plugin has the name.
    #[error("there is no {kind} `{name}`")]
    Missing {
        /// The wanted kind in words, such as `context engine`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The names of the plugins of this kind.
        found: Vec<String>,
    },
    /// A plugin has the name, but is of another kind.
    #[error("the plugin `{name}` is not a {kind}: it exports {}", exports.join(", "))]
    OtherKind {
        /// The wanted kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Its exports.
        exports: Vec<&'static str>,
        /// The names of the plugins of the wanted kind.
        found: Vec<String>,
    },
    /// A newer version of a plugin is of another kind.
    #[error("the plugin `{name}` is no longer a {kind}: it exports {}", exports.join(", "))]
    NoLonger {
        /// The kind of the running version.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The exports of the newer version.
        exports: Vec<&'static str>,
    },
    /// The plugin's code cannot be used.
    #[error("the plugin `{name}` ({place}) does not load: {source}")]
    Load {
        /// Its name.
        name: String,
        /// Its origin.
        place: String,
        /// Why.
        source: LoadError,
    },
    /// A folder of plugins contains a folder without a manifest.
    #[error("{folder} has no plugin.yaml, so it is not a plugin")]
    NoManifest {
        /// The folder.
        folder: PathBuf,
    },
    /// The plugin's folder has no component.
    #[error(
        "the plugin in {folder} has no component{}",
        file.as_ref().map_or_else(String::new, |file| format!(": its plugin.yaml names `{file}`, which does not exist"))
    )]
    Unbuilt {
        /// The folder.
        folder: PathBuf,
        /// The file that the manifest names.
        file: Option<String>,
    },
    /// The plugin's folder has several components, and the manifest names none.
    #[error("the plugin in {folder} has {found} components, and its plugin.yaml names none of them")]
    Component {
        /// The folder.
        folder: PathBuf,
        /// The number of components.
        found: usize,
    },
    /// The plugin has native libraries for other machines only, and no component.
    #[error(
        "the plugin `{name}` has native libraries for {}, but none for this machine ({}), and no component", targets.join(", "), hermes_runtime::TARGET
    )]
    OtherMachine {
        /// Its name.
        name: String,
        /// The targets of the libraries.
        targets: Vec<String>,
    },
    /// The plugin may not run.
    #[error("the plugin `{name}` cannot run: {why}")]
    Ungranted {
        /// Its name.
        name: String,
        /// Why.
        why: Ungranted,
    },
    /// The manifest claims a kind that the plugin does not export.
    #[error("the manifest of the plugin `{name}` claims that it provides {}, which its component does not export", claims.join(", "))]
    Claims {
        /// Its name.
        name: String,
        /// The claimed kinds that it does not export.
        claims: Vec<String>,
    },
    /// The user's section for the plugin does not fit its schema.
    #[error("the configuration of the plugin `{name}` is invalid: {}", misfits.join("; "))]
    Configuration {
        /// Its name.
        name: String,
        /// One line for each mismatch.
        misfits: Vec<String>,
        /// Keys of other sections whose values the plugin gets too.
        passed_on: Vec<String>,
        /// Variables of its secrets that are not set. A plugin may refuse to start without them.
        unset: Vec<String>,
    },
    /// `plugins.lock` cannot be used.
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
    /// The manifest is invalid.
    #[error("{path}: {source}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ManifestError,
    },
    /// Another plugin has the same name.
    #[error("{path} is not used, because another plugin has the name `{name}` ({other})")]
    Twice {
        /// The manifest of the plugin that is left out.
        path: PathBuf,
        /// The name.
        name: String,
        /// The origin of the other plugin.
        other: String,
        /// Whether the other plugin is bundled.
        is_bundled: bool,
    },
    /// The configuration names a source that has no plugin of that name.
    #[error("`plugins.settings.{name}.source` is `{wanted}`, but no plugin of that name is {wanted}")]
    Source {
        /// The plugin.
        name: String,
        /// The configured source.
        wanted: PreferredSource,
    },
    /// A plugin of this name exists, but cannot be used.
    #[error("the plugin `{name}` cannot be used: {}", problem.why)]
    Unusable {
        /// Its name.
        name: String,
        /// The reason and the remedy.
        problem: Box<Diagnostic>,
    },
    /// The folder of plugins cannot be watched.
    #[error("{folder} cannot be watched, so changed plugins take effect at the next start: {why}")]
    Watch {
        /// The folder.
        folder: PathBuf,
        /// Why.
        why: String,
    },
    /// The plugin requests a folder that cannot be opened.
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
