//! Implements the plugin kinds with instances of a component or a native library.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use hermes_capabilities::process::Programs;
use hermes_conversation::{MessageId, MessageRange, Model, Plan};
use hermes_runtime::services::{EmbeddingModel, EmbeddingRequest};
use hermes_runtime::{
    Advice, AssistDraft, CallError, CallPreview, Cause, Effect, Event, FaultKind, Instance, Invocation, MemoryWrite,
    Outcome, Outlook, Output, PlanRequest, Pressure, Progress, Query, Quote, Recipe, Recollection, Services, Skill,
    SkillDocument, Start, Tool, TurnRecord, Verdict,
};

use crate::flood;
use crate::kinds::{
    ContextAssist, ContextEngine, Embedder, Hooks, MemoryEvents, MemoryMirror, MemoryPrefetch, MemoryProvider,
    MemoryRewind, MemoryUpkeep, Skills, ToolPreview, Tools, for_each_kind,
};
use crate::supervision::{RetryPolicy, Supervisor};

/// The role of a plugin in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The engine or a memory provider: selecting it gives it access to the conversation.
    Serves,
    /// Any other plugin.
    Beside,
}

/// One plugin in one session: an instance that serves turns, one for work in the background, and one that serves other plugins,
/// created when first needed. They share only the plugin's storage and their supervisor.
pub(crate) struct SessionComponent {
    recipe: Arc<Recipe>,
    foreground: Instance,
    background: OnceLock<Instance>,
    /// The instance of an embedder that serves other plugins.
    vectors: OnceLock<Instance>,
    supervisor: Supervisor,
    /// The effects of its tools, known after `catalog`: a tool that only reads is retried after a crash.
    effects: Mutex<HashMap<String, Effect>>,
}

/// The running instances of a plugin, which learn of a change.
struct Running<'a> {
    foreground: &'a Instance,
    background: Option<&'a Instance>,
}

impl Running<'_> {
    /// Both learn of it, also if one fails.
    async fn model_changed(self, model: &Model) -> Result<(), CallError> {
        let foreground = self.foreground.model_changed(model).await;
        let background = match self.background {
            Some(background) => background.model_changed(model).await,
            None => Ok(()),
        };
        foreground.and(background)
    }

    /// Both learn of it, also if one fails.
    async fn rewound(self, first: MessageId) -> Result<(), CallError> {
        let foreground = self.foreground.rewound(first).await;
        let background = match self.background {
            Some(background) => background.rewound(first).await,
            None => Ok(()),
        };
        foreground.and(background)
    }
}

impl SessionComponent {
    pub(crate) fn new(recipe: Recipe, supervisor: Supervisor) -> Self {
        let recipe = Arc::new(recipe);
        let foreground = Instance::new(Arc::clone(&recipe));
        Self {
            foreground,
            background: OnceLock::new(),
            vectors: OnceLock::new(),
            recipe,
            supervisor,
            effects: Mutex::default(),
        }
    }

    /// A copy without instances and failures, for a rollback. The first call creates the instances.
    pub(crate) fn again(&self) -> Self {
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut recipe = Recipe { start: Start::Resumed, ..Recipe::clone(&self.recipe) };
        recipe.lanes = recipe.lanes.renewed(&recipe.limits);
        Self { effects: Mutex::new(effects), ..Self::new(recipe, self.supervisor.again()) }
    }

    /// A copy without permissions, except those that its role in the session gives.
    pub(crate) fn without_rights(&self, role: Role) -> Self {
        let again = self.again();
        let mut recipe = Recipe::clone(&again.recipe);
        recipe.lanes = recipe.lanes.renewed(&recipe.limits);
        let (serves, before) = (role == Role::Serves, recipe.services);
        if let Some(programs) = &before.programs {
            programs.background().close();
        }
        let Services { reporter, clock, models, embeddings, history, .. } = before;
        recipe.services = Services {
            reporter,
            clock,
            models,
            may_ask: serves,
            embeddings,
            may_embed: serves,
            history,
            may_read: serves,
            ..Services::nothing()
        };
        if recipe.loaded.is_native() {
            // Permissions do not limit native code, so it must not run at all.
            again.supervisor.revoke();
        }
        Self::new(recipe, again.supervisor)
    }

