//! The models that plugins may call: which model serves a task, and which one follows when it fails.
//!
//! The configuration decides the order of models. This module carries out one request: each attempt has a timeout, a
//! transport failure repeats the same model, other failures move on to the next model. A notice tells the user when a
//! model other than the configured one served.

mod attempt;
mod failure;
mod ledger;
mod route;
mod windows;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Model, tokens};
use hermes_diagnostic::Notice;
use hermes_models::{Effort, Finish, ModelError, Reply, sees_images};
use hermes_plugin_host::services::{self, ModelReply, ModelRequest, Models, Pieces};
use hermes_plugin_host::{Fault, FaultKind};
use tokio::time::Instant;

use crate::chain::ModelChain;
use crate::learned::{self, LearnedWindow};
use crate::owner::HOST;
use crate::report::NoticeSender;
use crate::served::ServedModel;
use attempt::{Shown, attempt};
use failure::Failure;
pub(crate) use ledger::AuxiliaryLedger;
use route::{Identity, Route};
use windows::NamedWindows;

/// How long a model is skipped after its provider demanded payment.
const UNPAID: Duration = Duration::from_secs(600);
/// The longest pause before a retry. The first pause takes one second, and each retry doubles it.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Attempts of this task are long, so a timeout is not retried.
const COMPRESSION: &str = "compression";
/// The timeout of an attempt for tasks without a section in the configuration.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The models that serve plugins. Clones share the list of accounts that need payment.
#[derive(Clone)]
pub struct AuxiliaryModels {
    tasks: HashMap<String, TaskModels>,
    transient_retries: u32,
    unpaid: Arc<Unpaid>,
}

/// The models of a task.
#[derive(Debug, Clone)]
pub struct TaskModels {
    /// The models, in the order in which they are tried.
    pub candidates: Vec<Candidate>,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// How much they think; none for the provider's default.
    pub effort: Option<Effort>,
    /// Why the configured model is unavailable, and what to do. Reported when another model serves.
    pub missing: Option<String>,
}

/// A model that may serve a task.
#[derive(Clone)]
pub enum Candidate {
    /// The session's own model.
    Session {
        /// The window for this task in tokens. The model's own window is an upper limit.
        context_length: u32,
    },
    /// Another model.
    Other {
        /// The model with its provider.
        served: ServedModel,
        /// The configuration key that names the model, for error messages.
        section: String,
    },
}

impl AuxiliaryModels {
    /// The session's model serves every task. `transient_retries` limits the retries after a transport failure.
    pub fn new(transient_retries: u32) -> Self {
        Self { tasks: HashMap::new(), transient_retries, unpaid: Arc::default() }
    }

    /// Sets the models of a task.
    pub fn set(&mut self, task: &str, models: TaskModels) {
        self.tasks.insert(task.to_owned(), models);
    }

    /// The models of all tasks other than the session's own.
    pub fn others_mut(&mut self) -> impl Iterator<Item = &mut ServedModel> {
        let candidates = self.tasks.values_mut().flat_map(|models| &mut models.candidates);
        candidates.filter_map(|candidate| match candidate {
            Candidate::Session { .. } => None,
            Candidate::Other { served, .. } => Some(served),
        })
    }
}

impl fmt::Debug for AuxiliaryModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, transient_retries, unpaid: _ } = self;
        f.debug_struct("AuxiliaryModels").field("tasks", tasks).field("transient_retries", transient_retries).finish()
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Candidate::Session { context_length } => f.debug_tuple("Session").field(context_length).finish(),
            Candidate::Other { served, section } => f.debug_tuple("Other").field(&served.model).field(section).finish(),
        }
    }
}

/// Models whose provider answered 402, and until when they are skipped.
#[derive(Default)]
struct Unpaid(Mutex<HashMap<Identity, Instant>>);

impl Unpaid {
    fn mark(&self, who: &Route) {
        let mut marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marked.insert(who.identity(), Instant::now() + UNPAID);
    }

