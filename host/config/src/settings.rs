//! The types of `config.yaml`: every key with its type, its default and its description.
//!
//! The reader, the JSON Schema, `hermes config` and the table in `docs/use/configuration.md` all follow from these types. The
//! descriptions are sentences that users read.

mod auxiliary;
mod hooks;
mod logins;
mod named;
mod providers;
mod servers;
mod values;

use std::collections::{BTreeMap, HashMap};

use hermes_plugin_host::PluginSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use auxiliary::{AuxiliarySection, EmbeddingsSection, FallbackSection, TaskSection};
pub use hooks::HookSection;
pub use logins::{LoginFlow, LoginSection};
pub use providers::{CustomModelSection, CustomProviderSection};
pub use servers::{McpSandbox, McpServerSection, McpToolsSection};
pub use values::{
    ApprovalMode, Dollars, Entries, Hint, HintParts, PluginSection, ReasoningEffort, SandboxChoice, Share, WhileBusy,
    Whole,
};

/// Everything that `config.yaml` may set. A key that the file leaves out has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// The session's model: its name, or a section.
    pub model: ModelSection,
    /// The models that answer while the session's model fails, in the order in which they are asked.
    pub fallback_providers: Vec<FallbackSection>,
    /// What `hermes login` can log in to, by names of your own.
    #[schemars(extend("x-name" = "<login>", "properties" = {}))]
    pub logins: BTreeMap<String, Option<LoginSection>>,
    /// Your own providers, which `model.provider` can name. See docs/use/models.md.
    pub custom_providers: Vec<CustomProviderSection>,
    /// The context engine.
    pub context: ContextSection,
    /// When and how much the engine compacts.
    pub compression: CompressionSection,
    /// Memory providers.
    pub memory: MemorySection,
    /// The search in earlier conversations.
    pub session_search: SessionSearchSection,
    /// Tools that have no room in the prompt. See docs/use/mcp.md.
    pub tool_search: ToolSearchSection,
    /// Which plugins run, and with which settings.
    pub plugins: PluginsSection,
    /// Servers of the Model Context Protocol, by names of your own. See docs/use/mcp.md.
    #[schemars(extend("x-name" = "<server>", "properties" = {}))]
    pub mcp_servers: BTreeMap<String, Option<McpServerSection>>,
    /// Programs of yours that run at `before-tool`, `after-tool`, `before-model` and `after-model`, each with `command`, `matcher` and `timeout`. See docs/use/hooks.md.
    pub hooks: BTreeMap<String, Option<Vec<HookSection>>>,
    /// Skills of your own and from elsewhere. See docs/use/skills.md.
    pub skills: SkillsSection,
    /// What plugins may do without asking.
    pub approvals: ApprovalsSection,
    /// How programs that plugins start are confined. See docs/use/sandbox.md.
    pub sandbox: SandboxSection,
    /// The files before and after each change, for `/undo`. See docs/use/undo.md.
    pub checkpoints: CheckpointsSection,
    /// The models that serve tasks of plugins.
    pub auxiliary: AuxiliarySection,
    /// The system prompt.
    pub prompt: PromptSection,
    /// The providers' prompt caches.
    pub prompt_caching: PromptCachingSection,
    /// Most characters of a project file in the system prompt. The default is 6 % of the window, from 20,000 to 500,000.
    pub context_file_max_chars: Option<Whole<1000>>,
    /// For each platform (`cli`, `serve`, `cron`): text appended to the built-in hint, or `replace:` and `append:`.
    pub platform_hints: BTreeMap<String, Option<Hint>>,
    /// The agent loop.
    pub agent: AgentSection,
    /// Sessions that an agent delegates to.
    pub delegation: DelegationSection,
    /// What the terminal shows.
    pub display: DisplaySection,
    /// What you type.
    pub input: InputSection,
}

