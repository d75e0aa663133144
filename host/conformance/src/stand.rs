//! A plugin in a scene: instances made of it, and a note of every call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hermes_capabilities::files::{Root, Roots};
use hermes_capabilities::http::Http;
use hermes_plugin_host::{Access, CallError, Cause, Exports, Fault, Invocation, Output, SessionInfo, Start};
use hermes_runtime::services::NoSession;
use hermes_runtime::{Instance, Lanes, Limits, Loaded, Recipe, Services, SessionCalls};

use crate::conversation::{SESSION, Spoken, short};
use crate::error::ConformanceError;
use crate::fixtures::{Folders, Frozen, Kept, Scripted, model};
use crate::report::Calls;
use crate::rights::Rights;
use crate::subject::Subject;

/// A plugin, loaded, with what every scene of it shares.
pub(crate) struct Stand<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) exports: Exports,
    pub(crate) folders: &'a Folders,
    /// The configuration under which it is examined.
    pub(crate) config: String,
    loaded: Arc<Loaded>,
    notes: Notes,
}

/// How a plugin is put to work once.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) config: String,
    pub(crate) start: Start,
    pub(crate) rights: Rights,
    pub(crate) kept: Kept,
    pub(crate) history: Arc<Spoken>,
    pub(crate) limits: Limits,
}

/// A call that brought no result.
#[derive(Debug, Clone)]
pub(crate) enum Ill {
    /// It answered with an error.
    Answered(Fault),
    /// It crashed, took too long or wanted too much.
    Died(String),
}

impl fmt::Display for Ill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(fault) => write!(f, "it answered the error `{}`", fault.message),
            Self::Died(why) => f.write_str(why),
        }
    }
}

impl From<Ill> for crate::report::Fail {
    fn from(ill: Ill) -> Self {
        ill.to_string().into()
    }
}

#[derive(Default)]
struct Notes(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    micros: BTreeMap<&'static str, Vec<u64>>,
    overruns: Vec<String>,
}

impl<'a> Stand<'a> {
    pub(crate) fn new(subject: &'a Subject, loaded: Arc<Loaded>, folders: &'a Folders, config: String) -> Self {
        Self { subject, exports: loaded.exports(), folders, config, loaded, notes: Notes::default() }
    }

    /// A first session with everything that the manifest asks for.
    pub(crate) fn scene(&self) -> Scene {
        Scene {
            config: self.config.clone(),
            start: Start::Fresh,
            rights: Rights::Granted,
            kept: Kept::nothing_yet(),
            history: Arc::new(Spoken::of(short())),
            limits: Limits::standard(),
        }
    }

