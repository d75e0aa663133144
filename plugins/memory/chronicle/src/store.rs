//! What was said, and the indexes to find it.

use hermes_guest_backend::{cut, without_fence};
use hermes_plugin::memory_provider::Turn;
use hermes_plugin::sql::{self, Statement, Value};
use hermes_plugin::{Error, clock, params};

use crate::when;

/// Bytes of a message that are kept.
const MESSAGE: usize = 64 << 10;
/// Expressions of time in a message that are kept.
const MOMENTS: usize = 8;
const MINUTE: i64 = 60_000;
const DAY: i64 = 1_440 * MINUTE;

/// A message stores the ids of its neighbours in the conversation, because the ids of several conversations interleave. The index
/// of words divides a text as the ranking does, so that scripts without blanks are found too. The index of parts finds words
/// inside longer ones.
const TABLES: [&str; 9] = [
    "CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, conversation TEXT NOT NULL, first INTEGER NOT NULL, \
     last INTEGER NOT NULL, part INTEGER NOT NULL, is_reply INTEGER NOT NULL, speaker TEXT NOT NULL, at INTEGER NOT NULL, day INTEGER NOT NULL, \
     text TEXT NOT NULL, before INTEGER, after INTEGER, UNIQUE (conversation, first, part))",
    "CREATE INDEX IF NOT EXISTS message_day ON message (day)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', contentless_delete=1, \
     tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS parts USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram')",
    "CREATE TABLE IF NOT EXISTS moment (message INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS moment_since ON moment (since)",
    "CREATE INDEX IF NOT EXISTS moment_message ON moment (message)",
    "CREATE TABLE IF NOT EXISTS vector (message INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS fact (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, day INTEGER NOT NULL, \
     sources TEXT NOT NULL)",
];
const MORE_TABLES: [&str; 2] = [
    "CREATE VIRTUAL TABLE IF NOT EXISTS fact_words USING fts5(text, content='', contentless_delete=1, \
     tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE TABLE IF NOT EXISTS progress (what TEXT PRIMARY KEY, message INTEGER NOT NULL)",
];

pub(crate) fn create() -> Result<(), Error> {
    let statements: Vec<Statement> =
        TABLES.iter().chain(&MORE_TABLES).map(|table| Statement::new(*table, params![])).collect();
    sql::execute(&statements).map(|_| ())
}

/// The user's day at this time, in days since 1970.
pub(crate) fn day_of(at: i64) -> i64 {
    (at + i64::from(clock::utc_offset()) * MINUTE).div_euclid(DAY)
}

pub(crate) fn today() -> i64 {
    day_of(i64::try_from(clock::now()).unwrap_or(i64::MAX / 2))
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Keeps a turn. One that is delivered again changes nothing.
pub(crate) fn keep(turn: &Turn) -> Result<(), Error> {
    let first = integer(turn.messages.first);
    let known = sql::query_one::<(i64,)>(
        "SELECT id FROM message WHERE conversation = ?1 AND first = ?2",
        params![turn.session_id.as_str(), first],
    )?;
    if known.is_some() {
        return Ok(());
    }
    let at = i64::try_from(turn.ended_at).unwrap_or(i64::MAX / 2);
    let day = day_of(at);
    let speaker = turn.author.as_ref().and_then(|author| author.name.as_deref()).unwrap_or_default();
    let mut statements = Vec::new();
    for (part, (text, speaker)) in [(&turn.user, speaker), (&turn.assistant, "")].into_iter().enumerate() {
        let text = without_fence(cut(text, MESSAGE));
        if text.is_empty() {
            continue;
        }
        statements.extend(keeping(turn, first, part, speaker, at, day, &text));
    }
    sql::execute(&statements).map(|_| ())
}

/// The statements that keep a message. `last_insert_rowid` names it only until the next insertion, so they look it up.
fn keeping(turn: &Turn, first: i64, part: usize, speaker: &str, at: i64, day: i64, text: &str) -> Vec<Statement> {
    const ID: &str = "(SELECT id FROM message WHERE conversation = ?1 AND first = ?2 AND part = ?3)";
    let part = i64::try_from(part).unwrap_or(i64::MAX);
    let name = || -> Vec<Value> { params![turn.session_id.as_str(), first, part] };
    let with = |more: Vec<Value>| name().into_iter().chain(more).collect::<Vec<_>>();
    let mut statements = vec![
        Statement::new(
            "INSERT INTO message (conversation, first, part, last, is_reply, speaker, at, day, text, before) VALUES \
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, (SELECT id FROM message WHERE conversation = ?1 AND (first, part) < (?2, ?3) \
             ORDER BY first DESC, part DESC LIMIT 1))",
            with(params![integer(turn.messages.last), i64::from(part > 0), speaker, at, day, text]),
        ),
        Statement::new(
            format!("UPDATE message SET after = {ID} WHERE id = (SELECT before FROM message WHERE id = {ID})"),
            name(),
        ),
        Statement::new(
            format!("INSERT INTO words (rowid, text) VALUES ({ID}, ?4)"),
            with(params![hermes_ranking::indexed(text)]),
        ),
        Statement::new(format!("INSERT INTO parts (rowid, text) VALUES ({ID}, ?4)"), with(params![text])),
    ];
    let named: Vec<when::Days> = when::find(text, day).into_iter().take(MOMENTS).collect();
    statements.extend(named.into_iter().map(|days| {
        Statement::new(
            format!("INSERT INTO moment (message, since, until) VALUES ({ID}, ?4, ?5)"),
            with(params![days.since, days.until]),
        )
    }));
    statements
}

/// Forgets the turns of a conversation to which a message or a later one belongs, and the facts that come from nothing else.
pub(crate) fn forget(conversation: &str, first: u64) -> Result<(), Error> {
    let gone = || -> Vec<Value> { params![conversation, integer(first)] };
    let which = "(SELECT id FROM message WHERE conversation = ?1 AND last >= ?2)";
    let mut statements = Vec::new();
    for (table, id) in [("words", "rowid"), ("parts", "rowid"), ("moment", "message"), ("vector", "message")] {
        statements.push(Statement::new(format!("DELETE FROM {table} WHERE {id} IN {which}"), gone()));
    }
    statements.extend([
        Statement::new(format!("UPDATE message SET after = NULL WHERE after IN {which}"), gone()),
        Statement::new("DELETE FROM message WHERE conversation = ?1 AND last >= ?2", gone()),
        Statement::new(
            "DELETE FROM fact_words WHERE rowid IN (SELECT f.id FROM fact f WHERE NOT EXISTS \
             (SELECT 1 FROM json_each(f.sources) s JOIN message m ON m.id = s.value))",
            params![],
        ),
        Statement::new(
            "DELETE FROM fact WHERE NOT EXISTS (SELECT 1 FROM json_each(fact.sources) s JOIN message m ON m.id = s.value)",
            params![],
        ),
    ]);
    sql::execute(&statements).map(|_| ())
}
