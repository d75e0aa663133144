//! Finds messages for a question: by words, parts of words, times and meaning, and puts them in order by rule.

use std::collections::{BTreeMap, HashMap};

use hermes_guest_backend::{cut, without_fence};
use hermes_plugin::memory_provider::Recollection;
use hermes_plugin::{Error, params, sql};
use hermes_ranking::{CANDIDATES, Candidate, NEAR, Near, Question};
use serde_json::json;

use crate::{facts, show, store, vectors, when};

/// Bytes of a question that are read.
const ASKED: usize = 8_000;
/// A word in more messages counts as one in so many.
const COUNTED: i64 = 4_000;
/// Messages that a way other than words adds at most.
const ADDED: i64 = 50;
/// Words of a question that are looked for inside of other words.
const PARTS: usize = 4;
/// Times of a question that count.
const TIMES: usize = 3;
/// Days of a month: longer times, such as a year, name no day.
const MONTH: i64 = 31;
/// Reciprocal rank fusion.
const RANK: f64 = 60.0;
/// Characters that are read of a message that was found, and of one beside it.
const READ: i64 = 8_192;
const BESIDE: i64 = 1_000;

/// A message with what the ranking and the user need of it.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) id: i64,
    pub(crate) is_reply: bool,
    pub(crate) speaker: String,
    pub(crate) day: i64,
    pub(crate) text: String,
    length: i64,
    before: Option<i64>,
    after: Option<i64>,
}

/// Messages by id.
pub(crate) type Messages = HashMap<i64, Message>;

/// What is recalled for a message of the user, best first.
pub(crate) fn recall(text: &str, present: &[String], most: usize, budget: u32) -> Result<Vec<Recollection>, Error> {
    let text = without_fence(cut(text, ASKED));
    let mut times = when::find(&text, store::today());
    times.truncate(TIMES);
    let mut question = Question::parse(&text);
    if question.is_empty() && times.is_empty() {
        return Ok(Vec::new());
    }
    weigh(&mut question)?;
    let present = json!(present).to_string();
    let by_words = by_words(&question, &present)?;
    let by_times = by_times(&question, &times, &present)?;
    let by_meaning = vectors::nearest(&text, &present);
    let mut found: Vec<i64> = Vec::new();
    for id in by_words.iter().chain(&by_times).chain(&by_meaning) {
        if found.len() < CANDIDATES && !found.contains(id) {
            found.push(*id);
        }
    }
    let messages = load(&found)?;
    let ranked = rank(&question, &found, &messages);
    let order = fused(&[&ranked, &of(&ranked, &by_times), &by_meaning]);
    let facts = facts::matching(&question.expression())?;
    Ok(show::recollections(&question, &order, &messages, &facts, most, budget))
}

/// Counts the messages that contain each word: rare words count more.
fn weigh(question: &mut Question) -> Result<(), Error> {
    if question.is_empty() {
        return Ok(());
    }
    let terms: Vec<String> = question.terms().iter().map(hermes_ranking::Term::expression).collect();
    let counts: Vec<(i64,)> = sql::query_as(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH term.value LIMIT ?2)) \
         FROM json_each(?1) term ORDER BY term.key",
        params![json!(terms).to_string(), COUNTED],
    )?;
    let all = sql::query_one::<(Option<i64>,)>("SELECT max(id) FROM message", params![])?;
    let unsigned = |count: i64| u64::try_from(count).unwrap_or(0);
    let counts: Vec<u64> = counts.into_iter().map(|(count,)| unsigned(count)).collect();
    question.weigh(&counts, unsigned(all.and_then(|(all,)| all).unwrap_or(0)));
    Ok(())
}

fn ids(found: Vec<(i64,)>) -> Vec<i64> {
    found.into_iter().map(|(id,)| id).collect()
}

fn by_words(question: &Question, present: &str) -> Result<Vec<i64>, Error> {
    let expression = question.expression();
    let mut found = Vec::new();
    if !expression.is_empty() {
        found = ids(sql::query_as(
            "SELECT w.rowid FROM words w JOIN message m ON m.id = w.rowid WHERE words MATCH ?1 \
             AND m.conversation NOT IN (SELECT value FROM json_each(?2)) ORDER BY rank, w.rowid DESC LIMIT ?3",
            params![expression, present, i64::try_from(CANDIDATES).unwrap_or(i64::MAX)],
        )?);
    }
    // A word that no message contains may be a part of a longer one, such as a file name or a compound.
    let unknown = question.terms().iter().filter(|term| term.messages() == 0).map(|term| term.word.as_str());
    for word in unknown.filter(|word| word.chars().count() >= 4).take(PARTS) {
        let letters: Vec<char> = word.chars().collect();
        let trigrams: Vec<String> =
            letters.windows(3).map(|three| format!("\"{}\"", String::from_iter(three))).collect();
        found.extend(ids(sql::query_as(
            "SELECT p.rowid FROM parts p JOIN message m ON m.id = p.rowid WHERE parts MATCH ?1 \
             AND m.conversation NOT IN (SELECT value FROM json_each(?2)) AND instr(lower(m.text), ?3) > 0 \
             ORDER BY p.rowid DESC LIMIT ?4",
            params![trigrams.join(" AND "), present, word, ADDED],
        )?));
    }
    Ok(found)
}

