//! Answers questions: the messages with any of the words, in the order of `hermes-ranking`, which also finds messages beside
//! good ones.
//!
//! Every step is bounded, so that a question of common words takes no longer in a store of a million messages: of each word the
//! newest messages are looked up, without reading them, rare words first and deepest, and only the best of all are read. If a
//! filter leaves too few of them, the words are looked up again with the filter.

use std::collections::{HashMap, HashSet};

use hermes_conversation::{MessageId, Role};
use hermes_ranking::{CANDIDATES, Candidate, NEAR, Near, Question, READ};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::select::{Filter, Found, STANDS, VISIBLE};
use super::{SearchQuery, role};
use crate::error::Fault;
use crate::lineage::Lineage;

/// The messages that are looked up for every word. They also show how common it is.
const OF_EVERY_WORD: usize = 250;
/// The most messages that are looked up for a word, and for all words together. A query of very many words may exceed the second
/// limit.
const OF_A_WORD: usize = 2_000;
const OF_ALL_WORDS: usize = 6_000;
/// How many times the wanted messages are read at most, if words are in more messages than were looked up.
const TRIED: usize = 4;
/// The bytes that are read of a message beside a candidate, because it may begin with a name.
const NAME: usize = 64;

/// The requested page of messages with any of the words, best first. `None` if no message has any.
pub(super) fn page(
    connection: &Connection,
    query: &SearchQuery,
    conversation: Option<&Lineage>,
) -> Result<Option<Vec<Found>>, Fault> {
    let mut question = Question::parse(&query.text);
    if question.is_empty() {
        return Ok(None);
    }
    let Some(filter) = Filter::of(connection, query, conversation)? else { return Ok(None) };
    let mut lists = Lists::look_up(connection, &question, &filter)?;
    question.weigh(&lists.counts, lists.messages);
    let mut chosen = question.choose(&lists.found);
    let wanted = CANDIDATES.max(query.offset.saturating_add(query.limit));
    // A filter that few pass is better applied to all messages with a word.
    let tried = if lists.is_cut() { chosen.len().min(wanted * TRIED) } else { chosen.len() };
    let mut passed = passing(connection, &chosen[..tried], &filter, wanted)?;
    if passed.len() < CANDIDATES && lists.is_cut() {
        lists.look_up_with(connection, &question, &filter)?;
        chosen = question.choose(&lists.found);
        passed = passing(connection, &chosen, &filter, wanted)?;
    }
    if passed.is_empty() {
        return Ok(None);
    }
    let candidates = &passed[..passed.len().min(CANDIDATES)];
    // Messages beside a candidate pass the same filters, except those for what a message itself is.
    let beside = SearchQuery { roles: None, tools: None, ..query.clone() };
    let beside = match Filter::of(connection, &beside, conversation)? {
        Some(filter) => Beside::read(connection, candidates, &filter)?,
        None => Beside::default(),
    };
    let texts: HashMap<MessageId, &Text> = passed.iter().map(|text| (text.message, text)).collect();
    let weights: Vec<f64> = candidates.iter().map(|text| text.weight).collect();
    let ranked =
        question.rank_weighed(&candidates.iter().map(|text| beside.candidate(text)).collect::<Vec<_>>(), &weights);
    let fits = |message: &MessageId| {
        texts.contains_key(message)
            || (query.tools.is_none()
                && beside
                    .texts
                    .get(message)
                    .is_some_and(|text| query.roles.as_ref().is_none_or(|roles| roles.contains(&text.role))))
    };
    let ranked = ranked.iter().map(|ranked| MessageId(ranked.id)).filter(fits);
    let mut known = HashSet::new();
    let found = ranked.chain(passed.iter().map(|text| text.message)).filter(|message| known.insert(*message));
    Ok(Some(found.skip(query.offset).take(query.limit).map(|message| Found { message, score: None }).collect()))
}

/// The messages that contain each term.
struct Lists {
    found: Vec<Vec<u64>>,
    /// The number of messages that contain each term, estimated if there are more than were looked up.
    counts: Vec<u64>,
    /// The number of all messages, without gaps between their ids.
    messages: u64,
    /// Whether a term is in more messages than were looked up.
    cut: Vec<bool>,
}

