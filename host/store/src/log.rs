//! The log of messages: appended once, read in order.

use hermes_conversation::{Draft, Message, MessageId, Origin, Part, Role, SessionId, ToolCall};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::Fault;
use crate::lineage::{self, Lineage};
use crate::{SessionError, Store, StoreError, blobs};

/// The columns that [`from_row`] reads.
pub(crate) const COLUMNS: &str =
    "id, role, content, sent, reasoning, tool_calls, tool_call_id, tool_name, origin, created_at, parts, author";

impl Store {
    /// Appends messages to a session, all or none, and returns them with their ids.
    ///
    /// When this returns, they are on the disk.
    pub fn append(&self, session: &SessionId, drafts: &[Draft]) -> Result<Vec<Message>, StoreError> {
        check(drafts)?;
        let ids = self.write(|connection| append(connection, session, drafts))?;
        Ok(drafts.iter().map(blobs::stripped).zip(ids).map(|(draft, id)| draft.numbered(id)).collect())
    }

    /// A session's conversation: the messages of its ancestors, then its own, without rewound ones.
    pub fn conversation(&self, session: &SessionId) -> Result<Vec<Message>, StoreError> {
        self.read(|connection| {
            let lineage = lineage::of(connection, session)?;
            since(connection, &lineage, MessageId(0))
        })
    }
}

/// Refuses messages that cannot be stored.
pub(crate) fn check(drafts: &[Draft]) -> Result<(), StoreError> {
    if drafts.iter().any(|draft| draft.role == Role::System) {
        return Err(SessionError::SystemMessage.into());
    }
    drafts.iter().try_for_each(blobs::check)
}

/// The messages of a conversation from this id on.
pub(crate) fn since(connection: &Connection, lineage: &Lineage, first: MessageId) -> Result<Vec<Message>, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM messages WHERE session_id = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id"
    ))?;
    let mut messages = Vec::new();
    for stretch in lineage.stretches.iter().rev() {
        let rows =
            statement.query_map(params![stretch.session, first.0.cast_signed(), stretch.last_message], from_row)?;
        for message in rows {
            let message = message?;
            if lineage.shows(message.id.0.cast_signed()) {
                messages.push(message);
            }
        }
    }
    Ok(messages)
}

/// How many messages a conversation has.
pub(crate) fn count(connection: &Connection, lineage: &Lineage) -> Result<u64, Fault> {
    let mut statement = connection.prepare_cached("SELECT id FROM messages WHERE session_id = ?1 AND id <= ?2")?;
    let mut count = 0;
    for stretch in &lineage.stretches {
        let ids = statement.query_map(params![stretch.session, stretch.last_message], |row| row.get::<_, i64>(0))?;
        for id in ids {
            count += u64::from(lineage.shows(id?));
        }
    }
    Ok(count)
}

/// Appends checked messages. Their ids grow in the order of the drafts.
pub(crate) fn append(connection: &Connection, session: &SessionId, drafts: &[Draft]) -> Result<Vec<MessageId>, Fault> {
    let last = drafts.iter().map(|draft| draft.created_at.cast_signed()).max();
    let count = i64::try_from(drafts.len()).unwrap_or(i64::MAX);
    let changed = connection
        .prepare_cached(
            "UPDATE sessions SET message_count = message_count + ?2, updated_at = max(updated_at, coalesce(?3, 0)) \
             WHERE id = ?1",
        )?
        .execute(params![session.as_str(), count, last])?;
    if changed == 0 {
        return Err(SessionError::UnknownSession(session.0.clone()).into());
    }
    drafts.iter().map(|draft| Ok(MessageId(insert(connection, session, draft)?.cast_unsigned()))).collect()
}

/// Inserts a message; its id is higher than all others.
pub(crate) fn insert(connection: &Connection, session: &SessionId, draft: &Draft) -> Result<i64, Fault> {
    let tool_calls = (!draft.tool_calls.is_empty()).then(|| to_json(&draft.tool_calls)).transpose()?;
    let parts = (!draft.parts.is_empty()).then(|| to_json(&blobs::stripped(draft).parts)).transpose()?;
    let author = draft.author.as_ref().map(to_json).transpose()?;
    let row = connection
        .prepare_cached(
            "INSERT INTO messages (session_id, role, content, sent, reasoning, tool_calls, tool_call_id, tool_name, \
             origin, created_at, parts, author) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .insert(params![
            session.as_str(),
            draft.role.as_str(),
            draft.content,
            draft.sent,
            draft.reasoning,
            tool_calls,
            draft.tool_call_id,
            draft.tool_name,
            origin_text(draft.origin),
            draft.created_at.cast_signed(),
            parts,
            author,
        ])?;
    blobs::put(connection, row, draft)?;
    Ok(row)
}