/// Messages of the days that a question names, and those that name these days: with its words, or the latest if there are none.
fn by_times(question: &Question, times: &[when::Days], present: &str) -> Result<Vec<i64>, Error> {
    let expression = question.expression();
    let mut found = Vec::new();
    for when::Days { since, until } in times {
        // Without words, a long time says nothing about what is meant.
        if expression.is_empty() && until - since > MONTH {
            continue;
        }
        let of_time = "(m.day BETWEEN ?1 AND ?2 OR m.id IN (SELECT message FROM moment WHERE since <= ?2 AND until >= ?1 \
                       AND until - since <= ?5)) AND m.conversation NOT IN (SELECT value FROM json_each(?3))";
        let mut values = params![*since, *until, present, ADDED, MONTH];
        let statement = if expression.is_empty() {
            format!("SELECT m.id FROM message m WHERE {of_time} ORDER BY m.is_reply, m.id DESC LIMIT ?4")
        } else {
            values.extend(params![expression.as_str()]);
            format!(
                "SELECT w.rowid FROM words w JOIN message m ON m.id = w.rowid WHERE words MATCH ?6 AND {of_time} \
                 ORDER BY rank, w.rowid DESC LIMIT ?4"
            )
        };
        found.extend(ids(sql::query_as(&statement, values)?));
    }
    Ok(found)
}

/// The columns of a message.
type Row = (i64, bool, String, i64, i64, String, Option<i64>, Option<i64>);

/// The messages with those up to [`NEAR`] places beside them.
fn load(found: &[i64]) -> Result<Messages, Error> {
    let mut messages = Messages::new();
    let mut wanted = found.to_vec();
    for distance in 0..=NEAR {
        let read = if distance == 0 { READ } else { BESIDE };
        let rows: Vec<Row> = sql::query_as(
            "SELECT id, is_reply, speaker, day, octet_length(text), substr(text, 1, ?2), before, after FROM message \
             WHERE id IN (SELECT value FROM json_each(?1))",
            params![json!(wanted).to_string(), read],
        )?;
        wanted.clear();
        for (id, is_reply, speaker, day, length, text, before, after) in rows {
            wanted.extend(before.into_iter().chain(after));
            messages.insert(id, Message { id, is_reply, speaker, day, text, length, before, after });
        }
        wanted.retain(|id| !messages.contains_key(id));
    }
    Ok(messages)
}

/// The messages before or after one, the nearest first.
pub(crate) fn beside(messages: &Messages, id: i64, after: bool) -> Vec<&Message> {
    let step = |message: &Message| if after { message.after } else { message.before };
    let next = |message: &&Message| step(message).and_then(|id| messages.get(&id));
    std::iter::successors(messages.get(&id).and_then(|message| next(&message)), next).take(NEAR).collect()
}

fn rank(question: &Question, found: &[i64], messages: &Messages) -> Vec<i64> {
    // The ranking reads a speaker's name at the beginning of the text.
    let named: BTreeMap<i64, String> = messages
        .values()
        .filter(|message| !message.speaker.is_empty())
        .map(|message| (message.id, format!("{}: {}", message.speaker, message.text)))
        .collect();
    let near = |message: &Message| Near {
        id: u64::try_from(message.id).unwrap_or(0),
        reply: message.is_reply,
        length: usize::try_from(message.length).unwrap_or(0),
        text: named.get(&message.id).map_or(messages[&message.id].text.as_str(), String::as_str),
    };
    let candidates: Vec<Candidate<'_>> = found
        .iter()
        .filter_map(|id| messages.get(id))
        .map(|message| Candidate {
            message: near(message),
            before: beside(messages, message.id, false).into_iter().map(near).collect(),
            after: beside(messages, message.id, true).into_iter().map(near).collect(),
        })
        .collect();
    question.rank(&candidates).into_iter().filter_map(|ranked| i64::try_from(ranked.id).ok()).collect()
}

/// The ids of a list, in the order of the ranking.
fn of(ranked: &[i64], list: &[i64]) -> Vec<i64> {
    ranked.iter().copied().filter(|id| list.contains(id)).collect()
}

/// Merges several rankings by the sum of the reciprocal ranks. Ids with equal sums keep the order of the first list.
fn fused(lists: &[&[i64]]) -> Vec<i64> {
    let mut scores: Vec<(i64, f64)> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    for list in lists {
        for (rank, id) in list.iter().enumerate() {
            let place = *places.entry(*id).or_insert(scores.len());
            if place == scores.len() {
                scores.push((*id, 0.0));
            }
            scores[place].1 += 1.0 / (RANK + rank as f64 + 1.0);
        }
    }
    scores.sort_by(|one, other| other.1.total_cmp(&one.1));
    scores.into_iter().map(|(id, _)| id).collect()
}
