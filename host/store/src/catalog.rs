//! Finding sessions: by id or title, by folder, in a list.

use std::collections::HashSet;
use std::path::Path;

use hermes_conversation::SessionId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Fault;
use crate::known::exists;
use crate::lineage::{self, Lineage};
use crate::session::{COLUMNS, IMPORTED, UNFINISHED, from_row, path_text};
use crate::{ParentKind, SessionError, SessionSummary, Store, StoreError, log, title};

/// Characters of a preview.
const PREVIEW: usize = 60;

/// The least characters of the end of an id.
const LEAST_END: usize = 4;

/// By newest message, then by order of creation: `rowid` decides within one millisecond.
const NEWEST_FIRST: &str = "ORDER BY updated_at DESC, rowid DESC";

/// The sessions that `--continue` may choose: sessions of the command line with messages of their own, and branches. An
/// imported session that waits for the user's decision has another source.
///
/// A continuation without messages shows the same as its parent, so its parent is chosen instead.
const CONTINUABLE: &str = "source = 'cli' AND parent_kind IS NOT 'delegate' \
     AND (message_count > 0 OR (parent_through IS NOT NULL AND parent_kind = 'branch'))";

/// The ids of all sessions, newest first, and of those that wait for the user's decision.
struct Ids {
    all: Vec<SessionId>,
    foreign: HashSet<SessionId>,
}

impl Ids {
    fn read(connection: &Connection) -> Result<Self, Fault> {
        let sql = format!("SELECT id, source FROM sessions WHERE source <> '{UNFINISHED}' {NEWEST_FIRST}");
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
        let waits = |(_, source): &&(String, String)| source.starts_with(IMPORTED);
        let foreign = rows.iter().filter(waits).map(|(id, _)| SessionId(id.clone())).collect();
        let all = rows.into_iter().map(|(id, _)| SessionId(id)).collect();
        Ok(Self { all, foreign })
    }

    fn is_own(&self, id: &SessionId) -> bool {
        !self.foreign.contains(id)
    }
}

impl Store {
    /// Finds the session that a person named by id, by a unique beginning of its id, or by title. If only numbered
    /// sessions have that title, the newest of them. Last come the end of an id and a title in other upper and lower case.
    ///
    /// A stranger's file chooses ids and titles. So an imported session that waits for the user's decision never comes in the
    /// place of an own one: an own title wins, and otherwise a text that fits both is ambiguous.
    pub fn resolve_session(&self, text: &str) -> Result<SessionId, StoreError> {
        // A text that cannot be a title belongs to no session.
        let title = hermes_session_store::title::clean(text).ok().flatten();
        self.read(|connection| {
            let ids = Ids::read(connection)?;
            let holder = match &title {
                Some(title) => title::holder(connection, title)?,
                None => None,
            };
            let numbered = |own: bool| match &title {
                Some(title) => title::newest_numbered(connection, title, |id| ids.is_own(id) == own),
                None => Ok(None),
            };
            let exact = ids.all.iter().find(|id| id.as_str() == text).cloned();
            let named: Vec<SessionId> = exact.into_iter().chain(holder).collect();
            if let Some(own) = named.iter().find(|id| ids.is_own(id)) {
                return Ok(own.clone());
            }
            let only = |mut candidates: Vec<SessionId>| {
                let mut seen = HashSet::new();
                candidates.retain(|id| seen.insert(id.clone()));
                match candidates.len() {
                    1 => Ok(candidates.remove(0)),
                    _ => Err(SessionError::AmbiguousSession { prefix: text.to_owned(), candidates }.into()),
                }
            };
            let begun = ids.all.iter().filter(|id| !text.is_empty() && id.as_str().starts_with(text));
            let begun: Vec<SessionId> = begun.cloned().collect();
            if let Some(foreign) = named.into_iter().next() {
                let own = begun.into_iter().filter(|id| ids.is_own(id));
                return only(own.chain(numbered(true)?).chain([foreign]).collect());
            }
            if begun.is_empty() {
                let newest = match numbered(true)? {
                    None => numbered(false)?,
                    own => own,
                };
                if let Some(newest) = newest {
                    return Ok(newest);
                }
                // Ids begin with a date, so a person remembers the end of one.
                let ends = |id: &&SessionId| text.chars().count() >= LEAST_END && id.as_str().ends_with(text);
                let mut found: Vec<SessionId> = ids.all.iter().filter(ends).cloned().collect();
                if found.is_empty()
                    && let Some(title) = &title
                {
                    found = title::alike(connection, title)?;
                }
                found.retain(|id| ids.is_own(id));
                return match found.is_empty() {
                    true => Err(SessionError::UnknownSession(text.to_owned()).into()),
                    false => only(found),
                };
            }
            let hidden = if begun.iter().any(|id| ids.is_own(id)) { None } else { numbered(true)? };
            only(hidden.into_iter().chain(begun).collect())
        })
    }

