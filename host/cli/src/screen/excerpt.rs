//! What is below the line of a finished call: the changed lines of an edit, the last lines of a command, the first hits of a search.
//! A few rows are shown at once, and a key shows all.

use hermes_protocol::FileDiff;
use serde_json::Value;

use crate::console::Tone;
use crate::text::{self, counted};

/// Rows of an edit.
const OF_EDIT: usize = 10;
/// Rows of a command that succeeded, and of one that did not.
const OF_COMMAND: usize = 3;
const OF_FAILURE: usize = 10;
/// Rows of a search.
const OF_SEARCH: usize = 3;
/// The most rows that can be unfolded. `hermes sessions show` prints the rest.
const MOST: usize = 2_000;
/// In front of each row.
const MARGIN: &str = "    ";

/// What can be shown of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    rows: Vec<(Tone, String)>,
    /// How many are shown at once, and whether these are the last ones.
    at_once: usize,
    is_end: bool,
}

impl Excerpt {
    /// The excerpt of a call; `None` if its line says enough.
    pub(super) fn of(arguments: &str, content: &str, is_success: bool, changes: &[FileDiff]) -> Option<Self> {
        if !changes.is_empty() {
            return Some(Self { rows: changes.iter().flat_map(of_file).collect(), at_once: OF_EDIT, is_end: false });
        }
        let arguments: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
        let has = |name: &str| arguments[name].is_string();
        let at_once = match () {
            () if has("command") && is_success => OF_COMMAND,
            () if has("command") => OF_FAILURE,
            () if is_success && ["pattern", "query", "regex", "glob"].into_iter().any(has) => OF_SEARCH,
            () => return None,
        };
        let is_command = has("command");
        let lines = content.trim_end().lines().filter(|line| !(is_command && is_note(line)));
        let rows: Vec<(Tone, String)> =
            lines.filter(|line| !line.trim().is_empty()).map(|line| (Tone::Faint, text::output(line))).collect();
        // The line of a call that failed has the reason.
        let says_more = !rows.is_empty() && (is_success || rows.len() > 1);
        says_more.then_some(Self { rows, at_once, is_end: is_command })
    }

    /// The rows to show at once, each on one row of the terminal, and how many more there are.
    pub(super) fn begin(&self, columns: Option<usize>) -> (Vec<(Tone, String)>, usize) {
        let hidden = self.rows.len().saturating_sub(self.at_once);
        // A single hidden row takes as much room as the line that says so.
        let hidden = if hidden == 1 { 0 } else { hidden };
        let shown = match self.is_end {
            true => &self.rows[hidden..],
            false => &self.rows[..self.rows.len() - hidden],
        };
        let fitted = |row: &str| columns.map_or_else(|| row.to_owned(), |columns| text::fitted(row, columns));
        (shown.iter().map(|(tone, row)| (*tone, fitted(&format!("{MARGIN}{row}")))).collect(), hidden)
    }

    /// Whether the rows that are shown at once are the last ones.
    pub(super) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Says how many rows are hidden.
    pub(super) fn more(hidden: usize, key: &str) -> String {
        format!("{MARGIN}… {}{key}", counted(hidden as u64, "more line"))
    }

    /// All rows.
    pub(super) fn whole(&self) -> impl Iterator<Item = (Tone, String)> + '_ {
        let left = self.rows.len().saturating_sub(MOST);
        let rest = (left > 0).then(|| (Tone::Faint, Self::more(left, "; `hermes sessions show` prints all")));
        self.rows.iter().take(MOST).map(|(tone, row)| (*tone, format!("{MARGIN}{row}"))).chain(rest)
    }
}

/// A line that a tool adds to the output of a command.
fn is_note(line: &str) -> bool {
    line.starts_with("[exit code ") && line.ends_with(']')
}

