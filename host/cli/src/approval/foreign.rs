//! Texts of others in a question, shown exactly: invisible characters are made visible, and omitted text is counted.

use crate::text::{grouped, is_deceptive};

/// Characters shown of the end of a longer text.
const END: usize = 400;

/// How much of the foreign texts is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Of a long text the beginning and the end.
    Brief,
    /// Everything.
    Whole,
}

impl Extent {
    /// Most characters of a text. Of a longer text, the beginning and the end are shown.
    fn most(self) -> usize {
        if self == Self::Brief { 2_000 } else { usize::MAX }
    }

    /// Most characters of a command line.
    pub(super) fn most_of_a_line(self) -> usize {
        if self == Self::Brief { 6_000 } else { usize::MAX }
    }
}

/// The beginning and the end of a long text, with its length.
pub(super) fn bounded(text: &str, show: impl Fn(&str) -> String, extent: Extent) -> String {
    let (count, most) = (text.chars().count(), extent.most());
    if count <= most {
        return show(text);
    }
    let head: String = text.chars().take(most - END).collect();
    let tail: String = text.chars().skip(count - END).collect();
    let (left_out, count) = (grouped((count - most) as u64), grouped(count as u64));
    format!("{} [{left_out} of {count} characters are not shown] {}", show(&head), show(&tail))
}

/// Bytes as a quoted text, or with escapes.
pub(super) fn text_or_binary(text: Option<&str>, binary: Option<&str>, extent: Extent) -> String {
    match (text, binary) {
        (Some(text), _) => bounded(text, quoted, extent),
        (None, Some(bytes)) => format!("binary data: {}", bounded(bytes, visible, extent)),
        (None, None) => "binary data".to_owned(),
    }
}

/// A word, in quotes if it contains anything but plain characters.
pub(super) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            other => push_visible(other, &mut quoted),
        }
    }
    quoted.push('"');
    quoted
}

/// A text on one line, with control characters, invisible characters and changes of direction escaped.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::new();
    text.chars().for_each(|character| push_visible(character, &mut shown));
    shown
}

/// A line of a file. Its tabs stay what they look like.
pub(super) fn line_of_file(text: &str) -> String {
    visible(&text.replace('\t', "    "))
}

fn push_visible(character: char, shown: &mut String) {
    match character {
        '"' | '\'' | '\\' => shown.push(character),
        '\n' | '\r' | '\t' => shown.extend(character.escape_debug()),
        // Fillers and blanks, which Rust does not escape.
        blank if is_deceptive(blank) => shown.extend(blank.escape_unicode()),
        other => shown.extend(other.escape_debug()),
    }
}
