//! Thresholds of the window and budgets for the parts of a view: the figures of the policy, scaled with the window.

use hermes_guest_engine::budget::Window;
pub(crate) use hermes_guest_engine::budget::share;
use hermes_plugin::context_engine::{Moment, Pressure};

use crate::config::Config;
use crate::policy::{HIGHEST, PREFIX, SEGMENTS};

/// Thresholds of the window, in the provider's tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Thresholds {
    /// The window minus the reserve for the reply.
    pub(crate) usable: u32,
    /// From here on the view is replaced at any cost.
    pub(crate) hard: u32,
    /// From here on it is replaced even if the last attempt gained nothing.
    pub(crate) nearly_full: u32,
    /// Ratio of the provider's token count to the headers' estimate; at least 1.
    skew: f64,
    fixed: u32,
}

impl Thresholds {
    /// `messages` is the size of the view by the headers' estimate.
    pub(crate) fn of(config: &Config, pressure: &Pressure, messages: u32) -> Self {
        let window = Window::of(pressure);
        let usable = window.usable;
        let ratio = |counted: u32, estimated: u32| {
            if estimated == 0 { 1.0 } else { (f64::from(counted) / f64::from(estimated)).clamp(1.0, 3.0) }
        };
        // It is unknown whether the provider counts system prompt and tools at the same ratio: take the larger one.
        let skew = ratio(pressure.prompt_tokens.saturating_sub(pressure.fixed_tokens), messages)
            .max(ratio(pressure.prompt_tokens, messages.saturating_add(pressure.fixed_tokens)));
        let hard = window.threshold(config.threshold.min(HIGHEST));
        Self { usable, hard, nearly_full: share(usable, 0.95), skew, fixed: pressure.fixed_tokens }
    }

    /// Converts the provider's tokens to the headers' estimate.
    pub(crate) fn scaled(&self, tokens: u32) -> u32 {
        share(tokens, 1.0 / self.skew)
    }

    /// The most tokens of messages, by the headers' estimate.
    pub(crate) fn limit(&self) -> u32 {
        share(self.scaled(self.usable).saturating_sub(self.fixed), 0.97)
    }
}

/// Token budgets for the parts of a new view, by the headers' estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budgets {
    /// The most that fits.
    pub(crate) limit: u32,
    /// A view below this leaves room to continue.
    pub(crate) goal: u32,
    pub(crate) tail: u32,
    pub(crate) fold: u32,
    pub(crate) working: u32,
    /// All segments together.
    pub(crate) prefix: u32,
    /// Above this the oldest segments are merged.
    pub(crate) segments: u32,
    /// The protected first messages.
    pub(crate) head: u32,
}

impl Budgets {
    pub(crate) fn of(config: &Config, thresholds: &Thresholds, moment: &Moment) -> Self {
        let limit = thresholds.limit();
        let room = thresholds.scaled(thresholds.hard).saturating_sub(thresholds.fixed).min(limit);
        let of = |tokens: u32, share_of_room: f64| tokens.min(share(room, share_of_room));
        let tail = match config.target_ratio {
            Some(ratio) => thresholds.scaled(share(thresholds.hard, ratio)).min(share(room, 0.5)),
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

    /// Smaller budgets, for when the comfortable view does not fit.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{FOLD, TAIL, WORKING};
    use crate::testing::pressure;

    #[test]
    fn a_large_window_gets_the_full_figures_and_a_small_one_is_not_overfilled() {
        let config = Config::default();
        let large = pressure(200_000, 8_192, 15_000);
        let budgets = Budgets::of(&config, &Thresholds::of(&config, &large, 0), &Moment::MidTurn);
        assert_eq!((budgets.tail, budgets.fold, budgets.working, budgets.prefix), (TAIL, FOLD, WORKING, PREFIX));
        for (window, fixed) in [(4_000, 500), (12_000, 3_000), (12_000, 8_000), (40_000, 15_000)] {
            let pressure = pressure(window, window / 8, fixed);
            let thresholds = Thresholds::of(&config, &pressure, 0);
            let budgets = Budgets::of(&config, &thresholds, &Moment::MidTurn);
            // The working set uses what the segments leave of the prefix.
            let after = budgets.tail + budgets.prefix;
            assert!(after <= budgets.goal && budgets.goal + fixed < thresholds.hard, "{window}, {fixed}: {budgets:?}");
            assert!(after + budgets.fold <= thresholds.hard - fixed, "{window}, {fixed}: {budgets:?}");
        }
    }

    #[test]
    fn budgets_shrink_when_the_provider_counts_more_tokens() {
        let config = Config::default();
        let mut pressure = pressure(20_000, 2_000, 0);
        pressure.prompt_tokens = 10_000;
        let of = |messages| Budgets::of(&config, &Thresholds::of(&config, &pressure, messages), &Moment::MidTurn);
        let (trusted, doubled) = (of(10_000), of(5_000));
        assert!(doubled.limit.abs_diff(trusted.limit / 2) <= 1 && doubled.tail.abs_diff(trusted.tail / 2) <= 1);
    }

    #[test]
    fn the_threshold_is_a_ceiling() {
        let config = Config { threshold: 0.95, ..Config::default() };
        let thresholds = Thresholds::of(&config, &pressure(100_000, 0, 0), 0);
        assert_eq!((thresholds.usable, thresholds.hard, thresholds.nearly_full), (100_000, 85_000, 95_000));
    }
}
