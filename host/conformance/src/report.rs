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
    /// The checks without a verdict, because their only failures are crashes that an earlier check reports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<NotJudged>,
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
    /// The reasons, if several tools failed: one for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<String>,
    /// What the runtime of the plugin's language wrote about each crash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raw: Vec<String>,
    /// How to fix a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Cow<'static, str>>,
    /// The seed that reproduces a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A check that failed only for causes that an earlier check names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotJudged {
    /// The group.
    pub group: &'static str,
    /// The requirement.
    pub what: &'static str,
    /// The check that names the cause.
    pub because_of: &'static str,
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
    /// The crashes that it reports.
    pub(crate) crashes: Vec<Crashed>,
    /// The reasons of several tools.
    pub(crate) each: Vec<String>,
}

/// A call that ended without an answer: by a crash, or at a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Crashed {
    /// What happened, with the function that was called.
    pub(crate) why: String,
    /// Equal for two crashes with one cause: the place in the author's source, else the function and what happened.
    pub(crate) cause: String,
    /// What the runtime of the language wrote.
    pub(crate) raw: Option<String>,
    /// How to fix it, if what happened tells more than the check.
    pub(crate) fix: Option<&'static str>,
}

impl Fail {
    pub(crate) fn excused(why: impl Into<String>) -> Self {
        Self { is_excused: true, ..Self::from(why.into()) }
    }

    pub(crate) fn of_seed(seed: u64, why: impl Into<String>) -> Self {
        Self { seed: Some(seed), ..Self::from(why.into()) }
    }

    /// Joins the failures of several tools out of `tools`. A single failure stays as it is.
    pub(crate) fn of_tools(mut fails: Vec<Self>, tools: usize) -> Self {
        if fails.len() == 1 {
            return fails.remove(0);
        }
        Self {
            fix: fails.iter().find_map(|fail| fail.fix).filter(|fix| fails.iter().all(|fail| fail.fix == Some(*fix))),
            crashes: fails.iter().flat_map(|fail| fail.crashes.clone()).collect(),
            each: fails.iter().map(|fail| fail.why.clone()).collect(),
            ..Self::from(format!("{} of {} fail", fails.len(), counted(tools, "tool")))
        }
    }
}

