//! The generations of a plugin in one session: the one that runs, and the one before it to go back to.
//!
//! The agent holds a [`Slot`] where it thinks it holds the plugin. What is in the slot changes only between two turns, or
//! when a generation fails at the first call of a kind while the one before it is still at hand.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use hermes_conversation::{MessageRange, Model, Plan};
use hermes_runtime::services::{Level, Reporter};
use hermes_runtime::{
    Advice, AssistDraft, CallError, Cause, Event, Exports, Invocation, Outcome, Output, PlanRequest, Pressure,
    Progress, Query, Quote, Recollection, Skill, SkillDocument, Tool, TurnRecord, Verdict,
};

use crate::component::SessionComponent;
use crate::kinds::{ContextAssist, ContextEngine, Hooks, MemoryEvents, MemoryProvider, Skills, Tools};
use crate::session::Role;

/// A generation of a plugin at work.
#[derive(Clone)]
struct Running {
    number: u32,
    component: Arc<SessionComponent>,
}

struct State {
    running: Running,
    /// What to go back to, while the running one has not answered: without instances, these are made anew.
    before: Option<Running>,
    /// Calls that the running one has answered.
    proven: HashSet<&'static str>,
    /// The newest number given.
    newest: u32,
}

/// A plugin's place in a session.
pub(crate) struct Slot {
    name: String,
    /// What it is to the session.
    pub(crate) role: Role,
    /// What it exports: a newer generation exports the same.
    pub(crate) exports: Exports,
    reporter: Arc<dyn Reporter>,
    state: Mutex<State>,
    /// The tools that the session began with, once they were asked for.
    offered: OnceLock<Vec<Tool>>,
}

impl Slot {
    pub(crate) fn new(component: SessionComponent, exports: Exports, role: Role) -> Self {
        let recipe = component.recipe();
        let (name, reporter) = (recipe.plugin.clone(), Arc::clone(&recipe.services.reporter));
        let running = Running { number: 1, component: Arc::new(component) };
        Self {
            name,
            role,
            exports,
            reporter,
            state: Mutex::new(State { running, before: None, proven: HashSet::new(), newest: 1 }),
            offered: OnceLock::new(),
        }
    }

    /// The plugin's name.
    pub(crate) fn plugin(&self) -> &str {
        &self.name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> Running {
        self.state().running.clone()
    }

    /// Its version, as its manifest has it.
    pub(crate) fn version(&self) -> String {
        self.state().running.component.recipe().version.clone()
    }

    /// The instances that are at work.
    pub(crate) fn component(&self) -> Arc<SessionComponent> {
        self.running().component
    }

    /// What it offered at the beginning of the session, where anybody asked.
    pub(crate) fn offered(&self) -> Option<&Vec<Tool>> {
        self.offered.get()
    }

    /// Another generation from here on; its number. Calls under way end where they began.
    pub(crate) fn take_over(&self, component: Arc<SessionComponent>) -> u32 {
        let mut state = self.state();
        state.newest += 1;
        let number = state.newest;
        let before = std::mem::replace(&mut state.running, Running { number, component });
        // Of one that never answered there is nothing to go back to.
        if state.before.is_none() || !state.proven.is_empty() {
            state.before = Some(Running { number: before.number, component: Arc::new(before.component.again()) });
        }
        state.proven.clear();
        number
    }

    /// The same code without any right from here on, and nothing to go back to.
    pub(crate) fn strip(&self) {
        let mut state = self.state();
        let stripped = state.running.component.without_rights(self.role);
        state.newest += 1;
        state.running = Running { number: state.newest, component: Arc::new(stripped) };
        state.before = None;
        state.proven.clear();
    }

    /// Asks the running generation. One that crashes at its first such call gives way to the one before it, which is asked
    /// in its place where that does no harm.
    async fn ask<T, F>(
        &self,
        call: &'static str,
        again: bool,
        ask: impl Fn(Arc<SessionComponent>) -> F,
    ) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let running = self.running();
        let answer = ask(Arc::clone(&running.component)).await;
        let Err(error) = &answer else {
            self.prove(&running, call);
            return answer;
        };
        if !error.cause.is_failure() {
            // An error that it answers with is an answer.
            if matches!(error.cause, Cause::Fault(_)) {
                self.prove(&running, call);
            }
            return answer;
        }
        match self.roll_back(&running, call, error) {
            Some(before) if again => ask(before).await,
            _ => answer,
        }
    }

