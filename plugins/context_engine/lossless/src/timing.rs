//! When to propose a new view, and when not to.

use hermes_plugin::context_engine::{Moment, Pressure, Timing};

use crate::budgets::{Thresholds, share};

/// Keeps the engine from repeating a proposal that just failed or just succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Cooldown {
    #[default]
    Off,
    /// A plan was adopted; the next reading shows its effect.
    Measuring,
    /// Do not propose until the prompt has this many tokens.
    Until(u32),
    /// Like `Until`, but only while the cache is warm: with a cold cache the plan may pay.
    Warm(u32),
}

impl Cooldown {
    /// The engine found nothing to gain.
    pub(crate) fn after_nothing(pressure: &Pressure, thresholds: &Thresholds) -> Self {
        Self::Until(pressure.prompt_tokens.saturating_add(share(thresholds.usable, 0.02).clamp(64, 4_000)))
    }

    /// The host deferred the plan because it does not pay yet.
    pub(crate) fn after_deferral(tokens: u32) -> Self {
        Self::Warm(tokens.saturating_add(1_500))
    }

    /// Updates itself with a reading, and returns whether to stay silent.
    fn holds(&mut self, pressure: &Pressure, thresholds: &Thresholds) -> bool {
        let tokens = pressure.prompt_tokens;
        if *self == Self::Measuring {
            // If a plan left the view close to its limit, the next request would trigger another one.
            *self = Self::Until(tokens.saturating_add(share(thresholds.usable, 0.05).clamp(128, 4_000)));
        }
        match *self {
            Self::Until(until) if tokens >= until => {
                *self = Self::Off;
                false
            }
            Self::Warm(until) => {
                let warm = pressure.cache.warm_tokens > 0 && !pressure.cache.breaking;
                warm && tokens < until && tokens < thresholds.hard
            }
            Self::Until(_) => tokens < thresholds.nearly_full,
            _ => false,
        }
    }
}

/// Whether to propose. `pays` is true when enough messages have left the tail.
pub(crate) fn propose(pressure: &Pressure, thresholds: &Thresholds, cooldown: &mut Cooldown, pays: bool) -> Timing {
    let cooldown = cooldown.holds(pressure, thresholds);
    if is_demanded(pressure) {
        Timing::Now
    } else if cooldown {
        Timing::NotNow
    } else if is_needed(pressure, thresholds) {
        Timing::Now
    } else if pays {
        Timing::Boundary
    } else {
        Timing::NotNow
    }
}

/// Whether even a plan with a small gain is better than none.
pub(crate) fn is_needed(pressure: &Pressure, thresholds: &Thresholds) -> bool {
    is_demanded(pressure) || pressure.prompt_tokens >= thresholds.hard
}

/// Whether room must be made even at the cost of comfort.
pub(crate) fn is_pressing(pressure: &Pressure, thresholds: &Thresholds) -> bool {
    pressure.moment == Moment::Overflow || pressure.prompt_tokens >= thresholds.hard
}

fn is_demanded(pressure: &Pressure) -> bool {
    matches!(pressure.moment, Moment::Manual | Moment::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::pressure;

    /// 80,000 tokens usable: `hard` at 60,000, `nearly_full` at 76,000.
    fn at(tokens: u32, moment: Moment) -> (Pressure, Thresholds) {
        let mut pressure = pressure(100_000, 20_000, 5_000);
        pressure.prompt_tokens = tokens;
        pressure.moment = moment;
        let thresholds = Thresholds::of(&Config::default(), &pressure, tokens);
        (pressure, thresholds)
    }

    #[test]
    fn moment_window_and_backlog_decide_the_timing() {
        let table = [
            (10_000, Moment::TurnStart, false, Timing::NotNow),
            (30_000, Moment::MidTurn, true, Timing::Boundary),
            (60_000, Moment::MidTurn, false, Timing::Now),
            (100, Moment::Manual, false, Timing::Now),
            (100, Moment::Overflow, false, Timing::Now),
        ];
        for (tokens, moment, pays, expected) in table {
            let (pressure, thresholds) = at(tokens, moment.clone());
            assert_eq!(propose(&pressure, &thresholds, &mut Cooldown::Off, pays), expected, "{tokens} {moment:?}");
        }
    }

    #[test]
    fn after_a_plan_the_prompt_must_grow_before_the_next() {
        let mut cooldown = Cooldown::Measuring;
        for (tokens, expected) in [(62_000, Timing::NotNow), (65_000, Timing::NotNow), (66_000, Timing::Now)] {
            let (pressure, thresholds) = at(tokens, Moment::MidTurn);
            assert_eq!(propose(&pressure, &thresholds, &mut cooldown, true), expected, "{tokens}");
        }
    }

    #[test]
    fn a_deferred_plan_is_not_repeated_at_every_request() {
        let mut cooldown = Cooldown::after_deferral(30_000);
        for (tokens, warm, expected) in
            [(30_500, 9_000, Timing::NotNow), (30_600, 0, Timing::Boundary), (31_500, 9_000, Timing::Boundary)]
        {
            let (mut pressure, thresholds) = at(tokens, Moment::MidTurn);
            pressure.cache.warm_tokens = warm;
            assert_eq!(propose(&pressure, &thresholds, &mut cooldown, true), expected, "{tokens}");
        }
        let (mut full, thresholds) = at(60_000, Moment::MidTurn);
        full.cache.warm_tokens = 9_000;
        assert_eq!(propose(&full, &thresholds, &mut Cooldown::Warm(61_000), true), Timing::Now);
    }

    #[test]
    fn the_cooldown_ends_when_the_window_is_nearly_full_and_on_demand() {
        let (nearly_full, thresholds) = at(77_000, Moment::MidTurn);
        assert_eq!(propose(&nearly_full, &thresholds, &mut Cooldown::Until(90_000), false), Timing::Now);
        let (manual, _) = at(62_000, Moment::Manual);
        assert_eq!(propose(&manual, &thresholds, &mut Cooldown::Until(90_000), false), Timing::Now);
        let (below, _) = at(62_000, Moment::MidTurn);
        assert_eq!(propose(&below, &thresholds, &mut Cooldown::Until(90_000), true), Timing::NotNow);
    }
}
