//! A session that is ready for a turn: its log, its plugins, the shared prefix of its requests, and its compaction.

pub(crate) mod compaction;
pub(crate) mod log;
pub(crate) mod plugins;
pub(crate) mod prefix;

use std::convert::Infallible;
use std::time::Duration;

use hermes_conversation::MessageId;
use hermes_diagnostic::{Action, Notice};
use hermes_protocol::Status;
use hermes_session_store::{ParentKind, Session};

use crate::compaction::Compactor;
use crate::error::AgentError;
use crate::front::Front;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::compaction::{SessionCompaction, SessionTarget};
use crate::live::log::SessionLog;
use crate::live::plugins::RunningPlugins;
use crate::live::prefix::SessionPrefix;
use crate::mcp::McpServers;
use crate::{kept_results, memory_extras, warming};

/// How long plugins may take to finish background work.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session that is ready for a turn.
pub(crate) struct Live {
    pub(crate) log: SessionLog,
    pub(crate) plugins: RunningPlugins,
    pub(crate) prefix: SessionPrefix,
    pub(crate) compaction: SessionCompaction,
    /// A notice that another engine took over the conversation; reported with the next turn.
    pub(crate) engine_change: Option<Notice>,
    pub(crate) front: Front,
    /// Whether another session's agent works in this one.
    pub(crate) is_delegate: bool,
}

impl Live {
    /// Starts the plugins of a session and renders its prefix. An error returns the log to the caller.
    pub(crate) async fn wake(
        host: &Host,
        session: Session,
        mut log: SessionLog,
        fresh: bool,
        front: &Front,
        servers: &McpServers,
    ) -> Result<Self, (Box<SessionLog>, AgentError)> {
        match Self::parts(host, &session, &log, fresh, front, servers).await {
            Ok((plugins, prefix, compaction, engine_change)) => {
                log.rewound = None;
                let is_delegate = plugins::is_delegate(&session);
                Ok(Self { log, plugins, prefix, compaction, engine_change, front: front.clone(), is_delegate })
            }
            Err(error) => Err((Box::new(log), error)),
        }
    }

    async fn parts(
        host: &Host,
        session: &Session,
        log: &SessionLog,
        fresh: bool,
        front: &Front,
        servers: &McpServers,
    ) -> Result<(RunningPlugins, SessionPrefix, SessionCompaction, Option<Notice>), AgentError> {
        if let Some(parent) = session.parent.as_ref().filter(|parent| parent.kind != ParentKind::Delegate)
            && let Err(error) = kept_results::inherit(&host.home, &parent.id, &session.id)
        {
            tracing::warn!(%error, "a branch has not all kept results of its parent");
        }
        let mut plugins = RunningPlugins::start(host, session, fresh, log.journal.history(), front, servers).await?;
        let prefix = SessionPrefix::open(host, session, log, &plugins).await?;
        if session.model != host.model {
            host.store.update_model(&session.id, &host.model).await?;
        }
        let engine_change = (session.engine != host.engine)
            .then(|| engine_change(&session.engine, &host.engine, &log.journal, &session.id));
        if engine_change.is_some() {
            host.store.update_engine(&session.id, &host.engine).await?;
        }
        let compaction = SessionCompaction::open(host, log, &plugins).await?;
        if let Some(first) = log.rewound {
            plugins.deliveries.rewound(first);
        }
        plugins.deliver(host, session).await;
        Ok((plugins, prefix, compaction, engine_change))
    }

    /// Ends background work before a rewind, because it may refer to messages that will be removed.
    pub(crate) async fn quiesce(&mut self) {
        self.compaction.compactor.finish(Duration::ZERO).await;
        self.plugins.deliveries.pause(SETTLE_TIMEOUT).await;
    }

    /// Updates the session after a rewind: the plugin instances stay, the engine is notified, and the prefix is rendered
    /// again.
    pub(crate) async fn rewound(&mut self, host: &Host, first: MessageId) -> Result<(), AgentError> {
        self.log.journal.reload().await?;
        self.plugins.recalls.forget();
        self.plugins.deliveries.rewound(first);
        if let Err(error) = self.plugins.engine.rewound(first).await {
            self.plugins.notices.notice(format!("{error}; the engine will see the rewind when it starts again"));
        }
        let session = host.store.session(&self.log.session).await?;
        self.prefix = SessionPrefix::open(host, &session, &self.log, &self.plugins).await?;
        self.compaction = SessionCompaction::open(host, &self.log, &self.plugins).await?;
        Ok(())
    }

