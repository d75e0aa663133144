//! From what the user selected to what a session runs with.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_capabilities::documents::Documents;
use hermes_capabilities::files::{Root as OpenRoot, Roots};
use hermes_capabilities::process::{Folder, ProgramGrant, Programs};
use hermes_capabilities::sql::Database;
use hermes_diagnostic::{Action, Diagnose as _, Notice};
use hermes_runtime::services::{Approval, Clock, History, Models, Reporter};
use hermes_runtime::{
    Exports, Lanes, LimitSet, Limits, Loaded, Recipe, Runtime, Services, SessionCalls, SessionInfo, Start, Tally,
};

use crate::catalog::{Catalog, Found, Origin, made};
use crate::component::SessionComponent;
use crate::error::PluginsError;
use crate::generations::Slot;
use crate::kinds::{ContextAssist, ContextEngine, Hooks, MemoryEvents, MemoryProvider, Skills, Tools};
use crate::permission::{Access, Permissions};
use crate::record::Recorder;
use crate::reload::{Change, ChangeKind, Generations, ReloadSource, Watch};
use crate::settings::{OnFailure, PluginSettings};
use crate::storage::Storage;
use crate::supervision::{Halt, Supervisor};
use crate::variables::{Unexpanded, Variables};
use crate::{allowance, web};

/// What the user's configuration says about plugins.
#[derive(Debug, Clone)]
pub struct Selection {
    /// `context.engine`.
    pub engine: String,
    /// `memory.provider`, beside the built-in memory.
    pub memory: Option<String>,
    /// `plugins.enabled`, beside those that are on by default.
    pub enabled: Vec<String>,
    /// `plugins.disabled`: wins over everything but the engine and the provider selected by name.
    pub disabled: Vec<String>,
    /// `plugins.entries.<name>`: a JSON object for the plugin.
    pub entries: HashMap<String, serde_json::Value>,
    /// What `${NAME}` in an entry and what secrets stand for, as far as each plugin was granted them.
    pub variables: Variables,
    /// `plugins.settings.<name>`: what the host obeys for the plugin.
    pub settings: HashMap<String, PluginSettings>,
}

impl Selection {
    /// The engine when none is named.
    pub const ENGINE: &str = "compressor";
    /// The memory that is on by default.
    pub const MEMORY: &str = "builtin";
    /// Tools and skills that are on by default.
    pub const ON: &[&str] = &["files", "local"];

    /// An engine and nothing beside it.
    pub fn only(engine: &str) -> Self {
        let off = Self::ON.iter().copied().chain([Self::MEMORY]).filter(|name| *name != engine);
        Self {
            engine: engine.to_owned(),
            memory: None,
            enabled: Vec::new(),
            disabled: off.map(str::to_owned).collect(),
            entries: HashMap::new(),
            variables: Variables::none(),
            settings: HashMap::new(),
        }
    }

    /// All that a session is to have, present or not, in the order in which the name of a tool is taken. One that is
    /// selected twice is named twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let builtin = std::iter::once(Self::MEMORY).filter(|name| self.is_on(name));
        let others = Self::ON.iter().copied().chain(self.enabled.iter().map(String::as_str));
        std::iter::once(self.engine.as_str())
            .chain(builtin)
            .chain(self.memory.as_deref())
            .chain(others.filter(|name| self.is_on(name)))
    }

    /// Refuses what is not of the kind that it is selected for.
    pub(crate) fn fits(&self, selected: Selected) -> Result<Selected, PluginsError> {
        let (name, exports) = (selected.name(), selected.loaded.exports());
        let kind = if name == self.engine && !exports.context_engine {
            ENGINE_KIND
        } else if self.memory.as_deref() == Some(name) && !exports.memory_provider {
            MEMORY_KIND
        } else {
            return Ok(selected);
        };
        Err(PluginsError::NoLonger { kind, name: name.to_owned(), exports: exports.names() })
    }

    fn is_on(&self, name: &str) -> bool {
        !self.disabled.iter().any(|disabled| disabled == name)
    }
}

/// Makes what takes a plugin's log lines, by the plugin's name.
pub type Reporters = Box<dyn Fn(&str) -> Arc<dyn Reporter> + Send + Sync>;

/// A plugin as an approval names it: with other code it is another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Of its code, in hexadecimal digits.
    pub digest: String,
}