    /// The session of a folder to continue: the newest one of the command line.
    ///
    /// Skips sessions without messages, except branches.
    pub fn newest_session(&self, workspace: &Path) -> Result<Option<SessionId>, StoreError> {
        let workspace = path_text(workspace)?;
        self.read(|connection| {
            let sql = format!("SELECT id FROM sessions WHERE workspace = ?1 AND {CONTINUABLE} {NEWEST_FIRST} LIMIT 1");
            Ok(connection.query_row(&sql, [workspace], |row| row.get(0)).optional()?.map(SessionId))
        })
    }

    /// All sessions, newest first.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.read(|connection| summaries(connection, "TRUE", -1))
    }

    /// At most this many sessions of people, newest first. Delegates are left out, and of a continued session only the
    /// last continuation is listed.
    pub fn conversations(&self, most: Option<u64>) -> Result<Vec<SessionSummary>, StoreError> {
        let most = most.map_or(-1, |most| i64::try_from(most).unwrap_or(-1));
        self.read(|connection| {
            // An imported session must not take the place of the user's own in the list.
            let held = "parent_kind IS NOT 'delegate' AND NOT EXISTS (SELECT 1 FROM sessions AS later \
                        WHERE later.parent_id = sessions.id AND later.parent_kind = 'continuation' \
                        AND (later.source NOT GLOB 'imported: *' OR sessions.source GLOB 'imported: *') \
                        AND (sessions.message_count = 0 OR later.message_count > 0 OR EXISTS (SELECT 1 FROM sessions \
                        AS further WHERE further.parent_id = later.id AND further.parent_kind = 'continuation')))";
            summaries(connection, held, most)
        })
    }

    /// The sessions of one conversation, oldest first; each is continued by the next. The last one is the one to
    /// resume.
    ///
    /// Of several continuations, one with messages comes first, then one that was itself continued, then the newest.
    /// After a session with messages, the chain ends before continuations without any. A session that is not on the
    /// chain of its oldest session has a chain of its own.
    pub fn chain(&self, session: &SessionId) -> Result<Vec<SessionId>, StoreError> {
        self.read(|connection| {
            exists(connection, session)?;
            let line = lineage::ancestors(connection, session)?;
            let continued = line.iter().take_while(|(_, kind)| *kind == ParentKind::Continuation);
            let first = continued.last().map_or(session, |(id, _)| id).clone();
            let mut said = holds_messages(connection, &first)?;
            let mut chain = vec![first];
            while let Some(last) = chain.last() {
                match continuation(connection, last, said)? {
                    // Only a damaged file has a cycle.
                    Some(next) if !chain.contains(&next) => {
                        said |= holds_messages(connection, &next)?;
                        chain.push(next);
                    }
                    _ => break,
                }
            }
            Ok(if chain.contains(session) { chain } else { vec![session.clone()] })
        })
    }
}

/// The continuation of a session; with `with_messages`, only one that has messages.
fn continuation(connection: &Connection, session: &SessionId, with_messages: bool) -> Result<Option<SessionId>, Fault> {
    let mut later = connection.prepare_cached(
        "SELECT id FROM sessions WHERE parent_id = ?1 AND parent_kind = 'continuation' \
         ORDER BY EXISTS (SELECT 1 FROM sessions AS further WHERE further.parent_id = sessions.id \
         AND further.parent_kind = 'continuation') DESC, updated_at DESC, rowid DESC",
    )?;
    let ids: Vec<String> = later.query_map([session.as_str()], |row| row.get(0))?.collect::<Result<_, _>>()?;
    // `UNION` drops rows that were found before, so a cycle in a damaged file ends.
    let mut holds = connection.prepare_cached(
        "WITH RECURSIVE line(id) AS (SELECT ?1 UNION SELECT sessions.id FROM sessions JOIN line \
         ON sessions.parent_id = line.id WHERE sessions.parent_kind = 'continuation') \
         SELECT EXISTS (SELECT 1 FROM sessions JOIN line ON sessions.id = line.id WHERE sessions.message_count > 0)",
    )?;
    for id in &ids {
        if holds.query_row([id], |row| row.get(0))? {
            return Ok(Some(SessionId(id.clone())));
        }
    }
    Ok(ids.into_iter().next().filter(|_| !with_messages).map(SessionId))
}