    /// How long a model will still be skipped.
    fn left(&self, who: &Route) -> Option<Duration> {
        let marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = marked.get(&who.identity())?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// Answers the model requests of a session's plugins. Clones share everything but the plugin.
#[derive(Clone)]
pub(crate) struct Auxiliary {
    /// The models of the session.
    chain: Arc<ModelChain>,
    models: AuxiliaryModels,
    notices: NoticeSender,
    /// Tasks whose substitute model was already reported.
    reported: Arc<Mutex<HashSet<String>>>,
    /// The windows that providers named in this session.
    named: NamedWindows,
    /// Who asks.
    plugin: String,
    /// Where requests are recorded; nowhere in tests.
    ledger: Option<AuxiliaryLedger>,
}

/// The retry rules of a task.
#[derive(Clone, Copy)]
struct RetryRules {
    timeout: Duration,
    retries: u32,
    /// Whether a timeout is retried.
    after_timeout: bool,
}

impl Auxiliary {
    pub(crate) fn new(chain: Arc<ModelChain>, models: AuxiliaryModels, notices: NoticeSender) -> Self {
        Self {
            chain,
            models,
            notices,
            reported: Arc::default(),
            named: NamedWindows::default(),
            plugin: HOST.to_owned(),
            ledger: None,
        }
    }

    /// Records every request.
    pub(crate) fn recorded_in(self, ledger: AuxiliaryLedger) -> Self {
        Self { ledger: Some(ledger), ..self }
    }

    /// The models that can serve a task, in the order in which they are tried.
    fn routes(&self, task: &str) -> Vec<Route> {
        let effort = self.models.tasks.get(task).and_then(|models| models.effort);
        let route = |served: &ServedModel, window: u32, section: Option<&String>| {
            let mut served = served.clone();
            self.named.apply(&mut served);
            served.model.context_length = served.model.context_length.min(window);
            Route { served, section: section.cloned(), effort }
        };
        let sessions = |window: u32| route(self.chain.now(), window.min(self.chain.window()), None);
        let all = match self.models.tasks.get(task) {
            None => vec![sessions(u32::MAX)],
            Some(models) => {
                let routes = models.candidates.iter().map(|candidate| match candidate {
                    Candidate::Session { context_length } => sessions(*context_length),
                    Candidate::Other { served, section } => route(served, u32::MAX, Some(section)),
                });
                routes.collect()
            }
        };
        all.into_iter().filter(|route| !route.served.provider.is_offline()).collect()
    }

    fn rules(&self, task: &str) -> RetryRules {
        RetryRules {
            timeout: self.models.tasks.get(task).map_or(TIMEOUT, |models| models.timeout),
            retries: self.models.transient_retries,
            after_timeout: task != COMPRESSION,
        }
    }

    fn missing(&self, task: &str) -> Option<&str> {
        self.models.tasks.get(task)?.missing.as_deref()
    }

    fn no_model(&self, task: &str) -> Fault {
        let why = self.missing(task).unwrap_or("no model is configured");
        Fault::new(FaultKind::Unavailable, "no-model", why)
    }

    /// The error when every model is skipped.
    fn all_unpaid(&self, task: &str, routes: &[Route]) -> Fault {
        match routes.iter().filter_map(|one| Some((one, self.models.unpaid.left(one)?))).min_by_key(|(_, left)| *left) {
            None => self.no_model(task),
            Some((one, left)) => {
                let why = Failure::unpaid(&one.label(), left);
                let mut fault = Fault::new(FaultKind::Unavailable, "no-model", why.to_string());
                fault.retry_after_ms = u32::try_from(left.as_millis()).ok();
                fault
            }
        }
    }

    /// Asks one model, with retries after transport failures.
    async fn ask(
        &self,
        who: &Route,
        request: &ModelRequest,
        rules: &RetryRules,
        only: bool,
        shown: &Shown<'_>,
    ) -> Result<Reply, Failure> {
        let mut tries = 0;
        loop {
            let failure = match self.attempt(who, request, rules.timeout, false, shown).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            tracing::debug!(task = request.task, model = who.served.model.name, failure = %failure.cause(who), "an attempt failed");
            let limited = matches!(failure, Failure::Model(ModelError::RateLimited { .. }));
            let again = failure.is_transient() && (rules.after_timeout || !failure.is_timeout());
            if shown.anything() || tries >= rules.retries || !(again || limited && only) {
                return Err(failure);
            }
            tokio::time::sleep(pause(tries)).await;
            if limited {
                // No other model can serve the task, so the provider waits as long as the server demands.
                return self.attempt(who, request, rules.timeout, true, shown).await;
            }
            tries += 1;
        }
    }

    /// Makes one attempt, with its row in the ledger.
    async fn attempt(
        &self,
        who: &Route,
        request: &ModelRequest,
        timeout: Duration,
        patient: bool,
        shown: &Shown<'_>,
    ) -> Result<Reply, Failure> {
        let Some(ledger) = &self.ledger else { return attempt(who, request, timeout, patient, shown).await };
        let row = ledger.begin(&self.plugin, &request.task, &who.served.model).await;
        let replied = attempt(who, request, timeout, patient, shown).await;
        match &replied {
            Ok(reply) => {
                ledger.complete(row, reply.usage, &reply.model).await;
                let served = &who.served;
                learned::accepted(ledger.store.as_ref(), served, served.window_source, reply.usage).await;
            }
            // The provider read the request and charges for it.
            Err(failure) if failure.is_charged() => {}
            Err(_) => ledger.withdraw(&row).await,
        }
        replied
    }

    /// Keeps to a window that the provider named, if it is smaller than the known one, stores it and tells the user. A
    /// configured window is replaced for this session only.
    async fn learn(&self, who: &Route, tokens: u32, task: &str, failure: &Failure) {
        if !self.named.keep(&who.served, tokens) {
            return;
        }
        if let Some(AuxiliaryLedger { store, clock, .. }) = &self.ledger {
            let learned = LearnedWindow { tokens, at: clock.now() };
            learned::store(store.as_ref(), &who.served, Some(learned)).await;
        }
        let (cause, label) = (failure.cause(who), who.label());
        self.notices.notice(Notice::from(format!(
            "{cause}; for the task `{task}`, Hermes keeps to {tokens} tokens for {label}"
        )));
    }

    /// Reports once per session and task that another model served than the configured one.
    fn report_substitute(&self, task: &str, who: &Route, cause: Notice) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.insert(task.to_owned()) {
            let text =
                format!("{} served the task `{task}` in place of the configured model: {}", who.label(), cause.text);
            tracing::warn!("{text}");
            self.notices.notice(Notice::new(text, cause.fix));
        }
    }
}

#[async_trait]
impl Models for Auxiliary {
    fn resolve(&self, task: &str) -> Result<Model, Fault> {
        let routes = self.routes(task);
        // The prompt of the plugin must fit every model that may have to read it.
        let least = routes.iter().map(|one| one.served.model.context_length).min();
        let first = routes.iter().find(|one| self.models.unpaid.left(one).is_none());
        match (first, least) {
            (Some(first), Some(least)) => Ok(Model { context_length: least, ..first.served.model.clone() }),
            _ => Err(self.all_unpaid(task, &routes)),
        }
    }

