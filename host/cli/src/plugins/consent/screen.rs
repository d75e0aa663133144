//! The layout of the consent screen: labels on the left, foreign text only on their right, and numbered rows.
//!
//! A plugin chooses most of the text here. So every row is wrapped by Hermes and never by the terminal: a continuation
//! begins below the text and not below the labels. The dangerous permissions come last, after their number. If they do
//! not fit on a screen, a short list with one line for each kind follows them, so that the question is always below it.

use std::io::{self, IsTerminal as _, Write as _};

use hermes_app::plugins::{LimitSet, Permissions, Right};
use rustix::termios::tcgetwinsize;

use crate::console::{Console, Tone};
use crate::text::{self, INDENT, NARROWEST, columns, wrapped};

/// Columns of the labels, with the space behind them.
const MARGIN: usize = 12;
/// Most lines of dangerous permissions above the question. More are repeated in short.
const MOST_LINES: usize = 14;
/// Most characters of a foreign text that is only a description.
const MOST_TEXT: usize = 500;
/// Most rows of a list that grants nothing, such as unknown fields.
const MOST_LISTED: usize = 5;

/// Lines for standard error.
pub(crate) struct ConsentScreen {
    console: Console,
    /// Columns of the terminal. None for a file or a pipe, where nothing is wrapped.
    columns: Option<usize>,
    lines: Vec<String>,
}

impl ConsentScreen {
    pub(crate) fn new(console: Console, columns: Option<usize>) -> Self {
        Self { console, columns, lines: Vec::new() }
    }

    /// An empty screen for standard error.
    pub(crate) fn on_stderr(console: Console) -> Self {
        /// Columns of a terminal that does not know its size.
        const USUAL: usize = 80;
        let columns = io::stderr().is_terminal().then(|| {
            let size = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
            if size == 0 { USUAL } else { size }
        });
        Self::new(console, columns)
    }

    /// Writes the screen to standard error.
    pub(crate) fn print(self) {
        let mut text = self.lines.join("\n");
        text.push('\n');
        // A closed standard error cannot be reported anywhere.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    pub(crate) fn lines(self) -> Vec<String> {
        self.lines
    }

    /// A labelled text that only describes. A long one is cut, with the number of the other characters.
    pub(crate) fn row(&mut self, label: &str, text: &str) {
        self.whole(label, &text::exact_within(text, MOST_TEXT));
    }

    /// A labelled text about which the user decides, such as a source: never cut. An empty text has no row.
    pub(crate) fn whole(&mut self, label: &str, text: &str) {
        let text = text::exact(text);
        if !text.is_empty() {
            self.push(label, &text, Tone::Plain);
        }
    }

    /// A labelled text that may be cut after the first rows, with the number of the others.
    pub(crate) fn list(&mut self, label: &str, rows: &[String]) {
        for row in rows.iter().take(MOST_LISTED) {
            self.row(label, row);
        }
        if let Some(more) = rows.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
            self.row(label, &format!("and {more} more"));
        }
    }

    /// A title with numbered rows below it. Returns the number for the next row.
    pub(crate) fn numbered(&mut self, label: &str, title: &str, rows: &[String], first: usize) -> usize {
        self.push(label, title, Tone::Plain);
        for (at, row) in rows.iter().enumerate() {
            self.push(&format!("{}.", first + at), &text::exact(row), Tone::Warning);
        }
        first + rows.len()
    }

    /// Columns that only Hermes writes to.
    pub(crate) fn margin(&self) -> usize {
        if self.is_narrow() { INDENT } else { MARGIN }
    }

    fn is_narrow(&self) -> bool {
        self.columns.is_some_and(|columns| columns < MARGIN + NARROWEST + 1)
    }

    fn width(&self) -> Option<usize> {
        // The last column stays free: some terminals wrap as soon as it is used.
        self.columns.map(|columns| columns.saturating_sub(self.margin() + 1).max(1))
    }

    fn push(&mut self, label: &str, text: &str, tone: Tone) {
        if self.is_narrow() {
            self.lines.push(self.console.tinted(Tone::Faint, label));
            for part in wrapped(text, self.width()) {
                self.lines.push(format!("{:INDENT$}{}", "", self.console.tinted(tone, &part)));
            }
            return;
        }
        let label = self.console.tinted(Tone::Faint, &format!("{label:>11}"));
        for (at, part) in wrapped(text, self.width()).into_iter().enumerate() {
            let part = self.console.tinted(tone, &part);
            self.lines.push(if at == 0 { format!("{label} {part}") } else { format!("{:MARGIN$}{part}", "") });
        }
    }

    /// The permissions and limits that a yes grants, and native code: the dangerous ones last.
    pub(crate) fn agreement(
        &mut self,
        asked: &Permissions,
        limits: &LimitSet,
        native: Option<&str>,
        titles: Titles<'_>,
    ) {
        let raised = limits.iter().map(|(limit, value)| {
            let (name, meaning) = (limit.name(), limit.definition().meaning);
            format!("raise the limit `{name}` to {} ({meaning})", limit.show(value))
        });
        let of = |dangerous: bool| Right::ALL.iter().filter(move |right| right.is_dangerous() == dangerous);
        let ordinary: Vec<String> = of(false).flat_map(|right| right.lines(asked)).chain(raised).collect();
        let mut kinds: Vec<(&str, Vec<String>)> = of(true).map(|right| (right.name(), right.lines(asked))).collect();
        kinds.extend(native.map(|native| ("native", vec![format!("run as a native library: {native}")])));
        kinds.retain(|(_, rows)| !rows.is_empty());
        let dangerous: Vec<String> = kinds.iter().flat_map(|(_, rows)| rows).cloned().collect();
        let count = ordinary.len() + dangerous.len();
        if count == 0 {
            return self.push("permissions", titles.none, Tone::Plain);
        }
        let title = match dangerous.len() {
            0 => format!("{}: {count}", titles.some),
            dangerous => format!("{}: {count}, {dangerous} of them dangerous", titles.some),
        };
        let next = self.numbered("permissions", &title, &ordinary, 1);
        if dangerous.is_empty() {
            return;
        }
        let reach = "with access to your conversations, files, programs, secrets or the web:";
        let before = self.lines.len();
        self.numbered("dangerous", &format!("{} {reach}", dangerous.len()), &dangerous, next);
        if self.lines.len() - before > MOST_LINES {
            self.in_short(&kinds, dangerous.len());
        }
    }

    /// One line for each kind of permission, with the number of its rows.
    fn in_short(&mut self, kinds: &[(&str, Vec<String>)], count: usize) {
        self.push("in short", &format!("{count} dangerous permissions, which are listed above:"), Tone::Plain);
        let width = self.width().unwrap_or(usize::MAX);
        for (name, rows) in kinds {
            let first = rows.first().map_or_else(String::new, |row| text::exact(row));
            let head = format!("{} × {name}: ", text::grouped(rows.len() as u64));
            let room = width.saturating_sub(columns(&head));
            let parts = wrapped(&first, Some(room.saturating_sub(2).max(1)));
            let more = if parts.len() > 1 || rows.len() > 1 { " …" } else { "" };
            let first = parts.first().map_or("", String::as_str);
            self.push("-", &format!("{head}{first}{more}"), Tone::Warning);
        }
    }
}

/// The words above the permissions.
#[derive(Clone, Copy)]
pub(crate) struct Titles<'a> {
    pub(crate) none: &'a str,
    pub(crate) some: &'a str,
}

#[cfg(test)]
#[path = "attack.rs"]
mod attack;
