//! The five kinds of plugins as the agent knows them, whatever they are made of.
//!
//! Every function answers within its deadline or with an error that names the plugin. Dropping the future cancels
//! the call.

use async_trait::async_trait;
use hermes_conversation::{MessageRange, Model, Plan};
use hermes_runtime::{
    Advice, AssistDraft, CallError, Event, Invocation, Outcome, Output, PlanRequest, Pressure, Progress, Query, Quote,
    Recollection, Skill, SkillDocument, Tool, TurnRecord, Verdict,
};

/// Decides when the conversation is compacted, and into what.
#[async_trait]
pub trait ContextEngine: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;
    /// Another model serves the session from now on.
    async fn model_changed(&self, model: &Model) -> Result<(), CallError>;
    /// After every reply and before every request.
    async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError>;
    /// A step of slow work; it never delays the other functions.
    async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError>;
    /// A new view, or none.
    async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError>;
    /// What became of the plan just proposed.
    async fn settled(&self, outcome: &Outcome) -> Result<(), CallError>;
    /// A JSON object for `/context`.
    async fn status(&self) -> Result<String, CallError>;
}

/// Brings back what the view folds, without being asked.
#[async_trait]
pub trait ContextAssist: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;
    /// Passages for a message that is about to take its final form, best first, in so many tokens.
    async fn assist(&self, draft: AssistDraft, budget: u32) -> Result<Vec<Quote>, CallError>;
}

/// Recall across sessions.
#[async_trait]
pub trait MemoryProvider: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;
    /// Text for the system prompt; may be empty.
    async fn system_prompt(&self) -> Result<String, CallError>;
    /// What it remembers for what the user said.
    async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError>;
    /// Takes a turn in; it never delays the other functions.
    async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError>;
}

/// What else happens around a memory.
#[async_trait]
pub trait MemoryEvents: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;
    /// What a summary of these should keep; it never delays the other functions.
    async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError>;
}

/// Functions that the model may call.
#[async_trait]
pub trait Tools: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;
    /// What it offers.
    async fn catalog(&self) -> Result<Vec<Tool>, CallError>;
    /// Runs one of them; calls do not wait for each other.
    async fn call(&self, invocation: Invocation) -> Result<Output, CallError>;
}

/// Instructions that are disclosed step by step.
#[async_trait]
pub trait Skills: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;
    /// What it offers.
    async fn index(&self) -> Result<Vec<Skill>, CallError>;
    /// A skill, or one of its files.
    async fn view(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError>;
}

/// Watches the loop.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;
    /// The events it wants to be told of.
    async fn interests(&self) -> Result<Vec<String>, CallError>;
    /// Tells it of one.
    async fn on_event(&self, event: Event) -> Result<Verdict, CallError>;
}
