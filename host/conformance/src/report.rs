//! The report of a test run, for people and programs.

use std::borrow::Cow;

use serde::Serialize;

use crate::script::FixtureUse;

/// The result of a test run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The plugin's name.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// The interfaces that it exports.
    pub kinds: Vec<&'static str>,
    /// The seed of the first generated conversation.
    pub seed: u64,
    /// The checks, in the order in which they ran.
    pub checks: Vec<Check>,
    /// Counts and durations of the calls, by function.
    pub calls: Vec<Calls>,
    /// The requests to the web; `None` for a plugin that requests none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<FixtureUse>,
    /// The requests to a scripted model; `None` without fixtures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<FixtureUse>,
    /// The memory that suffices for all calls; `None` if it was not measured.
    pub memory: Option<Memory>,
}

/// One requirement of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The group, such as `lifecycle` or `tools`.
    pub group: &'static str,
    /// The requirement, as a sentence without its subject.
    pub what: &'static str,
    /// Whether the plugin meets it.
    pub passed: bool,
    /// The reason of a failure, or a detail of a success.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// How to fix a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Cow<'static, str>>,
    /// The seed that reproduces a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// The calls of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// The name of the function.
    pub call: &'static str,
    /// How often it was called.
    pub count: u64,
    /// The median duration in microseconds.
    pub median_us: u64,
    /// The longest duration in microseconds.
    pub slowest_us: u64,
}

/// The memory need of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// The smallest power of two, in MiB, with which every call was answered.
    pub enough_mib: u64,
    /// The default limit in MiB.
    pub limit_mib: u64,
}

impl Report {
    /// Whether every check passed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }

    /// The failed checks.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }
}

/// The result of a check: a detail, or the reason of the failure.
pub(crate) type Verdict = Result<String, Fail>;

/// Why a check failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fail {
    pub(crate) why: String,
    pub(crate) seed: Option<u64>,
    /// Whether nothing else could be expected, because the plugin's backend is a stand-in that is always unavailable.
    pub(crate) is_excused: bool,
    /// How to fix it, if the reason tells more than the check.
    pub(crate) fix: Option<&'static str>,
}

impl Fail {
    pub(crate) fn excused(why: impl Into<String>) -> Self {
        Self { why: why.into(), seed: None, is_excused: true, fix: None }
    }

    pub(crate) fn of_seed(seed: u64, why: impl Into<String>) -> Self {
        Self { why: why.into(), seed: Some(seed), is_excused: false, fix: None }
    }
}

impl From<String> for Fail {
    fn from(why: String) -> Self {
        Self { why, seed: None, is_excused: false, fix: None }
    }
}

impl From<&str> for Fail {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// A success without a detail.
pub(crate) fn passed() -> Verdict {
    Ok(String::new())
}

/// A growing list of checks.
#[derive(Debug, Default)]
pub(crate) struct Checks(pub(crate) Vec<Check>);

impl Checks {
    /// Adds a check; `fix` is shown if it failed.
    pub(crate) fn add(
        &mut self,
        group: &'static str,
        what: &'static str,
        fix: impl Into<Cow<'static, str>>,
        verdict: Verdict,
    ) {
        let passed = verdict.as_ref().map_or_else(|fail| fail.is_excused, |_| true);
        let (seen, seed, own_fix) = match verdict {
            Ok(seen) => (seen, None, None),
            Err(fail) if fail.is_excused => (shortened(&fail.why), None, None),
            Err(fail) => (shortened(&fail.why), fail.seed, fail.fix),
        };
        let fix = (!passed).then(|| own_fix.map_or_else(|| fix.into(), Cow::Borrowed));
        self.0.push(Check { group, what, passed, seen, fix, seed });
    }
}

/// A number with its noun, such as `1 tool` or `2 tools`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The most bytes of a reason: a plugin can return an error of any length.
const REASON: usize = 600;

fn shortened(why: &str) -> String {
    let one_line = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = one_line.floor_char_boundary(REASON);
    if end < one_line.len() { format!("{}…", &one_line[..end]) } else { one_line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_counted_in_the_plural() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "tool")), ["0 tools", "1 tool", "2 tools"]);
    }

    #[test]
    fn a_failed_check_has_a_short_reason_and_a_fix() {
        let mut checks = Checks::default();
        checks.add("tools", "answers", "answer", Err(Fail::of_seed(7, format!("a\nb {}", "ü".repeat(1_000)))));
        checks.add("tools", "answers", "answer", passed());
        let [failed, passed] = checks.0.as_slice() else { panic!("two checks") };
        assert!(failed.seen.starts_with("a b ü") && failed.seen.len() <= REASON + '…'.len_utf8());
        assert_eq!((failed.fix.as_deref(), failed.seed), (Some("answer"), Some(7)));
        assert_eq!((passed.passed, passed.fix.as_deref()), (true, None));
        checks.add("memory", "stores", "store", Err(Fail { fix: Some("ask for it"), ..Fail::from("it is denied") }));
        assert_eq!(checks.0.pop().and_then(|check| check.fix).as_deref(), Some("ask for it"));
        checks.add("memory", "recalls", "recall", Err(Fail::excused("its backend is down")));
        assert!(checks.0[2].passed && checks.0[2].fix.is_none() && checks.0[2].seen == "its backend is down");
    }
}
