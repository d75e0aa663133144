//! A comparison as people and programs read it.
//!
//! It is a function of what was compared: figures that a clock has measured stand apart and are left out unless asked for.

mod table;

use serde::Serialize;

use crate::figures::{Figures, Point};
use crate::replay::Outcome;
use crate::session::{Format, Note};
use crate::{LabError, Recording, Temper, Terms};

/// What the laboratory cannot tell.
pub const LIMITS: [&str; 5] = [
    "Replies are replayed as they were recorded: what a model would have done on seeing less, or more, is not known.",
    "A reply refers to text only where it repeats a line of it; what it takes up in other words is not seen. Use it to rank \
     engines, not as the truth.",
    "Summaries are the stand-in's, a selection of lines. A model would keep other text: compare columns with each other, not \
     with live systems.",
    "The provider's cache is simulated. Recordings that had their provider's own counts agreed within 1 % of the hit rate \
     and 7 % of the tokens.",
    "Replies cost the same in every column and are not counted. Reasoning and images are not counted either.",
];

/// A comparison.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Of the laboratory.
    pub version: &'static str,
    /// What all columns have in common.
    pub terms: Terms,
    /// How the summariser behaved.
    pub summariser: Temper,
    /// Each recording with its columns.
    pub recordings: Vec<Compared>,
    /// What the figures do not say.
    pub limits: [&'static str; 5],
}

/// A recording and what the columns came to in it.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// After its file or its session.
    pub name: String,
    /// What it was written in.
    pub format: Format,
    /// Of what was replayed.
    pub fingerprint: String,
    /// Its messages.
    pub messages: usize,
    /// Requests that were due.
    pub requests: usize,
    /// Images in it, of which only a mark was replayed.
    pub images: u64,
    /// What was left out or mended.
    pub notes: Vec<Note>,
    /// In the order in which they were named.
    pub columns: Vec<ColumnReport>,
}

/// A column's figures.
#[derive(Debug, Serialize)]
pub struct ColumnReport {
    /// As the column is called.
    pub name: String,
    /// What ended it before the recording was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Shares and sums of the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived: Option<Derived>,
    /// What the user would have been told meanwhile, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// A point for each request, for the plot.
    #[serde(skip)]
    pub points: Vec<Point>,
    /// Measured by a clock, and another one in every run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// What follows from the figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Derived {
    /// Tokens that were read from the cache, of all that were sent.
    pub hit_rate: f64,
    /// How often a token of the conversation was written to the cache.
    pub write_amplification: f64,
    /// Requests and summaries.
    pub cost: f64,
    /// The same with the fault tax.
    pub cost_with_tax: f64,
    /// The same, relative to the first column.
    pub ratio: Option<f64>,
    /// Requests that lacked text, of all.
    pub fault_rate: f64,
}

/// What plans took, in real time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Timing {
    /// How many were timed.
    pub plans: u64,
    /// Microseconds, half of them less.
    pub median_us: u64,
    /// Microseconds, one in a hundred more.
    pub p99_us: u64,
    /// Microseconds at most.
    pub max_us: u64,
}

impl Timing {
    /// Of so many microseconds each; none when there were none.
    pub fn of(mut micros: Vec<u64>) -> Option<Self> {
        micros.sort_unstable();
        let at = |share: usize| micros.get((micros.len() * share / 100).min(micros.len() - 1)).copied();
        Some(Self { plans: micros.len() as u64, max_us: *micros.last()?, median_us: at(50)?, p99_us: at(99)? })
    }
}

impl Compared {
    /// Puts the columns of a recording side by side, with what a clock has measured where that is wanted.
    pub fn new(recording: &Recording, outcomes: Vec<Outcome>, timing: bool) -> Self {
        let first = outcomes.first().and_then(|outcome| Some(outcome.figures.as_ref().ok()?.cost_with_tax()));
        let column = |outcome: Outcome| {
            let error = outcome.figures.as_ref().err().map(ToString::to_string);
            let figures = outcome.figures.ok();
            let derived = figures.as_ref().map(|figures| Derived::of(figures, first));
            ColumnReport {
                name: outcome.name,
                error,
                figures,
                derived,
                notices: outcome.notices,
                points: outcome.points,
                timing: outcome.timing.filter(|_| timing),
            }
        };
        Self {
            name: recording.name.clone(),
            format: recording.format,
            fingerprint: recording.fingerprint(),
            messages: recording.drafts.len(),
            requests: recording.requests(),
            images: recording.images,
            notes: recording.notes.clone(),
            columns: outcomes.into_iter().map(column).collect(),
        }
    }
}

impl Derived {
    fn of(figures: &Figures, first: Option<f64>) -> Self {
        let cost_with_tax = figures.cost_with_tax();
        Self {
            hit_rate: short(figures.hit_rate()),
            write_amplification: short(figures.write_amplification()),
            cost: figures.cost(),
            cost_with_tax,
            ratio: first.filter(|first| *first > 0.0).map(|first| short(cost_with_tax / first)),
            fault_rate: short(figures.fault_rate()),
        }
    }
}

/// To four places: more of them say nothing.
fn short(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

impl Report {
    /// Of recordings that were compared on these terms.
    pub fn new(terms: Terms, summariser: Temper, recordings: Vec<Compared>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), terms, summariser, recordings, limits: LIMITS }
    }

    /// For people: a table for each recording, and the sum where there are several.
    pub fn to_text(&self) -> String {
        table::text(self)
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Refuses columns that a reader could not tell apart.
///
/// # Errors
///
/// [`LabError::SameColumn`].
pub fn check_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), LabError> {
    let mut seen = std::collections::HashSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(LabError::SameColumn { name: name.to_owned() }),
        None => Ok(()),
    }
}
