//! The exclusive right to work on a session.

use std::any::Any;
use std::fmt;

use hermes_conversation::SessionId;

/// The exclusive right to work on a session, until it is dropped or the process ends.
#[must_use = "dropping a lease releases the session"]
pub struct Lease {
    session: SessionId,
    _guard: Box<dyn Any + Send + Sync>,
}

impl Lease {
    /// A lease over an adapter's own guard, which releases the session when dropped.
    pub fn new(session: SessionId, guard: impl Any + Send + Sync) -> Self {
        Self { session, _guard: Box::new(guard) }
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("session", &self.session).finish_non_exhaustive()
    }
}
