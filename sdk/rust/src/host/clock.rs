//! The time.

use crate::Timestamp;
use crate::imports::clock as wit;

/// Unix time in milliseconds.
pub fn now() -> Timestamp {
    wit::now()
}

/// Current offset of the user's time zone, in minutes east of UTC.
pub fn utc_offset() -> i32 {
    wit::utc_offset()
}
