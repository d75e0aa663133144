//! The trace of a replay or a verification: what happened at each request, for authors of engines.
//!
//! Tokens are not rounded, so that sums over a trace are the figures of the report.

use std::io::{self, Write};

use hermes_agent::compaction::Deferral;
use serde::Serialize;

use crate::context::{Compaction, Publication};

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

/// What became of an engine's plans.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plans {
    /// How often a plan was requested.
    pub asked: u64,
    /// The plans that did not pay off yet.
    pub deferred: Vec<Deferred>,
    /// Why plans were refused.
    pub refused: Vec<String>,
    /// The number of plans that came too late for their view.
    pub stale: u64,
    /// The number of calls that failed or missed their deadline.
    pub failures: u64,
}

/// A plan that does not pay off yet: what it saves is not more than what it costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deferred {
    /// The engine's reason.
    pub reason: String,
    /// The number of requests over which it would have to pay off.
    pub requests: u32,
    /// Tokens with which both views begin, and which stay in the cache.
    pub shared: u32,
    /// Tokens of the rest of the present view.
    pub before: u32,
    /// Tokens of the rest of the proposed view.
    pub after: u32,
    /// What the requests would save, in tokens at the price of a fresh one.
    pub saved: f64,
    /// What the first of them would pay more, because the rest of the proposed view is not in the cache.
    pub surcharge: f64,
}

impl From<Deferral> for Deferred {
    fn from(deferral: Deferral) -> Self {
        let Deferral { reason, requests, payoff, read_price, write_price } = deferral;
        Self {
            reason,
            requests,
            shared: payoff.shared,
            before: payoff.before,
            after: payoff.after,
            saved: payoff.saved(requests, read_price),
            surcharge: payoff.surcharge(read_price, write_price),
        }
    }
}

/// An event of a generated conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EventRow {
    /// The seed of the conversation.
    pub seed: u64,
    /// The number of the event, starting at 1.
    pub event: usize,
    /// What happened, such as `request` or `kill`.
    pub kind: &'static str,
    /// The tokens of the request, without system prompt and tools.
    pub tokens: Option<u32>,
    /// The compactions before the request.
    pub compactions: Vec<Compaction>,
    /// What became of the engine's plans since the previous request.
    pub plans: Option<Plans>,
    /// Why the conversation failed here.
    pub error: Option<String>,
}

/// Writes rows as JSON lines.
///
/// # Errors
///
/// When the lines cannot be written.
pub fn write_events(out: &mut dyn Write, rows: &[EventRow]) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut *out, row)?;
        out.write_all(b"\n")?;
    }
    Ok(())
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
