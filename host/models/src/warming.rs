//! Whether a request that only keeps the provider's cache warm pays during a pause, from the past only.
//!
//! A warming repeats the last request of a conversation shortly before its cached prefix expires, with the smallest reply. It costs
//! a read of the prefix, and saves writing it again if the user returns after the prefix would have expired but before it expires
//! once more. Earlier pauses, of the same length so far, tell how likely that is. A warming may pay only together with later ones:
//! a pause of twenty minutes needs four, and the first three alone save nothing. So the cost and the saving of each possible number
//! of further warmings are compared, and the next one is sent if some number pays.
//!
//! The chance that a pause lasts is the Kaplan-Meier estimate: a conversation that nobody has continued yet counts as a pause that
//! is at least as long as until now.

use std::collections::HashMap;
use std::time::Duration;

use crate::{Price, Ttl};

/// Weight of a past pause halves in this time: habits change.
const HALF_LIFE_MS: f64 = 20.0 * 86_400_000.0;
/// The number of assumed pauses without a return, before any pause is known. They keep a single return from deciding much.
const NEVER: f64 = 6.0;
/// Shorter pauses end before any prefix expires.
const LEAST_MS: u64 = 240_000;
/// How long before the end of its lifetime a prefix is warmed: clocks differ, and requests take time to arrive.
const LEAD: Duration = Duration::from_secs(30);

/// The most that warming may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmingLimits {
    /// Warmings of one pause.
    pub per_pause: u32,
    /// Cost of all warmings within 24 hours, in the unit of the price.
    pub per_day: f64,
}

impl WarmingLimits {
    /// The most warmings of one pause, whatever the past says.
    pub const PER_PAUSE: u32 = 12;
    /// The usual most that warmings cost within 24 hours, in US dollars.
    pub const PER_DAY: f64 = 1.0;
}

/// A conversation that waits for its next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting<'a> {
    /// The conversation.
    pub session: &'a str,
    /// Tokens of its last request.
    pub tokens: f64,
    /// How long the provider keeps what that request marked.
    pub ttl: Ttl,
    /// When the provider last read or wrote the prefix; Unix time in milliseconds.
    pub used_at_ms: u64,
    /// Warmings since the last request.
    pub warmed: u32,
    /// What warmings of all conversations have cost in the last 24 hours.
    pub spent: f64,
}

/// A pause that ended with another request of the conversation.
#[derive(Debug, Clone, Copy)]
struct Pause {
    began_ms: u64,
    length_ms: u64,
}

/// The pauses of conversations so far.
///
/// ```
/// use hermes_models::{Pauses, Prices, Ttl, Waiting, WarmingLimits};
///
/// let price = Prices::built_in().of("anthropic", "claude-sonnet-4-5").unwrap();
/// let mut pauses = Pauses::default();
/// let waiting = |minute: u64| Waiting {
///     session: "s", tokens: 20_000.0, ttl: Ttl::FiveMinutes, used_at_ms: minute * 60_000, warmed: 0, spent: 0.0,
/// };
/// let limits = WarmingLimits { per_pause: 3, per_day: 1.0 };
/// pauses.sent("s", 0);
/// assert_eq!(pauses.warm_at(&waiting(0), &price, &limits), None, "nothing is known");
/// for minute in [8, 16, 24] {
///     pauses.sent("s", minute * 60_000);
/// }
/// assert_eq!(pauses.warm_at(&waiting(24), &price, &limits), Some(24 * 60_000 + 270_000), "the user returns after eight minutes");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Pauses {
    ended: Vec<Pause>,
    /// The last request of each conversation.
    last: HashMap<String, u64>,
    now_ms: u64,
}

impl Pauses {
    /// Counts a request of a conversation, which ends its pause. Warmings do not count.
    pub fn sent(&mut self, session: &str, at_ms: u64) {
        // Clocks of several processes may differ a little.
        self.now_ms = self.now_ms.max(at_ms);
        let Some(began_ms) = self.last.insert(session.to_owned(), self.now_ms) else { return };
        let length_ms = self.now_ms - began_ms;
        if length_ms > LEAST_MS {
            self.ended.push(Pause { began_ms, length_ms });
        }
    }

    /// When to warm the prefix of a conversation next, as Unix time in milliseconds; `None` if that does not pay, or if a limit
    /// is reached.
    pub fn warm_at(&self, waiting: &Waiting<'_>, price: &Price, limits: &WarmingLimits) -> Option<u64> {
        let began_ms = *self.last.get(waiting.session)?;
        let cost = warming_cost(waiting.tokens, price);
        // A cold prefix is written again for five minutes at least.
        let saving = waiting.tokens * (price.cache_write - price.cache_read) / 1e6;
        let affordable = (limits.per_day - waiting.spent) / cost;
        let left = f64::from(limits.per_pause.saturating_sub(waiting.warmed)).min(affordable.floor());
        if saving <= cost || left < 1.0 {
            return None;
        }
        let (ttl, lead) = (millis(waiting.ttl.duration()), millis(LEAD));
        let at_ms = waiting.used_at_ms.saturating_add(ttl - lead);
        let lasting = Lasting::of(self, waiting.session, at_ms.saturating_sub(began_ms));
        let (mut sum, mut best) = (0.0, 0.0_f64);
        for number in 0..left as u64 {
            let elapsed = (at_ms + number * (ttl - lead)).saturating_sub(began_ms);
            let alone = lasting.longer_than(elapsed);
            let returns = lasting.longer_than(elapsed + lead) - lasting.longer_than(elapsed + ttl);
            sum += returns * saving - alone * cost;
            best = best.max(sum);
        }
        (best > 0.0).then_some(at_ms)
    }
}

