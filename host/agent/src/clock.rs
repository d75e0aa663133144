//! The clock of the agent loop.

use hermes_plugin_host::services;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

/// The system's clock, optionally shifted by a constant offset.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock {
    offset: SignedDuration,
}

impl Clock {
    /// Creates a clock that shows `moment` now.
    pub fn set_to(moment: Timestamp) -> Self {
        Self { offset: moment.duration_since(Timestamp::now()) }
    }

    fn timestamp(self) -> Timestamp {
        let now = Timestamp::now();
        now.checked_add(self.offset).unwrap_or(now)
    }

    /// Unix time in milliseconds.
    pub fn now(self) -> u64 {
        u64::try_from(self.timestamp().as_millisecond()).unwrap_or(0)
    }

    /// The current time in the user's time zone.
    pub fn local(self) -> Zoned {
        self.timestamp().to_zoned(TimeZone::system())
    }
}

impl services::Clock for Clock {
    fn now(&self) -> u64 {
        Clock::now(*self)
    }

    fn utc_offset(&self) -> i32 {
        minutes_east(self.local().offset())
    }
}

fn minutes_east(offset: Offset) -> i32 {
    offset.seconds() / 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_zone_is_given_in_minutes_east_of_utc() {
        for (seconds, minutes) in [(0, 0), (20_700, 345), (-12_600, -210)] {
            let offset = Offset::from_seconds(seconds).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(minutes_east(offset), minutes);
        }
    }

    #[test]
    fn a_shifted_clock_keeps_running() {
        let moment = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let clock = Clock::set_to(moment);
        let (first, second) = (clock.now(), clock.now());
        assert!((3_600_000..3_660_000).contains(&first), "{first}");
        assert!(second >= first);
    }
}
