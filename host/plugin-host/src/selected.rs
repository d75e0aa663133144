//! A selected plugin, and what it gets when a session starts it: limits, rights, documents, folders and programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_capabilities::approval::ChangeApproval;
use hermes_capabilities::documents::Documents;
use hermes_capabilities::files::{Root as OpenRoot, Roots};
use hermes_capabilities::http::SecretStore;
use hermes_capabilities::process::{Background, Folder, Places, ProgramGrant, Programs, Sandbox};
use hermes_capabilities::sql::{Database, Quota};
use hermes_runtime::{Lanes, Limit, LimitSet, Limits, Loaded, Recipe, Services, SessionCalls, Tally};

use crate::addresses::ClosedAddress;
use crate::catalog::{Found, Origin, SKILLS, generation};
use crate::component::{Role, SessionComponent};
use crate::embedding::SelectedEmbedder;
use crate::error::PluginsError;
use crate::generations::Slot;
use crate::identity::Identity;
use crate::permission::{Access, Permissions};
use crate::record::Recorder;
use crate::settings::PluginSettings;
use crate::storage::{Storage, document_quota};
use crate::supervision::{Halt, Supervisor};
use crate::surroundings::Surroundings;
use crate::variables::{Unexpanded, Variables};
use crate::web::ConnectionPool;
use crate::{allowance, web};

/// A plugin that was found, compiled and checked.
#[derive(Clone)]
pub(crate) struct Selected {
    pub(crate) found: Found,
    /// The permissions that it requests and was granted.
    pub(crate) permissions: Permissions,
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) config: String,
    pub(crate) variables: Variables,
    /// The variables in its section that were not replaced, and why.
    pub(crate) unexpanded: Vec<Unexpanded>,
    /// A line for each key of its section that its schema does not define.
    pub(crate) unknown_keys: Vec<String>,
    /// The addresses of its section that the user has not allowed.
    pub(crate) closed: Vec<ClosedAddress>,
    pub(crate) settings: PluginSettings,
    /// Keys of other sections whose values its section has.
    pub(crate) passed_on: Vec<String>,
    /// The folder of the plugin that takes the place of the user's skills.
    pub(crate) skills: Option<PathBuf>,
}

/// Hooks that do not run, because the manifest does not request the permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hooks of the plugin `{plugin}` do not run: its manifest does not request the permission `hooks`")]
pub struct IdleHooks {
    /// The plugin.
    pub plugin: String,
}

/// What the plugins of one session share.
#[derive(Clone, Default)]
pub(crate) struct SessionShared {
    pub(crate) halt: Halt,
    pub(crate) calls: SessionCalls,
    pub(crate) embedder: SelectedEmbedder,
    /// Shared by all sessions of the process.
    pub(crate) connections: Arc<ConnectionPool>,
    pub(crate) background: BackgroundPrograms,
}

/// The background programs of a session, by plugin. They outlive the plugins' instances and generations.
#[derive(Clone, Default)]
pub(crate) struct BackgroundPrograms(Arc<Mutex<HashMap<String, Background>>>);

impl BackgroundPrograms {
    fn of(&self, plugin: &str) -> Background {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_plugin = all.entry(plugin.to_owned()).or_default();
        if of_plugin.is_closed() {
            // The programs of a revoked grant have ended. A new grant begins without any.
            *of_plugin = of_plugin.successor();
        }
        of_plugin.clone()
    }
}

impl Selected {
    pub(crate) fn name(&self) -> &str {
        &self.found.manifest.name
    }

    /// Whether it has hooks that nobody can allow, because its manifest does not ask for them.
    pub(crate) fn idle_hooks(&self) -> Option<IdleHooks> {
        let is_idle = self.loaded.exports().hooks && !self.found.manifest.permissions.hooks && !self.found.may_hook();
        is_idle.then(|| IdleHooks { plugin: self.name().to_owned() })
    }

    /// See [`Found::generation`].
    pub(crate) fn generation(&self) -> [u8; 32] {
        generation(&self.found, &self.loaded.source())
    }

    pub(crate) fn identity(&self) -> Identity {
        let manifest = &self.found.manifest;
        Identity {
            name: manifest.name.clone(),
            version: manifest.version.to_string(),
            digest: blake3::Hash::from_bytes(self.loaded.source()).to_hex().to_string(),
            is_bundled: matches!(self.found.origin, Origin::Bundled),
        }
    }