/// Makes what says whether a plugin may run a program.
pub type Approvals = Box<dyn Fn(&Identity) -> Arc<dyn Approval> + Send + Sync>;

/// Told of a plugin that is being compiled, and how long that takes so far; `Break` stops it.
pub type Compiling<'a> = &'a dyn Fn(&str, Duration) -> ControlFlow<()>;

/// Tells nobody and stops nothing.
pub const QUIETLY: Compiling<'static> = &|_, _| ControlFlow::Continue(());

/// What surrounds a session: what its plugins may be given, each by its manifest.
pub struct Surroundings {
    /// The session.
    pub session: SessionInfo,
    /// How it begins.
    pub start: Start,
    /// `$HERMES_HOME`.
    pub home: PathBuf,
    /// Where plugins keep what is theirs.
    pub storage: Storage,
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Limits that differ from the defaults for every plugin, where the user has set nothing for one.
    pub limits: LimitSet,
    /// The user's models.
    pub models: Arc<dyn Models>,
    /// The conversation.
    pub history: Arc<dyn History>,
    /// Makes what takes a plugin's log lines, by its name.
    pub reporters: Reporters,
    /// Makes what says whether a plugin may run a program.
    pub approvals: Approvals,
}

/// The plugins that a configuration selects: found, compiled and looked at, not yet running.
pub struct Plugins {
    engine: Selected,
    memories: Vec<Selected>,
    others: Vec<Selected>,
    notices: Vec<Notice>,
    watch: Option<Watch>,
}

/// A plugin that is found, compiled and looked at.
pub(crate) struct Selected {
    pub(crate) found: Found,
    /// What it asks for and was granted.
    permissions: Permissions,
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) config: String,
    variables: Variables,
    /// Why variables in its section stayed as they are.
    pub(crate) unexpanded: Vec<Unexpanded>,
    settings: PluginSettings,
}

/// What a plugin is to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The engine or a memory: who selects it hands it the conversation.
    Serves,
    /// Anything else.
    Beside,
}

/// What the plugins of one session have in common.
#[derive(Clone, Default)]
pub(crate) struct SessionShared {
    pub(crate) halt: Halt,
    pub(crate) calls: SessionCalls,
}

/// What a session runs with. Everything is dropped with it.
pub struct SessionPlugins {
    /// The context engine.
    pub engine: Arc<dyn ContextEngine>,
    /// The same, where it brings back what the view folds.
    pub assist: Option<Arc<dyn ContextAssist>>,
    /// Memory providers, the built-in one first.
    pub memories: Vec<Arc<dyn MemoryProvider>>,
    /// Those of them that want to be heard at a compaction.
    pub memory_events: Vec<Arc<dyn MemoryEvents>>,
    /// Everything that offers tools, in the order in which a name is taken.
    pub tools: Vec<Arc<dyn Tools>>,
    /// Everything that offers skills.
    pub skills: Vec<Arc<dyn Skills>>,
    /// Everything that watches.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// Says when the turn must end because of a plugin that failed for good.
    pub halt: Halt,
    /// All of them, as what each may give way to a newer one.
    pub generations: Generations,
}

const ENGINE_KIND: &str = "context engine";
const MEMORY_KIND: &str = "memory provider";

