//! The laboratory for context engines: recorded conversations, replayed, measured and compared.
//!
//! A recording is replayed open loop: before each reply that it holds a request is due, and an engine says what that
//! request shows. What it costs, what it leaves out and whether a provider would take it is worked out here, the same way
//! for every engine and as a pure function of what goes in: no clock, no network and no model has a part in it.

#![forbid(unsafe_code)]

pub mod cache;
pub mod context;
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
pub mod replay;
pub mod report;
pub mod session;
pub mod summariser;
pub mod terms;
pub mod verify;

pub use context::{Block, Context, Publication};
pub use engine::{Contestant, Engine};
pub use error::LabError;
pub use figures::Figures;
pub use prices::Prices;
pub use replay::{Column, ColumnError, Due};
pub use report::Report;
pub use session::Recording;
pub use summariser::{StandIn, Temper};
pub use terms::Terms;
