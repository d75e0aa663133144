//! The choice between five minutes and an hour for what a request writes to the provider's cache, from the past only.
//!
//! A written token lasts until a pause that is longer than its lifetime, or until a compaction removes it. If the next such
//! event is a pause of at most an hour, a token that was written for an hour is read instead of written again; otherwise its
//! higher price was wasted. With the prices `w` for five minutes, `h` for an hour and `r` for a read, an hour pays if the
//! probability of that pause is above `(h - w) / (h - r)`: 0.39 at 1.25, 2 and 0.1. The pauses so far estimate it, per token
//! by which conversations grew; the closer a conversation is to its compaction, the less likely is another pause before.
//!
//! What is cached for five minutes stays so while it lives, because writing it again for an hour costs more than waiting for
//! the next pause. What is cached for an hour is still read by a request that writes for five minutes.

use std::collections::{HashMap, HashSet};

use crate::{Price, Ttl};

/// Weight of a past event halves in this time: habits change.
const HALF_LIFE_MS: f64 = 20.0 * 86_400_000.0;
/// What is assumed before anything is known: slightly in favour of five minutes at usual prices.
const PRIOR: Habits = Habits { pauses: 0.4, ends: 0.5, grown: 32_000.0, compactions: 0.0, full: 0.0 };

/// A request, before it is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked<'a> {
    /// The conversation that it continues.
    pub session: &'a str,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// Tokens of the whole prompt.
    pub tokens: f64,
}

/// Sums over past requests; recent ones count more.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Habits {
    /// Pauses above five minutes and up to an hour.
    pauses: f64,
    /// Longer pauses, and conversations that were left.
    ends: f64,
    /// Tokens by which conversations grew.
    grown: f64,
    /// Compactions, and the tokens before them.
    compactions: f64,
    full: f64,
}

impl Habits {
    fn age(&mut self, by_ms: u64) {
        let keep = 0.5_f64.powf(by_ms as f64 / HALF_LIFE_MS);
        for sum in [&mut self.pauses, &mut self.ends, &mut self.grown, &mut self.compactions, &mut self.full] {
            *sum *= keep;
        }
    }

    /// The probability that a token written now is needed after a pause of at most an hour before it is lost otherwise.
    fn pause_comes_first(&self, tokens: f64, window: f64) -> f64 {
        let full = if self.compactions > 0.0 { self.full / self.compactions } else { window };
        let compaction = self.grown / (full - tokens).max(1.0);
        self.pauses / (self.pauses + self.ends + compaction)
    }
}

/// The last request of a conversation.
#[derive(Debug, Clone, Copy)]
struct Last {
    at_ms: u64,
    /// When it was last read from the cache, by the request itself or by a warming.
    used_ms: u64,
    tokens: f64,
    ttl: Ttl,
}

/// Chooses lifetimes for the requests to one model, and learns from each.
///
/// The choices depend only on the requests so far, so that another process with the same ledger continues them. The ledger has the
/// lifetime of each, so that another choice of earlier requests, or a limit on their number, does not change what is known to be cached.
///
/// ```
/// use hermes_models::{Asked, Lifetimes, Prices, Ttl};
///
/// let price = Prices::built_in().of("anthropic", "claude-sonnet-4-5").unwrap();
/// let mut lifetimes = Lifetimes::new(Some(price), 200_000);
/// let mut ask = |minute: u64| lifetimes.choose(&Asked { session: "s", at_ms: minute * 60_000, tokens: 20_000.0 });
/// assert_eq!(ask(0), Ttl::FiveMinutes);
/// assert_eq!(ask(20), Ttl::OneHour, "twenty minutes of pause");
/// ```
#[derive(Debug, Clone)]
pub struct Lifetimes {
    price: Option<Price>,
    window: f64,
    habits: Habits,
    now_ms: u64,
    last: HashMap<String, Last>,
    /// Conversations whose last pause may still be one of at most an hour.
    open: HashSet<String>,
}

