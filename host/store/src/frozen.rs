//! The prompt with which all requests of a session begin: system prompt and tools, byte for byte. A rebuilt prompt is
//! stored after the earlier ones, so that every request can be reconstructed as it was sent.

use hermes_conversation::SessionId;
use rusqlite::{OptionalExtension as _, params};

use crate::known::exists;
use crate::prompts::{COLUMNS, from_row, put};
use crate::{Frozen, PromptNumber, Store, StoreError};

impl Store {
    /// Stores the prompt with which the session's requests begin from now on. The same prompt as before keeps its
    /// number.
    ///
    /// Returns its number; the given number is ignored.
    pub fn freeze(&self, id: &SessionId, frozen: &Frozen, now: u64) -> Result<PromptNumber, StoreError> {
        self.write_unsynced(|connection| {
            exists(connection, id)?;
            put(connection, id, frozen, now)
        })
    }

    /// One of the prompts of a session.
    pub fn frozen(&self, id: &SessionId, number: PromptNumber) -> Result<Option<Frozen>, StoreError> {
        self.read(|connection| {
            exists(connection, id)?;
            let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = ?1 AND number = ?2");
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(statement.query_row(params![id.as_str(), number.0.cast_signed()], from_row).optional()?)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ParentKind;
    use crate::testing::{child, new_session, store};

    fn frozen(system_prompt: &str, tools: &str) -> Frozen {
        Frozen { system_prompt: system_prompt.into(), tools: tools.into(), ..Frozen::default() }
    }

    #[test]
    fn a_prompt_stays_current_until_another_one_is_stored() {
        let (_home, store) = store();
        let parent = store.create_session(new_session()).unwrap();
        assert_eq!(parent.frozen, None);
        assert_eq!(store.freeze(&parent.id, &frozen("prompt", "[]"), 1).unwrap(), PromptNumber(1));
        assert_eq!(store.freeze(&parent.id, &frozen("prompt", "[]"), 2).unwrap(), PromptNumber(1));
        let branch = child(&store, &parent, ParentKind::Branch, None);
        assert_eq!(store.freeze(&parent.id, &frozen("prompt", "[ ]"), 3).unwrap(), PromptNumber(2));

        let newest = store.session(&parent.id).unwrap().frozen.unwrap();
        assert_eq!((newest.number.0, newest.tools.as_str()), (2, "[ ]"));
        assert_eq!(store.frozen(&parent.id, PromptNumber(1)).unwrap().unwrap().tools, "[]");
        assert_eq!(store.frozen(&parent.id, PromptNumber(3)).unwrap(), None);
        assert_eq!(branch.frozen.unwrap().tools, "[]");
        assert_eq!(child(&store, &parent, ParentKind::Delegate, None).frozen, None);
    }
}
