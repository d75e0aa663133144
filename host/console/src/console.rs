//! Output to standard output and standard error: colour only on a terminal, and no error if the reader closes the pipe.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hermes_terminal::{Color, Colours, Modifier, Style, Ui};
use serde::Serialize;

use crate::failure::{Failure, Kind};
use crate::text;

/// The properties of the two streams.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    /// Whether standard output is a terminal.
    pub screen: bool,
    /// Whether standard error is a terminal.
    stderr: bool,
    colour: bool,
    /// Whether the terminal knows nothing but lines.
    dumb: bool,
}

/// The colour of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The colour of the terminal.
    Plain,
    /// Text beside what matters.
    Faint,
    /// A failure.
    Bad,
    /// Something that the user should correct.
    Warning,
    /// A success.
    Good,
}

impl Tone {
    /// The same for text that is drawn.
    pub fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
            Tone::Bad => Style::new().fg(Color::Red),
            Tone::Warning => Style::new().fg(Color::Yellow),
            Tone::Good => Style::new().fg(Color::Green),
        }
    }

    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "0",
            Tone::Faint => "2",
            Tone::Bad => "31",
            Tone::Warning => "33",
            Tone::Good => "32",
        }
    }
}

impl Console {
    /// The streams of this process. `NO_COLOR` and `TERM=dumb` turn colours off.
    pub fn of_process() -> Self {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self {
            screen: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
            colour: !no_colour && !dumb,
            dumb,
        }
    }

    /// Whether the terminal knows nothing but lines (`TERM=dumb`).
    pub fn is_dumb(self) -> bool {
        self.dumb
    }

    /// A console without colours, for tests.
    pub fn plain(screen: bool) -> Self {
        Self { screen, stderr: false, colour: false, dumb: false }
    }

    /// A console with colours, for tests.
    pub fn coloured() -> Self {
        Self { screen: true, stderr: false, colour: true, dumb: false }
    }

    /// Whether a line on standard error can be overwritten.
    pub fn can_overwrite_stderr(self) -> bool {
        self.stderr && self.colour && !is_drawing()
    }

    /// Whether a chat can draw: standard input, output and error are a terminal that obeys more than line feeds.
    pub fn can_draw(self) -> bool {
        let is_known = std::env::var_os("TERM").is_some_and(|value| !value.is_empty());
        self.screen && self.stderr && !self.dumb && is_known && io::stdin().is_terminal()
    }

    /// What is drawn with.
    pub fn colours(self) -> Colours {
        if self.colour { Colours::Shown } else { Colours::Styles }
    }

