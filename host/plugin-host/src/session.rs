//! The plugins of a session: selected once, started for each session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hermes_diagnostic::Notice;
use hermes_runtime::{Exports, Limit, Runtime};

use crate::catalog::Catalog;
use crate::change::{Change, ChangeKind};
use crate::chosen::{Chosen, Compiling};
use crate::component::Role;
use crate::embedding::SelectedEmbedder;
use crate::error::PluginsError;
use crate::fingerprint::Fingerprint;
use crate::generations::Slot;
use crate::identity::Identity;
use crate::kinds::{
    ContextAssist, ContextEngine, Hooks, MemoryEvents, MemoryMirror, MemoryPrefetch, MemoryProvider, MemoryRewind,
    MemoryUpkeep, Skills, ToolPreview, Tools,
};
use crate::permission::Permissions;
use crate::reload::Generations;
use crate::selected::{Selected, SessionShared};
use crate::selection::Selection;
use crate::settings::OnFailure;
use crate::supervision::Halt;
use crate::surroundings::Surroundings;
use crate::watch::Subscription;
use crate::web::ConnectionPool;

/// The plugins that a configuration selects: found, compiled and checked, but not running.
pub struct Plugins {
    pub(crate) selection: Arc<Selection>,
    pub(crate) chosen: Chosen,
    /// The state of the disk before the selection; none outside of a host.
    pub(crate) state: Option<Fingerprint>,
    connections: Arc<ConnectionPool>,
    pub(crate) subscription: Option<Subscription>,
}

/// The started plugins of a session. Dropping this ends them.
pub struct SessionPlugins {
    /// The context engine.
    pub engine: Arc<dyn ContextEngine>,
    /// The engine again, if it inserts folded passages.
    pub assist: Option<Arc<dyn ContextAssist>>,
    /// Memory providers, the built-in one first.
    pub memories: Vec<Arc<dyn MemoryProvider>>,
    /// How long a turn waits for the recall of a memory provider, by its name.
    pub recall_times: HashMap<String, Duration>,
    /// Memory providers that take part in compaction.
    pub memory_events: Vec<Arc<dyn MemoryEvents>>,
    /// The optional functions of memory providers.
    pub memory_extras: MemoryExtras,
    /// Plugins with tools. The first with a name provides the tool of that name.
    pub tools: Vec<Arc<dyn Tools>>,
    /// Plugins that say what a call of their tools would do.
    pub previews: Vec<Arc<dyn ToolPreview>>,
    /// Plugins with skills.
    pub skills: Vec<Arc<dyn Skills>>,
    /// Plugins with hooks.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// Says when the turn must end because of a plugin that failed for good.
    pub halt: Halt,
    /// All plugins, each replaceable by a newer version.
    pub generations: Generations,
    /// The engine and the memory providers.
    pub serving: Serving,
}

/// The engine and the memory providers of a session, to be started before its first turn.
#[derive(Default)]
pub struct Serving(Vec<(Arc<Selected>, Arc<Slot>)>);

impl Plugins {
    /// Resolves a selection for sessions outside of a [`PluginHost`](crate::PluginHost). A missing engine or memory provider
    /// is an error; any other unusable plugin is left out with a notice. `compiling` is called several times a second while a
    /// plugin is compiled.
    pub fn select(
        runtime: &Runtime,
        catalog: &Catalog,
        selection: &Selection,
        compiling: Compiling<'_>,
    ) -> Result<Self, PluginsError> {
        let chosen = Chosen::select(runtime, catalog, selection, compiling)?;
        Ok(Self::new(Arc::new(selection.clone()), chosen, None, Arc::default()))
    }

    pub(crate) fn new(
        selection: Arc<Selection>,
        chosen: Chosen,
        state: Option<Fingerprint>,
        connections: Arc<ConnectionPool>,
    ) -> Self {
        Self { selection, chosen, state, connections, subscription: None }
    }