    /// The error of a configuration that it refused when it was started.
    pub(crate) fn refused(&self, why: &str) -> PluginsError {
        let misfits = vec![hermes_conversation::one_line(why)];
        let variables = self.permissions.secrets.iter().map(|secret| secret.env.to_string());
        let unset = variables.filter(|name| self.variables.get(name).is_none_or(|value| value.is_empty())).collect();
        let passed_on = self.passed_on.clone();
        PluginsError::Configuration { name: self.name().to_owned(), misfits, passed_on, unset }
    }

    pub(crate) fn start(
        &self,
        around: &Surroundings,
        shared: &SessionShared,
        role: Role,
    ) -> Result<Arc<Slot>, PluginsError> {
        Ok(Arc::new(Slot::new(self.component(around, shared, role)?, self.loaded.exports(), role)))
    }

    /// Creates a generation of the plugin for a session. None of its code runs yet.
    pub(crate) fn component(
        &self,
        around: &Surroundings,
        shared: &SessionShared,
        role: Role,
    ) -> Result<SessionComponent, PluginsError> {
        let SessionShared { halt, calls, connections, background, embedder } = shared;
        let serves_the_session = role == Role::Serves;
        let manifest = &self.found.manifest;
        let permissions = &self.permissions;
        let limits = self.limits(&around.limits);
        let store = match &around.storage {
            Storage::Home => SecretStore::Folder(self.own(&around.home).join("secrets")),
            Storage::Memory(_) => SecretStore::in_memory(),
        };
        let http = connections.open(&self.identity(), permissions, &self.variables, &store);
        let services = Services {
            reporter: web::redacting((around.reporters)(&manifest.name), &http),
            clock: around.clock.clone(),
            random: around.random.clone(),
            models: allowance::Allowance::of(&around.models, &manifest.name, permissions.llm.as_ref()),
            // Selecting a plugin as engine or memory provider is consent to share the conversation with it.
            may_ask: permissions.llm.is_some() || serves_the_session,
            embeddings: embedder.for_plugin(&manifest.name, &around.embeddings),
            may_embed: permissions.embeddings || serves_the_session,
            history: around.history.clone(),
            may_read: permissions.history || serves_the_session,
            may_hook: permissions.hooks || self.found.may_hook(),
            documents: self.documents(around, &limits),
            files: Arc::new(self.roots(around)?),
            changes: ChangeApproval::new((around.approvals)(&self.identity())),
            // Selection alone does not give a database: a file that stays needs a permission.
            database: permissions.sql.then(|| match &around.storage {
                Storage::Home => {
                    let quota = Quota::standard().with_memory(limits.get(Limit::SqlMemory));
                    Database::at_with(self.own(&around.home).join("plugin.db"), quota)
                }
                Storage::Memory(memory) => memory.of(self.name(), &limits).1,
            }),
            http,
            programs: self.programs(around, background.of(&manifest.name)),
        };
        let version = manifest.version.to_string();
        let tally = Arc::<Tally>::default();
        let home = match around.storage {
            Storage::Home => Some(around.home.as_path()),
            Storage::Memory(_) => None,
        };
        let recorder =
            Recorder::new(home, &manifest.name, &around.session.id, Arc::clone(&tally), around.clock.clone());
        let supervisor = Supervisor::new(
            (&manifest.name, &version),
            self.settings.on_failure,
            services.reporter.clone(),
            recorder,
            halt.clone(),
        );
        let recipe = Recipe {
            plugin: manifest.name.clone(),
            version,
            loaded: self.loaded.clone(),
            config: self.config.clone(),
            session: around.session.clone(),
            start: around.start.clone(),
            services,
            limits,
            tally,
            lanes: Lanes::new(&limits, calls),
        };
        Ok(SessionComponent::new(recipe, supervisor))
    }

    /// Ends the background programs that this generation may no longer run.
    pub(crate) fn end_ungranted_programs(&self, shared: &SessionShared) {
        let is_granted = |program: &str| self.permissions.process.iter().any(|granted| granted.as_str() == program);
        shared.background.of(self.name()).keep(is_granted);
    }

    /// Its limits: set by the user, or else granted, or else the default for its kinds.
    pub(crate) fn limits(&self, of_every_plugin: &LimitSet) -> Limits {
        let tier = self.loaded.exports().tier();
        Limits::of(tier).with(of_every_plugin).with(&self.found.limits()).with(&self.settings.limits)
    }

