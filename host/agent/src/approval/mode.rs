//! The mode of a session: what the user wants to be asked about.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hermes_capabilities::files::EveryChange;
use hermes_capabilities::process::{self, Offer, SandboxMode};
use hermes_protocol::Mode;

use super::right::EDIT;
use super::settings::Approvals;

/// The mode of a session. Clones share it, and it outlives the plugins' instances.
#[derive(Debug, Clone)]
pub(crate) struct SessionMode {
    mode: Arc<AtomicU8>,
    every_change: EveryChange,
    /// Whether ordinary changes are asked about in the mode `ask`: without a user, nothing would change.
    can_ask: bool,
    /// Whether a rule is about ordinary changes.
    has_rule: bool,
    sandbox: SandboxMode,
}

impl SessionMode {
    pub(crate) fn new(approvals: &Approvals, sandbox: SandboxMode) -> Self {
        let every_change = EveryChange::default();
        let has_rule = approvals.rules.all().any(|rule| {
            rule.what().is_some_and(|what| what.strip_prefix("files:") == Some(EDIT)) || rule.is_all_but_allowed()
        });
        let session = Self { mode: Arc::default(), every_change, can_ask: approvals.can_ask, has_rule, sandbox };
        session.set(approvals.mode);
        session
    }

    pub(crate) fn get(&self) -> Mode {
        Mode::ALL.get(usize::from(self.mode.load(Ordering::Relaxed))).copied().unwrap_or_default()
    }

    pub(crate) fn set(&self, mode: Mode) {
        let at = Mode::ALL.iter().position(|known| *known == mode).unwrap_or_default();
        self.mode.store(u8::try_from(at).unwrap_or_default(), Ordering::Relaxed);
        self.every_change.set(self.has_rule || mode == Mode::Plan || (mode == Mode::Ask && self.can_ask));
    }

    /// Whether every change of a file in the workspace needs an approval.
    pub(crate) fn every_change(&self) -> &EveryChange {
        &self.every_change
    }

    /// Why the mode does less than it says.
    pub(crate) fn shortfall(&self) -> Option<String> {
        if self.get() != Mode::Auto {
            return None;
        }
        let why = match (self.sandbox, process::offer()) {
            (SandboxMode::Off, _) => "`sandbox.mode` is off in config.yaml".to_owned(),
            (_, Ok(Offer::Nothing(why))) => format!("this machine offers no sandbox: {why}"),
            (_, Ok(Offer::Confined(_))) => return None,
            // Each run tries again, and does not run if it cannot be confined.
            (_, Err(why)) => format!("Hermes could not find out whether this machine offers a sandbox: {why}"),
        };
        Some(format!("`auto` works as `accept-edits`, and programs need your approval: {why}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_through_all_modes_and_names_are_exact() {
        let mut mode = Mode::default();
        let seen = [(); 5].map(|()| {
            let now = mode;
            mode = mode.next();
            now.name()
        });
        assert_eq!(seen, ["ask", "accept-edits", "plan", "auto", "ask"]);
        assert_eq!("accept-edits".parse::<Mode>().unwrap(), Mode::AcceptEdits);
        assert!("Plan".parse::<Mode>().unwrap_err().to_string().contains("`Plan`"));
    }

    #[test]
    fn ordinary_changes_need_approval_only_where_the_mode_or_a_rule_says_so() {
        let needs = |mode, can_ask, deny: &[&str]| {
            let deny: Vec<String> = deny.iter().map(|&entry| entry.to_owned()).collect();
            let rules = super::super::RuleLists { deny: &deny, ..super::super::RuleLists::default() };
            let rules = super::super::ApprovalRules::parse(rules).unwrap();
            let approvals = Approvals { mode, can_ask, rules, ..Approvals::default() };
            SessionMode::new(&approvals, SandboxMode::Off).every_change().is_set()
        };
        for (mode, attended, unattended) in [
            (Mode::Ask, true, false),
            (Mode::AcceptEdits, false, false),
            (Mode::Plan, true, true),
            (Mode::Auto, false, false),
        ] {
            assert_eq!((needs(mode, true, &[]), needs(mode, false, &[])), (attended, unattended), "{mode}");
            assert!(needs(mode, false, &["files/files:edit"]) && needs(mode, false, &["files"]), "{mode}");
        }
    }
}
