//! The assumptions that a change made to find its places, and the errors of a change without a place.

use std::fmt;

use hermes_charset::Charset;
use hermes_plugin::Error;

use super::matching::{self, Leniency};
use crate::text::{REPLACEMENT, Text, lines, lost};

/// Places that an error names.
const PLACES: usize = 8;
/// Characters that an error shows of a line.
const QUOTED: usize = 120;

/// The assumptions that were made to find the places of a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assumed(Vec<String>);

impl Assumed {
    pub(super) fn add(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.0.contains(&what) {
            self.0.push(what);
        }
    }

    pub(super) fn typography(&mut self) {
        self.add("typographic quotes, dashes and spaces equal plain ones, and � a character that is not ASCII");
    }

    pub(super) fn forgiven(&mut self, what: Leniency) {
        if what.line_ends {
            self.add("whitespace at line ends does not matter");
        }
        if what.indentation {
            self.add("the indentation is that of the file, also for new lines");
        }
        if what.typography {
            self.typography();
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        for what in other.0 {
            self.add(what);
        }
    }
}

impl fmt::Display for Assumed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(out, "[not found as written, so assumed: {}]", self.0.join("; "))
        }
    }
}

/// `at lines 3, 7 and 9`.
pub(super) fn places(found: impl ExactSizeIterator<Item = usize>) -> String {
    let left = found.len().saturating_sub(PLACES);
    let mut numbers: Vec<String> = found.take(PLACES).map(|line| line.to_string()).collect();
    if left > 0 {
        numbers.push(format!("{left} more"));
    }
    match numbers.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("at lines {} and {last}", rest.join(", ")),
        _ => format!("at line {}", numbers.concat()),
    }
}

/// The error for lines that are not in the file: where they would almost be, and what is different there.
pub(super) fn not_found(path: &str, text: &Text, what: &str, wanted: &[&str]) -> Error {
    let all = lines(&text.content);
    let quote = |line: &str| match line.char_indices().nth(QUOTED) {
        Some((cut, _)) => format!("`{}…`", &line[..cut]),
        None => format!("`{line}`"),
    };
    let numbered =
        |line: &&str| line.trim_start().split_once('|').is_some_and(|(number, _)| number.parse::<u64>().is_ok());
    let message = if !wanted.is_empty() && wanted.iter().all(numbered) {
        format!("{what} is not in {path}: give the lines without the line numbers of read_file")
    } else {
        match matching::nearest(&all, wanted) {
            Some((at, length)) if length < wanted.len() => {
                let (from, to) = (at + 1, at + length);
                let near =
                    if from == to { format!("line {from} matches") } else { format!("lines {from} to {to} match") };
                let differs = match all.get(at + length) {
                    Some(line) => format!("line {} has {}", to + 1, quote(line.text)),
                    None => "the file ends there".to_owned(),
                };
                format!(
                    "{what} is not in {path}: {near} its beginning, then {differs} where {what} has {}. Read the file again",
                    quote(wanted[length])
                )
            }
            // Equal but for indentation that contradicts itself, or not as whole lines.
            Some((at, _)) => format!(
                "{what} is not in {path} as written, though line {} is similar: {}. Read the file again",
                at + 1,
                quote(all[at].text)
            ),
            None => {
                let first = wanted.iter().find(|line| !line.trim().is_empty()).copied().unwrap_or_default();
                format!("{what} is not in {path}: no line of {path} is {}. Read the file again", quote(first))
            }
        }
    };
    Error::invalid(message).with_code("not-found")
}

/// Puts back what `new` has � for: the invalid bytes of `old`, or else its characters that are not ASCII, in their order.
pub(super) fn with_bytes(path: &str, text: &Text, old: &str, new: &str) -> Result<String, Error> {
    // In UTF-8, the sign is a character like any other. Invalid bytes have the sign already.
    if text.charset() == Charset::Utf8 || !new.contains(REPLACEMENT) {
        return Ok(new.to_owned());
    }
    let has_odd = old.contains(REPLACEMENT);
    let mut kept = old.chars().filter(|letter| if has_odd { *letter == REPLACEMENT } else { !letter.is_ascii() });
    let mut put_back = |letter| if letter == REPLACEMENT { kept.next() } else { Some(letter) };
    let changed: Option<String> = new.chars().map(&mut put_back).collect();
    changed.filter(|_| kept.next().is_none()).ok_or_else(|| lost(path))
}
