//! Trials of a context engine: generated conversations and whole sessions in the host's own compaction, with simulated surroundings.
//!
//! The host's real code calls the engine, verifies its plans, decides what pays off and folds by rule. Only the surroundings are
//! simulated: the clock, the provider's cache and the model that writes summaries. So each result is a function of a seed. The
//! conformance tests hold a plugin to the result; the laboratory also compares what engines cost on recordings.

#![forbid(unsafe_code)]

pub mod bench;
mod finder;
mod gate;
pub mod generate;
pub mod log;
mod models;
pub mod needles;
pub mod passage;
mod prices;
pub mod recall;
pub mod sessions;
mod terms;
pub mod timing;
pub mod trace;
pub mod verify;
pub mod watch;

pub use hermes_testkit::{FaultMode, StandIn};
pub use prices::Prices;
pub use terms::Terms;
use tokio::runtime::Runtime;

/// A runtime with one thread, so that tasks run in a fixed order.
///
/// # Errors
///
/// When no thread can be started.
pub fn runtime() -> Result<Runtime, String> {
    hermes_runtime::executor::single().map_err(|error| format!("no thread can be started: {error}"))
}
