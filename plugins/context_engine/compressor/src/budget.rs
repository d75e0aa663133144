//! How many tokens what may take: the marks at which something happens, and the shares of a new view.

use hermes_plugin::context_engine::{Moment, Pressure};

use crate::config::Config;
use crate::ground::Ground;

/// Where the window stands, in the tokens that the provider counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Of the window without what is kept free for the reply.
    pub(crate) usable: u32,
    /// Of it, what messages may take.
    pub(crate) room: u32,
    /// From here on summaries are written ahead.
    pub(crate) prepare: u32,
    /// From here on the view is replaced.
    pub(crate) propose: u32,
    /// From here on it is replaced whatever was tried before.
    pub(crate) brim: u32,
}

impl Marks {
    pub(crate) fn of(config: &Config, pressure: &Pressure) -> Self {
        let usable = pressure.context_length.saturating_sub(pressure.reserve);
        let room = usable.saturating_sub(pressure.fixed_tokens);
        // Where system prompt and tools take much, a share of the window would be reached as soon as anything is said.
        let mark = |of: f64| share(usable, of).max((usable - room).saturating_add(share(room, of * 0.8)));
        let propose = mark(config.threshold);
        Self { usable, room, prepare: mark(config.prepare_at).min(propose), propose, brim: share(usable, 0.95) }
    }
}

/// Shares of a new view, in the tokens of the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// What the view takes now.
    pub(crate) before: u32,
    /// What the new one should take.
    pub(crate) goal: u32,
    /// What it may take.
    pub(crate) limit: u32,
    /// More than this is not worth a broken cache.
    pub(crate) worth: u32,
    /// For the newest messages.
    pub(crate) tail: u32,
    /// For them, where fewer than the protected number fit.
    pub(crate) tail_most: u32,
    /// For the first ones.
    pub(crate) head: u32,
    /// Left of the goal for a summary, whatever stays.
    pub(crate) text: u32,
    /// For what the user said, in a digest.
    pub(crate) said: u32,
    /// For tool calls, in a digest.
    pub(crate) calls: u32,
    /// For what earlier summaries say.
    pub(crate) earlier: u32,
}

impl Budget {
    pub(crate) fn of(config: &Config, pressure: &Pressure, ground: &Ground<'_>) -> Self {
        Self::from_tokens(config, pressure, ground.before(), ground.least())
    }

    /// `before` is what the view takes by the headers, at most and at least.
    pub(crate) fn from_tokens(config: &Config, pressure: &Pressure, before: u32, least: u32) -> Self {
        let marks = Marks::of(config, pressure);
        // Where the provider counts more than the headers say, the headers' tokens are larger than they look. Whether
        // its ruler holds for system prompt and tools too is not known: the smaller limit is right either way.
        let counted = pressure.prompt_tokens.saturating_sub(pressure.fixed_tokens);
        let scale = ratio(counted, least);
        let skew = ratio(pressure.prompt_tokens, least.saturating_add(pressure.fixed_tokens));
        let scaled = |tokens: u32| share(tokens, 1.0 / scale);

        let limit = scaled(marks.room).min(share(marks.usable, 1.0 / skew).saturating_sub(pressure.fixed_tokens));
        let limit = share(limit, 0.95);
        let spread = marks.propose.saturating_sub(pressure.fixed_tokens);
        let mut goal = scaled(share(spread, 0.6)).min(share(limit, 0.63));
        let mut tail = scaled(share(marks.propose, config.target_ratio));
        let mut worth = share(before, 0.9);
        // What was asked for is done even where there is little to fold; an overflow means that no count is to be
        // trusted.
        if matches!(pressure.moment, Moment::Manual | Moment::Overflow) {
            goal = goal.min(before / 2);
            tail = tail.min(before / 4);
            worth = share(before, 0.97);
        }
        if before > limit {
            worth = before;
        }
        let ceiling = scaled(share(marks.usable, 0.45)).min(share(goal, 0.7));
        Self {
            before,
            goal,
            limit,
            worth,
            tail: tail.min(share(goal, 0.5)),
            tail_most: share(tail, 1.5).min(ceiling),
            head: scaled(share(marks.usable, 0.10)).min(goal / 4),
            text: scaled(summary_tokens(before, pressure.context_length)).max(goal / 5).min(share(goal, 0.4)),
            said: scaled(share(marks.usable, 0.15)).min(share(goal, 0.3)),
            calls: scaled(share(marks.usable, 0.05)).min(share(goal, 0.1)),
            earlier: share(goal, 0.25),
        }
    }
}

/// Tokens that a summary of so many may take.
pub(crate) fn summary_tokens(folded: u32, context_length: u32) -> u32 {
    const LEAST: u32 = 300;
    let most = share(context_length, 0.05).clamp(LEAST, 10_000);
    share(folded, 0.20).clamp(LEAST, most)
}

/// How much larger the counted tokens are than the others; never less than 1.
fn ratio(counted: u32, estimated: u32) -> f64 {
    if estimated == 0 { 1.0 } else { (f64::from(counted) / f64::from(estimated)).clamp(1.0, 3.0) }
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
    fn marks_are_shares_of_what_is_usable() {
        let marks = Marks::of(&Config::default(), &pressure(100_000, 20_000, 5_000));
        assert_eq!((marks.usable, marks.room), (80_000, 75_000));
        assert_eq!((marks.prepare, marks.propose, marks.brim), (48_000, 60_000, 76_000));
    }

    #[test]
    fn a_long_system_prompt_does_not_stand_above_the_marks() {
        let marks = Marks::of(&Config::default(), &pressure(12_000, 2_000, 8_000));
        assert_eq!((marks.prepare, marks.propose), (8_960, 9_200));
        let none = Marks::of(&Config::default(), &pressure(1_000, 2_000, 8_000));
        assert_eq!((none.usable, none.room), (0, 0));
    }

    #[test]
    fn after_a_compaction_the_window_stands_below_every_mark() {
        for (window, fixed) in [(4_000, 500), (12_000, 3_000), (12_000, 8_000), (200_000, 15_000)] {
            let mut pressure = pressure(window, window / 8, fixed);
            let marks = Marks::of(&Config::default(), &pressure);
            pressure.prompt_tokens = marks.propose;
            let budget =
                Budget::from_tokens(&Config::default(), &pressure, marks.propose - fixed, marks.propose - fixed);
            assert!(fixed + budget.goal < marks.prepare, "{window}, {fixed}: {marks:?} {budget:?}");
            assert!(budget.tail <= budget.tail_most && budget.tail_most <= share(marks.usable, 0.45));
        }
    }

    #[test]
    fn a_provider_that_counts_more_makes_the_shares_smaller() {
        let mut pressure = pressure(100_000, 10_000, 0);
        pressure.prompt_tokens = 60_000;
        let trusted = Budget::from_tokens(&Config::default(), &pressure, 60_000, 60_000);
        let doubled = Budget::from_tokens(&Config::default(), &pressure, 30_000, 30_000);
        assert_eq!((doubled.goal, doubled.limit), (trusted.goal / 2, trusted.limit / 2));
    }

    #[test]
    fn a_summary_takes_a_fifth_within_bounds() {
        let table = [(500, 100_000, 300), (10_000, 100_000, 2_000), (90_000, 100_000, 5_000), (90_000, 4_000, 300)];
        for (folded, window, tokens) in table {
            assert_eq!(summary_tokens(folded, window), tokens);
        }
        assert_eq!(summary_tokens(1_000_000, 1_000_000), 10_000);
    }
}