/// Whether a session has messages of its own.
fn holds_messages(connection: &Connection, session: &SessionId) -> Result<bool, Fault> {
    let sql = "SELECT message_count > 0 FROM sessions WHERE id = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([session.as_str()], |row| row.get(0)).optional()?.unwrap_or(false))
}

/// What [`Store::newest_session`] returns for any of the folders.
pub(crate) fn newest_of_each_folder(connection: &Connection) -> Result<HashSet<SessionId>, Fault> {
    let mut statement =
        connection.prepare(&format!("SELECT workspace, id FROM sessions WHERE {CONTINUABLE} {NEWEST_FIRST}"))?;
    let mut rows = statement.query([])?;
    let (mut folders, mut newest) = (HashSet::new(), HashSet::new());
    while let Some(row) = rows.next()? {
        if folders.insert(row.get::<_, String>(0)?) {
            newest.insert(SessionId(row.get(1)?));
        }
    }
    Ok(newest)
}

/// Sessions for a list; a negative `most` means all.
pub(crate) fn summaries(connection: &Connection, which: &str, most: i64) -> Result<Vec<SessionSummary>, Fault> {
    // As bytes: SQL's text functions end at a NUL.
    let mut statement = connection.prepare(&format!(
        "SELECT {COLUMNS}, (SELECT substr(CAST(content AS BLOB), 1, 4096) FROM messages \
         WHERE session_id = sessions.id AND role = 'user' AND NOT EXISTS (SELECT 1 FROM rewound \
         WHERE message_id = messages.id AND rewound.session_id = sessions.id) ORDER BY messages.id LIMIT 1) \
         FROM sessions WHERE source <> '{UNFINISHED}' AND ({which}) {NEWEST_FIRST} LIMIT {most}"
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
            conversation_messages: session.message_count,
            workspace: session.workspace,
            model: session.model,
            parent: session.parent,
            preview: preview(&said.unwrap_or_default()),
            imported: session.imported,
        })
    })?;
    let mut summaries: Vec<SessionSummary> = summaries.collect::<Result<_, _>>()?;
    let shares = |session: &&mut SessionSummary| {
        session.parent.as_ref().is_some_and(|parent| parent.kind != ParentKind::Delegate)
    };
    for session in summaries.iter_mut().filter(shares) {
        // A damaged file may lack a parent; its sessions are listed all the same.
        let Ok(lineage) = lineage::of(connection, &session.id) else { continue };
        session.conversation_messages = log::count(connection, &lineage)?;
        if session.message_count == 0 {
            session.preview = first_said(connection, &lineage)?.map_or_else(String::new, |said| preview(&said));
        }
    }
    Ok(summaries)
}

/// The beginning of the first message of the user in a conversation.
fn first_said(connection: &Connection, lineage: &Lineage) -> Result<Option<Vec<u8>>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT id, substr(CAST(content AS BLOB), 1, 4096) FROM messages WHERE session_id = ?1 AND id <= ?2 AND role = 'user' \
         ORDER BY id",
    )?;
    for stretch in lineage.stretches.iter().rev() {
        let mut rows = statement.query(params![stretch.session, stretch.last_message])?;
        while let Some(row) = rows.next()? {
            if lineage.shows(row.get(0)?) {
                return Ok(Some(row.get(1)?));
            }
        }
    }
    Ok(None)
}

