//! Consecutive failures of context engines, kept across processes.

use hermes_conversation::SessionId;
use jiff::Timestamp;
use rusqlite::params;

use crate::known::exists;
use crate::{EngineFaults, Store, StoreError};

impl Store {
    /// The consecutive failures of all engines in a session, ordered by engine.
    pub fn engine_faults(&self, session: &SessionId) -> Result<Vec<EngineFaults>, StoreError> {
        self.read(|connection| {
            exists(connection, session)?;
            let mut statement = connection.prepare_cached(
                "SELECT engine, in_a_row, cause FROM engine_faults WHERE session_id = ?1 ORDER BY engine",
            )?;
            let faults = statement.query_map([session.as_str()], |row| {
                Ok(EngineFaults { engine: row.get(0)?, in_a_row: row.get(1)?, cause: row.get(2)? })
            })?;
            Ok(faults.collect::<Result<_, _>>()?)
        })
    }

    /// Stores the consecutive failures of an engine; zero forgets them.
    pub fn set_engine_faults(&self, session: &SessionId, faults: &EngineFaults) -> Result<(), StoreError> {
        let EngineFaults { engine, in_a_row, cause } = faults;
        let now = Timestamp::now().as_millisecond();
        self.write(|connection| {
            exists(connection, session)?;
            if *in_a_row == 0 {
                connection
                    .prepare_cached("DELETE FROM engine_faults WHERE session_id = ?1 AND engine = ?2")?
                    .execute(params![session.as_str(), engine])?;
            } else {
                connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO engine_faults (session_id, engine, in_a_row, cause, happened_at) \
                         VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute(params![session.as_str(), engine, in_a_row, cause, now])?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{new_session, store};

    #[test]
    fn faults_are_stored_by_engine_until_they_are_reset() {
        let (home, store) = store();
        let id = store.create_session(new_session()).unwrap().id;
        let faults = |in_a_row| EngineFaults { engine: "a@1.0.0".into(), in_a_row, cause: "late".into() };
        store.set_engine_faults(&id, &faults(2)).unwrap();
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert_eq!(store.engine_faults(&id).unwrap(), [faults(2)]);
        store.set_engine_faults(&id, &faults(0)).unwrap();
        assert_eq!(store.engine_faults(&id).unwrap(), []);
    }
}