/// The last message of a conversation.
pub(crate) fn end_of(connection: &Connection, lineage: &Lineage) -> Result<Option<MessageId>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM messages WHERE session_id = ?1 AND id <= ?2 ORDER BY id DESC")?;
    for stretch in &lineage.stretches {
        let ids = statement.query_map(params![stretch.session, stretch.last_message], |row| row.get::<_, i64>(0))?;
        for id in ids {
            let id = id?;
            if lineage.shows(id) {
                return Ok(Some(MessageId(id.cast_unsigned())));
            }
        }
    }
    Ok(None)
}

/// Whether a message is part of a conversation.
pub(crate) fn contains(connection: &Connection, lineage: &Lineage, id: MessageId) -> Result<bool, Fault> {
    let id = id.0.cast_signed();
    let session: Option<String> =
        connection.query_row("SELECT session_id FROM messages WHERE id = ?1", [id], |row| row.get(0)).optional()?;
    let within = session.is_some_and(|session| {
        lineage.stretches.iter().any(|stretch| stretch.session == session && id <= stretch.last_message)
    });
    Ok(within && lineage.shows(id))
}

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Message> {
    let role: String = row.get(1)?;
    let origin: String = row.get(8)?;
    let tool_calls: Option<String> = row.get(5)?;
    let parts: Option<String> = row.get(10)?;
    let author: Option<String> = row.get(11)?;
    let draft = Draft {
        role: Role::parse(&role).ok_or_else(|| corrupt(1, format!("unknown role `{role}`")))?,
        content: row.get(2)?,
        sent: row.get(3)?,
        reasoning: row.get(4)?,
        tool_calls: match tool_calls {
            Some(json) => from_json::<Vec<ToolCall>>(5, &json)?,
            None => Vec::new(),
        },
        tool_call_id: row.get(6)?,
        tool_name: row.get(7)?,
        parts: parts.map_or_else(|| Ok(Vec::new()), |json| parts_from_json(&json))?,
        author: author.map(|json| from_json(11, &json)).transpose()?,
        origin: [Origin::Said, Origin::Host]
            .into_iter()
            .find(|known| origin_text(*known) == origin)
            .ok_or_else(|| corrupt(8, format!("unknown origin `{origin}`")))?,
        created_at: row.get::<_, i64>(9)?.cast_unsigned(),
    };
    Ok(draft.numbered(MessageId(row.get::<_, i64>(0)?.cast_unsigned())))
}

/// An unknown kind of part must not be dropped silently.
fn parts_from_json(json: &str) -> rusqlite::Result<Vec<Part>> {
    serde_json::from_str(json).map_err(|error| {
        let text = error.to_string();
        let newer = text.contains("unknown variant");
        corrupt(10, if newer { format!("{text}: a newer version of hermes wrote this message") } else { text })
    })
}

fn origin_text(origin: Origin) -> &'static str {
    match origin {
        Origin::Said => "said",
        Origin::Host => "host",
    }
}

/// A column contains a value that this program never writes.
pub(crate) fn corrupt(column: usize, what: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.into())
}

