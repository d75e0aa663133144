//! The times of the three collections.

use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

/// Milliseconds between two messages of a session: the collections have no time for each message.
pub(super) const STEP: u64 = 30_000;

/// Gives messages their times: from the time of their session, or later than the messages before if the session has none.
#[derive(Debug)]
pub(super) struct Timeline {
    next: u64,
}

impl Timeline {
    /// Begins at the first of January 2023.
    pub(super) fn new() -> Self {
        Self { next: 1_672_531_200_000 }
    }

    /// Goes on at this time. A collection can contain sessions that are earlier than the one before.
    pub(super) fn at(&mut self, time: u64) {
        self.next = time;
    }

    /// The time of the next message.
    pub(super) fn tick(&mut self) -> u64 {
        let now = self.next;
        self.next += STEP;
        now
    }
}

/// `1:10 pm on 27 March, 2023`.
pub(super) fn locomo(text: &str) -> Option<u64> {
    date_time("%I:%M %p on %d %B, %Y", text.trim())
}

/// `2023/05/20 (Sat) 02:21`.
pub(super) fn longmemeval(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once('(')?;
    let (_, time) = rest.split_once(')')?;
    date_time("%Y/%m/%d %H:%M", &format!("{} {}", date.trim(), time.trim()))
}

/// `March-15-2024`.
pub(super) fn beam(text: &str) -> Option<u64> {
    let date = Date::strptime("%B-%d-%Y", text.trim()).ok()?;
    milliseconds(date.at(0, 0, 0, 0))
}

fn date_time(format: &str, text: &str) -> Option<u64> {
    milliseconds(DateTime::strptime(format, text).ok()?)
}

fn milliseconds(time: DateTime) -> Option<u64> {
    let moment = Offset::UTC.to_timestamp(time).ok()?;
    u64::try_from(moment.as_millisecond()).ok()
}
