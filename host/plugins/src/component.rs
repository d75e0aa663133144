//! The kinds, carried out by a WebAssembly component.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use hermes_conversation::{MessageRange, Model, Plan};
use hermes_runtime::process::Programs;
use hermes_runtime::{
    Advice, AssistDraft, CallError, Event, Instance, Invocation, Outcome, Output, PlanRequest, Pressure, Progress,
    Query, Quote, Recipe, Recollection, Skill, SkillDocument, Start, Tool, TurnRecord, Verdict,
};

use crate::kinds::{ContextAssist, ContextEngine, Hooks, MemoryEvents, MemoryProvider, Skills, Tools};

/// One plugin in one session: an instance that turns wait for, and one for work in the background, made when
/// first needed. The two share only what the plugin keeps in storage.
pub(crate) struct SessionComponent {
    recipe: Arc<Recipe>,
    foreground: Instance,
    background: OnceLock<Instance>,
}

impl SessionComponent {
    pub(crate) fn new(recipe: Recipe) -> Self {
        let recipe = Arc::new(recipe);
        Self { foreground: Instance::new(Arc::clone(&recipe)), background: OnceLock::new(), recipe }
    }

    fn background(&self) -> &Instance {
        self.background.get_or_init(|| {
            let mut recipe = Recipe { start: Start::Resumed, ..Recipe::clone(&self.recipe) };
            recipe.services.programs = recipe.services.programs.map(Programs::unattended);
            Instance::new(Arc::new(recipe))
        })
    }
}

#[async_trait]
impl ContextEngine for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        self.foreground.model_changed(model).await
    }

    async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        self.foreground.assess(pressure).await
    }

    async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError> {
        self.background().prepare(request).await
    }

    async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        self.foreground.propose(request).await
    }

    async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        self.foreground.settled(outcome).await
    }

    async fn status(&self) -> Result<String, CallError> {
        self.foreground.status().await
    }
}

#[async_trait]
impl ContextAssist for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn assist(&self, draft: AssistDraft, budget: u32) -> Result<Vec<Quote>, CallError> {
        self.foreground.assist(draft, budget).await
    }
}

#[async_trait]
impl MemoryEvents for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError> {
        self.background().before_compact(messages).await
    }
}

#[async_trait]
impl MemoryProvider for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn system_prompt(&self) -> Result<String, CallError> {
        self.foreground.system_prompt().await
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        self.foreground.recall(query).await
    }

    async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError> {
        self.background().sync_turn(turn).await
    }
}

#[async_trait]
impl Tools for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        self.foreground.catalog().await
    }

    async fn call(&self, invocation: Invocation) -> Result<Output, CallError> {
        self.recipe.call_tool(invocation).await
    }
}

#[async_trait]
impl Skills for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn index(&self) -> Result<Vec<Skill>, CallError> {
        self.foreground.skills().await
    }

    async fn view(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError> {
        self.foreground.skill(name, path).await
    }
}

#[async_trait]
impl Hooks for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn interests(&self) -> Result<Vec<String>, CallError> {
        self.foreground.interests().await
    }

    async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        self.foreground.on_event(event).await
    }
}
