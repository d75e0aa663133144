//! The running plugins of a session, and the services that the host offers them.

use std::sync::Arc;

use hermes_diagnostic::{Diagnose as _, Notice};
use hermes_plugin_host::services::{History, Models, SystemRandom};
use hermes_plugin_host::{
    ContextAssist, ContextEngine, Generations, Halt, Hooks, LimitSet, MemoryEvents, MemoryExtras, MemoryProvider,
    MemoryUpkeep, Outlook, SessionInfo, SessionPlugins, Start, Storage, Surroundings,
};
use hermes_prompt::files::repository;
use hermes_session_store::{ParentKind, Session};

use crate::approval::{Gate, PluginGate};
use crate::auxiliary::{Auxiliary, AuxiliaryLedger};
use crate::breaker::{Breakers, UnlessOpen};
use crate::clash::Owners;
use crate::delegation::Delegate;
use crate::delivery::{Deliverer, Deliveries, backlog};
use crate::error::AgentError;
use crate::front::Front;
use crate::hook_dispatcher::HookDispatcher;
use crate::host::Host;
use crate::mcp::{self, McpServers};
use crate::memory;
use crate::memory_extras::{Mirrors, Prefetches};
use crate::project_files::ProjectFiles;
use crate::recall::Recalls;
use crate::report::NoticeSender;
use crate::session_search::{Assistant, SessionSearch};
use crate::shelf;
use crate::shell_hooks::{self, SHELL_HOOKS};
use crate::skills::SkillCatalog;
use crate::skills::manage::SkillManager;
use crate::toolbox::{OwnTools, Sources, Toolbox};

/// The running plugins of a session.
pub(crate) struct RunningPlugins {
    pub(crate) engine: Arc<dyn ContextEngine>,
    /// The engine's name and version.
    pub(crate) engine_version: String,
    pub(crate) assist: Option<Arc<dyn ContextAssist>>,
    pub(crate) memories: Vec<Arc<dyn MemoryProvider>>,
    pub(crate) memory_events: Vec<Arc<dyn MemoryEvents>>,
    pub(crate) toolbox: Toolbox,
    pub(crate) dispatcher: Arc<HookDispatcher>,
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    pub(crate) generations: Generations,
    pub(crate) gate: Arc<Gate>,
    pub(crate) notices: NoticeSender,
    /// Set when a suspended plugin must end the turn.
    pub(crate) halt: Halt,
    /// The recalls of memory providers, also those that came late.
    pub(crate) recalls: Recalls,
    /// The turns on their way to memory providers.
    pub(crate) deliveries: Deliveries,
    /// Writes of memory providers on their way to others.
    pub(crate) mirrors: Arc<Mirrors>,
    /// The providers that care for their stores while the session is idle.
    pub(crate) upkeep: Vec<Arc<dyn MemoryUpkeep>>,
    /// The project's files, as they were before programs of others were started.
    pub(crate) project: ProjectFiles,
    /// The instructions of MCP servers for the prompt.
    pub(crate) instructions: Vec<(String, String)>,
}

