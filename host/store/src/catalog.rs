//! Finding sessions: by id, by folder, in a list.

use std::path::{Path, PathBuf};

use hermes_conversation::{Model, SessionId};
use rusqlite::OptionalExtension as _;
use serde::Serialize;

use crate::session::{COLUMNS, from_row, path_text};
use crate::{Parent, Store, StoreError};

/// Characters of a preview.
const PREVIEW: usize = 60;

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// Where it is held, such as `cli`.
    pub source: String,
    /// Unix time in milliseconds.
    pub started_at: u64,
    /// When its last message was made; Unix time in milliseconds.
    pub updated_at: u64,
    /// Messages of its own, without those of a parent.
    pub message_count: u64,
    /// The folder that it works in.
    pub workspace: PathBuf,
    /// The model that answers.
    pub model: Model,
    /// The session that it goes on from.
    pub parent: Option<Parent>,
    /// The first 60 characters that the user said in it, on one line; empty where they said nothing.
    pub preview: String,
}

/// By message, then by the order of creation: `rowid` settles what fell into one millisecond.
const NEWEST_FIRST: &str = "ORDER BY updated_at DESC, rowid DESC";

impl Store {
    /// The session with this id, or the only one whose id begins with this text.
    pub fn resolve_session(&self, text: &str) -> Result<SessionId, StoreError> {
        let ids: Vec<String> = self.read(|connection| {
            let mut statement = connection.prepare(&format!("SELECT id FROM sessions {NEWEST_FIRST}"))?;
            let ids = statement.query_map([], |row| row.get(0))?;
            Ok(ids.collect::<Result<_, _>>()?)
        })?;
        if ids.iter().any(|id| id == text) {
            return Ok(SessionId(text.to_owned()));
        }
        let fits = |id: &String| !text.is_empty() && id.starts_with(text);
        let mut candidates: Vec<SessionId> = ids.into_iter().filter(fits).map(SessionId).collect();
        match candidates.len() {
            0 => Err(StoreError::UnknownSession(text.to_owned())),
            1 => Ok(candidates.remove(0)),
            _ => Err(StoreError::AmbiguousSession { prefix: text.to_owned(), candidates }),
        }
    }

    /// The conversation of a folder to go on with: the one of the command line that spoke last.
    ///
    /// A session in which nothing was said is passed over, unless it is a branch.
    pub fn newest_session(&self, workspace: &Path) -> Result<Option<SessionId>, StoreError> {
        let workspace = path_text(workspace)?;
        self.read(|connection| {
            let sql = format!(
                "SELECT id FROM sessions WHERE workspace = ?1 AND source = 'cli' \
                 AND parent_kind IS NOT 'delegate' AND (message_count > 0 OR parent_through IS NOT NULL) \
                 {NEWEST_FIRST} LIMIT 1"
            );
            Ok(connection.query_row(&sql, [workspace], |row| row.get(0)).optional()?.map(SessionId))
        })
    }

    /// All sessions, the one that spoke last first.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.read(|connection| {
            // As bytes: text functions of SQL end at a NUL.
            let mut statement = connection.prepare(&format!(
                "SELECT {COLUMNS}, (SELECT substr(CAST(content AS BLOB), 1, 4096) FROM messages \
                 WHERE session_id = sessions.id AND role = 'user' ORDER BY messages.id LIMIT 1) \
                 FROM sessions {NEWEST_FIRST}"
            ))?;
            let summaries = statement.query_map([], |row| {
                let session = from_row(row)?;
                let said: Option<Vec<u8>> = row.get(14)?;
                Ok(SessionSummary {
                    id: session.id,
                    title: session.title,
                    source: session.source,
                    started_at: session.started_at,
                    updated_at: session.updated_at,
                    message_count: session.message_count,
                    workspace: session.workspace,
                    model: session.model,
                    parent: session.parent,
                    preview: preview(&said.unwrap_or_default()),
                })
            })?;
            Ok(summaries.collect::<Result<_, _>>()?)
        })
    }
}

/// From the beginning of a message, which may end in the middle of a character.
fn preview(said: &[u8]) -> String {
    let whole = said.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(PREVIEW).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Draft;

    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{NewSession, ParentKind};

    #[test]
    fn a_session_is_found_by_its_id_or_a_prefix_that_only_it_has() {
        let (_home, store) = store();
        let one = store.create_session(NewSession { started_at: 0, ..new_session() }).unwrap().id;
        let two = store.create_session(new_session()).unwrap().id;
        let three = store.create_session(new_session()).unwrap().id;
        assert_eq!(store.resolve_session(one.as_str()).unwrap(), one);
        assert_eq!(store.resolve_session(&one.0[..9]).unwrap(), one);
        for unknown in ["", "nope", "%", "2026_"] {
            assert!(matches!(store.resolve_session(unknown), Err(StoreError::UnknownSession(text)) if text == unknown));
        }
        let Err(StoreError::AmbiguousSession { candidates, .. }) = store.resolve_session(&two.0[..15]) else {
            panic!("two sessions begin with {}", &two.0[..15]);
        };
        assert_eq!(candidates, [three, two]);
    }

    #[test]
    fn the_newest_session_is_the_one_of_this_folder_that_spoke_last() {
        let (_home, store) = store();
        let here = Path::new("/home/ada/engine");
        assert_eq!(store.newest_session(here).unwrap(), None);
        let first = store.create_session(new_session()).unwrap();
        let second = store.create_session(NewSession { started_at: 1_795_300_000_001, ..new_session() }).unwrap();
        assert_eq!(store.newest_session(here).unwrap(), None, "nothing was said yet");
        let elsewhere = store.create_session(NewSession { workspace: "/tmp".into(), ..new_session() }).unwrap();
        let served = store.create_session(NewSession { source: "serve".into(), ..new_session() }).unwrap();
        let delegate = child(&store, &first, ParentKind::Delegate, None);
        for (session, at) in [(&second, 1), (&first, 2), (&elsewhere, 3), (&served, 4), (&delegate, 5)] {
            store.append(&session.id, &[Draft::user("hello", 1_795_300_000_000 + at)]).unwrap();
        }
        assert_eq!(store.newest_session(here).unwrap(), Some(first.id.clone()));
        let order: Vec<SessionId> = store.sessions().unwrap().into_iter().map(|summary| summary.id).collect();
        assert_eq!(order, [delegate.id, served.id, elsewhere.id, first.id, second.id]);
    }

    #[test]
    fn a_preview_is_the_first_words_of_the_user_on_one_line() {
        let long = format!("  naïve\n\n\tquestion {}", "é".repeat(5000));
        let cases = [
            ("hello", "hello".to_owned()),
            ("a\0b", "a\0b".to_owned()),
            (long.as_str(), format!("naïve question {}", "é".repeat(45))),
        ];
        for (said, shown) in cases {
            let (_home, store) = store();
            let session = store.create_session(new_session()).unwrap();
            assert_eq!(store.sessions().unwrap()[0].preview, "");
            let drafts = [Draft::assistant("first", Vec::new(), 1), Draft::user(said, 2), Draft::user("later", 3)];
            store.append(&session.id, &drafts).unwrap();
            assert_eq!(store.sessions().unwrap()[0].preview, shown);
        }
    }
}
