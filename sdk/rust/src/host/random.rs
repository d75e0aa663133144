//! Randomness.

use crate::imports::random as wit;

/// Returns `count` random bytes.
pub fn bytes(count: u32) -> Vec<u8> {
    wit::bytes(count)
}
