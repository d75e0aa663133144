//! What passes between host and plugins, in the host's words.
//!
//! Where a record of the contract says it best, the generated type is used as it is; records that hold messages, views
//! or plans are those of `hermes-conversation`.

use hermes_bindings::exports::hermes::plugin as exported;
use hermes_bindings::hermes::plugin as imported;
use hermes_conversation::{Model, Usage};

pub use exported::context_assist::{Draft as AssistDraft, Place, Quote, ToolResult};
pub use exported::context_engine::{Advice, CacheState, Moment, Timing};
pub use exported::hooks::{Event, Reply as ModelAnswered, ToolDone, ToolEvent, Verdict};
pub use exported::lifecycle::{Ending, Start};
pub use exported::memory_provider::{Query, Recollection};
pub use exported::skills::{Document as SkillDocument, Skill};
pub use exported::tools::{Effect, Image, Invocation, Output, Tool};
pub use imported::types::{Progress, ToolCall as CalledTool, ToolSchema as OfferedSchema};

/// The session that an instance serves.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// The session it goes on from.
    pub parent: Option<String>,
    /// `cli`, …
    pub platform: String,
    /// `primary`, `subagent`, …
    pub purpose: String,
    /// The profile of the user's configuration.
    pub profile: String,
    /// The folder it works in.
    pub workspace: Option<String>,
    /// The model that serves it.
    pub model: Model,
}

/// How full the window is, when, and what the provider is believed to hold.
#[derive(Debug, Clone)]
pub struct Pressure {
    /// Where in the turn.
    pub moment: Moment,
    /// Tokens of the next request.
    pub prompt_tokens: u32,
    /// Whether that is the host's estimate rather than a provider's count.
    pub estimated: bool,
    /// Of it, tokens of the system prompt and the tools.
    pub fixed_tokens: u32,
    /// The window in tokens.
    pub context_length: u32,
    /// Tokens kept free for the reply.
    pub reserve: u32,
    /// Requests that are expected before the conversation rests.
    pub expected_requests: u32,
    /// What the provider's cache holds and what it costs.
    pub cache: CacheState,
    /// What the request just answered took.
    pub last: Option<Usage>,
}

/// What an engine is asked to plan for.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// As for `assess`.
    pub pressure: Pressure,
    /// The view in force, with what each item costs in tokens.
    pub view: Vec<(hermes_conversation::Item, u32)>,
    /// What the user wants kept, from `/compress FOCUS`.
    pub focus: Option<String>,
    /// What memory providers want kept.
    pub memory_context: String,
}

/// What hooks are told of a model's reply.
pub fn model_answered(model: &str, usage: Usage, elapsed_ms: u32) -> ModelAnswered {
    ModelAnswered { model: model.to_owned(), usage: crate::convert::usage(usage), elapsed_ms }
}

/// What became of a plan.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It is the view now.
    Adopted,
    /// It broke a rule.
    Refused(hermes_conversation::Refusal),
    /// The user took back what it names.
    Stale,
    /// It does not pay yet.
    Deferred,
}

/// A turn as memory providers are told of it.
#[derive(Debug, Clone)]
pub struct TurnRecord {
    /// Counts from 1 in the session.
    pub number: u32,
    /// What the user said.
    pub user: String,
    /// What the model answered at its end.
    pub assistant: String,
    /// All messages of the turn.
    pub messages: hermes_conversation::MessageRange,
}
