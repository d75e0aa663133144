//! Runs a plugin in the test environment, and records every call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hermes_capabilities::approval::ChangeApproval;
use hermes_capabilities::files::{Guard, Root, Roots};
use hermes_capabilities::http::Http;
use hermes_plugin_host::{
    Access, CallError, Cause, Exports, Fault, FaultKind, Invocation, Language, Limit, Output, Permissions, SKILLS,
    SessionInfo, Start, Tool, scripted_web, web_without_secrets,
};
use hermes_runtime::services::{Models, NoSession, SystemRandom};
use hermes_runtime::{Instance, Lanes, Limits, Loaded, Recipe, Services, SessionCalls};

use crate::conversation::{SESSION, TestHistory, history, short};
use crate::error::ConformanceError;
use crate::fixtures::{AgreeingUser, FixedClock, Folders, HashedVectors, ScriptedModel, Storage, model};
use crate::report::{Calls, Crashed, Fail};
use crate::rights::Rights;
use crate::script::model::FixtureModel;
use crate::script::web::{SessionWeb, Web};
use crate::script::{ATTEMPTS, FixtureUse};
use crate::settings::Settings;
use crate::subject::Subject;

/// A loaded plugin, and what all of its test sessions share.
pub(crate) struct TestBench<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) exports: Exports,
    /// The limits of its kind in a session, with those that its manifest raises.
    pub(crate) limits: Limits,
    pub(crate) folders: &'a Folders,
    /// The configuration that is tested.
    pub(crate) config: String,
    /// The requested permissions, with the addresses of that configuration.
    permissions: Permissions,
    /// The web, for a plugin that requests it.
    pub(crate) web: Option<Arc<Web>>,
    model: Option<Arc<FixtureModel>>,
    loaded: Arc<Loaded>,
    log: CallLog,
}

/// The setup of one test session.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) config: String,
    pub(crate) start: Start,
    pub(crate) rights: Rights,
    pub(crate) storage: Storage,
    pub(crate) history: Arc<TestHistory>,
    pub(crate) limits: Limits,
}

/// How to fix an import that is denied although the test grants all that the manifest requests.
const REQUEST: &str = "request what it needs below `permissions` in plugin.yaml";

/// How to fix a call that does not end in its time.
const ENDLESS: &str = "look for a loop that does not end, for blocking work, or for work that is too much for one call; `limits` in \
                       plugin.yaml can raise the limit";
/// How to fix a call that uses too much of something else.
const LARGE: &str = "keep less, or raise the limit below `limits` in plugin.yaml";

/// How to fix an answer, or what an import gets, that is too long. Arguments can be as long as an answer may be.
const LONG: &str = "cap long texts, or refuse them with an error that says how much the plugin takes: an answer that repeats its \
                    arguments is longer than they are; `limits` in plugin.yaml can raise the limit";

/// A call that failed.
#[derive(Debug, Clone)]
pub(crate) enum CallFailure {
    /// The plugin returned an error.
    Returned(Fault),
    /// The plugin returned an error that the host handles later, because the stand-in for its backend is unavailable.
    Down(Fault),
    /// The plugin crashed or exceeded a limit.
    Crashed(Crashed),
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned(fault) => write!(f, "it answered the error `{}`", fault.message),
            Self::Down(fault) => write!(f, "its backend is down, and it says so: `{}`", fault.message),
            Self::Crashed(crash) => f.write_str(&crash.why),
        }
    }
}

impl From<CallFailure> for Fail {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Down(_) => Self::excused(failure.to_string()),
            CallFailure::Returned(ref fault) if fault.kind == FaultKind::Denied => {
                Self { fix: Some(REQUEST), ..failure.to_string().into() }
            }
            CallFailure::Returned(_) => failure.to_string().into(),
            CallFailure::Crashed(crash) => Self { fix: crash.fix, crashes: vec![crash.clone()], ..crash.why.into() },
        }
    }
}

