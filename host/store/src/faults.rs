//! How the context engine of a session fares, across processes.

use hermes_conversation::SessionId;
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use crate::{Store, StoreError};

impl Store {
    /// How often an engine failed in a row in a session, and why it did last; none where it did well.
    pub fn engine_faults(&self, session: &SessionId, engine: &str) -> Result<Option<(u32, String)>, StoreError> {
        self.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT in_a_row, cause FROM engine_faults WHERE session_id = ?1 AND engine = ?2")?;
            Ok(statement
                .query_row(params![session.as_str(), engine], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?)
        })
    }

    /// Keeps that; 0 forgets it.
    pub fn set_engine_faults(
        &self,
        session: &SessionId,
        engine: &str,
        in_a_row: u32,
        cause: &str,
    ) -> Result<(), StoreError> {
        let now = Timestamp::now().as_millisecond();
        self.write(|connection| {
            if in_a_row == 0 {
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
    use crate::Store;
    use crate::testing::{new_session, store};

    #[test]
    fn faults_are_kept_by_engine_until_they_are_forgotten() {
        let (home, store) = store();
        let id = store.create_session(new_session()).unwrap().id;
        store.set_engine_faults(&id, "a@1.0.0", 2, "late").unwrap();
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert_eq!(store.engine_faults(&id, "a@1.0.0").unwrap(), Some((2, "late".to_owned())));
        assert_eq!(store.engine_faults(&id, "a@1.1.0").unwrap(), None);
        store.set_engine_faults(&id, "a@1.0.0", 0, "").unwrap();
        assert_eq!(store.engine_faults(&id, "a@1.0.0").unwrap(), None);
    }
}
