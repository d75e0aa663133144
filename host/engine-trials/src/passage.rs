//! Lines of text, the unit in which reuse and recall are measured.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use hermes_conversation::Draft;
use serde_json::Value;

/// The least number of characters of a line that is distinctive enough.
pub const LEAST: usize = 24;

/// The identity of a line: a hash with fixed keys, so that it is the same in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(u64);

impl Line {
    /// The identity of this line.
    pub fn of(text: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The trimmed lines of a text that are long enough.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| line.chars().nth(LEAST - 1).is_some())
}

/// Appends the text of a call's arguments: the unescaped strings of the JSON, or the raw text if it is not JSON.
pub fn unescape(arguments: &str, into: &mut String) {
    match serde_json::from_str(arguments) {
        Ok(value) => strings(&value, into),
        Err(_) => push(arguments, into),
    }
}

fn strings(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => push(text, into),
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, into)),
        _ => {}
    }
}

fn push(text: &str, into: &mut String) {
    if !into.is_empty() {
        into.push('\n');
    }
    into.push_str(text);
}

/// The full text of a message, with unescaped arguments.
pub fn said(draft: &Draft) -> String {
    let mut text = draft.text_sent().to_owned();
    for call in &draft.tool_calls {
        unescape(&call.arguments, &mut text);
    }
    text
}

/// The lines of a text in order, without duplicates.
pub fn distinct(text: &str) -> Vec<&str> {
    let mut seen = HashSet::new();
    lines(text).filter(|line| seen.insert(*line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_short_lines_are_dropped() {
        let mut text = "short\n  a line of twenty-four !!  ".to_owned();
        unescape(r#"{"edits":[{"new":"let x = \"quoted text here\";\n}"}],"n":3}"#, &mut text);
        assert_eq!(distinct(&text), ["a line of twenty-four !!", "let x = \"quoted text here\";"]);
        let mut broken = String::new();
        unescape("{\"cut off in the middle of", &mut broken);
        assert_eq!(broken, "{\"cut off in the middle of");
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(lines(&"é".repeat(24)).count(), 1);
        assert_eq!(lines(&"é".repeat(23)).count(), 0);
    }
}
