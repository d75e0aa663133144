//! The mode `local`: conversations, cards, conclusions and summaries in the plugin's own database. Only facts, summaries and answers
//! need a model.

mod tables;
mod think;

use hermes_guest_backend::{cut, to_rfc3339};
use hermes_plugin::sql::{self, Statement, Value};
use hermes_plugin::{Error, Progress, clock, llm, params};

use crate::config::Level;
use crate::store::{Conclusion, Excerpt, Known, Pair, Said, Store};
use tables::{matching, words};

/// Facts that are recalled at most.
const FACTS: u32 = 25;
/// Messages of a snapshot.
const RECENT: u32 = 10;
/// Bytes of a query that are read.
const QUERY: usize = 8_000;
/// The share of common words, in percent, from which a new fact counts as said before.
const SAME: usize = 85;

pub(crate) struct Local {
    /// Whether what is learnt about others belongs to the agent; else to each person.
    ai_observes_others: bool,
}

impl Local {
    pub(crate) fn new(ai_observes_others: bool) -> Result<Self, Error> {
        tables::create()?;
        Ok(Self { ai_observes_others })
    }

    /// The pair to which a fact about a peer belongs.
    fn pair(&self, ai: &str, observed: &str) -> Pair {
        let observer = if self.ai_observes_others { ai } else { observed };
        Pair { observer: observer.to_owned(), observed: observed.to_owned() }
    }

    fn card_of(pair: &Pair) -> Result<Vec<String>, Error> {
        let lines = sql::query_one::<(String,)>(
            "SELECT lines FROM card WHERE observer = ?1 AND observed = ?2",
            params![pair.observer.as_str(), pair.observed.as_str()],
        )?;
        let lines = lines.map(|(lines,)| lines).unwrap_or_default();
        Ok(lines.lines().map(str::to_owned).collect())
    }

    /// Facts of a pair that share words with a text, best first.
    fn matching_facts(pair: &Pair, text: &str, limit: u32) -> Result<Vec<(i64, String, i64)>, Error> {
        let Some(query) = matching(cut(text, QUERY)) else { return Ok(Vec::new()) };
        sql::query_as(
            "SELECT f.id, f.text, f.at FROM fact_words JOIN fact f ON f.id = fact_words.rowid \
             WHERE fact_words MATCH ?1 AND f.observer = ?2 AND f.observed = ?3 ORDER BY bm25(fact_words), f.id LIMIT ?4",
            params![query, pair.observer.as_str(), pair.observed.as_str(), i64::from(limit)],
        )
    }

    /// A third by words, a third by how often it was said, the rest by age.
    fn blend(pair: &Pair, text: &str) -> Result<Vec<(i64, String, i64)>, Error> {
        let third = FACTS / 3;
        let mut found = Self::matching_facts(pair, text, third)?;
        for (order, limit) in [("times DESC, id DESC", 2 * third), ("id DESC", FACTS)] {
            let of_pair = params![pair.observer.as_str(), pair.observed.as_str(), i64::from(FACTS)];
            let statement = format!(
                "SELECT id, text, at FROM fact WHERE observer = ?1 AND observed = ?2 ORDER BY {order} LIMIT ?3"
            );
            for fact in sql::query_as::<(i64, String, i64)>(&statement, of_pair)? {
                if found.len() < limit as usize && !found.iter().any(|(id, _, _)| *id == fact.0) {
                    found.push(fact);
                }
            }
        }
        Ok(found)
    }

    /// The statements that store a fact. A known fact only gets a higher count.
    fn keeping(pair: &Pair, session: &str, text: &str) -> Result<Vec<Statement>, Error> {
        let own: Vec<String> = words(text).collect();
        for (id, known, _) in Self::matching_facts(pair, text, 5)? {
            if is_same(&own, &words(&known).collect::<Vec<_>>()) {
                return Ok(vec![Statement::new("UPDATE fact SET times = times + 1 WHERE id = ?1", params![id])]);
            }
        }
        let values = params![pair.observer.as_str(), pair.observed.as_str(), text, own.join(" "), session, now(),];
        Ok(vec![
            Statement::new(
                "INSERT INTO fact (observer, observed, text, words, session, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT DO UPDATE SET times = times + 1",
                values,
            ),
            Statement::new(
                "INSERT INTO fact_words (rowid, text) SELECT id, text FROM fact WHERE is_indexed = 0",
                params![],
            ),
            Statement::new("UPDATE fact SET is_indexed = 1 WHERE is_indexed = 0", params![]),
        ])
    }
}

