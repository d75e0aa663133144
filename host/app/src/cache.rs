//! How much of each request of a session the provider read from its prompt cache, why not more, and what it cost.

use std::collections::BTreeMap;

use hermes_agent::{Ephemeral, WARMING};
use hermes_conversation::tokens;
use hermes_models::{Prices, Ttl, warming_saved};
use hermes_prompt::ledger::Cause;
use hermes_session_store::{AuxiliaryRecord, Ledger, Session};

use crate::AppError;

pub use hermes_session_store::RequestRecord;

/// The requests of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheUse {
    /// Those of the conversation, oldest first.
    pub requests: Vec<SentRequest>,
    /// Those that only kept the session in the provider's cache.
    pub warmings: Warmings,
}

/// A request of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct SentRequest {
    /// As the ledger has it.
    pub record: RequestRecord,
    /// What was sent with it and is not stored in the conversation.
    pub ephemeral: Option<EphemeralText>,
}

/// Text that was sent with one request only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EphemeralText {
    /// Estimated tokens.
    pub tokens: u32,
    /// US dollars, if the price is known: the price of cached input if the cache was read and nothing before the text changed, else
    /// the full price.
    pub cost: Option<f64>,
}

/// Requests that only kept a session in the provider's cache.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Warmings {
    /// How many.
    pub count: u64,
    /// US dollars, of those with a known price.
    pub cost: f64,
    /// US dollars that the requests after long pauses would have cost more.
    pub saved: f64,
}

impl CacheUse {
    /// Reads the requests of a session.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn read(store: &dyn Ledger, session: &Session, prices: &Prices) -> Result<Self, AppError> {
        let records = store.requests(&session.id).await?;
        let since = records.first().map_or(0, |first| first.sent_at);
        let all = store.auxiliary_since(WARMING.0, WARMING.1, since).await?;
        let own = all.into_iter().filter(|(of, _)| *of == session.id);
        let warmings = Warmings::between(&records, &own.map(|(_, row)| row).collect::<Vec<_>>(), prices);
        let requests = records.into_iter().map(|record| SentRequest::of(record, prices)).collect();
        Ok(Self { requests, warmings })
    }

    /// US dollars; `None` if no request has a known price.
    pub fn cost(&self) -> Option<f64> {
        self.sum(|record| record.cost)
    }

    /// US dollars that the cache saved; `None` if no request has a known price.
    pub fn saved(&self) -> Option<f64> {
        self.sum(|record| record.saved)
    }

    /// US dollars that broken prefixes cost; `None` if nothing is known of any.
    pub fn lost(&self) -> Option<f64> {
        self.sum(|record| record.lost)
    }

    /// How many requests have no known price.
    pub fn unpriced(&self) -> u64 {
        self.requests.iter().filter(|request| request.record.cost.is_none()).count() as u64
    }

    /// How many requests did not extend the one before them.
    pub fn breaks(&self) -> u64 {
        self.requests.iter().filter(|request| request.is_break()).count() as u64
    }

    /// The share of all bytes that equal those of the request before, in percent.
    pub fn unchanged_percent(&self) -> f64 {
        let sum_of = |of: fn(&RequestRecord) -> u64| {
            self.requests.iter().map(|request| of(&request.record)).fold(0, u64::saturating_add)
        };
        let (kept, sent) = (sum_of(|record| record.prefix_bytes), sum_of(|record| record.bytes));
        if sent == 0 { 0.0 } else { kept as f64 * 100.0 / sent as f64 }
    }

    /// The models that answered in place of the ones that were asked, each with its number of requests.
    pub fn answered_by(&self) -> BTreeMap<&str, u64> {
        let mut answers = BTreeMap::new();
        for name in self.requests.iter().filter_map(|request| request.record.answered_by.as_deref()) {
            *answers.entry(name).or_insert(0) += 1;
        }
        answers
    }

    fn sum(&self, of: impl Fn(&RequestRecord) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.requests.iter().filter_map(|request| of(&request.record)).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }
}

impl SentRequest {
    /// A request of the ledger, with these prices.
    pub fn of(record: RequestRecord, prices: &Prices) -> Self {
        let ephemeral = record.ephemeral.as_deref().map(|layers| {
            let tokens = ephemeral_tokens(layers);
            EphemeralText { tokens, cost: ephemeral_cost(tokens, &record, prices) }
        });
        Self { record, ephemeral }
    }

    /// Whether it did not extend the one before it. The first request cannot.
    pub fn is_break(&self) -> bool {
        self.record.cause.as_deref().is_some_and(|cause| cause != Cause::FirstRequest.as_str())
    }

    /// The share of its bytes that equal those of the request before, from 0 to 1.
    pub fn unchanged(&self) -> f64 {
        let RequestRecord { bytes, prefix_bytes, .. } = &self.record;
        if *bytes == 0 { 0.0 } else { *prefix_bytes as f64 / *bytes as f64 }
    }
}

