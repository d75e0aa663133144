//! The trace of a replay: what happened at each request, for authors of engines.
//!
//! Tokens are not rounded, so that sums over a trace are the figures of the report.

use std::io::{self, Write};

use hermes_engine_trials::trace::Plans;
use serde::Serialize;

use crate::context::Publication;

/// A line of the trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Row {
    /// A request.
    Request(Box<RequestRow>),
    /// The end of the recording, with what happened after the last request.
    End(EndRow),
}

/// What a request contained and cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RequestRow {
    /// The number of the request, starting at 1.
    pub request: u64,
    /// Its Unix time in the recording, in milliseconds.
    pub now_ms: u64,
    /// Its tokens, including system prompt and tools.
    pub tokens: f64,
    /// The part that was read from the cache.
    pub read: f64,
    /// The part that was written to the cache.
    pub written: f64,
    /// The part that the cache neither read nor stored.
    pub fresh: f64,
    /// Its cost, in tokens at the price of a fresh one.
    pub cost: f64,
    /// The cost of its fault, if it lacks text.
    pub fault_tax: f64,
    /// The number of lines in its reply that occurred earlier.
    pub references: usize,
    /// Those of these lines that the request did not show.
    pub lacking: Vec<String>,
    /// Why the request does not begin with the previous one.
    pub prefix_break: Option<PrefixBreak>,
    /// Why a provider would refuse the request.
    pub invalid: Option<String>,
    /// The new view, if this is its first request.
    pub publication: Option<PublicationRow>,
    /// The summariser's calls since the previous request.
    pub summaries: Vec<SummaryRow>,
    /// The engine's plans since the previous request; absent in columns without plans.
    pub plans: Option<Plans>,
}

/// What happened after the last request.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EndRow {
    /// The error that ended the column early.
    pub error: Option<String>,
    /// The summariser's calls.
    pub summaries: Vec<SummaryRow>,
    /// The engine's plans.
    pub plans: Option<Plans>,
}

/// Why a request does not begin with the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefixBreak {
    /// It is the first of a new view.
    NewView,
    /// It could have begun with the previous request.
    Avoidable,
}

/// A new view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublicationRow {
    /// See [`Publication`].
    #[serde(flatten)]
    pub publication: Publication,
    /// Whether the cache held only system prompt and tools, so that the new view cost nothing more.
    pub cold: bool,
}

/// A call of the summariser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SummaryRow {
    /// Tokens that it read.
    pub input: f64,
    /// Tokens that it wrote.
    pub output: f64,
    /// Its cost, in tokens at the price of a fresh one.
    pub cost: f64,
}

/// Writes the trace of a column as JSON lines.
///
/// # Errors
///
/// When the lines cannot be written.
pub fn write(out: &mut dyn Write, recording: &str, column: &str, rows: &[Row]) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        recording: &'a str,
        column: &'a str,
        #[serde(flatten)]
        row: &'a Row,
    }
    for row in rows {
        serde_json::to_writer(&mut *out, &Line { recording, column, row })?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