impl Lists {
    fn look_up(connection: &Connection, question: &Question, filter: &Filter) -> Result<Self, Fault> {
        let all = || -> Result<_, Fault> {
            let ends =
                "SELECT coalesce((SELECT min(id) FROM messages), 0), coalesce((SELECT max(id) FROM messages), 0)";
            Ok(connection.prepare_cached(ends)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?)
        };
        let (first, last): (i64, i64) = match filter.within {
            Some(within) => within,
            None => all()?,
        };
        let messages = last.saturating_sub(first).saturating_add(1).max(1).cast_unsigned();
        let terms = question.terms().len();
        let mut lists =
            Self { found: vec![Vec::new(); terms], counts: vec![0; terms], messages, cut: vec![true; terms] };
        let mut left = OF_ALL_WORDS;
        for at in 0..terms {
            left = left.saturating_sub(lists.more(connection, question, at, (first, last), OF_EVERY_WORD)?);
        }
        // The common words cost the most and say the least.
        let mut rarest: Vec<usize> = (0..terms).filter(|at| lists.cut[*at]).collect();
        rarest.sort_by_key(|at| lists.counts[*at]);
        for at in rarest {
            let most = left.min(OF_A_WORD - OF_EVERY_WORD);
            left -= lists.more(connection, question, at, (first, last), most)?;
        }
        Ok(lists)
    }

    /// Looks up the next messages with a term, newest first. Returns how many there were.
    fn more(
        &mut self,
        connection: &Connection,
        question: &Question,
        at: usize,
        (first, last): (i64, i64),
        most: usize,
    ) -> Result<usize, Fault> {
        if most == 0 {
            return Ok(0);
        }
        let known = &mut self.found[at];
        let before = known.last().map_or(last, |oldest| oldest.cast_signed() - 1);
        let mut statement = connection.prepare_cached(
            "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?",
        )?;
        let expression = question.terms()[at].expression();
        let ids = statement.query_map((expression, first, before, count(most)), |row| row.get::<_, i64>(0))?;
        let ids: Vec<u64> = ids.map(|id| id.map(i64::cast_unsigned)).collect::<Result<_, _>>()?;
        known.extend(&ids);
        self.cut[at] = ids.len() == most;
        let looked_up = known.len() as u64;
        self.counts[at] = match known.last() {
            // As dense in the older messages as in the newer ones.
            Some(oldest) if self.cut[at] => {
                let newer = last.cast_unsigned().saturating_sub(*oldest).saturating_add(1);
                let estimate = u128::from(looked_up) * u128::from(self.messages) / u128::from(newer.max(1));
                u64::try_from(estimate).unwrap_or(self.messages)
            }
            _ => looked_up,
        };
        Ok(ids.len())
    }

    /// Whether some term is in more messages than were looked up.
    fn is_cut(&self) -> bool {
        self.cut.contains(&true)
    }

    /// Looks the terms with too many messages up again, among the messages that pass a filter.
    fn look_up_with(&mut self, connection: &Connection, question: &Question, filter: &Filter) -> Result<(), Fault> {
        let (first, last) = filter.within.unwrap_or((0, i64::MAX));
        let terms = question.terms().iter().zip(&mut self.found).zip(&self.cut);
        for ((term, found), _) in terms.filter(|(_, cut)| **cut) {
            let mut sql = String::from(
                "SELECT messages_fts.rowid FROM messages_fts CROSS JOIN messages AS m ON m.id = messages_fts.rowid \
                 CROSS JOIN sessions AS s ON s.id = m.session_id \
                 WHERE messages_fts MATCH ? AND messages_fts.rowid BETWEEN ? AND ?",
            );
            let mut values: Vec<Value> = vec![term.expression().into(), first.into(), last.into()];
            filter.add_to(&mut sql, &mut values);
            sql.push_str(&format!(" AND {VISIBLE} ORDER BY messages_fts.rowid DESC LIMIT {CANDIDATES}"));
            let mut statement = connection.prepare_cached(&sql)?;
            let ids = statement.query_map(params_from_iter(values), |row| row.get::<_, i64>(0))?;
            *found = ids.map(|id| id.map(i64::cast_unsigned)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }
}

/// A message, as far as it is read.
struct Text {
    message: MessageId,
    role: Role,
    /// The bytes of the whole message.
    length: usize,
    beginning: String,
    /// The weight of its terms.
    weight: f64,
}

impl Text {
    fn near(&self) -> Near<'_> {
        let reply = self.role == Role::Assistant;
        Near { id: self.message.0, reply, length: self.length, text: &self.beginning }
    }
}

/// The first of the chosen messages that pass a filter, in their order.
fn passing(connection: &Connection, chosen: &[(u64, f64)], filter: &Filter, wanted: usize) -> Result<Vec<Text>, Fault> {
    let mut sql = format!(
        "SELECT wanted.key, m.id, m.role, octet_length(m.content) + octet_length(coalesce(m.tool_calls, '')), \
         substr(CAST(CASE WHEN m.tool_name IS NULL AND m.tool_calls IS NULL THEN m.content \
         ELSE search_text(m.content, m.tool_name, m.tool_calls) END AS BLOB), 1, {READ}) \
         FROM json_each(?) AS wanted CROSS JOIN messages AS m ON m.id = wanted.value \
         CROSS JOIN sessions AS s ON s.id = m.session_id WHERE TRUE"
    );
    let mut conditions: Vec<Value> = Vec::new();
    filter.add_to(&mut sql, &mut conditions);
    sql.push_str(&format!(" AND {VISIBLE} ORDER BY wanted.key"));
    let mut statement = connection.prepare_cached(&sql)?;
    let (mut passed, mut rest, mut part) = (Vec::new(), chosen, wanted);
    while passed.len() < wanted && !rest.is_empty() {
        // Usually nearly all pass.
        let (now, later) = rest.split_at(part.min(rest.len()));
        (rest, part) = (later, part * 2);
        let ids = serde_json::Value::from_iter(now.iter().map(|(id, _)| *id)).to_string();
        let values = std::iter::once(Value::from(ids)).chain(conditions.iter().cloned());
        let texts = statement.query_map(params_from_iter(values), |row| {
            let place = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
            text(row, 1, now.get(place).map_or(0.0, |(_, weight)| *weight))
        })?;
        for text in texts {
            passed.push(text?);
        }
    }
    passed.truncate(wanted);
    Ok(passed)
}

/// Reads a message from a row, from this column on.
fn text(row: &rusqlite::Row<'_>, first: usize, weight: f64) -> rusqlite::Result<Text> {
    let bytes = row.get::<_, Option<Vec<u8>>>(first + 3)?.unwrap_or_default();
    // The last character may be incomplete.
    let beginning = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid()).to_owned();
    Ok(Text {
        message: MessageId(row.get::<_, i64>(first)?.cast_unsigned()),
        role: role(first + 1, &row.get::<_, String>(first + 1)?)?,
        length: usize::try_from(row.get::<_, Option<i64>>(first + 2)?.unwrap_or_default()).unwrap_or_default(),
        beginning,
        weight,
    })
}

