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
