//! The report of a comparison of memories, for people and programs.

mod table;

use hermes_recordings::Note;
use serde::Serialize;

use super::score::{Cut, Found, Score};
use super::{Collection, Dialogue, Failures, Measured, NEIGHBOURS, Outcome};

/// How to read the figures, printed in every report.
pub const METHOD: [&str; 7] = [
    "Each figure stands alone / with neighbours: evidence in the hits themselves, and in the hits with up to two messages of \
     the same session on either side of each.",
    "The share of all evidence counts labelled messages: those found, of all questions together. A question with much \
     evidence weighs more than one with little.",
    "The mean of questions is the mean, over questions, of the share of its own evidence that was found. Each question \
     weighs the same.",
    "A hit is a message, or for a memory provider a recollection, whose messages are those that its text shows.",
    "No model reads or writes text: no memory has extracted facts, summaries or expanded questions, and a provider that needs \
     a model to write finds little.",
    "A question is asked as it is in the collection. A model would choose words of its own, and could ask again.",
    "Answers are measured as they are shown to the model, with the number of hits that --k says; a memory provider has the \
     token budget of a turn instead.",
];

/// A comparison of memories.
#[derive(Debug, Serialize)]
pub struct RecallReport {
    /// The version of the lab.
    pub version: &'static str,
    /// The number of hits of an answer.
    pub k: usize,
    /// How many messages on either side of a hit count with it.
    pub neighbours: usize,
    /// What was read, by collection.
    pub sets: Vec<Set>,
    /// What was left out of the files.
    pub notes: Vec<Note>,
    /// What computed vectors of texts for memory providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<String>,
    /// The memories, in the order of the command line.
    pub columns: Vec<Column>,
    /// How to read the figures.
    pub method: &'static [&'static str],
}

/// The dialogues of a collection.
#[derive(Debug, Serialize)]
pub struct Set {
    /// The collection.
    pub collection: Collection,
    /// The number of dialogues.
    pub dialogues: usize,
    /// The number of sessions in them.
    pub sessions: usize,
    /// The number of messages.
    pub messages: usize,
    /// The bytes of their texts.
    pub bytes: usize,
    /// The number of questions with evidence.
    pub questions: usize,
    /// The number of messages that are evidence, over all questions.
    pub evidence: usize,
    /// A fingerprint of messages, questions and evidence.
    pub fingerprint: String,
    /// What was corrected, and what could not be used.
    pub notes: Vec<Note>,
}

/// A memory.
#[derive(Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its figures for each collection: all questions, then each kind.
    pub figures: Vec<Figures>,
    /// Calls that failed.
    pub failures: Failures,
    /// Times and bytes on the disk, which differ between runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// The figures of one kind of question.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// The collection.
    pub collection: Collection,
    /// The kind of question, or `all questions`.
    pub kind: String,
    /// The number of questions with evidence.
    pub questions: u64,
    /// The number of messages that are evidence.
    pub evidence: u64,
    /// Questions to which the memory gave no hit.
    pub without_hits: u64,
    /// What was found within each number of hits.
    pub found: Vec<Within>,
    /// The mean bytes of an answer.
    pub mean_bytes: u64,
    /// The bytes of the largest answer.
    pub most_bytes: u64,
    /// The mean tokens of an answer, estimated.
    pub mean_tokens: u64,
}

/// What was found within a number of hits.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Within {
    /// The number of hits.
    pub hits: usize,
    /// In the hits themselves.
    pub alone: Shares,
    /// In the hits and the messages beside them.
    pub with_neighbours: Shares,
}

/// Shares from 0 to 1.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Shares {
    /// Found evidence of all evidence, over all questions together.
    pub share_of_all_evidence: f64,
    /// The mean over questions of the share of its own evidence.
    pub mean_of_questions: f64,
    /// Questions of which all evidence was found.
    pub all_found: f64,
}

