//! `approvals.allow` and `approvals.deny`: what needs no question.

use std::str::FromStr;

use super::right::Right;

/// The two lists. What is in both is denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    allow: Vec<Entry>,
    deny: Vec<Entry>,
}

/// Why an entry means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{list}` has the entry `{entry}`, which is not a rule")]
pub struct RuleError {
    list: &'static str,
    entry: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    plugin: String,
    /// None for everything.
    what: Option<String>,
}

impl ApprovalRules {
    /// Reads the lists as the configuration has them.
    pub fn parse(allow: &[String], deny: &[String]) -> Result<Self, RuleError> {
        let list = |name: &'static str, entries: &[String]| {
            let read = |entry: &String| entry.parse().map_err(|()| RuleError { list: name, entry: entry.clone() });
            entries.iter().map(read).collect::<Result<Vec<Entry>, RuleError>>()
        };
        Ok(Self { allow: list("approvals.allow", allow)?, deny: list("approvals.deny", deny)? })
    }

    /// The entry of `approvals.deny` that forbids a plugin this: the name of a tool, or `process:PROGRAM`.
    pub fn forbids(&self, plugin: &str, what: &str) -> Option<String> {
        let is_about = |entry: &&Entry| entry.is_about(plugin, what);
        self.deny.iter().find(is_about).map(Entry::written)
    }

    pub(super) fn allows(&self, right: &Right) -> bool {
        self.allow.iter().any(|entry| entry.covers(right)) && self.denies(right).is_none()
    }

    /// The entry that denies it.
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
        let meant = match what {
            None => true,
            Some(what) => match what.strip_prefix("process:") {
                Some(program) => !program.is_empty(),
                None => plain(what, "-_"),
            },
        };
        if !meant || !plain(plugin, "-_") {
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
    fn an_entry_covers_what_it_names_and_nothing_beside() {
        for (entry, covered) in [
            ("runner", [true, true, true, false]),
            ("runner/process:git", [true, false, false, false]),
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
    fn deny_wins_over_allow_however_precise() {
        for (allow, deny) in [("runner", "runner/wipe"), ("runner/wipe", "runner"), ("runner/wipe", "runner/wipe")] {
            let rules = rules(&[allow], &[deny]);
            assert!(!rules.allows(&right("runner", "wipe")));
            assert_eq!(rules.denies(&right("runner", "wipe")).as_deref(), Some(deny));
        }
        assert!(rules(&["runner"], &["runner/wipe"]).allows(&right("runner", "process:git")));
    }

    #[test]
    fn an_entry_that_means_nothing_is_refused_by_its_words() {
        for entry in ["", "*", "runner/", "/wipe", "runner/*", "process:git", "runner/process:", "a b", "runner/a/b"] {
            let error = ApprovalRules::parse(&[], &[entry.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("approvals.deny") && error.contains(&format!("`{entry}`")), "{error}");
        }
    }
}