    /// The folder of its own documents, and the user's memories if a bundled plugin requests them by name.
    fn documents(&self, around: &Surroundings, limits: &Limits) -> Vec<Arc<Documents>> {
        let home = &around.home;
        let asked = &self.permissions.documents;
        let mut documents = Vec::new();
        if self.found.origin == Origin::Bundled && !asked.is_empty() {
            documents.push(Arc::new(Documents::new(home.join("memories"), Some(asked.clone()))));
        }
        documents.push(match &around.storage {
            Storage::Home => Arc::new(Documents::within(self.own(home).join("documents"), document_quota(limits))),
            Storage::Memory(memory) => memory.of(self.name(), limits).0,
        });
        documents
    }

    /// The folder of its data.
    fn own(&self, home: &Path) -> PathBuf {
        home.join("data").join(self.name())
    }

    /// The programs that it may run. They run in the workspace, which every program can reach in any case, or in a granted
    /// folder.
    fn programs(&self, around: &Surroundings, background: Background) -> Option<Programs> {
        let permissions = &self.permissions;
        if permissions.process.is_empty() {
            return None;
        }
        let mut names: Vec<&str> = vec![WORKSPACE];
        names.extend(permissions.files.iter().map(|asked| asked.root.as_str()).filter(|name| *name != WORKSPACE));
        let folder = |name: &str| {
            let (path, denied) = place(name, around);
            Folder { name: name.to_owned(), path, denied }
        };
        let changeable =
            permissions.files.iter().filter(|asked| asked.access == Access::Write && asked.root != RESULTS);
        let mut writable: Vec<PathBuf> = changeable.map(|asked| place(&asked.root, around).0).collect();
        writable.push(around.workspace.clone());
        let sandbox = Sandbox {
            rules: around.sandbox.clone(),
            home: around.home.clone(),
            writable,
            // Skills bring scripts.
            readable: vec![around.home.join("skills")],
            guarded: Vec::new(),
            listed: Arc::clone(around.files.listed()),
        };
        let grant = ProgramGrant {
            programs: permissions.process.iter().map(ToString::to_string).collect(),
            variables: permissions.process_env.iter().map(ToString::to_string).collect(),
            folders: names.into_iter().map(folder).collect(),
            places: Places {
                // Other plugins of the session may have the rights to change these.
                changeable: vec![around.workspace.clone(), around.home.join("skills")],
                private: around.home.join("cache").join("programs"),
            },
            sandbox: Some(sandbox),
        };
        let programs = Programs::new(grant, (around.approvals)(&self.identity()), background);
        Some(programs.recording(around.files.changes().clone()))
    }

    fn roots(&self, around: &Surroundings) -> Result<Roots, PluginsError> {
        let mut roots = Vec::new();
        for asked in &self.permissions.files {
            let (path, denied) = match &self.skills {
                Some(own) => (own.clone(), Vec::new()),
                None => place(&asked.root, around),
            };
            if asked.root == SKILLS && self.skills.is_none() {
                // An empty folder shows the user where skills belong.
                let _ = std::fs::create_dir_all(&path);
            }
            if asked.root == RESULTS && hermes_private_files::create_folder(&path).is_err() {
                // Nothing can be kept in it either.
                continue;
            }
            let is_writable = asked.access == Access::Write && asked.root != RESULTS;
            let root = OpenRoot::open(&asked.root, &path, is_writable, denied).map_err(|error| {
                PluginsError::Folder { name: self.name().to_owned(), root: asked.root.clone(), why: error.to_string() }
            })?;
            roots.push(root);
        }
        Ok(Roots::new(roots, around.files.clone()))
    }
}

const WORKSPACE: &str = "workspace";
/// The root of the session's long results.
const RESULTS: &str = "results";

/// The folder with a folder for each session.
pub fn results_folder(home: &Path) -> PathBuf {
    home.join(RESULTS)
}

/// The folder where the host keeps the results of a session that are too long for the model.
pub fn session_results(home: &Path, session: &str) -> Option<PathBuf> {
    // Another id could lead out of the folder.
    let is_plain = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    (is_plain && !session.is_empty()).then(|| results_folder(home).join(session))
}

/// The folder of a root, and the folders below it that stay closed.
fn place(root: &str, around: &Surroundings) -> (PathBuf, Vec<PathBuf>) {
    match root {
        SKILLS => (around.home.join("skills"), Vec::new()),
        RESULTS => {
            let own = session_results(&around.home, &around.session.id);
            (own.unwrap_or_else(|| results_folder(&around.home).join("none")), Vec::new())
        }
        _ => (around.workspace.clone(), vec![around.home.clone()]),
    }
}