/// `model`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSection {
    /// A known provider, `custom` with a `base_url`, or `offline`.
    pub provider: Option<String>,
    /// The model's name as the provider knows it. `model: NAME` is short for it.
    pub default: Option<String>,
    /// Base URL of an OpenAI-compatible API, often ending in /v1.
    pub base_url: Option<String>,
    /// The key for that address, preferably as a variable such as `${NAME}`.
    pub api_key: Option<String>,
    /// Further keys for that address. A key that the provider refuses or limits is on cooldown, and the next one is used.
    pub api_keys: Vec<String>,
    /// Instead of a key: the name of a login that `hermes login` made. Hermes refreshes its token when it expires.
    pub auth: Option<String>,
    /// The window of `model.default` in tokens, if the built-in table is wrong. Other models have windows of their own.
    pub context_length: Option<Whole<2000>>,
    /// The wire format: `chat_completions`, `codex_responses` or `anthropic_messages`. The default is the provider's.
    pub api_mode: Option<String>,
    /// Seconds for which a request is tried again after its first three attempts, if waiting may help, and for which a reply that broke off is asked for again.
    pub retry_for: Whole<0>,
    /// Seconds for which a model may send nothing before Hermes gives a request up. The default is 180, or 900 for a server on this machine; models that are known to think for minutes have up to 600.
    pub silence_timeout: Option<Whole<1>>,
    /// Seconds before a model that failed is asked again while a fallback answers. Each further failure doubles them, up to an hour; a refused key or an empty account has five times as long.
    pub cooldown: Whole<0>,
    /// How much the model thinks before it answers. The default is the provider's, and `medium` with `codex_responses`.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The same for single models: `MODEL: EFFORT`.
    pub reasoning_efforts: BTreeMap<String, Option<ReasoningEffort>>,
}

impl Default for ModelSection {
    fn default() -> Self {
        Self {
            provider: None,
            default: None,
            base_url: None,
            api_key: None,
            api_keys: Vec::new(),
            auth: None,
            context_length: None,
            api_mode: None,
            retry_for: const { Whole::new(300) },
            silence_timeout: None,
            cooldown: const { Whole::new(60) },
            reasoning_effort: None,
            reasoning_efforts: BTreeMap::new(),
        }
    }
}

/// `context`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContextSection {
    /// The plugin that compacts conversations.
    pub engine: String,
}

impl Default for ContextSection {
    fn default() -> Self {
        Self { engine: hermes_plugin_host::Selection::ENGINE.to_owned() }
    }
}

/// `compression`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompressionSection {
    /// Whether the engine is used at all, also by `/compress`. The host folds a full window by rule in any case.
    pub enabled: bool,
    /// Share of the window, minus the reserve for the reply, at which the engine compacts. This key and the next three are passed to the engine, which has defaults of its own.
    pub threshold: Option<Share>,
    /// Share of the threshold's tokens for the newest messages, which stay in full.
    pub target_ratio: Option<Share>,
    /// Number of first messages that the first compaction keeps in full.
    pub protect_first_n: Option<Whole<0>>,
    /// Number of newest messages that stay in full, as far as room allows.
    pub protect_last_n: Option<Whole<0>>,
}

impl Default for CompressionSection {
    fn default() -> Self {
        Self { enabled: true, threshold: None, target_ratio: None, protect_first_n: None, protect_last_n: None }
    }
}

/// `memory`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemorySection {
    /// A memory provider in addition to the built-in memory.
    pub provider: Option<String>,
    /// Most characters in MEMORY.md.
    // The default is that of the plugin `builtin`, which gets only what the user sets.
    #[schemars(extend("default" = 2200))]
    pub memory_char_limit: Option<Whole<1>>,
    /// Most characters in USER.md.
    #[schemars(extend("default" = 1375))]
    pub user_char_limit: Option<Whole<1>>,
    /// Most characters in FACTS.md.
    #[schemars(extend("default" = 50_000))]
    pub facts_char_limit: Option<Whole<1>>,
    /// Whether what the model writes to these files waits until you approve it.
    pub write_approval: bool,
    /// Whether the built-in memory proposes to tidy its notes while a session is idle; the proposals wait for your approval.
    pub background_tidy: bool,
}

/// `session_search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionSearchSection {
    /// Whether the model gets the tool `session_search`, which finds what was said in earlier conversations.
    pub enabled: bool,
    /// Whether a model (`auxiliary.session_search`) summarises the best five conversations for the query.
    pub summaries: bool,
    /// Whether that model adds other words to the query.
    pub expansion: bool,
}