/// What a warming costs: a read of the prefix, and one token of a reply.
pub fn warming_cost(tokens: f64, price: &Price) -> f64 {
    (tokens * price.cache_read + price.output) / 1e6
}

/// The saving of warmings through a later request: it read this many tokens from the cache, which it would otherwise have written
/// again.
pub fn warming_saved(cache_read: u32, price: &Price, ttl: Ttl) -> f64 {
    f64::from(cache_read) * (price.write(ttl) - price.cache_read) / 1e6
}

/// How likely a pause lasts, if it has already lasted for a while.
struct Lasting {
    /// Lengths of pauses that ended, in order, each with the chance that a pause is longer.
    steps: Vec<(u64, f64)>,
}

impl Lasting {
    /// For a pause of a conversation that has lasted this long.
    fn of(pauses: &Pauses, session: &str, elapsed_ms: u64) -> Self {
        let weight = |began_ms: u64| 0.5_f64.powf(pauses.now_ms.saturating_sub(began_ms) as f64 / HALF_LIFE_MS);
        let ended = pauses.ended.iter().map(|pause| (pause.length_ms, true, weight(pause.began_ms)));
        let open = pauses.last.iter().filter(|(other, _)| *other != session);
        let open = open.map(|(_, began_ms)| (pauses.now_ms - began_ms, false, weight(*began_ms)));
        let mut known: Vec<(u64, bool, f64)> = ended.chain(open).filter(|(length, ..)| *length > elapsed_ms).collect();
        // Of equal lengths, what ended comes first: an open pause was still open then.
        known.sort_by_key(|(length, has_ended, _)| (*length, !has_ended));
        let mut at_risk = NEVER + known.iter().map(|(.., weight)| weight).sum::<f64>();
        let (mut longer, mut steps) = (1.0, Vec::new());
        for (length, has_ended, weight) in known {
            if has_ended {
                longer *= (1.0 - weight / at_risk).max(0.0);
                steps.push((length, longer));
            }
            at_risk -= weight;
        }
        Self { steps }
    }

