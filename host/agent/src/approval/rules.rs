//! `approvals.allow` and `approvals.deny`: rules that decide without a question.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::right::Right;
use crate::toolbox::{HOST, OwnTools};

/// The two lists. `approvals.deny` wins over `approvals.allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    allow: Vec<Entry>,
    deny: Vec<Entry>,
}

/// An entry that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{list}` has the entry `{entry}`, which is not a rule")]
pub struct RuleError {
    list: &'static str,
    entry: String,
}

/// An entry of `approvals.deny` that forbids nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`approvals.deny` has the entry `{entry}`, and there is no such tool or program")]
pub struct UnknownRule {
    /// The entry.
    pub entry: String,
    /// The most similar entry that would forbid something.
    pub nearest: Option<String>,
}

impl UnknownRule {
    /// The error for an entry, with what exists.
    pub fn new(entry: String, known: impl Iterator<Item = String>) -> Self {
        /// Below this a suggestion confuses more than it helps.
        const SIMILAR: f64 = 0.6;
        let alike = known.map(|known| (strsim::normalized_damerau_levenshtein(&entry, &known), known));
        let nearest = alike.filter(|(alike, _)| *alike >= SIMILAR).max_by(|(one, _), (other, _)| one.total_cmp(other));
        Self { entry, nearest: nearest.map(|(_, known)| known) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    plugin: String,
    /// `None` covers everything that the plugin does.
    what: Option<String>,
}

impl ApprovalRules {
    /// Parses the entries of the configuration.
    pub fn parse(allow: &[String], deny: &[String]) -> Result<Self, RuleError> {
        let list = |name: &'static str, entries: &[String]| {
            let read = |entry: &String| entry.parse().map_err(|()| RuleError { list: name, entry: entry.clone() });
            entries.iter().map(read).collect::<Result<Vec<Entry>, RuleError>>()
        };
        Ok(Self { allow: list("approvals.allow", allow)?, deny: list("approvals.deny", deny)? })
    }

    /// Finds the entry of `approvals.deny` that covers an action: a tool's name, `process:PROGRAM`, `variables:PROGRAM`
    /// or `files:PATTERN`.
    pub fn forbids(&self, plugin: &str, what: &str) -> Option<String> {
        let is_about = |entry: &&Entry| entry.is_about(plugin, what);
        self.deny.iter().find(is_about).map(Entry::written)
    }

    /// The entries of `approvals.deny`: a plugin, and an action unless the entry covers everything.
    pub fn denied(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.deny.iter().map(|entry| (entry.plugin.as_str(), entry.what.as_deref()))
    }

    /// The first entry of `approvals.deny` that names no tool of a plugin whose tools are known: one of `catalogs`, of `hooks`, which
    /// can ask about any tool, or Hermes itself. Such an entry forbids nothing, which its author does not expect.
    pub fn unknown_tool(
        &self,
        catalogs: &BTreeMap<String, Vec<String>>,
        hooks: impl Iterator<Item = String>,
    ) -> Option<UnknownRule> {
        let mut tools = catalogs.clone();
        tools.insert(HOST.to_owned(), OwnTools::NAMES.map(str::to_owned).to_vec());
        let every: Vec<String> = tools.values().flatten().cloned().collect();
        tools.extend(hooks.map(|hook| (hook, every.clone())));
        let entry = self.deny.iter().find(|entry| {
            let (Some(what), Some(known)) = (&entry.what, tools.get(&entry.plugin)) else { return false };
            !what.contains(':') && !known.contains(what)
        })?;
        let known = tools.iter().flat_map(|(plugin, tools)| tools.iter().map(move |tool| format!("{plugin}/{tool}")));
        Some(UnknownRule::new(entry.written(), known))
    }

    pub(super) fn allows(&self, right: &Right) -> bool {
        self.allow.iter().any(|entry| entry.covers(right)) && self.denies(right).is_none()
    }

    /// Finds the entry that denies a right.
    pub(super) fn denies(&self, right: &Right) -> Option<String> {
        self.forbids(&right.plugin.name, &right.what)
    }
}

impl Entry {
    fn covers(&self, right: &Right) -> bool {
        self.is_about(&right.plugin.name, &right.what)
    }

    fn is_about(&self, plugin: &str, what: &str) -> bool {
        self.plugin == plugin && self.what.as_ref().is_none_or(|own| own == what)
    }

    fn written(&self) -> String {
        self.what.as_ref().map_or_else(|| self.plugin.clone(), |what| format!("{}/{what}", self.plugin))
    }
}

impl FromStr for Entry {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let (plugin, what) = match text.split_once('/') {
            Some((plugin, what)) => (plugin, Some(what)),
            None => (text, None),
        };
        let plain = |name: &str, more: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let is_valid = match what {
            None => true,
            Some(what) => match ["process:", "variables:", "files:"].iter().find_map(|kind| what.strip_prefix(kind)) {
                Some(named) => !named.is_empty(),
                None => plain(what, "-_"),
            },
        };
        if !is_valid || !plain(plugin, "-_") {
            return Err(());
        }
        Ok(Self { plugin: plugin.to_owned(), what: what.map(str::to_owned) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::right;
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> ApprovalRules {
        let list = |entries: &[&str]| entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>();
        ApprovalRules::parse(&list(allow), &list(deny)).unwrap()
    }

    #[test]
    fn an_entry_covers_only_what_it_names() {
        for (entry, covered) in [
            ("runner", [true, true, true, false]),
            ("runner/process:git", [true, false, false, false]),
            ("runner/variables:git", [false; 4]),
            ("runner/process:/usr/bin/git", [false, true, false, false]),
            ("runner/wipe", [false, false, true, false]),
            ("run", [false; 4]),
            ("runner/process:gi", [false; 4]),
            ("Runner/wipe", [false; 4]),
        ] {
            let rules = rules(&[entry], &[]);
            let rights = [
                right("runner", "process:git"),
                right("runner", "process:/usr/bin/git"),
                right("runner", "wipe"),
                right("other", "wipe"),
            ];
            assert_eq!(rights.map(|right| rules.allows(&right)), covered, "{entry}");
        }
    }

    #[test]
    fn deny_wins_over_a_more_specific_allow() {
        for (allow, deny) in [("runner", "runner/wipe"), ("runner/wipe", "runner"), ("runner/wipe", "runner/wipe")] {
            let rules = rules(&[allow], &[deny]);
            assert!(!rules.allows(&right("runner", "wipe")));
            assert_eq!(rules.denies(&right("runner", "wipe")).as_deref(), Some(deny));
        }
        assert!(rules(&["runner"], &["runner/wipe"]).allows(&right("runner", "process:git")));
    }

    #[test]
    fn the_error_of_an_invalid_entry_quotes_the_entry() {
        for entry in [
            "",
            "*",
            "runner/",
            "/wipe",
            "runner/*",
            "process:git",
            "runner/process:",
            "runner/variables:",
            "a b",
            "runner/a/b",
        ] {
            let error = ApprovalRules::parse(&[], &[entry.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("approvals.deny") && error.contains(&format!("`{entry}`")), "{error}");
        }
    }
}
