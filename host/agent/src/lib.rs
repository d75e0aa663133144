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
mod call_record;
mod chain;
mod checkpoints;
mod clarify;
mod clash;
mod clock;
pub mod compaction;
mod context;
mod cooldowns;
mod crowding;
mod delegation;
mod delivery;
mod diagnosis;
mod difference;
mod embedding;
mod ephemeral;
mod error;
mod feed;
mod freezing;
mod front;
mod hook_dispatcher;
mod host;
mod host_source;
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
mod offering;
mod one_command;
mod opening;
mod opening_comparison;
mod outgoing;
mod owner;
mod plugin_set;
mod project_files;
mod questions;
mod rebuild;
mod recall;
mod reload;
mod report;
mod room;
mod screening;
mod sender;
mod served;
mod serving;
mod session;
pub mod session_search;
mod sessions;
mod shelf;
mod shell_hooks;
mod skills;
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
pub use checkpoints::{CheckpointSettings, undo_report};
pub use clock::Clock;
pub use context::{Context, Faults, Step, Working};
pub use delegation::settings::DelegationSettings;
pub use diagnosis::codes;
pub use embedding::EmbeddingSource;
pub use ephemeral::Ephemeral;
pub use error::AgentError;
pub use feed::{Feed, FeedLimits, Subscription};
pub use host::{Host, PromptSettings, SearchSettings, Settings};
pub use host_source::{Choice, HostSource};
pub use imported::{AcceptedParts, suspicions};

pub use chain::ModelChain;
pub use clash::{Owners, clash};
pub use cooldowns::ModelCooldowns;
pub use kept_results::remove_kept_results;
pub use learned::LearnedWindow;
pub use log_file::older_log;
pub use mcp::{Weight, weight};
pub use memory::budget as recall_budget;
pub use offer::{Consent, Offer, OfferedServer, OfferedTool};
pub use one_command::{CommandEnd, CutOff};
pub use opening::Opening;
pub use opening_comparison::{OpeningComparison, compare_openings};
pub use outgoing::WARMING;
pub use plugin_set::PluginSet;
pub use questions::Attendance;
pub use served::ServedModel;
pub use session::{Begin, SessionHandle, SessionRules};
pub use sessions::{OpenNumber, Sessions};
pub use shelf::ToolIndex;
pub use shelf::settings::{Room, ShelfSettings};
pub use shell_hooks::{HookEntry, HookError, HookFlaw, SHELL_HOOKS, ShellHook};
pub use skills::{InapplicableSkill, OfferedSkill, SkillCommands, SkillGuard, SkillSettings, SkillText, filled_skill};
pub use toolbox::{own_tools, unusable};
