//! The real time of calls.

use serde::Serialize;

/// The real time of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Timing {
    /// How many calls were timed.
    pub plans: u64,
    /// The median in microseconds.
    pub median_us: u64,
    /// The 99th percentile in microseconds.
    pub p99_us: u64,
    /// The maximum in microseconds.
    pub max_us: u64,
}

impl Timing {
    /// The statistics of these durations; `None` if there are none.
    pub fn of(mut micros: Vec<u64>) -> Option<Self> {
        micros.sort_unstable();
        let at = |share: usize| micros.get((micros.len() * share / 100).min(micros.len() - 1)).copied();
        Some(Self { plans: micros.len() as u64, max_us: *micros.last()?, median_us: at(50)?, p99_us: at(99)? })
    }
}
