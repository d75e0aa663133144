//! A session at work: its log, its plugins, the prefix that all its requests share, and its compaction.

pub(crate) mod compaction;
pub(crate) mod log;
pub(crate) mod plugins;
pub(crate) mod prefix;

use hermes_store::Session;

use crate::compaction::Compactor;
use crate::error::AgentError;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::compaction::{SessionCompaction, SessionDesk};
use crate::live::log::SessionLog;
use crate::live::plugins::Plugged;
use crate::live::prefix::SessionPrefix;
use crate::report::Ear;

/// A session that is ready for a turn.
pub(crate) struct Live {
    pub(crate) log: SessionLog,
    pub(crate) plugged: Plugged,
    pub(crate) prefix: SessionPrefix,
    pub(crate) compaction: SessionCompaction,
    /// That another engine goes on with the conversation; reported with the next turn.
    pub(crate) switched: Option<String>,
    pub(crate) ear: Ear,
}

impl Live {
    /// Takes the session for this process and makes everything ready for a turn.
    pub(crate) async fn start(host: &Host, session: Session, fresh: bool) -> Result<Self, AgentError> {
        let log = SessionLog::open(host, &session)?;
        let (plugged, ear) = Plugged::start(host, &session, fresh, log.journal.history()).await?;
        let prefix = SessionPrefix::open(host, &session, &log, &plugged).await?;
        if session.model != host.model {
            host.store.update_model(&session.id, &host.model)?;
        }
        let switched = (session.engine != host.engine).then(|| switched(&session.engine, &host.engine, &log.journal));
        if switched.is_some() {
            host.store.update_engine(&session.id, &host.engine)?;
        }
        let compaction = SessionCompaction::open(host, &log, &plugged)?;
        Ok(Self { log, plugged, prefix, compaction, switched, ear })
    }

    /// The compactor, and the session as the compactor works on it.
    pub(crate) fn compactor<'a>(&'a mut self, host: &'a Host) -> (&'a mut Compactor, SessionDesk<'a>, &'a mut Ear) {
        let Self { log, plugged, prefix, compaction, ear, .. } = self;
        let desk = SessionDesk {
            store: &host.store,
            session: &log.session,
            engine: &plugged.engine_version,
            journal: &mut log.journal,
            outgoing: &prefix.outgoing,
            frozen: &prefix.frozen,
            fixed_tokens: prefix.fixed_tokens,
            clock: log.clock,
            faults: &mut compaction.faults,
        };
        (&mut compaction.compactor, desk, ear)
    }

    /// Whether the conversation, as the view shows it, leaves room to go on beside a prompt and tools of that size.
    pub(crate) fn fits_beside(&mut self, host: &Host, fixed: u32) -> bool {
        let (compactor, desk, _) = self.compactor(host);
        compactor.fits_beside(&desk, fixed)
    }

    /// Tokens that the messages of a request may take, by the estimate.
    pub(crate) fn room_for_messages(&mut self, host: &Host) -> u32 {
        let (compactor, desk, _) = self.compactor(host);
        compactor.limit(&desk)
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
