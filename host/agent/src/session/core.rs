//! The session that an actor owns, and the effect of each command.

use std::convert::Infallible;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::{MessageId, Model, SessionId};
use hermes_models::Effort;
use hermes_protocol::{
    CommandError, Compression, CompressionPreview, EventKind, OnConflict, Problem, Status, TurnEnd, Turns, Undo,
};
use hermes_session_store::{NewSession, Parent, ParentKind, Session, SessionError, StoreError};
use tokio_util::sync::CancellationToken;

use crate::compaction::LEAST_MESSAGES;
use crate::context::{Context, Working};
use crate::error::AgentError;
use crate::feed::About;
use crate::front::Front;
use crate::host::Host;
use crate::host_source::{Choice, HostSource};
use crate::imported::{self, AcceptedParts};
use crate::live::Live;
use crate::live::log::SessionLog;
use crate::mcp::McpServers;
use crate::offer::Offer;
use crate::offering::skills_of_new;
use crate::project_files::protect_imports;
use crate::session::Begin;
use crate::skills::SkillCommands;
use crate::turn::Said;
use crate::{delegation, delivery, freezing, kept_results, rebuild, reload, room, thinking, turn};

/// The outcome of a compaction before the first message.
const NOTHING_SAID: Compression = Compression::TooFew { messages: 0, least: LEAST_MESSAGES };

/// A session and its environment.
pub(super) struct Core {
    host: Host,
    source: Arc<dyn HostSource>,
    choice: Choice,
    workspace: PathBuf,
    /// What the user accepts of an imported session.
    accepted: AcceptedParts,
    front: Front,
    state: State,
    /// The session that this task stored, until it has a message.
    unsaid: Option<SessionId>,
    /// The MCP servers, while the session is not idle.
    servers: Option<McpServers>,
    /// The value from when the session was last awake.
    prompt_tokens: u32,
    /// The model and the effort that the last line to the user was about.
    told_effort: Option<(Model, Effort)>,
}

/// Which part of the session is in memory.
enum State {
    /// The session has no message yet, so nothing is stored.
    New,
    /// The log and the lease are in memory, without plugins and rendered messages.
    Idle(Box<SessionLog>),
    /// The session is ready for a turn.
    Awake(Box<Live>),
}

impl Core {
    pub(super) async fn begin(
        host: Host,
        (source, choice): (Arc<dyn HostSource>, Choice),
        begin: Begin,
        workspace: PathBuf,
        front: Front,
    ) -> Result<Self, AgentError> {
        let accepted = match &begin {
            Begin::Imported { accepted, .. } => *accepted,
            _ => AcceptedParts::default(),
        };
        let mut core = Self {
            host,
            source,
            choice,
            workspace,
            accepted,
            front,
            state: State::New,
            unsaid: None,
            servers: None,
            prompt_tokens: 0,
            told_effort: None,
        };
        match begin {
            // The servers connect while the user writes.
            Begin::New => core.connect(&core.workspace.clone()),
            Begin::Resume(id) | Begin::Imported { session: id, .. } => core.resume(&id).await?,
            Begin::Branch(id) => core.create(Some(Parent { id, kind: ParentKind::Branch, through: None })).await?,
        }
        Ok(core)
    }

    /// A new session whose agent works on a task of another session's agent.
    pub(super) async fn delegate(
        host: Host,
        chosen: (Arc<dyn HostSource>, Choice),
        parent: SessionId,
        workspace: PathBuf,
        front: Front,
    ) -> Result<Self, AgentError> {
        let mut core = Self::begin(host, chosen, Begin::New, workspace, front).await?;
        core.create(Some(Parent { id: parent, kind: ParentKind::Delegate, through: None })).await?;
        Ok(core)
    }

