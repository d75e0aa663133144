//! When to propose a new view, and when not to.

use hermes_plugin::context_engine::{Moment, Pressure, Timing};

use crate::budget::{Thresholds, share};

/// Keeps the engine from repeating a proposal that just failed or just succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Cooldown {
    #[default]
    Off,
    /// A plan was adopted; the next reading shows its effect.
    Measuring,
    /// Do not propose until the prompt has this many tokens.
    Until(u32),
}

impl Cooldown {
    /// The engine found nothing to gain.
    pub(crate) fn after_nothing(pressure: &Pressure, thresholds: &Thresholds) -> Self {
        Self::Until(pressure.prompt_tokens.saturating_add(share(thresholds.usable, 0.03).max(64)))
    }

    /// Updates itself with a reading, and returns whether to stay silent.
    pub(crate) fn holds(&mut self, pressure: &Pressure, thresholds: &Thresholds) -> bool {
        if *self == Self::Measuring {
            *self = Self::Until(pressure.prompt_tokens.saturating_add(share(thresholds.usable, 0.05).max(128)));
        }
        match *self {
            Self::Until(_) if pressure.prompt_tokens < thresholds.prepare => {
                *self = Self::Off;
                false
            }
            Self::Until(tokens) => pressure.prompt_tokens < tokens.min(thresholds.nearly_full),
            _ => false,
        }
    }
}

/// Whether to propose. `ready` is true if a better view is prepared; the host decides whether it pays.
pub(crate) fn propose(pressure: &Pressure, thresholds: &Thresholds, cooldown: &mut Cooldown, ready: bool) -> Timing {
    let tokens = pressure.prompt_tokens;
    let cooldown = cooldown.holds(pressure, thresholds) && !is_demanded(pressure);
    if cooldown {
        Timing::NotNow
    } else if is_needed(pressure, thresholds) {
        Timing::Now
    } else if ready && tokens >= thresholds.prepare {
        Timing::Boundary
    } else {
        Timing::NotNow
    }
}

/// Whether even a rule-based plan is better than none.
pub(crate) fn is_needed(pressure: &Pressure, thresholds: &Thresholds) -> bool {
    is_demanded(pressure) || pressure.prompt_tokens >= thresholds.propose
}

fn is_demanded(pressure: &Pressure) -> bool {
    matches!(pressure.moment, Moment::Manual | Moment::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::pressure;

    /// 80,000 tokens usable: preparation from 48,000, proposal at 60,000, `nearly_full` at 76,000.
    fn at(tokens: u32, warm: u32, moment: Moment) -> (Pressure, Thresholds) {
        let mut pressure = pressure(100_000, 20_000, 5_000);
        pressure.prompt_tokens = tokens;
        pressure.cache.warm_tokens = warm;
        pressure.moment = moment;
        let thresholds = Thresholds::of(&Config::default(), &pressure);
        (pressure, thresholds)
    }

    #[test]
    fn moment_and_window_decide_the_timing() {
        let table = [
            (10_000, 0, Moment::TurnStart, true, Timing::NotNow),
            (47_999, 0, Moment::TurnStart, true, Timing::NotNow),
            (50_000, 0, Moment::TurnStart, false, Timing::NotNow),
            (50_000, 0, Moment::TurnStart, true, Timing::Boundary),
            (50_000, 40_000, Moment::TurnStart, true, Timing::Boundary),
            (60_000, 50_000, Moment::MidTurn, false, Timing::Now),
            (100, 0, Moment::Manual, false, Timing::Now),
            (100, 0, Moment::Overflow, false, Timing::Now),
        ];
        for (tokens, warm, moment, prepared, expected) in table {
            let (pressure, thresholds) = at(tokens, warm, moment.clone());
            assert_eq!(propose(&pressure, &thresholds, &mut Cooldown::Off, prepared), expected, "{tokens} {moment:?}");
        }
    }

    #[test]
    fn after_a_small_gain_the_prompt_must_grow_before_the_next_plan() {
        let mut cooldown = Cooldown::Measuring;
        for (tokens, expected) in [(62_000, Timing::NotNow), (65_000, Timing::NotNow), (66_000, Timing::Now)] {
            let (pressure, thresholds) = at(tokens, 0, Moment::MidTurn);
            assert_eq!(propose(&pressure, &thresholds, &mut cooldown, true), expected, "{tokens}");
        }
    }

    #[test]
    fn the_cooldown_ends_when_nearly_full_on_demand_or_when_the_window_is_free() {
        let (nearly_full, thresholds) = at(77_000, 0, Moment::MidTurn);
        assert_eq!(propose(&nearly_full, &thresholds, &mut Cooldown::Until(90_000), false), Timing::Now);
        let (manual, _) = at(62_000, 0, Moment::Manual);
        assert_eq!(propose(&manual, &thresholds, &mut Cooldown::Until(90_000), false), Timing::Now);
        let mut cooldown = Cooldown::Until(90_000);
        let (free, _) = at(20_000, 0, Moment::MidTurn);
        assert_eq!(propose(&free, &thresholds, &mut cooldown, false), Timing::NotNow);
        assert_eq!(cooldown, Cooldown::Off);
    }
}
