//! Runs plugins: compiles a component once, gives each instance its own task, and enforces deadlines on calls.
//!
//! The crate knows wasmtime and nothing of agents. The services that imports need from the rest of the host are traits in
//! [`services`], passed in by the caller; access to files, databases, the web and programs is `hermes-capabilities`. No
//! call can hang or take the process down: a trap, a missed deadline or a cancelled call ends the instance, and the next
//! call gets a new one.

#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod adapter;
mod calls;
mod code_cache;
pub mod compiler;
mod component;
mod context;
mod contract;
mod convert;
mod crash;
mod engine;
mod error;
pub mod executor;
mod exports;
mod fingerprint;
mod functions;
mod generations;
mod heap;
mod imports;
#[cfg(test)]
mod imports_tests;
mod instance;
mod interfaces;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod invariants;
mod limits;
mod live;
mod loaded;
mod native;
mod packed;
pub mod precompiled;
mod processor_time;
mod runtime;
pub mod services;
mod size;
mod slots;
mod stamp;
mod stubs;
mod tally;
mod types;
mod wasi;

pub use calls::TIME_LIMIT;
pub use code_cache::CodeFolder;
pub use compiler::{Compiler, CompilerProcess, Manner, Progress as CompileProgress};
pub use contract::{CONTRACT, LaterVersions, served_contracts};
pub use convert::model_answered;
pub use crash::Crash;
pub use engine::TARGET;
pub use error::{CallError, Cause, Fault, FaultKind, LoadError};
pub use exports::Exports;
pub use functions::FunctionFiles;
pub use heap::share_heap;
pub use instance::{Instance, Lanes, Recipe, SHAPE};
pub use limits::{Definition, LIMITS, Limit, LimitError, LimitSet, Limits, Tier, Unit, documentation};
pub use loaded::Loaded;
pub use native::{EXIT_UNFIT, TRY_LIBRARY, try_library};
pub use packed::Packed;
pub use runtime::Runtime;
pub use services::Services;
pub use slots::{CALLS_PER_SESSION, SessionCalls};
pub use stamp::{draft_interfaces, exported_interfaces};
pub use tally::{Figures, Tally};
pub use types::*;