impl Plugins {
    /// Resolves a selection. An engine or a provider that is not there is an error; another plugin that
    /// cannot be used is left out with a notice. `compiling` is told of each plugin that has to be compiled first, several
    /// times a second, and how long that takes so far.
    pub fn select(
        runtime: &Runtime,
        catalog: &Catalog,
        selection: &Selection,
        compiling: Compiling<'_>,
    ) -> Result<Self, PluginsError> {
        let mut notices: Vec<Notice> = catalog.problems().iter().map(|problem| Notice::of(&problem.error)).collect();
        let select = Select { runtime, catalog, selection, compiling };
        let engine = select.named(&selection.engine, ENGINE_KIND, |exports| exports.context_engine)?;
        let mut memories = Vec::new();
        if selection.is_on(Selection::MEMORY) && selection.memory.as_deref() != Some(Selection::MEMORY) {
            memories.extend(select.optional(Selection::MEMORY, &mut notices));
        }
        if let Some(name) = &selection.memory {
            memories.push(select.named(name, MEMORY_KIND, |exports| exports.memory_provider)?);
        }
        let taken: Vec<&str> = std::iter::once(&engine).chain(&memories).map(Selected::name).collect();
        let mut names: Vec<&str> = Vec::new();
        for name in Selection::ON.iter().copied().chain(selection.enabled.iter().map(String::as_str)) {
            if selection.is_on(name) && !taken.contains(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
        let others: Vec<Selected> = names.into_iter().filter_map(|name| select.optional(name, &mut notices)).collect();
        let mut plugins = Self { engine, memories, others, notices, watch: None };
        let unexpanded: Vec<Notice> = plugins.all().flat_map(|selected| &selected.unexpanded).map(Notice::of).collect();
        plugins.notices.extend(unexpanded);
        Ok(plugins)
    }

    fn all(&self) -> impl Iterator<Item = &Selected> {
        std::iter::once(&self.engine).chain(&self.memories).chain(&self.others)
    }

    /// From here on newer generations are looked for, until this is dropped. Must be called in a runtime.
    pub fn watch(&mut self, nursery: ReloadSource) -> Result<(), PluginsError> {
        let running: Vec<&Selected> = self.all().collect();
        self.watch = Some(Watch::start(nursery, &running)?);
        Ok(())
    }

    /// What has changed since this was asked last. What was noticed and is being built is waited for, but no longer than
    /// `patience`.
    pub async fn changes(&self, patience: Duration) -> Vec<Change> {
        match &self.watch {
            Some(watch) => watch.changes(patience).await,
            None => Vec::new(),
        }
    }

    /// Takes up what has changed before a session begins, whatever it changes; what is to be said of it.
    pub async fn renew(&mut self, patience: Duration) -> Vec<Notice> {
        let changes = self.changes(patience).await;
        let mut lines = Vec::new();
        for change in changes {
            lines.extend(change.line());
            let mut all = std::iter::once(&mut self.engine).chain(&mut self.memories).chain(&mut self.others);
            let selected = all.find(|selected| selected.name() == change.name);
            match (change.kind, selected) {
                (ChangeKind::Ready(newer), Some(selected)) => *selected = *newer,
                (ChangeKind::Ready(newer), None) => self.others.push(*newer),
                (ChangeKind::Revoked(_), Some(selected)) => selected.permissions = Permissions::default(),
                (ChangeKind::Revoked(_) | ChangeKind::Broken(_) | ChangeKind::Removed, _) => {}
            }
        }
        lines
    }

    /// What the user should know: plugins that were left out, and why.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Names of all that will run, the engine first.
    pub fn names(&self) -> Vec<&str> {
        self.all().map(Selected::name).collect()
    }

    /// All that will run, as approvals name them.
    pub fn identities(&self) -> impl Iterator<Item = Identity> {
        self.all().map(Selected::identity)
    }

    /// Name and version of the context engine.
    pub fn engine_version(&self) -> String {
        format!("{}@{}", self.engine.name(), self.engine.found.manifest.version)
    }

    /// What the user wants to come of an engine that fails for good.
    pub fn on_engine_failure(&self) -> OnFailure {
        self.engine.settings.on_failure
    }

    /// Gives a session its own instances.
    pub fn start(&self, surroundings: &Surroundings) -> Result<SessionPlugins, PluginsError> {
        let shared = SessionShared::default();
        let engine = self.engine.start(surroundings, &shared, Role::Serves)?;
        let mut session = SessionPlugins {
            engine: engine.clone(),
            assist: None,
            memories: Vec::new(),
            memory_events: Vec::new(),
            tools: Vec::new(),
            skills: Vec::new(),
            hooks: Vec::new(),
            halt: shared.halt.clone(),
            generations: Generations { slots: vec![engine.clone()], shared: shared.clone() },
        };
        let exports = self.engine.loaded.exports();
        if exports.context_assist {
            session.assist = Some(engine.clone());
        }
        session.add(engine, exports);
        for memory in &self.memories {
            let component = memory.start(surroundings, &shared, Role::Serves)?;
            let exports = memory.loaded.exports();
            session.memories.push(component.clone());
            if exports.memory_events {
                session.memory_events.push(component.clone());
            }
            session.generations.slots.push(component.clone());
            session.add(component, exports);
        }
        for other in &self.others {
            let exports = other.loaded.exports();
            // An engine or a provider that is not the selected one does not offer its tools either.
            let tools = exports.tools && !exports.context_engine && !exports.memory_provider;
            let component = other.start(surroundings, &shared, Role::Beside)?;
            session.generations.slots.push(component.clone());
            session.add(component, Exports { tools, ..exports });
        }
        Ok(session)
    }
}

impl SessionPlugins {
    fn add(&mut self, component: Arc<Slot>, exports: Exports) {
        if exports.tools {
            self.tools.push(component.clone());
        }
        if exports.skills {
            self.skills.push(component.clone());
        }
        if exports.hooks {
            self.hooks.push(component);
        }
    }
}

pub(crate) struct Select<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) catalog: &'a Catalog,
    pub(crate) selection: &'a Selection,
    pub(crate) compiling: Compiling<'a>,
}

