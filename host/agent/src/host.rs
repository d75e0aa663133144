//! The environment of a session: the store, the plugins, the model and the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_capabilities::process::SandboxRules;
use hermes_conversation::fence::Marks;
use hermes_conversation::{Author, Model};
use hermes_mcp::ServerDefinition;
use hermes_models::{Effort, Logins, Prices, TtlChoice};
use hermes_private_files::Documents;
use hermes_prompt::PlatformHint;
use hermes_session_store::SessionStore;

use crate::approval::Approvals;
use crate::auxiliary::AuxiliaryModels;
use crate::chain::ModelChain;
use crate::checkpoints::CheckpointSettings;
use crate::clock::Clock;
use crate::delegation::settings::DelegationSettings;
use crate::embedding::EmbeddingSource;
use crate::ephemeral::Ephemeral;
use crate::plugin_set::PluginSet;
use crate::shelf::settings::ShelfSettings;
use crate::shell_hooks::ShellHook;
use crate::skills::SkillSettings;

/// The settings of the agent loop.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most requests with tools of one turn.
    pub max_turns: u32,
    /// The sessions that an agent delegates to.
    pub delegation: DelegationSettings,
    /// Whether the context engine is used. A full window is folded by the host's rules in any case.
    pub compression: bool,
    /// Who writes the messages that name no author.
    pub author: Option<Author>,
    /// The platform, such as `cli`.
    pub platform: String,
    /// Whether the process ends after one turn.
    pub one_shot: bool,
    /// The models for plugins, by task.
    pub auxiliary_models: AuxiliaryModels,
    /// The model that computes vectors for plugins.
    pub embeddings: EmbeddingSource,
    /// The settings of the system prompt.
    pub prompt: PromptSettings,
    /// Text that is sent but never stored.
    pub ephemeral: Ephemeral,
    /// The requested lifetime of cached prefixes.
    pub cache_ttl: TtlChoice,
    /// The most that requests which only keep a prefix cached may cost within 24 hours, in US dollars.
    pub warming: f64,
    /// The list prices of models.
    pub prices: Prices,
    /// The clock.
    pub clock: Clock,
    /// The marks of fences.
    pub marks: Marks,
    /// The plugin that serves a tool which several plugins offer, by tool.
    pub tool_owners: BTreeMap<String, String>,
    /// Which tools have room in the prompt.
    pub shelf: ShelfSettings,
    /// The model's search in earlier conversations.
    pub session_search: SearchSettings,
    /// The user's settings for skills.
    pub skills: SkillSettings,
    /// How programs that plugins start are confined.
    pub sandbox: SandboxRules,
    /// The files before and after each change, for an undo.
    pub checkpoints: CheckpointSettings,
    /// The MCP servers.
    pub mcp: Vec<ServerDefinition>,
    /// Programs that run at moments of the agent loop, beside hook plugins and after them.
    pub shell_hooks: Vec<ShellHook>,
    /// The user's logins, which give tokens for MCP servers on the web.
    pub logins: Logins,
}

/// The settings of the tool `session_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchSettings {
    /// Whether the model has it.
    pub enabled: bool,
    /// Whether a model summarises what is found.
    pub summaries: bool,
    /// Whether a model adds other words to the query.
    pub expansion: bool,
}

/// The settings of the system prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptSettings {
    /// The user's own text.
    pub system_message: Option<String>,
    /// Text about the platform that replaces or extends the built-in text.
    pub platform_hint: PlatformHint,
    /// Text about the machine.
    pub environment_hint: Option<String>,
    /// Whether project files are read.
    pub context_files: bool,
    /// The most characters of a project file; `None` for a share of the window.
    pub context_file_max_chars: Option<usize>,
}

/// The environment of a session.
pub struct Host {
    /// `$HERMES_HOME`.
    pub home: PathBuf,
    /// The small documents that all processes with this home share: approvals and lists of servers.
    pub documents: Arc<dyn Documents>,
    /// The store of sessions and messages.
    pub store: Arc<dyn SessionStore>,
    /// The plugins that the configuration selects.
    pub plugins: Box<dyn PluginSet>,
    /// The chosen model, with its window. The system prompt names it.
    pub model: Model,
    /// The chosen model with its provider, and the models that answer while it fails.
    pub chain: Arc<ModelChain>,
    /// How much the model should think; `None` leaves that to its provider.
    pub effort: Option<Effort>,
    /// The context engine's name.
    pub engine: String,
    /// The settings of the agent loop.
    pub settings: Settings,
    /// The approval rules.
    pub approvals: Approvals,
}
