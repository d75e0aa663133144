//! A session as an actor: a task owns the session, receives commands, and publishes events.
//!
//! The task runs one turn or compaction at a time. It reads commands meanwhile, so that a stop or an answer always
//! arrives. Front ends communicate with it only through commands, events and queries of its state.

mod actor;
#[cfg(test)]
mod attack;
#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod calls_tests;
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
#[cfg(test)]
mod warming_tests;

pub use handle::{SessionHandle, SessionRules};

use hermes_conversation::SessionId;

use crate::imported::AcceptedParts;

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// A new session, stored with its first message.
    New,
    /// A stored session. Of an imported session that waits for the user's decision, neither folder nor prompt is used.
    Resume(SessionId),
    /// An imported session that waits for the user's decision, with what the user accepts of it.
    Imported {
        /// Its id.
        session: SessionId,
        /// What the user accepts.
        accepted: AcceptedParts,
    },
    /// A new session that begins with all messages of another one.
    Branch(SessionId),
}
