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
mod settings;
#[cfg(test)]
mod tests;
mod variable;

pub(crate) use code::is_known as is_interpreter;
pub(crate) use gate::{CallEffect, Gate, PluginGate, Refused, SessionRights};
pub use hermes_capabilities::files::{Listed, PatternError};
pub use kept::{Kept, KeptApproval, KeptError};
pub(crate) use mode::SessionMode;
pub use rules::{ApprovalRules, Rule, RuleError, RuleLists, UnknownRule};
pub use settings::Approvals;

/// Panics if a rule about one program covers a line that runs another one, too.
pub(crate) fn holds_for(text: &str) {
    use line::Line;

    let pattern = |text: &str| text.parse::<pattern::Pattern>().map_err(|()| text.to_owned());
    let (Ok(status), Ok(remove)) = (pattern("git status*"), pattern("rm*")) else { panic!("a pattern is not read") };
    let covers = |text: &str| Line::read(text).is_ok_and(|line| pattern::cover([&status].into_iter(), &line));
    if covers(text) {
        let line = Line::read(text).unwrap_or_else(|_| panic!("{text:?} is read in two ways"));
        let found = line.first_command(|command| remove.may_mean(command).then_some(()));
        assert!(matches!(found, (None, true)), "{text:?} may remove files");
    }
    // An escape takes one of the line breaks.
    for more in ["\n\nrm x", "\n\nrm x\n", "\n\nrm x #"] {
        assert!(!covers(&format!("{text}{more}")), "{text:?} hides the command behind it");
    }
    for before in ["rm x;", "rm x\n", "rm x|", "rm x &&", "(rm x);", "$(rm x);"] {
        assert!(!covers(&format!("{before}{text}")), "{text:?} hides the command before it");
    }
}