/// Estimated tokens of the layers that are sent but not stored in the conversation.
fn ephemeral_tokens(layers: &str) -> u32 {
    let layers: Ephemeral = serde_json::from_str(layers).unwrap_or_default();
    let prefill = layers.prefill.iter().map(|(_, text)| tokens::of_text(text)).sum::<u32>();
    tokens::of_text(&layers.system) + prefill
}

fn ephemeral_cost(tokens: u32, request: &RequestRecord, prices: &Prices) -> Option<f64> {
    let answered_by = request.answered_by.as_deref();
    let price = prices.of_reply(&request.provider, &request.model, answered_by)?;
    let read = request.usage.is_some_and(|usage| usage.cache_read > 0);
    let stayed = matches!(request.cause.as_deref().map(Cause::parse), None | Some(Some(Cause::Compaction)));
    let each = if read && stayed { price.cache_read } else { price.input };
    Some(f64::from(tokens) * each / 1e6)
}

impl Warmings {
    fn between(requests: &[RequestRecord], rows: &[AuxiliaryRecord], prices: &Prices) -> Self {
        let cost = rows.iter().filter_map(|row| row.cost).sum();
        let saved = requests.windows(2).filter_map(|pair| {
            let [before, after] = pair else { return None };
            let is_between = |row: &AuxiliaryRecord| (before.sent_at..after.sent_at).contains(&row.sent_at);
            let ttl: Ttl = before.cache_ttl.as_deref()?.parse().ok()?;
            let outlived = u128::from(after.sent_at.saturating_sub(before.sent_at)) > ttl.duration().as_millis();
            let price = prices.of_reply(&after.provider, &after.model, after.answered_by.as_deref())?;
            let read = after.usage.filter(|_| outlived && rows.iter().any(is_between))?.cache_read;
            Some(warming_saved(read, &price, ttl))
        });
        Self { count: rows.len() as u64, cost, saved: saved.sum() }
    }
}

#[cfg(test)]
mod tests {
    use hermes_conversation::Usage;
    use serde_json::json;

    use super::*;

    #[test]
    fn ephemeral_text_has_the_cached_price_only_if_nothing_before_it_changed() {
        let sent = |cause: Option<&str>| RequestRecord {
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            cause: cause.map(str::to_owned),
            ephemeral: Some(
                json!({"system": "be brief and answer in rhymes, whatever happens", "prefill": []}).to_string(),
            ),
            usage: Some(Usage { input: 3_000, cache_read: 1_024, ..Usage::default() }),
            ..RequestRecord::default()
        };
        let cost = |record| SentRequest::of(record, &Prices::built_in()).ephemeral.and_then(|text| text.cost);
        let (moved, kept) = (cost(sent(Some("ephemeral-layer"))), cost(sent(None)));
        let (Some(moved), Some(kept)) = (moved, kept) else { panic!("the price is known") };
        assert!(moved > 5.0 * kept && kept > 0.0, "{moved} {kept}");
        assert_eq!(cost(RequestRecord::default()), None);
    }

    #[test]
    fn warmings_save_what_a_request_after_a_long_pause_reads() {
        let minute = |minute: u64| minute * 60_000;
        let sent = |at, ttl: &str, cache_read| RequestRecord {
            sent_at: minute(at),
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            cache_ttl: Some(ttl.into()),
            usage: Some(Usage { input: 100_000, cache_read, ..Usage::default() }),
            ..RequestRecord::default()
        };
        let warming = |at| AuxiliaryRecord { sent_at: minute(at), cost: Some(0.03), ..AuxiliaryRecord::default() };
        let saved = |requests: &[RequestRecord], rows: &[AuxiliaryRecord]| {
            Warmings::between(requests, rows, &Prices::built_in()).saved
        };
        let pause = |to| [sent(0, "5m", 0), sent(to, "5m", 100_000)];
        let rows = [warming(4)];
        // $3.75 for writing a million tokens, $0.30 for reading them.
        assert!((saved(&pause(8), &rows) - 0.345).abs() < 1e-9);
        assert_eq!(saved(&pause(5), &rows), 0.0, "nothing had expired");
        assert_eq!(saved(&pause(8), &[]), 0.0, "something else kept it");
        assert_eq!(saved(&[sent(0, "5m", 0), sent(20, "5m", 0)], &rows), 0.0, "it was lost nevertheless");
        assert_eq!(saved(&[sent(0, "1h", 0), sent(20, "5m", 100_000)], &rows), 0.0, "an hour had not passed");
        let all = Warmings::between(&pause(20), &[warming(4), warming(8)], &Prices::built_in());
        assert_eq!((all.count, all.cost), (2, 0.06));
    }
}
