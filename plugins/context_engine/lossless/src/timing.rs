//! When to propose, and when to leave it.

use hermes_plugin::context_engine::{Moment, Pressure, Timing};

use crate::policy::{Marks, share};

/// Keeps the engine from proposing again what has just been tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Quiet {
    #[default]
    Off,
    /// A plan was adopted: the next reading tells what it brought.
    Measuring,
    /// Until the window holds so many tokens.
    Until(u32),
    /// The same, as long as the cache is warm: what does not pay yet pays once it is cold.
    Warm(u32),
}

impl Quiet {
    /// Nothing was to be gained at so many tokens.
    pub(crate) fn after_nothing(pressure: &Pressure, marks: &Marks) -> Self {
        Self::Until(pressure.prompt_tokens.saturating_add(share(marks.usable, 0.02).clamp(64, 4_000)))
    }

    /// A plan does not pay yet at so many tokens.
    pub(crate) fn after_deferral(tokens: u32) -> Self {
        Self::Warm(tokens.saturating_add(1_500))
    }

    /// Takes a reading; says whether to be quiet at it.
    fn holds(&mut self, pressure: &Pressure, marks: &Marks) -> bool {
        let tokens = pressure.prompt_tokens;
        if *self == Self::Measuring {
            // A view that stands near its ceiling after a plan would otherwise be made anew at every request.
            *self = Self::Until(tokens.saturating_add(share(marks.usable, 0.05).clamp(128, 4_000)));
        }
        match *self {
            Self::Until(until) if tokens >= until => {
                *self = Self::Off;
                false
            }
            Self::Warm(until) => {
                let warm = pressure.cache.warm_tokens > 0 && !pressure.cache.breaking;
                warm && tokens < until && tokens < marks.hard
            }
            Self::Until(_) => tokens < marks.brim,
            _ => false,
        }
    }
}

/// Whether to propose; `pays` says that enough has left the tail to be folded.
pub(crate) fn propose(pressure: &Pressure, marks: &Marks, quiet: &mut Quiet, pays: bool) -> Timing {
    let quiet = quiet.holds(pressure, marks);
    if is_demanded(pressure) {
        Timing::Now
    } else if quiet {
        Timing::NotNow
    } else if is_needed(pressure, marks) {
        Timing::Now
    } else if pays {
        Timing::Boundary
    } else {
        Timing::NotNow
    }
}

/// Whether even a plan that gains little is better than none.
pub(crate) fn is_needed(pressure: &Pressure, marks: &Marks) -> bool {
    is_demanded(pressure) || pressure.prompt_tokens >= marks.hard
}

/// Whether room has to be made, whatever is lost to sight.
pub(crate) fn is_pressing(pressure: &Pressure, marks: &Marks) -> bool {
    pressure.moment == Moment::Overflow || pressure.prompt_tokens >= marks.hard
}

fn is_demanded(pressure: &Pressure) -> bool {
    matches!(pressure.moment, Moment::Manual | Moment::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::pressure;

    /// 80,000 usable: hard at 60,000, brim at 76,000.
    fn at(tokens: u32, moment: Moment) -> (Pressure, Marks) {
        let mut pressure = pressure(100_000, 20_000, 5_000);
        pressure.prompt_tokens = tokens;
        pressure.moment = moment;
        let marks = Marks::of(&Config::default(), &pressure, tokens);
        (pressure, marks)
    }

    #[test]
    fn the_moment_the_window_and_the_backlog_decide() {
        let table = [
            (10_000, Moment::TurnStart, false, Timing::NotNow),
            (30_000, Moment::MidTurn, true, Timing::Boundary),
            (60_000, Moment::MidTurn, false, Timing::Now),
            (100, Moment::Manual, false, Timing::Now),
            (100, Moment::Overflow, false, Timing::Now),
        ];
        for (tokens, moment, pays, expected) in table {
            let (pressure, marks) = at(tokens, moment);
            assert_eq!(propose(&pressure, &marks, &mut Quiet::Off, pays), expected, "{tokens} {moment:?}");
        }
    }

    #[test]
    fn after_a_plan_the_window_must_grow_first() {
        let mut quiet = Quiet::Measuring;
        for (tokens, expected) in [(62_000, Timing::NotNow), (65_000, Timing::NotNow), (66_000, Timing::Now)] {
            let (pressure, marks) = at(tokens, Moment::MidTurn);
            assert_eq!(propose(&pressure, &marks, &mut quiet, true), expected, "{tokens}");
        }
    }

    #[test]
    fn what_does_not_pay_yet_is_not_proposed_at_every_request() {
        let mut quiet = Quiet::after_deferral(30_000);
        for (tokens, warm, expected) in
            [(30_500, 9_000, Timing::NotNow), (30_600, 0, Timing::Boundary), (31_500, 9_000, Timing::Boundary)]
        {
            let (mut pressure, marks) = at(tokens, Moment::MidTurn);
            pressure.cache.warm_tokens = warm;
            assert_eq!(propose(&pressure, &marks, &mut quiet, true), expected, "{tokens}");
        }
        let (full, marks) = at(60_000, Moment::MidTurn);
        assert_eq!(propose(&full, &marks, &mut Quiet::Warm(61_000), true), Timing::Now);
    }

    #[test]
    fn quiet_ends_at_the_brim_and_on_demand() {
        let (brim, marks) = at(77_000, Moment::MidTurn);
        assert_eq!(propose(&brim, &marks, &mut Quiet::Until(90_000), false), Timing::Now);
        let (manual, _) = at(62_000, Moment::Manual);
        assert_eq!(propose(&manual, &marks, &mut Quiet::Until(90_000), false), Timing::Now);
        let (below, _) = at(62_000, Moment::MidTurn);
        assert_eq!(propose(&below, &marks, &mut Quiet::Until(90_000), true), Timing::NotNow);
    }
}