    /// Starts the instance of turns. The error is what the plugin says about a configuration that it refuses.
    pub(crate) async fn begin(&self) -> Result<(), String> {
        match self.foreground.begin().await {
            Err(CallError { cause: Cause::Start(fault), .. })
                if fault.kind == FaultKind::InvalidInput && fault.code != hermes_runtime::SHAPE =>
            {
                Err(fault.message.clone())
            }
            // Its calls report another failure, and the supervisor counts them.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn recipe(&self) -> &Arc<Recipe> {
        &self.recipe
    }

    fn foreground(&self) -> &Instance {
        &self.foreground
    }

    fn background(&self) -> &Instance {
        self.background.get_or_init(|| Instance::new(self.unattended()))
    }

    fn vectors(&self) -> &Instance {
        self.vectors.get_or_init(|| Instance::without_session_end(self.unattended()))
    }

    /// The recipe of another instance. It cannot ask the user to approve a program.
    fn unattended(&self) -> Arc<Recipe> {
        let mut recipe = Recipe { start: Start::Resumed, ..Recipe::clone(&self.recipe) };
        recipe.services.programs = recipe.services.programs.map(Programs::unattended);
        recipe.services.changes = recipe.services.changes.unattended();
        Arc::new(recipe)
    }

    /// The instances that have been created.
    fn running(&self) -> Running<'_> {
        Running { foreground: &self.foreground, background: self.background.get() }
    }

    fn policy_of(&self, tool: &str) -> RetryPolicy {
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        if effects.get(tool) == Some(&Effect::Reads) { RetryPolicy::READ } else { RetryPolicy::WRITE }
    }

    /// Reports what was cut off, if anything was.
    fn bounded<T>(&self, (answer, notice): (T, Option<String>)) -> T {
        notice.iter().for_each(|notice| self.supervisor.tell(notice));
        answer
    }

    fn bounded_recollections(&self, recalled: Vec<Recollection>) -> Vec<Recollection> {
        self.bounded(flood::recollections(recalled))
    }

    fn bounded_prompt(&self, text: String) -> String {
        self.bounded(flood::prompt(text))
    }

    fn bounded_status(&self, text: String) -> String {
        self.bounded(flood::status(text))
    }

    fn bounded_keep(&self, text: String) -> String {
        flood::keep(text)
    }

    fn bounded_plan(&self, plan: Option<Plan>) -> Option<Plan> {
        plan.map(flood::plan)
    }

    fn bounded_output(&self, output: Output) -> Output {
        flood::output(output)
    }

    fn bounded_verdict(&self, verdict: Verdict) -> Verdict {
        flood::verdict(verdict)
    }

    fn bounded_preview(&self, preview: CallPreview) -> CallPreview {
        flood::preview(preview)
    }

    fn bounded_model(&self, model: EmbeddingModel) -> EmbeddingModel {
        flood::model(model)
    }

    fn bounded_tools(&self, tools: Vec<Tool>) -> Vec<Tool> {
        let tools = self.bounded(flood::tools(tools));
        let effects = tools.iter().map(|tool| (tool.schema.name.clone(), tool.effect)).collect();
        *self.effects.lock().unwrap_or_else(PoisonError::into_inner) = effects;
        tools
    }

    fn bounded_skills(&self, skills: Vec<Skill>) -> Vec<Skill> {
        self.bounded(flood::skills(skills))
    }
}

macro_rules! policy {
    ($component:ident by_effect $invocation:ident) => {
        $component.policy_of(&$invocation.name)
    };
    ($component:ident $policy:ident) => {
        RetryPolicy::$policy
    };
}

macro_rules! serve_by_instances {
    ($($(#[$kind_doc:meta])* $kind:ident {
        $($(#[$doc:meta])* $function:ident($($argument:ident: $type:ty),*) -> $answer:ty {
            $call:literal, $instance:ident.$method:ident, $policy:ident $($policy_of:ident)?, $again:ident
            $(, needs $right:ident or $without:expr)? $(, when_off $off:expr)? $(, then $then:ident)? $(, note $note:ident)?
        })+
    })+) => {
        $(
            #[async_trait]
            impl $kind for SessionComponent {
                fn name(&self) -> &str {
                    &self.recipe.plugin
                }

                $(
                    async fn $function(&self, $($argument: $type),*) -> Result<$answer, CallError> {
                        $(
                            if !self.recipe.services.$right {
                                return Ok($without);
                            }
                        )?
                        $(
                            if self.supervisor.is_off() {
                                return Ok($off);
                            }
                        )?
                        let policy = policy!(self $policy $($policy_of)?);
                        let call = || self.$instance().$method($(Clone::clone(&$argument)),*);
                        let answer = self.supervisor.watch($call, policy, call).await?;
                        $(let answer = self.$then(answer);)?
                        Ok(answer)
                    }
                )+
            }
        )+
    };
}

for_each_kind!(serve_by_instances);

#[cfg(test)]
mod tests;
