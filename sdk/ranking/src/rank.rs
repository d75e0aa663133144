//! Puts candidates in order.
//!
//! Each candidate gets a score by its own words (as BM25 does), and passes shares of it to the messages beside it: an
//! answer often has none of the words of its question. Two rules then correct the scores: who is named in the question is
//! preferred as the speaker, and long replies count less, because they repeat what was said and contain most words anyway.
//!
//! The first hits are chosen so that they and the messages beside them, which are shown together, cover as much as
//! possible. The hits behind them are in the order of their scores.

use std::collections::HashMap;

use crate::question::Question;
use crate::stem::stem;
use crate::words::each_word;

/// The number of candidates that [`Question::rank`] considers.
pub const CANDIDATES: usize = 150;
/// The number of messages on either side of a candidate that are considered.
pub const NEAR: usize = 2;

/// The most bytes of a candidate that are read. A long message usually names its subject at its beginning.
pub const READ: usize = 1 << 10;
/// The weight of terms that only the index found: after the bytes that were read, or because the index folds more characters than
/// this crate.
const UNREAD: f64 = 0.5;
/// The number of hits that are chosen for what is shown around them.
const SPREAD: usize = 10;
/// The parameters of BM25: how quickly repeated words stop to count, and how much long messages lose.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.5;
/// The shares of a score that the messages beside a candidate get, by distance: for the choice of the first hits, which
/// are shown with their neighbours, and for the others.
const CLOSE: [f64; NEAR] = [0.2, 0.1];
const WIDE: [f64; NEAR] = [0.5, 0.25];
/// The factor for the message in the middle, compared with the messages that are shown beside it.
const OWN: f64 = 1.5;
/// The factor for messages by a person whom the question names, and the weight of the name itself.
const NAMED: f64 = 1.4;
const NAME: f64 = 0.3;
/// How much a long reply counts, for the first hits and for the others, and from how many bytes on it is long.
const LONG_REPLY: (f64, f64) = (0.3, 0.5);
const LONG: usize = 700;
/// The longest name of a speaker, in bytes and in words.
const NAME_BYTES: usize = 40;
const NAME_WORDS: usize = 3;

/// A message that contains words of the question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The message.
    pub message: Near<'a>,
    /// The messages before it in its conversation, the nearest first.
    pub before: Vec<Near<'a>>,
    /// The messages after it, the nearest first.
    pub after: Vec<Near<'a>>,
}

/// A message, or one beside a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Near<'a> {
    /// Identifies the message among all candidates.
    pub id: u64,
    /// Whether a model wrote it.
    pub reply: bool,
    /// The bytes of the whole message.
    pub length: usize,
    /// Its text. The beginning is enough for a message beside a candidate: it may name the speaker, as in `Ada: Hello`.
    pub text: &'a str,
}

/// A message in the order of relevance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The message.
    pub id: u64,
    /// Higher is better, and never higher than that of the hit before.
    pub score: f64,
}

/// A candidate or a message beside one.
struct Node {
    id: u64,
    before: Option<usize>,
    after: Option<usize>,
    /// The score by its own words.
    own: f64,
    named: bool,
    long_reply: bool,
}

