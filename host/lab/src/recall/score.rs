//! Counts how much of the labelled evidence was found.

use std::collections::BTreeSet;

use hermes_conversation::tokens;

use super::{Answer, Collection, Dialogue, NEIGHBOURS, Question};

/// The counts of one kind of question.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The collection.
    pub collection: Collection,
    /// The kind of question.
    pub kind: String,
    /// How many questions of this kind have evidence.
    pub questions: u64,
    /// How many messages are evidence, over all questions.
    pub evidence: u64,
    /// The evidence found within the first hits.
    pub cuts: Vec<Cut>,
    /// Questions without any hit.
    pub without_hits: u64,
    /// The bytes of all answers with `k` hits.
    pub bytes: u64,
    /// The bytes of the largest one.
    pub most_bytes: u64,
    /// The estimated tokens of all answers with `k` hits.
    pub tokens: u64,
}

/// What was found within this many hits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cut {
    /// The number of hits.
    pub hits: usize,
    /// In the hits themselves.
    pub alone: Found,
    /// In the hits and the messages beside them.
    pub with_neighbours: Found,
}

/// Found evidence.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// How many messages of evidence were found.
    pub evidence: u64,
    /// For how many questions all of it was found.
    pub all: u64,
    /// The sum over questions of the share that was found.
    pub shares: f64,
}

impl Found {
    fn count(&mut self, evidence: &BTreeSet<usize>, shown: &BTreeSet<usize>) {
        let found = evidence.intersection(shown).count();
        self.evidence += found as u64;
        self.all += u64::from(found == evidence.len());
        self.shares += found as f64 / evidence.len() as f64;
    }

    fn add(&mut self, other: &Self) {
        self.evidence += other.evidence;
        self.all += other.all;
        self.shares += other.shares;
    }
}

/// The scores of all kinds of questions, all zero, in the order of their first question.
pub(super) fn empty(dialogues: &[Dialogue], cuts: &[usize]) -> Vec<Score> {
    let mut scores: Vec<Score> = Vec::new();
    for dialogue in dialogues {
        for question in &dialogue.questions {
            if !scores.iter().any(|score| score.is_for(dialogue.collection, &question.kind)) {
                scores.push(Score::new(dialogue.collection, &question.kind, cuts));
            }
        }
    }
    scores.sort_by(|one, other| (one.collection, &one.kind).cmp(&(other.collection, &other.kind)));
    scores
}

impl Score {
    fn new(collection: Collection, kind: &str, cuts: &[usize]) -> Self {
        Self {
            collection,
            kind: kind.to_owned(),
            questions: 0,
            evidence: 0,
            cuts: cuts.iter().map(|hits| Cut { hits: *hits, ..Cut::default() }).collect(),
            without_hits: 0,
            bytes: 0,
            most_bytes: 0,
            tokens: 0,
        }
    }

    pub(super) fn is_for(&self, collection: Collection, kind: &str) -> bool {
        self.collection == collection && self.kind == kind
    }

    /// Counts a question. `answer` has `k` hits and counts up to there; `deep` counts beyond.
    pub(super) fn count(&mut self, dialogue: &Dialogue, question: &Question, k: usize, answer: &Answer, deep: &Answer) {
        self.questions += 1;
        self.evidence += question.evidence.len() as u64;
        self.without_hits += u64::from(answer.hits.is_empty());
        let bytes = answer.text.len() as u64;
        self.bytes += bytes;
        self.most_bytes = self.most_bytes.max(bytes);
        self.tokens += u64::from(tokens::of_text(&answer.text));
        for cut in &mut self.cuts {
            let hits = if cut.hits <= k { &answer.hits } else { &deep.hits };
            let shown: BTreeSet<usize> = hits.iter().take(cut.hits).flatten().copied().collect();
            cut.alone.count(&question.evidence, &shown);
            cut.with_neighbours.count(&question.evidence, &dialogue.with_neighbours(&shown, NEIGHBOURS));
        }
    }

    /// The sum of scores of one collection.
    pub(super) fn sum<'a>(scores: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut scores = scores.into_iter();
        let mut sum = Self { kind: "all questions".to_owned(), ..scores.next()?.clone() };
        for score in scores {
            sum.questions += score.questions;
            sum.evidence += score.evidence;
            sum.without_hits += score.without_hits;
            sum.bytes += score.bytes;
            sum.most_bytes = sum.most_bytes.max(score.most_bytes);
            sum.tokens += score.tokens;
            for (cut, other) in sum.cuts.iter_mut().zip(&score.cuts) {
                cut.alone.add(&other.alone);
                cut.with_neighbours.add(&other.with_neighbours);
            }
        }
        Some(sum)
    }
}
