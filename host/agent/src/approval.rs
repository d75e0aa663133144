//! Approvals: actions of plugins that need the user's permission.
//!
//! The gate checks every call of a dangerous tool, every call that a hook objects to, every program that a plugin
//! runs, and changes of files that start programs or were not read. The configuration decides first, then earlier answers, then the user. The user gets one question at a time: an
//! event asks it, and a command answers it. Any failure on the way denies the call.

mod beside;
mod code;
mod command;
mod gate;
mod kept;
mod line;
mod mode;
mod pattern;
pub(crate) mod question;
mod right;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use code::is_known as is_interpreter;
pub use gate::Approvals;
pub(crate) use gate::{Gate, PluginGate, SessionRights, is_of_plan};
pub use hermes_capabilities::files::{Listed, PatternError};
pub use kept::{Kept, KeptApproval, KeptError};
pub(crate) use mode::SessionMode;
pub use mode::{Mode, NoMode};
pub use question::{Decision, FileChange, FileDeed, Objection, ProgramRun, Question, SamplingRequest, Subject};
pub use rules::{ApprovalRules, Rule, RuleError, RuleLists, UnknownRule};
