//! The kinds, carried out by instances of a plugin: of its component, or of its native library.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use hermes_capabilities::process::Programs;
use hermes_conversation::{MessageRange, Model, Plan};
use hermes_runtime::{
    Advice, AssistDraft, CallError, Effect, Event, Instance, Invocation, Lanes, Outcome, Output, PlanRequest, Pressure,
    Progress, Query, Quote, Recipe, Recollection, Services, Skill, SkillDocument, Start, Tool, TurnRecord, Verdict,
};

use crate::flood;
use crate::kinds::{ContextAssist, ContextEngine, Hooks, MemoryEvents, MemoryProvider, Skills, Tools};
use crate::session::Role;
use crate::supervision::{Manner, Supervisor};

/// One plugin in one session: an instance that turns wait for, and one for work in the background, made when
/// first needed. The two share only what the plugin keeps in storage, and the eye that is kept on them.
pub(crate) struct SessionComponent {
    recipe: Arc<Recipe>,
    foreground: Instance,
    background: OnceLock<Instance>,
    supervisor: Supervisor,
    /// What its tools do, once they were asked for: those that only read are called again after a crash.
    effects: Mutex<HashMap<String, Effect>>,
}

impl SessionComponent {
    pub(crate) fn new(recipe: Recipe, supervisor: Supervisor) -> Self {
        let recipe = Arc::new(recipe);
        let foreground = Instance::new(Arc::clone(&recipe));
        Self { foreground, background: OnceLock::new(), recipe, supervisor, effects: Mutex::default() }
    }

    /// The same without instances, which are made anew at the first call, and without its failures: to go back to.
    pub(crate) fn again(&self) -> Self {
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut recipe = Recipe { start: Start::Resumed, ..Recipe::clone(&self.recipe) };
        recipe.lanes = Lanes::new(&recipe.limits);
        Self { effects: Mutex::new(effects), ..Self::new(recipe, self.supervisor.again()) }
    }

    /// The same without any right but what its part in the session gives it.
    pub(crate) fn without_rights(&self, role: Role) -> Self {
        let again = self.again();
        let mut recipe = Recipe::clone(&again.recipe);
        recipe.lanes = Lanes::new(&recipe.limits);
        let (serves, before) = (role == Role::Serves, recipe.services);
        let Services { reporter, clock, models, history, .. } = before;
        recipe.services =
            Services { reporter, clock, models, history, may_ask: serves, may_read: serves, ..Services::nothing() };
        if recipe.loaded.is_native() {
            // Its rights are not what keeps it from anything.
            again.supervisor.revoke();
        }
        Self::new(recipe, again.supervisor)
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    fn background(&self) -> &Instance {
        self.background.get_or_init(|| {
            let mut recipe = Recipe { start: Start::Resumed, ..Recipe::clone(&self.recipe) };
            recipe.services.programs = recipe.services.programs.map(Programs::unattended);
            Instance::new(Arc::new(recipe))
        })
    }

    fn manner_of(&self, tool: &str) -> Manner {
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        if effects.get(tool) == Some(&Effect::Reads) { Manner::READ } else { Manner::WRITE }
    }
}

#[async_trait]
impl ContextEngine for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        self.supervisor.watch("model-changed", Manner::ENGINE_WRITE, || self.foreground.model_changed(model)).await
    }

    async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        self.supervisor.watch("assess", Manner::ENGINE_READ, || self.foreground.assess(pressure)).await
    }

    async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError> {
        self.supervisor.watch("prepare", Manner::ENGINE_WRITE, || self.background().prepare(request)).await
    }

    async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        self.supervisor.watch("propose", Manner::ENGINE_WRITE, || self.foreground.propose(request)).await
    }

    async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        self.supervisor.watch("settled", Manner::ENGINE_WRITE, || self.foreground.settled(outcome)).await
    }

    async fn status(&self) -> Result<String, CallError> {
        self.supervisor.watch("status", Manner::ENGINE_READ, || self.foreground.status()).await
    }
}

#[async_trait]
impl ContextAssist for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn assist(&self, draft: AssistDraft, budget: u32) -> Result<Vec<Quote>, CallError> {
        self.supervisor.watch("assist", Manner::ENGINE_READ, || self.foreground.assist(draft.clone(), budget)).await
    }
}

#[async_trait]
impl MemoryEvents for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError> {
        if self.supervisor.is_off() {
            return Ok(String::new());
        }
        self.supervisor.watch("before-compact", Manner::READ, || self.background().before_compact(messages)).await
    }
}

#[async_trait]
impl MemoryProvider for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn system_prompt(&self) -> Result<String, CallError> {
        self.supervisor.watch("system-prompt", Manner::READ, || self.foreground.system_prompt()).await
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        if self.supervisor.is_off() {
            return Ok(Vec::new());
        }
        let recalled = self.supervisor.watch("recall", Manner::READ, || self.foreground.recall(query.clone())).await?;
        Ok(flood::recollections(recalled))
    }

    async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError> {
        self.supervisor.watch("sync-turn", Manner::WRITE, || self.background().sync_turn(turn)).await
    }
}

#[async_trait]
impl Tools for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        let tools = self.supervisor.watch("catalog", Manner::READ, || self.foreground.catalog()).await?;
        let (tools, told) = flood::tools(tools);
        told.iter().for_each(|told| self.supervisor.tell(told));
        let effects = tools.iter().map(|tool| (tool.schema.name.clone(), tool.effect)).collect();
        *self.effects.lock().unwrap_or_else(PoisonError::into_inner) = effects;
        Ok(tools)
    }

    async fn call(&self, invocation: Invocation) -> Result<Output, CallError> {
        let manner = self.manner_of(&invocation.name);
        self.supervisor.watch("call", manner, || self.recipe.call_tool(invocation.clone())).await
    }
}

#[async_trait]
impl Skills for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn index(&self) -> Result<Vec<Skill>, CallError> {
        let skills = self.supervisor.watch("index", Manner::READ, || self.foreground.skills()).await?;
        let (skills, told) = flood::skills(skills);
        told.iter().for_each(|told| self.supervisor.tell(told));
        Ok(skills)
    }

    async fn view(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError> {
        self.supervisor.watch("view", Manner::READ, || self.foreground.skill(name.clone(), path.clone())).await
    }
}

#[async_trait]
impl Hooks for SessionComponent {
    fn name(&self) -> &str {
        &self.recipe.plugin
    }

    async fn interests(&self) -> Result<Vec<String>, CallError> {
        self.supervisor.watch("interests", Manner::READ, || self.foreground.interests()).await
    }

    async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        if self.supervisor.is_off() {
            return Ok(Verdict::Proceed);
        }
        self.supervisor.watch("on-event", Manner::WRITE, || self.foreground.on_event(event.clone())).await
    }
}