/// The messages beside candidates in which the user or the model said something.
#[derive(Default)]
struct Beside {
    texts: HashMap<MessageId, Text>,
    /// By candidate, the nearest first.
    before: HashMap<MessageId, Vec<MessageId>>,
    after: HashMap<MessageId, Vec<MessageId>>,
}

impl Beside {
    fn read(connection: &Connection, candidates: &[Text], filter: &Filter) -> Result<Self, Fault> {
        let mut beside = Self::default();
        let ids = serde_json::Value::from_iter(candidates.iter().map(|text| text.message.0)).to_string();
        for (side, compare, order) in [(&mut beside.before, "<", "DESC"), (&mut beside.after, ">", "ASC")] {
            let mut inner = format!(
                "SELECT m.id FROM messages AS m WHERE m.session_id = hit.session_id AND m.id {compare} hit.id \
                 AND m.role IN ('{}', '{}') AND m.content <> '' AND {STANDS}",
                Role::User.as_str(),
                Role::Assistant.as_str(),
            );
            let mut values = vec![Value::from(ids.clone())];
            filter.add_within(&mut inner, &mut values);
            let sql = format!(
                "SELECT hit.id, near.id, near.role, octet_length(near.content), \
                 substr(CAST(near.content AS BLOB), 1, {NAME}) \
                 FROM json_each(?) AS wanted CROSS JOIN messages AS hit ON hit.id = wanted.value \
                 CROSS JOIN messages AS near ON near.id IN ({inner} ORDER BY m.id {order} LIMIT {NEAR}) \
                 ORDER BY hit.id, near.id {order}"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params_from_iter(values), |row| {
                Ok((MessageId(row.get::<_, i64>(0)?.cast_unsigned()), text(row, 1, 0.0)?))
            })?;
            for row in rows {
                let (hit, text) = row?;
                side.entry(hit).or_default().push(text.message);
                beside.texts.entry(text.message).or_insert(text);
            }
        }
        Ok(beside)
    }

    fn candidate<'a>(&'a self, text: &'a Text) -> Candidate<'a> {
        let near = |side: &HashMap<MessageId, Vec<MessageId>>| {
            let ids = side.get(&text.message).into_iter().flatten();
            ids.filter_map(|id| self.texts.get(id)).map(Text::near).collect()
        };
        Candidate { message: text.near(), before: near(&self.before), after: near(&self.after) }
    }
}

