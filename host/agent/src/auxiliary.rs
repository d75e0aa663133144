//! The user's models, as plugins may ask them: who serves a task, and who is asked when that one does not answer.
//!
//! Routes are decided elsewhere and come connected. What is here is the ladder of one request: attempts with a time each,
//! the same model again after a failure in transport, then the next, and a line for the user where another one served.

mod serving;
mod trouble;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Model, Role, Shown, tokens};
use hermes_diagnostic::Notice;
use hermes_models::{Breakpoints, Finish, ModelError, Prefix, Provider, Reply, Request, System};
use hermes_plugin_host::services::{self, ModelReply, ModelRequest, Models};
use hermes_plugin_host::{Fault, FaultKind};
use tokio::time::Instant;

use crate::report::NoticeSender;
use serving::{Identity, Serving};
use trouble::Trouble;

/// How long a model whose provider wants to be paid is left out.
const UNPAID: Duration = Duration::from_secs(600);
/// The longest pause before the same model is asked again; the first is a second, doubled each time.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// A task whose attempts are long: one that took all its time is not made again.
const COMPRESSION: &str = "compression";
/// For one attempt of a task without a section.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Which models serve plugins. Clones share what was learnt of accounts that are empty.
#[derive(Clone)]
pub struct AuxiliaryModels {
    tasks: HashMap<String, TaskModels>,
    transient_retries: u32,
    unpaid: Arc<Unpaid>,
}

/// Who serves a task.
#[derive(Debug, Clone)]
pub struct TaskModels {
    /// In the order in which they are asked.
    pub candidates: Vec<Candidate>,
    /// For one attempt.
    pub timeout: Duration,
    /// Why whoever should be asked first is not among them, and what to do: told when another one served.
    pub missing: Option<String>,
}

/// One that may serve a task.
#[derive(Clone)]
pub enum Candidate {
    /// The session's own model.
    Session {
        /// Its window for this task, in tokens; no larger than it is.
        context_length: u32,
    },
    /// Another one.
    Other {
        /// Who is asked.
        provider: Arc<dyn Provider>,
        /// The model, and its window.
        model: Model,
        /// The key of the configuration that names it, for whoever has to correct it.
        section: String,
    },
}

impl AuxiliaryModels {
    /// The session's model for everything. After a failure in transport the same model is asked again so many times.
    pub fn new(transient_retries: u32) -> Self {
        Self { tasks: HashMap::new(), transient_retries, unpaid: Arc::default() }
    }

    /// Says who serves a task.
    pub fn set(&mut self, task: &str, models: TaskModels) {
        self.tasks.insert(task.to_owned(), models);
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
            Candidate::Other { model, section, .. } => f.debug_tuple("Other").field(model).field(section).finish(),
        }
    }
}

/// Whom a 402 has come from, and until when they are left out.
#[derive(Default)]
struct Unpaid(Mutex<HashMap<Identity, Instant>>);

impl Unpaid {
    fn mark(&self, who: &Serving) {
        let mut marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marked.insert(who.identity(), Instant::now() + UNPAID);
    }

