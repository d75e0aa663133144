//! Tests a plugin against the contract of its kinds, in the real runtime.
//!
//! The plugin runs as in a session, in a test environment: a rule-based model, a fixed clock, storage in memory and
//! generated conversations. Instead of the network and of that model, files of fixtures may answer, within the plugin's grants
//! and with a stand-in for each secret. The result is a list of named checks; a failed check gives the reason and a fix. Nothing
//! outside of a temporary folder is read or written.

#![forbid(unsafe_code)]

mod arguments;
mod backend;
mod bench;
mod conversation;
mod diagnosis;
mod difference;
mod embedder;
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
mod script;
mod settings;
mod skills;
mod subject;
mod tools;

pub use diagnosis::codes;
pub use error::ConformanceError;
pub use exam::examine;
pub use report::{Calls, Check, Report};
pub use script::{FixtureUse, HttpFixtures, ModelFixtures, Unmatched};
pub use settings::Settings;
pub use subject::Subject;
