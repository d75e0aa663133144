//! Opens and repairs the store of sessions. Only this file knows which adapter has them; everything else uses the port.

use std::io;
use std::path::Path;
use std::sync::Arc;

use hermes_session_store::{SessionStore, StoreError};
use hermes_store::{SqliteSessions, Store};

pub(crate) use hermes_store::codes;
pub use hermes_store::{Outcome, Repair};

/// Opens the store of a home, and creates both if they are missing.
pub(crate) fn open(home: &Path) -> Result<Arc<dyn SessionStore>, StoreError> {
    Ok(port(Store::open(home)?))
}

/// Opens the store of a home to read it; `None` if there is none.
pub(crate) fn open_to_read(home: &Path) -> Result<Option<Arc<dyn SessionStore>>, StoreError> {
    Ok(Store::open_read_only(home)?.map(port))
}

/// Opens the store of a home to check it; `None` if there is none. It is opened for writing where that is possible, so that
/// problems with that are found too.
pub(crate) fn open_to_check(home: &Path) -> Result<Option<Arc<dyn SessionStore>>, StoreError> {
    let Some(reader) = Store::open_read_only(home)? else { return Ok(None) };
    Ok(Some(port(match Store::open(home) {
        Err(hermes_store::StoreError::ReadOnly { .. }) => reader,
        store => store?,
    })))
}

/// The error if the database of a home belongs to another program. Writes nothing.
pub(crate) fn foreign(home: &Path) -> Option<StoreError> {
    Store::foreign(home).map(StoreError::from)
}

/// Repairs the store of a home if it is damaged. No other process may use it.
pub(crate) fn repair(home: &Path) -> Result<Repair, StoreError> {
    Ok(hermes_store::repair(home)?)
}

/// Whether a database belongs to this program. Hermes Agent calls its own `state.db`, too.
pub fn is_own_database(database: &Path) -> bool {
    /// The place of the application id in the header of SQLite.
    const PLACE: usize = 68;
    let header = hermes_private_files::open_regular(database).and_then(|mut file| {
        let mut header = [0; PLACE + 4];
        io::Read::read_exact(&mut file, &mut header).map(|()| header)
    });
    header.is_ok_and(|header| header[PLACE..] == hermes_store::APPLICATION_ID.to_be_bytes())
}

fn port(store: Store) -> Arc<dyn SessionStore> {
    Arc::new(SqliteSessions::new(Arc::new(store)))
}
