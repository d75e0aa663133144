//! Code generated from `wit/`: imports and shared types once, and a small world for each interface that a plugin can export.
//!
//! Separate worlds let a component export exactly the interfaces it implements: the linker merges the worlds whose export
//! macros are used.
//!
//! Every file beside this one is generated with the version of wit-bindgen that the SDK links, and git ignores it: `cargo xtask plugins`
//! writes it before it builds plugins. `hermes plugins new` copies the files, so a new plugin compiles neither the generator nor a parser
//! of the contract.
#![allow(missing_docs, unsafe_code, unreachable_pub, clippy::all, clippy::unwrap_used)]

#[rustfmt::skip]
mod contract;

#[rustfmt::skip]
pub mod context_assist;
#[rustfmt::skip]
pub mod context_engine;
#[rustfmt::skip]
pub mod embedder;
#[rustfmt::skip]
pub mod hooks;
#[rustfmt::skip]
pub mod lifecycle;
#[rustfmt::skip]
pub mod memory_events;
#[rustfmt::skip]
pub mod memory_mirror;
#[rustfmt::skip]
pub mod memory_prefetch;
#[rustfmt::skip]
pub mod memory_provider;
#[rustfmt::skip]
pub mod memory_rewind;
#[rustfmt::skip]
pub mod memory_upkeep;
#[rustfmt::skip]
pub mod skills;
#[rustfmt::skip]
pub mod tool_preview;
#[rustfmt::skip]
pub mod tools;

use contract::hermes;

/// The shared types, with the SDK's own error type.
pub mod types {
    pub use super::hermes::types::types::*;
    pub use crate::error::Error;
}

/// The imports, by interface.
pub mod imports {
    pub use super::hermes::embeddings::embeddings;
    pub use super::hermes::files::files;
    pub use super::hermes::history::history;
    pub use super::hermes::host::{clock, info, log, random, task};
    pub use super::hermes::http::http;
    pub use super::hermes::llm::{llm, llm_stream};
    pub use super::hermes::process::process;
    pub use super::hermes::storage::{documents, sql};
}
