//! The agent loop: a turn from what a person types to the answer, through tools, memory and the context engine.
//!
//! The loop knows plugins only as the five kinds, models only as [`hermes_models::Provider`], and stores every
//! message before it takes the next step. It prints nothing: what happens goes to an [`Observer`].

#![forbid(unsafe_code)]

mod agent;
pub mod approval;
pub mod assist;
mod auxiliary;
mod clock;
pub mod compaction;
mod context;
mod ephemeral;
mod error;
mod event;
mod freezing;
mod host;
mod interrupt;
mod journal;
mod live;
mod log_file;
mod memory;
mod opening;
mod outgoing;
mod rebuild;
mod reload;
mod report;
mod room;
mod skills;
mod toolbox;
mod turn;
mod watchers;

pub use agent::{Agent, Begin, Openings, Status, openings};
pub use approval::{Approvals, Approver};
pub use auxiliary::{AuxiliaryModels, Candidate, TaskModels};
pub use clock::Clock;
pub use compaction::{Compression, Outlook};
pub use context::{Context, Faults, Step, Working};
pub use ephemeral::Ephemeral;
pub use error::AgentError;
pub use event::{Event, Observer};
pub use host::{Host, PromptSettings, Settings};
pub use interrupt::Interrupt;
pub use log_file::older_log;
pub use opening::Opening;
pub use toolbox::left_out;
pub use turn::TurnEnd;