impl Default for SessionSearchSection {
    fn default() -> Self {
        Self { enabled: true, summaries: false, expansion: false }
    }
}

/// `tool_search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolSearchSection {
    /// Whether tools of MCP servers and installed plugins that have no room in the prompt are found with `tool_search` and called with `tool_use`. `false`: all of them are in every request.
    pub enabled: bool,
    /// The share of the window that these tools may take in the prompt.
    pub share: Share,
    /// Tools that are always in the prompt: names such as `mcp_fs_read_file`, or servers and plugins, with all of their tools.
    pub pinned: Vec<String>,
    /// Whether models that take deferred tools (Claude 4 and later at Anthropic, GPT-5.4 and later at OpenAI) load the tools which `tool_search` found, and call them by their own names. `false`: always `tool_use`, for a proxy that refuses deferred tools.
    pub deferred: bool,
}

impl Default for ToolSearchSection {
    fn default() -> Self {
        Self { enabled: true, share: Share::TENTH, pinned: Vec::new(), deferred: true }
    }
}

/// `plugins`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginsSection {
    /// Plugins to enable in addition to the default ones.
    pub enabled: Vec<String>,
    /// Plugins to disable, including default ones.
    pub disabled: Vec<String>,
    /// A section for each plugin, passed to the plugin unchanged.
    pub entries: Entries,
    /// The plugin that serves a tool which several plugins offer: `TOOL: PLUGIN`.
    pub tools: BTreeMap<String, String>,
    /// The host's settings for each plugin: `limits`, `on_failure`, `source`.
    pub settings: BTreeMap<String, Option<PluginSection>>,
}

impl PluginsSection {
    /// The host's settings for the plugins that have some.
    pub fn host_settings(&self) -> HashMap<String, PluginSettings> {
        let set = self.settings.iter().filter_map(|(name, section)| Some((name, section.as_ref()?)));
        set.map(|(name, section)| (name.clone(), section.settings().clone())).collect()
    }
}

/// `approvals`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApprovalsSection {
    /// What Hermes asks about: `ask` before every change and program, `accept-edits` before programs, `plan` lets the model only read, `auto` asks only about what the sandbox does not cover.
    pub mode: ApprovalMode,
    /// What plugins may do without asking: `PLUGIN`, `PLUGIN/TOOL`, `PLUGIN/process:PROGRAM`, `PLUGIN/files:PATTERN`, or `PLUGIN(COMMAND)` for commands such as `terminal(git status*)`.
    pub allow: Vec<String>,
    /// What changes nothing, in the same form: it runs without asking, also in the mode `plan`.
    pub reads: Vec<String>,
    /// What plugins may do only after asking, in the same form. It overrides `allow`.
    pub ask: Vec<String>,
    /// What plugins may never do, in the same form. It overrides everything else.
    pub deny: Vec<String>,
    /// Files that plugins change only with your approval, in addition to the built-in list: patterns such as `deploy/**`.
    pub protect: Vec<String>,
}

/// `sandbox`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxSection {
    /// Whether programs are confined: `auto` where the system can do so, `off`, or `require` to run none without a sandbox.
    pub mode: SandboxChoice,
    /// Whether confined programs can use the network.
    pub network: bool,
    /// Folders that confined programs can write, besides the workspace and temporary folders: absolute paths, or `~/…`.
    pub writable: Vec<String>,
    /// Folders and files that they do not see, besides `$HERMES_HOME` and the usual places of keys.
    pub hidden: Vec<String>,
}

/// `checkpoints`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckpointsSection {
    /// Whether Hermes saves the files of the workspace before plugins change them, so that `/undo` can restore them.
    pub enabled: bool,
    /// Most MiB of all saved files. The oldest go first.
    pub max_size: Whole<16>,
    /// Days for which changes can be undone.
    pub keep_days: Whole<1>,
    /// A larger file, in MiB, is not saved, and `/undo` does not restore it.
    pub max_file_size: Whole<1>,
}

