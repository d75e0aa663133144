//! The generations of a plugin in one session: the running one, and the previous one for a rollback.
//!
//! The agent holds a [`Slot`] in place of the plugin. The slot's content changes only between two turns, or when a
//! generation fails at its first call of a function while the previous generation is still available.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use hermes_conversation::{MessageId, MessageRange, Model, Plan};
use hermes_runtime::services::{EmbeddingModel, EmbeddingRequest, Level, Reporter};
use hermes_runtime::{
    Advice, AssistDraft, CallError, CallPreview, Cause, Event, Exports, Invocation, MemoryWrite, Outcome, Outlook,
    Output, PlanRequest, Pressure, Progress, Query, Quote, Recollection, Skill, SkillDocument, Tool, TurnRecord,
    Verdict,
};

use crate::component::{Role, SessionComponent};
use crate::kinds::{
    ContextAssist, ContextEngine, Embedder, Hooks, MemoryEvents, MemoryMirror, MemoryPrefetch, MemoryProvider,
    MemoryRewind, MemoryUpkeep, Skills, ToolPreview, Tools, for_each_kind,
};

/// A generation that serves calls.
#[derive(Clone)]
struct Running {
    number: u32,
    component: Arc<SessionComponent>,
}

struct State {
    running: Running,
    /// The previous generation, to which a crash of the running one leads back. It has no instances; the next call creates
    /// them.
    before: Option<Running>,
    /// The functions that the running generation has answered.
    proven: HashSet<&'static str>,
    /// The highest number so far.
    newest: u32,
}

/// A plugin's place in a session.
pub(crate) struct Slot {
    name: String,
    /// Its role in the session.
    pub(crate) role: Role,
    /// Its exports. Every generation has the same.
    pub(crate) exports: Exports,
    reporter: Arc<dyn Reporter>,
    state: Mutex<State>,
    /// The tools with which the session began, once they are known.
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

    /// The version of the running generation.
    pub(crate) fn version(&self) -> String {
        self.state().running.component.recipe().version.clone()
    }

    /// The running instances.
    pub(crate) fn component(&self) -> Arc<SessionComponent> {
        self.running().component
    }

    /// The tools with which the session began, if they were requested.
    pub(crate) fn offered(&self) -> Option<&Vec<Tool>> {
        self.offered.get()
    }

    /// Replaces the running generation. Returns the number of the new one. Running calls finish in the old one.
    pub(crate) fn take_over(&self, component: Arc<SessionComponent>) -> u32 {
        let mut state = self.state();
        state.newest += 1;
        let number = state.newest;
        let before = std::mem::replace(&mut state.running, Running { number, component });
        // Never roll back to a generation that has not answered.
        if state.before.is_none() || !state.proven.is_empty() {
            state.before = Some(Running { number: before.number, component: Arc::new(before.component.again()) });
        }
        state.proven.clear();
        number
    }

    /// Takes all permissions from the running code, and drops the previous generation.
    pub(crate) fn strip(&self) {
        let mut state = self.state();
        let stripped = state.running.component.without_rights(self.role);
        state.newest += 1;
        state.running = Running { number: state.newest, component: Arc::new(stripped) };
        state.before = None;
        state.proven.clear();
    }

    /// Calls the running generation. If it crashes at its first call of a function, the previous generation takes over, and
    /// gets the call if `again` allows it.
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
            // An application error is not a crash.
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

    /// Remembers the tools that the session began with.
    fn remember_offer(&self, tools: &[Tool]) {
        let _ = self.offered.set(tools.to_vec());
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
            // Another call has already replaced it.
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
                "generation {} failed at its first `{call}` ({}); the session returns to generation {number}",
                failed.number, error.cause
            ),
        );
        Some(component)
    }
}

macro_rules! again {
    (again) => {
        true
    };
    (once) => {
        false
    };
}

macro_rules! forward_to_the_running_generation {
    ($($(#[$kind_doc:meta])* $kind:ident {
        $($(#[$doc:meta])* $function:ident($($argument:ident: $type:ty),*) -> $answer:ty {
            $call:literal, $instance:ident.$method:ident, $policy:ident $($policy_of:ident)?, $again:ident
            $(, needs $right:ident or $without:expr)? $(, when_off $off:expr)? $(, then $then:ident)? $(, note $note:ident)?
        })+
    })+) => {
        $(
            #[async_trait]
            impl $kind for Slot {
                fn name(&self) -> &str {
                    &self.name
                }

                $(
                    async fn $function(&self, $($argument: $type),*) -> Result<$answer, CallError> {
                        let answer = self.ask($call, again!($again), |component| {
                            $(let $argument = Clone::clone(&$argument);)*
                            async move { $kind::$function(&*component, $($argument),*).await }
                        });
                        let answer = answer.await?;
                        $(self.$note(&answer);)?
                        Ok(answer)
                    }
                )+
            }
        )+
    };
}

for_each_kind!(forward_to_the_running_generation);