impl Question {
    /// Puts candidates, which come in the order of an index, and the messages beside them in order. Messages that occur
    /// twice count once. Candidates beyond [`CANDIDATES`] are ignored, and only the first [`READ`] bytes of each are read.
    pub fn rank(&self, candidates: &[Candidate<'_>]) -> Vec<Ranked> {
        self.rank_weighed(candidates, &[])
    }

    /// Ranks with the weights from an index: for each candidate the sum of the weights of its terms, as [`Self::choose`] gives
    /// it. So terms after the first [`READ`] bytes count too.
    pub fn rank_weighed(&self, candidates: &[Candidate<'_>], weights: &[f64]) -> Vec<Ranked> {
        let candidates = &candidates[..candidates.len().min(CANDIDATES)];
        let names = self.names(candidates);
        let mut nodes = Nodes::new(self, &names);
        for candidate in candidates {
            nodes.add(candidate);
        }
        let counted: Vec<Counted> = candidates.iter().map(|candidate| self.count(candidate.message.text)).collect();
        let mean = counted.iter().map(|one| one.words).sum::<f64>() / (counted.len().max(1) as f64);
        let least = self.terms().iter().map(|term| term.weight).reduce(f64::min).unwrap_or_default();
        for (place, (candidate, counted)) in candidates.iter().zip(&counted).enumerate() {
            let words: f64 = self
                .terms()
                .iter()
                .zip(&counted.times)
                .enumerate()
                .map(|(at, (term, times))| {
                    let name = if names.contains(&at) { NAME } else { 1.0 };
                    let length = 1.0 - LENGTH + LENGTH * counted.words / mean.max(1.0);
                    name * term.weight * times * (SATURATION + 1.0) / (times + SATURATION * length)
                })
                .sum();
            let unread = match weights.get(place) {
                _ if words > 0.0 && candidate.message.length <= READ => 0.0,
                Some(weight) => UNREAD * weight,
                // The index found at least one term.
                None if candidate.message.length > READ => UNREAD * least,
                None => 0.0,
            };
            // The order of the index decides between equal ones.
            nodes.own(candidate.message.id, words.max(unread) + 0.01 / (place as f64 + 1.0));
        }
        nodes.order()
    }

    /// The terms that name a speaker of the candidates.
    fn names(&self, candidates: &[Candidate<'_>]) -> Vec<usize> {
        let mut names = Vec::new();
        for candidate in candidates {
            self.each_name(candidate.message.text, |term| {
                if !names.contains(&term) {
                    names.push(term);
                }
            });
        }
        names
    }

    fn each_name(&self, text: &str, mut name: impl FnMut(usize)) {
        let Some(speaker) = speaker(text) else { return };
        each_word(speaker, |word| {
            let mut word = word.to_owned();
            stem(&mut word);
            self.find(&word).into_iter().for_each(&mut name);
            true
        });
    }

    /// How often a text contains each term.
    fn count(&self, text: &str) -> Counted {
        let text = &text[..text.floor_char_boundary(READ)];
        let mut counted = Counted { times: vec![0.0; self.terms().len()], words: 0.0 };
        let mut stemmed = String::new();
        each_word(text, |word| {
            counted.words += 1.0;
            if self.may_contain(word) {
                stemmed.clear();
                stemmed.push_str(word);
                stem(&mut stemmed);
                if let Some(term) = self.find(&stemmed) {
                    counted.times[term] += 1.0;
                }
            }
            true
        });
        counted
    }
}

struct Counted {
    times: Vec<f64>,
    words: f64,
}

/// The speaker whom a text names at its beginning, as in `Ada: Hello`.
fn speaker(text: &str) -> Option<&str> {
    let (name, _) = text.get(..text.floor_char_boundary(NAME_BYTES + 2))?.split_once(": ")?;
    let words = name.split(' ').count();
    let capital = |word: &str| word.chars().next().is_some_and(char::is_uppercase);
    (words <= NAME_WORDS && name.split(' ').all(capital)).then_some(name)
}

/// The messages that can be found, with their neighbours.
struct Nodes<'a> {
    question: &'a Question,
    /// The only term that names a speaker.
    name: Option<usize>,
    nodes: Vec<Node>,
    places: HashMap<u64, usize>,
}

impl<'a> Nodes<'a> {
    fn new(question: &'a Question, names: &[usize]) -> Self {
        let name = if let [name] = names { Some(*name) } else { None };
        Self { question, name, nodes: Vec::new(), places: HashMap::new() }
    }

    fn add(&mut self, candidate: &Candidate<'_>) {
        let middle = self.place(&candidate.message);
        let mut last = middle;
        for near in candidate.before.iter().take(NEAR) {
            let place = self.place(near);
            self.nodes[last].before = Some(place);
            self.nodes[place].after = Some(last);
            last = place;
        }
        last = middle;
        for near in candidate.after.iter().take(NEAR) {
            let place = self.place(near);
            self.nodes[last].after = Some(place);
            self.nodes[place].before = Some(last);
            last = place;
        }
    }

    fn place(&mut self, near: &Near<'_>) -> usize {
        if let Some(place) = self.places.get(&near.id) {
            return *place;
        }
        let mut named = false;
        self.question.each_name(near.text, |term| named |= Some(term) == self.name);
        let long_reply = near.reply && near.length > LONG && speaker(near.text).is_none();
        self.places.insert(near.id, self.nodes.len());
        self.nodes.push(Node { id: near.id, before: None, after: None, own: 0.0, named, long_reply });
        self.nodes.len() - 1
    }

    fn own(&mut self, id: u64, score: f64) {
        if let Some(place) = self.places.get(&id) {
            self.nodes[*place].own = self.nodes[*place].own.max(score);
        }
    }

    /// The nodes around a node and their distance, without itself.
    fn around(&self, place: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let walk = move |step: fn(&Node) -> Option<usize>| {
            std::iter::successors(step(&self.nodes[place]), move |at| step(&self.nodes[*at])).take(NEAR)
        };
        walk(|node| node.before).enumerate().chain(walk(|node| node.after).enumerate())
    }

    /// The scores, with the shares that messages pass to those beside them.
    fn scores(&self, shares: [f64; NEAR], long_reply: f64) -> Vec<f64> {
        let mut scores: Vec<f64> = self.nodes.iter().map(|node| node.own).collect();
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.own > 0.0) {
            for (distance, near) in self.around(place) {
                scores[near] += shares[distance] * node.own;
            }
        }
        for (score, node) in scores.iter_mut().zip(&self.nodes) {
            *score *= if node.named { NAMED } else { 1.0 } * if node.long_reply { long_reply } else { 1.0 };
        }
        scores
    }

    /// The places in the order of their scores; equal ones newest first.
    fn sorted(&self, scores: &[f64]) -> Vec<usize> {
        let mut sorted: Vec<usize> = (0..scores.len()).collect();
        sorted.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(self.nodes[*b].id.cmp(&self.nodes[*a].id)));
        sorted
    }