impl Select<'_> {
    fn named(&self, name: &str, kind: &'static str, is: fn(&Exports) -> bool) -> Result<Selected, PluginsError> {
        let folder = self.catalog.folder().to_owned();
        let Some(found) = self.catalog.get(name) else {
            // A folder of that name that could not be read is the likelier cause.
            if let Some(problem) = self.catalog.problem_with(name) {
                return Err(PluginsError::Unusable {
                    name: name.to_owned(),
                    problem: Box::new(problem.error.diagnose()),
                });
            }
            return Err(PluginsError::Missing { kind, name: name.to_owned(), found: self.of_kind(is), folder });
        };
        let selected = self.load(found)?;
        let exports = selected.loaded.exports();
        if is(&exports) {
            return Ok(selected);
        }
        let exports = exports.names();
        Err(PluginsError::OtherKind { kind, name: name.to_owned(), exports, found: self.of_kind(is), folder })
    }

    fn optional(&self, name: &str, notices: &mut Vec<Notice>) -> Option<Selected> {
        let Some(found) = self.catalog.get(name) else {
            if self.catalog.problem_with(name).is_some() {
                // It was told with the others.
                return None;
            }
            let all: Vec<&str> = self.catalog.all().iter().map(|found| found.manifest.name.as_str()).collect();
            notices.push(Notice::new(
                format!(
                    "the configuration enables the plugin `{name}`, which does not exist; there are: {}",
                    all.join(", ")
                ),
                Action::InstallPlugin,
            ));
            return None;
        };
        self.load(found)
            .map_err(|error| notices.push(Notice::new(format!("{error}, so it is left out"), error.parts().2)))
            .ok()
    }

    pub(crate) fn load(&self, found: &Found) -> Result<Selected, PluginsError> {
        let name = &found.manifest.name;
        let loaded = found.load(self.runtime, &|elapsed| (self.compiling)(name, elapsed))?;
        let claims = found.manifest.claims_beyond(&loaded.exports().names());
        if !claims.is_empty() {
            return Err(PluginsError::Claims { name: name.clone(), claims });
        }
        let (variables, permissions) = (self.selection.variables.clone(), found.permissions());
        let (config, unexpanded) = match self.selection.entries.get(name) {
            Some(section) => variables.expand(name, &permissions, section),
            None => (serde_json::json!({}), Vec::new()),
        };
        let misfits = found.manifest.misfits(&config);
        if !misfits.is_empty() {
            return Err(PluginsError::Configuration { name: name.clone(), misfits });
        }
        let (found, config) = (found.clone(), config.to_string());
        let settings = self.selection.settings.get(name).cloned().unwrap_or_default();
        Ok(Selected { found, permissions, loaded, config, variables, unexpanded, settings })
    }

    /// Names of the plugins of a kind, for the message of an error: only then is everything loaded.
    fn of_kind(&self, is: fn(&Exports) -> bool) -> Vec<String> {
        let quietly = |_| ControlFlow::Continue(());
        let loads = |found: &&Found| found.load(self.runtime, &quietly).is_ok_and(|loaded| is(&loaded.exports()));
        self.catalog
            .all()
            .iter()
            .filter(loads)
            .map(|found| format!("{} ({})", found.manifest.name, found.origin))
            .collect()
    }
}

impl Selected {
    pub(crate) fn name(&self) -> &str {
        &self.found.manifest.name
    }

    /// As [`Found::made`].
    pub(crate) fn made(&self) -> [u8; 32] {
        made(&self.found, &self.loaded.source())
    }

    pub(crate) fn identity(&self) -> Identity {
        let manifest = &self.found.manifest;
        Identity {
            name: manifest.name.clone(),
            version: manifest.version.to_string(),
            digest: blake3::Hash::from_bytes(self.loaded.source()).to_hex().to_string(),
        }
    }

