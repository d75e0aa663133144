//! A session at work: its lease, its log, its plugins, and the prefix that all its requests share.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_conversation::{SessionId, closing};
use hermes_plugin_host::services::History;
use hermes_plugin_host::{
    ContextAssist, ContextEngine, Generations, Halt, Hooks, LimitSet, MemoryEvents, MemoryProvider, SessionInfo,
    SessionPlugins, Start, Storage, Surroundings,
};
use hermes_prompt::hints::SubdirectoryHints;
use hermes_store::{Frozen, Lease, ParentKind, Session};

use crate::approval::{Gate, PluginGate};
use crate::assist::Assistant;
use crate::auxiliary::Auxiliary;
use crate::clock::Clock;
use crate::compaction::{self, Compactor};
use crate::error::AgentError;
use crate::freezing;
use crate::host::Host;
use crate::journal::Journal;
use crate::outgoing::{Outgoing, Terms};
use crate::report::{self, Ear, Voice};
use crate::skills::SkillShelf;
use crate::toolbox::Toolbox;
use crate::watchers::Watchers;

/// The plugins of a session, started.
pub(crate) struct Plugged {
    pub(crate) engine: Arc<dyn ContextEngine>,
    /// Its name and version.
    pub(crate) engine_version: String,
    pub(crate) assist: Option<Arc<dyn ContextAssist>>,
    pub(crate) memories: Vec<Arc<dyn MemoryProvider>>,
    pub(crate) memory_events: Vec<Arc<dyn MemoryEvents>>,
    pub(crate) toolbox: Toolbox,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    pub(crate) generations: Generations,
    pub(crate) gate: Arc<Gate>,
    pub(crate) voice: Voice,
    /// Says when the turn must end because of a plugin that failed for good.
    pub(crate) halt: Halt,
}

pub(crate) struct Live {
    pub(crate) session: SessionId,
    pub(crate) workspace: PathBuf,
    pub(crate) journal: Journal,
    pub(crate) plugged: Plugged,
    pub(crate) compactor: Compactor,
    pub(crate) assistant: Assistant,
    /// How often the engine failed in a row.
    pub(crate) faults: u32,
    pub(crate) frozen: Frozen,
    /// What has changed since that was built, until it is told.
    pub(crate) drift: Option<String>,
    /// That another engine goes on with the conversation, until it is told.
    pub(crate) switched: Option<String>,
    pub(crate) outgoing: Outgoing,
    /// Estimate for system prompt and tools.
    pub(crate) fixed_tokens: u32,
    /// What the model is told of folders that it comes to; none where project files are not read.
    pub(crate) hints: Option<SubdirectoryHints>,
    pub(crate) ear: Ear,
    pub(crate) clock: Clock,
    pub(crate) syncing: Option<tokio::task::JoinHandle<()>>,
    _lease: Lease,
}

impl Plugged {
    pub(crate) async fn start(
        host: &Host,
        session: &Session,
        fresh: bool,
        history: Arc<dyn History>,
    ) -> Result<(Self, Ear), AgentError> {
        let (voice, ear) = report::channel(&host.home, session.id.as_str(), host.approvals.approver.clone());
        let gate = Arc::new(Gate::new(&host.approvals, &host.home, host.plugins.identities(), voice.clone()));
        let plugins = host.plugins.start(&surroundings(host, session, fresh, history, &voice, &gate))?;
        let SessionPlugins { engine, assist, memories, memory_events, tools, skills, hooks, generations, halt } =
            plugins;
        let (watchers, unwatched) = Watchers::gather(&hooks).await;
        let watchers = Arc::new(watchers);
        let (toolbox, notices) =
            Toolbox::fill(&tools, SkillShelf::new(skills), Arc::clone(&watchers), Arc::clone(&gate)).await;
        for notice in unwatched.into_iter().chain(notices) {
            voice.notice(notice);
        }
        let engine_version = host.plugins.engine_version();
        let plugged = Self {
            engine,
            engine_version,
            assist,
            memories,
            memory_events,
            toolbox,
            watchers,
            hooks,
            generations,
            gate,
            voice,
            halt,
        };
        Ok((plugged, ear))
    }
}