    fn longer_than(&self, length_ms: u64) -> f64 {
        let passed = self.steps.partition_point(|(length, _)| *length <= length_ms);
        passed.checked_sub(1).map_or(1.0, |last| self.steps[last].1)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRICE: Price = Price { input: 1.0, output: 5.0, cache_read: 0.1, cache_write: 1.25, cache_write_1h: 2.0 };
    const LIMITS: WarmingLimits = WarmingLimits { per_pause: 12, per_day: 1.0 };

    /// A conversation with these pauses in minutes, which waits now, beside others that nobody continues.
    fn waiting(pauses: &[u64], left: u32) -> (Pauses, Waiting<'static>) {
        let mut known = Pauses::default();
        for number in 0..left {
            known.sent(&number.to_string(), 0);
        }
        let mut at_ms = 600 * 60_000;
        known.sent("s", at_ms);
        for pause in pauses {
            at_ms += pause * 60_000;
            known.sent("s", at_ms);
        }
        let waiting =
            Waiting { session: "s", tokens: 50_000.0, ttl: Ttl::FiveMinutes, used_at_ms: at_ms, warmed: 0, spent: 0.0 };
        (known, waiting)
    }

    /// The minutes, times ten, of all warmings of a pause that does not end.
    fn warmings(pauses: &[u64], left: u32, ttl: Ttl, limits: WarmingLimits) -> Vec<u64> {
        let (known, mut waiting) = waiting(pauses, left);
        let began = waiting.used_at_ms;
        waiting.ttl = ttl;
        let mut all = Vec::new();
        while let Some(at) = known.warm_at(&waiting, &PRICE, &limits) {
            all.push((at - began) / 6_000);
            waiting.used_at_ms = at;
            waiting.warmed += 1;
            waiting.spent += warming_cost(waiting.tokens, &PRICE);
        }
        all
    }

    #[test]
    fn warmings_cover_the_pauses_that_end_often_enough() {
        use Ttl::{FiveMinutes, OneHour};
        let table: &[(&[u64], u32, Ttl, &[u64])] = &[
            (&[], 0, FiveMinutes, &[]),
            // Nothing has expired after such pauses.
            (&[1, 4, 3, 4], 0, FiveMinutes, &[]),
            (&[8, 8, 8], 0, FiveMinutes, &[45]),
            // Four warmings are needed for twenty minutes.
            (&[20; 6], 0, FiveMinutes, &[45, 90, 135, 180]),
            // Three of nine may be chance.
            (&[20; 3], 0, FiveMinutes, &[]),
            (&[20; 6], 0, OneHour, &[]),
            (&[70; 3], 0, OneHour, &[595]),
            // Fifteen warmings, each a tenth of the prefix, cost more than to write it again.
            (&[70; 9], 0, FiveMinutes, &[]),
            // Of 22 pauses three end after 8 minutes: 3/28 is enough for one warming, 3/65 is not.
            (&[8; 3], 19, FiveMinutes, &[45]),
            (&[8; 3], 56, FiveMinutes, &[]),
            // A day's pause is not waited for.
            (&[1_440; 9], 0, OneHour, &[]),
        ];
        for (pauses, left, ttl, expected) in table {
            assert_eq!(warmings(pauses, *left, *ttl, LIMITS), *expected, "{pauses:?} {left} {ttl:?}");
        }
    }

    #[test]
    fn limits_of_number_and_cost_hold() {
        let number = |limits| warmings(&[20; 6], 0, Ttl::FiveMinutes, limits).len();
        assert_eq!(number(LIMITS), 4);
        // Three warmings do not reach the end of such a pause, so none is sent.
        assert_eq!(number(WarmingLimits { per_pause: 3, ..LIMITS }), 0);
        assert_eq!(number(WarmingLimits { per_pause: 0, ..LIMITS }), 0);
        let each = warming_cost(50_000.0, &PRICE);
        assert_eq!(number(WarmingLimits { per_day: each * 4.5, ..LIMITS }), 4);
        assert_eq!(number(WarmingLimits { per_day: each * 3.5, ..LIMITS }), 0);
        assert_eq!(number(WarmingLimits { per_day: 0.0, ..LIMITS }), 0);
    }

    #[test]
    fn nothing_is_warmed_where_a_read_costs_as_much_as_a_write() {
        let (known, waiting) = waiting(&[8; 5], 0);
        assert!(known.warm_at(&waiting, &PRICE, &LIMITS).is_some());
        let same = Price { cache_read: 1.25, ..PRICE };
        assert_eq!(known.warm_at(&waiting, &same, &LIMITS), None);
        let free = Price { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0, cache_write_1h: 0.0 };
        assert_eq!(known.warm_at(&waiting, &free, &LIMITS), None);
        // A conversation that is not known waits for nothing.
        assert_eq!(known.warm_at(&Waiting { session: "other", ..waiting }, &PRICE, &LIMITS), None);
    }

    #[test]
    fn habits_change() {
        let (mut known, mut waiting) = waiting(&[8; 20], 0);
        assert!(known.warm_at(&waiting, &PRICE, &LIMITS).is_some());
        let mut at_ms = waiting.used_at_ms;
        for _ in 0..20 {
            at_ms += 10 * 86_400_000;
            known.sent("s", at_ms);
        }
        waiting.used_at_ms = at_ms;
        assert_eq!(known.warm_at(&waiting, &PRICE, &LIMITS), None);
    }

    proptest! {
        /// The decision is right for the pauses that it knows: if all were repeated, warmings would cost neither more than they
        /// save nor more than the limits.
        #[test]
        fn warmings_pay_on_the_pauses_that_are_known(
            pauses in prop::collection::vec(prop_oneof![5..12_u64, 5..40_u64, 50..200_u64], 1..30),
            left in 0..10_u32,
            ttl in prop_oneof![Just(Ttl::FiveMinutes), Just(Ttl::OneHour)],
            per_pause in 0..14_u32,
        ) {
            let limits = WarmingLimits { per_pause, ..LIMITS };
            let warmed = warmings(&pauses, left, ttl, limits);
            prop_assert!(warmed.len() <= per_pause as usize);
            let (mut cost, mut saved) = (0.0, 0.0);
            for pause in pauses.iter().map(|minutes| minutes * 10).chain((0..left).map(|_| u64::MAX)) {
                let sent = warmed.iter().filter(|at| **at < pause).count();
                cost += sent as f64 * 0.1;
                let lifetime = if ttl == Ttl::OneHour { 600 } else { 50 };
                if sent > 0 && pause > lifetime && pause <= warmed[sent - 1] + lifetime {
                    saved += 1.15;
                }
            }
            prop_assert!(cost <= saved, "{warmed:?}: {cost} for {saved}");
        }

        #[test]
        fn the_unit_of_the_prices_does_not_matter(
            pauses in prop::collection::vec(5..40_u64, 1..30),
            factor in 0.01..100.0_f64,
        ) {
            let (known, waiting) = waiting(&pauses, 2);
            let scaled = Price {
                input: PRICE.input * factor,
                output: PRICE.output * factor,
                cache_read: PRICE.cache_read * factor,
                cache_write: PRICE.cache_write * factor,
                cache_write_1h: PRICE.cache_write_1h * factor,
            };
            let limits = WarmingLimits { per_day: 1e9, ..LIMITS };
            prop_assert_eq!(known.warm_at(&waiting, &PRICE, &limits), known.warm_at(&waiting, &scaled, &limits));
        }
    }
}
