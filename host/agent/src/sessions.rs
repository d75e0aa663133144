//! The open sessions of one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_conversation::SessionId;
use hermes_protocol::{Command, CommandError};

use crate::session::SessionHandle;

/// The number of an open session in this process. A new session has no other id yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenNumber(pub u64);

/// Keeps track of the open sessions. Two openings of one stored session get the same session.
#[derive(Default)]
pub struct Sessions {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    newest: u64,
    handles: HashMap<OpenNumber, SessionHandle>,
    /// The stored sessions that are being opened.
    opening: HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>,
}

impl Sessions {
    fn open_sessions(&self) -> MutexGuard<'_, Open> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.handles.retain(|_, handle| !handle.is_closed());
        // Each caller that waits for an opening holds a clone.
        open.opening.retain(|_, opening| Arc::strong_count(opening) > 1);
        open
    }

    /// Opens a session with `open`. If the stored session `id` is open already, or another caller is opening it, the result is
    /// that session and `true`, and `open` does not run.
    pub async fn open<E>(
        &self,
        id: Option<&SessionId>,
        open: impl Future<Output = Result<SessionHandle, E>>,
    ) -> Result<(SessionHandle, bool), E> {
        let opening = id.map(|id| Arc::clone(self.open_sessions().opening.entry(id.clone()).or_default()));
        let _opening = match &opening {
            Some(opening) => Some(opening.lock().await),
            None => None,
        };
        if let Some(handle) = id.and_then(|id| self.find(id)) {
            return Ok((handle, true));
        }
        let handle = open.await?;
        let mut open = self.open_sessions();
        open.newest += 1;
        let number = OpenNumber(open.newest);
        open.handles.insert(number, handle.clone());
        Ok((handle, false))
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
