//! The host's version, the log, the current call, time and random numbers.

use super::Host;
use crate::Timestamp;
use crate::host::log::Level;

/// 2026-01-01T00:00:00Z.
const BEGIN: Timestamp = 1_767_225_600_000;
/// The deadline of a call in milliseconds.
const DEADLINE: u32 = 30_000;
/// The most random bytes per call.
const RANDOM: u32 = 65_536;

#[derive(Default)]
pub(crate) struct Info {
    lacks: Vec<String>,
}

impl Info {
    pub(crate) fn version(&mut self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    pub(crate) fn has(&mut self, feature: &str) -> bool {
        !self.lacks.iter().any(|lacking| lacking == feature)
    }
}

#[derive(Default)]
pub(crate) struct Log {
    lines: Vec<(Level, String)>,
}

impl Log {
    pub(crate) fn write(&mut self, level: Level, text: &str) {
        eprintln!("{level:?}: {text}");
        self.lines.push((level, text.to_owned()));
    }
}

pub(crate) struct Task {
    cancelled: bool,
    time_left: u32,
    progress: Vec<String>,
}

impl Default for Task {
    fn default() -> Self {
        Self { cancelled: false, time_left: DEADLINE, progress: Vec::new() }
    }
}

impl Task {
    pub(crate) fn cancelled(&mut self) -> bool {
        self.cancelled
    }

    pub(crate) fn time_left(&mut self) -> u32 {
        self.time_left
    }

    pub(crate) fn progress(&mut self, text: &str) {
        self.progress.push(text.to_owned());
    }
}

pub(crate) struct Clock {
    now: Timestamp,
    utc_offset: i32,
}

impl Default for Clock {
    fn default() -> Self {
        Self { now: BEGIN, utc_offset: 0 }
    }
}

impl Clock {
    pub(crate) fn now(&mut self) -> Timestamp {
        self.now
    }

    pub(crate) fn utc_offset(&mut self) -> i32 {
        self.utc_offset
    }
}

/// SplitMix64: a few lines, and the same numbers for the same seed on every machine.
#[derive(Default)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn bytes(&mut self, count: u32) -> Vec<u8> {
        let count = count.min(RANDOM) as usize;
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Host {
    /// Makes [`info::has`](crate::info::has) false for a feature. Without this, the host has every feature.
    pub fn without(self, feature: impl Into<String>) -> Self {
        self.state.info.borrow_mut().lacks.push(feature.into());
        self
    }

    /// Sets the clock. It begins with the year 2026, and moves only by [`advance`](Self::advance).
    pub fn at(self, now: Timestamp) -> Self {
        self.state.clock.borrow_mut().now = now;
        self
    }

    /// Sets the user's time zone, in minutes east of UTC.
    pub fn utc_offset(self, minutes: i32) -> Self {
        self.state.clock.borrow_mut().utc_offset = minutes;
        self
    }

    /// Moves the clock forward.
    pub fn advance(&self, milliseconds: u64) {
        self.state.clock.borrow_mut().now += milliseconds;
    }

    /// Sets the seed of the random numbers. They are the same in every run also without it.
    pub fn seed(self, seed: u64) -> Self {
        self.state.random.borrow_mut().state = seed;
        self
    }

    /// Sets the time until the deadline of a call; 30,000 ms without this.
    pub fn time_left(self, milliseconds: u32) -> Self {
        self.state.task.borrow_mut().time_left = milliseconds;
        self
    }

    /// Makes the user stop waiting for the current call, or wait again.
    pub fn cancel(&self, cancelled: bool) {
        self.state.task.borrow_mut().cancelled = cancelled;
    }

    /// The lines that the plugin showed during its calls.
    pub fn progress(&self) -> Vec<String> {
        self.state.task.borrow().progress.clone()
    }

    /// The lines of the plugin's log.
    pub fn log(&self) -> Vec<(Level, String)> {
        self.state.log.borrow().lines.clone()
    }
}
