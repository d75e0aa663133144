//! The agent loop: a session from commands to events, through tools, memory and the context engine.
//!
//! A [`SessionHandle`] drives a session: commands go in, events come out. The loop knows plugins only as the traits of
//! their kinds, models only as [`hermes_models::Provider`], and stores every message before it takes the next step. It prints nothing
//! and asks nobody directly: a question is an event that a command answers.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod answer;
pub mod approval;
pub mod assist;
mod auxiliary;
mod breaker;
mod checkpoints;
mod clarify;
mod clash;
mod clock;
mod command;
pub mod compaction;
mod context;
mod crowding;
mod delegation;
mod delivery;
mod diagnosis;
mod embedding;
mod ephemeral;
mod error;
mod event;
mod feed;
mod fold;
mod freezing;
mod front;
mod hook_dispatcher;
mod host;
mod host_source;
mod id;
mod imported;
#[doc(hidden)]
pub mod invariants;
mod journal;
mod kept_results;
mod learned;
mod live;
mod log_file;
mod mcp;
mod memory;
mod memory_extras;
mod offer;
mod opening;
mod openings;
mod outgoing;
mod plugin_set;
mod problem;
mod project_files;
mod query;
mod questions;
mod rebuild;
mod recall;
mod reload;
mod report;
mod room;
mod screening;
mod serving;
mod session;
pub mod session_search;
mod sessions;
mod shelf;
mod shell_hooks;
mod skills;
mod snapshot;
mod steering;
mod stop;
mod thinking;
mod toolbox;
mod turn;
mod untrusted;
mod warming;
mod without_tool;

pub use approval::Approvals;
pub use auxiliary::{AuxiliaryModels, Candidate, TaskModels};
pub use breaker::OpenBreaker;
pub use checkpoints::CheckpointSettings;
pub use clock::Clock;
pub use command::{Accepted, Command, CommandError};
pub use compaction::{Compression, Outlook};
pub use context::{Context, Faults, Step, Working};
pub use delegation::{DelegationSettings, TaskStatus};
pub use diagnosis::codes;
pub use embedding::EmbeddingSource;
pub use ephemeral::Ephemeral;
pub use error::AgentError;
pub use event::{CompressionEnd, Event, EventKind, Status, TurnEnd};
pub use feed::{Feed, FeedLimits, Subscription};
pub use hermes_session_store::DelegationState;
pub use host::{Host, PromptSettings, SearchSettings, Settings};
pub use host_source::{Choice, HostSource};
pub use id::{CallId, Epoch, Position, QuestionId, TurnNumber};
pub use imported::{AcceptedParts, suspicions};

pub use clash::{Owners, clash};
pub use kept_results::remove_kept_results;
pub use learned::LearnedWindow;
pub use log_file::older_log;
pub use mcp::{SERVER_VERSION, Weight, weight};
pub use memory::budget as recall_budget;
pub use offer::{Consent, Offer, OfferedServer, OfferedTool};
pub use opening::Opening;
pub use openings::{Openings, openings};
pub use plugin_set::PluginSet;
pub use problem::Problem;
pub use query::{Query, QuestionEnd};
pub use questions::Attendance;
pub use serving::{ModelChain, ModelRests, ServedModel};
pub use session::{Begin, SessionHandle, SessionRules};
pub use sessions::{OpenNumber, Sessions};
pub use shelf::{Room, ShelfSettings, ToolIndex};
pub use shell_hooks::{HookEntry, HookError, HookFlaw, SHELL_HOOKS, ShellHook};
pub use skills::{InapplicableSkill, OfferedSkill, SkillCommands, SkillGuard, SkillSettings, SkillText, filled_skill};
pub use snapshot::{CountedReply, OpenQuestion, RunningCall, Snapshot};
pub use toolbox::{own_tools, unusable};
pub use warming::WARMING;
