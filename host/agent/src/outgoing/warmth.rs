//! When the cached prefix of a session is warmed next, and what its warmings cost and saved.

use std::borrow::Cow;

use hermes_conversation::{SessionId, Usage};
use hermes_diagnostic::grouped;
use hermes_models::{Breakpoints, Pauses, Prefix, Price, Waiting, WarmingLimits, warming_cost, warming_saved};
use hermes_session_store::{AuxiliaryRecord, Frozen};

use super::{Bytes, Outgoing, PreviousRequest};
use crate::journal::Journal;

/// The limit on costs is one of 24 hours.
pub(super) const DAY_MS: u64 = 86_400_000;

/// The warmings of a session, and the pauses that decide about the next one.
pub(super) struct Warmth {
    price: Price,
    limits: WarmingLimits,
    pauses: Pauses,
    /// When warmings of all sessions were, and what they cost.
    spent: Vec<(u64, f64)>,
    /// Warmings since the last request of the conversation, and their cost.
    count: u32,
    cost: f64,
    /// Whether a warming of this pause failed. Then no other is sent.
    has_failed: bool,
}

impl Warmth {
    pub(super) fn new(price: Price, per_day: f64) -> Self {
        let limits = WarmingLimits { per_pause: WarmingLimits::PER_PAUSE, per_day };
        Self { price, limits, pauses: Pauses::default(), spent: Vec::new(), count: 0, cost: 0.0, has_failed: false }
    }

    /// Counts a request of any conversation.
    pub(super) fn sent(&mut self, session: &str, at_ms: u64) {
        self.pauses.sent(session, at_ms);
    }

    /// The cost of a warming. If the price of the model that answered is unknown, the price of the requested model counts.
    fn cost_of(&self, usage: Usage, known: Option<f64>) -> f64 {
        known.unwrap_or_else(|| warming_cost(f64::from(usage.input), &self.price))
    }

    fn spent(&self, now: u64) -> f64 {
        self.spent.iter().filter(|(at, _)| at + DAY_MS > now).map(|(_, cost)| cost).sum()
    }
}

/// Whether a warming read the prefix from the cache. If it wrote the prefix instead, it saved nothing: the next pause would lose
/// that as well.
fn is_read(usage: Usage) -> bool {
    usage.cache_read > usage.input / 2
}

impl Outgoing {
    /// Counts warmings that the ledger has. `rows` are those of all sessions within 24 hours, oldest first.
    pub(super) fn restore_warmings(&mut self, rows: &[(SessionId, AuxiliaryRecord)]) {
        for (of, row) in rows {
            // A request without a report may not have been read, so it counts nothing.
            let cost = row
                .usage
                .map_or(0.0, |usage| self.warmth.as_ref().map_or(0.0, |warmth| warmth.cost_of(usage, row.cost)));
            if let Some(warmth) = &mut self.warmth {
                warmth.spent.push((row.sent_at, cost));
            }
            if !row.usage.is_some_and(is_read) {
                continue;
            }
            if let Some(lifetimes) = &mut self.lifetimes {
                lifetimes.warmed(of.as_str(), row.sent_at);
            }
            if let Some(before) =
                self.before.as_mut().filter(|before| *of == self.session && before.sent_at < row.sent_at)
            {
                before.used_at = before.used_at.max(row.sent_at);
                if let Some(warmth) = &mut self.warmth {
                    warmth.count += 1;
                    warmth.cost += cost;
                }
            }
        }
    }

    /// When to warm the prefix next: Unix time in milliseconds, now or later. `None` if that does not pay, or if the next request
    /// has another prefix.
    pub(crate) fn warm_at(&self, frozen: &Frozen, journal: &Journal, now: u64) -> Option<u64> {
        let warmth = self.warmth.as_ref().filter(|warmth| !warmth.has_failed)?;
        let before = self.warmable()?;
        let continues = frozen.number == self.built.prompt && !self.is_stale(journal);
        if !continues || self.is_cold(now) {
            return None;
        }
        let waiting = Waiting {
            session: self.session.as_str(),
            tokens: f64::from(before.tokens()),
            ttl: before.ttl,
            used_at_ms: before.used_at,
            warmed: warmth.count,
            spent: warmth.spent(now),
        };
        warmth.pauses.warm_at(&waiting, &warmth.price, &warmth.limits).map(|at| at.max(now))
    }