/// The beginning of a message, which may end in the middle of a character.
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
    use crate::{NewSession, Parent};

    #[test]
    fn a_session_is_found_by_its_id_or_a_unique_prefix() {
        let (_home, store) = store();
        let one = store.create_session(NewSession { started_at: 0, ..new_session() }).unwrap().id;
        let two = store.create_session(new_session()).unwrap().id;
        let three = store.create_session(new_session()).unwrap().id;
        assert_eq!(store.resolve_session(one.as_str()).unwrap(), one);
        assert_eq!(store.resolve_session(&one.0[..9]).unwrap(), one);
        let end = &two.0[two.0.len() - 6..];
        assert_eq!(store.resolve_session(end).unwrap(), two, "the end of an id");
        store.set_title(&three, "The Harbour").unwrap();
        assert_eq!(store.resolve_session("the harbour").unwrap(), three, "whatever the case of a title");
        store.set_title(&one, "the harbour").unwrap();
        assert_eq!(store.resolve_session("the harbour").unwrap(), one, "the same case comes first");
        assert!(store.resolve_session("THE HARBOUR").is_err(), "two titles fit");
        for unknown in ["", "nope", "%", "2026_", &end[3..]] {
            assert!(
                matches!(store.resolve_session(unknown), Err(StoreError::Session(SessionError::UnknownSession(text))) if text == unknown)
            );
        }
        let Err(StoreError::Session(SessionError::AmbiguousSession { candidates, .. })) =
            store.resolve_session(&two.0[..15])
        else {
            panic!("two sessions begin with {}", &two.0[..15]);
        };
        assert_eq!(candidates, [three, two]);
    }

    #[test]
    fn a_session_is_found_by_its_title_after_the_ids() {
        let (_home, store) = store();
        let titled =
            |title: &str| store.create_session(NewSession { title: Some(title.into()), ..new_session() }).unwrap().id;
        let (plain, second, tenth) = (titled("Alpha"), titled("Alpha #2"), titled("Beta #10"));
        let ninth = titled("Beta #9");
        assert_eq!(store.resolve_session("Alpha").unwrap(), plain);
        assert_eq!(store.resolve_session("  Alpha  #2 ").unwrap(), second);
        assert_eq!(store.resolve_session("Beta").unwrap(), ninth, "the one that began last");
        assert_eq!(store.resolve_session("Beta #10").unwrap(), tenth);
        assert_eq!(store.resolve_session("alpha").unwrap(), plain, "whatever its case");
        for unknown in ["Alpha%", "Alp", "gamma", "Alpha #", &"x".repeat(500)] {
            assert!(
                matches!(store.resolve_session(unknown), Err(StoreError::Session(SessionError::UnknownSession(text))) if text == unknown)
            );
        }
        // A title that equals the id of another session does not hide that session.
        let imitation = titled(plain.as_str());
        assert_eq!(store.resolve_session(plain.as_str()).unwrap(), plain);
        assert_ne!(imitation, plain);
    }

    #[test]
    fn the_newest_session_is_the_one_of_this_folder_with_the_newest_message() {
        let (_home, store) = store();
        let here = Path::new("/home/ada/engine");
        assert_eq!(store.newest_session(here).unwrap(), None);
        let first = store.create_session(new_session()).unwrap();
        let second = store.create_session(NewSession { started_at: 1_795_300_000_001, ..new_session() }).unwrap();
        assert_eq!(store.newest_session(here).unwrap(), None, "no session has a message yet");
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
    fn an_empty_continuation_does_not_win_over_a_session_with_messages() {
        let (_home, store) = store();
        let here = Path::new("/home/ada/engine");
        let at = |at: u64| 1_795_300_000_000 + at;
        let root = store.create_session(new_session()).unwrap();
        store.append(&root.id, &[Draft::user("hello", at(1))]).unwrap();
        let live = child(&store, &root, ParentKind::Continuation, None);
        store.append(&live.id, &[Draft::user("and on", at(2))]).unwrap();
        let begun = |parent: &SessionId, kind| {
            let parent = Some(Parent { id: parent.clone(), kind, through: None });
            store.create_session(NewSession { parent, started_at: at(50), ..new_session() }).unwrap()
        };
        // Two later sessions without messages: an independent one and a continuation.
        let beside = begun(&root.id, ParentKind::Continuation);
        begun(&beside.id, ParentKind::Continuation);
        let behind = begun(&live.id, ParentKind::Continuation);
        assert_eq!(store.chain(&root.id).unwrap(), [root.id.clone(), live.id.clone()]);
        assert_eq!(store.chain(&behind.id).unwrap(), std::slice::from_ref(&behind.id));
        assert_eq!(store.newest_session(here).unwrap(), Some(live.id.clone()));
        let listed: Vec<SessionId> = store.conversations(None).unwrap().into_iter().map(|session| session.id).collect();
        assert!(listed.contains(&live.id) && !listed.contains(&root.id), "{listed:?}");
        // The user created the branch, so it counts even without messages.
        let branch = begun(&live.id, ParentKind::Branch);
        assert_eq!(store.newest_session(here).unwrap(), Some(branch.id));
    }

    #[test]
    fn a_preview_is_the_beginning_of_the_users_text_on_one_line() {
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
