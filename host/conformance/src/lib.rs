//! Puts any plugin through the contract of its kinds, in the real runtime.
//!
//! The plugin runs as it would in a session, with everything around it made up: a model that answers by rule, a clock that
//! stands still, storage in memory, a conversation that never took place. What comes out is a list of named checks, each
//! with why it failed and how to put it right. Nothing outside of a temporary folder is read or written.

#![forbid(unsafe_code)]

mod arguments;
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
mod stand;
mod subject;
mod tools;

pub use diagnosis::codes;
pub use error::ConformanceError;
pub use exam::{Settings, examine};
pub use report::{Calls, Check, Report};
pub use subject::Subject;
