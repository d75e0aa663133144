//! What the call at hand may still do.

use crate::imports::task as wit;

/// The user no longer waits for it.
pub fn cancelled() -> bool {
    wit::cancelled()
}

/// Milliseconds until the deadline.
pub fn time_left() -> u32 {
    wit::time_left()
}

/// One line for the user while a call takes long.
pub fn progress(text: &str) {
    wit::progress(text);
}