impl RecallReport {
    /// A report about these dialogues. Without `measured`, the report is a function of the input.
    pub fn new(dialogues: &[Dialogue], notes: Vec<Note>, outcomes: Vec<Outcome>, k: usize, measured: bool) -> Self {
        let mut collections: Vec<Collection> = dialogues.iter().map(|dialogue| dialogue.collection).collect();
        collections.sort_unstable();
        collections.dedup();
        let set = |collection: &Collection| {
            Set::of(*collection, dialogues.iter().filter(|dialogue| dialogue.collection == *collection))
        };
        let column = |outcome: Outcome| {
            let figures = collections.iter().flat_map(|collection| {
                let own = || outcome.scores.iter().filter(|score| score.collection == *collection);
                let all = Score::sum(own());
                all.iter().chain(own()).map(Figures::of).collect::<Vec<_>>()
            });
            Column {
                figures: figures.collect(),
                name: outcome.name,
                failures: outcome.failures,
                measured: measured.then_some(outcome.measured),
            }
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            k,
            neighbours: NEIGHBOURS,
            sets: collections.iter().map(set).collect(),
            notes,
            embeddings: None,
            columns: outcomes.into_iter().map(column).collect(),
            method: &METHOD,
        }
    }

    /// The same report of a run in which this model computed vectors of texts for memory providers.
    #[must_use]
    pub fn with_embeddings(self, name: Option<String>) -> Self {
        Self { embeddings: name, ..self }
    }

    /// The report for people: a table for each collection.
    pub fn to_text(&self) -> String {
        table::text(self)
    }

    /// The report for programs.
    pub fn to_json(&self) -> String {
        // The report contains nothing that fails to serialize.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl Set {
    fn of<'a>(collection: Collection, dialogues: impl Iterator<Item = &'a Dialogue>) -> Self {
        let mut set = Self {
            collection,
            dialogues: 0,
            sessions: 0,
            messages: 0,
            bytes: 0,
            questions: 0,
            evidence: 0,
            fingerprint: String::new(),
            notes: Vec::new(),
        };
        let mut hasher = blake3::Hasher::new();
        let mut hash = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        for dialogue in dialogues {
            set.dialogues += 1;
            set.sessions += dialogue.sessions();
            set.messages += dialogue.messages.len();
            set.bytes += dialogue.messages.iter().map(|message| message.text.len()).sum::<usize>();
            set.questions += dialogue.questions.len();
            set.evidence += dialogue.questions.iter().map(|question| question.evidence.len()).sum::<usize>();
            dialogue.messages.iter().for_each(|message| hash(&message.text));
            for question in &dialogue.questions {
                hash(&question.text);
                hash(&format!("{:?}", question.evidence));
            }
            for note in &dialogue.notes {
                super::dialogue::add(&mut set.notes, note.what, note.count);
            }
        }
        set.notes.sort_by_key(|note| note.what);
        set.fingerprint = hasher.finalize().to_hex()[..16].to_owned();
        set
    }
}

impl Figures {
    fn of(score: &Score) -> Self {
        let mean = |sum: u64| (sum as f64 / score.questions.max(1) as f64).round() as u64;
        let shares = |found: &Found| Shares {
            share_of_all_evidence: share(found.evidence as f64, score.evidence),
            mean_of_questions: share(found.shares, score.questions),
            all_found: share(found.all as f64, score.questions),
        };
        let within = |cut: &Cut| Within {
            hits: cut.hits,
            alone: shares(&cut.alone),
            with_neighbours: shares(&cut.with_neighbours),
        };
        Self {
            collection: score.collection,
            kind: score.kind.clone(),
            questions: score.questions,
            evidence: score.evidence,
            without_hits: score.without_hits,
            found: score.cuts.iter().map(within).collect(),
            mean_bytes: mean(score.bytes),
            most_bytes: score.most_bytes,
            mean_tokens: mean(score.tokens),
        }
    }
}

/// A share, rounded to four decimal places.
fn share(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part / whole as f64 * 1e4).round() / 1e4 }
}
