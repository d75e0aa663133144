//! A session at work: its log, its plugins, the prefix that all its requests share, and its compaction.

pub(crate) mod compaction;
pub(crate) mod log;
pub(crate) mod plugins;
pub(crate) mod prefix;

use std::time::Duration;

use hermes_conversation::MessageId;
use hermes_diagnostic::{Action, Notice};
use hermes_plugin_host::TurnRecord;
use hermes_session_store::Session;

use crate::compaction::Compactor;
use crate::error::AgentError;
use crate::front::Front;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::compaction::{SessionCompaction, SessionTarget};
use crate::live::log::SessionLog;
use crate::live::plugins::Plugged;
use crate::live::prefix::SessionPrefix;

/// How long plugins may take to finish their work in the background.
const SETTLING: Duration = Duration::from_secs(2);

/// A session that is ready for a turn.
pub(crate) struct Live {
    pub(crate) log: SessionLog,
    pub(crate) plugged: Plugged,
    pub(crate) prefix: SessionPrefix,
    pub(crate) compaction: SessionCompaction,
    /// That another engine goes on with the conversation; reported with the next turn.
    pub(crate) switched: Option<Notice>,
    pub(crate) front: Front,
}

impl Live {
    /// Makes a session ready for a turn whose log this process owns. On an error the log comes back with it.
    pub(crate) async fn wake(
        host: &Host,
        session: Session,
        log: SessionLog,
        fresh: bool,
        front: &Front,
    ) -> Result<Self, (Box<SessionLog>, AgentError)> {
        match Self::parts(host, &session, &log, fresh, front).await {
            Ok((plugged, prefix, compaction, switched)) => {
                Ok(Self { log, plugged, prefix, compaction, switched, front: front.clone() })
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
    ) -> Result<(Plugged, SessionPrefix, SessionCompaction, Option<Notice>), AgentError> {
        let plugged = Plugged::start(host, session, fresh, log.journal.history(), front).await?;
        let prefix = SessionPrefix::open(host, session, log, &plugged).await?;
        if session.model != host.model {
            host.store.update_model(&session.id, &host.model).await?;
        }
        let switched =
            (session.engine != host.engine).then(|| switched(&session.engine, &host.engine, &log.journal, &session.id));
        if switched.is_some() {
            host.store.update_engine(&session.id, &host.engine).await?;
        }
        let compaction = SessionCompaction::open(host, log, &plugged).await?;
        Ok((plugged, prefix, compaction, switched))
    }

    /// Ends work in the background that could still name messages about to be rewound. Returns the turns that memory
    /// providers did not finish storing.
    pub(crate) async fn quiesce(&mut self) -> Vec<TurnRecord> {
        self.compaction.compactor.finish(Duration::ZERO).await;
        self.plugged.syncing.interrupt(SETTLING).await
    }

    /// Follows a rewind: the plugins' instances stay, the engine learns of it, and the bytes are rendered again.
    pub(crate) async fn rewound(&mut self, host: &Host, first: MessageId) -> Result<(), AgentError> {
        self.log.journal.reload().await?;
        if let Err(error) = self.plugged.engine.rewound(first).await {
            self.plugged.notices.notice(format!("{error}; the engine learns of the rewind when it starts again"));
        }
        let session = host.store.session(&self.log.session).await?;
        self.prefix = SessionPrefix::open(host, &session, &self.log, &self.plugged).await?;
        self.compaction = SessionCompaction::open(host, &self.log, &self.plugged).await?;
        Ok(())
    }

    /// Ends the work of plugins in bounded time, drops their instances and the rendered bytes, and keeps the log.
    pub(crate) async fn retire(mut self, patience: Duration) -> SessionLog {
        self.compaction.compactor.finish(patience).await;
        let _ = tokio::time::timeout(SETTLING, self.plugged.watchers.settle()).await;
        self.plugged.syncing.settle(SETTLING).await;
        self.log
    }

    /// Whether a plugin works in the background.
    pub(crate) fn is_working(&self) -> bool {
        self.plugged.syncing.is_working()
            || self.compaction.compactor.is_preparing()
            || self.compaction.compactor.is_proposing()
    }

    /// The compactor, and the session as the compactor works on it.
    pub(crate) fn compactor<'a>(&'a mut self, host: &'a Host) -> (&'a mut Compactor, SessionTarget<'a>) {
        let Self { log, plugged, prefix, compaction, .. } = self;
        let target = SessionTarget {
            store: host.store.as_ref(),
            session: &log.session,
            engine: &plugged.engine_version,
            journal: &mut log.journal,
            outgoing: &prefix.outgoing,
            frozen: &prefix.frozen,
            fixed_tokens: prefix.fixed_tokens,
            clock: log.clock,
            faults: &mut compaction.faults,
        };
        (&mut compaction.compactor, target)
    }

    /// Whether the conversation, as the view shows it, leaves room to go on beside a prompt and tools of that size.
    pub(crate) fn fits_beside(&mut self, host: &Host, fixed: u32) -> bool {
        let (compactor, target) = self.compactor(host);
        compactor.fits_beside(&target, fixed)
    }

    /// Tokens that the messages of a request may take, by the estimate.
    pub(crate) fn room_for_messages(&mut self, host: &Host) -> u32 {
        let (compactor, target) = self.compactor(host);
        compactor.limit(&target)
    }

    /// Estimate for the next request, by the host's ruler.
    pub(crate) fn estimate(&self) -> u32 {
        let journal = &self.log.journal;
        self.prefix.fixed_tokens.saturating_add(journal.conversation().view_tokens(journal.view()))
    }

    /// Estimate for the next request, by the provider's ruler where it is known.
    pub(crate) fn next_request(&self) -> u32 {
        self.compaction.compactor.ruler().counted(self.estimate())
    }
}

/// What a person is told when an engine takes over the conversation of another one.
fn switched(before: &str, now: &str, journal: &Journal, session: &hermes_conversation::SessionId) -> Notice {
    let inherited = match journal.view().summaries().count() {
        0 => "it gets the conversation as it is".to_owned(),
        1 => "it takes over the view, with a summary and what that covers".to_owned(),
        count => format!("it takes over the view, with {count} summaries and what they cover"),
    };
    let text = format!(
        "this conversation was held with the context engine `{before}`; `{now}` continues from here: {inherited}; its own \
         tools come with the next system prompt, at the next compaction or when the prompt is rebuilt"
    );
    Notice::new(text, Action::RebuildPrompt { session: session.to_string() })
}
