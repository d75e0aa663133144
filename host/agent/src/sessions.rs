//! The open sessions of one process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_conversation::SessionId;

use crate::command::{Command, CommandError};
use crate::host_source::{Choice, HostSource};
use crate::problem::Problem;
use crate::session::{Begin, SessionHandle, SessionRules};

/// The number of an open session in this process. A new session has no other id yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenNumber(pub u64);

/// Opens sessions and keeps track of the open ones.
pub struct Sessions {
    source: Arc<dyn HostSource>,
    rules: SessionRules,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    newest: u64,
    handles: HashMap<OpenNumber, SessionHandle>,
}

impl Sessions {
    /// Creates a registry without open sessions.
    pub fn new(source: Arc<dyn HostSource>, rules: SessionRules) -> Self {
        Self { source, rules, open: Mutex::default() }
    }

    fn open_sessions(&self) -> MutexGuard<'_, Open> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.handles.retain(|_, handle| !handle.is_closed());
        open
    }

    /// Opens a session. For a stored session that is already open it returns a handle to the open one.
    pub async fn open(&self, begin: Begin, choice: Choice, workspace: PathBuf) -> Result<SessionHandle, Problem> {
        if let Begin::Resume(id) | Begin::Imported { session: id, .. } = &begin
            && let Some(handle) = self.find(id)
        {
            return Ok(handle);
        }
        let host = self.source.host(&choice).await?;
        let chosen = (Arc::clone(&self.source), choice);
        let handle = SessionHandle::open(host, chosen, begin, workspace, self.rules).await;
        let handle = handle.map_err(|error| Problem::from(&error))?;
        let mut open = self.open_sessions();
        open.newest += 1;
        let number = OpenNumber(open.newest);
        open.handles.insert(number, handle.clone());
        Ok(handle)
    }

    /// The open sessions, in the order of opening.
    pub fn list(&self) -> Vec<(OpenNumber, SessionHandle)> {
        let open = self.open_sessions();
        let mut handles: Vec<_> = open.handles.iter().map(|(number, handle)| (*number, handle.clone())).collect();
        handles.sort_by_key(|(number, _)| *number);
        handles
    }

    /// Finds an open session by its id.
    pub fn find(&self, id: &SessionId) -> Option<SessionHandle> {
        let open = self.open_sessions();
        open.handles.values().find(|handle| handle.session().as_ref() == Some(id)).cloned()
    }

    /// Closes all sessions concurrently.
    pub async fn close(&self) {
        let handles = self.list();
        let closing = handles.iter().map(|(_, handle)| handle.send(Command::Close));
        for closed in futures_util::future::join_all(closing).await {
            if let Err(error) = closed
                && error != CommandError::Closed
            {
                tracing::warn!(%error, "a session was not closed");
            }
        }
    }
}
