//! Executes a plan: which messages match, in which order. The rule for which messages are visible is defined here,
//! once.

use std::borrow::Cow;
use std::cmp::Reverse;

use hermes_conversation::{MessageId, SessionId};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::index::SIZE;
use super::plan::{Index, Plan, Selection};
use super::text::{MAX_BYTES, Needle};
use super::{SearchQuery, Sort};
use crate::ParentKind;
use crate::error::Fault;
use crate::lineage::Lineage;
use crate::session::path_text;

macro_rules! stands {
    () => {
        "m.origin = 'said' AND (NOT EXISTS \
         (SELECT 1 FROM rewound WHERE rewound.message_id = m.id AND rewound.session_id = m.session_id) \
         OR EXISTS (WITH RECURSIVE standing (session, hidden) AS ( \
             SELECT session_id, id FROM rewound WHERE message_id = m.id AND session_id = m.session_id \
             UNION SELECT child.id, min( \
                 CASE WHEN standing.hidden > child.parent_rewound THEN 9223372036854775807 ELSE standing.hidden END, \
                 coalesce((SELECT id FROM rewound WHERE message_id = m.id AND session_id = child.id), 9223372036854775807)) \
             FROM standing CROSS JOIN sessions AS child ON child.parent_id = standing.session \
             WHERE child.parent_kind <> 'delegate' AND child.parent_through >= m.id) \
         SELECT 1 FROM standing WHERE hidden = 9223372036854775807))"
    };
}

/// The condition for visible messages, for a message `m` and its session `s`. A message is visible if it was not written by
/// the host, and if it is not rewound or a branch still shows it.
///
/// The recursion goes from the session to its children, as long as the message comes before the branch point, as in
/// `lineage`. `hidden` is the first row of `rewound` that hides the message, or a number above all rows. Rewinds of a parent
/// after a child was created do not affect the child and its descendants.
pub(crate) const VISIBLE: &str = concat!("s.source <> 'import, not finished' AND ", stands!());

/// [`VISIBLE`] without the condition on the session, for sessions that are known to be visible.
pub(super) const STANDS: &str = stands!();

/// The most hits that are ranked, newest first. Ranking all hits of a common word in a million messages would take a
/// second.
const MAX_RANKED: i64 = 2_000;
/// The most ranked hits in one conversation, where the oldest message may be the best hit.
const MAX_RANKED_IN_CONVERSATION: i64 = 20_000;

/// A message that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) message: MessageId,
    /// The rank, if known; higher is better.
    pub(crate) score: Option<f64>,
}

/// The requested page of hits in all messages or in one conversation.
pub(crate) fn page(
    connection: &Connection,
    plan: &Plan,
    query: &SearchQuery,
    conversation: Option<&Lineage>,
) -> Result<Vec<Found>, Fault> {
    let Some(filter) = Filter::of(connection, query, conversation)? else { return Ok(Vec::new()) };
    let (limit, offset) = (clamped(query.limit), clamped(query.offset));
    let found = match plan.selections.as_slice() {
        [] => Vec::new(),
        [one] => ids(connection, one, &filter, query.sort, limit, offset, plan.is_ranked())?,
        many => {
            let mut found = Vec::new();
            for one in many {
                found.extend(ids(connection, one, &filter, query.sort, limit.saturating_add(offset), 0, false)?);
            }
            match query.sort {
                Sort::Oldest => found.sort_unstable_by_key(|found| found.message),
                Sort::Rank | Sort::Newest => found.sort_unstable_by_key(|found| Reverse(found.message)),
            }
            found.dedup_by_key(|found| found.message);
            found.into_iter().skip(query.offset).take(query.limit).collect()
        }
    };
    Ok(found)
}

