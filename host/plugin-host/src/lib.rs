//! Finds plugins, reads their manifests, and hands the agent the traits of their kinds.
//!
//! Plugins come from two places only: the binary and `$HERMES_HOME/plugins`. A plugin's exports determine its kinds. The user
//! chooses which plugins run ([`Selection`]), and grants some of the permissions that a manifest requests ([`Lock`]).
//! The sessions of a process get their plugins from a [`PluginHost`]. The agent sees the traits in [`kinds`], and not how a
//! plugin is run.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod addresses;
mod allowance;
pub mod artifact;
mod catalog;
mod change;
mod chosen;
mod component;
mod declared;
mod developed;
mod diagnosis;
pub mod digest;
mod embedding;
mod error;
mod expansion;
mod fingerprint;
mod flood;
mod generations;
mod host;
mod identity;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod invariants;
pub mod kinds;
mod language;
mod lock;
mod manifest;
mod origin;
mod permission;
pub mod record;
pub mod rehearsal;
mod reload;
mod seal;
mod selected;
mod selection;
mod session;
mod settings;
mod storage;
mod supervision;
mod surroundings;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing;
pub mod toolchain;
mod trial;
mod ungranted;
mod variables;
mod watch;
mod web;
pub mod yaml;

pub use addresses::ClosedAddress;
pub use allowance::budgeted;
pub use catalog::{
    Bundled, Catalog, Code, CodeFiles, Found, GrantStatus, HELD, MANIFEST, Origin, Problem, SKILLS, SLOTS, code_in,
    manifest_in, skill_reader, skills_in,
};
pub use change::Change;
pub use chosen::{Compiling, QUIETLY};
pub use declared::{Declared, Missing, OfferedTools, SkillSetting, SkillVariable};
pub use developed::{Developed, USED_AS, UsedAs, developed};
pub use diagnosis::{codes, correct_section};
pub use digest::Digest;
pub use error::PluginsError;
pub use expansion::expand;
pub use flood::WHOLE_TEXT;
pub use hermes_runtime::services;
pub use hermes_runtime::{
    Advice, AssistDraft, CacheState, CallError, CallPreview, CalledTool, Cause, Effect, Event, Exports, Fault,
    FaultKind, Image, Invocation, Limit, LimitSet, Limits, LoadError, MemoryAction, MemoryWrite, Moment, OfferedSchema,
    Outcome, Outlook, Output, Peer, Place, PlanRequest, Pressure, Progress, Query, Quote, Recollection, SessionInfo,
    Skill, SkillDocument, Start, Timing, Tool, ToolDone, ToolEvent, ToolResult, TurnRecord, Verdict, model_answered,
};
pub use host::PluginHost;
pub use identity::Identity;
pub use kinds::{
    ContextAssist, ContextEngine, Embedder, Hooks, MemoryEvents, MemoryMirror, MemoryPrefetch, MemoryProvider,
    MemoryRewind, MemoryUpkeep, Skills, ToolPreview, Tools,
};
pub use language::{Language, Words};
pub use lock::{Entry, Lock, LockError, Pin};
pub use manifest::{Manifest, ManifestError, RequiredVariable, Wrong, is_plugin_name, json_schema};
pub use origin::{PluginOrigin, divide_address};
pub use permission::{
    Access, Address, EnvironmentName, Http, Llm, Permissions, Program, Resolved, Right, Root, Secret, Template,
};
pub use reload::{Generations, Taken};
pub use selected::{IdleHooks, results_folder, session_results};
pub use selection::{Contradiction, Selection};
pub use session::{MemoryExtras, Plugins, Serving, SessionPlugins};
pub use settings::{OnFailure, PluginSettings, PreferredSource};
pub use storage::{Memory, Storage};
pub use supervision::Halt;
pub use surroundings::{Approvals, Reporters, Surroundings};
pub use trial::{SkillReport, Trial, skill_report, try_out};
pub use ungranted::Ungranted;
pub use variables::{Unexpanded, Variables, WhyUnexpanded};
pub use web::{scripted_web, stand_in, web_without_secrets};