/// Limits a number to SQL's range.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, SessionId, ToolCall};

    use super::*;
    use crate::Store;
    use crate::search::Matching;
    use crate::testing::{new_session, store};

    fn asked(text: &str) -> SearchQuery {
        SearchQuery { matching: Matching::Any, limit: 100, ..SearchQuery::new(text) }
    }

    fn ids(store: &Store, query: &SearchQuery) -> Vec<u64> {
        store.search(query).unwrap().iter().map(|hit| hit.message.0).collect()
    }

    fn say(store: &Store, drafts: &[Draft]) -> (SessionId, Vec<u64>) {
        let session = store.create_session(new_session()).unwrap().id;
        let stored = store.append(&session, drafts).unwrap();
        (session, stored.iter().map(|message| message.id.0).collect())
    }

    #[test]
    fn what_is_said_beside_a_match_is_found_unless_a_filter_excludes_it() {
        let (_home, store) = store();
        let filler = || Draft::user("filler", 1);
        let question = Draft::user("which colour has the bicycle?", 1);
        let drafts =
            [filler(), filler(), filler(), question, Draft::assistant("green", Vec::new(), 1), filler(), filler()];
        let (session, said) = say(&store, &drafts);
        let (_, elsewhere) = say(&store, &[filler()]);
        let found = ids(&store, &asked("the colour of bicycles"));
        assert_eq!(found[0], said[3]);
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, said[1..6]);
        let by_users = SearchQuery { roles: Some(vec![Role::User]), ..asked("the colour of bicycles") };
        assert!(!ids(&store, &by_users).contains(&said[4]) && ids(&store, &by_users).contains(&said[2]));
        let matching = SearchQuery { tools: Some(vec!["bash".into()]), ..asked("colour") };
        assert_eq!(ids(&store, &matching), [0; 0]);
        store.rewind(&session, MessageId(said[5])).unwrap();
        let found = ids(&store, &asked("colour"));
        assert!(!found.contains(&said[5]) && !found.contains(&elsewhere[0]), "{found:?}");
        // Pages continue each other.
        let all = ids(&store, &asked("filler colour"));
        let page = |offset| ids(&store, &SearchQuery { offset, limit: 2, ..asked("filler colour") });
        assert_eq!([page(0), page(2), page(4), page(6)].concat(), all);
    }

    #[test]
    fn a_word_of_too_many_messages_does_not_hide_what_a_filter_leaves() {
        let (_home, store) = store();
        let call = ToolCall { id: "c".into(), name: "bash".into(), arguments: String::new() };
        let (old, first) = say(&store, &[Draft::result(&call, "common", 1), Draft::user("so common", 1)]);
        say(&store, &vec![Draft::user("common words", 1); OF_A_WORD + 500]);
        assert!(!ids(&store, &asked("common")).contains(&first[1]));
        let results = SearchQuery { roles: Some(vec![Role::Tool]), ..asked("common") };
        assert_eq!(ids(&store, &results), first[..1]);
        let of_session = SearchQuery { session: Some(old.clone()), ..asked("common") };
        assert_eq!(ids(&store, &of_session).len(), 2);
        // The tool's name is a rarer word, and is found however old it is.
        assert_eq!(ids(&store, &asked("common bash"))[0], first[0]);
        assert_eq!(ids(&store, &SearchQuery { roles: Some(vec![Role::Tool]), ..asked("common bash") }), first[..1]);
        let inside = store.search_conversation(&old, &asked("common")).unwrap();
        assert_eq!(inside.len(), 2);
    }

    #[test]
    fn of_many_common_words_and_a_rare_one_the_rare_one_is_looked_up_completely() {
        let (_home, store) = store();
        say(&store, &vec![Draft::user("submarine lantern", 1); 600]);
        say(&store, &vec![Draft::user("lantern ferry harbour captain anchor", 1); OF_A_WORD + 500]);
        let question = Question::parse("lantern ferry harbour captain anchor submarine");
        let lists = store.read(|connection| Lists::look_up(connection, &question, &Filter::default())).unwrap();
        assert_eq!((lists.found[5].len(), lists.counts[5], lists.cut[5]), (600, 600, false));
        let all: usize = lists.found.iter().map(Vec::len).sum();
        assert!(all <= OF_ALL_WORDS, "{all}");
        for common in 0..5 {
            assert!(lists.cut[common] && lists.found[common].len() >= OF_EVERY_WORD);
            assert!(lists.counts[common].abs_diff(2_500) <= 600, "{}", lists.counts[common]);
        }
    }

    #[test]
    fn a_source_without_sessions_finds_nothing_and_one_with_some_finds_theirs() {
        let (_home, store) = store();
        let (_, said) = say(&store, &[Draft::user("a lantern", 1)]);
        let of = |source: &str| SearchQuery { sources: Some(vec![source.to_owned()]), ..asked("lantern") };
        assert_eq!(ids(&store, &of("nowhere")), [0; 0]);
        assert_eq!(ids(&store, &of(&new_session().source)), said);
    }
}