    async fn stream(&self, request: ModelRequest, pieces: &Pieces) -> Result<ModelReply, Fault> {
        let task = request.task.as_str();
        let mut routes = self.routes(task);
        if request.images().next().is_some() {
            routes = with_vision(task, routes)?;
        }
        let shown = Shown::to(pieces);
        let rules = self.rules(task);
        let mut cause = self.missing(task).map(Notice::from);
        let mut first_fault = None;
        let mut attempts = 0;
        // The window of a model that refused the request as too long.
        let mut too_small = 0;
        for (at, who) in routes.iter().enumerate() {
            if who.served.model.context_length <= too_small {
                continue;
            }
            if let Some(left) = self.models.unpaid.left(who) {
                cause.get_or_insert_with(|| Failure::unpaid(&who.label(), left));
                continue;
            }
            // After other models failed, the session's model gets no retries: the plugin has waited long enough.
            let last_resort = who.section.is_none() && at > 0;
            let only = routes[at + 1..].iter().all(|other| self.models.unpaid.left(other).is_some()) && attempts == 0;
            let rules = RetryRules { retries: if last_resort { 0 } else { rules.retries }, ..rules };
            attempts += 1;
            let failure = match self.ask(who, &request, &rules, only, &shown).await {
                Ok(reply) => {
                    if let Some(cause) = cause {
                        self.report_substitute(task, who, cause);
                    }
                    return Ok(answered(reply));
                }
                Err(failure) => failure,
            };
            if matches!(failure, Failure::Model(ModelError::Billing { .. })) {
                self.models.unpaid.mark(who);
            }
            if let Some(limit) = failure.window() {
                too_small = limit;
                self.learn(who, limit, task, &failure).await;
            }
            cause.get_or_insert_with(|| failure.notice(who));
            // A request that is too long for this model may fit another one.
            let fits_another = || routes[at + 1..].iter().any(|other| other.served.model.context_length > too_small);
            let is_final = failure.is_final() && !(failure.window().is_some() && fits_another());
            // A plugin that has read the beginning of a reply gets no other reply.
            let is_final = is_final || shown.anything();
            first_fault.get_or_insert_with(|| failure.into_fault(who));
            if is_final {
                break;
            }
        }
        Err(first_fault.unwrap_or_else(|| self.all_unpaid(task, &routes)))
    }

    fn of_plugin(&self, plugin: &str) -> Option<Arc<dyn Models>> {
        Some(Arc::new(Self { plugin: plugin.to_owned(), ..self.clone() }))
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// The models that read pictures, or that may.
fn with_vision(task: &str, routes: Vec<Route>) -> Result<Vec<Route>, Fault> {
    let sees = |route: &Route| sees_images(&route.served.model.provider, &route.served.model.name) != Some(false);
    let label = routes.first().map(Route::label);
    let seeing: Vec<Route> = routes.into_iter().filter(sees).collect();
    match label {
        Some(label) if seeing.is_empty() => {
            let why =
                format!("{label} reads no pictures; set `auxiliary.{task}.model` in config.yaml to a model that does");
            Err(Fault::new(FaultKind::Unsupported, "no-vision", why))
        }
        _ => Ok(seeing),
    }
}

fn pause(tries: u32) -> Duration {
    Duration::from_secs(1 << tries.min(8)).min(LONGEST_PAUSE)
}

fn answered(reply: Reply) -> ModelReply {
    let finish = match reply.finish {
        Finish::Length => services::Finish::Length,
        Finish::Refused => services::Finish::Refused,
        Finish::Stop | Finish::ToolCalls => services::Finish::Stop,
    };
    ModelReply { text: reply.text, finish, model: reply.model, usage: reply.usage.unwrap_or_default() }
}

#[cfg(test)]
mod tests;
