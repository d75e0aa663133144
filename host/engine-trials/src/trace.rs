//! What happens at each request of a trial, for authors of engines.
//!
//! Tokens are not rounded, so that sums over a trace are the figures of a report.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hermes_agent::compaction::{Compacted, Deferral};
use serde::Serialize;

/// A compaction of the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compaction {
    /// The engine, `host`, or the column of an external command.
    pub by: String,
    /// The reason, one line.
    pub reason: String,
    /// Estimated tokens of the messages before; unknown for an external command.
    pub before: Option<u32>,
    /// Estimated tokens of the messages after.
    pub after: Option<u32>,
    /// Additional fields of the engine's plan.
    pub extra: BTreeMap<String, String>,
}

impl From<Compacted> for Compaction {
    fn from(compacted: Compacted) -> Self {
        let Compacted { reason, by, before, after, extra } = compacted;
        Self { by, reason, before: Some(before), after: Some(after), extra: extra.into_iter().collect() }
    }
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
