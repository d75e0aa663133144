//! The agent loop: a turn from what a person types to the answer, through tools, memory and the context engine.
//!
//! The loop knows plugins only as the five kinds, models only as [`hermes_models::Provider`], and stores every
//! message before it takes the next step. It prints nothing: what happens goes to an [`Observer`].

#![forbid(unsafe_code)]

mod agent;
mod auxiliary;
mod compaction;
mod error;
mod event;
mod interrupt;
mod journal;
mod live;
mod memory;
mod report;
mod skills;
mod toolbox;
mod turn;
mod watchers;

pub use agent::{Agent, Begin, Host, Settings, Status, TurnEnd};
pub use error::AgentError;
pub use event::{Event, Observer};
pub use interrupt::Interrupt;
