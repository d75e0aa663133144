//! Measures and compares context engines on recorded conversations, and memories on dialogues with labelled evidence.
//!
//! A recording is replayed open loop: before each of its replies a request is due, and an engine decides what the request
//! shows. The lab computes the cost of the request, the text that it leaves out, and whether a provider would accept it.
//! It computes them in the same way for every engine, as a pure function of its input: no clock, network or model.
//!
//! The crate is also the program `hermes-lab`, which `hermes lab` starts: [`start`] is its command line.

#![forbid(unsafe_code)]

mod arguments;
pub mod cache;
mod command;
pub mod context;
mod diagnosis;
pub mod engine;
mod error;
pub mod external;
pub mod faults;
pub mod figures;
pub mod pace;
pub mod plot;
pub mod prices;
pub mod recall;
pub mod replay;
pub mod report;
pub mod terms;
pub mod tools;
pub mod trace;
pub mod week;

pub use arguments::start;
pub use context::{Block, Context, Publication};
pub use diagnosis::codes;
pub use engine::{Contestant, Engine};
pub use error::LabError;
pub use figures::Figures;
pub use hermes_engine_trials::{FaultMode, Prices, StandIn, Terms};
pub use hermes_recordings::Recording;
pub use replay::{Column, ColumnError, Due};
pub use report::Report;
