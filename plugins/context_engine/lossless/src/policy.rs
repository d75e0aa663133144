//! The figures that decide what stays visible, and how they shrink with the window.
//!
//! A request costs what the context is long, so what pays is a small context; what it costs is text that is needed again and
//! no longer there. The figures were found by replaying recorded sessions: a short tail, segments of a few lines, and
//! verbatim what edits go on from.

use hermes_plugin::context_engine::{Moment, Pressure};

use crate::config::Config;

/// A window is never filled beyond this share.
pub(crate) const HIGHEST: f64 = 0.85;
/// Tokens of the newest messages, and how many groups stay whatever they take.
pub(crate) const TAIL: u32 = 6_000;
pub(crate) const GROUPS: usize = 2;
/// Tokens beyond the tail at which there is something to fold.
pub(crate) const FOLD: u32 = 16_000;
/// A result of more tokens does not count towards that until so many replies came after it: what was just read is about to
/// be worked with.
pub(crate) const LARGE: u32 = 4_000;
pub(crate) const YOUNG: u32 = 8;
/// Beyond so many tokens of messages it counts.
pub(crate) const PATIENCE: u32 = 45_000;
/// Tokens of segments and working set together, whatever is configured.
pub(crate) const PREFIX: u32 = 12_000;
/// Beside what the user said, above this the oldest segments become one.
pub(crate) const SEGMENTS: u32 = 3_000;
/// A segment takes this share of what it stands for, and what the user said.
pub(crate) const DIGEST: f64 = 0.05;
/// Tokens of the working set.
pub(crate) const WORKING: u32 = 10_000;
/// Of it: calls word for word, files, open items, and what the assistant wrote last.
pub(crate) const CALLS: u32 = 2_000;
pub(crate) const FILES: u32 = 5_500;
pub(crate) const ITEMS: u32 = 500;
pub(crate) const TEXTS: u32 = 3_000;
/// A call that was made before counts as so many replies newer each time, three times at most.
pub(crate) const AGAIN: u32 = 40;
/// A file needs so much credit, gets as many tokens for each, and is shown from a little before its place on. Credit
/// halves with as many tokens of conversation.
pub(crate) const LEAST_CREDIT: f64 = 1.9;
pub(crate) const PER_CREDIT: f64 = 1_000.0;
pub(crate) const BEFORE: usize = 15;
pub(crate) const HALF_LIFE: f64 = 20_000.0;
/// Tokens of what memories want kept.
pub(crate) const MEMORY: u32 = 800;
/// Bytes of a token, to begin with: the ruler has the last word.
pub(crate) const BYTES: f64 = 2.9;
/// Tokens of messages that are read when an instance begins.
pub(crate) const LOOK_BACK: u32 = 200_000;

/// Where the window stands, in the tokens that the provider counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Marks {
    /// Of the window without what is kept free for the reply.
    pub(crate) usable: u32,
    /// From here on the view is replaced whatever it costs.
    pub(crate) hard: u32,
    /// From here on also when it was of no use before.
    pub(crate) brim: u32,
    /// How much larger the provider's tokens are than those of the headers; never less than 1.
    skew: f64,
    fixed: u32,
}

impl Marks {
    /// `messages` is what the view takes by the headers.
    pub(crate) fn of(config: &Config, pressure: &Pressure, messages: u32) -> Self {
        let usable = pressure.context_length.saturating_sub(pressure.reserve);
        let room = usable.saturating_sub(pressure.fixed_tokens);
        // Where system prompt and tools take much, a share of the window would be reached as soon as anything is said.
        let mark = |of: f64| share(usable, of).max((usable - room).saturating_add(share(room, of * 0.8)));
        let ratio = |counted: u32, estimated: u32| {
            if estimated == 0 { 1.0 } else { (f64::from(counted) / f64::from(estimated)).clamp(1.0, 3.0) }
        };
        // Whether the provider's ruler holds for system prompt and tools too is not known: the larger skew is safe.
        let skew = ratio(pressure.prompt_tokens.saturating_sub(pressure.fixed_tokens), messages)
            .max(ratio(pressure.prompt_tokens, messages.saturating_add(pressure.fixed_tokens)));
        let hard = mark(config.threshold.min(HIGHEST));
        Self { usable, hard, brim: share(usable, 0.95), skew, fixed: pressure.fixed_tokens }
    }

