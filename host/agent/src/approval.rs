//! The gate: what plugins do only with the user's leave.
//!
//! A tool that is marked dangerous, a call that a hook wants approved and every program that a plugin runs pass through
//! here. The configuration is asked first, then what the user said before, then the user: one question
//! after the other, and only where somebody is there to answer. Whatever goes wrong on the way is a no.

mod gate;
mod kept;
pub(crate) mod question;
mod right;
mod rules;
#[cfg(test)]
mod tests;

pub use gate::Approvals;
pub(crate) use gate::{Gate, PluginGate};
pub use kept::{Kept, KeptApproval, KeptError};
pub use question::{Approver, Decision, Objection, Question, Subject};
pub use rules::{ApprovalRules, RuleError};
