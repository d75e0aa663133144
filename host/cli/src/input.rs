//! What the user gives the chat, on whatever terminal.

/// The number of lines in the history.
pub(crate) const HISTORY_LINES: usize = 1_000;

/// An input of the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A message, or a command.
    Text(String),
    /// Shift-Tab, with what was typed so far: the next mode.
    NextMode(String),
    /// Ctrl-C without a text.
    Interrupted,
    /// The user wants to write the text in an editor.
    Editor,
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// Whether a text ends with a backslash that continues the line. Two backslashes are a literal one.
pub(crate) fn is_continued(text: &str) -> bool {
    text.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1
}

/// Joins continued lines, and removes the backslashes that continued them.
pub(crate) fn joined(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let last = lines.len() - 1;
    let lines: Vec<&str> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| if at < last && is_continued(line) { &line[..line.len() - 1] } else { line })
        .collect();
    lines.join("\n")
}
