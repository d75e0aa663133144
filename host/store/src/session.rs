//! Sessions: front end, model, folder, and the session that each one continues. `catalog` finds sessions.

use std::path::{Path, PathBuf};

use hermes_conversation::{MessageId, Model, SessionId};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::Fault;
use crate::known::{exists, known};
use crate::lineage;
use crate::log::{contains, corrupt, end_of};
use crate::prompts;
use crate::{NewSession, Parent, ParentKind, Session, SessionError, Store, StoreError, Totals, title};

/// The source of a session that is still being imported. A session with this source is invisible.
pub(crate) const UNFINISHED: &str = "import, not finished";
/// Precedes the source of a session from somebody's file until the user has decided about the folder and the prompt that the
/// file names. Such a session is visible, but `--continue` never chooses it.
pub(crate) const IMPORTED: &str = "imported: ";

pub(crate) const COLUMNS: &str = "id, source, title, workspace, engine, provider, model, context_length, started_at, updated_at, \
     message_count, parent_id, parent_kind, parent_through";

impl Store {
    /// Stores a new session under a new id.
    pub fn create_session(&self, new: NewSession) -> Result<Session, StoreError> {
        let workspace = path_text(&new.workspace)?;
        let title = new.title.as_deref().map(hermes_session_store::title::clean).transpose()?.flatten();
        let create = |connection: &Connection| {
            let parent = new.parent.as_ref().map(|parent| settle(connection, parent)).transpose()?;
            let frozen = match (&new.frozen, &parent) {
                (None, Some(parent)) if parent.kind != ParentKind::Delegate => prompts::newest(connection, &parent.id)?,
                (frozen, _) => frozen.clone(),
            };
            // The child would otherwise bring the prompt and the folder of the file past the user.
            let source = match &parent {
                Some(parent) if parent.kind != ParentKind::Delegate && is_imported(connection, &parent.id)? => {
                    format!("{IMPORTED}{}", new.source)
                }
                _ => new.source.clone(),
            };
            let id = unused_id(connection, new.started_at)?;
            let newest = |table: &str| -> rusqlite::Result<i64> {
                let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
                connection.prepare_cached(&sql)?.query_row([], |row| row.get(0))
            };
            connection
                .prepare_cached(
                    "INSERT INTO sessions (id, source, workspace, engine, provider, model, context_length, \
                     started_at, updated_at, parent_id, parent_kind, parent_through, parent_view, parent_rewound) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13)",
                )?
                .execute(params![
                    id.as_str(),
                    source,
                    workspace,
                    new.engine,
                    new.model.provider,
                    new.model.name,
                    new.model.context_length,
                    new.started_at.cast_signed(),
                    parent.as_ref().map(|parent| parent.id.as_str()),
                    parent.as_ref().map(|parent| parent.kind.as_str()),
                    parent.as_ref().and_then(|parent| parent.through).map(|id| id.0.cast_signed()),
                    parent.as_ref().map(|_| newest("views")).transpose()?,
                    parent.as_ref().map_or(Ok(0), |_| newest("rewound"))?,
                ])?;
            if let Some(title) = &title {
                title::give(connection, &id, title)?;
            }
            if let Some(frozen) = &frozen {
                prompts::put(connection, &id, frozen, new.started_at)?;
            }
            session(connection, &id)
        };
        // A power failure takes no words with a session that has none.
        if new.parent.is_some() { self.write(create) } else { self.write_unsynced(create) }
    }

    /// Stores a branch of a session: the same folder, engine and model, and its conversation up to a message or to the
    /// end. Without a title it gets the next number of its parent's title.
    pub fn branch(
        &self,
        of: &SessionId,
        at: Option<MessageId>,
        title: Option<&str>,
        now: u64,
    ) -> Result<Session, StoreError> {
        self.create_session(NewSession::branch_of(self.session(of)?, at, title, now))
    }

    /// A session by its id.
    pub fn session(&self, id: &SessionId) -> Result<Session, StoreError> {
        self.read(|connection| session(connection, id))
    }

    /// Ends the wait of an imported session for the user's decision: it works in this folder from now on. Changes nothing if
    /// the session does not wait.
    pub fn settle_import(&self, id: &SessionId, workspace: &Path) -> Result<(), StoreError> {
        let workspace = path_text(workspace)?;
        self.write(|connection| {
            exists(connection, id)?;
            connection.execute(
                "UPDATE sessions SET source = substr(source, ?3), workspace = ?2 \
                 WHERE id = ?1 AND substr(source, 1, ?3 - 1) = ?4",
                params![id.as_str(), workspace, IMPORTED.len() as i64 + 1, IMPORTED],
            )?;
            Ok(())
        })
    }

