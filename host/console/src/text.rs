//! Makes foreign text safe for a terminal and for scripts, and formats numbers and times.

mod cleaner;
mod exact;
mod json;
mod wrap;

pub use cleaner::Cleaner;
pub use exact::{exact, exact_line, exact_lines, exact_within, is_deceptive};
pub use hermes_diagnostic::{counted, grouped};
use hermes_protocol::one_line;
pub use json::{escaped, json};
use serde_json::Value;
pub use wrap::{INDENT, NARROWEST, begin, columns, fitted, hanging, labelled, wrapped};

/// A text in a fence that no line in it can close.
pub fn fenced(intro: &str, language: &str, text: &str) -> String {
    let runs = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(runs.max(2) + 1);
    format!("{intro}\n{fence}{language}\n{text}\n{fence}")
}

/// An amount of dollars: `$0.0123`.
pub fn dollars(amount: f64) -> String {
    format!("${amount:.4}")
}

/// A text on one line, in which characters that control the terminal, reorder a line or hide text are escaped.
pub fn line(text: &str) -> String {
    one_line(&Cleaner::whole(text))
}

/// A title on one line, like [`line()`], in which nothing looks blank but the space. Joiners and selectors stay: they take no column.
pub fn title(text: &str) -> String {
    let stays = |character: char| matches!(character, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0020}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}');
    let mut shown = String::new();
    for character in line(text).chars() {
        match is_deceptive(character) && !stays(character) {
            true => shown.extend(character.escape_unicode()),
            false => shown.push(character),
        }
    }
    shown
}

/// A text with its lines, cleaned like [`line()`].
pub fn lines(text: &str) -> String {
    Cleaner::whole(text)
}

/// The output of a program with its lines, cleaned like [`line()`], but without its colours.
pub fn output(text: &str) -> String {
    Cleaner::output(text)
}

/// A number of bytes for people.
pub fn bytes(count: u64) -> String {
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

/// At most `most` characters, invisible ones included; the last is `…` if the text was cut.
pub fn shortened(text: &str, most: usize) -> String {
    hermes_terminal::cut(text, most, |text| text.chars().count())
}

/// The arguments of a call on one short line: its texts and numbers in order.
pub fn arguments(json: &str) -> String {
    const MOST_EACH: usize = 40;
    const MOST: usize = 60;
    let Ok(Value::Object(arguments)) = serde_json::from_str(json) else { return shortened(&exact(json), MOST) };
    let values: Vec<String> = arguments
        .values()
        .filter_map(|value| match value {
            Value::String(text) => Some(shortened(&exact(text), MOST_EACH)),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        })
        .filter(|value| !value.is_empty())
        .collect();
    shortened(&values.join(" "), MOST)
}

/// A line for a call that has ended: `· read_file notes.txt … 12 ms`.
pub fn call(name: &str, json: &str, failure: Option<&str>, elapsed_ms: u64) -> String {
    let called = called(name, json);
    match failure {
        None => format!("· {called} {}", duration(elapsed_ms)),
        Some(why) => {
            let why = shortened(&one_line(&output(why)), 100);
            format!("× {called} failed after {}: {why}", duration(elapsed_ms))
        }
    }
}

/// How the command of a `terminal` call ended, unless it succeeded: the last line of the result says `[exit code 2: …]`.
pub fn end_of_command(tool: &str, result: &str) -> Option<String> {
    const ENDS: [&str; 3] = ["exit code ", "ended by ", "timed out"];
    let mut lines = result.trim_end().lines().rev();
    // A command that went on in the background has one more line.
    let last = lines.find(|line| !line.starts_with("This is program "))?;
    let end = last.strip_prefix('[')?.strip_suffix(']')?.split(':').next()?;
    let is_end = tool == "terminal" && end != "exit code 0" && ENDS.iter().any(|known| end.starts_with(known));
    is_end.then(|| shortened(&line(end), 60))
}

/// The line of a call that was refused: `⊘ patch cart.py … refused: you refused`.
pub fn refused_call(name: &str, json: &str, why: &str) -> String {
    format!("⊘ {} refused: {}", called(name, json), shortened(&one_line(&output(why)), 100))
}

/// The line of a call that was stopped.
pub fn stopped_call(name: &str, json: &str) -> String {
    format!("■ {} stopped", called(name, json))
}

/// A call, up to the dots before its outcome.
fn called(name: &str, json: &str) -> String {
    let called = format!("{} {}", shortened(&exact(name), 60), arguments(json));
    let called = called.trim_end();
    // Arguments that were cut have dots already.
    if called.ends_with('…') { called.to_owned() } else { format!("{called} …") }
}

/// `12 ms`, `3.4 s`, `75 s`.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} s", ms / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_shown_on_one_short_line() {
        for (name, json, failure, expected) in [
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
            ("e\u{1b}[31mvil", "\u{202e}not json", None, r"· e\u{1b}[31mvil \u{202e}not json … 12 ms"),
            ("read_file", r#"{"path":"x\u001b[2J\u200b.txt"}"#, None, r"· read_file x\u{1b}[2J\u{200b}.txt … 12 ms"),
            (
                "terminal",
                "{}",
                Some("\u{1b}[31merror\u{1b}[0m\n\u{8}"),
                r"× terminal … failed after 12 ms: error \u{8}",
            ),
        ] {
            assert_eq!(call(name, json, failure, 12), expected);
        }
        let long = call("write_file", &format!(r#"{{"path":"{0}","content":"{0}"}}"#, "long ".repeat(50)), None, 1_234);
        assert!(long.chars().count() < 100 && long.ends_with("… 1.2 s"), "{long}");
    }

    #[test]
    fn a_command_that_did_not_succeed_says_how_it_ended() {
        for (tool, result, expected) in [
            ("terminal", "make: *** [test] Error 1\n[exit code 2: for make, a rule failed]", Some("exit code 2")),
            ("terminal", "(no output)\n[exit code 3]", Some("exit code 3")),
            ("terminal", "[exit code 5]\n[exit code 0]", None),
            ("terminal", "nope\n[exit code 127: not found]\nThis is program 1.", Some("exit code 127")),
            ("terminal", "[timed out after 180 s: all was ended]", Some("timed out after 180 s")),
            ("terminal", "x\n[ended by SIGKILL (signal 9): killed]", Some("ended by SIGKILL (signal 9)")),
            ("terminal", "(no output)\n[still running]\nThis is program 2: `process` reads it", None),
            ("read_file", "[exit code 2]", None),
            ("terminal", "", None),
        ] {
            assert_eq!(end_of_command(tool, result).as_deref(), expected, "{result}");
        }
    }

    #[test]
    fn a_title_has_no_blank_but_the_space() {
        assert_eq!(
            title("Tea\u{2800}\u{3164} \u{a0} and\n\u{1b}[31mmore"),
            "Tea\\u{2800}\\u{3164} and \\u{1b}[31mmore"
        );
        for plain in [
            "\u{2764}\u{fe0f}\u{200d}\u{1f525} می\u{200c}خواهم",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
        ] {
            assert_eq!(title(plain), plain);
        }
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "message"), counted(1_200, "message")], ["1 message", "1,200 messages"]);
    }
}
