//! Finds plugins, reads their manifests, and hands the agent the five kinds.
//!
//! Plugins come from two places only: the set inside the binary and `$HERMES_HOME/plugins`. What one is, is read off
//! its exports; whether it runs is the user's choice ([`Selection`]); what it may reach is what its
//! manifest asks for. The agent sees [`kinds`] and nothing of how they are run.

#![forbid(unsafe_code)]

mod catalog;
mod component;
mod error;
mod generations;
pub mod kinds;
mod manifest;
mod rehearsal;
mod reload;
mod session;
mod storage;

pub use catalog::{Bundled, Catalog, Found, HELD, Origin, Problem, SLOTS};
pub use error::PluginsError;
pub use hermes_runtime::services;
pub use hermes_runtime::{
    Advice, AssistDraft, CacheState, CallError, CalledTool, Cause, Effect, Event, Exports, Fault, FaultKind,
    Invocation, Limits, Moment, Outcome, Output, Place, PlanRequest, Pressure, Progress, Query, Quote, Recollection,
    SessionInfo, Skill, SkillDocument, Start, Timing, Tool, ToolDone, ToolEvent, ToolResult, TurnRecord, Verdict,
    model_answered,
};
pub use kinds::{ContextAssist, ContextEngine, Hooks, MemoryEvents, MemoryProvider, Skills, Tools};
pub use manifest::{Access, Manifest, ManifestError, Permissions, Root};
pub use reload::{Change, Generations, Nursery, Taken};
pub use session::{Compiling, Plugins, Reporters, Selection, SessionPlugins, Surroundings};
pub use storage::{Memory, Storage};