    /// The changes since the last call. Waits for newer versions that are being built, but no longer than `patience`.
    pub async fn changes(&self, patience: Duration) -> Vec<Change> {
        match &self.subscription {
            Some(subscription) => subscription.changes(patience).await,
            None => Vec::new(),
        }
    }

    /// Applies all changes before a session begins. Returns lines for the user.
    pub async fn renew(&mut self, patience: Duration) -> Vec<Notice> {
        let changes = self.changes(patience).await;
        let mut lines = Vec::new();
        for change in changes {
            lines.extend(change.line());
            let selected = self.chosen.all_mut().find(|selected| selected.name() == change.name);
            match (change.kind, selected) {
                (ChangeKind::Ready(newer), Some(selected)) => *selected = newer,
                (ChangeKind::Ready(newer), None) => self.chosen.others.push(newer),
                (ChangeKind::Revoked(_), Some(selected)) => {
                    Arc::make_mut(selected).permissions = Permissions::default();
                }
                (ChangeKind::Revoked(_) | ChangeKind::Broken(_) | ChangeKind::Removed, _) => {}
            }
        }
        lines
    }

    /// Notices for the user: which plugins were left out, and why.
    pub fn notices(&self) -> &[Notice] {
        &self.chosen.notices
    }

    /// The names of all selected plugins, the engine first.
    pub fn names(&self) -> Vec<&str> {
        self.chosen.all().map(Selected::name).collect()
    }

    /// The identities of all selected plugins.
    pub fn identities(&self) -> impl Iterator<Item = Identity> {
        self.chosen.all().map(Selected::identity)
    }

    /// The plugins that can hear from strangers: what a manifest requests decides, not what the plugin says of its tools. A
    /// plugin that sends requests does, and one that starts programs, unless it is part of Hermes: what `terminal` returns comes
    /// from commands that the model chose and the user allowed.
    pub fn foreign_sources(&self) -> impl Iterator<Item = String> {
        let hears = |plugin: &&Selected| {
            let wanted = &plugin.found.manifest.permissions;
            !wanted.http.is_empty() || !(wanted.process.is_empty() || plugin.identity().is_bundled)
        };
        self.chosen.all().filter(hears).map(|plugin| plugin.name().to_owned())
    }

    /// The plugins that can read the conversation: the context engine, and those with the permission `history`.
    pub fn conversation_readers(&self) -> impl Iterator<Item = String> {
        let engine = self.chosen.engine.name();
        let reads = move |plugin: &&Selected| plugin.name() == engine || plugin.found.manifest.permissions.history;
        self.chosen.all().filter(reads).map(|plugin| plugin.name().to_owned())
    }

    /// Name and version of the context engine.
    pub fn engine_version(&self) -> String {
        format!("{}@{}", self.chosen.engine.name(), self.chosen.engine.found.manifest.version)
    }

    /// What to do when the engine fails for good, by the user's settings.
    pub fn on_engine_failure(&self) -> OnFailure {
        self.chosen.engine.settings.on_failure
    }

