//! Data that outlives an instance: facts read ahead, notes written by a model, and the state of each session.
//!
//! This is a cache. Whatever is missing, denied or damaged is read from the conversation again. A mark (hash) on each
//! entry detects entries that another log left under the same message ids.

use std::collections::BTreeMap;

use hermes_plugin::sql::{Statement, Value};
use hermes_plugin::{Error, MessageId, MessageRange};
use serde::{Deserialize, Serialize};

use crate::current_view::Rows;
use crate::fact::{Fact, Kind};
use crate::gist::Gist;
use crate::segment::Note;
use crate::source::Database;
use hermes_guest_engine::fnv;

/// Version of the tables and of the rules that fill them. A database of another version is rebuilt.
const VERSION: i64 = 2;
/// Most facts returned by one query: more than any segment has room for.
const MOST: i64 = 3_000;
/// Ranges up to this many messages are read in full; longer ones return only their most important facts.
const NEAR: usize = 2_000;

const SCHEMA: [&str; 7] = [
    "CREATE TABLE read_group (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, mark INTEGER NOT NULL)",
    "CREATE TABLE fact (id INTEGER NOT NULL, n INTEGER NOT NULL, group_first INTEGER NOT NULL, kind INTEGER NOT NULL, \
     same INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, n)) WITHOUT ROWID",
    "CREATE INDEX fact_weight ON fact (kind, id)",
    "CREATE TABLE note (first INTEGER NOT NULL, last INTEGER NOT NULL, mark INTEGER NOT NULL, text TEXT NOT NULL, \
     PRIMARY KEY (first, last)) WITHOUT ROWID",
    "CREATE TABLE session (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE gist (key TEXT PRIMARY KEY, mark INTEGER NOT NULL, gist TEXT NOT NULL) WITHOUT ROWID",
    "PRAGMA user_version = 2",
];
const TABLES: [&str; 5] = ["read_group", "fact", "note", "gist", "session"];

/// Stored state of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// The newest folded message.
    pub(crate) folded: MessageId,
    /// Tokens of all segments, and of the working set.
    pub(crate) prefix: u32,
    pub(crate) working: u32,
    pub(crate) segments: u32,
    pub(crate) publications: u32,
    /// Reason of the last published view.
    pub(crate) reason: String,
    /// Fingerprint of the last refused plan.
    pub(crate) refused: Option<String>,
}

/// Retry state of note writing. Stored apart from `State`: another instance writes the notes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NoteBackoff {
    /// Consecutive failures.
    pub(crate) failures: u32,
    /// Time (Unix milliseconds) before which no note is tried.
    pub(crate) retry_at: u64,
}

/// A record stored once per session.
pub(crate) trait SessionRecord: Default + Serialize + serde::de::DeserializeOwned {
    /// Prefix of the record's key; the session id follows it.
    const PREFIX: &'static str;
}

impl SessionRecord for State {
    const PREFIX: &'static str = "state:";
}

impl SessionRecord for NoteBackoff {
    const PREFIX: &'static str = "notes:";
}

/// The database, opened on first use.
pub(crate) struct Storage<D> {
    database: D,
    open: bool,
}

impl<D: Database> Storage<D> {
    pub(crate) fn new(database: D) -> Self {
        Self { database, open: false }
    }

    fn open(&mut self) -> Result<&D, Error> {
        if !self.open {
            let rows = self.database.query("PRAGMA user_version", Vec::new())?;
            let version = rows.rows.first().and_then(|row| row.first()?.as_integer()).unwrap_or_default();
            if version != VERSION {
                let drops = TABLES.iter().map(|table| format!("DROP TABLE IF EXISTS {table}"));
                let all = drops.chain(SCHEMA.iter().map(|sql| (*sql).to_owned()));
                self.database.execute(&all.map(|sql| Statement::new(sql, Vec::new())).collect::<Vec<_>>())?;
            }
            self.open = true;
        }
        Ok(&self.database)
    }

    /// The groups in a span whose facts are stored, each as the id of its first message.
    pub(crate) fn is_read(&mut self, rows: &Rows, span: std::ops::Range<usize>) -> Result<Vec<MessageId>, Error> {
        if span.is_empty() {
            return Ok(Vec::new());
        }
        let (first, last) = (rows.get(span.start).id, rows.get(span.end - 1).id);
        let found = self.open()?.query(
            "SELECT first, last, mark FROM read_group WHERE first BETWEEN ?1 AND ?2 ORDER BY first",
            vec![first.into(), last.into()],
        )?;
        let read = found.rows.iter().filter_map(|row| {
            let [first, last, mark] = integers(row)?;
            let group = group_of(rows, first.cast_unsigned(), last.cast_unsigned())?;
            (rows.mark(group).cast_signed() == mark).then_some(first.cast_unsigned())
        });
        Ok(read.collect())
    }