impl Lifetimes {
    /// Without a past. Without a price for an hour that is above that for five minutes, five minutes are always chosen.
    pub fn new(price: Option<Price>, window: u32) -> Self {
        Self { price, window: f64::from(window), habits: PRIOR, now_ms: 0, last: HashMap::new(), open: HashSet::new() }
    }

    /// Chooses the lifetime for the marks of a request, then counts the request to the past.
    pub fn choose(&mut self, asked: &Asked<'_>) -> Ttl {
        self.count(asked, None)
    }

    /// Counts a request to the past that was sent with this lifetime. An unknown one is chosen again from what preceded it.
    pub fn passed(&mut self, asked: &Asked<'_>, ttl: Option<Ttl>) {
        self.count(asked, ttl);
    }

    fn count(&mut self, asked: &Asked<'_>, known: Option<Ttl>) -> Ttl {
        // Clocks of several processes may differ a little.
        let now = asked.at_ms.max(self.now_ms);
        if self.now_ms > 0 {
            self.habits.age(now - self.now_ms);
        }
        self.now_ms = now;
        self.close_open(now);
        let last = self.last.get(asked.session).copied();
        if let Some(last) = last {
            self.learn(asked, &last, now);
        }
        let ttl = match (known, last) {
            (Some(known), _) => known,
            (None, Some(last))
                if last.ttl == Ttl::FiveMinutes && is_alive(&last, now) && !is_compacted(asked, &last) =>
            {
                last.ttl
            }
            _ => self.best(asked.tokens),
        };
        self.last.insert(asked.session.to_owned(), Last { at_ms: now, used_ms: now, tokens: asked.tokens, ttl });
        self.open.insert(asked.session.to_owned());
        ttl
    }

    /// Notes that a warming read the last request of a conversation from the cache, which keeps it for another lifetime.
    pub fn warmed(&mut self, session: &str, at_ms: u64) {
        if let Some(last) = self.last.get_mut(session) {
            last.used_ms = last.used_ms.max(at_ms);
        }
    }

    /// The lifetime that was chosen for the last request of a conversation.
    pub fn last(&self, session: &str) -> Option<Ttl> {
        self.last.get(session).map(|last| last.ttl)
    }

    /// Conversations without a request for an hour have lost what was cached for them.
    fn close_open(&mut self, now: u64) {
        let Self { open, last, habits, .. } = self;
        open.retain(|session| {
            let stays = last.get(session).is_some_and(|last| within(last, now, Ttl::OneHour));
            if !stays {
                habits.ends += 1.0;
            }
            stays
        });
    }

    fn learn(&mut self, asked: &Asked<'_>, last: &Last, now: u64) {
        if self.open.contains(asked.session) && !within(last, now, Ttl::FiveMinutes) {
            self.habits.pauses += 1.0;
        }
        if is_compacted(asked, last) {
            self.habits.compactions += 1.0;
            self.habits.full += last.tokens;
        } else {
            self.habits.grown += (asked.tokens - last.tokens).max(0.0);
        }
    }

    /// The cheaper lifetime for what must be written now.
    fn best(&self, tokens: f64) -> Ttl {
        let Some(Price { cache_read, cache_write, cache_write_1h, .. }) = self.price else { return Ttl::FiveMinutes };
        if cache_write_1h <= cache_write || cache_write <= cache_read {
            return Ttl::FiveMinutes;
        }
        let threshold = (cache_write_1h - cache_write) / (cache_write_1h - cache_read);
        if self.habits.pause_comes_first(tokens, self.window) > threshold { Ttl::OneHour } else { Ttl::FiveMinutes }
    }
}

/// Whether most of a conversation is new. A smaller loss is an edit or a rewind, or a difference between estimates.
fn is_compacted(asked: &Asked<'_>, last: &Last) -> bool {
    asked.tokens < last.tokens * 0.75
}

/// Whether the provider still keeps what the last request marked.
fn is_alive(last: &Last, now: u64) -> bool {
    u128::from(now.saturating_sub(last.used_ms)) <= last.ttl.duration().as_millis()
}

