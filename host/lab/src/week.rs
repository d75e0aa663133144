//! A simulated week of use of a recorded conversation, and what it costs with each cache lifetime.
//!
//! The turns of the recording come in bursts with pauses between them; everything else is drawn from a seed. Within a turn, requests
//! are as far apart as in the recording. The provider charges in the dearest way that its documentation allows: what is cached
//! for five minutes does not count as cached for an hour, so a switch to an hour writes all of it again.

use std::collections::{HashMap, VecDeque};

use hermes_engine_trials::generate::Dice;
use hermes_models::{Asked, Lifetimes, Pauses, Price, Ttl, Waiting, WarmingLimits, warming_cost};
use hermes_recordings::is_reply;
use serde::Serialize;

use crate::figures;
use crate::{Recording, Terms};

/// Two requests of a turn that are further apart in the recording are moved together: the user was away.
const LONGEST_STEP_MS: u64 = 240_000;
/// The share of the window at which a conversation is compacted, and the tokens of what is left beside the fixed part.
const FULL: f64 = 0.85;
const SUMMARY: f64 = 20_000.0;
const MINUTE_MS: f64 = 60_000.0;
const DAY_MS: u64 = 86_400_000;

/// How the week is spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pattern {
    /// The seed of everything that is random.
    pub seed: u64,
    /// Days with work; the nights between them are pauses too.
    pub days: u64,
    /// Hours of work in a day.
    pub hours: u64,
    /// Turns of a burst, at least and at most.
    pub turns: (u64, u64),
    /// Pauses between bursts, in minutes. Each lasts up to 30 % less or more.
    pub pauses: [f64; 3],
    /// How often each pause occurs, in relation to the others.
    pub weights: [f64; 3],
}

impl Pattern {
    /// Five days of nine hours, bursts of 4 to 12 turns, pauses of 3, 20 and 70 minutes.
    pub const STANDARD: Self =
        Self { seed: 1, days: 5, hours: 9, turns: (4, 12), pauses: [3.0, 20.0, 70.0], weights: [0.5, 0.3, 0.2] };

    /// A week with this seed and with other pauses, drawn from it: each in its range, and up to twice or half as often.
    pub fn drawn(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x5eed_0f00);
        let mut between = |low: f64, high: f64| low + (high - low) * share(&mut dice);
        let pauses = [between(1.5, 4.5), between(8.0, 45.0), between(61.0, 150.0)];
        let weights = Self::STANDARD.weights.map(|weight| weight * 2.0_f64.powf(between(-1.0, 1.0)));
        Self { seed, pauses, weights, ..Self::STANDARD }
    }
}

/// A number from 0 to 1.
fn share(dice: &mut Dice) -> f64 {
    const STEPS: u64 = 1 << 32;
    dice.below(STEPS) as f64 / STEPS as f64
}

/// A request of a turn.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Time since the request before.
    after_ms: u64,
    /// Tokens by which the prompt grew.
    grown: f64,
}

/// The turns of a recording.
fn turns(recording: &Recording, terms: &Terms) -> Vec<Vec<Step>> {
    let mut turns: Vec<Vec<Step>> = Vec::new();
    let (mut bytes, mut before) = (0, 0);
    for draft in &recording.drafts {
        if is_reply(draft) {
            let grown = terms.tokens(std::mem::take(&mut bytes));
            let after_ms = draft.created_at.saturating_sub(before).min(LONGEST_STEP_MS);
            before = draft.created_at;
            match turns.last_mut() {
                Some(turn) if !turn.is_empty() => turn.push(Step { after_ms, grown }),
                Some(turn) => turn.push(Step { after_ms: 0, grown }),
                None => turns.push(vec![Step { after_ms: 0, grown }]),
            }
        } else if draft.role == hermes_conversation::Role::User && turns.last().is_none_or(|turn| !turn.is_empty()) {
            turns.push(Vec::new());
        }
        bytes += figures::bytes(draft);
    }
    turns.retain(|turn| !turn.is_empty());
    turns
}

/// The requests of a week, in order.
#[derive(Debug, Clone)]
pub struct Week {
    requests: Vec<Sent>,
    window: u32,
    fixed: f64,
}

/// A request of the week.
#[derive(Debug, Clone)]
struct Sent {
    session: String,
    at_ms: u64,
    tokens: f64,
}

