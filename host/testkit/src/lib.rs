//! Shared fixtures of tests in several crates, and parts of the checks for plugin authors: `hermes lab` and `hermes plugins
//! test`.
//!
//! [`session_store_rules!`] generates the conformance suite of the port: one test per rule, for any adapter.
//! [`MemoryHistory`] is a conversation as plugins read it, and [`StandIn`] writes summaries in place of a model.

#![forbid(unsafe_code)]

mod history;
pub mod rules;
mod summariser;

pub use history::{MemoryHistory, Search, SharedConversation, WordSearch};
pub use summariser::{FaultMode, LATENCY_MS, StandIn, Written};
