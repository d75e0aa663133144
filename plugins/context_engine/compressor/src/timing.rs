//! When to propose, and when to leave it.

use hermes_plugin::context_engine::{Moment, Pressure, Timing};

use crate::budget::{Marks, share};

/// Keeps the engine from proposing again what has just been tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Quiet {
    #[default]
    Off,
    /// A plan was adopted: the next reading tells what it brought.
    Measuring,
    /// Until the window holds so many tokens.
    Until(u32),
}

impl Quiet {
    /// Nothing was to be gained at so many tokens.
    pub(crate) fn after_nothing(pressure: &Pressure, marks: &Marks) -> Self {
        Self::Until(pressure.prompt_tokens.saturating_add(share(marks.usable, 0.03).max(64)))
    }

    /// Takes a reading; says whether to be quiet at it.
    pub(crate) fn holds(&mut self, pressure: &Pressure, marks: &Marks) -> bool {
        if *self == Self::Measuring {
            *self = Self::Until(pressure.prompt_tokens.saturating_add(share(marks.usable, 0.05).max(128)));
        }
        match *self {
            Self::Until(_) if pressure.prompt_tokens < marks.prepare => {
                *self = Self::Off;
                false
            }
            Self::Until(tokens) => pressure.prompt_tokens < tokens.min(marks.brim),
            _ => false,
        }
    }
}

/// Whether to propose; `ready` says that a better view waits: whether it pays already is the host's sum.
pub(crate) fn propose(pressure: &Pressure, marks: &Marks, quiet: &mut Quiet, ready: bool) -> Timing {
    let tokens = pressure.prompt_tokens;
    let quiet = quiet.holds(pressure, marks) && !is_demanded(pressure);
    if quiet {
        Timing::NotNow
    } else if is_needed(pressure, marks) {
        Timing::Now
    } else if ready && tokens >= marks.prepare {
        Timing::Boundary
    } else {
        Timing::NotNow
    }
}

/// Whether even a plan by rule is better than none.
pub(crate) fn is_needed(pressure: &Pressure, marks: &Marks) -> bool {
    is_demanded(pressure) || pressure.prompt_tokens >= marks.propose
}

fn is_demanded(pressure: &Pressure) -> bool {
    matches!(pressure.moment, Moment::Manual | Moment::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::pressure;

    /// 80,000 usable: prepared from 48,000 on, proposed at 60,000, brim at 76,000.
    fn at(tokens: u32, warm: u32, moment: Moment) -> (Pressure, Marks) {
        let mut pressure = pressure(100_000, 20_000, 5_000);
        pressure.prompt_tokens = tokens;
        pressure.cache.warm_tokens = warm;
        pressure.moment = moment;
        let marks = Marks::of(&Config::default(), &pressure);
        (pressure, marks)
    }

    #[test]
    fn the_moment_and_the_window_decide() {
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
            let (pressure, marks) = at(tokens, warm, moment);
            assert_eq!(propose(&pressure, &marks, &mut Quiet::Off, prepared), expected, "{tokens} {moment:?}");
        }
    }

    #[test]
    fn after_a_plan_that_brought_little_the_window_must_grow_first() {
        let mut quiet = Quiet::Measuring;
        for (tokens, expected) in [(62_000, Timing::NotNow), (65_000, Timing::NotNow), (66_000, Timing::Now)] {
            let (pressure, marks) = at(tokens, 0, Moment::MidTurn);
            assert_eq!(propose(&pressure, &marks, &mut quiet, true), expected, "{tokens}");
        }
    }

    #[test]
    fn quiet_ends_at_the_brim_on_demand_and_when_the_window_is_free_again() {
        let (brim, marks) = at(77_000, 0, Moment::MidTurn);
        assert_eq!(propose(&brim, &marks, &mut Quiet::Until(90_000), false), Timing::Now);
        let (manual, _) = at(62_000, 0, Moment::Manual);
        assert_eq!(propose(&manual, &marks, &mut Quiet::Until(90_000), false), Timing::Now);
        let mut quiet = Quiet::Until(90_000);
        let (free, _) = at(20_000, 0, Moment::MidTurn);
        assert_eq!(propose(&free, &marks, &mut quiet, false), Timing::NotNow);
        assert_eq!(quiet, Quiet::Off);
    }
}