impl Week {
    /// The week that a pattern makes of a recording.
    pub fn of(recording: &Recording, terms: &Terms, pattern: &Pattern) -> Self {
        let turns = turns(recording, terms);
        let fixed = f64::from(terms.fixed_tokens);
        let full = f64::from(terms.window) * FULL;
        let mut dice = Dice::new(pattern.seed);
        let mut next = usize::try_from(dice.below(turns.len() as u64)).unwrap_or(0);
        let mut requests: Vec<Sent> = Vec::new();
        let mut session = 0;
        for day in 0..pattern.days {
            let mut now = (day + 1) * DAY_MS;
            let evening = now + pattern.hours * 3_600_000;
            session += 1;
            let mut tokens = fixed;
            while now < evening && !turns.is_empty() {
                for _ in 0..pattern.turns.0 + dice.below(pattern.turns.1 - pattern.turns.0 + 1) {
                    for step in &turns[next] {
                        now += step.after_ms;
                        if tokens + step.grown > full {
                            tokens = fixed + SUMMARY;
                        }
                        tokens += step.grown.min(full - fixed - SUMMARY);
                        requests.push(Sent { session: session.to_string(), at_ms: now, tokens });
                    }
                    next = (next + 1) % turns.len();
                    now += 20_000 + dice.below(50_000);
                }
                let pause = pick(&mut dice, pattern) * (0.7 + 0.6 * share(&mut dice));
                now += (pause * MINUTE_MS) as u64;
                // After a long pause, every other time something else is begun.
                if pause > 60.0 && dice.one_in(2) {
                    (session, tokens) = (session + 1, fixed);
                }
            }
        }
        Self { requests, window: terms.window, fixed }
    }

    /// The number of requests.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// What the prompts of the week cost, in the unit of the price per million tokens. Replies are the same for every lifetime
    /// and not counted.
    pub fn bill(&self, price: &Price) -> Bill {
        let fixed = |ttl| self.cost(price, |_| ttl);
        let mut lifetimes = Lifetimes::new(Some(*price), self.window);
        let mut hours = 0;
        let policy = self.cost(price, |sent| {
            let asked = Asked { session: &sent.session, at_ms: sent.at_ms, tokens: sent.tokens };
            let ttl = lifetimes.choose(&asked);
            hours += u64::from(ttl == Ttl::OneHour);
            ttl
        });
        let (warming, warmings) = self.warmed(price);
        Bill { five_minutes: fixed(Ttl::FiveMinutes), one_hour: fixed(Ttl::OneHour), policy, hours, warming, warmings }
    }

    /// The cost with the policy and with warmings, and the number of these. A conversation that was left is warmed too, as if it
    /// stayed open.
    fn warmed(&self, price: &Price) -> (Cost, u64) {
        let limits = WarmingLimits { per_pause: WarmingLimits::PER_PAUSE, per_day: WarmingLimits::PER_DAY };
        let mut lifetimes = Lifetimes::new(Some(*price), self.window);
        let mut pauses = Pauses::default();
        let mut caches: HashMap<&str, Held> = HashMap::new();
        let mut open: HashMap<&str, Open<'_>> = HashMap::new();
        // When the warmings of the last 24 hours were, and what they cost.
        let mut spent: VecDeque<(u64, f64)> = VecDeque::new();
        let (mut cost, mut warmings) = (Cost::default(), 0);
        let ends = self.requests.last().map(|last| last.at_ms + DAY_MS);
        for (until, sent) in
            self.requests.iter().map(|sent| (sent.at_ms, Some(sent))).chain(ends.map(|end| (end, None)))
        {
            while let Some((session, at_ms)) = next_warming(&open, until) {
                let Some(waits) = open.get_mut(session) else { break };
                let repeated = Sent { at_ms, ..waits.sent.clone() };
                let each = warming_cost(repeated.tokens, price);
                while spent.front().is_some_and(|(at, _)| at + DAY_MS <= at_ms) {
                    spent.pop_front();
                }
                spent.push_back((at_ms, each));
                let read = caches.entry(session).or_default().serve(&repeated, waits.ttl, self.fixed);
                cost.add(&repeated, read, waits.ttl, price);
                cost.total += price.output / 1e6;
                lifetimes.warmed(session, at_ms);
                warmings += 1;
                waits.warmed += 1;
                waits.next = pauses.warm_at(&waits.waiting(at_ms, &spent), price, &limits);
            }
            let Some(sent) = sent else { break };
            let ttl = lifetimes.choose(&Asked { session: &sent.session, at_ms: sent.at_ms, tokens: sent.tokens });
            pauses.sent(&sent.session, sent.at_ms);
            let read = caches.entry(&sent.session).or_default().serve(sent, ttl, self.fixed);
            cost.add(sent, read, ttl, price);
            let mut waits = Open { sent, ttl, warmed: 0, next: None };
            waits.next = pauses.warm_at(&waits.waiting(sent.at_ms, &spent), price, &limits);
            open.insert(&sent.session, waits);
        }
        (cost, warmings)
    }