    /// A text for standard output.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        painted(self.screen && self.colour, tone, text)
    }

    /// A text for standard error.
    pub fn tinted(self, tone: Tone, text: &str) -> String {
        painted(self.stderr && self.colour, tone, text)
    }

    /// The sequences before and after a text that arrives in pieces.
    pub fn around(self, tone: Tone) -> (String, &'static str) {
        if self.screen && self.colour { (begin(tone), END) } else { (String::new(), "") }
    }

    /// Columns of standard output. None for a file, a pipe, and a terminal that does not know its size: nothing is wrapped there.
    pub fn columns(self) -> Option<usize> {
        self.screen.then(|| width_of(io::stdout())).flatten()
    }

    /// A line for standard output. On a terminal its continuations are indented, so that none looks like a line of Hermes.
    pub fn hanging(self, line: &str, indent: usize) -> String {
        text::hanging(line, indent, self.columns()).join("\n") + "\n"
    }

    /// A report for standard output, line by line like [`Console::hanging`].
    pub fn report_text(self, report: &str) -> String {
        if self.columns().is_none() {
            return report.to_owned();
        }
        let mut lines: Vec<String> = Vec::new();
        for line in report.lines() {
            match (lines.last_mut(), line.strip_prefix("  ")) {
                // The report has broken this paragraph for a wider page.
                (Some(last), Some(rest)) if last.starts_with("- ") => last.push_str(&format!(" {rest}")),
                _ => lines.push(line.to_owned()),
            }
        }
        lines.iter().map(|line| self.hanging(line, 2)).collect()
    }

    /// Writes a note to standard error.
    pub fn note(self, text: &str) {
        self.labelled("note", Tone::Faint, text);
    }

    /// Writes a warning to standard error: something that the user should correct.
    pub fn warning(self, text: &str) {
        self.labelled("warning", Tone::Warning, text);
    }

    fn labelled(self, label: &str, tone: Tone, text: &str) {
        self.write_note(&self.beside(&format!("{label}:"), tone, &text::line(text)));
    }

    /// A text for standard error beside its label. On a terminal its continuations are below it.
    fn beside(self, label: &str, tone: Tone, text: &str) -> String {
        let columns = self.stderr.then(|| width_of(io::stderr())).flatten();
        let margin = label.len() + 1;
        let mut lines = text::hanging(&format!("{label} {text}"), margin, columns);
        if let Some(rest) = lines.first().and_then(|first| first.strip_prefix(label)).map(str::to_owned) {
            lines[0] = painted(self.stderr && self.colour, tone, label) + &rest;
        }
        lines.join("\n") + "\n"
    }

    /// Writes the three lines of a failure to standard error.
    pub fn report(self, failure: &Failure) {
        if failure.kind == Kind::ReaderGone {
            return;
        }
        let mut report = String::new();
        for (label, text) in failure.lines() {
            let is_error = label == "error";
            let tone = if is_error { Tone::Bad } else { Tone::Faint };
            let code = format!(" [{}]", failure.code);
            let text = text::line(&text) + if is_error { &code } else { "" };
            let lines = self.beside(&format!("{label:>5}:"), tone, &text);
            let lines = lines.trim_end();
            let painted = lines.strip_suffix(code.trim_start()).filter(|_| is_error);
            match painted {
                Some(before) => report.push_str(&(before.to_owned() + &self.tinted(Tone::Faint, code.trim_start()))),
                None => report.push_str(lines),
            }
            report.push('\n');
        }
        self.write_note(&report);
    }

    fn write_note(self, text: &str) {
        let drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        match drawing.filter(|_| self.stderr) {
            Some(ui) => ui.print_painted(text),
            // A closed standard error cannot be reported anywhere.
            None => drop(io::stderr().write_all(text.as_bytes())),
        }
    }

    /// Foreign text for standard output: cleaned for a terminal, unchanged for a script.
    pub fn shown(self, text: &str) -> String {
        if self.screen { text::lines(text) } else { text.to_owned() }
    }
}

/// The terminal that is drawn. What is written to standard error meanwhile is printed above what it draws.
static DRAWING: Mutex<Weak<Ui>> = Mutex::new(Weak::new());

/// Prints notes above what is drawn from now on, or to standard error.
pub fn draw_notes_with(ui: Option<&Arc<Ui>>) {
    *DRAWING.lock().unwrap_or_else(PoisonError::into_inner) = ui.map(Arc::downgrade).unwrap_or_default();
}

/// Whether a terminal is drawn now.
pub fn is_drawing() -> bool {
    DRAWING.lock().unwrap_or_else(PoisonError::into_inner).strong_count() > 0
}

/// The columns of a terminal that knows its size.
#[cfg(unix)]
fn width_of(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn width_of(_: impl Write) -> Option<usize> {
    None
}

const END: &str = "\u{1b}[0m";

/// A text for a terminal, in which of all sequences only the colours of Hermes remain.
pub fn checked(text: &str) -> Cow<'_, str> {
    Cow::Owned(text::Cleaner::but_own_colours(text))
}

fn begin(tone: Tone) -> String {
    format!("\u{1b}[{}m", tone.code())
}

fn painted(colour: bool, tone: Tone, text: &str) -> String {
    if colour && tone != Tone::Plain { format!("{}{text}{END}", begin(tone)) } else { text.to_owned() }
}

/// Writes to standard output, and flushes it. On a terminal only the colours of Hermes pass, even if a caller forgot to
/// clean foreign text.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() { checked(text) } else { Cow::Borrowed(text) };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::from)
}

/// The same, for a command that ends with it.
pub fn printed(text: &str) -> Result<ExitCode, Failure> {
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints JSON as the end of a command.
pub fn printed_json(value: &impl Serialize) -> Result<ExitCode, Failure> {
    printed(&text::json(&serde_json::json!(value)))
}
