//! Compares a session's stored opening with the one that would be built now. No session is changed.

use std::path::PathBuf;

use hermes_conversation::SessionId;
use hermes_diagnostic::Notice;
use hermes_session_store::{Session, Totals};

use crate::approval::SessionMode;
use crate::error::AgentError;
use crate::feed::FeedLimits;
use crate::freezing;
use crate::front::Front;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::plugins::RunningPlugins;
use crate::mcp::McpServers;
use crate::opening::Opening;
use crate::project_files::Moment;

/// A stored opening and a current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningComparison {
    /// The stored opening; `None` without a session, or before its first request.
    pub stored: Option<Opening>,
    /// The opening that would be built now.
    pub now: Opening,
    /// Failures and warnings for the user.
    pub notices: Vec<Notice>,
}

/// Reads a session's stored opening and builds the current one. No session is changed.
pub async fn compare_openings(
    host: &Host,
    session: Option<&SessionId>,
    workspace: PathBuf,
) -> Result<OpeningComparison, AgentError> {
    let is_new = session.is_none();
    let (session, history) = match session {
        Some(id) => {
            let mut session = host.store.session(id).await?;
            if session.imported {
                // The prompt of the file is shown, but nothing in the folder of the file is read.
                session.workspace = workspace;
            }
            let history = Journal::open(&host.store, &session).await?.history();
            (session, history)
        }
        None => (unsaved(host, workspace), Journal::empty(&host.store).history()),
    };
    let front = Front::new(FeedLimits::SHARED, SessionMode::new(&host.approvals, host.settings.sandbox.mode));
    let mut events = front.feed.subscribe(None);
    // No program is started to look at a prompt.
    let servers = McpServers::unconnected(host);
    let plugins = RunningPlugins::start(host, &session, is_new, history, &front, &servers).await?;
    let stored = session.frozen.as_ref().map(Opening::restore);
    let fresh = freezing::build(host, &session.workspace, &plugins, stored.as_ref(), Moment::Opening).await;
    let notices = events.notices().into_iter().chain(fresh.notices.into_iter().map(Notice::from)).collect();
    Ok(OpeningComparison { stored, now: fresh.opening, notices })
}

/// A placeholder for a session that does not exist.
pub(crate) fn unsaved(host: &Host, workspace: PathBuf) -> Session {
    Session {
        id: SessionId(String::new()),
        source: host.settings.platform.clone(),
        title: None,
        workspace,
        engine: host.engine.clone(),
        model: host.model.clone(),
        frozen: None,
        started_at: 0,
        updated_at: 0,
        message_count: 0,
        totals: Totals::default(),
        parent: None,
        imported: false,
    }
}