pub(crate) fn from_json<T: serde::de::DeserializeOwned>(column: usize, json: &str) -> rusqlite::Result<T> {
    serde_json::from_str(json).map_err(|error| corrupt(column, error.to_string()))
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{ParentKind, Session};

    fn any_draft() -> impl Strategy<Value = Draft> {
        let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool)];
        let call = (any::<String>(), any::<String>(), any::<String>()).prop_map(|(id, name, arguments)| ToolCall {
            id,
            name,
            arguments,
        });
        let texts = (any::<String>(), any::<Option<String>>(), any::<Option<String>>());
        let links = (any::<Option<String>>(), any::<Option<String>>());
        (role, texts, prop::collection::vec(call, 0..3), links, any::<bool>(), any::<u64>()).prop_map(
            |(role, (content, sent, reasoning), tool_calls, (tool_call_id, tool_name), said, created_at)| Draft {
                role,
                content,
                sent,
                reasoning,
                tool_calls,
                tool_call_id,
                tool_name,
                parts: Vec::new(),
                author: None,
                origin: if said { Origin::Said } else { Origin::Host },
                created_at,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_conversation_is_read_back_unchanged(batches in prop::collection::vec(prop::collection::vec(any_draft(), 0..4), 0..4)) {
            let (home, store) = store();
            let session = store.create_session(new_session()).unwrap();
            let mut written = Vec::new();
            for batch in &batches {
                written.extend(store.append(&session.id, batch).unwrap());
            }
            let drafts: Vec<Draft> = written.iter().map(|message| message.draft.clone()).collect();
            prop_assert_eq!(drafts, batches.concat());
            prop_assert!(written.windows(2).all(|pair| pair[0].id < pair[1].id));
            drop(store);
            let store = Store::open(home.path()).unwrap();
            prop_assert_eq!(store.conversation(&session.id).unwrap(), written.clone());
            prop_assert_eq!(store.session(&session.id).unwrap().message_count, written.len() as u64);
        }
    }

    #[test]
    fn nul_characters_and_ten_megabytes_are_stored_unchanged() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let text = format!("\0begin\0{}\0end\0", "错误 ".repeat(1_500_000));
        let call = ToolCall { id: "a\0".into(), name: "b".into(), arguments: format!("{{\"x\":\"{text}\"}}") };
        let drafts = [Draft::user(text.clone(), 1), Draft::assistant(text, vec![call], 2)];
        let written = store.append(&session.id, &drafts).unwrap();
        assert!(written[0].content.len() > 10_000_000);
        assert!(store.conversation(&session.id).unwrap() == written);
    }

    #[test]
    fn a_batch_is_stored_completely_or_not_at_all() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let system = Draft { role: Role::System, ..Draft::user("be", 2) };
        let error = store.append(&session.id, &[Draft::user("hello", 1), system]).unwrap_err();
        assert!(matches!(error, StoreError::Session(SessionError::SystemMessage)));
        assert_eq!(store.conversation(&session.id).unwrap(), []);
        assert_eq!(store.session(&session.id).unwrap(), session);
    }

    fn say(store: &Store, session: &Session, texts: &[&str]) -> Vec<u64> {
        let drafts: Vec<Draft> = texts.iter().map(|text| Draft::user(*text, 1)).collect();
        store.append(&session.id, &drafts).unwrap().iter().map(|message| message.id.0).collect()
    }

    fn said(store: &Store, session: &Session) -> Vec<String> {
        store.conversation(&session.id).unwrap().into_iter().map(|message| message.draft.content).collect()
    }

    #[test]
    fn a_branch_has_its_parents_messages_up_to_the_branch_point() {
        let (_home, store) = store();
        let root = store.create_session(new_session()).unwrap();
        let ids = say(&store, &root, &["a", "b", "c"]);
        let early = child(&store, &root, ParentKind::Branch, Some(ids[1]));
        let late = child(&store, &root, ParentKind::Continuation, None);
        let delegate = child(&store, &root, ParentKind::Delegate, None);
        say(&store, &root, &["d"]);
        say(&store, &early, &["e"]);
        let second = child(&store, &early, ParentKind::Branch, None);
        let back = child(&store, &second, ParentKind::Branch, Some(ids[0]));
        for session in [&early, &late, &delegate, &second, &back] {
            say(&store, session, &["own"]);
        }
        assert_eq!(said(&store, &root), ["a", "b", "c", "d"]);
        assert_eq!(said(&store, &early), ["a", "b", "e", "own"]);
        assert_eq!(said(&store, &late), ["a", "b", "c", "own"]);
        assert_eq!(said(&store, &delegate), ["own"]);
        assert_eq!(said(&store, &second), ["a", "b", "e", "own"]);
        assert_eq!(said(&store, &back), ["a", "own"]);
    }

    #[test]
    fn a_branch_of_an_empty_session_stays_without_its_later_messages() {
        let (_home, store) = store();
        let root = store.create_session(new_session()).unwrap();
        let branch = child(&store, &root, ParentKind::Branch, None);
        say(&store, &root, &["a"]);
        assert_eq!(said(&store, &branch), Vec::<String>::new());
    }

    #[test]
    fn a_branch_point_must_be_a_message_of_the_parent() {
        let (_home, store) = store();
        let root = store.create_session(new_session()).unwrap();
        let other = store.create_session(new_session()).unwrap();
        say(&store, &root, &["a"]);
        let elsewhere = say(&store, &other, &["b"])[0];
        for through in [elsewhere, 99] {
            let parent = Some(crate::Parent {
                id: root.id.clone(),
                kind: ParentKind::Branch,
                through: Some(MessageId(through)),
            });
            let error = store.create_session(crate::NewSession { parent, ..new_session() }).unwrap_err();
            assert!(
                matches!(error, StoreError::Session(SessionError::NoSuchMessage { message: MessageId(id), .. }) if id == through)
            );
        }
    }
}
