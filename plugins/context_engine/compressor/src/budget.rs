//! Token budgets: the thresholds at which the engine acts, and the parts of a new view.

use hermes_guest_engine::budget::Window;
pub(crate) use hermes_guest_engine::budget::share;
use hermes_plugin::context_engine::{Moment, Pressure};

use crate::config::Config;
use crate::current_view::CurrentView;
use crate::summary_key::is_own;

/// Most tokens of all summaries in a view together.
pub(crate) const PREFIX: u32 = 12_000;
/// Tokens that the host adds around a summary.
pub(crate) const FRAME: u32 = 115;
/// Most tokens in a digest of the user's words, of actions, and of earlier summaries.
const SAID: u32 = 1_500;
const CALLS: u32 = 750;
const NOTES: u32 = 4_000;
/// Tokens reserved for a list beside the longest summary.
pub(crate) const LIST: u32 = 1_800;
/// A summary by a model: most tokens requested, most accepted, and tokens of user quotes appended to it.
const SUMMARY: u32 = 7_000;
const WRITTEN: u32 = 9_000;
pub(crate) const SAID_BESIDE: u32 = 900;

/// Thresholds of the window, in the provider's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thresholds {
    /// The window minus the reserve for the reply.
    pub(crate) usable: u32,
    /// `usable` minus system prompt and tools.
    pub(crate) room: u32,
    /// From here on summaries are prepared in the background.
    pub(crate) prepare: u32,
    /// From here on the view is replaced.
    pub(crate) propose: u32,
    /// From here on it is replaced even if the last attempt failed.
    pub(crate) nearly_full: u32,
}

impl Thresholds {
    pub(crate) fn of(config: &Config, pressure: &Pressure) -> Self {
        let window = Window::of(pressure);
        let Window { usable, room } = window;
        let propose = window.threshold(config.threshold(pressure.context_length));
        // If the prompt takes most of the window, keep part of the rest for messages.
        let propose = propose.min(share(usable, 0.85).max((usable - room).saturating_add(share(room, 0.6))));
        let prepare = config
            .prepare_at
            .map_or_else(|| share(propose, 0.8).max(usable - room), |of| window.threshold(of))
            .min(propose);
        Self { usable, room, prepare, propose, nearly_full: share(usable, 0.95) }
    }
}

/// Token budgets of a new view, by the headers' estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Tokens of the current view.
    pub(crate) before: u32,
    /// Desired size of the new view.
    pub(crate) goal: u32,
    /// Largest allowed size.
    pub(crate) limit: u32,
    /// A view larger than this is not worth a broken cache.
    pub(crate) worth: u32,
    /// Tail: the newest messages.
    pub(crate) tail: u32,
    /// Tail, if it has fewer messages than the protected number.
    pub(crate) tail_most: u32,
    /// Tail, for the few messages that are kept before other limits apply.
    pub(crate) tail_least: u32,
    /// Head: the first messages.
    pub(crate) head: u32,
    /// Part of the goal reserved for a summary.
    pub(crate) text: u32,
    /// The user's words in a digest.
    pub(crate) said: u32,
    /// Tool calls in a digest.
    pub(crate) calls: u32,
    /// Earlier summaries that stay.
    pub(crate) earlier: u32,
    /// Contents taken over from earlier summaries that are replaced.
    pub(crate) notes: u32,
}

impl Budget {
    pub(crate) fn of(config: &Config, pressure: &Pressure, current: &CurrentView<'_>) -> Self {
        let budget = Self::from_tokens(config, pressure, current.before(), current.least());
        // Summaries of other engines use up space; own summaries are merged into the next one.
        let foreign = current.summaries.iter().filter(|summary| !is_own(&summary.key));
        let told = foreign.map(|summary| summary.tokens).fold(0, u32::saturating_add).min(budget.earlier);
        let texts = if told == 0 { 0 } else { budget.said + budget.calls + 2 * FRAME + told };
        Self { text: budget.text.max(texts).min(share(budget.goal, 0.7)), ..budget }
    }

    /// `before` and `least` are upper and lower bounds for the size of the current view.
    pub(crate) fn from_tokens(config: &Config, pressure: &Pressure, before: u32, least: u32) -> Self {
        let thresholds = Thresholds::of(config, pressure);
        // Convert to the headers' estimate. It is unknown whether the provider counts system prompt and tools at the same
        // ratio, so use the smaller limit.
        let counted = pressure.prompt_tokens.saturating_sub(pressure.fixed_tokens);
        let scale = ratio(counted, least);
        let skew = ratio(pressure.prompt_tokens, least.saturating_add(pressure.fixed_tokens));
        let scaled = |tokens: u32| share(tokens, 1.0 / scale);

        let limit =
            scaled(thresholds.room).min(share(thresholds.usable, 1.0 / skew).saturating_sub(pressure.fixed_tokens));
        let limit = share(limit, 0.95);
        let spread = thresholds.propose.saturating_sub(pressure.fixed_tokens);
        // A long tail needs a larger view.
        let wide = (0.4 + config.target_ratio).clamp(0.6, 0.75);
        let mut goal = scaled(share(spread, wide)).min(share(limit, 0.63));
        let mut tail = scaled(share(thresholds.propose, config.target_ratio));
        let mut worth = share(before, 0.9);
        // A request by the user is carried out even if there is little to fold. After an overflow, token counts cannot be
        // trusted.
        if matches!(pressure.moment, Moment::Manual | Moment::Overflow) {
            goal = goal.min(before / 2);
            tail = tail.min(before / 4);
            worth = share(before, 0.97);
        }
        if before > limit {
            worth = before;
        }
        let ceiling = scaled(share(thresholds.usable, 0.45)).min(share(goal, 0.7));
        let said = scaled(share(thresholds.usable, 0.15)).min(share(goal, 0.2)).min(SAID);
        let calls = scaled(share(thresholds.usable, 0.05)).min(share(goal, 0.1)).min(CALLS);
        Self {
            before,
            goal,
            limit,
            worth,
            tail: tail.min(ceiling),
            tail_most: share(tail, 1.5).min(ceiling),
            tail_least: ceiling,
            head: scaled(share(thresholds.usable, 0.10)).min(goal / 4),
            text: scaled(summary_tokens(before, pressure.context_length)).max(goal / 5).min(share(goal, 0.4)),
            said,
            calls,
            earlier: share(goal, 0.35).min(PREFIX - said - calls - 2 * FRAME),
            notes: share(goal, 0.2).min(NOTES),
        }
    }
}

