//! Where a document marks a line as an example: in a fenced block, a quotation, a table, or below words such as "example".
//!
//! A model may follow what an example says, so a mark never lets a passage through by itself: the user is shown the line and has
//! to agree. Without a mark, only the exact digest of the skill does.

use std::collections::BTreeSet;

use hermes_prompt::Passage;
use hermes_prompt::scan::{Scope, findings};

/// A passage with more lines is not taken apart.
const MOST_LINES: usize = 400;
/// Rules about commands, which a fenced block does not make an example: it is there to be run.
const COMMANDS: &[&str] = &["exfil_curl", "exfil_wget", "exfil_keys", "read_secrets", "env_var_unset_agent"];
/// Rules about text that a page does not show. It is visible only as code.
const HIDDEN: &[&str] = &["html_comment_injection", "hidden_div"];
/// Inline code, and quotation marks.
const MARKS: [(char, char); 4] = [('`', '`'), ('"', '"'), ('\u{201c}', '\u{201d}'), ('\u{ab}', '\u{bb}')];
/// Beginnings of words that announce an example.
const ANNOUNCING: &[&str] = &[
    "example",
    "e.g",
    "for instance",
    "such as",
    "sample",
    "attack",
    "malicious",
    "adversarial",
    "injection",
    "jailbreak",
    "payload",
    "red flag",
    "phishing",
    "test case",
    "suspicious",
    "hostile",
];

/// The lines of a text, and which of them are marked.
pub(super) struct Lines<'t> {
    lines: Vec<&'t str>,
    is_fenced: Vec<bool>,
    is_marked: Vec<bool>,
}

/// The first line of a passage that a rule matches by itself, counted from 1, and its text.
pub(super) type Hit = (usize, String);

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let is_fenced = fenced(&lines);
        let mut is_marked = Vec::with_capacity(lines.len());
        // An example is announced by the last line above it outside of lists, or by the last heading.
        let (mut above, mut heading) = (false, false);
        for (line, is_fenced) in lines.iter().zip(&is_fenced) {
            let trimmed = line.trim();
            let announces = announces(trimmed);
            let is_quoted =
                trimmed.starts_with('>') || (trimmed.len() > 1 && trimmed.starts_with('|') && trimmed.ends_with('|'));
            is_marked.push(*is_fenced || is_quoted || announces || above || heading);
            if !is_fenced && trimmed.starts_with('#') {
                (heading, above) = (announces, false);
            } else if !trimmed.is_empty() && !is_item(trimmed) && !is_quoted && !is_fenced {
                above = announces && trimmed.ends_with(':');
            }
        }
        Self { lines, is_fenced, is_marked }
    }

    /// The lines of a passage.
    pub(super) fn of_passage(&self, passage: &Passage) -> &[&'t str] {
        let end = passage.last_line.min(self.lines.len());
        &self.lines[passage.first_line.saturating_sub(1).min(end)..end]
    }

    /// The first line that is found, for the user to read.
    pub(super) fn hit(&self, passage: &Passage) -> Option<Hit> {
        let rules: BTreeSet<&str> = passage.patterns.iter().map(String::as_str).collect();
        let lines = self.range(passage)?;
        let first = lines.clone().find(|at| self.rules_of(*at).iter().any(|rule| rules.contains(rule.as_str())));
        let at = first.unwrap_or(lines.start);
        self.lines.get(at).map(|line| (at + 1, line.trim().to_owned()))
    }

    /// Whether everything that the scan finds in a passage is marked as an example.
    pub(super) fn are_examples(&self, passage: &Passage) -> bool {
        let Some(lines) = self.range(passage) else { return false };
        passage.patterns.iter().all(|rule| {
            if COMMANDS.contains(&rule.as_str()) || rule.starts_with("invisible_unicode") {
                return false;
            }
            let found: Vec<usize> = lines.clone().filter(|at| self.rules_of(*at).contains(rule)).collect();
            // A phrase over several lines is in all of them.
            let found = if found.is_empty() { lines.clone().collect() } else { found };
            found.into_iter().all(|at| match HIDDEN.contains(&rule.as_str()) {
                true => self.is_fenced[at] || self.is_within(at, rule, &MARKS[..1]),
                false => self.is_marked[at] || self.is_within(at, rule, &MARKS),
            })
        })
    }

    fn range(&self, passage: &Passage) -> Option<std::ops::Range<usize>> {
        let range = passage.first_line.checked_sub(1)?..passage.last_line.min(self.lines.len());
        (range.len() <= MOST_LINES).then_some(range)
    }

    fn rules_of(&self, at: usize) -> BTreeSet<String> {
        findings(self.lines[at], Scope::Context)
    }

    /// Whether nothing is found without what stands between such marks.
    fn is_within(&self, at: usize, rule: &str, marks: &[(char, char)]) -> bool {
        let line = self.lines[at];
        let mut rest = line.to_owned();
        for &(open, close) in marks {
            while let Some(begin) = rest.find(open)
                && let Some(length) = rest[begin + open.len_utf8()..].find(close)
            {
                rest.replace_range(begin..begin + open.len_utf8() + length + close.len_utf8(), " … ");
            }
        }
        rest != line && !findings(&rest, Scope::Context).contains(rule)
    }
}

/// Which lines are within a fenced block that ends.
fn fenced(lines: &[&str]) -> Vec<bool> {
    let mut is_fenced = vec![false; lines.len()];
    let mut open: Option<(usize, char, usize)> = None;
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        let Some(mark) = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~')) else { continue };
        let length = trimmed.chars().take_while(|character| *character == mark).count();
        if length < 3 {
            continue;
        }
        match open {
            None => open = Some((at, mark, length)),
            Some((begin, of, least)) if of == mark && length >= least && trimmed.chars().all(|each| each == mark) => {
                is_fenced[begin..=at].fill(true);
                open = None;
            }
            Some(_) => {}
        }
    }
    is_fenced
}

fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|character: char| character.is_ascii_digit());
    line.starts_with(['-', '*', '+']) || (rest.len() < line.len() && rest.starts_with(['.', ')']))
}

fn announces(line: &str) -> bool {
    let line = line.to_lowercase();
    ANNOUNCING.iter().any(|word| {
        line.match_indices(word)
            .any(|(at, _)| line[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric()))
    })
}
