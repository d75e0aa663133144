//! Searches across sessions for an agent that asks from one of them: without the conversation that it sees anyway, and with
//! the messages around each hit.

use std::collections::HashMap;

use hermes_conversation::{MessageId, Role, SessionId};
use hermes_session_store::{Finding, Neighbour, Reading, RecallOrder, RecallQuery};
use rusqlite::{Connection, OptionalExtension as _};

use super::select::STANDS;
use super::{Matching, SearchQuery, Sort, find, hit, plans, role, snippet};
use crate::error::Fault;
use crate::session::{IMPORTED, UNFINISHED};
use crate::{SessionError, Store, StoreError};

/// Characters shown of a message next to a found one.
const NEIGHBOUR: usize = 200;

impl Store {
    /// Finds matching messages of all sessions, with excerpts and neighbours. Every text is a valid query.
    pub fn recall(&self, query: &RecallQuery) -> Result<Vec<Finding>, StoreError> {
        let search = SearchQuery {
            matching: match query.reading {
                Reading::Words => Matching::Any,
                Reading::Language => Matching::Language,
            },
            roles: (!query.roles.is_empty()).then(|| query.roles.clone()),
            sources: (!query.sources.is_empty()).then(|| with_imported(&query.sources)),
            without_sources: with_imported(&query.without_sources),
            delegates: false,
            since: query.since,
            until: query.until,
            sort: match query.order {
                RecallOrder::Best => Sort::Rank,
                RecallOrder::Newest => Sort::Newest,
                RecallOrder::Oldest => Sort::Oldest,
            },
            limit: query.limit,
            ..SearchQuery::new(query.text.as_str())
        };
        let plans = plans(&search);
        self.read(|connection| {
            let without_sessions = match &query.asking {
                Some(asking) => tree(connection, &origin(connection, asking)?)?,
                None => Vec::new(),
            };
            let search = SearchQuery { without_sessions, ..search.clone() };
            let (plan, found) = find(connection, &plans, &search, None)?;
            let mut origins: HashMap<SessionId, SessionId> = HashMap::new();
            let (mut findings, mut texts) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
            for found in found {
                let (hit, text) = hit(connection, found.message)?;
                let origin = match origins.get(&hit.session) {
                    Some(known) => known.clone(),
                    None => {
                        let origin = origin(connection, &hit.session)?;
                        origins.insert(hit.session.clone(), origin.clone());
                        origin
                    }
                };
                let around = |side| neighbours(connection, &hit.session, hit.message, side, query.neighbours);
                let (mut before, after) = (around(Side::Before)?, around(Side::After)?);
                before.reverse();
                let (source, imported) = match hit.source.strip_prefix(IMPORTED) {
                    Some(of_file) => (of_file.to_owned(), true),
                    None => (hit.source.clone(), false),
                };
                findings.push(Finding {
                    message: hit.message,
                    session: hit.session,
                    origin,
                    title: hit.title,
                    source,
                    imported,
                    role: hit.role,
                    tool_name: hit.tool_name,
                    created_at: hit.created_at,
                    matches: false,
                    excerpt: String::new(),
                    focus: 0,
                    before,
                    after,
                });
                texts.push(text);
            }
            for (finding, fragments) in findings.iter_mut().zip(snippet::snippets(plan, &texts, snippet::EXCERPT)?) {
                let ahead = fragments.iter().take_while(|fragment| !fragment.matched);
                let ahead: usize = ahead.map(|fragment| fragment.text.len()).sum();
                finding.excerpt = fragments.iter().map(|fragment| fragment.text.as_str()).collect();
                // The words index alone can tell what a sign or a part of a word matches.
                finding.matches = plan.phrases.is_empty() || fragments.iter().any(|fragment| fragment.matched);
                finding.focus = if ahead < finding.excerpt.len() { ahead } else { 0 };
            }
            Ok(findings)
        })
    }

    /// The session with this title, ignoring the case of ASCII letters. An imported session that waits for the user's
    /// decision is not found.
    pub fn titled(&self, title: &str) -> Result<Option<SessionId>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT id FROM sessions WHERE title = ?1 COLLATE NOCASE AND source NOT LIKE ?2 || '%' \
                       AND source <> ?3 ORDER BY updated_at DESC, rowid DESC LIMIT 1";
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_row([title, IMPORTED, UNFINISHED], |row| row.get(0)).optional()?.map(SessionId))
        })
    }

    /// The oldest session from which this one continues, in whatever way.
    pub fn origin(&self, session: &SessionId) -> Result<SessionId, StoreError> {
        self.read(|connection| origin(connection, session))
    }
}

/// Front ends, also of sessions that came from somebody's file.
fn with_imported(sources: &[String]) -> Vec<String> {
    sources.iter().flat_map(|source| [source.clone(), format!("{IMPORTED}{source}")]).collect()
}

fn origin(connection: &Connection, session: &SessionId) -> Result<SessionId, Fault> {
    // `UNION` drops rows that were found before, so a cycle in a damaged file ends.
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE line(id, depth) AS (SELECT id, 0 FROM sessions WHERE id = ?1 UNION \
         SELECT sessions.parent_id, depth + 1 FROM sessions JOIN line ON sessions.id = line.id \
         WHERE sessions.parent_id IS NOT NULL AND depth < 10000) SELECT id FROM line ORDER BY depth DESC LIMIT 1",
    )?;
    let found = statement.query_row([session.as_str()], |row| row.get(0)).optional()?;
    let found = found.ok_or_else(|| StoreError::Session(SessionError::UnknownSession(session.0.clone())))?;
    Ok(SessionId(found))
}

/// A session and everything that continues it.
fn tree(connection: &Connection, origin: &SessionId) -> Result<Vec<SessionId>, Fault> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE tree(id) AS (SELECT ?1 UNION SELECT sessions.id FROM sessions JOIN tree \
         ON sessions.parent_id = tree.id) SELECT id FROM tree",
    )?;
    let ids = statement.query_map([origin.as_str()], |row| row.get(0).map(SessionId))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

/// The nearest visible messages of the session in which the user or the model said something, nearest first.
fn neighbours(
    connection: &Connection,
    session: &SessionId,
    of: MessageId,
    side: Side,
    most: usize,
) -> Result<Vec<Neighbour>, Fault> {
    let (compare, direction) = match side {
        Side::Before => ("<", "DESC"),
        Side::After => (">", "ASC"),
    };
    // As bytes: text functions of SQL end at a NUL.
    let mut statement = connection.prepare_cached(&format!(
        "SELECT m.id, m.role, substr(CAST(m.content AS BLOB), 1, {}) FROM messages AS m WHERE m.session_id = ?1 \
         AND m.id {compare} ?2 AND m.role IN ('{}', '{}') AND m.content <> '' AND {STANDS} \
         ORDER BY m.id {direction} LIMIT ?3",
        NEIGHBOUR * 4,
        Role::User.as_str(),
        Role::Assistant.as_str(),
    ))?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found = statement.query_map((session.as_str(), of.0.cast_signed(), most), |row| {
        // The last character may be incomplete.
        let text: Vec<u8> = row.get(2)?;
        let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        Ok(Neighbour {
            message: MessageId(row.get::<_, i64>(0)?.cast_unsigned()),
            role: role(1, &row.get::<_, String>(1)?)?,
            text: text.chars().take(NEIGHBOUR).collect(),
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
