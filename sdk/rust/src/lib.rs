//! Write plugins for Hermes in Rust.
//!
//! A plugin is a type that implements [`Instance`] and the traits of its kinds: [`Tools`] (with [`ToolPreview`]), [`Skills`], [`Hooks`],
//! [`MemoryProvider`] (with [`MemoryEvents`], [`MemoryPrefetch`], [`MemoryMirror`], [`MemoryRewind`], [`MemoryUpkeep`]), [`ContextEngine`] (with [`ContextAssist`]), [`Embedder`]. [`export!`] makes it a component. A complete plugin:
//!
//! ```
//! use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
//! use hermes_plugin::{Error, Instance, Setup, Toolbox, Tools, arguments, config, random};
//! use serde_json::json;
//!
//! #[config]
//! struct Config {
//!     /// Sides of each die.
//!     #[serde(default = "six")]
//!     sides: u64,
//! }
//!
//! fn six() -> u64 {
//!     6
//! }
//!
//! struct Dice {
//!     config: Config,
//! }
//!
//! impl Instance for Dice {
//!     type Config = Config;
//!
//!     fn new(setup: Setup<Config>) -> Result<Self, Error> {
//!         Ok(Self { config: setup.config })
//!     }
//! }
//!
//! /// Roll dice.
//! #[arguments]
//! struct Roll {
//!     /// How many dice, from 1 to 100; one by default.
//!     count: Option<u32>,
//! }
//!
//! impl Dice {
//!     fn tools() -> Toolbox<Self> {
//!         Toolbox::new("games").tool("roll", Self::roll).effect(Effect::Reads).parallel(true)
//!     }
//!
//!     fn roll(&mut self, arguments: Roll) -> Result<Output, Error> {
//!         let count @ 1..=100 = arguments.count.unwrap_or(1) else {
//!             return Err(Error::invalid("count must be a number from 1 to 100"));
//!         };
//!         let rolled: Vec<_> = random::bytes(count).iter().map(|byte| u64::from(*byte) % self.config.sides + 1).collect();
//!         Ok(Output::text(json!({ "rolled": rolled }).to_string()))
//!     }
//! }
//!
//! impl Tools for Dice {
//!     fn catalog(&self) -> Result<Vec<Tool>, Error> {
//!         Ok(Self::tools().catalog())
//!     }
//!
//!     fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
//!         Self::tools().call(self, invocation)
//!     }
//! }
//!
//! hermes_plugin::export!(Dice: Tools);
//! ```
//!
//! Set `crate-type = ["cdylib"]` in `Cargo.toml`; `cargo build --target wasm32-wasip2` then builds the component. A
//! `plugin.yaml` beside it names the component and requests the permissions that its imports need.
//!
//! With the feature `native` and another target, the same source builds a native library: see `docs/plugins/native.md`.
//!
//! The imports are the modules [`info`], [`log`], [`task`], [`clock`], [`random`], [`llm`], [`embeddings`],
//! [`history`], [`sql`], [`documents`], [`files`], [`http`] and [`process`]. None of them traps: a function that can fail returns a [`Result`].
//! In `cargo test`, the host of the module `testing` answers them. A panic ends the instance; the user sees its message, and the next
//! call gets a new instance.

// The attributes `arguments` and `config` refer to the crate by the name that users see.
#[cfg(test)]
extern crate self as hermes_plugin;

#[doc(hidden)]
pub mod bindings;
pub mod context_assist;
pub mod context_engine;
pub mod embedder;
mod error;
mod export;
pub mod hooks;
mod host;
#[cfg(not(target_family = "wasm"))]
mod imports;
pub mod lifecycle;
pub mod memory_extras;
pub mod memory_provider;
#[cfg(all(feature = "native", not(target_family = "wasm")))]
#[doc(hidden)]
pub mod native;
pub mod skills;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod toolbox;
pub mod tools;

#[cfg(target_family = "wasm")]
use bindings::imports;

pub use bindings::types::{
    Blob, Extra, Header, Media, MediaSource, Message, MessageId, MessageRange, Model, Part, Peer, Progress,
    ProviderItem, ReasoningPart, ResultPart, Role, Session, Timestamp, ToolCall, ToolResultPart, ToolSchema, Usage,
};
pub use context_assist::ContextAssist;
pub use context_engine::ContextEngine;
pub use embedder::Embedder;
pub use error::{Error, ErrorKind};
pub use export::CONTRACT;
pub use hermes_plugin_derive::{arguments, config};
pub use hooks::Hooks;
pub use host::{clock, documents, embeddings, files, history, http, info, llm, log, process, random, sql, task};
pub use lifecycle::{Ending, Instance, NoConfig, Plugin, Setup, Start};
pub use memory_extras::{MemoryEvents, MemoryMirror, MemoryPrefetch, MemoryRewind, MemoryUpkeep};
pub use memory_provider::MemoryProvider;
pub use skills::Skills;
pub use toolbox::Toolbox;
pub use tools::{CallPreview, ToolPreview, Tools};

#[doc(hidden)]
pub mod __private {
    pub use crate::bindings;
    pub use crate::export::{STAMP, Slot, stamp};
    pub use crate::lifecycle::Prepared;
    #[cfg(all(feature = "native", not(target_family = "wasm")))]
    pub use crate::native;
    #[cfg(all(feature = "native", not(target_family = "wasm")))]
    pub use hermes_plugin_abi as abi;
    pub use {schemars, serde};
}

impl Header {
    /// The header of an empty message in the first turn, for tests.
    pub fn new(id: MessageId, role: Role) -> Self {
        Self {
            id,
            role,
            turn: 1,
            group: id,
            tool_name: None,
            tokens: 0,
            bytes: 0,
            images: 0,
            created_at: 0,
            extra: Extra::new(),
        }
    }
}

impl Message {
    /// A message of text, for tests.
    pub fn new(id: MessageId, role: Role, content: impl Into<String>) -> Self {
        Self {
            id,
            role,
            content: content.into(),
            images: 0,
            author: None,
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            tokens: 0,
            created_at: 0,
            extra: Extra::new(),
        }
    }

    /// Whether the message has parts other than text, reasoning and calls; [`history::parts`] returns them.
    pub fn has_parts(&self) -> bool {
        self.extra.iter().any(|(key, _)| key == "parts")
    }
}

impl MessageRange {
    /// The range between two ids, both included.
    pub fn new(first: MessageId, last: MessageId) -> Self {
        Self { first, last }
    }

    /// The range of a single message.
    pub fn one(id: MessageId) -> Self {
        Self::new(id, id)
    }

    /// Whether the range contains the id.
    pub fn contains(&self, id: MessageId) -> bool {
        (self.first..=self.last).contains(&id)
    }
}
