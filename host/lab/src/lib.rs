//! Measures and compares context engines on recorded conversations, and memories on dialogues with labelled evidence.
//!
//! A recording is replayed open loop: before each of its replies a request is due, and an engine decides what the request
//! shows. The lab computes the cost of the request, the text that it leaves out, and whether a provider would accept it.
//! It computes them in the same way for every engine, as a pure function of its input: no clock, network or model.

#![forbid(unsafe_code)]

pub mod cache;
pub mod context;
mod diagnosis;
pub mod engine;
mod error;
pub mod external;
pub mod faults;
pub mod figures;
pub mod generate;
pub mod needles;
pub mod pace;
mod passage;
pub mod plot;
pub mod prices;
pub mod recall;
pub mod replay;
pub mod report;
pub mod session;
pub mod sessions;
pub mod terms;
mod timing;
pub mod tools;
pub mod trace;
pub mod verify;
pub mod week;

pub use context::{Block, Context, Publication};
pub use diagnosis::codes;
pub use engine::{Contestant, Engine};
pub use error::LabError;
pub use figures::Figures;
pub use hermes_testkit::{FaultMode, StandIn};
pub use prices::Prices;
pub use replay::{Column, ColumnError, Due};
pub use report::Report;
pub use session::Recording;
pub use terms::Terms;