    /// How long it is left out yet.
    fn left(&self, who: &Serving) -> Option<Duration> {
        let marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = marked.get(&who.identity())?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// Serves plugins of a session.
pub(crate) struct Auxiliary {
    provider: Arc<dyn Provider>,
    model: Model,
    models: AuxiliaryModels,
    notices: NoticeSender,
    /// Tasks of which the user knows that another one served.
    told: Mutex<HashSet<String>>,
}

/// How the ladder is climbed for one task.
#[derive(Clone, Copy)]
struct Terms {
    timeout: Duration,
    retries: u32,
    /// Whether an attempt that took all its time is worth another one.
    after_timeout: bool,
}

impl Auxiliary {
    /// `provider` and `model` are the session's.
    pub(crate) fn new(
        provider: Arc<dyn Provider>,
        model: Model,
        models: AuxiliaryModels,
        notices: NoticeSender,
    ) -> Self {
        Self { provider, model, models, notices, told: Mutex::default() }
    }

    /// All that may serve a task, in the order in which they are asked.
    fn serving(&self, task: &str) -> Vec<Serving> {
        let sessions = |context_length: u32| Serving {
            provider: Arc::clone(&self.provider),
            model: Model { context_length: context_length.min(self.model.context_length), ..self.model.clone() },
            section: None,
        };
        let all = match self.models.tasks.get(task) {
            None => vec![sessions(u32::MAX)],
            Some(models) => {
                let serving = models.candidates.iter().map(|candidate| match candidate {
                    Candidate::Session { context_length } => sessions(*context_length),
                    Candidate::Other { provider, model, section } => {
                        Serving { provider: Arc::clone(provider), model: model.clone(), section: Some(section.clone()) }
                    }
                });
                serving.collect()
            }
        };
        all.into_iter().filter(|serving| !serving.provider.is_offline()).collect()
    }

    fn terms(&self, task: &str) -> Terms {
        Terms {
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

    /// Why nobody is left, where all have been marked.
    fn all_unpaid(&self, task: &str, serving: &[Serving]) -> Fault {
        match serving.iter().filter_map(|one| Some((one, self.models.unpaid.left(one)?))).min_by_key(|(_, left)| *left)
        {
            None => self.no_model(task),
            Some((one, left)) => {
                let why = Trouble::unpaid(&one.shown(), left);
                let mut fault = Fault::new(FaultKind::Unavailable, "no-model", why.to_string());
                fault.retry_after_ms = u32::try_from(left.as_millis()).ok();
                fault
            }
        }
    }

    /// One model, again where its transport failed.
    async fn ask(&self, who: &Serving, request: &ModelRequest, terms: &Terms, only: bool) -> Result<Reply, Trouble> {
        let mut tries = 0;
        loop {
            let trouble = match attempt(who, request, terms.timeout, false).await {
                Ok(reply) => return Ok(reply),
                Err(trouble) => trouble,
            };
            tracing::debug!(task = request.task, model = who.model.name, trouble = %trouble.cause(who), "an attempt failed");
            let limited = matches!(trouble, Trouble::Model(ModelError::RateLimited { .. }));
            let again = trouble.is_transient() && (terms.after_timeout || !trouble.is_timeout());
            if tries >= terms.retries || !(again || limited && only) {
                return Err(trouble);
            }
            tokio::time::sleep(pause(tries)).await;
            if limited {
                // Nobody else is there to ask, so the limit is waited out for as long as its server asks.
                return attempt(who, request, terms.timeout, true).await;
            }
            tries += 1;
        }
    }

    /// Reports once per session and task that another model served than the configured one.
    fn report_substitute(&self, task: &str, who: &Serving, cause: Notice) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(task.to_owned()) {
            let text = format!("the task `{task}` was served by {} and not as configured: {}", who.shown(), cause.text);
            tracing::warn!("{text}");
            self.notices.notice(Notice::new(text, cause.fix));
        }
    }
}

#[async_trait]
impl Models for Auxiliary {
    fn resolve(&self, task: &str) -> Result<Model, Fault> {
        let serving = self.serving(task);
        // What is written for one must fit each that may have to read it.
        let least = serving.iter().map(|one| one.model.context_length).min();
        let first = serving.iter().find(|one| self.models.unpaid.left(one).is_none());
        match (first, least) {
            (Some(first), Some(least)) => Ok(Model { context_length: least, ..first.model.clone() }),
            _ => Err(self.all_unpaid(task, &serving)),
        }
    }

    async fn complete(&self, request: ModelRequest) -> Result<ModelReply, Fault> {
        let task = request.task.as_str();
        let serving = self.serving(task);
        let terms = self.terms(task);
        let mut cause = self.missing(task).map(Notice::from);
        let mut first_fault = None;
        let mut asked = 0;
        for (at, who) in serving.iter().enumerate() {
            if let Some(left) = self.models.unpaid.left(who) {
                cause.get_or_insert_with(|| Trouble::unpaid(&who.shown(), left));
                continue;
            }
            // Behind others the session's model is asked once: by then the plugin has waited long enough.
            let last_resort = who.section.is_none() && at > 0;
            let only = serving[at + 1..].iter().all(|other| self.models.unpaid.left(other).is_some()) && asked == 0;
            let terms = Terms { retries: if last_resort { 0 } else { terms.retries }, ..terms };
            asked += 1;
            let trouble = match self.ask(who, &request, &terms, only).await {
                Ok(reply) => {
                    if let Some(cause) = cause {
                        self.report_substitute(task, who, cause);
                    }
                    return Ok(answered(reply));
                }
                Err(trouble) => trouble,
            };
            if matches!(trouble, Trouble::Model(ModelError::Billing { .. })) {
                self.models.unpaid.mark(who);
            }
            cause.get_or_insert_with(|| trouble.notice(who));
            let is_final = trouble.is_final();
            first_fault.get_or_insert_with(|| trouble.into_fault(who));
            if is_final {
                break;
            }
        }
        Err(first_fault.unwrap_or_else(|| self.all_unpaid(task, &serving)))
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

fn pause(tries: u32) -> Duration {
    Duration::from_secs(1 << tries.min(8)).min(LONGEST_PAUSE)
}

/// One attempt; with `patience` the provider tries again by itself.
async fn attempt(who: &Serving, request: &ModelRequest, timeout: Duration, patience: bool) -> Result<Reply, Trouble> {
    let (system, messages) = prompt(&request.messages);
    let prefix = Prefix::of(who.provider.style(), System::plain(&system), &messages);
    let prefix = prefix.map_err(|error| Trouble::Model(error.into()))?;
    let asked = Request {
        model: &who.model.name,
        prefix: &prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: request.max_tokens,
        temperature: request.temperature,
        schema: request.schema.as_deref(),
    };
    let answer = async {
        match patience {
            true => who.provider.complete(&asked, &mut |_| {}).await,
            false => who.provider.attempt(&asked).await,
        }
    };
    match tokio::time::timeout(timeout, answer).await {
        Err(_) => Err(Trouble::TimedOut(timeout)),
        Ok(Err(error)) => Err(Trouble::Model(error)),
        Ok(Ok(reply)) if reply.text.trim().is_empty() && reply.finish != Finish::Refused => Err(Trouble::Empty),
        Ok(Ok(reply)) => Ok(reply),
    }
}

fn answered(reply: Reply) -> ModelReply {
    let finish = match reply.finish {
        Finish::Length => services::Finish::Length,
        Finish::Refused => services::Finish::Refused,
        Finish::Stop | Finish::ToolCalls => services::Finish::Stop,
    };
    ModelReply { text: reply.text, finish, model: reply.model, usage: reply.usage.unwrap_or_default() }
}

/// System texts in front, the rest as a conversation.
fn prompt(messages: &[(Role, String)]) -> (String, Vec<Shown>) {
    let (system, said): (Vec<_>, Vec<_>) = messages.iter().partition(|(role, _)| *role == Role::System);
    let system = system.into_iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n\n");
    let said = said.into_iter().map(|(role, content)| Shown::words(*role, content.clone())).collect();
    (system, said)
}

#[cfg(test)]
mod tests;