impl Live {
    /// Takes the session for this process and makes everything ready for a turn. A turn that was cut off is closed.
    pub(crate) async fn start(host: &Host, session: Session, fresh: bool) -> Result<Self, AgentError> {
        if !session.workspace.is_dir() {
            return Err(AgentError::Workspace { folder: session.workspace });
        }
        let clock = host.settings.clock;
        let lease = host.store.lease(&session.id)?;
        let journal = Journal::open(&host.store, &session)?;
        let closing = closing::close(&journal.conversation(), clock.now());
        journal.append(&closing)?;

        let (plugged, ear) = Plugged::start(host, &session, fresh, journal.history()).await?;
        let (frozen, drift) = freezing::thaw(host, &session, &plugged).await?;
        let terms = Terms {
            style: host.provider.style(),
            model: host.model.clone(),
            ephemeral: host.settings.ephemeral.clone(),
            ttl: host.settings.cache_ttl,
        };
        let outgoing = Outgoing::begin(&host.store, &session, terms, &frozen, &journal)?;
        if session.model != host.model {
            host.store.update_model(&session.id, &host.model)?;
        }
        let switched = (session.engine != host.engine).then(|| switched(&session.engine, &host.engine, &journal));
        if switched.is_some() {
            host.store.update_engine(&session.id, &host.engine)?;
        }
        let mut hints =
            if host.settings.prompt.context_files { SubdirectoryHints::new(&session.workspace, []).ok() } else { None };
        if let Some(hints) = &mut hints {
            journal.conversation().messages().iter().filter_map(|message| message.sent.as_deref()).for_each(|sent| {
                hints.learn(sent);
            });
        }
        Ok(Self {
            fixed_tokens: freezing::fixed_tokens(&frozen),
            compactor: compaction::begin(host, &plugged),
            assistant: Assistant::new(plugged.assist.clone(), compaction::notify(&plugged.voice)),
            faults: host.store.engine_faults(&session.id, &plugged.engine_version)?.map_or(0, |(faults, _)| faults),
            session: session.id,
            workspace: session.workspace,
            journal,
            plugged,
            frozen,
            drift,
            switched,
            outgoing,
            hints,
            ear,
            clock,
            syncing: None,
            _lease: lease,
        })
    }
}

/// What a person is told when an engine takes over the conversation of another one.
fn switched(before: &str, now: &str, journal: &Journal) -> String {
    let inherited = match journal.view().summaries().count() {
        0 => "it is shown the conversation as it stands".to_owned(),
        1 => "it takes over the view, with a summary and what that covers".to_owned(),
        count => format!("it takes over the view, with {count} summaries and what they cover"),
    };
    format!(
        "this conversation was held with the context engine `{before}`; `{now}` goes on from here: {inherited}; what tools \
         of its own it has come with the next system prompt, at the next compaction or by `hermes prompt --rebuild`"
    )
}

pub(crate) fn surroundings(
    host: &Host,
    session: &Session,
    fresh: bool,
    history: Arc<dyn History>,
    voice: &Voice,
    gate: &Arc<Gate>,
) -> Surroundings {
    let parent = session.parent.as_ref().filter(|parent| parent.kind != ParentKind::Delegate);
    let start = match parent {
        Some(parent) if fresh => Start::Continued(parent.id.to_string()),
        None if fresh => Start::Fresh,
        _ => Start::Resumed,
    };
    let (reporters, gate) = (voice.clone(), Arc::clone(gate));
    Surroundings {
        session: SessionInfo {
            id: session.id.to_string(),
            parent: parent.map(|parent| parent.id.to_string()),
            platform: host.settings.platform.clone(),
            purpose: "primary".to_owned(),
            profile: "default".to_owned(),
            workspace: Some(session.workspace.display().to_string()),
            model: host.model.clone(),
        },
        start,
        home: host.home.clone(),
        storage: Storage::Home,
        workspace: session.workspace.clone(),
        clock: Arc::new(host.settings.clock),
        limits: LimitSet::default(),
        models: Arc::new(Auxiliary::new(
            Arc::clone(&host.provider),
            host.model.clone(),
            host.settings.auxiliary_models.clone(),
            voice.clone(),
        )),
        history,
        reporters: Box::new(move |plugin| reporters.for_plugin(plugin)),
        approvals: Box::new(move |plugin| Arc::new(PluginGate { gate: Arc::clone(&gate), plugin: plugin.clone() })),
    }
}
