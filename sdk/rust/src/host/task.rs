//! The state of the current call.

use crate::imports::task as wit;

/// Whether the user stopped waiting for the call.
pub fn cancelled() -> bool {
    wit::cancelled()
}

/// Milliseconds until the deadline.
pub fn time_left() -> u32 {
    wit::time_left()
}

/// Shows one line to the user during a long call.
pub fn progress(text: &str) {
    wit::progress(text);
}
