//! Notes of the program: short values by name.

use rusqlite::OptionalExtension as _;

use crate::{Store, StoreError};

impl Store {
    /// The note of this name.
    pub fn note(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT value FROM state_meta WHERE key = ?1")?;
            Ok(statement.query_row([name], |row| row.get(0)).optional()?)
        })
    }

    /// Replaces a note; `None` removes it.
    pub fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), StoreError> {
        self.write(|connection| {
            match value {
                Some(value) => connection
                    .prepare_cached("INSERT OR REPLACE INTO state_meta (key, value) VALUES (?1, ?2)")?
                    .execute([name, value])?,
                None => connection.prepare_cached("DELETE FROM state_meta WHERE key = ?1")?.execute([name])?,
            };
            Ok(())
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::Store;
    use crate::testing::store;

    #[test]
    fn a_note_stays_until_it_is_replaced_or_removed() {
        let (home, store) = store();
        assert_eq!(store.note("pruned").unwrap(), None);
        store.set_note("pruned", Some("2026\0")).unwrap();
        store.set_note("other", Some("")).unwrap();
        store.set_note("pruned", Some("2027")).unwrap();
        drop(store);
        let store = Store::open(home.path()).unwrap();
        assert_eq!(store.note("pruned").unwrap().as_deref(), Some("2027"));
        assert_eq!(store.note("other").unwrap().as_deref(), Some(""));
        store.set_note("pruned", None).unwrap();
        assert_eq!(store.note("pruned").unwrap(), None);
    }
}