    fn cost(&self, price: &Price, mut ttl: impl FnMut(&Sent) -> Ttl) -> Cost {
        let mut caches: HashMap<&str, Held> = HashMap::new();
        let mut cost = Cost::default();
        for sent in &self.requests {
            let ttl = ttl(sent);
            let read = caches.entry(&sent.session).or_default().serve(sent, ttl, self.fixed);
            cost.add(sent, read, ttl, price);
        }
        cost
    }
}

/// The last request of a conversation, which may be warmed.
struct Open<'a> {
    sent: &'a Sent,
    ttl: Ttl,
    warmed: u32,
    next: Option<u64>,
}

impl Open<'_> {
    fn waiting(&self, used_at_ms: u64, spent: &VecDeque<(u64, f64)>) -> Waiting<'_> {
        let recent = spent.iter().filter(|(at, _)| at + DAY_MS > used_at_ms);
        Waiting {
            session: &self.sent.session,
            tokens: self.sent.tokens,
            ttl: self.ttl,
            used_at_ms,
            warmed: self.warmed,
            spent: recent.map(|(_, cost)| cost).sum(),
        }
    }
}

/// The conversation whose warming comes first, and when, if that is before a moment.
fn next_warming<'a>(open: &HashMap<&'a str, Open<'_>>, until: u64) -> Option<(&'a str, u64)> {
    let due = open.iter().filter_map(|(session, waits)| Some((*session, waits.next?)));
    due.filter(|(_, at)| *at < until).min_by_key(|(session, at)| (*at, *session))
}

fn pick(dice: &mut Dice, pattern: &Pattern) -> f64 {
    let mut at = share(dice) * pattern.weights.iter().sum::<f64>();
    for (pause, weight) in pattern.pauses.iter().zip(pattern.weights) {
        if at < weight {
            return *pause;
        }
        at -= weight;
    }
    pattern.pauses[pattern.pauses.len() - 1]
}

/// What a week costs with one choice of lifetimes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Tokens read from the cache.
    pub read: f64,
    /// Tokens written to it.
    pub written: f64,
    /// The sum, in the unit of the price.
    pub total: f64,
}

impl Cost {
    fn add(&mut self, sent: &Sent, read: f64, ttl: Ttl, price: &Price) {
        let written = sent.tokens - read;
        self.read += read;
        self.written += written;
        self.total += (read * price.cache_read + written * price.write(ttl)) / 1e6;
    }
}

/// What a week costs with each choice of lifetimes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bill {
    /// With five minutes in every request.
    pub five_minutes: Cost,
    /// With an hour in every request.
    pub one_hour: Cost,
    /// With the policy, which knows nothing before the week and only the past in it.
    pub policy: Cost,
    /// Requests for which the policy chose an hour.
    pub hours: u64,
    /// With the policy, and with warmings where they pay by the pauses before.
    pub warming: Cost,
    /// The number of warmings.
    pub warmings: u64,
}

impl Bill {
    /// By how much the policy is dearer than the better fixed lifetime; negative if it is cheaper.
    pub fn regret(&self) -> f64 {
        self.policy.total / self.five_minutes.total.min(self.one_hour.total) - 1.0
    }

    /// By how much the policy is dearer with warmings than without; negative if it is cheaper.
    pub fn of_warming(&self) -> f64 {
        self.warming.total / self.policy.total - 1.0
    }
}

/// How many tokens of a conversation are cached for each lifetime.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    short: f64,
    short_until: u64,
    long: f64,
    long_until: u64,
    tokens: f64,
}