    /// Records that another model answers from now on.
    pub fn update_model(&self, id: &SessionId, model: &Model) -> Result<(), StoreError> {
        self.write(|connection| {
            let changed = connection.execute(
                "UPDATE sessions SET provider = ?2, model = ?3, context_length = ?4 WHERE id = ?1",
                params![id.as_str(), model.provider, model.name, model.context_length],
            )?;
            known(changed, id)
        })
    }

    /// Records that another context engine decides from now on.
    pub fn update_engine(&self, id: &SessionId, engine: &str) -> Result<(), StoreError> {
        self.write(|connection| {
            let changed =
                connection.execute("UPDATE sessions SET engine = ?2 WHERE id = ?1", params![id.as_str(), engine])?;
            known(changed, id)
        })
    }
}

fn is_imported(connection: &Connection, id: &SessionId) -> Result<bool, Fault> {
    let sql = "SELECT source FROM sessions WHERE id = ?1";
    let source: Option<String> =
        connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0)).optional()?;
    Ok(source.is_some_and(|source| source.starts_with(IMPORTED)))
}

pub(crate) fn path_text(path: &Path) -> Result<&str, StoreError> {
    path.to_str().ok_or_else(|| StoreError::Session(SessionError::WorkspaceName(path.to_owned())))
}

/// Where the parent's conversation ends for the new session.
fn settle(connection: &Connection, parent: &Parent) -> Result<Parent, Fault> {
    let lineage = lineage::of(connection, &parent.id)?;
    let through = match (parent.kind, parent.through) {
        (ParentKind::Delegate, _) => None,
        (_, None) => end_of(connection, &lineage)?,
        (_, Some(message)) => {
            if !contains(connection, &lineage, message)? {
                return Err(SessionError::NoSuchMessage { session: parent.id.clone(), message }.into());
            }
            Some(message)
        }
    };
    Ok(Parent { through, ..parent.clone() })
}

fn unused_id(connection: &Connection, started_at: u64) -> Result<SessionId, Fault> {
    let started = i64::try_from(started_at).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let time =
        started.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system()).strftime("%Y%m%d_%H%M%S").to_string();
    loop {
        let random = getrandom::u32().map_err(StoreError::Random)? & 0x00ff_ffff;
        let id = format!("{time}_{random:06x}");
        let taken: bool =
            connection.query_row("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)", [&id], |row| row.get(0))?;
        if !taken {
            return Ok(SessionId(id));
        }
    }
}

pub(crate) fn session(connection: &Connection, id: &SessionId) -> Result<Session, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, \
         request_count, cost FROM sessions WHERE id = ?1 AND source <> '{UNFINISHED}'"
    ))?;
    let found = statement.query_row([id.as_str()], |row| {
        let mut session = from_row(row)?;
        let total = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
        session.totals = Totals {
            input: total(14)?,
            output: total(15)?,
            cache_read: total(16)?,
            cache_write: total(17)?,
            reasoning: total(18)?,
            requests: total(19)?,
            cost: row.get(20)?,
        };
        Ok(session)
    });
    let session = found.optional()?.ok_or_else(|| StoreError::Session(SessionError::UnknownSession(id.0.clone())))?;
    Ok(Session { frozen: prompts::newest(connection, id)?, ..session })
}