    /// Puts it to work. Must be called in a runtime.
    pub(crate) fn put_on(&self, scene: &Scene) -> Result<Worker<'_>, ConformanceError> {
        let parent = if let Start::Continued(parent) = &scene.start { Some(parent.clone()) } else { None };
        let recipe = Arc::new(Recipe {
            plugin: self.subject.manifest.name.clone(),
            version: self.subject.manifest.version.to_string(),
            loaded: Arc::clone(&self.loaded),
            config: scene.config.clone(),
            session: SessionInfo {
                id: SESSION.to_owned(),
                parent,
                platform: "cli".to_owned(),
                purpose: "primary".to_owned(),
                profile: "default".to_owned(),
                workspace: Some("/workspace".to_owned()),
                model: model(),
            },
            start: scene.start.clone(),
            services: self.services(scene)?,
            limits: scene.limits,
            tally: Arc::default(),
            lanes: Lanes::new(&scene.limits, &SessionCalls::new()),
        });
        Ok(Worker { stand: self, instance: Instance::new(Arc::clone(&recipe)), recipe })
    }

    fn services(&self, scene: &Scene) -> Result<Services, ConformanceError> {
        let permissions = &self.subject.manifest.permissions;
        let granted = scene.rights != Rights::Denied;
        // Who is selected as engine or provider has these two in any case.
        let selected = self.exports.context_engine || self.exports.memory_provider;
        let mut roots = Vec::new();
        for asked in permissions.files.iter().filter(|_| granted) {
            let path = self.folders.of(&asked.root);
            let root = Root::open(&asked.root, path, asked.access == Access::Write, Vec::new());
            roots.push(root.map_err(|error| ConformanceError::Surroundings(error.to_string()))?);
        }
        Ok(Services {
            reporter: Arc::new(NoSession),
            clock: Arc::new(Frozen),
            models: Arc::new(Scripted { away: scene.rights == Rights::ModelAway }),
            may_ask: granted && (permissions.llm.is_some() || selected),
            history: scene.history.clone(),
            may_read: granted && (permissions.history || selected),
            documents: if granted { vec![Arc::clone(&scene.kept.documents)] } else { Vec::new() },
            files: Arc::new(Roots::new(roots)),
            database: (granted && permissions.sql).then(|| Arc::clone(&scene.kept.database)),
            // A plugin under test reaches nobody: the web and programs answer as if they were not granted.
            http: Arc::new(Http::closed()),
            programs: None,
        })
    }

    fn noted(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.notes.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every function that was called, by name.
    pub(crate) fn calls(&self) -> Vec<Calls> {
        let noted = self.noted();
        let calls = noted.micros.iter().map(|(call, micros)| {
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

    /// Calls that ran into a limit of time or memory, in words.
    pub(crate) fn overruns(&self) -> Vec<String> {
        self.noted().overruns.clone()
    }
}

/// One plugin in one session.
pub(crate) struct Worker<'s> {
    stand: &'s Stand<'s>,
    pub(crate) instance: Instance,
    recipe: Arc<Recipe>,
}

impl Worker<'_> {
    /// Notes a call and says what became of it.
    pub(crate) async fn ask<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, Ill> {
        let begun = Instant::now();
        let answer = call.await;
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut noted = self.stand.noted();
        noted.micros.entry(name).or_default().push(micros);
        answer.map_err(|error| match error.cause {
            Cause::Fault(fault) | Cause::Start(fault) => Ill::Answered(*fault),
            cause => {
                let why = format!("`{name}`: {cause}");
                // What it was allowed less than usual does not count against it.
                let usual = Limits::standard();
                let ran_over = match cause {
                    Cause::Deadline { .. } => true,
                    Cause::Limit { limit, value } => value == usual.get(limit),
                    _ => false,
                };
                if ran_over {
                    noted.overruns.push(why.clone());
                }
                Ill::Died(why)
            }
        })
    }

    /// The cheapest question of each kind, which also makes the instance.
    pub(crate) async fn wake(&self) -> Result<(), Ill> {
        let (instance, exports) = (&self.instance, self.stand.exports);
        if exports.context_engine {
            self.ask("status", instance.status()).await.map(drop)?;
        }
        if exports.tools {
            self.ask("catalog", instance.catalog()).await.map(drop)?;
        }
        if exports.hooks {
            self.ask("interests", instance.interests()).await.map(drop)?;
        }
        if exports.memory_provider {
            self.ask("system-prompt", instance.system_prompt()).await.map(drop)?;
        }
        if exports.skills {
            self.ask("index", instance.skills()).await.map(drop)?;
        }
        Ok(())
    }

    /// Runs a tool, in an instance that nobody else has meanwhile, as the host does.
    pub(crate) async fn call_tool(&self, name: &str, arguments: &str) -> Result<Output, Ill> {
        let invocation = Invocation {
            id: "call-1".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            extra: Vec::new(),
        };
        self.ask("call", self.recipe.call_tool(invocation)).await
    }
}

/// Passes over errors that were answered: only a crash is one here.
pub(crate) fn alive<T>(answer: Result<T, Ill>) -> Result<Option<T>, Ill> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Ill::Answered(_)) => Ok(None),
        Err(died) => Err(died),
    }
}
