//! The report of a comparison, for people and programs.
//!
//! The report is a function of the input. Real-time measurements are separate, and left out unless requested.

pub(crate) mod layout;
mod table;

use hermes_recordings::{Format, Note};
use serde::Serialize;

use crate::figures::{Figures, Point};
use crate::replay::Outcome;
use crate::{FaultMode, LabError, Recording, Terms};

pub use hermes_engine_trials::timing::Timing;

/// The limits of the method, printed in every report.
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
    /// The version of the lab.
    pub version: &'static str,
    /// The terms that all columns share.
    pub terms: Terms,
    /// The behaviour of the summariser.
    pub summariser: FaultMode,
    /// The recordings with their columns.
    pub recordings: Vec<Compared>,
    /// The limits of the method.
    pub limits: [&'static str; 5],
}

/// A recording and the results of its columns.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The name of its file or session.
    pub name: String,
    /// The format of the file.
    pub format: Format,
    /// A fingerprint of the replayed messages.
    pub fingerprint: String,
    /// The number of messages.
    pub messages: usize,
    /// The number of requests.
    pub requests: usize,
    /// The number of images; only a placeholder of each was replayed.
    pub images: u64,
    /// What was left out or repaired.
    pub notes: Vec<Note>,
    /// The columns, in the order of the command line.
    pub columns: Vec<ColumnReport>,
}

/// A column's figures.
#[derive(Debug, Serialize)]
pub struct ColumnReport {
    /// The name of the column.
    pub name: String,
    /// The error that ended it early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Values derived from the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived: Option<Derived>,
    /// The notices that the user would have seen, without duplicates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// One point for each request, for the plot.
    #[serde(skip)]
    pub points: Vec<Point>,
    /// Real-time measurements, which differ in every run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// Values derived from the figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Derived {
    /// The share of sent tokens that were read from the cache.
    pub hit_rate: f64,
    /// How often a token of the conversation was written to the cache.
    pub write_amplification: f64,
    /// The cost of requests and summaries.
    #[serde(serialize_with = "crate::figures::whole")]
    pub cost: f64,
    /// The cost including the fault tax.
    #[serde(serialize_with = "crate::figures::whole")]
    pub cost_with_tax: f64,
    /// The cost including the fault tax, relative to the first column.
    pub ratio: Option<f64>,
    /// The share of requests with a fault.
    pub fault_rate: f64,
}

impl Compared {
    /// Compares the columns of a recording, with real-time measurements if requested.
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

/// Rounds to four decimal places.
fn short(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

impl Report {
    /// A report about these recordings.
    pub fn new(terms: Terms, summariser: FaultMode, recordings: Vec<Compared>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), terms, summariser, recordings, limits: LIMITS }
    }

    /// The report for people: a table for each recording, and totals if there are several.
    pub fn to_text(&self) -> String {
        table::text(self)
    }

    /// The report for programs.
    pub fn to_json(&self) -> String {
        // The report contains nothing that fails to serialize.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Refuses two columns with the same name.
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
