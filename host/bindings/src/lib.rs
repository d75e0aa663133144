//! The host's side of the contract in `wit/`, generated.
//!
//! A crate of its own because the generated code is slow to compile and changes only when the contract does.
//! What a component exports is probed interface by interface through the `GuestIndices` of each
//! module under [`exports`]; the world `everything` itself is never instantiated.

#![forbid(unsafe_code)]
// Generated code carries the comments of the contract, where it has any.
#![allow(missing_docs, unreachable_pub, clippy::all)]

#[cfg(not(feature = "draft"))]
wasmtime::component::bindgen!({
    path: "../../wit/1.1.0",
    world: "everything",
    imports: { default: async },
    exports: { default: async },
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
});

#[cfg(feature = "draft")]
wasmtime::component::bindgen!({
    path: "../../tests/draft-1.2",
    world: "everything",
    imports: { default: async },
    exports: { default: async },
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
});

/// What plugins import, by interface.
pub mod imported {
    pub use super::hermes::embeddings::embeddings;
    pub use super::hermes::files::files;
    pub use super::hermes::history::history;
    pub use super::hermes::host::{clock, info, log, random, task};
    pub use super::hermes::http::http;
    pub use super::hermes::llm::{llm, llm_stream};
    #[cfg(feature = "draft")]
    pub use super::hermes::notes::notes;
    pub use super::hermes::process::process;
    pub use super::hermes::storage::{documents, sql};
    pub use super::hermes::types::types;
}

/// What plugins export, by interface.
pub mod exported {
    pub use super::exports::hermes::context_engine::{context_assist, context_engine};
    pub use super::exports::hermes::embeddings::embedder;
    pub use super::exports::hermes::hooks::hooks;
    pub use super::exports::hermes::lifecycle::lifecycle;
    pub use super::exports::hermes::memory::{
        memory_events, memory_mirror, memory_prefetch, memory_provider, memory_rewind, memory_upkeep,
    };
    pub use super::exports::hermes::skills::skills;
    pub use super::exports::hermes::tools::{tool_preview, tools};
}
