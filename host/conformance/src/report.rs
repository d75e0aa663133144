//! What an examination found, as people and programs read it.

use serde::Serialize;

/// The outcome of an examination.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The plugin's name.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// What it exports.
    pub kinds: Vec<&'static str>,
    /// The first seed of what was generated.
    pub seed: u64,
    /// In the order in which they were made.
    pub checks: Vec<Check>,
    /// What was called, how often, and how long it took.
    pub calls: Vec<Calls>,
    /// The memory that all of it could be done with.
    pub memory: Option<Memory>,
}

/// One thing that the contract asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `lifecycle`, `tools`, …
    pub group: &'static str,
    /// What is asked for, as a sentence without its subject.
    pub what: &'static str,
    /// Whether it is so.
    pub passed: bool,
    /// What was seen: why it failed, or what else is worth knowing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// How to put it right, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<&'static str>,
    /// Makes what failed again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// How a function of the contract was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Its name.
    pub call: &'static str,
    /// How often.
    pub count: u64,
    /// Microseconds of the middle one.
    pub median_us: u64,
    /// Microseconds of the slowest one.
    pub slowest_us: u64,
}

/// Linear memory and tables of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// The smallest power of two, in MiB, under which every call was answered.
    pub enough_mib: u64,
    /// What it may have.
    pub limit_mib: u64,
}

impl Report {
    /// Whether nothing failed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }

    /// What failed.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }
}

/// What a check came to: what was seen, or what is wrong.
pub(crate) type Verdict = Result<String, Fail>;

/// Why a check failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fail {
    pub(crate) why: String,
    pub(crate) seed: Option<u64>,
}

impl Fail {
    pub(crate) fn of_seed(seed: u64, why: impl Into<String>) -> Self {
        Self { why: why.into(), seed: Some(seed) }
    }
}

impl From<String> for Fail {
    fn from(why: String) -> Self {
        Self { why, seed: None }
    }
}

impl From<&str> for Fail {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// Passed, with nothing to add.
pub(crate) fn fine() -> Verdict {
    Ok(String::new())
}

/// A list of checks that grows.
#[derive(Debug, Default)]
pub(crate) struct Checks(pub(crate) Vec<Check>);

impl Checks {
    /// Adds one with how to put it right.
    pub(crate) fn add(&mut self, group: &'static str, what: &'static str, fix: &'static str, verdict: Verdict) {
        let passed = verdict.is_ok();
        let (seen, seed) = match verdict {
            Ok(seen) => (seen, None),
            Err(fail) => (shortened(&fail.why), fail.seed),
        };
        self.0.push(Check { group, what, passed, seen, fix: (!passed).then_some(fix), seed });
    }
}

/// Bytes of a reason that are told: a plugin can make an error as long as it likes.
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
    fn a_failed_check_says_why_in_one_short_line_and_how_to_put_it_right() {
        let mut checks = Checks::default();
        checks.add("tools", "answers", "answer", Err(Fail::of_seed(7, format!("a\nb {}", "ü".repeat(1_000)))));
        checks.add("tools", "answers", "answer", fine());
        let [failed, passed] = checks.0.as_slice() else { panic!("two checks") };
        assert!(failed.seen.starts_with("a b ü") && failed.seen.len() <= REASON + '…'.len_utf8());
        assert_eq!((failed.fix, failed.seed), (Some("answer"), Some(7)));
        assert_eq!((passed.passed, passed.fix), (true, None));
    }
}