fn within(last: &Last, now: u64, ttl: Ttl) -> bool {
    u128::from(now.saturating_sub(last.at_ms)) <= ttl.duration().as_millis()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRICE: Price = Price { input: 1.0, output: 5.0, cache_read: 0.1, cache_write: 1.25, cache_write_1h: 2.0 };

    /// The choices for requests of one conversation that grows by 3,000 tokens each, after pauses in minutes.
    fn choices(price: Option<Price>, pauses: &[u64]) -> Vec<&'static str> {
        let mut lifetimes = Lifetimes::new(price, 200_000);
        let (mut at_ms, mut tokens) = (1_000, 15_000.0);
        let ask = |pause: &u64| {
            at_ms += pause * 60_000;
            tokens += 3_000.0;
            lifetimes.choose(&Asked { session: "s", at_ms, tokens }).as_str()
        };
        pauses.iter().map(ask).collect()
    }

    #[test]
    fn pauses_of_at_most_an_hour_lead_to_an_hour() {
        let table: &[(&[u64], &[&str])] = &[
            (&[0, 1, 1, 1], &["5m", "5m", "5m", "5m"]),
            // 5 minutes are still cached, 6 are not. What is written after the pause is written for an hour.
            (&[0, 5, 6, 1], &["5m", "5m", "1h", "1h"]),
            (&[0, 20, 20, 20], &["5m", "1h", "1h", "1h"]),
            (&[0, 70, 70, 70], &["5m", "5m", "5m", "5m"]),
            // One longer pause (1.4 : 1.5) changes nothing yet, a second one (1.4 : 2.5) does.
            (&[0, 20, 70, 70, 70, 20], &["5m", "1h", "1h", "5m", "5m", "5m"]),
        ];
        for (pauses, expected) in table {
            assert_eq!(choices(Some(PRICE), pauses), *expected, "{pauses:?}");
        }
    }

    #[test]
    fn an_hour_is_chosen_only_where_its_price_is_known() {
        let pauses = [0, 20, 20, 20];
        let same = Price { cache_write_1h: 1.25, ..PRICE };
        let no_cache = Price { cache_read: 1.25, ..PRICE };
        for price in [None, Some(same), Some(no_cache)] {
            assert_eq!(choices(price, &pauses), ["5m"; 4], "{price:?}");
        }
        let dear = Price { cache_write_1h: 20.0, ..PRICE };
        assert_eq!(choices(Some(dear), &pauses), ["5m"; 4]);
    }

    #[test]
    fn shortly_before_a_compaction_five_minutes_are_enough() {
        let mut lifetimes = Lifetimes::new(Some(PRICE), 200_000);
        let mut ask = |minute: u64, tokens| lifetimes.choose(&Asked { session: "s", at_ms: minute * 60_000, tokens });
        assert_eq!(ask(0, 20_000.0), Ttl::FiveMinutes);
        assert_eq!(ask(20, 30_000.0), Ttl::OneHour);
        assert_eq!(ask(40, 195_000.0), Ttl::FiveMinutes);
        // The compaction happened at 195,000 tokens; a short conversation has room again.
        assert_eq!(ask(60, 30_000.0), Ttl::OneHour);
    }

    #[test]
    fn a_known_lifetime_of_the_past_is_not_chosen_again() {
        let ask = |lifetimes: &mut Lifetimes, minute: u64, known: Option<Ttl>| {
            let asked = Asked { session: "s", at_ms: minute * 60_000, tokens: 20_000.0 };
            lifetimes.passed(&asked, known);
            lifetimes.last("s")
        };
        for (known, next) in [
            // The user wanted an hour then: nothing is kept for five minutes, so the pauses so far decide.
            (Some(Ttl::OneHour), Some(Ttl::OneHour)),
            (Some(Ttl::FiveMinutes), Some(Ttl::FiveMinutes)),
        ] {
            let mut lifetimes = Lifetimes::new(Some(PRICE), 200_000);
            assert_eq!(ask(&mut lifetimes, 1, None), Some(Ttl::FiveMinutes));
            assert_eq!(ask(&mut lifetimes, 21, known), known);
            assert_eq!(ask(&mut lifetimes, 22, None), next);
        }
    }

    #[test]
    fn what_a_warming_kept_is_not_written_again_for_an_hour() {
        for (warmed, expected) in [(None, Ttl::OneHour), (Some(4), Ttl::OneHour), (Some(16), Ttl::FiveMinutes)] {
            let mut lifetimes = Lifetimes::new(Some(PRICE), 200_000);
            let ask = |lifetimes: &mut Lifetimes, minute: u64| {
                lifetimes.choose(&Asked { session: "s", at_ms: minute * 60_000, tokens: 20_000.0 })
            };
            assert_eq!(ask(&mut lifetimes, 1), Ttl::FiveMinutes);
            if let Some(minute) = warmed {
                lifetimes.warmed("s", minute * 60_000);
            }
            assert_eq!(ask(&mut lifetimes, 20), expected, "{warmed:?}");
        }
    }

    #[test]
    fn a_conversation_that_is_left_counts_as_a_long_pause() {
        let mut lifetimes = Lifetimes::new(Some(PRICE), 200_000);
        let mut ask =
            |session, minute: u64| lifetimes.choose(&Asked { session, at_ms: minute * 60_000, tokens: 20_000.0 });
        for (number, session) in ["a", "b", "c", "d"].into_iter().enumerate() {
            ask(session, number as u64 * 61 + 1);
        }
        ask("e", 400);
        assert_eq!(ask("e", 420), Ttl::FiveMinutes);
    }

    fn any_requests() -> impl Strategy<Value = Vec<(u8, u64, u32)>> {
        prop::collection::vec((0..3_u8, prop_oneof![0..10_u64, 0..100_u64, 0..2_000_u64], 1_000..190_000_u32), 1..60)
    }

    fn run(lifetimes: &mut Lifetimes, requests: &[(u8, u64, u32)]) -> Vec<(String, u64, f64, Ttl)> {
        let mut at_ms = 1_000;
        let ask = |(session, pause, tokens): &(u8, u64, u32)| {
            at_ms += pause * 60_000;
            let (session, tokens) = (session.to_string(), f64::from(*tokens));
            let ttl = lifetimes.choose(&Asked { session: &session, at_ms, tokens });
            (session, at_ms, tokens, ttl)
        };
        requests.iter().map(ask).collect()
    }

    proptest! {
        #[test]
        fn a_choice_depends_only_on_the_past(requests in any_requests(), cut in 0..60_usize) {
            let all = run(&mut Lifetimes::new(Some(PRICE), 200_000), &requests);
            let cut = cut.min(requests.len());
            let part = run(&mut Lifetimes::new(Some(PRICE), 200_000), &requests[..cut]);
            prop_assert_eq!(&all[..cut], &part[..]);
        }

        #[test]
        fn what_is_cached_for_five_minutes_is_never_written_again_for_an_hour(requests in any_requests()) {
            let chosen = run(&mut Lifetimes::new(Some(PRICE), 200_000), &requests);
            for (at, (session, now, tokens, ttl)) in chosen.iter().enumerate() {
                let last = chosen[..at].iter().rev().find(|(other, ..)| other == session);
                if let Some((_, before, held, Ttl::FiveMinutes)) = last
                    && now - before <= 300_000
                    && tokens >= held
                {
                    prop_assert_eq!(*ttl, Ttl::FiveMinutes);
                }
            }
        }

        #[test]
        fn the_unit_of_the_prices_does_not_matter(requests in any_requests(), factor in 0.01..100.0_f64) {
            let scaled = Price {
                input: PRICE.input * factor,
                output: PRICE.output * factor,
                cache_read: PRICE.cache_read * factor,
                cache_write: PRICE.cache_write * factor,
                cache_write_1h: PRICE.cache_write_1h * factor,
            };
            let one = run(&mut Lifetimes::new(Some(PRICE), 200_000), &requests);
            prop_assert_eq!(one, run(&mut Lifetimes::new(Some(scaled), 200_000), &requests));
        }
    }
}