impl RunningPlugins {
    pub(crate) async fn start(
        host: &Host,
        session: &Session,
        fresh: bool,
        history: Arc<dyn History>,
        front: &Front,
        servers: &McpServers,
    ) -> Result<Self, AgentError> {
        let notices = NoticeSender::new(&host.home, session.id.as_str(), front.feed.clone());
        let changes = front.checkpoints.open(&host.home, host.settings.checkpoints, session, &notices);
        let seen = Arc::clone(&front.seen);
        let answers = (front.questions.clone(), front.rights.clone(), seen, changes, front.mode.clone());
        let gate = Arc::new(Gate::new(
            &host.approvals,
            Arc::clone(&host.documents),
            host.plugins.identities(),
            notices.clone(),
            &session.workspace,
            answers,
        ));
        let mut plugins =
            host.plugins.start(&surroundings(host, session, fresh, Arc::clone(&history), &notices, &gate))?;
        let is_delegate = is_delegate(session);
        let mut without = Vec::new();
        if is_delegate {
            // Memories are about the user, and the user does not speak in a subagent's session.
            without = std::mem::take(&mut plugins.memories).iter().map(|memory| memory.name().to_owned()).collect();
            plugins.memory_events.clear();
            plugins.memory_extras = MemoryExtras::default();
        }
        plugins.begin().await?;
        let SessionPlugins {
            engine,
            assist,
            memories,
            recall_times,
            memory_events,
            memory_extras: MemoryExtras { prefetch, mirror, rewind, upkeep },
            tools,
            previews,
            skills,
            mut hooks,
            generations,
            halt,
            ..
        } = plugins;
        let shell_hooks = &host.settings.shell_hooks;
        if !shell_hooks.is_empty() && !hooks.iter().any(|hook| hook.name() == SHELL_HOOKS) {
            gate.renew([shell_hooks::identity(shell_hooks)]);
        }
        hooks.extend(shell_hooks::of_session(
            shell_hooks,
            session.id.as_str(),
            &session.workspace,
            &host.home,
            &notices,
        ));
        let (dispatcher, failed_hooks) = HookDispatcher::subscribe(&hooks).await;
        let dispatcher = Arc::new(dispatcher);
        let bundled = host.plugins.identities().into_iter().filter(|plugin| plugin.is_bundled);
        let owners =
            Owners { chosen: host.settings.tool_owners.clone(), bundled: bundled.map(|plugin| plugin.name).collect() };
        let reporter = notices.clone();
        let settings = host.settings.session_search;
        let search = settings.enabled.then(|| {
            let notify = Arc::new(move |notice: Notice| reporter.notice(notice));
            let search =
                SessionSearch::new(Arc::clone(&host.store), Some(session.id.clone()), host.settings.clock, notify);
            if !settings.summaries && !settings.expansion {
                return search;
            }
            search.with_assistant(Assistant {
                models: models(host, &notices, session),
                summaries: settings.summaries,
                expansion: settings.expansion,
                patience: Assistant::PATIENCE,
            })
        });
        let skills = SkillCatalog::new(skills, host.settings.skills.clone());
        let own = OwnTools {
            // The user did not ask a subagent for a skill.
            manager: if is_delegate { None } else { SkillManager::of(&host.home, &skills) },
            skills,
            search,
            delegate: Delegate::of(host, session, front).await?,
            clarifies: !is_delegate,
            limits: front.limits.clone(),
            without,
        };
        let providers: Vec<String> = memories.iter().map(|memory| memory.name().to_owned()).collect();
        let foreign = host.plugins.foreign_sources().into_iter().chain(providers.iter().cloned()).collect();
        let (id, clock) = (session.id.to_string(), host.settings.clock);
        let mirrors = Arc::new(Mirrors::start(id, clock, providers, mirror, notices.clone()));
        let offers = servers.offers(mcp::patience(session.frozen.is_some())).await;
        gate.renew(offers.identities);
        gate.cover(offers.covered);
        servers.ask_through(&gate);
        servers.sample_with(&models(host, &notices, session));
        let sources = Sources {
            plugins: &tools,
            servers: &offers.tools,
            previews,
            foreign,
            readers: host.plugins.conversation_readers().into_iter().collect(),
        };
        let (mut toolbox, left_out) =
            Toolbox::load(sources, &owners, own, Arc::clone(&dispatcher), Arc::clone(&gate), Arc::clone(&mirrors))
                .await;
        let shelf = match &session.frozen {
            Some(frozen) => shelf::choice::beside(host, &frozen.tools, &toolbox.schemas()),
            None => shelf::choice::chosen(host, &session.workspace, &toolbox).await,
        };
        toolbox.set_shelf(shelf);
        let asking = hooks.iter().map(|hook| hook.name().to_owned());
        if let Some(unknown) = host.approvals.rules.unknown_tool(toolbox.catalogs(), asking) {
            return Err(unknown.into());
        }
        // A subagent has only some of the tools.
        if !is_delegate {
            let tools = toolbox.every_tool();
            let useless = shell_hooks.iter().filter_map(|hook| hook.useless_matcher(&tools));
            useless.for_each(|error| notices.notice(Notice::new(error.to_string(), error.parts().2)));
        }
        offers.notices.into_iter().for_each(|notice| notices.notice(notice));
        for notice in failed_hooks.into_iter().chain(left_out) {
            notices.notice(notice);
        }
        let engine_version = host.plugins.engine_version();
        // After a single turn nothing is recalled for a next one.
        let breakers = Breakers::load(host.store.as_ref(), memories.iter().map(|memory| memory.name())).await;
        let prefetches = Prefetches::new(if host.settings.one_shot { Vec::new() } else { prefetch }, breakers.clone());
        if fresh {
            for memory in &memories {
                let outlook = first_outlook(memory::budget(host.model.context_length));
                prefetches.start(memory.name(), outlook, clock.now());
            }
        }
        let deliverer = Deliverer {
            store: Arc::clone(&host.store),
            session: session.id.clone(),
            history,
            clock: host.settings.clock,
            random: Arc::new(SystemRandom),
            notices: notices.clone(),
            prefetches: prefetches.clone(),
            budget: memory::budget(host.model.context_length),
        };
        let deliveries = Deliveries::new(deliverer, memories.clone(), rewind);
        let unless_open = |memory| Arc::new(UnlessOpen::new(memory, breakers.clone(), clock)) as Arc<dyn MemoryEvents>;
        let memory_events = memory_events.into_iter().map(unless_open).collect();
        Ok(Self {
            engine,
            engine_version,
            assist,
            memories,
            memory_events,
            toolbox,
            dispatcher,
            hooks,
            generations,
            gate,
            notices,
            halt,
            recalls: Recalls::new(recall_times, prefetches, breakers),
            deliveries,
            mirrors,
            upkeep,
            project: front.project.clone(),
            instructions: offers.instructions,
        })
    }
}