    /// Tokens of the headers for as many of the provider.
    pub(crate) fn scaled(&self, tokens: u32) -> u32 {
        share(tokens, 1.0 / self.skew)
    }

    /// What messages may take, by the headers.
    pub(crate) fn limit(&self) -> u32 {
        share(self.scaled(self.usable).saturating_sub(self.fixed), 0.97)
    }
}

/// What the parts of a new view may take, in the tokens of the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    /// What fits at all.
    pub(crate) limit: u32,
    /// Below this there is room to go on.
    pub(crate) goal: u32,
    pub(crate) tail: u32,
    pub(crate) fold: u32,
    pub(crate) working: u32,
    /// All segments together.
    pub(crate) prefix: u32,
    /// Beyond this the oldest become one.
    pub(crate) segments: u32,
    /// The first messages, where they are protected.
    pub(crate) head: u32,
}

impl Shares {
    pub(crate) fn of(config: &Config, marks: &Marks, moment: Moment) -> Self {
        let limit = marks.limit();
        let room = marks.scaled(marks.hard).saturating_sub(marks.fixed).min(limit);
        let of = |tokens: u32, share_of_room: f64| tokens.min(share(room, share_of_room));
        let tail = match config.target_ratio {
            Some(ratio) => marks.scaled(share(marks.hard, ratio)).min(share(room, 0.5)),
            None => of(config.tail_tokens, 0.2),
        };
        let demanded = matches!(moment, Moment::Manual | Moment::Overflow);
        Self {
            limit,
            goal: share(room, 0.7),
            tail,
            fold: if demanded { 1 } else { of(config.fold_tokens, 0.3) },
            working: of(config.working_tokens, 0.2),
            prefix: of(config.prefix_tokens.min(PREFIX), 0.3),
            segments: of(SEGMENTS.min(config.prefix_tokens), 0.12),
            head: share(room, 0.1),
        }
    }

    /// The same where little of it fits.
    pub(crate) fn tightened(&self, by: f64) -> Self {
        let of = |tokens: u32| share(tokens, by);
        Self {
            tail: of(self.tail),
            working: of(self.working),
            prefix: of(self.prefix),
            segments: of(self.segments),
            head: 0,
            ..*self
        }
    }
}

/// A share of so many tokens.
pub(crate) fn share(tokens: u32, of: f64) -> u32 {
    // Casts from floats saturate.
    (f64::from(tokens) * of) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pressure;

    #[test]
    fn the_shares_of_a_large_window_are_the_figures_and_those_of_a_small_one_fit_it() {
        let config = Config::default();
        let large = pressure(200_000, 8_192, 15_000);
        let shares = Shares::of(&config, &Marks::of(&config, &large, 0), Moment::MidTurn);
        assert_eq!((shares.tail, shares.fold, shares.working, shares.prefix), (TAIL, FOLD, WORKING, PREFIX));
        for (window, fixed) in [(4_000, 500), (12_000, 3_000), (12_000, 8_000), (40_000, 15_000)] {
            let pressure = pressure(window, window / 8, fixed);
            let marks = Marks::of(&config, &pressure, 0);
            let shares = Shares::of(&config, &marks, Moment::MidTurn);
            // The working set takes what segments leave of the prefix.
            let after = shares.tail + shares.prefix;
            assert!(after <= shares.goal && shares.goal + fixed < marks.hard, "{window}, {fixed}: {shares:?}");
            assert!(after + shares.fold <= marks.hard - fixed, "{window}, {fixed}: {shares:?}");
        }
    }

    #[test]
    fn a_provider_that_counts_more_makes_the_shares_smaller() {
        let config = Config::default();
        let mut pressure = pressure(20_000, 2_000, 0);
        pressure.prompt_tokens = 10_000;
        let of = |messages| Shares::of(&config, &Marks::of(&config, &pressure, messages), Moment::MidTurn);
        let (trusted, doubled) = (of(10_000), of(5_000));
        assert!(doubled.limit.abs_diff(trusted.limit / 2) <= 1 && doubled.tail.abs_diff(trusted.tail / 2) <= 1);
    }

    #[test]
    fn the_threshold_is_a_ceiling() {
        let config = Config { threshold: 0.95, ..Config::default() };
        let marks = Marks::of(&config, &pressure(100_000, 0, 0), 0);
        assert_eq!((marks.usable, marks.hard, marks.brim), (100_000, 85_000, 95_000));
    }
}