    async fn resume(&mut self, id: &SessionId) -> Result<(), AgentError> {
        let of_store = self.host.store.session(id).await?;
        let session = self.as_accepted(of_store.clone());
        let log = SessionLog::open(&self.host, &session).await?;
        let (store, now) = (self.host.store.as_ref(), self.host.settings.clock.now());
        let interrupted = delegation::settle(store, id, &self.front.tasks, now).await?;
        self.front.feed.set_session(id);
        self.state = State::Idle(Box::new(log));
        self.wake(false).await?;
        self.settle(&of_store, &session).await?;
        self.publish_opened();
        if interrupted > 0 {
            let tasks = if interrupted == 1 { "a task".to_owned() } else { format!("{interrupted} tasks") };
            self.front.feed.notice(format!(
                "{tasks} of subagents in the background ended with Hermes; the model learns it with your next message"
            ));
        }
        Ok(())
    }

    /// A stored session, without what the user did not accept of an imported one.
    fn as_accepted(&self, session: Session) -> Session {
        imported::as_accepted(session, self.accepted, &self.workspace)
    }

    /// Makes an imported session that is ready for a turn one of the user's own. Its prompt is already stored.
    async fn settle(&mut self, of_store: &Session, used: &Session) -> Result<(), AgentError> {
        if !of_store.imported {
            return Ok(());
        }
        self.host.store.settle_import(&used.id, &used.workspace).await?;
        if let Some(notice) = imported::notice(of_store, used, self.accepted) {
            self.front.feed.notice(notice);
        }
        Ok(())
    }

    async fn create(&mut self, parent: Option<Parent>) -> Result<(), AgentError> {
        let host = &self.host;
        let is_of_user = parent.is_none();
        let new = NewSession {
            source: host.settings.platform.clone(),
            workspace: self.workspace.clone(),
            engine: host.engine.clone(),
            model: host.model.clone(),
            title: None,
            frozen: None,
            started_at: host.settings.clock.now(),
            parent,
        };
        let of_store = host.store.create_session(new).await?;
        self.unsaid = is_of_user.then(|| of_store.id.clone());
        let session = self.as_accepted(of_store.clone());
        let log = SessionLog::open(host, &session).await?;
        self.front.feed.set_session(&session.id);
        self.state = State::Idle(Box::new(log));
        self.wake(true).await?;
        self.settle(&of_store, &session).await?;
        self.publish_opened();
        Ok(())
    }

    fn publish_opened(&self) {
        let Status { messages, .. } = self.status();
        let (model, engine) = (self.host.model.clone(), self.host.engine.clone());
        let protocol = hermes_protocol::VERSION.to_owned();
        self.front.feed.publish(EventKind::Opened { protocol, model, engine, messages });
    }

    /// Protects and reads the context files of a workspace, and starts to connect to the MCP servers, unless that has happened. Call it
    /// before hooks and programs of plugins start.
    fn connect(&mut self, workspace: &Path) {
        let limit = freezing::characters(&self.host);
        let Host { approvals, settings, .. } = &mut self.host;
        if settings.prompt.context_files {
            protect_imports(&mut approvals.listed, &mut settings.mcp, workspace);
        }
        self.front.project.read(&approvals.listed, &settings.mcp, workspace, limit);
        if self.servers.is_none() {
            self.servers = Some(McpServers::start(&self.host, workspace, &self.front.feed));
        }
    }

