//! Which plugins the user selected.

use std::collections::HashMap;

use hermes_diagnostic::Fix;

use crate::settings::PluginSettings;
use crate::variables::Variables;

/// What the user's configuration says about plugins.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// `context.engine`.
    pub engine: String,
    /// `memory.provider`, beside the built-in memory.
    pub memory: Option<String>,
    /// `auxiliary.embeddings.plugin`: the plugin that computes vectors for the others.
    pub embedder: Option<String>,
    /// `plugins.enabled`, beside those that are on by default.
    pub enabled: Vec<String>,
    /// `plugins.disabled`: has precedence over everything except the engine, the provider and the embedder selected by name.
    pub disabled: Vec<String>,
    /// `plugins.entries.<name>`: a JSON object for the plugin.
    pub entries: HashMap<String, serde_json::Value>,
    /// The values of `${NAME}` and of secrets, as far as each plugin was granted them.
    pub variables: Variables,
    /// `plugins.settings.<name>`: the host's settings for the plugin.
    pub settings: HashMap<String, PluginSettings>,
    /// Keys of other sections whose values a plugin gets in `entries`, such as `compression.threshold`.
    pub passed_on: HashMap<String, Vec<String>>,
}

impl Selection {
    /// The default engine.
    pub const ENGINE: &str = "compressor";
    /// The memory provider that is on by default.
    pub const MEMORY: &str = "builtin";
    /// Tools and skills that are on by default.
    pub const ON: &[&str] = &["files", "terminal", "todo", "local"];

    /// An engine and nothing beside it.
    pub fn only(engine: &str) -> Self {
        let off = Self::ON.iter().copied().chain([Self::MEMORY]).filter(|name| *name != engine);
        Self {
            engine: engine.to_owned(),
            memory: None,
            embedder: None,
            enabled: Vec::new(),
            disabled: off.map(str::to_owned).collect(),
            entries: HashMap::new(),
            variables: Variables::none(),
            settings: HashMap::new(),
            passed_on: HashMap::new(),
        }
    }

    /// The names of all selected plugins, installed or not. The first with a tool of a name provides it. A plugin that is
    /// selected twice is named twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let builtin = std::iter::once(Self::MEMORY).filter(|name| self.is_on(name));
        let others = Self::ON.iter().copied().chain(self.enabled.iter().map(String::as_str));
        std::iter::once(self.engine.as_str())
            .chain(builtin)
            .chain(self.memory.as_deref())
            .chain(self.embedder.as_deref())
            .chain(others.filter(|name| self.is_on(name)))
    }

    /// The plugins in `disabled` that another key selects by name, which counts.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let engine = ("context.engine", Some(&self.engine));
        let others =
            [("memory.provider", self.memory.as_ref()), ("auxiliary.embeddings.plugin", self.embedder.as_ref())];
        let named = std::iter::once(engine).chain(others).filter_map(|(key, name)| Some((key, name?)));
        let disabled = named.filter(|(_, name)| !self.is_on(name));
        disabled.map(|(key, name)| Contradiction { key, plugin: name.clone() }).collect()
    }

    /// Whether a plugin that is on by default, or enabled, is not disabled.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        !self.disabled.iter().any(|disabled| disabled == name)
    }
}

/// A plugin that is disabled and selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugins.disabled names `{plugin}`, but sessions use it: {}", because(plugin, key))]
pub struct Contradiction {
    /// The key that selects it.
    pub key: &'static str,
    /// The plugin.
    pub plugin: String,
}

fn because(plugin: &str, key: &str) -> String {
    match plugin == Selection::ENGINE {
        true => format!("a session needs an engine, and it is the one that {key} has by default"),
        false => format!("{key} selects it, and that counts"),
    }
}

impl Contradiction {
    /// How to make the configuration say one thing.
    pub fn fix(&self) -> Fix {
        Fix::words(format!("choose another plugin with {}", self.key))
            .or(format!("take `{}` out of plugins.disabled", self.plugin))
    }
}