    /// Stores the facts of groups, replacing earlier facts of the same groups.
    pub(crate) fn keep(&mut self, rows: &Rows, groups: &[(std::ops::Range<usize>, Vec<Fact>)]) -> Result<(), Error> {
        let mut statements = Vec::new();
        for (group, facts) in groups {
            let (first, last) = (rows.get(group.start).id, rows.get(group.end - 1).id);
            statements.push(Statement::new(
                // Restrict to this group: messages of other sessions can lie between its ids.
                "DELETE FROM fact WHERE id BETWEEN ?1 AND ?2 AND group_first = ?1",
                vec![first.into(), last.into()],
            ));
            for fact in facts {
                statements.push(Statement::new(
                    "INSERT OR REPLACE INTO fact (id, n, group_first, kind, same, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    vec![
                        fact.id.into(),
                        i64::from(fact.n).into(),
                        first.into(),
                        i64::from(fact.kind.number()).into(),
                        fact.same.cast_signed().into(),
                        fact.text.as_str().into(),
                    ],
                ));
            }
            statements.push(Statement::new(
                "INSERT OR REPLACE INTO read_group (first, last, mark) VALUES (?1, ?2, ?3)",
                vec![first.into(), last.into(), rows.mark(group.clone()).cast_signed().into()],
            ));
        }
        self.execute(&statements)
    }

    fn execute(&mut self, statements: &[Statement]) -> Result<(), Error> {
        match self.open()?.execute(statements) {
            // Over quota: drop the cache of old conversations. It can be read again.
            Err(error) if error.code == "quota" => {
                let empty = ["fact", "read_group", "note", "gist"];
                let empty: Vec<Statement> =
                    empty.iter().map(|table| Statement::new(format!("DELETE FROM {table}"), Vec::new())).collect();
                self.open()?.execute(&empty)?;
                self.open()?.execute(statements)
            }
            other => other,
        }
    }

    /// The stored gist of a segment, if it was made from exactly these messages.
    pub(crate) fn gist(&mut self, rows: &Rows, key: &str, covers: &[MessageRange]) -> Result<Option<Gist>, Error> {
        let found = self.open()?.query("SELECT mark, gist FROM gist WHERE key = ?1", vec![key.into()])?;
        let Some([mark, text]) = found.rows.first().map(Vec::as_slice) else { return Ok(None) };
        let holds = mark.as_integer() == Some(covered(rows, covers));
        Ok(text.as_text().filter(|_| holds).and_then(|text| serde_json::from_str(text).ok()))
    }

    pub(crate) fn keep_gist(
        &mut self,
        rows: &Rows,
        key: &str,
        covers: &[MessageRange],
        gist: &Gist,
    ) -> Result<(), Error> {
        let text = serde_json::to_string(gist)?;
        self.execute(&[Statement::new(
            "INSERT OR REPLACE INTO gist (key, mark, gist) VALUES (?1, ?2, ?3)",
            vec![key.into(), covered(rows, covers).into(), text.into()],
        )])
    }

    /// The facts of ranges in message order: all of a short range, the most important of a long one.
    pub(crate) fn facts(&mut self, rows: &Rows, ranges: &[MessageRange]) -> Result<Vec<Fact>, Error> {
        const NEAREST: &str = "SELECT f.id, f.n, f.group_first, f.kind, f.same, f.text, g.last, g.mark FROM fact f JOIN \
             read_group g ON g.first = f.group_first WHERE f.id BETWEEN ?1 AND ?2 ORDER BY f.id DESC LIMIT ?3";
        const WEIGHTIEST: &str = "SELECT f.id, f.n, f.group_first, f.kind, f.same, f.text, g.last, g.mark FROM fact f \
             INDEXED BY fact_weight JOIN read_group g ON g.first = f.group_first WHERE f.id BETWEEN ?1 AND ?2 ORDER BY \
             f.kind DESC, f.id DESC LIMIT ?3";
        let mut facts = Vec::new();
        let mut thresholds: BTreeMap<u64, u64> = BTreeMap::new();
        for range in ranges {
            let span = rows.span(*range);
            let sql = if span.len() <= NEAR { NEAREST } else { WEIGHTIEST };
            let params = vec![range.first.into(), range.last.into(), MOST.into()];
            for row in self.open()?.query(sql, params)?.rows {
                let Some([id, n, first, kind, same]) = integers(&row) else { continue };
                let (Some(text), Some([last, mark])) = (row.get(5).and_then(Value::as_text), integers(&row[6..]))
                else {
                    continue;
                };
                let group = first.cast_unsigned();
                let Some(known) = thresholds.get(&group).copied().or_else(|| {
                    let known = rows.mark(group_of(rows, group, last.cast_unsigned())?);
                    thresholds.insert(group, known);
                    Some(known)
                }) else {
                    continue;
                };
                let Some(kind) = Kind::from_number(kind).filter(|_| known == mark.cast_unsigned()) else { continue };
                facts.push(Fact {
                    id: id.cast_unsigned(),
                    n: u32::try_from(n).unwrap_or_default(),
                    group,
                    kind,
                    same: same.cast_unsigned(),
                    text: text.to_owned(),
                });
            }
        }
        facts.sort_unstable_by_key(|fact| (fact.id, fact.n));
        facts.dedup_by_key(|fact| (fact.id, fact.n));
        Ok(facts)
    }

    /// Deletes the gists of segments that are no longer in the view.
    pub(crate) fn forget_gists(&mut self, keys: &[String]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let forget = |key: &String| Statement::new("DELETE FROM gist WHERE key = ?1", vec![key.as_str().into()]);
        self.open()?.execute(&keys.iter().map(forget).collect::<Vec<_>>())
    }

    /// Notes that lie within a range and whose messages are unchanged.
    pub(crate) fn notes(&mut self, rows: &Rows, range: MessageRange) -> Result<Vec<Note>, Error> {
        let found = self.open()?.query(
            "SELECT first, last, mark, text FROM note WHERE first >= ?1 AND last <= ?2 ORDER BY first DESC LIMIT 100",
            vec![range.first.into(), range.last.into()],
        )?;
        let mut notes: Vec<Note> = found
            .rows
            .iter()
            .filter_map(|row| {
                let [first, last, mark] = integers(row)?;
                let (first, last) = (first.cast_unsigned(), last.cast_unsigned());
                let span = rows.position(first)?..rows.position(last)? + 1;
                let holds = rows.mark(span).cast_signed() == mark;
                holds.then(|| Some(Note { first, last, text: row.get(3)?.as_text()?.to_owned() }))?
            })
            .collect();
        notes.reverse();
        Ok(notes)
    }

    pub(crate) fn keep_note(&mut self, rows: &Rows, note: &Note) -> Result<(), Error> {
        let span = rows.span(MessageRange::new(note.first, note.last));
        let mark = rows.mark(span).cast_signed();
        self.open()?.execute(&[Statement::new(
            "INSERT OR REPLACE INTO note (first, last, mark, text) VALUES (?1, ?2, ?3, ?4)",
            vec![note.first.into(), note.last.into(), mark.into(), note.text.as_str().into()],
        )])
    }

    /// A record of the session, or its default if none is stored.
    pub(crate) fn state<T: SessionRecord>(&mut self, session: &str) -> Result<T, Error> {
        let id = format!("{}{session}", T::PREFIX);
        let found = self.open()?.query("SELECT state FROM session WHERE id = ?1", vec![id.into()])?;
        let text = found.rows.first().and_then(|row| row.first()?.as_text());
        Ok(text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
    }

    pub(crate) fn keep_state<T: SessionRecord>(&mut self, session: &str, state: &T) -> Result<(), Error> {
        let id = format!("{}{session}", T::PREFIX);
        let text = serde_json::to_string(state)?;
        self.open()?.execute(&[Statement::new(
            "INSERT OR REPLACE INTO session (id, state) VALUES (?1, ?2)",
            vec![id.into(), text.into()],
        )])
    }
}