    /// Makes a stored session ready for a turn.
    async fn wake(&mut self, fresh: bool) -> Result<(), AgentError> {
        let State::Idle(log) = &self.state else { return Ok(()) };
        let session = self.as_accepted(self.host.store.session(&log.session).await?);
        self.connect(&session.workspace);
        let Some(servers) = &self.servers else { return Ok(()) };
        let State::Idle(log) = std::mem::replace(&mut self.state, State::New) else { return Ok(()) };
        match Live::wake(&self.host, session, *log, fresh, &self.front, servers).await {
            Ok(live) => self.state = State::Awake(Box::new(live)),
            Err((log, error)) => {
                self.state = State::Idle(log);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether the session is awake without background work of plugins, and not kept in the provider's cache.
    pub(super) fn can_idle(&mut self) -> bool {
        match &mut self.state {
            State::Awake(live) => !live.is_working() && !live.is_kept_warm(),
            State::New | State::Idle(_) => false,
        }
    }

    /// Keeps what the provider has cached of the session, until the future is dropped.
    pub(super) async fn keep_warm(&mut self) -> Infallible {
        match &mut self.state {
            State::Awake(live) => live.keep_warm(&self.host).await,
            State::New | State::Idle(_) => pending().await,
        }
    }

    /// Lets memory providers care for their stores, until the future is dropped.
    pub(super) async fn upkeep(&self) {
        if let State::Awake(live) = &self.state {
            live.upkeep(&self.host).await;
        }
    }

    /// Drops the plugin instances and the rendered messages, and ends the MCP servers. The next command that needs them creates
    /// them again.
    pub(super) async fn make_idle(&mut self, patience: Duration) {
        if let Some(servers) = self.servers.take() {
            servers.close().await;
        }
        self.prompt_tokens = self.status().prompt_tokens;
        self.state = match std::mem::replace(&mut self.state, State::New) {
            State::Awake(live) => {
                let log = live.retire(patience).await;
                kept_results::tidy(&self.host.home, &log.session);
                State::Idle(Box::new(log))
            }
            other => other,
        };
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        self.log().map(|log| &log.session)
    }

    fn log(&self) -> Option<&SessionLog> {
        match &self.state {
            State::New => None,
            State::Idle(log) => Some(log),
            State::Awake(live) => Some(&live.log),
        }
    }

    /// Makes the session ready for a turn, and stores a new session first.
    async fn ready(&mut self) -> Result<(), AgentError> {
        if let State::New = self.state {
            // An earlier attempt may have stored a session that could not be opened.
            self.discard_unsaid().await;
            let lines = self.host.plugins.renew(reload::PATIENCE).await;
            self.create(None).await?;
            lines.into_iter().for_each(|line| self.front.feed.notice(line));
        }
        self.wake(false).await
    }

    /// Runs a turn for a message of the user. After an error all messages so far are stored, and the next turn can follow.
    pub(super) async fn turn(&mut self, said: Said, stop: &CancellationToken) -> TurnEnd {
        let ready = self.ready().await;
        self.tell_shortfall();
        let end = match ready {
            Ok(()) => match &mut self.state {
                State::Awake(live) => turn::run(&self.host, live, said, stop).await,
                State::New | State::Idle(_) => Ok(TurnEnd::Interrupted),
            },
            Err(error) => Err(error),
        };
        if self.log().is_some_and(|log| log.journal.conversation().whole().is_some()) {
            self.unsaid = None;
        }
        end.unwrap_or_else(|error| TurnEnd::Failed { problem: Problem::from(&error) })
    }

    /// Deletes the session from the store if it never got a message: what was refused before anything was stored leaves nothing
    /// in the lists.
    async fn discard_unsaid(&mut self) {
        let Some(session) = self.unsaid.take() else { return };
        match self.host.store.discard(&session).await {
            Ok(true) => self.front.feed.forget_session(),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, %session, "a session without messages is not deleted"),
        }
    }

    /// Compacts the conversation on request of the user.
    pub(super) async fn compress(
        &mut self,
        focus: Option<&str>,
        stop: &CancellationToken,
    ) -> Result<Compression, Problem> {
        self.wake(false).await.map_err(|error| Problem::from(&error))?;
        match &mut self.state {
            State::Awake(live) => {
                room::compress(&self.host, live, focus, stop).await.map_err(|error| Problem::from(&error))
            }
            State::New | State::Idle(_) => Ok(NOTHING_SAID),
        }
    }

    /// What [`Core::compress`] would change, or why it would change nothing.
    pub(super) async fn preview(
        &mut self,
        focus: Option<&str>,
    ) -> Result<Result<CompressionPreview, Compression>, Problem> {
        self.wake(false).await.map_err(|error| Problem::from(&error))?;
        Ok(match &mut self.state {
            State::Awake(live) => room::preview(&self.host, live, focus).await,
            State::New | State::Idle(_) => Err(NOTHING_SAID),
        })
    }

    /// Rebuilds the system prompt and publishes what changed.
    pub(super) async fn rebuild_prompt(&mut self) -> Result<(), CommandError> {
        self.wake(false).await.map_err(failed)?;
        let State::Awake(live) = &mut self.state else { return Err(nothing_said("rebuild-prompt")) };
        let changed = rebuild::rebuild(&self.host, live).await.map_err(failed)?;
        self.front.feed.publish(EventKind::PromptRebuilt { changed });
        Ok(())
    }

    /// Switches to another model or engine. After an error the session continues with the previous ones.
    pub(super) async fn choose(&mut self, choice: Choice) -> Result<(), CommandError> {
        let choice = Choice {
            provider: if choice.model.is_some() { choice.provider } else { self.choice.provider.clone() },
            model: choice.model.or_else(|| self.choice.model.clone()),
            engine: choice.engine.or_else(|| self.choice.engine.clone()),
            effort: choice.effort.or(self.choice.effort),
        };
        let host = self.source.host(&choice).await.map_err(|problem| CommandError::Failed { problem })?;
        let is_new = matches!(self.state, State::New);
        // The servers are the same for each model.
        let servers = self.servers.take();
        self.make_idle(Duration::ZERO).await;
        self.servers = servers;
        let before = std::mem::replace(&mut self.host, host);
        if let Err(error) = self.wake(false).await {
            self.host = before;
            return Err(failed(error));
        }
        if before.model != self.host.model
            && let State::Awake(live) = &mut self.state
            && let Err(error) = live.plugins.engine.model_changed(&self.host.model).await
        {
            self.front.feed.notice(format!("{error}; the engine will see the new model with the next request"));
        }
        self.front.tasks.choose(&choice);
        self.choice = choice;
        if !is_new || before.model != self.host.model || before.engine != self.host.engine {
            let (model, engine) = (self.host.model.clone(), self.host.engine.clone());
            self.front.feed.publish(EventKind::Switched { model, engine });
        }
        if before.model != self.host.model
            && let Some(cost) = self.cost_of_switch()
        {
            self.front.feed.notice(cost);
        }
        Ok(())
    }

    /// What the next request to another model costs: it cannot read what the former model's cache holds.
    fn cost_of_switch(&self) -> Option<String> {
        let Status { model, prompt_tokens, messages, .. } = self.status();
        if messages == 0 {
            return None;
        }
        let prices = &self.host.settings.prices;
        let price = prices.of(&self.host.model.provider, &model);
        let cost = price.map(|price| f64::from(prompt_tokens) * price.cache_write / 1e6);
        let cost = cost.map_or_else(String::new, |dollars| {
            format!(": about ${dollars:.2} at the list price of {}", prices.as_of())
        });
        let tokens = hermes_diagnostic::grouped(u64::from(prompt_tokens));
        Some(format!("the next request writes about {tokens} tokens to the cache of {model}{cost}"))
    }

    /// Lets the model think more or less from the next request on.
    pub(super) fn choose_effort(&mut self, effort: Effort) {
        self.choice.effort = Some(effort);
        self.front.tasks.choose(&self.choice);
        self.host.effort = Some(effort);
        self.told_effort = None;
        self.tell_shortfall();
    }

    /// Says once what the model cannot do of the effort that is wanted.
    fn tell_shortfall(&mut self) {
        let Some(effort) = self.host.effort else { return };
        let wanted = (self.host.model.clone(), effort);
        if self.told_effort.as_ref() != Some(&wanted) {
            if let Some(line) = thinking::shortfall(&self.host, effort) {
                self.front.feed.notice(line);
            }
            self.told_effort = Some(wanted);
        }
    }

    /// Whether the conversation has this message.
    pub(super) fn has_message(&self, id: MessageId) -> bool {
        match &self.state {
            State::Awake(live) => live.log.journal.conversation().get(id).is_some(),
            State::Idle(log) => log.journal.conversation().get(id).is_some(),
            _ => false,
        }
    }

    /// Removes a message of the user and all messages after it. Memory providers first finish storing turns or are stopped;
    /// then the running plugins are notified.
    pub(super) async fn rewind(&mut self, to: MessageId) -> Result<(), CommandError> {
        let Some(session) = self.session().cloned() else { return Err(nothing_said("rewind")) };
        if let State::Awake(live) = &mut self.state
            // The store refuses an unknown message, so nothing needs to be interrupted.
            && live.log.journal.conversation().headers().iter().any(|header| header.id == to)
        {
            live.quiesce().await;
        }
        let taken = self.host.store.rewind(&session, to).await.map_err(|error| match error {
            StoreError::Session(SessionError::NoSuchMessage { .. }) => CommandError::UnknownMessage { message: to },
            StoreError::Session(SessionError::NotTheUsers { .. }) => CommandError::NotTheUsers { message: to },
            error => failed(error.into()),
        });
        let followed = match (&taken, &mut self.state) {
            (Ok(_), State::Awake(live)) => live.rewound(&self.host, to).await.map_err(failed),
            (Ok(_), State::Idle(log)) => {
                log.rewound = Some(log.rewound.map_or(to, |earlier| earlier.min(to)));
                log.journal.reload().await.map_err(|error| failed(error.into()))
            }
            _ => Ok(()),
        };
        if let State::Awake(live) = &mut self.state {
            // Turns that stay in the log are still delivered, even if a provider receives one twice.
            live.plugins.deliveries.resume();
        }
        let taken = taken?;
        self.front.checkpoints.rewound(&self.host.home, &session, to).await;
        followed?;
        self.front.feed.publish_about(About::message(to), EventKind::Rewound { messages: taken.len() });
        Ok(())
    }

    /// Restores the files that turns changed.
    pub(super) async fn undo(&mut self, turns: Turns, on_conflict: OnConflict) -> Result<Undo, CommandError> {
        let Some(session) = self.session().cloned() else { return Err(nothing_said("undo")) };
        let (home, limits) = (&self.host.home, self.host.settings.checkpoints.limits);
        let undone = self.front.checkpoints.undo(home, limits, &session, turns, on_conflict).await;
        let undo = undone.map_err(|problem| CommandError::Failed { problem })?;
        self.front.feed.publish(EventKind::FilesRestored { files: undo.restored.len() });
        Ok(undo)
    }

    /// Creates a new session that continues from this one. This session does not change.
    pub(super) async fn branch(&mut self, through: Option<MessageId>) -> Result<SessionId, CommandError> {
        let Some(session) = self.session().cloned() else { return Err(nothing_said("branch")) };
        let stored = self.host.store.session(&session).await.map_err(|error| failed(error.into()))?;
        let new = NewSession {
            source: self.host.settings.platform.clone(),
            workspace: stored.workspace,
            engine: self.host.engine.clone(),
            model: self.host.model.clone(),
            title: None,
            frozen: None,
            started_at: self.host.settings.clock.now(),
            parent: Some(Parent { id: session, kind: ParentKind::Branch, through }),
        };
        let child = self.host.store.create_session(new).await.map_err(|error| match error {
            StoreError::Session(SessionError::NoSuchMessage { message, .. }) => {
                CommandError::UnknownMessage { message }
            }
            error => failed(error.into()),
        })?;
        self.front.feed.publish(EventKind::Branched { child: child.id.clone() });
        Ok(child.id)
    }

    /// The numbers of the status line.
    pub(super) fn status(&self) -> Status {
        if let State::Awake(live) = &self.state {
            return live.status(&self.host);
        }
        Status {
            model: self.host.chain.now().model.name.clone(),
            engine: self.host.engine.clone(),
            prompt_tokens: self.prompt_tokens,
            context_length: self.host.chain.window(),
            effort: self.host.effort,
            mode: self.front.mode.get(),
            messages: self.log().map_or(0, |log| log.journal.conversation().messages().len()),
        }
    }

    /// What fills the window; `None` before the first message.
    pub(super) async fn context(&self) -> Result<Option<Context>, Problem> {
        let Some(log) = self.log() else { return Ok(None) };
        let store = self.host.store.as_ref();
        let unread = |error: StoreError| Problem::from(&error);
        let session = store.session(&log.session).await.map_err(unread)?;
        let mut context = Context::read(store, &session).await.map_err(unread)?;
        if let State::Awake(live) = &self.state {
            let compactor = &live.compaction.compactor;
            let status = match compactor.plugin().status().await {
                Ok(status) => serde_json::from_str(&status).unwrap_or(serde_json::Value::String(status)),
                Err(error) => error.to_string().into(),
            };
            let (enabled, preparing) = (self.host.settings.compression, compactor.is_preparing());
            let chain = &self.host.chain;
            context
                .measure_by(Model { context_length: chain.window(), ..chain.now().model.clone() }, *compactor.ruler());
            context.live = Some(Working { enabled, preparing, status, window_source: chain.window_source() });
        }
        Ok(Some(context))
    }

    /// What the model can work with.
    pub(super) async fn offer(&mut self) -> Result<Offer, Problem> {
        self.wake(false).await.map_err(|error| Problem::from(&error))?;
        let servers = self.servers.as_ref();
        match &self.state {
            State::Awake(live) => Ok(Offer::of(&live.plugins, servers).await),
            State::New | State::Idle(_) => {
                let offer = Offer::of_new(&self.host, self.workspace.clone(), &self.front, servers).await;
                offer.map_err(|error| Problem::from(&error))
            }
        }
    }

    /// The skills, for the user.
    pub(super) async fn skills(&self) -> Result<SkillCommands, Problem> {
        if let State::Awake(live) = &self.state {
            return Ok(live.plugins.toolbox.skills().offered().await.0);
        }
        let skills = skills_of_new(&self.host, self.workspace.clone(), &self.front).await;
        skills.map_err(|error| Problem::from(&error))
    }

    /// Closes the session in bounded time. Memory providers and hooks first get the queued turns and events.
    pub(super) async fn close(mut self) {
        /// A one-shot process waits this long for summaries, which the next process uses. A chat closes at once.
        const ONE_SHOT: Duration = Duration::from_secs(10);
        self.front.questions.end();
        self.front.tasks.close().await;
        let awake = match &self.state {
            State::Awake(live) => Some(live.plugins.deliveries.providers()),
            State::New | State::Idle(_) => None,
        };
        if self.host.settings.one_shot
            && let Some(servers) = &self.servers
        {
            servers.keep_lists(&self.front.feed).await;
        }
        self.make_idle(if self.host.settings.one_shot { ONE_SHOT } else { Duration::ZERO }).await;
        self.discard_unsaid().await;
        let Some(providers) = awake else { return };
        match delivery::unstored(self.host.store.as_ref(), &providers).await {
            Ok(notices) => notices.into_iter().for_each(|notice| self.front.feed.notice(notice)),
            Err(error) => tracing::warn!(%error, "the outbox cannot be read"),
        }
    }
}

fn failed(error: AgentError) -> CommandError {
    CommandError::Failed { problem: Problem::from(&error) }
}

fn nothing_said(command: &str) -> CommandError {
    CommandError::NothingSaid { command: command.to_owned() }
}
