//! How many tokens what may take: the marks at which something happens, and the shares of a new view.

use hermes_plugin::context_engine::{Moment, Pressure};

use crate::config::Config;
use crate::ground::Ground;
use crate::plan::is_own;

/// Tokens that all summaries of a view may take together.
pub(crate) const PREFIX: u32 = 12_000;
/// What the host puts around a summary.
pub(crate) const FRAME: u32 = 115;
/// At most, in a digest: what the user said, what was done, what earlier summaries say.
const SAID: u32 = 1_500;
const CALLS: u32 = 750;
const NOTES: u32 = 4_000;
/// So much a list beside the longest summary still gets.
pub(crate) const LIST: u32 = 1_800;
/// At most, of a summary that a model writes: what it is asked for, what is taken, and what the user said behind it.
const SUMMARY: u32 = 7_000;
const WRITTEN: u32 = 9_000;
pub(crate) const SAID_BESIDE: u32 = 900;

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
        let propose = mark(config.threshold(pressure.context_length));
        // Where a prompt takes most of the window there is less to share: some of it stays for what is said.
        let propose = propose.min(share(usable, 0.85).max((usable - room).saturating_add(share(room, 0.6))));
        let prepare = config.prepare_at.map_or_else(|| share(propose, 0.8).max(usable - room), mark).min(propose);
        Self { usable, room, prepare, propose, brim: share(usable, 0.95) }
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
    /// For the few that are kept before any budget.
    pub(crate) tail_least: u32,
    /// For the first ones.
    pub(crate) head: u32,
    /// Left of the goal for a summary, whatever stays.
    pub(crate) text: u32,
    /// For what the user said, in a digest.
    pub(crate) said: u32,
    /// For tool calls, in a digest.
    pub(crate) calls: u32,
    /// For earlier summaries that stay.
    pub(crate) earlier: u32,
    /// For what they say, where they do not.
    pub(crate) notes: u32,
}

impl Budget {
    pub(crate) fn of(config: &Config, pressure: &Pressure, ground: &Ground<'_>) -> Self {
        let budget = Self::from_tokens(config, pressure, ground.before(), ground.least());
        // What another engine's summaries take is not there for messages; one's own become part of the next.
        let foreign = ground.summaries.iter().filter(|summary| !is_own(&summary.key));
        let told = foreign.map(|summary| summary.tokens).fold(0, u32::saturating_add).min(budget.earlier);
        let texts = if told == 0 { 0 } else { budget.said + budget.calls + 2 * FRAME + told };
        Self { text: budget.text.max(texts).min(share(budget.goal, 0.7)), ..budget }
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
        // Who wants a long tail gets a larger view.
        let wide = (0.4 + config.target_ratio).clamp(0.6, 0.75);
        let mut goal = scaled(share(spread, wide)).min(share(limit, 0.63));
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
        let said = scaled(share(marks.usable, 0.15)).min(share(goal, 0.2)).min(SAID);
        let calls = scaled(share(marks.usable, 0.05)).min(share(goal, 0.1)).min(CALLS);
        Self {
            before,
            goal,
            limit,
            worth,
            tail: tail.min(ceiling),
            tail_most: share(tail, 1.5).min(ceiling),
            tail_least: ceiling,
            head: scaled(share(marks.usable, 0.10)).min(goal / 4),
            text: scaled(summary_tokens(before, pressure.context_length)).max(goal / 5).min(share(goal, 0.4)),
            said,
            calls,
            earlier: share(goal, 0.35).min(PREFIX - said - calls - 2 * FRAME),
            notes: share(goal, 0.2).min(NOTES),
        }
    }
}

/// Tokens that a summary of so many may take: a fifth, within bounds.
pub(crate) fn summary_tokens(folded: u32, context_length: u32) -> u32 {
    const LEAST: u32 = 300;
    let most = share(context_length, 0.05).clamp(LEAST, SUMMARY);
    share(folded, 0.20).clamp(LEAST, most)
}

/// Tokens that a model's text may have, whatever it was asked for.
pub(crate) fn written_most(context_length: u32) -> u32 {
    share(context_length, 0.06).clamp(400, WRITTEN)
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
        for (window, reserve, propose) in
            [(65_536, 8_192, 43_008), (200_000, 8_192, 143_856), (1_000_000, 8_192, 495_904)]
        {
            assert_eq!(Marks::of(&Config::default(), &pressure(window, reserve, 5_000)).propose, propose);
        }
    }

    #[test]
    fn no_threshold_is_above_85_percent_of_what_is_usable() {
        let late = Config { threshold: Some(0.99), ..Config::default() };
        for (window, fixed) in [(8_000, 3_000), (65_536, 20_000), (200_000, 15_000), (1_000_000, 0)] {
            let marks = Marks::of(&late, &pressure(window, window / 10, fixed));
            assert!(marks.propose <= share(marks.usable, 0.85), "{marks:?}");
        }
    }

    #[test]
    fn a_long_system_prompt_does_not_stand_above_the_marks() {
        let marks = Marks::of(&Config::default(), &pressure(12_000, 2_000, 8_000));
        assert_eq!((marks.prepare, marks.propose), (8_000, 9_200));
        let none = Marks::of(&Config::default(), &pressure(1_000, 2_000, 8_000));
        assert_eq!((none.usable, none.room), (0, 0));
    }

    #[test]
    fn after_a_compaction_the_window_stands_below_every_mark() {
        for (window, fixed) in [(4_000, 500), (12_000, 3_000), (200_000, 15_000), (1_000_000, 20_000)] {
            for (threshold, target_ratio) in [(None, 0.2), (Some(0.2), 0.2), (Some(0.5), 0.8), (Some(0.85), 0.1)] {
                let config = Config { threshold, target_ratio, ..Config::default() };
                let mut pressure = pressure(window, window / 8, fixed);
                let marks = Marks::of(&config, &pressure);
                pressure.prompt_tokens = marks.propose;
                let budget = Budget::from_tokens(&config, &pressure, marks.propose - fixed, marks.propose - fixed);
                assert!(fixed + budget.goal < marks.propose, "{window}, {fixed}: {marks:?} {budget:?}");
                let kept = budget.tail + budget.text;
                assert!(
                    fixed + kept.min(budget.goal) <= marks.prepare.max(fixed + budget.goal),
                    "{marks:?} {budget:?}"
                );
                assert!(budget.tail <= budget.tail_most && budget.tail_most <= share(marks.usable, 0.45));
            }
        }
    }

    #[test]
    fn all_summaries_of_a_view_together_are_bounded() {
        for window in [4_000, 64_000, 200_000, 2_000_000] {
            let mut pressure = pressure(window, window / 10, 0);
            pressure.prompt_tokens = window / 2;
            let budget = Budget::from_tokens(&Config::default(), &pressure, window / 2, window / 2);
            assert!(written_most(window) + SAID_BESIDE + LIST + 2 * FRAME <= PREFIX, "{window}");
            assert!(summary_tokens(u32::MAX, window) < written_most(window), "{window}");
            assert!(budget.earlier + budget.said + budget.calls + 2 * FRAME <= PREFIX, "{budget:?}");
            assert!(budget.notes + budget.said + budget.calls + FRAME <= PREFIX, "{budget:?}");
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
        assert_eq!(summary_tokens(1_000_000, 1_000_000), SUMMARY);
    }
}