/// Whether two texts have nearly the same words, and the same numbers.
fn is_same(one: &[String], other: &[String]) -> bool {
    let common = one.iter().filter(|word| other.contains(word)).count();
    let all = one.len() + other.len() - common;
    let numbers = |words: &[String]| -> Vec<String> {
        words.iter().filter(|word| word.bytes().any(|byte| byte.is_ascii_digit())).cloned().collect()
    };
    all > 0 && common * 100 >= all * SAME && numbers(one) == numbers(other)
}

fn now() -> i64 {
    i64::try_from(clock::now()).unwrap_or(i64::MAX)
}

fn time(at: i64) -> String {
    to_rfc3339(u64::try_from(at).unwrap_or(0))
}

fn day(at: i64) -> String {
    cut(&time(at), 10).to_owned()
}

impl Store for Local {
    fn store(&mut self, said: &Said) -> Result<(), Error> {
        let at = i64::try_from(said.ended_at).unwrap_or(i64::MAX);
        let first = i64::try_from(said.first).unwrap_or(i64::MAX);
        let mut statements = Vec::new();
        for (part, (peer, text)) in said.messages.iter().enumerate() {
            let values = params![
                said.session.as_str(),
                said.conversation.as_str(),
                first,
                i64::try_from(part).unwrap_or(i64::MAX),
                peer.as_str(),
                i64::from(*peer == said.ai),
                text.as_str(),
                at,
            ];
            statements.push(Statement::new(
                "INSERT OR IGNORE INTO message (session, conversation, first, part, peer, is_ai, text, at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                values,
            ));
        }
        for peer in [&said.user, &said.ai] {
            let values = params![peer.as_str(), said.session.as_str()];
            statements.push(Statement::new("INSERT OR IGNORE INTO member (peer, session) VALUES (?1, ?2)", values));
        }
        statements.extend([
            Statement::new(
                "INSERT INTO message_words (rowid, text) SELECT id, text FROM message WHERE is_indexed = 0",
                params![],
            ),
            Statement::new("UPDATE message SET is_indexed = 1 WHERE is_indexed = 0", params![]),
        ]);
        sql::execute(&statements).map(|_| ())
    }

    fn rewound(&mut self, _session: &str, conversation: &str, first: u64) -> Result<(), Error> {
        let gone = || -> Vec<Value> { params![conversation, i64::try_from(first).unwrap_or(i64::MAX)] };
        sql::execute(&[
            Statement::new(
                "INSERT INTO message_words (message_words, rowid, text) \
                 SELECT 'delete', id, text FROM message WHERE conversation = ?1 AND first >= ?2",
                gone(),
            ),
            Statement::new("DELETE FROM message WHERE conversation = ?1 AND first >= ?2", gone()),
        ])
        .map(|_| ())
    }

    fn known(&mut self, pair: &Pair, session: &str, text: &str, tokens: u32) -> Result<Known, Error> {
        let mut left = tokens;
        let mut facts = Vec::new();
        for (_, fact, at) in Self::blend(pair, text)? {
            let line = format!("[{}] {fact}", day(at));
            let needs = llm::count_tokens(&line);
            if needs <= left {
                left -= needs;
                facts.push(line);
            }
        }
        let summary = sql::query_one::<(String,)>("SELECT summary FROM progress WHERE session = ?1", params![session])?;
        let recent = sql::query_as::<(String, String, i64, String)>(
            "SELECT peer, session, at, text FROM message WHERE session = ?1 ORDER BY id DESC LIMIT ?2",
            params![session, i64::from(RECENT)],
        )?;
        Ok(Known {
            card: Self::card_of(pair)?,
            facts,
            summary: summary.map(|(summary,)| summary).unwrap_or_default(),
            recent: recent.into_iter().rev().map(excerpt).collect(),
        })
    }