/// A session from [`COLUMNS`], without totals and prompt, which lists do not read.
pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Session> {
    let parent: Option<String> = row.get(11)?;
    let parent = match parent {
        None => None,
        Some(id) => {
            let kind: String = row.get(12)?;
            Some(Parent {
                id: SessionId(id),
                kind: ParentKind::parse(&kind).ok_or_else(|| corrupt(12, format!("unknown parent kind `{kind}`")))?,
                through: row.get::<_, Option<i64>>(13)?.map(|id| MessageId(id.cast_unsigned())),
            })
        }
    };
    let source: String = row.get(1)?;
    let (source, imported) = match source.strip_prefix(IMPORTED) {
        Some(of_file) => (of_file.to_owned(), true),
        None => (source, false),
    };
    Ok(Session {
        id: SessionId(row.get(0)?),
        source,
        title: row.get(2)?,
        workspace: PathBuf::from(row.get::<_, String>(3)?),
        engine: row.get(4)?,
        model: Model { provider: row.get(5)?, name: row.get(6)?, context_length: row.get(7)? },
        frozen: None,
        started_at: row.get::<_, i64>(8)?.cast_unsigned(),
        updated_at: row.get::<_, i64>(9)?.cast_unsigned(),
        message_count: row.get::<_, i64>(10)?.cast_unsigned(),
        totals: Totals::default(),
        parent,
        imported,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Draft;

    use super::*;
    use crate::testing::{new_session, store};
    use crate::{Frozen, PromptNumber, RequestRecord};

    #[test]
    fn a_session_is_read_back_unchanged() {
        let (_home, store) = store();
        let frozen = Frozen {
            number: PromptNumber(1),
            system_prompt: "You are\0 Hermes.\n".into(),
            layers: "[]".into(),
            tools: r#"[ {"name":"a"} ]"#.into(),
            reason: "new".into(),
        };
        let new = NewSession { title: Some(" a  title ".into()), frozen: Some(frozen.clone()), ..new_session() };
        let created = store.create_session(new.clone()).unwrap();
        assert_eq!(created.frozen, Some(frozen));
        assert_eq!(created.title.as_deref(), Some("a title"));
        assert_eq!((created.workspace.clone(), created.model.clone()), (new.workspace, new.model));
        assert_eq!(store.session(&created.id).unwrap(), created);
    }

    #[test]
    fn an_id_is_a_local_time_with_six_digits() {
        let (_home, store) = store();
        let id = store.create_session(new_session()).unwrap().id.0;
        let local = Timestamp::from_millisecond(1_795_300_000_000).unwrap().to_zoned(TimeZone::system());
        assert!(id.starts_with(&local.strftime("%Y%m%d_%H%M%S_").to_string()), "{id}");
        assert!(id.len() == 22 && id[16..].chars().all(|digit| "0123456789abcdef".contains(digit)), "{id}");
    }

    #[test]
    fn a_branch_copies_its_parent_and_gets_the_next_number_of_its_title() {
        let (_home, store) = store();
        let frozen = Some(Frozen { system_prompt: "prompt".into(), ..Frozen::default() });
        let new = NewSession { title: Some("Engine".into()), frozen, ..new_session() };
        let parent = store.create_session(new).unwrap();
        let said = store.append(&parent.id, &[Draft::user("a", 1), Draft::user("b", 2)]).unwrap();
        let branch = store.branch(&parent.id, Some(said[0].id), None, 1_795_300_000_001).unwrap();
        assert_eq!(branch.title.as_deref(), Some("Engine #2"));
        assert_eq!(branch.frozen.unwrap().system_prompt, "prompt");
        assert_eq!((branch.workspace, branch.engine, branch.model), (parent.workspace, parent.engine, parent.model));
        assert_eq!(store.conversation(&branch.id).unwrap(), said[..1]);
        let named = store.branch(&branch.id, None, Some("Another"), 3).unwrap();
        assert_eq!(named.title.as_deref(), Some("Another"));
        assert_eq!(store.conversation(&named.id).unwrap(), said[..1]);
    }

    #[test]
    fn a_model_and_an_engine_are_replaced() {
        let (_home, store) = store();
        let id = store.create_session(new_session()).unwrap().id;
        let model = Model { provider: "openrouter".into(), name: "other".into(), context_length: 8 };
        store.update_model(&id, &model).unwrap();
        store.update_engine(&id, "lossless").unwrap();
        let session = store.session(&id).unwrap();
        assert_eq!((session.model, session.engine.as_str()), (model, "lossless"));
    }

    #[test]
    fn every_change_of_an_unknown_session_is_an_error() {
        let (_home, store) = store();
        let id = SessionId("20260101_000000_000000".into());
        let parent = Some(Parent { id: id.clone(), kind: ParentKind::Delegate, through: None });
        let results = [
            store.session(&id).map(drop),
            store.set_title(&id, "a").map(drop),
            store.record_request(&id, &RequestRecord::default()).map(drop),
            store.requests(&id).map(drop),
            store.update_model(&id, &new_session().model),
            store.update_engine(&id, "lossless"),
            store.freeze(&id, &Frozen::default(), 0).map(drop),
            store.append(&id, &[]).map(drop),
            store.conversation(&id).map(drop),
            store.view(&id).map(drop),
            store.lease(&id).map(drop),
            store.create_session(NewSession { parent, ..new_session() }).map(drop),
        ];
        for result in results {
            assert!(matches!(result, Err(StoreError::Session(SessionError::UnknownSession(text))) if text == id.0));
        }
    }
}