fn of_file(change: &FileDiff) -> Vec<(Tone, String)> {
    let path = text::line(&change.path);
    let head = match (change.lines.is_empty(), change.added, change.removed) {
        (true, ..) => format!("{path} (its content is not shown)"),
        (false, added, 0) => format!("{path} +{added}"),
        (false, 0, removed) => format!("{path} -{removed}"),
        (false, added, removed) => format!("{path} +{added} -{removed}"),
    };
    let tone = |line: &str| match line.as_bytes().first() {
        Some(b'+') => Tone::Good,
        Some(b'-') => Tone::Bad,
        _ => Tone::Faint,
    };
    let lines = change.lines.iter().map(|line| (tone(line), text::output(line)));
    let rest =
        (change.left_out > 0).then(|| (Tone::Faint, format!("… {}", counted(change.left_out.into(), "more line"))));
    std::iter::once((Tone::Faint, head)).chain(lines).chain(rest).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rows(excerpt: &Excerpt) -> (Vec<String>, usize) {
        let (rows, hidden) = excerpt.begin(Some(40));
        (rows.into_iter().map(|(_, row)| row.trim_start().to_owned()).collect(), hidden)
    }

    #[test]
    fn a_command_shows_its_last_lines_and_more_of_them_when_it_failed() {
        let output: Vec<String> = (1..=20).map(|line| format!("line {line}")).collect();
        let arguments = r#"{"command":"make"}"#;
        let done = Excerpt::of(arguments, &output.join("\n"), true, &[]).unwrap();
        assert_eq!(rows(&done), (vec!["line 18".into(), "line 19".into(), "line 20".into()], 17));
        let failed = format!("{}\n[exit code 2: for make, a rule failed]\n", output.join("\n"));
        let failed = Excerpt::of(arguments, &failed, false, &[]).unwrap();
        assert_eq!((rows(&failed).0.len(), rows(&failed).0[9].as_str(), rows(&failed).1), (10, "line 20", 10));
        assert_eq!(failed.whole().count(), 20);
        assert_eq!(Excerpt::of(arguments, "\n\n", true, &[]), None);
        assert_eq!(Excerpt::of(arguments, "error: no such program", false, &[]), None, "its line has the reason");
    }

    #[test]
    fn an_edit_shows_its_changed_lines_with_their_signs() {
        let lines = [" one", "-two", "+2"].map(str::to_owned).to_vec();
        let change = FileDiff { path: "cart.py".to_owned(), added: 1, removed: 1, lines, left_out: 3 };
        let edit = Excerpt::of("{}", "done", true, &[change]).unwrap();
        assert_eq!(rows(&edit).0, ["cart.py +1 -1", "one", "-two", "+2", "… 3 more lines"]);
        let tones: Vec<Tone> = edit.begin(None).0.into_iter().map(|(tone, _)| tone).collect();
        assert_eq!(tones, [Tone::Faint, Tone::Faint, Tone::Bad, Tone::Good, Tone::Faint]);
        let binary = FileDiff { path: "a.bin".to_owned(), added: 0, removed: 0, lines: Vec::new(), left_out: 0 };
        assert_eq!(rows(&Excerpt::of("{}", "", true, &[binary]).unwrap()).0, ["a.bin (its content is not shown)"]);
    }

    #[test]
    fn a_search_shows_its_first_hits_and_a_page_of_a_file_nothing() {
        let hits = "a.rs:1: one\na.rs:2: two\na.rs:3: three\na.rs:4: four\na.rs:5: five";
        let found = Excerpt::of(r#"{"pattern":"o"}"#, hits, true, &[]).unwrap();
        assert_eq!(rows(&found), (vec!["a.rs:1: one".into(), "a.rs:2: two".into(), "a.rs:3: three".into()], 2));
        let four: String = hits.lines().take(4).collect::<Vec<_>>().join("\n");
        assert_eq!(rows(&Excerpt::of(r#"{"pattern":"o"}"#, &four, true, &[]).unwrap()).1, 0, "no line hides one line");
        assert_eq!(Excerpt::of(r#"{"path":"a.rs"}"#, hits, true, &[]), None);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_no_row_is_wider_than_the_terminal() {
        let output = format!("\u{1b}[31mred\u{7}\n{}", "wide ".repeat(40));
        let shown = Excerpt::of(r#"{"command":"x"}"#, &output, true, &[]).unwrap();
        let (rows, _) = shown.begin(Some(40));
        assert!(rows.iter().all(|(_, row)| text::columns(row) <= 40 && !row.contains('\u{1b}')), "{rows:?}");
    }
}