impl CallFailure {
    /// The failure of a check, with what was tried in front.
    pub(crate) fn of(self, tried: &str) -> Fail {
        let fail = Fail::from(self);
        Fail { why: format!("{tried}: {}", fail.why), ..fail }
    }
}

#[derive(Default)]
struct CallLog(Mutex<CallRecords>);

#[derive(Default)]
struct CallRecords {
    micros: BTreeMap<&'static str, Vec<u64>>,
    overruns: Vec<String>,
    /// The tools that crashed at ordinary calls.
    broken: BTreeSet<String>,
}

impl<'a> TestBench<'a> {
    pub(crate) fn new(
        subject: &'a Subject,
        loaded: Arc<Loaded>,
        folders: &'a Folders,
        config: String,
        settings: &Settings,
    ) -> Self {
        let exports = loaded.exports();
        let limits = Limits::of(exports.tier()).with(&subject.manifest.limits);
        let web = (!subject.manifest.permissions.http.is_empty()).then(|| Web::new(settings.http.as_ref()));
        let model = settings.model.as_ref().map(FixtureModel::new);
        let section = serde_json::from_str(&config).unwrap_or_default();
        let permissions = subject.manifest.permissions_allowed(&section);
        Self { subject, exports, limits, folders, config, permissions, web, model, loaded, log: CallLog::default() }
    }

    /// A first session with all rights that the manifest requests.
    pub(crate) fn setup(&self) -> Setup {
        Setup {
            config: self.config.clone(),
            start: Start::Fresh,
            rights: Rights::Granted,
            storage: Storage::empty(),
            history: history(short()),
            limits: self.limits,
        }
    }

