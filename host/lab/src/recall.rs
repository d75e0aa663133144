//! Compares memories: which of them finds the messages that answer a question?
//!
//! Dialogues with labelled evidence are written into each memory turn by turn, and the memory is asked every question. No
//! model takes part. The figures are a function of the input; what was measured in real time and on the disk is kept apart.

mod bm25;
mod chart;
pub mod dialogue;
mod measured;
mod provider;
mod quoted;
pub mod report;
mod score;
mod sessions;
mod tool;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

pub use self::bm25::Bm25;
pub use self::chart::svg;
pub use self::dialogue::{Collection, Dialogue, Only, Question, Turn, Utterance, read};
pub use self::measured::Measured;
pub use self::provider::Provider;
pub use self::report::RecallReport;
pub use self::score::{Cut, Score};
pub use self::sessions::SessionSearch;
pub use self::tool::RecallTool;

/// How many messages on either side of a hit are shown with it.
pub const NEIGHBOURS: usize = 2;
/// The numbers of hits that are always counted.
pub const CUTS: [usize; 4] = [1, 5, 10, 40];

/// A kind of memory to compare: a column of the report.
pub trait Contender {
    /// The name of the column.
    fn name(&self) -> &str;

    /// Starts an empty memory for a dialogue, with an empty folder for its data.
    ///
    /// # Errors
    ///
    /// Returns the reason if it does not start.
    fn begin<'a>(&'a self, dialogue: &'a Dialogue, folder: &Path) -> Result<Box<dyn Memory + 'a>, String>;
}

/// A memory of one dialogue.
pub trait Memory {
    /// Stores a turn of the dialogue.
    ///
    /// # Errors
    ///
    /// Returns the reason if the turn is not stored.
    fn write(&mut self, turn: &Turn) -> Result<(), String>;

    /// Completes what it does between the last turn and the first question, such as upkeep.
    ///
    /// # Errors
    ///
    /// Returns the reason if that fails.
    fn settle(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Answers a question with at most this many hits, the best one first.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is no answer.
    fn ask(&mut self, question: &str, hits: usize) -> Result<Answer, String>;
}

/// The answer of a memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The messages of each hit, by their position in the dialogue, the best hit first.
    pub hits: Vec<BTreeSet<usize>>,
    /// The whole text that a model reads.
    pub text: String,
}

/// What became of a column.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// A score for each collection and kind of question, in order.
    pub scores: Vec<Score>,
    /// The failures of calls.
    pub failures: Failures,
    /// What differs between runs.
    pub measured: Measured,
}

/// Calls of a memory that failed. A question without an answer counts as one that found nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Failures {
    /// Dialogues for which it did not start.
    pub starts: u64,
    /// Turns that it did not store.
    pub writes: u64,
    /// Questions that it did not answer.
    pub questions: u64,
    /// The first failure.
    pub first: Option<String>,
}

impl Failures {
    /// Whether every call succeeded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn keep(&mut self, what: impl FnOnce() -> String) {
        if self.first.is_none() {
            self.first = Some(what());
        }
    }
}

/// The numbers of hits to count: the usual ones and `k`.
pub fn cuts(k: usize) -> Vec<usize> {
    let cuts: BTreeSet<usize> = CUTS.into_iter().chain([k]).collect();
    cuts.into_iter().collect()
}

/// Writes the dialogues into memories of this kind, and asks all questions. `folder` is for their data.
///
/// # Errors
///
/// Returns an error if the folder cannot be used.
pub fn compare(contender: &dyn Contender, dialogues: &[Dialogue], k: usize, folder: &Path) -> std::io::Result<Outcome> {
    let mut outcome = Outcome {
        name: contender.name().to_owned(),
        scores: score::empty(dialogues, &cuts(k)),
        failures: Failures::default(),
        measured: Measured::default(),
    };
    for (number, dialogue) in dialogues.iter().enumerate() {
        let own = folder.join(number.to_string());
        fs::create_dir_all(&own)?;
        one(contender, dialogue, k, &own, &mut outcome);
        // Its files are closed now, so they have their final size.
        outcome.measured.bytes_on_disk += measured::size_of(&own)?;
        fs::remove_dir_all(&own)?;
    }
    Ok(outcome)
}

fn one(contender: &dyn Contender, dialogue: &Dialogue, k: usize, folder: &Path, outcome: &mut Outcome) {
    let Outcome { scores, failures, measured, .. } = outcome;
    let mut memory = match contender.begin(dialogue, folder) {
        Ok(memory) => Some(memory),
        Err(why) => {
            failures.starts += 1;
            failures.keep(|| format!("dialogue {}: {why}", dialogue.name));
            None
        }
    };
    if let Some(memory) = &mut memory {
        for turn in dialogue.turns() {
            let begun = Instant::now();
            let written = memory.write(&turn);
            measured.writes.push(begun.elapsed());
            if let Err(why) = written {
                failures.writes += 1;
                failures.keep(|| format!("dialogue {}, message {}: {why}", dialogue.name, turn.messages.start + 1));
            }
        }
        if let Err(why) = memory.settle() {
            failures.writes += 1;
            failures.keep(|| format!("dialogue {}, after the last turn: {why}", dialogue.name));
        }
    }
    let deepest = cuts(k).last().copied().unwrap_or(k);
    for question in &dialogue.questions {
        let mut ask = |hits: usize| match &mut memory {
            None => Answer::default(),
            Some(memory) => memory.ask(&question.text, hits).unwrap_or_else(|why| {
                failures.questions += 1;
                failures.keep(|| format!("dialogue {}, question {}: {why}", dialogue.name, question.id));
                Answer::default()
            }),
        };
        let begun = Instant::now();
        let answer = ask(k);
        measured.questions.push(begun.elapsed());
        let deep = if deepest > k { ask(deepest) } else { answer.clone() };
        if let Some(score) = scores.iter_mut().find(|score| score.is_for(dialogue.collection, &question.kind)) {
            score.count(dialogue, question, k, &answer, &deep);
        }
    }
}

#[cfg(test)]
mod tests;
