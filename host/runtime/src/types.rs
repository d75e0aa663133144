//! The types of calls between host and plugins.
//!
//! Generated types are used where they fit; records that hold messages, views or plans use the types of
//! `hermes-conversation`.

use hermes_bindings::exported;
use hermes_bindings::imported;
use hermes_conversation::{Model, Usage};

pub use exported::context_assist::{Draft as AssistDraft, Place, Quote, ToolResult};
pub use exported::context_engine::{Advice, Timing};
pub use exported::hooks::{Event, Reply as ModelAnswered, ToolDone, ToolEvent, Verdict};
pub use exported::lifecycle::{Ending, Start};
pub use exported::memory_mirror::{Action as MemoryAction, Write as MemoryWrite};
pub use exported::memory_prefetch::Outlook;
pub use exported::memory_provider::{Query, Recollection};
pub use exported::skills::{Document as SkillDocument, Skill};
use exported::tool_preview;
pub use exported::tools::{Effect, Invocation, Tool};
pub use imported::types::{Peer, Progress, ToolCall as CalledTool, ToolSchema as OfferedSchema};

/// The point in a turn at which an engine is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the first request of a turn.
    TurnStart,
    /// Between two requests of a turn.
    MidTurn,
    /// After the last reply of a turn.
    TurnEnd,
    /// No request is expected soon.
    Idle,
    /// The user asked for a compaction.
    Manual,
    /// The provider rejected the request as too long.
    Overflow,
}

/// The cost of a request, and what the provider has probably cached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheState {
    /// Tokens of the longest prefix that the provider should still hold.
    pub warm_tokens: u32,
    /// Until when it holds them, in Unix milliseconds.
    pub warm_until: Option<u64>,
    /// The price of a cached token relative to a fresh one.
    pub read_price: f32,
    /// The price of a token that is written to the cache, relative to a fresh one.
    pub write_price: f32,
    /// Whether the prefix breaks at the next request anyway.
    pub breaking: bool,
}

/// The session that an instance serves.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// The session that it continues.
    pub parent: Option<String>,
    /// The front end, such as `cli`.
    pub platform: String,
    /// The purpose, such as `primary` or `subagent`.
    pub purpose: String,
    /// The profile of the user's configuration.
    pub profile: String,
    /// The folder that the agent works in.
    pub workspace: Option<String>,
    /// The root of the git repository that contains the folder.
    pub repository: Option<String>,
    /// The model that answers in it.
    pub model: Model,
}

/// How full the context window is, and what the provider's cache is expected to hold.
#[derive(Debug, Clone)]
pub struct Pressure {
    /// The point in the turn.
    pub moment: Moment,
    /// Tokens of the next request.
    pub prompt_tokens: u32,
    /// Whether `prompt_tokens` is the host's estimate rather than a provider's count.
    pub estimated: bool,
    /// Tokens of the system prompt and the tools, included in `prompt_tokens`.
    pub fixed_tokens: u32,
    /// The size of the window in tokens.
    pub context_length: u32,
    /// Tokens reserved for the reply.
    pub reserve: u32,
    /// The most tokens of the next view, as the host counts it.
    pub room: u32,
    /// Requests that are expected before the conversation pauses.
    pub expected_requests: u32,
    /// The expected contents of the provider's cache, and its prices.
    pub cache: CacheState,
    /// The usage of the last answered request.
    pub last: Option<Usage>,
}

/// A request to a context engine to prepare or to propose a plan.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// The same as for `assess`.
    pub pressure: Pressure,
    /// The current view, with the tokens of each item.
    pub view: Vec<(hermes_conversation::Item, u32)>,
    /// What the user wants to keep, from `/compress FOCUS`.
    pub focus: Option<String>,
    /// What memory providers want to keep.
    pub memory_context: String,
}

/// What happened to a plan.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The host adopted it as the new view.
    Adopted,
    /// It broke a rule.
    Refused(hermes_conversation::Refusal),
    /// Messages that it names have been rewound.
    Stale,
    /// It does not pay off yet.
    Deferred,
}

/// What a call of a tool would do, as its plugin says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPreview {
    /// In place of the tool's effect.
    pub effect: Effect,
    /// For the question to the user.
    pub sentence: Option<String>,
}

impl From<tool_preview::CallPreview> for CallPreview {
    fn from(preview: tool_preview::CallPreview) -> Self {
        let effect = match preview.effect {
            tool_preview::Effect::Reads => Effect::Reads,
            tool_preview::Effect::Writes => Effect::Writes,
            tool_preview::Effect::Dangerous => Effect::Dangerous,
        };
        Self { effect, sentence: preview.sentence }
    }
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Its texts and links.
    pub content: String,
    /// Its images.
    pub images: Vec<Image>,
    /// The result as JSON.
    pub structured: Option<String>,
    /// Keys with values that the contract defines, or the plugin.
    pub extra: Vec<(String, String)>,
}

/// An image of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// An `https:` URL.
    Url(String),
    /// Its bytes.
    Bytes(Vec<u8>),
}

/// A turn as memory providers get it.
#[derive(Debug, Clone)]
pub struct TurnRecord {
    /// The session's id. With the first message it names the turn.
    pub session: String,
    /// When the turn ended, in Unix milliseconds.
    pub ended_at: u64,
    /// Who wrote the user's message.
    pub author: Option<hermes_conversation::Author>,
    /// The number of the turn in the session, starting at 1.
    pub number: u32,
    /// The user's message.
    pub user: String,
    /// The model's final answer, or what it had written when the user stopped the turn.
    pub assistant: String,
    /// Whether the user stopped the turn.
    pub interrupted: bool,
    /// All messages of the turn.
    pub messages: hermes_conversation::MessageRange,
}
