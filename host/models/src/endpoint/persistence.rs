//! What is done to get a reply.

use std::time::Duration;

use crate::failure::wait;

/// How often a request is sent if the server says that it may succeed later.
const TRIES: u32 = 3;
/// The longest wait before another try, for callers that have another model.
const BRIEF_WAIT: Duration = Duration::from_secs(10);

/// What is done to get a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// One try.
    Once,
    /// A few tries with short waits: the caller has another model.
    Brief,
    /// A few tries with the waits that the server asks for, then more for the time that the endpoint keeps trying.
    Full,
}

impl Persistence {
    /// How often a request is sent at least, if its failures may pass.
    pub(super) fn tries(self) -> u32 {
        if self == Persistence::Once { 1 } else { TRIES }
    }

    /// The longest wait that a server may ask for.
    pub(super) fn longest_wait(self) -> Duration {
        if self == Persistence::Full { wait::LONGEST_ASKED } else { BRIEF_WAIT }
    }
}