/// Tokens for a summary: a fifth of the folded tokens, within bounds.
pub(crate) fn summary_tokens(folded: u32, context_length: u32) -> u32 {
    const LEAST: u32 = 300;
    let most = share(context_length, 0.05).clamp(LEAST, SUMMARY);
    share(folded, 0.20).clamp(LEAST, most)
}

/// Most tokens accepted from a model.
pub(crate) fn written_most(context_length: u32) -> u32 {
    share(context_length, 0.06).clamp(400, WRITTEN)
}

/// Ratio of counted to estimated tokens; at least 1.
fn ratio(counted: u32, estimated: u32) -> f64 {
    if estimated == 0 { 1.0 } else { (f64::from(counted) / f64::from(estimated)).clamp(1.0, 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pressure;

    #[test]
    fn thresholds_are_shares_of_the_usable_window() {
        let thresholds = Thresholds::of(&Config::default(), &pressure(100_000, 20_000, 5_000));
        assert_eq!((thresholds.usable, thresholds.room), (80_000, 75_000));
        assert_eq!((thresholds.prepare, thresholds.propose, thresholds.nearly_full), (48_000, 60_000, 76_000));
        for (window, reserve, propose) in
            [(65_536, 8_192, 43_008), (200_000, 8_192, 143_856), (1_000_000, 8_192, 495_904)]
        {
            assert_eq!(Thresholds::of(&Config::default(), &pressure(window, reserve, 5_000)).propose, propose);
        }
    }

    #[test]
    fn no_threshold_exceeds_85_percent_of_the_usable_window() {
        let late = Config { threshold: Some(0.99), ..Config::default() };
        for (window, fixed) in [(8_000, 3_000), (65_536, 20_000), (200_000, 15_000), (1_000_000, 0)] {
            let thresholds = Thresholds::of(&late, &pressure(window, window / 10, fixed));
            assert!(thresholds.propose <= share(thresholds.usable, 0.85), "{thresholds:?}");
        }
    }

    #[test]
    fn a_long_system_prompt_stays_below_the_thresholds() {
        let thresholds = Thresholds::of(&Config::default(), &pressure(12_000, 2_000, 8_000));
        assert_eq!((thresholds.prepare, thresholds.propose), (8_000, 9_200));
        let none = Thresholds::of(&Config::default(), &pressure(1_000, 2_000, 8_000));
        assert_eq!((none.usable, none.room), (0, 0));
    }

    #[test]
    fn after_a_compaction_the_prompt_is_below_every_threshold() {
        for (window, fixed) in [(4_000, 500), (12_000, 3_000), (200_000, 15_000), (1_000_000, 20_000)] {
            for (threshold, target_ratio) in [(None, 0.2), (Some(0.2), 0.2), (Some(0.5), 0.8), (Some(0.85), 0.1)] {
                let config = Config { threshold, target_ratio, ..Config::default() };
                let mut pressure = pressure(window, window / 8, fixed);
                let thresholds = Thresholds::of(&config, &pressure);
                pressure.prompt_tokens = thresholds.propose;
                let budget =
                    Budget::from_tokens(&config, &pressure, thresholds.propose - fixed, thresholds.propose - fixed);
                assert!(fixed + budget.goal < thresholds.propose, "{window}, {fixed}: {thresholds:?} {budget:?}");
                let kept = budget.tail + budget.text;
                assert!(
                    fixed + kept.min(budget.goal) <= thresholds.prepare.max(fixed + budget.goal),
                    "{thresholds:?} {budget:?}"
                );
                assert!(budget.tail <= budget.tail_most && budget.tail_most <= share(thresholds.usable, 0.45));
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
    fn budgets_shrink_when_the_provider_counts_more_tokens() {
        let mut pressure = pressure(100_000, 10_000, 0);
        pressure.prompt_tokens = 60_000;
        let trusted = Budget::from_tokens(&Config::default(), &pressure, 60_000, 60_000);
        let doubled = Budget::from_tokens(&Config::default(), &pressure, 30_000, 30_000);
        assert_eq!((doubled.goal, doubled.limit), (trusted.goal / 2, trusted.limit / 2));
    }

    #[test]
    fn a_summary_gets_a_fifth_within_bounds() {
        let table = [(500, 100_000, 300), (10_000, 100_000, 2_000), (90_000, 100_000, 5_000), (90_000, 4_000, 300)];
        for (folded, window, tokens) in table {
            assert_eq!(summary_tokens(folded, window), tokens);
        }
        assert_eq!(summary_tokens(1_000_000, 1_000_000), SUMMARY);
    }
}