    fn card(&mut self, pair: &Pair) -> Result<Vec<String>, Error> {
        Self::card_of(pair)
    }

    fn set_card(&mut self, pair: &Pair, card: &[String]) -> Result<(), Error> {
        sql::execute(&[writing_card(pair, card)]).map(|_| ())
    }

    fn search(&mut self, peer: &str, query: &str, limit: u32) -> Result<Vec<Excerpt>, Error> {
        let Some(query) = matching(cut(query, QUERY)) else { return Ok(Vec::new()) };
        let found = sql::query_as::<(String, String, i64, String)>(
            "SELECT m.peer, m.session, m.at, m.text FROM message_words JOIN message m ON m.id = message_words.rowid \
             WHERE message_words MATCH ?1 AND m.session IN (SELECT session FROM member WHERE peer = ?2) \
             ORDER BY bm25(message_words), m.id LIMIT ?3",
            params![query, peer, i64::from(limit)],
        )?;
        Ok(found.into_iter().map(excerpt).collect())
    }

    fn ask(
        &mut self,
        pair: &Pair,
        session: &str,
        question: &str,
        level: Level,
        _timeout_ms: u32,
    ) -> Result<Option<String>, Error> {
        let known = self.known(pair, session, question, 3_000)?;
        let said = self.search(&pair.observed, question, think::excerpts(level))?;
        if known.card.is_empty() && known.facts.is_empty() && said.is_empty() {
            return Ok(None);
        }
        think::answer(&pair.observed, question, &known, &said, level).map(Some)
    }

    fn conclude(&mut self, pair: &Pair, session: &str, content: &str) -> Result<String, Error> {
        sql::execute(&Self::keeping(pair, session, content)?)?;
        let kept = Self::matching_facts(pair, content, 1)?;
        Ok(kept.first().map(|(id, _, _)| id.to_string()).unwrap_or_default())
    }

    fn conclusions(&mut self, pair: &Pair, query: Option<&str>, limit: u32) -> Result<Vec<Conclusion>, Error> {
        let found = match query {
            Some(query) => Self::matching_facts(pair, query, limit)?,
            None => sql::query_as(
                "SELECT id, text, at FROM fact WHERE observer = ?1 AND observed = ?2 ORDER BY id DESC LIMIT ?3",
                params![pair.observer.as_str(), pair.observed.as_str(), i64::from(limit)],
            )?,
        };
        let conclusion =
            |(id, content, at): (i64, String, i64)| Conclusion { id: id.to_string(), content, at: time(at) };
        Ok(found.into_iter().map(conclusion).collect())
    }

    fn forget(&mut self, id: &str) -> Result<(), Error> {
        let unknown = || Error::invalid("there is no conclusion with this id: list them first");
        let id: i64 = id.parse().map_err(|_| unknown())?;
        let changed = sql::execute(&[
            Statement::new(
                "INSERT INTO fact_words (fact_words, rowid, text) SELECT 'delete', id, text FROM fact WHERE id = ?1",
                params![id],
            ),
            Statement::new("DELETE FROM fact WHERE id = ?1", params![id]),
        ])?;
        if changed.last() == Some(&0) { Err(unknown()) } else { Ok(()) }
    }

    fn upkeep(&mut self) -> Result<Progress, Error> {
        think::step(self)
    }
}

fn writing_card(pair: &Pair, card: &[String]) -> Statement {
    Statement::new(
        "INSERT INTO card (observer, observed, lines) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET lines = excluded.lines",
        params![pair.observer.as_str(), pair.observed.as_str(), card.join("\n")],
    )
}

fn excerpt((peer, session, at, text): (String, String, i64, String)) -> Excerpt {
    Excerpt { peer, session, at: time(at), text }
}