    /// Ends the plugins' work in bounded time, drops their instances and the rendered prefix, and returns the log.
    pub(crate) async fn retire(mut self, patience: Duration) -> SessionLog {
        self.compaction.compactor.finish(patience).await;
        let _ = tokio::time::timeout(SETTLE_TIMEOUT, self.plugins.dispatcher.settle()).await;
        self.plugins.deliveries.stop(SETTLE_TIMEOUT.max(patience)).await;
        self.plugins.mirrors.stop(SETTLE_TIMEOUT).await;
        self.log
    }

    /// The numbers of the status line.
    pub(crate) fn status(&self, host: &Host) -> Status {
        Status {
            model: host.chain.now().model.name.clone(),
            engine: host.engine.clone(),
            prompt_tokens: self.next_request(),
            context_length: host.chain.window(),
            effort: host.effort,
            mode: self.front.mode.get(),
            messages: self.log.journal.conversation().messages().len(),
        }
    }

    /// Whether a plugin does background work.
    pub(crate) fn is_working(&mut self) -> bool {
        self.plugins.deliveries.is_working()
            || self.compaction.compactor.is_preparing()
            || self.compaction.compactor.is_proposing()
    }

    /// Keeps what the provider has cached of the session, until the future is dropped.
    pub(crate) async fn keep_warm(&mut self, host: &Host) -> Infallible {
        let SessionPrefix { frozen, outgoing, .. } = &mut self.prefix;
        warming::keep_warm(host, &self.log, frozen, outgoing).await
    }

    /// Whether a request will keep the session in the provider's cache, if the user stays away.
    pub(crate) fn is_kept_warm(&self) -> bool {
        let SessionPrefix { frozen, outgoing, .. } = &self.prefix;
        outgoing.warm_at(frozen, &self.log.journal, self.log.clock.now()).is_some()
    }

    /// Lets memory providers care for their stores. Dropping the future interrupts it.
    pub(crate) async fn upkeep(&self, host: &Host) {
        let breakers = self.plugins.recalls.breakers();
        memory_extras::upkeep(host.store.as_ref(), self.log.clock, breakers, &self.plugins.upkeep).await;
    }

    /// The compactor and its target.
    pub(crate) fn compactor<'a>(&'a mut self, host: &'a Host) -> (&'a mut Compactor, SessionTarget<'a>) {
        let Self { log, plugins, prefix, compaction, .. } = self;
        let target = SessionTarget {
            store: host.store.as_ref(),
            session: &log.session,
            engine: &plugins.engine_version,
            journal: &mut log.journal,
            outgoing: &prefix.outgoing,
            frozen: &prefix.frozen,
            fixed_tokens: prefix.fixed_tokens,
            clock: log.clock,
            faults: &mut compaction.faults,
        };
        (&mut compaction.compactor, target)
    }

    /// Whether the current view leaves enough room next to a prompt and tools of the given size.
    pub(crate) fn fits_beside(&mut self, host: &Host, fixed: u32) -> bool {
        let (compactor, target) = self.compactor(host);
        compactor.fits_beside(&target, fixed)
    }

    /// The most estimated tokens for the messages of a request.
    pub(crate) fn room_for_messages(&mut self, host: &Host) -> u32 {
        let (compactor, target) = self.compactor(host);
        compactor.limit(&target)
    }

    /// The estimated tokens of the next request.
    pub(crate) fn estimate(&self) -> u32 {
        let journal = &self.log.journal;
        self.prefix.fixed_tokens.saturating_add(journal.conversation().view_tokens(journal.view()))
    }

    /// The tokens of the next request in the provider's counts, as far as they are known.
    pub(crate) fn next_request(&self) -> u32 {
        self.compaction.compactor.ruler().counted(self.estimate())
    }
}

/// The notice when an engine takes over another engine's conversation.
fn engine_change(before: &str, now: &str, journal: &Journal, session: &hermes_conversation::SessionId) -> Notice {
    let inherited = match journal.view().summaries().count() {
        0 => "with all messages".to_owned(),
        1 => "and keeps the summary".to_owned(),
        count => format!("and keeps the {count} summaries"),
    };
    let text = format!(
        "this conversation used the context engine `{before}`; `{now}` continues from here {inherited}; its tools arrive at the \
         next compaction, or when the prompt is rebuilt"
    );
    Notice::new(text, Action::RebuildPrompt { session: session.to_string() })
}
