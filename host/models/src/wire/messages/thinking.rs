//! Requests thinking, within what the API accepts.

use crate::{Request, family::Family};

/// The smallest budget that the API takes.
const LEAST_BUDGET: u32 = 1_024;
/// What a budget leaves of the cap on output, which covers both.
const LEAST_ANSWER: u32 = 4_096;

/// The members of a body. There are none beside a schema of the reply: its call is demanded, which the API refuses with thinking.
pub(super) fn members(request: &Request<'_>, family: Family, max_tokens: u32) -> Vec<(&'static str, String)> {
    let (Some(effort), Some(dial), None) = (request.effort, family.dial, request.schema) else { return Vec::new() };
    let budget = dial.ladder.rung(effort).and_then(|rung| rung.parse::<u32>().ok()).filter(|_| family.is_budgeted());
    match budget {
        None => dial.members(effort),
        // With a budget, the API demands that the calls whose results it gets were asked for with reasoning. Another model asked
        // for these, or a compaction has shortened the message.
        Some(_) if request.prefix.is_unreasoned() => Vec::new(),
        Some(budget) => match budget.min(max_tokens.saturating_sub(LEAST_ANSWER)) {
            0..LEAST_BUDGET => Vec::new(),
            budget => dial.on_at(&budget.to_string()),
        },
    }
}
