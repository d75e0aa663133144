//! A session as an actor: a task that owns the session, commands in, events out.
//!
//! The task runs one turn or compaction at a time and reads its commands meanwhile, so that a stop or an answer always
//! arrives. Front ends share nothing with it but the commands, the events, and a few questions about its state.

mod actor;
mod core;
mod handle;
#[cfg(test)]
mod rewind_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use handle::{SessionHandle, SessionRules};

use hermes_conversation::SessionId;

/// Which session to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// A new one, stored when the first message is said.
    New,
    /// A stored one.
    Resume(SessionId),
    /// A new one that begins with everything that another one has said so far.
    Branch(SessionId),
}