impl From<String> for Fail {
    fn from(why: String) -> Self {
        Self { why, seed: None, is_excused: false, fix: None, crashes: Vec::new(), each: Vec::new() }
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
pub(crate) struct Checks {
    pub(crate) list: Vec<Check>,
    pub(crate) not_judged: Vec<NotJudged>,
    /// The crashes that a check has named, with its name.
    known: Vec<(Crashed, &'static str)>,
    /// The reasons of failed checks, with their names: some quote a crash in words only.
    reasons: Vec<(String, &'static str)>,
}

impl Checks {
    /// Adds a check; `fix` is shown if it failed. A cause is reported once: a check that fails only because of earlier crashes is
    /// not judged.
    pub(crate) fn add(
        &mut self,
        group: &'static str,
        what: &'static str,
        fix: impl Into<Cow<'static, str>>,
        verdict: Verdict,
    ) {
        let check = |passed: bool, seen: String| Check {
            group,
            what,
            passed,
            seen,
            each: Vec::new(),
            raw: Vec::new(),
            fix: None,
            seed: None,
        };
        let fail = match verdict {
            Ok(seen) => return self.list.push(check(true, seen)),
            Err(fail) if fail.is_excused => return self.list.push(check(true, shortened(&fail.why))),
            Err(fail) => fail,
        };
        if let Some(because_of) = self.named_by(&fail) {
            return self.not_judged.push(NotJudged { group, what, because_of });
        }
        self.reasons.push((fail.why.clone(), what));
        let mut raw: Vec<String> = fail.crashes.iter().filter_map(|crash| crash.raw.clone()).collect();
        raw.dedup();
        self.list.push(Check {
            each: fail.each.iter().map(|why| shortened(why)).collect(),
            raw,
            fix: Some(fail.fix.map_or_else(|| fix.into(), Cow::Borrowed)),
            seed: fail.seed,
            ..check(false, shortened(&fail.why))
        });
        self.known.extend(fail.crashes.into_iter().map(|crash| (crash, what)));
    }

    /// The check that has named every crash of this failure.
    fn named_by(&self, fail: &Fail) -> Option<&'static str> {
        let same = |known: &Crashed, crash: &Crashed| known.cause == crash.cause || known.why == crash.cause;
        let known = |crash: &Crashed| {
            let named = self.known.iter().find(|(known, _)| same(known, crash)).map(|(_, what)| *what);
            named.or_else(|| self.reasons.iter().find(|(why, _)| why.contains(&crash.why)).map(|(_, what)| *what))
        };
        match fail.crashes.as_slice() {
            // A reason in words only may quote a crash.
            [] => {
                let quoted = quoted(&fail.why)?;
                let known = self.known.iter().find(|(known, _)| known.why.contains(quoted)).map(|(_, what)| *what);
                known.or_else(|| self.reasons.iter().find(|(why, _)| why.contains(quoted)).map(|(_, what)| *what))
            }
            [first, rest @ ..] => known(first).filter(|_| rest.iter().all(|crash| known(crash).is_some())),
        }
    }
}

/// The crash in a reason: `` `assess`: it crashed: … `` in ``step 3: `assess`: it crashed: …``.
fn quoted(why: &str) -> Option<&str> {
    let at = why.find("`: it crashed: ")?;
    Some(&why[why[..at].rfind('`')?..])
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
        let [failed, passed] = checks.list.as_slice() else { panic!("two checks") };
        assert!(failed.seen.starts_with("a b ü") && failed.seen.len() <= REASON + '…'.len_utf8());
        assert_eq!((failed.fix.as_deref(), failed.seed), (Some("answer"), Some(7)));
        assert_eq!((passed.passed, passed.fix.as_deref()), (true, None));
        checks.add("memory", "stores", "store", Err(Fail { fix: Some("ask for it"), ..Fail::from("it is denied") }));
        assert_eq!(checks.list.pop().and_then(|check| check.fix).as_deref(), Some("ask for it"));
        checks.add("memory", "recalls", "recall", Err(Fail::excused("its backend is down")));
        assert!(checks.list[2].passed && checks.list[2].fix.is_none() && checks.list[2].seen == "its backend is down");
    }

    fn crashed(tool: &str, place: &str) -> Fail {
        let why = format!("`call`: it crashed: KeyError ({place})");
        let crash = Crashed { why: why.clone(), cause: place.to_owned(), raw: Some("Traceback".to_owned()), fix: None };
        Fail { crashes: vec![crash], ..Fail::from(format!("`{tool}`: {why}")) }
    }

    #[test]
    fn every_failing_tool_has_its_own_reason_in_one_check() {
        let mut checks = Checks::default();
        let fails = vec![crashed("one", "at a.py:1"), "`two` answers nothing".into(), crashed("three", "at a.py:3")];
        checks.add("tools", "answers", "answer", Err(Fail::of_tools(fails, 14)));
        assert_eq!(checks.list[0].seen, "3 of 14 tools fail");
        assert_eq!(checks.list[0].each[1], "`two` answers nothing");
        assert!(
            checks.list[0].each[2].starts_with("`three`: `call`: it crashed") && checks.list[0].raw == ["Traceback"]
        );
        let alone = Fail::of_tools(vec![crashed("one", "at a.py:1")], 14);
        assert!(alone.why.starts_with("`one`") && alone.each.is_empty());
    }

    #[test]
    fn one_cause_is_named_once() {
        let mut checks = Checks::default();
        checks.add(
            "tools",
            "answers",
            "answer",
            Err(Fail::of_tools(vec![crashed("one", "x:1"), crashed("two", "x:2")], 2)),
        );
        // First the same place in other words, then a reason that quotes it, then a new cause beside a known one.
        checks.add("imports", "survives", "catch", Err(crashed("two", "x:2")));
        checks.add("plans", "keep", "keep", Err("step 3: `call`: it crashed: KeyError (x:1)".into()));
        assert_eq!(checks.list.len(), 1);
        let names: Vec<_> = checks.not_judged.iter().map(|check| (check.what, check.because_of)).collect();
        assert_eq!(names, [("survives", "answers"), ("keep", "answers")]);
        checks.add(
            "tools",
            "explains",
            "say",
            Err(Fail::of_tools(vec![crashed("one", "x:1"), crashed("two", "x:9")], 2)),
        );
        checks.add("lifecycle", "ends", "end", Err("it took too long".into()));
        assert_eq!((checks.list.len(), checks.not_judged.len()), (3, 2));
        checks.add("engine", "assesses", "subtract", Err("of 32000: `call`: it crashed: overflow (x:7)".into()));
        let again = Crashed {
            why: "`call`: it crashed: overflow (x:7)".to_owned(),
            cause: "x:7".to_owned(),
            raw: None,
            fix: None,
        };
        checks.add("imports", "survives", "catch", Err(Fail { crashes: vec![again], ..Fail::from("it crashed") }));
        assert_eq!(checks.not_judged.last().map(|check| check.because_of), Some("assesses"));
        checks.add("plans", "keep more", "keep", Err("step 9: `call`: it crashed: overflow (x:7)".into()));
        assert_eq!(checks.not_judged.len(), 4);
        checks.add("plans", "keep all", "keep", Err("step 9: `call`: it crashed: overflow (x:8)".into()));
        assert_eq!(checks.not_judged.len(), 4);
    }
}
