//! What tests of several crates share.
//!
//! [`MemoryStore`] is a session store without a file, for tests that need a store but not its disk.
//! [`session_store_rules!`] generates the conformance suite of the port: one test per rule, for any adapter.

#![forbid(unsafe_code)]

mod memory;
pub mod rules;

pub use memory::MemoryStore;