    /// Starts a session. Must be called within a tokio runtime.
    pub(crate) fn open(&self, setup: &Setup) -> Result<Session<'_>, ConformanceError> {
        let web = self.web.as_ref().map(Web::open);
        let parent = if let Start::Continued(parent) = &setup.start { Some(parent.clone()) } else { None };
        let recipe = Arc::new(Recipe {
            plugin: self.subject.manifest.name.clone(),
            version: self.subject.manifest.version.to_string(),
            loaded: Arc::clone(&self.loaded),
            config: setup.config.clone(),
            session: SessionInfo {
                id: SESSION.to_owned(),
                parent,
                platform: "cli".to_owned(),
                purpose: "primary".to_owned(),
                profile: "default".to_owned(),
                workspace: Some("/workspace".to_owned()),
                repository: None,
                model: model(),
            },
            start: setup.start.clone(),
            services: self.services(setup, web.clone())?,
            limits: setup.limits,
            tally: Arc::default(),
            lanes: Lanes::new(&setup.limits, &SessionCalls::new()),
        });
        Ok(Session { bench: self, instance: Instance::new(Arc::clone(&recipe)), recipe, web })
    }

    fn services(&self, setup: &Setup, web: Option<Arc<SessionWeb>>) -> Result<Services, ConformanceError> {
        let permissions = &self.permissions;
        let granted = setup.rights != Rights::Denied;
        // A selected engine or memory provider always has the rights to models and to the conversation.
        let selected = self.exports.context_engine || self.exports.memory_provider;
        let mut roots = Vec::new();
        for request in permissions.files.iter().filter(|_| granted) {
            let path = self.folders.of(&request.root);
            let root = Root::open(&request.root, path, request.access == Access::Write, Vec::new());
            roots.push(root.map_err(|error| ConformanceError::Surroundings(error.to_string()))?);
        }
        if let Some(folder) = &self.subject.skills {
            let root = Root::open(SKILLS, folder.join(SKILLS), false, Vec::new());
            roots.push(root.map_err(|error| ConformanceError::Surroundings(error.to_string()))?);
        }
        Ok(Services {
            reporter: Arc::new(NoSession),
            clock: Arc::new(FixedClock),
            random: Arc::new(SystemRandom),
            models: self.models(setup),
            may_ask: granted && (permissions.llm.is_some() || selected),
            embeddings: Arc::new(HashedVectors { unavailable: setup.rights == Rights::NoModel }),
            may_embed: granted && (permissions.embeddings || selected),
            history: setup.history.clone(),
            may_read: granted && (permissions.history || selected),
            may_hook: granted && permissions.hooks,
            documents: if granted { vec![Arc::clone(&setup.storage.documents)] } else { Vec::new() },
            files: Arc::new(Roots::new(roots, Guard::default())),
            changes: ChangeApproval::new(Arc::new(AgreeingUser)),
            database: (granted && permissions.sql).then(|| Arc::clone(&setup.storage.database)),
            http: Arc::new(match (web.filter(|_| granted), setup.rights) {
                (Some(web), Rights::NoSecret) => web_without_secrets(&self.subject.manifest.name, permissions, web),
                (Some(web), Rights::NoAddress) => {
                    let ungranted = Permissions { http: Vec::new(), ..permissions.clone() };
                    scripted_web(&self.subject.manifest.name, &ungranted, web)
                }
                (Some(web), _) => scripted_web(&self.subject.manifest.name, permissions, web),
                (None, _) => Http::closed(),
            }),
            // A plugin under test has no programs; the import answers as if they were not granted.
            programs: None,
        })
    }

    fn models(&self, setup: &Setup) -> Arc<dyn Models> {
        match &self.model {
            Some(model) if setup.rights != Rights::NoModel => Arc::new(model.open()),
            _ => Arc::new(ScriptedModel { unavailable: setup.rights == Rights::NoModel }),
        }
    }

    /// What was used of the fixtures for the web, without secrets.
    pub(crate) fn http_use(&self) -> Option<FixtureUse> {
        let web = self.web.as_ref()?;
        let name = &self.subject.manifest.name;
        let redaction = scripted_web(name, &self.permissions, web.open()).redaction().clone();
        Some(web.usage(|request| redaction.text(request)))
    }

    /// What was used of the fixtures for the model.
    pub(crate) fn model_use(&self) -> Option<FixtureUse> {
        self.model.as_ref().map(|model| model.usage())
    }

    fn records(&self) -> std::sync::MutexGuard<'_, CallRecords> {
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls of every function, by name.
    pub(crate) fn calls(&self) -> Vec<Calls> {
        let records = self.records();
        let calls = records.micros.iter().map(|(call, micros)| {
            let mut micros = micros.clone();
            micros.sort_unstable();
            let median_us = micros.get(micros.len() / 2).copied().unwrap_or_default();
            Calls {
                call,
                count: micros.len() as u64,
                median_us,
                slowest_us: micros.last().copied().unwrap_or_default(),
            }
        });
        calls.collect()
    }

    /// Remembers a tool that crashes at an ordinary call. Later checks do not call it.
    pub(crate) fn is_broken(&self, tool: &str) {
        self.records().broken.insert(tool.to_owned());
    }

    /// Whether a tool answers ordinary calls.
    pub(crate) fn works(&self, tool: &Tool) -> bool {
        !self.records().broken.contains(&tool.schema.name)
    }

    /// The calls that exceeded a limit of time or memory, in words.
    pub(crate) fn overruns(&self) -> Vec<String> {
        self.records().overruns.clone()
    }
}

/// One plugin in one session.
pub(crate) struct Session<'s> {
    pub(crate) bench: &'s TestBench<'s>,
    pub(crate) instance: Instance,
    /// Its web, for a plugin that requests it.
    pub(crate) web: Option<Arc<SessionWeb>>,
    recipe: Arc<Recipe>,
}