    /// The previous request, if the provider caches it for this model and its bytes are known.
    fn warmable(&self) -> Option<&PreviousRequest> {
        let before = self.before.as_ref().filter(|_| self.reports_cache)?;
        let is_known = matches!(before.bytes, Bytes::Prefix { messages: 1.., .. });
        (is_known && before.identity == self.terms.identity()).then_some(before)
    }

    /// Whether the provider has dropped the previous request from its cache.
    pub(crate) fn is_cold(&self, now: u64) -> bool {
        let alive = |before: &PreviousRequest| {
            u128::from(now.saturating_sub(before.used_at)) <= before.ttl.duration().as_millis()
        };
        !self.before.as_ref().is_some_and(alive)
    }

    /// The previous request, to be sent again.
    pub(crate) fn warming(&self) -> Option<(Cow<'_, Prefix>, Breakpoints)> {
        let before = self.warmable()?;
        let Bytes::Prefix { messages, .. } = before.bytes else { return None };
        let breakpoints = Breakpoints { ttl: before.ttl, summaries: self.built.summaries, previous: None };
        Some((self.built.prefix.until(messages), breakpoints))
    }

    /// Counts a warming that was answered. `None` for one that was not: there is no other in this pause.
    pub(crate) fn warmed(&mut self, at: u64, answered: Option<(Usage, Option<f64>)>) {
        let Some(warmth) = &mut self.warmth else { return };
        if let Some((usage, cost)) = answered {
            let cost = warmth.cost_of(usage, cost);
            warmth.spent.push((at, cost));
            warmth.count += 1;
            warmth.cost += cost;
        }
        warmth.has_failed = !answered.is_some_and(|(usage, _)| is_read(usage));
        if warmth.has_failed {
            return;
        }
        if let Some(before) = &mut self.before {
            before.used_at = before.used_at.max(at);
        }
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.warmed(self.session.as_str(), at);
        }
    }

    /// Ends a pause with a request. `outlived` says whether it is longer than the lifetime of what was cached before.
    pub(super) fn end_pause(&mut self, outlived: bool, usage: Option<&Usage>) {
        let Some(warmth) = &mut self.warmth else { return };
        warmth.has_failed = false;
        let (count, cost) = (std::mem::take(&mut warmth.count), std::mem::take(&mut warmth.cost));
        let ttl = self.before.as_ref().map_or(self.terms.ttl, |before| before.ttl);
        if count > 0 {
            let read = usage.filter(|_| outlived).map_or(0, |usage| usage.cache_read);
            self.kept_warm = Some(kept_warm(count, cost, read, warming_saved(read, &warmth.price, ttl)));
        }
    }

    /// Takes the line about the cost and the saving of the last pause's warmings.
    pub(crate) fn take_kept_warm(&mut self) -> Option<String> {
        self.kept_warm.take()
    }
}

fn kept_warm(count: u32, cost: f64, read: u32, saved: f64) -> String {
    let requests = if count == 1 { "1 request".to_owned() } else { format!("{count} requests") };
    if read == 0 {
        return format!(
            "{requests} to keep the conversation in the provider's cache cost ${cost:.2} and saved nothing"
        );
    }
    let tokens = grouped(u64::from(read));
    format!(
        "{requests} kept {tokens} tokens in the provider's cache during the pause: cost ${cost:.2}, saved ${saved:.2}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_paid_and_saved() {
        let used = "3 requests kept 52,000 tokens in the provider's cache during the pause: cost $0.05, saved $0.18";
        assert_eq!(kept_warm(3, 0.047, 52_000, 0.179), used);
        let unused = "1 request to keep the conversation in the provider's cache cost $0.02 and saved nothing";
        assert_eq!(kept_warm(1, 0.016, 0, 0.0), unused);
    }
}
