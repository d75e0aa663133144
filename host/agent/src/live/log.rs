//! The state of a session that stays in memory while it is idle: its lease and its log.

use std::path::PathBuf;

use hermes_conversation::{MessageId, SessionId, closing};
use hermes_session_store::{Lease, Session};

use crate::clock::Clock;
use crate::error::AgentError;
use crate::host::Host;
use crate::journal::Journal;

/// The log of a session that this process owns.
pub(crate) struct SessionLog {
    pub(crate) session: SessionId,
    pub(crate) workspace: PathBuf,
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    /// The earliest message of rewinds while the session was idle. Memory providers learn it when it wakes.
    pub(crate) rewound: Option<MessageId>,
    _lease: Lease,
}

impl SessionLog {
    /// Takes the session's lease for this process, and closes an interrupted turn.
    pub(crate) async fn open(host: &Host, session: &Session) -> Result<Self, AgentError> {
        if !session.workspace.is_dir() {
            return Err(AgentError::Workspace { folder: session.workspace.clone() });
        }
        let lease = host.store.lease(&session.id).await?;
        let log = Self {
            session: session.id.clone(),
            workspace: session.workspace.clone(),
            journal: Journal::open(&host.store, session).await?,
            clock: host.settings.clock,
            rewound: None,
            _lease: lease,
        };
        log.close_open_turn().await?;
        Ok(log)
    }

    /// Closes a turn that an error or a crash left open. It only appends messages.
    pub(crate) async fn close_open_turn(&self) -> Result<(), AgentError> {
        let drafts = closing::close(&self.journal.conversation(), self.clock.now());
        self.journal.append(&drafts).await?;
        Ok(())
    }
}
