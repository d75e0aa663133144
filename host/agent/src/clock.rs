//! The time of day as the loop sees it.

use hermes_plugin_host::services;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// The system's clock, or one that was set to another moment when the process began and runs on from there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock {
    ahead: SignedDuration,
}

impl Clock {
    /// A clock that shows `moment` now.
    pub fn set_to(moment: Timestamp) -> Self {
        Self { ahead: moment.duration_since(Timestamp::now()) }
    }

    fn timestamp(self) -> Timestamp {
        let now = Timestamp::now();
        now.checked_add(self.ahead).unwrap_or(now)
    }

    /// Unix time in milliseconds.
    pub(crate) fn now(self) -> u64 {
        u64::try_from(self.timestamp().as_millisecond()).unwrap_or(0)
    }

    /// The same in the user's time zone.
    pub(crate) fn local(self) -> Zoned {
        self.timestamp().to_zoned(TimeZone::system())
    }
}

impl services::Clock for Clock {
    fn now(&self) -> u64 {
        Clock::now(*self)
    }

    fn utc_offset(&self) -> i32 {
        self.local().offset().seconds() / 60
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_runs_on() {
        let moment = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let clock = Clock::set_to(moment);
        let (first, second) = (clock.now(), clock.now());
        assert!((3_600_000..3_660_000).contains(&first), "{first}");
        assert!(second >= first);
    }
}
