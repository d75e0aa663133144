//! The time.

use crate::Timestamp;
use crate::imports::clock as wit;

/// Unix time in milliseconds.
pub fn now() -> Timestamp {
    wit::now()
}

/// Of the user's time zone, now, in minutes east of UTC.
pub fn utc_offset() -> i32 {
    wit::utc_offset()
}