    /// Gives a session its own instances.
    pub fn start(&self, surroundings: &Surroundings) -> Result<SessionPlugins, PluginsError> {
        let embedder = SelectedEmbedder { name: self.selection.embedder.clone(), ..SelectedEmbedder::default() };
        let connections = Arc::clone(&self.connections);
        let shared = SessionShared { connections, embedder, ..SessionShared::default() };
        let engine = self.chosen.engine.start(surroundings, &shared, Role::Serves)?;
        let mut session = SessionPlugins {
            serving: Serving(vec![(Arc::clone(&self.chosen.engine), Arc::clone(&engine))]),
            engine: engine.clone(),
            assist: None,
            memories: Vec::new(),
            recall_times: HashMap::new(),
            memory_events: Vec::new(),
            memory_extras: MemoryExtras::default(),
            tools: Vec::new(),
            previews: Vec::new(),
            skills: Vec::new(),
            hooks: Vec::new(),
            halt: shared.halt.clone(),
            generations: Generations { slots: vec![engine.clone()], shared: shared.clone() },
        };
        let exports = self.chosen.engine.loaded.exports();
        if exports.context_assist {
            session.assist = Some(engine.clone());
        }
        session.add(engine, exports);
        for memory in &self.chosen.memories {
            let component = memory.start(surroundings, &shared, Role::Serves)?;
            let exports = memory.loaded.exports();
            session.memories.push(component.clone());
            session.serving.0.push((Arc::clone(memory), Arc::clone(&component)));
            let wait = memory.limits(&surroundings.limits).time(Limit::RecallTime);
            session.recall_times.insert(memory.name().to_owned(), wait);
            if exports.memory_events {
                session.memory_events.push(component.clone());
            }
            session.memory_extras.add(&component, exports);
            session.generations.slots.push(component.clone());
            session.add(component, exports);
        }
        for other in &self.chosen.others {
            let exports = other.loaded.exports();
            // An engine or a provider that was not selected as such offers no tools either.
            let tools = exports.tools && !exports.context_engine && !exports.memory_provider;
            let component = other.start(surroundings, &shared, Role::Beside)?;
            session.generations.slots.push(component.clone());
            session.add(component, Exports { tools, ..exports });
        }
        for skills in &self.chosen.skills {
            let component = skills.start(surroundings, &shared, Role::Beside)?;
            session.generations.slots.push(component.clone());
            session.skills.push(component);
        }
        session.generations.connect_embedder();
        Ok(session)
    }
}

/// The optional functions of a session's memory providers.
#[derive(Clone, Default)]
pub struct MemoryExtras {
    /// Those that recall ahead of the next message.
    pub prefetch: Vec<Arc<dyn MemoryPrefetch>>,
    /// Those that see what others write.
    pub mirror: Vec<Arc<dyn MemoryMirror>>,
    /// Those that learn about rewinds.
    pub rewind: Vec<Arc<dyn MemoryRewind>>,
    /// Those that care for their stores.
    pub upkeep: Vec<Arc<dyn MemoryUpkeep>>,
}

impl MemoryExtras {
    fn add(&mut self, component: &Arc<Slot>, exports: Exports) {
        if exports.memory_prefetch {
            self.prefetch.push(component.clone());
        }
        if exports.memory_mirror {
            self.mirror.push(component.clone());
        }
        if exports.memory_rewind {
            self.rewind.push(component.clone());
        }
        if exports.memory_upkeep {
            self.upkeep.push(component.clone());
        }
    }
}

impl SessionPlugins {
    /// How long a session waits for its engine and its memories to start.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Starts the engine, and the memory providers if the session has any. Without the engine or the memory that the user
    /// configured, a session would go on in another way than they want.
    ///
    /// # Errors
    ///
    /// When one of them refuses its configuration. Other failures are those of its later calls.
    pub async fn begin(&self) -> Result<(), PluginsError> {
        let mut begun = tokio::task::JoinSet::new();
        for (at, (selected, slot)) in self.serving.0.iter().enumerate() {
            let is_used = at == 0 || self.memories.iter().any(|memory| memory.name() == selected.name());
            if is_used {
                let (selected, component) = (Arc::clone(selected), slot.component());
                begun.spawn(async move { (at, component.begin().await.map_err(|why| selected.refused(&why))) });
            }
        }
        let mut refused = Vec::new();
        // A start that takes longer goes on, and the first call waits for it.
        let _ = tokio::time::timeout(Self::PATIENCE, async {
            while let Some(ended) = begun.join_next().await {
                if let Ok((at, Err(error))) = ended {
                    refused.push((at, error));
                }
            }
        })
        .await;
        begun.detach_all();
        match refused.into_iter().min_by_key(|(at, _)| *at) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn add(&mut self, component: Arc<Slot>, exports: Exports) {
        if exports.tools {
            self.tools.push(component.clone());
            if exports.tool_preview {
                self.previews.push(component.clone());
            }
        }
        if exports.skills {
            self.skills.push(component.clone());
        }
        if exports.hooks {
            self.hooks.push(component);
        }
    }
}
