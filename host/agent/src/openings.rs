//! What a session's requests begin with, and what they would begin with today. No session is changed.

use std::path::PathBuf;

use hermes_conversation::SessionId;
use hermes_diagnostic::Notice;
use hermes_session_store::{Session, Totals};

use crate::error::AgentError;
use crate::feed::FeedLimits;
use crate::freezing;
use crate::front::Front;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::plugins::Plugged;
use crate::opening::Opening;

/// What the requests of a session begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Openings {
    /// As it is stored; none where no session was asked for, or nothing was built for it yet.
    pub stored: Option<Opening>,
    /// As it would be built now.
    pub now: Opening,
    /// What should be known about it.
    pub notices: Vec<Notice>,
}

/// What a session's requests begin with, and what they would begin with if it began now. No session is changed.
pub async fn openings(host: &Host, session: Option<&SessionId>, workspace: PathBuf) -> Result<Openings, AgentError> {
    let is_new = session.is_none();
    let (session, history) = match session {
        Some(id) => {
            let session = host.store.session(id).await?;
            let history = Journal::open(&host.store, &session).await?.history();
            (session, history)
        }
        None => (unsaved(host, workspace), Journal::empty(&host.store).history()),
    };
    let front = Front::new(FeedLimits::SHARED);
    let mut events = front.feed.subscribe(None);
    let plugged = Plugged::start(host, &session, is_new, history, &front).await?;
    let stored = session.frozen.as_ref().map(Opening::restore);
    let fresh = freezing::build(host, &session.workspace, &plugged, stored.as_ref()).await;
    let notices = events.notices().into_iter().chain(fresh.notices.into_iter().map(Notice::from)).collect();
    Ok(Openings { stored, now: fresh.opening, notices })
}

/// A session that is not there.
fn unsaved(host: &Host, workspace: PathBuf) -> Session {
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
    }
}
