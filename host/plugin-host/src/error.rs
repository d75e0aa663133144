//! What stops a session from having the plugins that it was told to have.

use std::path::PathBuf;

use hermes_runtime::LoadError;

use crate::catalog::Ungranted;
use crate::lock::LockError;
use crate::manifest::ManifestError;
use crate::settings::PreferredSource;

/// A plugin that was asked for and cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PluginsError {
    /// No plugin has the name.
    #[error("there is no {kind} `{name}`. {}", list(kind, found, folder))]
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
    #[error("the plugin `{name}` is no {kind}: it exports {}. {}", exports.join(", "), list(kind, found, folder))]
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
    #[error("the plugin `{name}` is no {kind} any more: it exports {}", exports.join(", "))]
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
    #[error("{folder} has no plugin.yaml, so it is no plugin; put one there, or move the folder away")]
    NoManifest {
        /// The folder.
        folder: PathBuf,
    },
    /// Its folder holds no component.
    #[error(
        "the plugin in {folder} has no component{}; build it and put the .wasm file beside its plugin.yaml",
        file.as_ref().map_or_else(String::new, |file| format!(": `{file}`, which its plugin.yaml names, is not there"))
    )]
    Unbuilt {
        /// The folder.
        folder: PathBuf,
        /// What the manifest names.
        file: Option<String>,
    },
    /// Its folder holds several components, and none is named.
    #[error("the plugin in {folder} has {found} components; name one in its plugin.yaml, as `component: FILE.wasm`")]
    Component {
        /// The folder.
        folder: PathBuf,
        /// How many there are.
        found: usize,
    },
    /// It has native libraries, none of them for this machine, and no component.
    #[error(
        "the plugin `{name}` has native libraries for {}, and none for this machine ({}) and no component; ask its author \
         for one of them", targets.join(", "), hermes_runtime::TARGET
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
    #[error("the manifest of the plugin `{name}` says that it provides {}, and its component does not export that; correct `provides`", claims.join(", "))]
    Claims {
        /// Its name.
        name: String,
        /// What it lacks.
        claims: Vec<String>,
    },
    /// The user's section for it does not fit.
    #[error("the configuration does not fit the plugin `{name}`: {}; correct it in config.yaml", misfits.join("; "))]
    Configuration {
        /// Its name.
        name: String,
        /// What does not fit.
        misfits: Vec<String>,
    },
    /// What was granted cannot be told.
    #[error("{0}; until then no installed plugin runs")]
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
    #[error(
        "{path}: the plugin `{name}` is there already ({other}), so this one is left out; rename or remove it{}",
        if *is_bundled { format!(", or set `plugins.settings.{name}.source: installed` to have it serve") } else { String::new() }
    )]
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
    /// The user wants it from where there is none.
    #[error(
        "`plugins.settings.{name}.source` is `{wanted}`, and no plugin of that name is {wanted}; {}leave the key out",
        if *wanted == PreferredSource::Installed { "install one, or " } else { "" }
    )]
    Source {
        /// The plugin.
        name: String,
        /// Where it should come from.
        wanted: PreferredSource,
    },
    /// It is there and not to be had.
    #[error("the plugin `{name}` cannot be used: {why}")]
    Unusable {
        /// Its name.
        name: String,
        /// Why, with what to do.
        why: String,
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

impl PluginsError {
    /// Why, and what to do about it.
    pub fn why_and_fix(&self) -> (String, String) {
        let sentence = self.to_string();
        match sentence.rsplit_once("; ") {
            Some((why, fix)) => (why.to_owned(), fix.to_owned()),
            None => (sentence, self.fix()),
        }
    }

    /// What to do where the sentence does not say it.
    fn fix(&self) -> String {
        match self {
            Self::Manifest { path, .. } => format!("correct {}; docs/plugins.md has all fields", path.display()),
            Self::Read { path, .. } => format!("see that {} can be read", path.display()),
            Self::Load { name, .. } => {
                format!("install a version that works here, or turn it off with `hermes plugins disable {name}`")
            }
            _ => "correct or remove the plugin, or select another; `hermes plugins list` shows all".to_owned(),
        }
    }
}

fn list(kind: &str, found: &[String], folder: &std::path::Path) -> String {
    let there = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    format!("there are: {there}. Others are looked for in {}; `{kind}` is what a component exports", folder.display())
}
