//! Whether a session exists.

use hermes_conversation::SessionId;
use hermes_session_store::SessionError;
use rusqlite::Connection;

use crate::error::Fault;

/// An error if a change of the session with this id changed nothing.
pub(crate) fn known(changed: usize, id: &SessionId) -> Result<(), Fault> {
    if changed == 0 { Err(SessionError::UnknownSession(id.0.clone()).into()) } else { Ok(()) }
}

/// An error unless the session exists.
pub(crate) fn exists(connection: &Connection, id: &SessionId) -> Result<(), Fault> {
    let found: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)")?
        .query_row([id.as_str()], |row| row.get(0))?;
    if found { Ok(()) } else { Err(SessionError::UnknownSession(id.0.clone()).into()) }
}