    fn start(&self, around: &Surroundings, shared: &SessionShared, role: Role) -> Result<Arc<Slot>, PluginsError> {
        Ok(Arc::new(Slot::new(self.component(around, shared, role)?, self.loaded.exports(), role)))
    }

    /// A generation of it in a session; nothing of it runs yet.
    pub(crate) fn component(
        &self,
        around: &Surroundings,
        shared: &SessionShared,
        role: Role,
    ) -> Result<SessionComponent, PluginsError> {
        let SessionShared { halt, calls } = shared;
        let serves_the_session = role == Role::Serves;
        let manifest = &self.found.manifest;
        let permissions = &self.permissions;
        let http = web::open(&manifest.name, permissions, &self.variables);
        let services = Services {
            reporter: web::discreet((around.reporters)(&manifest.name), &http),
            clock: around.clock.clone(),
            models: allowance::Allowance::of(around.models.clone(), &manifest.name, permissions.llm.as_ref()),
            // Who selects a plugin as engine or provider hands it the conversation: that is what the kind is.
            may_ask: permissions.llm.is_some() || serves_the_session,
            history: around.history.clone(),
            may_read: permissions.history || serves_the_session,
            documents: self.documents(around),
            files: Arc::new(self.roots(around)?),
            // Being selected gives no right to it: a file that stays is to be asked for.
            database: permissions.sql.then(|| match &around.storage {
                Storage::Home => Database::at(self.own(&around.home).join("plugin.db")),
                Storage::Memory(memory) => memory.of(self.name()).1,
            }),
            http,
            programs: self.programs(around),
        };
        let version = manifest.version.to_string();
        let (limits, tally) = (self.limits(&around.limits), Arc::<Tally>::default());
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

    /// What the user set, else what was granted, else the default for what it is.
    pub(crate) fn limits(&self, of_every_plugin: &LimitSet) -> Limits {
        let tier = self.loaded.exports().tier();
        Limits::of(tier).with(of_every_plugin).with(&self.found.limits()).with(&self.settings.limits)
    }

    /// The user's memories, for a bundled plugin that asks for them by name; and a folder of its own.
    fn documents(&self, around: &Surroundings) -> Vec<Arc<Documents>> {
        let home = &around.home;
        let asked = &self.permissions.documents;
        let mut documents = Vec::new();
        if self.found.origin == Origin::Bundled && !asked.is_empty() {
            documents.push(Arc::new(Documents::new(home.join("memories"), Some(asked.clone()))));
        }
        documents.push(match &around.storage {
            Storage::Home => Arc::new(Documents::new(self.own(home).join("documents"), None)),
            Storage::Memory(memory) => memory.of(self.name()).0,
        });
        documents
    }

    /// The folder of what it keeps.
    fn own(&self, home: &Path) -> PathBuf {
        home.join("data").join(self.name())
    }

    /// Programs run in the workspace, which whoever runs them can reach in any case, and in the folders that it was
    /// granted.
    fn programs(&self, around: &Surroundings) -> Option<Programs> {
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
        let grant = ProgramGrant {
            programs: permissions.process.iter().map(ToString::to_string).collect(),
            variables: permissions.env.iter().map(ToString::to_string).collect(),
            folders: names.into_iter().map(folder).collect(),
        };
        Some(Programs::new(grant, (around.approvals)(&self.identity())))
    }

    fn roots(&self, around: &Surroundings) -> Result<Roots, PluginsError> {
        let mut roots = Vec::new();
        for asked in &self.permissions.files {
            let (path, denied) = place(&asked.root, around);
            if asked.root == "skills" {
                // The user's to fill; an empty folder says where.
                let _ = std::fs::create_dir_all(&path);
            }
            let root = OpenRoot::open(&asked.root, &path, asked.access == Access::Write, denied).map_err(|error| {
                PluginsError::Folder { name: self.name().to_owned(), root: asked.root.clone(), why: error.to_string() }
            })?;
            roots.push(root);
        }
        Ok(Roots::new(roots))
    }
}

const WORKSPACE: &str = "workspace";

/// Where a root lies, and what below it is closed.
fn place(root: &str, around: &Surroundings) -> (PathBuf, Vec<PathBuf>) {
    match root {
        "skills" => (around.home.join("skills"), Vec::new()),
        _ => (around.workspace.clone(), vec![around.home.clone()]),
    }
}