impl Session<'_> {
    /// Awaits a call, and records its duration and any overrun.
    pub(crate) async fn call<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallFailure> {
        let begun = Instant::now();
        let answer = call.await;
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut records = self.bench.records();
        records.micros.entry(name).or_default().push(micros);
        answer.map_err(|error| match error.cause {
            Cause::Fault(fault) | Cause::Start(fault) => match &self.web {
                Some(web) if web.was_down() && fault.may_pass() => CallFailure::Down(*fault),
                _ => CallFailure::Returned(*fault),
            },
            mut cause => {
                // The functions of an interpreter tell the author of a script nothing.
                let is_script = matches!(self.bench.subject.language, Language::Python | Language::JavaScript);
                if let Cause::Trap(crash) = &mut cause {
                    crash.place = crash.place.take().filter(|place| !is_script || place.starts_with("at "));
                }
                let why = format!("`{name}`: {cause}");
                let (place, raw) = match &cause {
                    Cause::Trap(crash) => (crash.place.clone(), Some(crash.raw.clone())),
                    _ => (None, None),
                };
                // A limit that a check lowered does not count as an overrun.
                let usual = self.bench.limits;
                let ran_over = match cause {
                    Cause::Deadline { limit, after } => after == usual.time(limit),
                    Cause::Limit { limit, value } => value == usual.get(limit),
                    _ => false,
                };
                if ran_over {
                    records.overruns.push(why.clone());
                }
                let fix = match &cause {
                    Cause::Trap(crash) => crash.remedy(),
                    _ if !ran_over => None,
                    Cause::Deadline { .. } | Cause::Limit { limit: Limit::Cpu | Limit::HostCalls, .. } => Some(ENDLESS),
                    Cause::Limit { limit: Limit::Output, .. } => Some(LONG),
                    _ => Some(LARGE),
                };
                CallFailure::Crashed(Crashed { cause: place.unwrap_or_else(|| why.clone()), why, raw, fix })
            }
        })
    }

    /// Repeats a call that fixtures make fail for a while, as the host does, though later.
    pub(crate) async fn until_answered<T, F>(&self, once: impl Fn() -> F) -> Result<T, CallFailure>
    where
        F: Future<Output = Result<T, CallFailure>>,
    {
        let mut answer = once().await;
        for _ in 1..ATTEMPTS {
            match &answer {
                Err(CallFailure::Returned(fault)) if self.web.is_some() && fault.may_pass() => {
                    answer = once().await;
                }
                _ => break,
            }
        }
        answer
    }

    /// Makes the cheapest call of each kind, which also creates the instance.
    pub(crate) async fn start(&self) -> Result<(), CallFailure> {
        let (instance, exports) = (&self.instance, self.bench.exports);
        if exports.context_engine {
            self.call("status", instance.status()).await.map(drop)?;
        }
        if exports.tools {
            self.call("catalog", instance.catalog()).await.map(drop)?;
        }
        if exports.hooks {
            self.call("interests", instance.interests()).await.map(drop)?;
        }
        if exports.memory_provider {
            self.call("system-prompt", instance.system_prompt()).await.map(drop)?;
        }
        if exports.skills {
            self.call("index", instance.skills()).await.map(drop)?;
        }
        Ok(())
    }

    /// Whether the plugin requests programs. None runs in a test, so its calls can be denied.
    pub(crate) fn requests_programs(&self) -> bool {
        !self.bench.subject.manifest.permissions.process.is_empty()
    }

    /// Calls a tool in an instance that serves no other call meanwhile, as the host does.
    pub(crate) async fn call_tool(&self, name: &str, arguments: &str) -> Result<Output, CallFailure> {
        let invocation = Invocation {
            id: "call-1".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            extra: Vec::new(),
        };
        self.call("call", self.recipe.call_tool(invocation)).await.map_err(|failure| match failure {
            // Without a place in the source, two tools with the same words have two causes.
            CallFailure::Crashed(crash) if crash.cause == crash.why => {
                CallFailure::Crashed(Crashed { cause: format!("{name}: {}", crash.why), ..crash })
            }
            failure => failure,
        })
    }
}

/// Treats a returned error as success without a value; only a crash remains an error.
pub(crate) fn ignore_errors<T>(answer: Result<T, CallFailure>) -> Result<Option<T>, CallFailure> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(CallFailure::Returned(_) | CallFailure::Down(_)) => Ok(None),
        Err(crash) => Err(crash),
    }
}