impl RunningPlugins {
    /// Delivers what waits for the memory providers, of this session and of earlier ones. A session works without it.
    pub(crate) async fn deliver(&mut self, host: &Host, session: &Session) {
        let start = |other: &Session, history| {
            let started = host.plugins.start(&surroundings(host, other, false, history, &self.notices, &self.gate));
            started.map_or_else(
                |error| {
                    tracing::warn!(%error, session = %other.id, "no memory provider starts for this session");
                    Vec::new()
                },
                |plugins| plugins.memories,
            )
        };
        match backlog::open(&host.store, &session.id, &self.deliveries.providers(), start).await {
            Ok(waiting) => self.deliveries.deliver_others(waiting),
            Err(error) => tracing::warn!(%error, "the turns of earlier sessions cannot be delivered"),
        }
        self.deliveries.resume();
    }
}

/// What providers recall for ahead of the first message.
fn first_outlook(budget: u32) -> Outlook {
    Outlook { turn: 0, author: None, text: String::new(), budget, extra: Vec::new() }
}

/// Whether another session's agent works in this one.
pub(crate) fn is_delegate(session: &Session) -> bool {
    session.parent.as_ref().is_some_and(|parent| parent.kind == ParentKind::Delegate)
}

pub(crate) fn surroundings(
    host: &Host,
    session: &Session,
    fresh: bool,
    history: Arc<dyn History>,
    notices: &NoticeSender,
    gate: &Arc<Gate>,
) -> Surroundings {
    let parent = session.parent.as_ref();
    let is_delegate = is_delegate(session);
    let start = match parent {
        Some(parent) if fresh && !is_delegate => Start::Continued(parent.id.to_string()),
        _ if fresh => Start::Fresh,
        _ => Start::Resumed,
    };
    let (reporters, gate, files) = (notices.clone(), Arc::clone(gate), gate.files().clone());
    Surroundings {
        session: SessionInfo {
            id: session.id.to_string(),
            parent: parent.map(|parent| parent.id.to_string()),
            platform: host.settings.platform.clone(),
            purpose: if is_delegate { "subagent" } else { "primary" }.to_owned(),
            profile: "default".to_owned(),
            workspace: Some(session.workspace.display().to_string()),
            repository: repository(&session.workspace).map(|root| root.display().to_string()),
            model: host.model.clone(),
        },
        start,
        home: host.home.clone(),
        storage: Storage::Home,
        workspace: session.workspace.clone(),
        clock: Arc::new(host.settings.clock),
        random: Arc::new(SystemRandom),
        limits: LimitSet::default(),
        models: models(host, notices, session),
        embeddings: host.settings.embeddings.recorded_in(ledger(host, session)),
        history,
        reporters: Box::new(move |plugin| reporters.for_plugin(plugin)),
        approvals: Box::new(move |plugin| Arc::new(PluginGate { gate: Arc::clone(&gate), plugin: plugin.clone() })),
        files,
        sandbox: host.settings.sandbox.clone(),
    }
}

/// The user's models, for tasks beside the conversation.
fn models(host: &Host, notices: &NoticeSender, session: &Session) -> Arc<dyn Models> {
    let models = host.settings.auxiliary_models.clone();
    let models = Auxiliary::new(Arc::clone(&host.chain), models, notices.clone());
    Arc::new(models.recorded_in(ledger(host, session)))
}

/// The ledger's rows of a session's requests beside the conversation.
fn ledger(host: &Host, session: &Session) -> AuxiliaryLedger {
    let (store, session) = (Arc::clone(&host.store), session.id.clone());
    AuxiliaryLedger { store, session, clock: host.settings.clock, prices: host.settings.prices.clone() }
}
