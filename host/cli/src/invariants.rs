//! Invariants for text of strangers on the screen. The tests of this crate and the targets in `fuzz/` call the same
//! functions, which panic if an invariant is broken.

use hermes_app::plugins::{LimitSet, Permissions};
use hermes_protocol::characters::{is_reordering, is_tag};

use crate::console::Console;
use crate::plugins::consent::screen::{ConsentScreen, Titles};
use crate::text::{self, columns};

const LABELS: [&str; 6] = ["description", "unknown", "permissions", "dangerous", "in short", "-"];

/// Checks a consent screen for permissions, as JSON, of a plugin that describes itself with this text: every row is in
/// its column, every permission has its number, and the screen ends with the dangerous ones.
pub fn consent(asked: &str, described: &str) {
    let asked: Permissions = serde_json::from_str(asked).unwrap_or_default();
    for width in [20, 36, 37, 80, 132] {
        let mut sheet = ConsentScreen::new(Console::plain(true), Some(width));
        let margin = sheet.margin();
        sheet.row("description", described);
        sheet.list("unknown", &[described.to_owned(), described.chars().rev().collect()]);
        let titles = Titles { none: "none", some: "requested by the plugin" };
        sheet.agreement(&asked, &LimitSet::default(), Some(described), titles);
        let lines = sheet.lines();
        in_its_column(&lines, width, margin, &LABELS);
        let numbers: Vec<usize> = lines.iter().filter_map(|line| number(line, margin)).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len()), "{numbers:?}");
        let blank = " ".repeat(margin);
        let label = |label: &str| {
            lines.iter().rposition(|line| !line.starts_with(&blank) && line.trim_start().starts_with(label))
        };
        // A native library is dangerous, so there is always such a row, below all others.
        let (dangerous, short) = (label("dangerous"), label("in short"));
        assert!(dangerous.is_some() && short.is_none_or(|short| Some(short) > dangerous), "{lines:#?}");
        for line in &lines {
            assert!(!line.chars().any(text::is_deceptive), "{line:?}");
        }
    }
}

/// Checks a reply, and the same reply in two pieces: nothing in it controls the terminal, reorders a line, or is hidden
/// in tags.
pub fn reply(reply: &str) {
    let middle = reply.char_indices().nth(reply.chars().count() / 2).map_or(0, |(at, _)| at);
    let mut cleaner = text::Cleaner::default();
    let pieces = cleaner.clean(&reply[..middle]) + &cleaner.clean(&reply[middle..]);
    for shown in [text::lines(reply), text::line(reply), pieces] {
        let controls = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
        assert!(!shown.chars().any(|character| controls(character) || is_reordering(character)), "{shown:?}");
        // Tags are only in flags.
        assert!(!shown.chars().any(is_tag) || shown.contains('\u{1f3f4}'), "{shown:?}");
    }
}

/// Checks that no line is wrapped by the terminal, and that only Hermes writes into the first columns.
pub(crate) fn in_its_column(lines: &[String], width: usize, margin: usize, labels: &[&str]) {
    for line in lines {
        assert!(columns(line) < width, "{} columns: {line}", columns(line));
        let is_label = |text: &str| text.is_empty() || number(text, margin).is_some() || labels.contains(&text);
        let head: String = line.chars().take(margin).collect();
        assert!(is_label(head.trim()) || is_label(line), "{head:?} in {line:?}");
    }
}

/// The number at the left of a row.
fn number(line: &str, margin: usize) -> Option<usize> {
    if line.starts_with(&" ".repeat(margin)) {
        return None;
    }
    line.split_whitespace().next()?.strip_suffix('.')?.parse().ok()
}

#[cfg(test)]
mod attack {
    use super::*;

    #[test]
    fn consent_and_replies_hold_for_crude_texts() {
        let asked = [
            "{}",
            r#"{"history": true, "hooks": true, "process": ["sh", "git"], "http": [{"url": "https://a.example/", "methods": ["POST"]}]}"#,
        ];
        for described in
            ["", "1. ask nothing", "dangerous 0", "\u{202e}\u{e0041}\u{1b}[2J", "漢 in short ", "\u{1f3f4}\u{e0067}"]
        {
            for times in [1, 3, 400] {
                let described = described.repeat(times);
                asked.iter().for_each(|asked| consent(asked, &described));
                reply(&described);
            }
        }
    }
}
