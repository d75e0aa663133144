//! What is done to get a reply.

use std::time::Duration;

use crate::failure::wait;

/// How often a request is sent if the server says that it may succeed later.
const TRIES: u32 = 3;
/// The longest wait before another try, for callers that have another model.
const BRIEF_WAIT: Duration = Duration::from_secs(10);

/// What is done to get a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// One try, for callers that retry themselves.
    Once,
    /// Three tries, with no wait longer than ten seconds, for callers that have another model.
    Brief,
    /// Three tries with the waits that the server asks for, for callers whose own caller goes on.
    Usual,
    /// Three tries with the waits that the server asks for, then more for [`Waits::keep_trying`](crate::Waits).
    Full,
}

impl Persistence {
    /// How often a request is sent at least, if its failures may pass.
    pub(super) fn tries(self) -> u32 {
        if self == Persistence::Once { 1 } else { TRIES }
    }

    /// The longest wait that a server may ask for.
    pub(super) fn longest_wait(self) -> Duration {
        match self {
            Self::Once | Self::Brief => BRIEF_WAIT,
            Self::Usual | Self::Full => wait::LONGEST_ASKED,
        }
    }
}