    fn prove(&self, running: &Running, call: &'static str) {
        let mut state = self.state();
        if state.running.number == running.number {
            state.proven.insert(call);
        }
    }

    fn roll_back(&self, failed: &Running, call: &'static str, error: &CallError) -> Option<Arc<SessionComponent>> {
        let mut state = self.state();
        if state.running.number != failed.number {
            // Somebody else was quicker.
            return Some(Arc::clone(&state.running.component));
        }
        if state.proven.contains(call) {
            return None;
        }
        let before = state.before.take()?;
        let (number, component) = (before.number, Arc::clone(&before.component));
        state.running = before;
        state.proven.clear();
        drop(state);
        self.reporter.log(
            Level::Warn,
            &format!(
                "its generation {} failed at its first `{call}` ({}); the session goes back to generation {number}",
                failed.number, error.cause
            ),
        );
        Some(component)
    }
}

#[async_trait]
impl ContextEngine for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    async fn model_changed(&self, model: &Model) -> Result<(), CallError> {
        self.ask("model-changed", true, |it| async move { it.model_changed(model).await }).await
    }

    async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        self.ask("assess", true, |it| async move { it.assess(pressure).await }).await
    }

    async fn prepare(&self, request: &PlanRequest) -> Result<Progress, CallError> {
        self.ask("prepare", true, |it| async move { it.prepare(request).await }).await
    }

    async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        self.ask("propose", true, |it| async move { it.propose(request).await }).await
    }

    async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        self.ask("settled", true, |it| async move { it.settled(outcome).await }).await
    }

    async fn status(&self) -> Result<String, CallError> {
        self.ask("status", true, |it| async move { it.status().await }).await
    }
}

#[async_trait]
impl ContextAssist for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    async fn assist(&self, draft: AssistDraft, budget: u32) -> Result<Vec<Quote>, CallError> {
        self.ask("assist", true, |it| {
            let draft = draft.clone();
            async move { it.assist(draft, budget).await }
        })
        .await
    }
}

#[async_trait]
impl MemoryEvents for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError> {
        self.ask("before-compact", true, |it| async move { it.before_compact(messages).await }).await
    }
}

#[async_trait]
impl MemoryProvider for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    async fn system_prompt(&self) -> Result<String, CallError> {
        self.ask("system-prompt", true, |it| async move { it.system_prompt().await }).await
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        self.ask("recall", true, |it| {
            let query = query.clone();
            async move { it.recall(query).await }
        })
        .await
    }

    async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError> {
        // A turn is handed over at least once: twice does no harm.
        self.ask("sync-turn", true, |it| async move { it.sync_turn(turn).await }).await
    }
}

#[async_trait]
impl Tools for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    async fn catalog(&self) -> Result<Vec<Tool>, CallError> {
        let tools = self.ask("catalog", true, |it| async move { it.catalog().await }).await?;
        let _ = self.offered.set(tools.clone());
        Ok(tools)
    }

    async fn call(&self, invocation: Invocation) -> Result<Output, CallError> {
        // What it did before it crashed, nobody knows: the model decides whether to call it again.
        self.ask("call", false, |it| {
            let invocation = invocation.clone();
            async move { it.call(invocation).await }
        })
        .await
    }
}

#[async_trait]
impl Skills for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    async fn index(&self) -> Result<Vec<Skill>, CallError> {
        self.ask("index", true, |it| async move { it.index().await }).await
    }

    async fn view(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError> {
        self.ask("view", true, |it| {
            let (name, path) = (name.clone(), path.clone());
            async move { it.view(name, path).await }
        })
        .await
    }
}

#[async_trait]
impl Hooks for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    async fn interests(&self) -> Result<Vec<String>, CallError> {
        self.ask("interests", true, |it| async move { it.interests().await }).await
    }

    async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        self.ask("on-event", true, |it| {
            let event = event.clone();
            async move { it.on_event(event).await }
        })
        .await
    }
}
