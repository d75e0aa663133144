//! Fixtures: an author's rules for what the web and the model answer during a test.
//!
//! This module has what both kinds of fixtures share: rules in order, answers in turn, and the record of what was used.
//! `reading` reads a file; `web` and `model` give the answers.

pub(crate) mod model;
mod reading;
pub(crate) mod web;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

pub use model::ModelFixtures;
pub use web::HttpFixtures;

/// How often a call is repeated that returned a temporary error: the host repeats it, too, though later.
pub(crate) const ATTEMPTS: u32 = 4;

/// What was used of fixtures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FixtureUse {
    /// Whether there are no fixtures, so that the stand-in answered every request.
    pub stand_in: bool,
    /// The number of requests.
    pub requests: u64,
    /// The rules and answers that no request used, each with its line in the file.
    pub unused: Vec<String>,
    /// The requests that no rule matched.
    pub unmatched: Vec<Unmatched>,
}

/// A request that no rule matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// The request in one line, without its secrets.
    pub request: String,
    /// How often it was sent.
    pub count: u64,
}

/// A rule: what it matches, and the answers that it gives in turn. The last answer repeats.
#[derive(Debug)]
struct Rule<M, A> {
    line: u64,
    matcher: M,
    answers: Vec<A>,
    /// How many requests of a session it answers; any number if absent.
    times: Option<u32>,
}

/// The rules of a file, in order. The first that matches answers.
#[derive(Debug)]
struct Script<M, A>(Vec<Rule<M, A>>);

/// A script in one test run, with the record of what was used.
struct Run<M, A> {
    script: Arc<Script<M, A>>,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    requests: u64,
    /// For each rule, the most requests that it answered in one session.
    most: Vec<u32>,
    unmatched: BTreeMap<String, u64>,
}

/// A session's position in a script: each session begins anew.
struct Position(Mutex<Vec<u32>>);

/// The most different requests that are recorded without a rule.
const MOST_UNMATCHED: usize = 100;

impl<M: fmt::Display, A: Clone> Run<M, A> {
    fn new(script: Arc<Script<M, A>>) -> Self {
        let record = Record { most: vec![0; script.0.len()], ..Record::default() };
        Self { script, record: Mutex::new(record) }
    }

    /// The rules, each with its line in the file.
    fn rules(&self) -> impl Iterator<Item = (u64, &M)> {
        self.script.0.iter().map(|rule| (rule.line, &rule.matcher))
    }

    /// The rules that gave no answer.
    fn idle(&self) -> Vec<&M> {
        let record = locked(&self.record);
        let unused = self.script.0.iter().zip(&record.most).filter(|(_, most)| **most == 0);
        unused.map(|(rule, _)| &rule.matcher).collect()
    }

    fn start(&self) -> Position {
        Position(Mutex::new(vec![0; self.script.0.len()]))
    }

    /// The next answer of the first rule that matches and has one left. `request` describes the request for the record.
    fn answer(&self, position: &Position, matches: impl Fn(&M) -> bool, request: impl FnOnce() -> String) -> Option<A> {
        let mut record = locked(&self.record);
        let mut taken = locked(&position.0);
        record.requests += 1;
        for (at, rule) in self.script.0.iter().enumerate() {
            if rule.times.is_some_and(|times| taken[at] >= times) || !matches(&rule.matcher) {
                continue;
            }
            let index = (taken[at] as usize).min(rule.answers.len().saturating_sub(1));
            taken[at] = taken[at].saturating_add(1);
            record.most[at] = record.most[at].max(taken[at]);
            return rule.answers.get(index).cloned();
        }
        let request = request();
        if record.unmatched.len() < MOST_UNMATCHED || record.unmatched.contains_key(&request) {
            *record.unmatched.entry(request).or_default() += 1;
        }
        None
    }

    /// What was used so far. `shown` prepares a request for people.
    fn usage(&self, shown: impl Fn(&str) -> String) -> FixtureUse {
        let record = locked(&self.record);
        let unused = self.script.0.iter().zip(&record.most).filter_map(|(rule, most)| {
            let (used, all) = (*most as usize, rule.answers.len());
            let rest = match used {
                0 => String::new(),
                _ if used >= all => return None,
                _ if used + 1 == all => format!(", answer {all}"),
                _ => format!(", answers {} to {all}", used + 1),
            };
            Some(format!("line {}: {}{rest}", rule.line, rule.matcher))
        });
        let unmatched = record.unmatched.iter();
        FixtureUse {
            stand_in: false,
            requests: record.requests,
            unused: unused.collect(),
            unmatched: unmatched.map(|(request, count)| Unmatched { request: shown(request), count: *count }).collect(),
        }
    }
}

/// A text with stars. A star matches any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(String);

impl Pattern {
    fn any() -> Self {
        Self("*".to_owned())
    }

    fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(matcher: &str, answers: &[u16], times: Option<u32>) -> Rule<String, u16> {
        Rule { line: 1, matcher: matcher.to_owned(), answers: answers.to_vec(), times }
    }

    #[test]
    fn the_first_rule_that_matches_answers_in_turn_and_its_last_answer_repeats() {
        let rules = vec![rule("a", &[429, 200], None), rule("ab", &[1], Some(2)), rule("ab", &[2], None)];
        let run = Run::new(Arc::new(Script(rules)));
        let session = run.start();
        let ask = |position: &Position, text: &str| {
            run.answer(position, |matcher| matcher == text, || format!("unknown {text}"))
        };
        assert_eq!([(); 3].map(|()| ask(&session, "a")), [Some(429), Some(200), Some(200)]);
        assert_eq!([(); 3].map(|()| ask(&session, "ab")), [Some(1), Some(1), Some(2)]);
        assert_eq!(ask(&run.start(), "a"), Some(429), "another session begins anew");
        assert_eq!([(); 2].map(|()| ask(&session, "c")), [None, None]);
        let found = run.usage(|request| request.replace("unknown", "no rule for"));
        assert_eq!((found.requests, found.unused), (9, Vec::<String>::new()));
        assert_eq!(found.unmatched, [Unmatched { request: "no rule for c".to_owned(), count: 2 }]);
    }

    #[test]
    fn unused_rules_and_answers_are_named_with_their_lines() {
        let rules = vec![rule("a", &[1, 2, 3, 4], None), rule("b", &[1], None), rule("c", &[1, 2], None)];
        let run = Run::new(Arc::new(Script(rules)));
        let session = run.start();
        for text in ["a", "a", "c"] {
            run.answer(&session, |matcher| matcher == text, String::new);
        }
        let unused = run.usage(str::to_owned).unused;
        assert_eq!(unused, ["line 1: a, answers 3 to 4", "line 1: b", "line 1: c, answer 2"]);
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        let matches = |pattern: &str, text: &str| Pattern(pattern.to_owned()).matches(text);
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "a/b"),
            ("a*", "a"),
            ("a*c", "abc"),
            ("a*b*c", "a-b-b-c"),
            ("**", "x"),
            ("a*a", "aa"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("a*a", "a"), ("a*b*c", "acb"), ("*a", "ab"), ("b*", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
