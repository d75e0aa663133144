//! What a question asks for: its words with their weights.

use std::collections::{HashMap, HashSet};

use crate::stem::stem;
use crate::words::{each_word, is_unspaced, meaning};

/// The most characters and terms of a question. The rest of a longer text is ignored.
const MAX_CHARS: usize = 2048;
const MAX_TERMS: usize = 32;
/// Further words are left out of the expression once so many messages contain the rarer ones.
const ENOUGH: u64 = 2_000;
/// The most messages that one call of the expression should have to rank, unless the rarest word alone is in more.
const FEW: u64 = 100;
/// The weight of a word without meaning in a search that counts every word.
const LITTLE: f64 = 0.3;

/// A word of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The word in lower case, or a pair of characters of a script without blanks.
    pub word: String,
    pub(crate) stem: String,
    /// How much it counts: by its meaning, and by its rarity after [`Question::weigh`].
    pub(crate) weight: f64,
    /// The number of messages that contain it.
    pub(crate) messages: u64,
}

impl Term {
    /// How many messages contain it, as [`Question::weigh`] was told.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The term as an expression of FTS5.
    pub fn expression(&self) -> String {
        // A word consists of letters and digits, so that nothing needs escaping.
        format!("\"{}\"", self.word)
    }
}

/// A question, divided into its words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    terms: Vec<Term>,
}

impl Question {
    /// Divides a text into its words. Every text is a question; one without words finds nothing.
    pub fn parse(text: &str) -> Self {
        let (mut terms, mut common) = (Vec::new(), Vec::new());
        each_new_word(text, |word, stem| {
            let weight = meaning(word);
            let list = if weight > 0.0 { &mut terms } else { &mut common };
            let weight = if weight > 0.0 { weight } else { 1.0 };
            list.push(Term { word: word.to_owned(), stem, weight, messages: 0 });
            terms.len() < MAX_TERMS && common.len() < MAX_TERMS
        });
        // A question of common words only is still a question.
        Self { terms: if terms.is_empty() { common } else { terms } }
    }

    /// The same with every word: those that carry no meaning in a sentence count little.
    pub(crate) fn of_every_word(text: &str) -> Self {
        let mut terms = Vec::new();
        each_new_word(text, |word, stem| {
            let weight = if meaning(word) < 1.0 { LITTLE } else { 1.0 };
            terms.push(Term { word: word.to_owned(), stem, weight, messages: 0 });
            terms.len() < MAX_TERMS
        });
        Self { terms }
    }

    /// The words that are looked for, in the order of the question.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Weighs each term by its rarity: `counts` has the number of messages that contain it, in the order of
    /// [`Self::terms`], and `messages` is the number of all messages. Counts may be lower bounds for common words.
    pub fn weigh(&mut self, counts: &[u64], messages: u64) {
        for (at, term) in self.terms.iter_mut().enumerate() {
            term.messages = counts.get(at).copied().unwrap_or_default();
            let (all, with) = (messages.max(term.messages) as f64, term.messages as f64);
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            term.weight *= rarity;
        }
    }

    /// The expression of FTS5 that finds the candidates: the words joined by OR, the rarest first, without words that are
    /// so common that they would only cost time. Empty if no message contains any word.
    pub fn expression(&self) -> String {
        let mut terms: Vec<&Term> = self.terms.iter().filter(|term| term.messages > 0).collect();
        terms.sort_by_key(|term| term.messages);
        let mut found = 0;
        let mut expressions = Vec::new();
        for term in terms {
            if !expressions.is_empty() && found >= FEW && found + term.messages > ENOUGH {
                break;
            }
            found += term.messages;
            expressions.push(term.expression());
        }
        expressions.join(" OR ")
    }

    /// Chooses candidates: `found` has the messages that contain each term, in the order of [`Self::terms`]. Returns the messages
    /// with the sum of the weights of their terms, best first. Of equal ones the greatest id comes first.
    pub fn choose(&self, found: &[Vec<u64>]) -> Vec<(u64, f64)> {
        let mut weights: HashMap<u64, f64> = HashMap::new();
        for (term, messages) in self.terms.iter().zip(found) {
            for message in messages {
                *weights.entry(*message).or_default() += term.weight;
            }
        }
        let mut chosen: Vec<(u64, f64)> = weights.into_iter().collect();
        chosen.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        chosen
    }

    /// The term of a stem.
    pub(crate) fn find(&self, stem: &str) -> Option<usize> {
        self.terms.iter().position(|term| term.stem == stem)
    }

    /// Whether a stem could be a term, by its beginning: a stem keeps the first two letters of its word.
    pub(crate) fn may_contain(&self, word: &str) -> bool {
        let beginning = |text: &str| text.bytes().take(2).eq(word.bytes().take(2));
        let unspaced = word.chars().next().is_some_and(is_unspaced);
        self.terms.iter().any(|term| if unspaced { term.word == word } else { beginning(&term.stem) })
    }
}

/// Calls `word` with each word of a question and its stem, once for each stem, until it returns false.
fn each_new_word(text: &str, mut word: impl FnMut(&str, String) -> bool) {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| at);
    let mut known = HashSet::new();
    each_word(&text[..end], |found| {
        let mut stemmed = found.to_owned();
        stem(&mut stemmed);
        !known.insert(stemmed.clone()) || word(found, stemmed)
    });
}