impl Held {
    /// The tokens that a request reads. A read prolongs the tokens by the lifetime with which they were written.
    fn serve(&mut self, sent: &Sent, ttl: Ttl, fixed: f64) -> f64 {
        if sent.tokens < self.tokens {
            // After a compaction, only system prompt and tools are as before.
            (self.short, self.long) = (self.short.min(fixed), self.long.min(fixed));
        }
        self.tokens = sent.tokens;
        if self.short_until < sent.at_ms {
            self.short = 0.0;
        }
        if self.long_until < sent.at_ms {
            self.long = 0.0;
        }
        let until = |ttl: Ttl| sent.at_ms + u64::try_from(ttl.duration().as_millis()).unwrap_or(u64::MAX);
        match ttl {
            Ttl::OneHour => {
                let read = self.long;
                (self.long, self.long_until) = (sent.tokens, until(ttl));
                read
            }
            Ttl::FiveMinutes => {
                let read = self.short.max(self.long);
                if self.long > 0.0 && self.long >= self.short {
                    self.long_until = until(Ttl::OneHour);
                }
                (self.short, self.short_until) = (sent.tokens, until(ttl));
                read
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 1.0, output: 5.0, cache_read: 0.1, cache_write: 1.25, cache_write_1h: 2.0 };

    /// Requests of one conversation: minute and tokens.
    fn week(requests: &[(u64, f64)]) -> Week {
        let sent =
            |(minute, tokens): &(u64, f64)| Sent { session: "s".into(), at_ms: minute * 60_000, tokens: *tokens };
        Week { requests: requests.iter().map(sent).collect(), window: 200_000, fixed: 15_000.0 }
    }

    #[test]
    fn a_week_is_charged_as_worked_out_by_hand() {
        let bill = week(&[(1, 20_000.0), (3, 30_000.0), (23, 40_000.0), (93, 50_000.0)]).bill(&PRICE);
        let near = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} {right}");
        near(bill.five_minutes.read, 20_000.0);
        near(bill.five_minutes.total, (2_000.0 + 1.25 * (20_000.0 + 10_000.0 + 40_000.0 + 50_000.0)) / 1e6);
        near(bill.one_hour.read, 50_000.0);
        near(bill.one_hour.total, (5_000.0 + 2.0 * (20_000.0 + 10_000.0 + 10_000.0 + 50_000.0)) / 1e6);
        // 5m, 5m, 1h, and 1h after a single longer pause.
        assert_eq!(bill.hours, 2);
        near(bill.policy.total, (2_000.0 + 1.25 * 30_000.0 + 2.0 * 90_000.0) / 1e6);
    }

    #[test]
    fn a_switch_to_an_hour_writes_everything_and_a_switch_back_nothing() {
        let sent = |minute: u64, tokens| Sent { session: "s".into(), at_ms: minute * 60_000, tokens };
        let mut held = Held::default();
        let mut read = |minute, tokens, ttl| held.serve(&sent(minute, tokens), ttl, 100.0);
        assert_eq!(read(0, 1_000.0, Ttl::FiveMinutes), 0.0);
        assert_eq!(read(1, 2_000.0, Ttl::OneHour), 0.0);
        assert_eq!(read(2, 3_000.0, Ttl::FiveMinutes), 2_000.0);
        assert_eq!(read(3, 4_000.0, Ttl::FiveMinutes), 3_000.0);
        // The tail has expired, what was written for an hour has not.
        assert_eq!(read(30, 5_000.0, Ttl::FiveMinutes), 2_000.0);
        // A compaction leaves the fixed part.
        assert_eq!(read(31, 1_500.0, Ttl::FiveMinutes), 100.0);
        assert_eq!(read(120, 1_600.0, Ttl::OneHour), 0.0);
    }

    #[test]
    fn a_seed_gives_one_pattern_and_its_ranges_hold() {
        assert_eq!(Pattern::drawn(5), Pattern::drawn(5));
        assert_ne!(Pattern::drawn(5).pauses, Pattern::drawn(6).pauses);
        for seed in 0..200 {
            let [short, middle, long] = Pattern::drawn(seed).pauses;
            assert!((1.5..4.5).contains(&short) && (8.0..45.0).contains(&middle) && (61.0..150.0).contains(&long));
        }
    }
}