/// The mark of all messages in these ranges.
fn covered(rows: &Rows, covers: &[MessageRange]) -> i64 {
    let thresholds = covers.iter().map(|range| rows.mark(rows.span(*range)));
    fnv(thresholds.flat_map(u64::to_le_bytes)).cast_signed()
}

fn integers<const N: usize>(row: &[Value]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    for (number, value) in numbers.iter_mut().zip(row) {
        *number = value.as_integer()?;
    }
    (row.len() >= N).then_some(numbers)
}

/// The group from `first` to `last`, if this conversation has exactly that group.
fn group_of(rows: &Rows, first: MessageId, last: MessageId) -> Option<std::ops::Range<usize>> {
    let at = rows.position(first)?;
    let group = rows.group(at);
    (group.start == at && rows.get(group.end - 1).id == last).then_some(group)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Sqlite, headers};

    fn rows(count: u64) -> Rows {
        let mut rows = Rows::default();
        rows.observe(&headers(&(1..=count).map(|id| (id, 100)).collect::<Vec<_>>()));
        rows
    }

    fn fact(id: u64, kind: Kind) -> Fact {
        Fact { id, n: 1, group: id, kind, same: u64::MAX - id, text: format!("fact {id}") }
    }

    #[test]
    fn facts_are_read_back_as_stored() {
        let rows = rows(4);
        let mut storage = Storage::new(Sqlite::new());
        let groups = [(0..1, vec![fact(1, Kind::User)]), (2..3, vec![fact(3, Kind::Change)])];
        storage.keep(&rows, &groups).unwrap();
        storage.keep(&rows, &groups).unwrap();
        assert_eq!(storage.is_read(&rows, 0..4).unwrap(), [1, 3]);
        let facts = storage.facts(&rows, &[MessageRange::new(1, 4)]).unwrap();
        assert_eq!(facts, [fact(1, Kind::User), fact(3, Kind::Change)]);
        assert!(storage.facts(&rows, &[MessageRange::new(2, 2)]).unwrap().is_empty());
    }

    #[test]
    fn facts_of_another_log_under_the_same_ids_are_ignored() {
        let (mine, mut other) = (rows(4), Rows::default());
        other.observe(&headers(&(1..=4).map(|id| (id, 101)).collect::<Vec<_>>()));
        let mut storage = Storage::new(Sqlite::new());
        storage.keep(&other, &[(0..1, vec![fact(1, Kind::User)])]).unwrap();
        storage.keep_note(&other, &Note { first: 1, last: 2, text: "n".into() }).unwrap();
        assert!(storage.is_read(&mine, 0..4).unwrap().is_empty());
        assert!(storage.facts(&mine, &[MessageRange::new(1, 4)]).unwrap().is_empty());
        assert!(storage.notes(&mine, MessageRange::new(1, 4)).unwrap().is_empty());
        assert_eq!(storage.notes(&other, MessageRange::new(1, 4)).unwrap().len(), 1);
    }

    #[test]
    fn a_long_range_returns_its_most_important_facts() {
        let rows = rows(5_000);
        let kind = |id: u64| if id.is_multiple_of(100) { Kind::User } else { Kind::Look };
        let groups: Vec<_> =
            (0..5_000).map(|at| (at..at + 1, vec![fact(at as u64 + 1, kind(at as u64 + 1))])).collect();
        let mut storage = Storage::new(Sqlite::new());
        storage.keep(&rows, &groups).unwrap();
        let facts = storage.facts(&rows, &[MessageRange::new(1, 5_000)]).unwrap();
        assert_eq!(facts.len(), 3_000);
        assert_eq!(facts.iter().filter(|fact| fact.kind == Kind::User).count(), 50);
        assert!(facts.windows(2).all(|pair| pair[0].id < pair[1].id));
    }

    #[test]
    fn a_state_is_stored_and_an_unreadable_one_becomes_the_default() {
        let mut storage = Storage::new(Sqlite::new());
        let state = State { folded: 7, reason: "full".into(), ..State::default() };
        storage.keep_state("a", &state).unwrap();
        assert_eq!((storage.state("a").unwrap(), storage.state("b").unwrap()), (state, State::default()));
        assert_eq!(storage.state::<NoteBackoff>("a").unwrap(), NoteBackoff::default());
        let broken = Statement::new("UPDATE session SET state = '{'", Vec::new());
        storage.open().unwrap().execute(&[broken]).unwrap();
        assert_eq!(storage.state::<State>("a").unwrap(), State::default());
    }

    #[test]
    fn tables_of_another_version_are_rebuilt() {
        let mut storage = Storage::new(Sqlite::new());
        storage.keep_state("a", &State { folded: 7, ..State::default() }).unwrap();
        storage.open().unwrap().execute(&[Statement::new("PRAGMA user_version = 99", Vec::new())]).unwrap();
        storage.open = false;
        assert_eq!(storage.state::<State>("a").unwrap(), State::default());
    }
}
