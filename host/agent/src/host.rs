//! What a session runs with: the store, the plugins, the model and the settings.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_conversation::Model;
use hermes_models::{Provider, Ttl};
use hermes_prompt::PlatformHint;
use hermes_session_store::SessionStore;

use crate::approval::Approvals;
use crate::auxiliary::AuxiliaryModels;
use crate::clock::Clock;
use crate::ephemeral::Ephemeral;
use crate::plugin_set::PluginSet;

/// What the loop obeys.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Requests that one turn may make.
    pub max_turns: u32,
    /// Whether the engine is asked. A window that is really full is folded by rule in any case.
    pub compression: bool,
    /// `cli`, …
    pub platform: String,
    /// The process ends after one turn.
    pub one_shot: bool,
    /// The models that serve plugins, by task.
    pub auxiliary_models: AuxiliaryModels,
    /// What the prompt is built from beside what plugins and files say.
    pub prompt: PromptSettings,
    /// Layers of a single call.
    pub ephemeral: Ephemeral,
    /// How long providers are asked to keep a prefix.
    pub cache_ttl: Ttl,
    /// The time of day.
    pub clock: Clock,
}

/// What the prompt is built from beside what plugins and files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptSettings {
    /// The user's own part.
    pub system_message: Option<String>,
    /// What to say of the platform instead of, or behind, the built-in words.
    pub platform_hint: PlatformHint,
    /// What to say of the machine.
    pub environment_hint: Option<String>,
    /// Whether project files are read.
    pub context_files: bool,
    /// Characters that a project file may take; none for a share of the window.
    pub context_file_max_chars: Option<usize>,
}

/// What an agent works with.
pub struct Host {
    /// `$HERMES_HOME`.
    pub home: PathBuf,
    /// Sessions and messages.
    pub store: Arc<dyn SessionStore>,
    /// The plugins that the configuration selects.
    pub plugins: Box<dyn PluginSet>,
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// The model that answers, and its window.
    pub model: Model,
    /// The name of the context engine.
    pub engine: String,
    /// What the loop obeys.
    pub settings: Settings,
    /// What plugins do only with the user's leave.
    pub approvals: Approvals,
}
