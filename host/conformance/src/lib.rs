//! Tests a plugin against the contract of its kinds, in the real runtime.
//!
//! The plugin runs as in a session, in a test environment: a rule-based model, a fixed clock, storage in memory and
//! generated conversations. The result is a list of named checks; a failed check gives the reason and a fix. Nothing
//! outside of a temporary folder is read or written.

#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod conversation;
mod diagnosis;
mod engine;
mod error;
mod exam;
mod fixtures;
mod hooks;
mod lifecycle;
mod memory;
mod plans;
mod report;
mod rights;
mod schema;
mod skills;
mod subject;
mod tools;

pub use diagnosis::codes;
pub use error::ConformanceError;
pub use exam::{Settings, examine};
pub use report::{Calls, Check, Report};
pub use subject::Subject;
