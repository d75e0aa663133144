//! Texts of others, made fit for a terminal; and small matters of wording.

use serde_json::Value;

/// Takes escape sequences and control characters out of a text that arrives in pieces. Line feeds and tabs stay.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// In a control sequence, up to its final byte.
    Sequence,
    /// In a string for the terminal, such as a title, up to its terminator.
    Command,
    /// Behind an ESC in such a string.
    CommandEscape,
}

impl Cleaner {
    /// What may be shown of the next piece.
    pub(crate) fn clean(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for character in piece.chars() {
            self.take(character, &mut shown);
        }
        shown
    }

    fn take(&mut self, character: char, shown: &mut String) {
        // A line ends whatever was begun, or one character could hide all that follows.
        if character == '\n' {
            self.state = State::Text;
            shown.push('\n');
            return;
        }
        self.state = match (self.state, character) {
            (State::Command, '\u{1b}') => State::CommandEscape,
            (State::Command, '\u{7}' | '\u{9c}') | (State::CommandEscape, '\\') => State::Text,
            (State::Command | State::CommandEscape, _) => State::Command,
            (_, '\u{1b}') => State::Escape,
            (_, '\u{9b}') | (State::Escape, '[') => State::Sequence,
            (_, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') | (State::Escape, 'P' | 'X' | ']' | '^' | '_') => {
                State::Command
            }
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, '0'..='~') => State::Text,
            (State::Sequence, ' '..='?') => State::Sequence,
            (State::Sequence, '@'..='~') => State::Text,
            (_, other) => {
                if other == '\t' || !other.is_control() {
                    shown.push(other);
                }
                State::Text
            }
        };
    }
}

/// A text on one line, without anything that steers a terminal or turns the direction of writing.
pub(crate) fn line(text: &str) -> String {
    let clean = Cleaner::default().clean(text);
    let plain: String = clean.chars().filter(|character| !turns_direction(*character)).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn turns_direction(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// A count of bytes as people read it.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = count as f64;
    let mut unit = "bytes";
    for larger in UNITS {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    if unit == "bytes" { format!("{count} {unit}") } else { format!("{size:.1} {unit}") }
}

/// At most so many characters, the last of them `…` where some are missing.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The arguments of a call in few words: its plain values in order.
pub(crate) fn arguments(json: &str) -> String {
    const MOST_EACH: usize = 40;
    const MOST: usize = 60;
    let Ok(Value::Object(arguments)) = serde_json::from_str(json) else { return shortened(&line(json), MOST) };
    let values: Vec<String> = arguments
        .values()
        .filter_map(|value| match value {
            Value::String(text) => Some(shortened(&line(text), MOST_EACH)),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        })
        .filter(|value| !value.is_empty())
        .collect();
    shortened(&values.join(" "), MOST)
}

/// A line for a call that has ended: `· read_file notes.txt … 12 ms`.
pub(crate) fn call(name: &str, json: &str, failure: Option<&str>, elapsed_ms: u64) -> String {
    let name = shortened(&line(name), 60);
    let arguments = arguments(json);
    let space = if arguments.is_empty() { "" } else { " " };
    match failure {
        None => format!("· {name}{space}{arguments} … {}", duration(elapsed_ms)),
        Some(why) => {
            let why = shortened(&line(why), 100);
            format!("× {name}{space}{arguments} … failed after {}: {why}", duration(elapsed_ms))
        }
    }
}

/// `12 ms`, `3.4 s`, `75 s`.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} s", ms / 1_000),
    }
}

/// `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 message`, `2 messages`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        for (text, shown) in [
            ("plain\ttext\nnext", "plain\ttext\nnext"),
            ("a\u{1b}[31mred\u{1b}[0m", "ared"),
            ("a\u{1b}]0;title\u{7}b", "ab"),
            ("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb"),
            ("a\u{9b}2Jb", "ab"),
            ("a\u{1b}Pq#0\u{9c}b", "ab"),
            ("over\rwritten\u{8}\u{0}\u{7f}", "overwritten"),
            ("a\u{1b}(Bb\u{1b}c", "ab"),
            ("\u{1b}]0;never closed\nstill seen", "\nstill seen"),
            ("\u{1b}[12;\nseen", "\nseen"),
            ("äöü 漢字 🙂", "äöü 漢字 🙂"),
        ] {
            assert_eq!(Cleaner::default().clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_sequence_cut_in_two_is_still_one() {
        let text = "a\u{1b}[1;31mb\u{1b}]0;t\u{1b}\\c";
        for (cut, _) in text.char_indices() {
            let mut cleaner = Cleaner::default();
            let shown = cleaner.clean(&text[..cut]) + &cleaner.clean(&text[cut..]);
            assert_eq!(shown, "abc", "cut at {cut}");
        }
    }

    #[test]
    fn a_call_is_told_on_one_short_line() {
        for (name, json, failure, told) in [
            ("read_file", r#"{"path":"notes.txt"}"#, None, "· read_file notes.txt … 12 ms"),
            (
                "memory",
                r#"{"action":"add","target":"user","content":"likes\ntea"}"#,
                None,
                "· memory add user likes tea … 12 ms",
            ),
            ("skills_list", "{}", None, "· skills_list … 12 ms"),
            ("search", r#"{"pattern":"x","limit":5,"deep":true,"more":[1]}"#, None, "· search x 5 true … 12 ms"),
            ("read_file", r#"{"path":"x"}"#, Some("no such\nfile"), "× read_file x … failed after 12 ms: no such file"),
            ("e\u{1b}[31mvil", "\u{202e}not json", None, "· evil not json … 12 ms"),
        ] {
            assert_eq!(call(name, json, failure, 12), told);
        }
        let long = call("write_file", &format!(r#"{{"path":"{0}","content":"{0}"}}"#, "long ".repeat(50)), None, 1_234);
        assert!(long.chars().count() < 100 && long.ends_with("… 1.2 s"), "{long}");
    }

    #[test]
    fn numbers_are_told_in_groups() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "message"), counted(1_200, "message")], ["1 message", "1,200 messages"]);
    }
}