impl Default for CheckpointsSection {
    fn default() -> Self {
        Self {
            enabled: true,
            max_size: const { Whole::new(1024) },
            keep_days: const { Whole::new(30) },
            max_file_size: const { Whole::new(10) },
        }
    }
}

/// `prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PromptSection {
    /// Your own text for the system prompt of new sessions.
    pub system_message: Option<String>,
    /// Whether the system prompt includes project files such as AGENTS.md.
    pub context_files: bool,
    /// Text appended to the system prompt of each request, but never stored.
    pub ephemeral_system_prompt: Option<String>,
    /// A JSON file of messages (`role`, `content`) sent before every conversation, but never stored. Its path is relative to this file.
    pub prefill_messages_file: Option<String>,
}

impl Default for PromptSection {
    fn default() -> Self {
        Self { system_message: None, context_files: true, ephemeral_system_prompt: None, prefill_messages_file: None }
    }
}

/// `skills`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SkillsSection {
    /// Where `hermes skills search` looks: git repositories, archives, folders and OCI images.
    pub sources: Vec<String>,
    /// The values of the settings that skills declare, by their keys.
    pub config: serde_json::Map<String, serde_json::Value>,
}

impl Default for SkillsSection {
    fn default() -> Self {
        Self { sources: vec!["https://github.com/anthropics/skills".to_owned()], config: serde_json::Map::new() }
    }
}

/// `prompt_caching`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PromptCachingSection {
    /// How long providers cache a prefix: `5m`, `1h`, or `auto`: by your pauses so far and by the prices.
    pub cache_ttl: String,
    /// The most that requests may cost within 24 hours, in US dollars, whose only purpose is to keep your conversation in the provider's cache during pauses and long tools. They are sent only where your pauses so far say that they pay. 0 sends none.
    pub warming: Dollars,
}

impl Default for PromptCachingSection {
    fn default() -> Self {
        Self { cache_ttl: "auto".to_owned(), warming: Dollars::NONE }
    }
}

/// `agent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentSection {
    /// Your description of the machine, for the system prompt.
    pub environment_hint: Option<String>,
    /// Most requests to the model for one message of yours. After them, the model is asked once more, for a summary without tools.
    pub max_turns: Whole<1>,
}

impl Default for AgentSection {
    fn default() -> Self {
        Self { environment_hint: None, max_turns: const { Whole::new(90) } }
    }
}

/// `delegation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DelegationSection {
    /// The same limit for each message to a session that another session's agent delegated to.
    pub max_iterations: Whole<1>,
    /// How many delegated tasks of a session run at once. The others wait.
    pub max_concurrent_children: Whole<1>,
    /// How deep agents may delegate. With 1, a delegated task delegates nothing; with 0, no agent has the tool `delegate_task`.
    pub max_spawn_depth: Whole<0>,
    /// Most characters of a delegated task's result that the model gets. The whole result is kept as a file.
    pub max_summary_chars: Whole<200>,
    /// Seconds after which a delegated task is stopped; 0 for never.
    pub child_timeout_seconds: Whole<0>,
    /// The provider of the model for delegated tasks. The default is the session's.
    pub provider: Option<String>,
    /// The model for delegated tasks. The default is the session's.
    pub model: Option<String>,
    /// Further models that the model may choose for delegated tasks, of the same provider.
    pub models: Vec<String>,
}

impl Default for DelegationSection {
    fn default() -> Self {
        Self {
            max_iterations: const { Whole::new(50) },
            max_concurrent_children: const { Whole::new(3) },
            max_spawn_depth: const { Whole::new(1) },
            max_summary_chars: const { Whole::new(24_000) },
            child_timeout_seconds: const { Whole::new(0) },
            provider: None,
            model: None,
            models: Vec::new(),
        }
    }
}

/// `display`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DisplaySection {
    /// Whether the chat shows the model's reasoning.
    pub show_reasoning: bool,
}

/// `input`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InputSection {
    /// What happens to a message that you type while a turn runs. `queue`: it waits for the end of the turn. `interrupt`: it stops the turn and is sent. `steer`: the model reads it with the next tool result, or after the turn if there is none.
    pub while_busy: WhileBusy,
}