    fn order(&self) -> Vec<Ranked> {
        let close = self.scores(CLOSE, LONG_REPLY.0);
        let mut pool = self.sorted(&close);
        pool.truncate(CANDIDATES);
        let wide = self.sorted(&self.scores(WIDE, LONG_REPLY.1));
        let mut chosen = vec![false; self.nodes.len()];
        let mut shown = chosen.clone();
        let mut value = vec![0.0; self.nodes.len()];
        // Squares prefer a sure hit to several doubtful ones.
        pool.iter().for_each(|place| value[*place] = close[*place] * close[*place]);
        let mut order = Vec::with_capacity(self.nodes.len());
        for _ in 0..SPREAD {
            let gain = |place: usize| {
                let unseen = |at: usize| if shown[at] { 0.0 } else { value[at] };
                OWN * unseen(place) + self.around(place).map(|(_, near)| unseen(near)).sum::<f64>()
            };
            let left = pool.iter().copied().filter(|place| !chosen[*place]).map(|place| (place, gain(place)));
            // The first of equal ones, which has the higher score.
            let best = left.fold(None, |best: Option<(usize, f64)>, one| match best {
                Some(best) if best.1 >= one.1 => Some(best),
                _ => Some(one),
            });
            let Some((place, _)) = best else { break };
            chosen[place] = true;
            shown[place] = true;
            self.around(place).for_each(|(_, near)| shown[near] = true);
            order.push(place);
        }
        order.extend(wide.into_iter().filter(|place| !chosen[*place]));
        let scored =
            |(rank, place): (usize, usize)| Ranked { id: self.nodes[place].id, score: 1.0 / (rank as f64 + 1.0) };
        order.into_iter().enumerate().map(scored).collect()
    }
}
