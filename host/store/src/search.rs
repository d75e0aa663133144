//! Searches messages. `docs/use/search.md` describes the query language and what is searched.
//!
//! A query becomes a plan, and a plan becomes SQL: `query`, `plan`, `select`. A question is answered by `ranked` instead, as long
//! as its words are in the index. `index` maintains the indexes, `text` defines which text of a message is in them, `snippet`
//! shows what was found. Every text is a valid query.

mod conversation;
mod index;
mod plan;
mod query;
mod ranked;
mod recall;
mod select;
mod snippet;
mod text;

use std::sync::LazyLock;

use hermes_conversation::{MessageId, Role, SessionId};
use hermes_session_store::{Hit, Matching, Neighbour, SearchQuery, Sort};
use rusqlite::Connection;

use self::plan::Plan;
use self::query::{Alternative, Query, Term, plain_words};
use self::select::{Found, STANDS};
use self::snippet::SNIPPET;
use crate::error::Fault;
use crate::lineage::Lineage;
use crate::log::corrupt;
use crate::{Store, StoreError};

pub(crate) use self::text::register;

/// Characters shown of a message next to a found one.
const NEIGHBOUR: usize = 200;

/// Whether the text of a query is several words without operators, so that it can also be read as a question.
pub(crate) fn may_be_question(query: &SearchQuery) -> bool {
    let parsed = Query::parse(&query.text);
    let is_word = |term: &Term| term.has_words() && !term.prefix && !term.text.contains(char::is_whitespace);
    query.matching == Matching::Language
        && matches!(parsed.alternatives.as_slice(),
            [one] if one.excluded.is_empty() && one.required.len() > 1 && one.required.iter().all(is_word))
}

impl Store {
    /// Finds matching messages with snippets. Every text is a valid query; a text without search terms finds nothing.
    pub fn search(&self, query: &SearchQuery) -> Result<Vec<Hit>, StoreError> {
        let plans = plans(query);
        self.read(|connection| {
            let (plan, found) = find(connection, &plans, query, None)?;
            let mut hits = Vec::with_capacity(found.len());
            let mut texts = Vec::with_capacity(found.len());
            for found in found {
                let (mut hit, text) = hit(connection, found.message)?;
                hit.before = neighbour(connection, &hit, "m.id < ?2 ORDER BY m.id DESC")?;
                hit.after = neighbour(connection, &hit, "m.id > ?2 ORDER BY m.id")?;
                hits.push(hit);
                texts.push(text);
            }
            for (hit, snippet) in hits.iter_mut().zip(snippet::snippets(plan, &texts, SNIPPET)?) {
                hit.snippet = snippet;
            }
            Ok(hits)
        })
    }
}

/// The plans of a query: each further plan is tried if the previous ones find nothing.
fn plans(query: &SearchQuery) -> Vec<Plan> {
    match query.matching {
        Matching::Language => Plan::all(&Query::parse(&query.text)),
        Matching::Any => Plan::any(&plain_words(&query.text)),
        Matching::All => {
            let words = Alternative { required: plain_words(&query.text), excluded: Vec::new() };
            let alternatives = Some(words).filter(|words| !words.required.is_empty()).into_iter().collect();
            Plan::all(&Query { alternatives })
        }
        Matching::Phrase if query.text.is_empty() => Vec::new(),
        Matching::Phrase => vec![Plan::exact(&query.text)],
    }
}

/// The requested page of hits of the first plan with any hits.
fn find<'a>(
    connection: &Connection,
    plans: &'a [Plan],
    query: &SearchQuery,
    conversation: Option<&Lineage>,
) -> Result<(&'a Plan, Vec<Found>), Fault> {
    static NOTHING: LazyLock<Plan> = LazyLock::new(Plan::default);
    if query.matching == Matching::Any
        && query.sort == Sort::Rank
        && let Some(words) = plans.first()
        && let Some(found) = ranked::page(connection, query, conversation)?
    {
        return Ok((words, found));
    }
    for plan in plans {
        let found = select::page(connection, plan, query, conversation)?;
        if !found.is_empty() || exists(connection, plan, query, conversation)? {
            return Ok((plan, found));
        }
    }
    Ok((&*NOTHING, Vec::new()))
}

/// Whether there are hits on an earlier page.
fn exists(
    connection: &Connection,
    plan: &Plan,
    query: &SearchQuery,
    conversation: Option<&Lineage>,
) -> Result<bool, Fault> {
    if query.offset == 0 {
        return Ok(false);
    }
    let first = SearchQuery { sort: Sort::Newest, limit: 1, offset: 0, ..query.clone() };
    Ok(!select::page(connection, plan, &first, conversation)?.is_empty())
}

/// A found message without snippet and neighbours, and its searched text for the snippet.
fn hit(connection: &Connection, id: MessageId) -> Result<(Hit, String), Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT m.session_id, s.title, m.role, m.tool_name, m.created_at, s.source, s.model, s.started_at, \
         search_text(m.content, m.tool_name, m.tool_calls) \
         FROM messages AS m JOIN sessions AS s ON s.id = m.session_id WHERE m.id = ?1",
    )?;
    Ok(statement.query_row([id.0.cast_signed()], |row| {
        let hit = Hit {
            message: id,
            session: SessionId(row.get(0)?),
            title: row.get(1)?,
            role: role(2, &row.get::<_, String>(2)?)?,
            tool_name: row.get(3)?,
            created_at: row.get::<_, i64>(4)?.cast_unsigned(),
            source: row.get(5)?,
            model: row.get(6)?,
            session_started_at: row.get::<_, i64>(7)?.cast_unsigned(),
            snippet: Vec::new(),
            before: None,
            after: None,
        };
        Ok((hit, row.get::<_, String>(8)?))
    })?)
}

/// The nearest visible message of the session.
fn neighbour(connection: &Connection, hit: &Hit, side: &str) -> Result<Option<Neighbour>, Fault> {
    // As bytes: text functions of SQL end at a NUL.
    let mut statement = connection.prepare_cached(&format!(
        "SELECT m.id, m.role, substr(CAST(m.content AS BLOB), 1, {}) FROM messages AS m \
         WHERE m.session_id = ?1 AND {STANDS} AND {side} LIMIT 1",
        NEIGHBOUR * 4
    ))?;
    let mut rows = statement.query((hit.session.as_str(), hit.message.0.cast_signed()))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    // Without content the value is null; the last character may be incomplete.
    let text = row.get::<_, Option<Vec<u8>>>(2)?.unwrap_or_default();
    let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    Ok(Some(Neighbour {
        message: MessageId(row.get::<_, i64>(0)?.cast_unsigned()),
        role: role(1, &row.get::<_, String>(1)?)?,
        text: text.chars().take(NEIGHBOUR).collect(),
    }))
}

fn role(column: usize, text: &str) -> rusqlite::Result<Role> {
    Role::parse(text).ok_or_else(|| corrupt(column, format!("unknown role `{text}`")))
}