/// Limits a number to SQL's range.
fn clamped(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn ids(
    connection: &Connection,
    selection: &Selection,
    filter: &Filter,
    sort: Sort,
    limit: i64,
    offset: i64,
    ranked: bool,
) -> Result<Vec<Found>, Fault> {
    let statement = Statement::of(selection, filter, sort, limit, offset, ranked);
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    let found = prepared.query_map(params_from_iter(statement.values), |row| {
        let message = MessageId(row.get::<_, i64>(0)?.cast_unsigned());
        // SQLite's BM25 is lower for better matches.
        Ok(Found { message, score: row.get::<_, Option<f64>>(1)?.map(|rank| -rank) })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// SQL with the values of its parameters, in order.
#[derive(Debug, Default)]
struct Statement {
    sql: String,
    values: Vec<Value>,
}

impl Statement {
    fn of(selection: &Selection, filter: &Filter, sort: Sort, limit: i64, offset: i64, ranked: bool) -> Self {
        let mut statement = Self::default();
        let ranked = ranked && sort == Sort::Rank;
        let (table, column) = match &selection.index {
            Index::Words(_) => ("messages_fts", "messages_fts.rowid"),
            Index::Trigrams(_) => ("messages_fts_trigram", "messages_fts_trigram.rowid"),
            Index::Beginning(_) => (
                "(SELECT DISTINCT doc FROM messages_fts_trigram_terms WHERE term >= ? AND term < ?) AS found",
                "found.doc",
            ),
            Index::Messages | Index::LongMessages => ("messages AS m", "m.id"),
        };
        let rank = if ranked { "bm25(messages_fts)" } else { "NULL" };
        let messages = match &selection.index {
            Index::Messages | Index::LongMessages => String::new(),
            _ => format!("CROSS JOIN messages AS m ON m.id = {column}"),
        };
        let text = match &selection.index {
            Index::LongMessages => "search_whole(m.content, m.tool_name, m.tool_calls)",
            _ => "search_text(m.content, m.tool_name, m.tool_calls)",
        };
        // This order lets SQLite scan the index and stop after enough hits.
        statement.sql = format!(
            "SELECT {column} AS id, {rank} AS rank FROM {table} {messages} \
             CROSS JOIN sessions AS s ON s.id = m.session_id WHERE "
        );
        match &selection.index {
            Index::Words(expression) | Index::Trigrams(expression) => {
                statement.and(&format!("{table} MATCH ?"), [expression.clone().into()]);
            }
            Index::Beginning(text) => {
                statement.values.extend([text.clone().into(), format!("{text}\u{10ffff}").into()]);
                statement.and("TRUE", []);
            }
            Index::Messages => statement.and("TRUE", []),
            Index::LongMessages => {
                let longest = i64::try_from(MAX_BYTES).unwrap_or(i64::MAX);
                statement.and(&format!("{SIZE} > ?"), [longest.into()]);
            }
        }
        if let Some((first, last)) = filter.within {
            statement.and(&format!("{column} BETWEEN ? AND ?"), [first.into(), last.into()]);
        }
        // The plus keeps SQLite from querying the other index once for each row.
        for (expression, not) in [(&selection.words, ""), (&selection.not_words, "NOT ")] {
            if let Some(expression) = expression {
                let sql = format!("+{column} {not}IN (SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?)");
                statement.and(&sql, [expression.clone().into()]);
            }
        }
        filter.add_to(&mut statement.sql, &mut statement.values);
        for (needles, not) in [(&selection.holds, ""), (&selection.holds_not, "NOT ")] {
            for Needle { folded, at_word } in needles {
                let sql = format!("{not}search_holds({text}, ?, ?)");
                statement.and(&sql, [folded.clone().into(), i64::from(*at_word).into()]);
            }
        }
        statement.and(VISIBLE, []);
        let direction = if sort == Sort::Oldest { "ASC" } else { "DESC" };
        statement.sql.push_str(&format!(" ORDER BY {column} {direction}"));
        if ranked {
            let most = filter.most_ranked;
            statement.sql = format!("SELECT id, rank FROM ({} LIMIT {most}) ORDER BY rank, id DESC", statement.sql);
        }
        statement.sql.push_str(" LIMIT ? OFFSET ?");
        statement.values.extend([limit.into(), offset.into()]);
        statement
    }

    fn and(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        if !self.sql.ends_with("WHERE ") {
            self.sql.push_str(" AND ");
        }
        self.sql.push_str(condition);
        self.values.extend(values);
    }
}

/// SQL for a message `m` and its session `s`, with the values of its parameters.
type Condition = (Cow<'static, str>, Vec<Value>);

/// The filters of a search.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// The conversation to search.
    pub(super) within: Option<(i64, i64)>,
    /// Conditions for the session of a message.
    of_session: Vec<Condition>,
    /// Conditions for a message itself.
    of_message: Vec<Condition>,
    /// The most hits that are ranked.
    most_ranked: i64,
}

impl Filter {
    /// `None` if no message can match.
    pub(super) fn of(
        connection: &Connection,
        query: &SearchQuery,
        conversation: Option<&Lineage>,
    ) -> Result<Option<Self>, Fault> {
        let mut filter = Self { most_ranked: MAX_RANKED, ..Self::default() };
        if let Some(conversation) = conversation {
            filter.most_ranked = MAX_RANKED_IN_CONVERSATION;
            if !filter.only_of(connection, conversation)? {
                return Ok(None);
            }
        }
        let mut and = |sql: &'static str, value: Value| filter.of_session.push((sql.into(), vec![value]));
        if let Some(session) = &query.session {
            crate::known::exists(connection, session)?;
            // Two subqueries: one query with both would read the whole session.
            let ends = "SELECT (SELECT min(id) FROM messages WHERE session_id = ?1), \
                        (SELECT max(id) FROM messages WHERE session_id = ?1)";
            filter.within =
                match connection.query_row(ends, [session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))? {
                    (Some(first), Some(last)) => Some((first, last)),
                    _ => return Ok(None),
                };
            filter.of_message.push(("m.session_id = ?".into(), vec![session.0.clone().into()]));
        }
        if let Some(workspace) = &query.workspace {
            and("s.workspace = ?", path_text(workspace)?.to_owned().into());
        }
        if let Some(sources) = &query.sources {
            and("s.source IN (SELECT value FROM json_each(?))", list(sources.iter().map(String::as_str)));
        }
        if !query.without_sources.is_empty() {
            and(
                "s.source NOT IN (SELECT value FROM json_each(?))",
                list(query.without_sources.iter().map(String::as_str)),
            );
        }
        if !query.without_sessions.is_empty() {
            and(
                "s.id NOT IN (SELECT value FROM json_each(?))",
                list(query.without_sessions.iter().map(SessionId::as_str)),
            );
        }
        if !query.delegates {
            and("s.parent_kind IS NOT ?", ParentKind::Delegate.as_str().to_owned().into());
        }
        if let Some(roles) = &query.roles {
            let roles = list(roles.iter().map(|role| role.as_str()));
            filter.of_message.push(("m.role IN (SELECT value FROM json_each(?))".into(), vec![roles]));
        }
        if let Some(tools) = &query.tools {
            let tools = list(tools.iter().map(String::as_str));
            filter.of_message.push((
                "(m.tool_name IN (SELECT value FROM json_each(?)) OR EXISTS (SELECT 1 FROM json_each(m.tool_calls) AS call \
                 WHERE call.value ->> 'name' IN (SELECT value FROM json_each(?))))"
                    .into(),
                vec![tools.clone(), tools],
            ));
        }
        let mut and = |sql: &'static str, value: u64| filter.of_message.push((sql.into(), vec![signed(value).into()]));
        if let Some(since) = query.since {
            and("m.created_at >= ?", since);
        }
        if let Some(until) = query.until {
            and("m.created_at < ?", until);
        }
        if let Some(range) = query.within {
            let (first, last) = filter.within.unwrap_or((0, i64::MAX));
            filter.within = Some((first.max(signed(range.first.0)), last.min(signed(range.last.0))));
        }
        // Without this, every message would be compared to find that none passes.
        if (query.sources.is_some() || query.workspace.is_some()) && !filter.has_sessions(connection)? {
            return Ok(None);
        }
        Ok(Some(filter))
    }

    /// Whether the messages of some session can pass.
    fn has_sessions(&self, connection: &Connection) -> Result<bool, Fault> {
        let (mut sql, mut values) = (String::from("SELECT EXISTS (SELECT 1 FROM sessions AS s WHERE TRUE"), Vec::new());
        add(&self.of_session, &mut sql, &mut values);
        sql.push(')');
        Ok(connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?)
    }

    /// Adds the conditions, for a message `m` and its session `s`, to a statement that has some already.
    pub(super) fn add_to(&self, sql: &mut String, values: &mut Vec<Value>) {
        add(self.of_session.iter().chain(&self.of_message), sql, values);
    }

    /// Adds the conditions for another message `m` of a session whose messages pass.
    pub(super) fn add_within(&self, sql: &mut String, values: &mut Vec<Value>) {
        if let Some((first, last)) = self.within {
            // The plus keeps SQLite from reading a whole session from here on, instead of the nearest messages.
            sql.push_str(" AND +m.id BETWEEN ? AND ?");
            values.extend([first.into(), last.into()]);
        }
        add(&self.of_message, sql, values);
    }

    /// Limits the filter to a conversation. Returns whether it has messages.
    fn only_of(&mut self, connection: &Connection, conversation: &Lineage) -> Result<bool, Fault> {
        // Two subqueries: one query with both would read every message.
        let mut ends = connection.prepare_cached(
            "SELECT (SELECT min(id) FROM messages WHERE session_id = ?1 AND id <= ?2), \
             (SELECT max(id) FROM messages WHERE session_id = ?1 AND id <= ?2)",
        )?;
        // A CASE list has a constant depth for any number of sessions.
        let mut sql = String::from("m.id <= CASE m.session_id");
        let mut values: Vec<Value> = Vec::new();
        for stretch in &conversation.stretches {
            let ends =
                ends.query_row((&stretch.session, stretch.last_message), |row| Ok((row.get(0)?, row.get(1)?)))?;
            let (Some(first), Some(last)): (Option<i64>, Option<i64>) = ends else { continue };
            let (from, to) = self.within.unwrap_or((first, last));
            self.within = Some((from.min(first), to.max(last)));
            sql.push_str(" WHEN ? THEN ?");
            values.extend([stretch.session.clone().into(), last.into()]);
        }
        sql.push_str(" ELSE -1 END");
        self.of_message.push((sql.into(), values));
        if !conversation.rewound.is_empty() {
            let rewound = serde_json::Value::from_iter(conversation.rewound.iter().copied()).to_string();
            self.of_message.push(("m.id NOT IN (SELECT value FROM json_each(?))".into(), vec![rewound.into()]));
        }
        Ok(self.within.is_some())
    }
}

fn add<'a>(conditions: impl IntoIterator<Item = &'a Condition>, sql: &mut String, values: &mut Vec<Value>) {
    for (condition, parameters) in conditions {
        sql.push_str(" AND ");
        sql.push_str(condition);
        values.extend(parameters.iter().cloned());
    }
}

/// Limits a number to SQL's range.
fn signed(number: u64) -> i64 {
    number.min(i64::MAX as u64).cast_signed()
}

/// A list as one value for `json_each`.
fn list<'a>(texts: impl Iterator<Item = &'a str>) -> Value {
    serde_json::Value::from_iter(texts).to_string().into()
}
