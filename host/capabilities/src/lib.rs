//! The capabilities that a plugin may be granted: files, documents, a database, the web and programs.
//!
//! Each module is one capability. It receives its grant when it is built, enforces that grant and its limits on every
//! call, and returns errors as [`Fault`], the error of the contract. This crate knows neither wasmtime nor the generated
//! bindings: `hermes-runtime` adapts it to the imports of `wit/`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod approval;
pub mod changes;
pub mod documents;
mod fault;
pub mod files;
pub mod http;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod invariants;
pub mod process;
pub mod sql;

pub use fault::{Fault, FaultKind};
