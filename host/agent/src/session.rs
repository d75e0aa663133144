//! A session as an actor: a task owns the session, receives commands, and publishes events.
//!
//! The task runs one turn or compaction at a time. It reads commands meanwhile, so that a stop or an answer always
//! arrives. Front ends communicate with it only through commands, events and queries of its state.

mod actor;
#[cfg(test)]
mod contract_tests;
mod core;
#[cfg(test)]
mod delivery_tests;
mod handle;
#[cfg(test)]
mod rewind_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use handle::{SessionHandle, SessionRules};

use hermes_conversation::SessionId;

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// A new session, stored with its first message.
    New,
    /// A stored session.
    Resume(SessionId),
    /// A new session that begins with all messages of another one.
    Branch(SessionId),
}
