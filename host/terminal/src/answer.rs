//! The answer to a question.

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One of the letters.
    Key(char),
    /// A typed line.
    Line(String),
    /// One of the offered answers.
    Choice(usize),
    /// Enter, Escape or Ctrl-D, or the terminal is gone.
    Left,
    /// Ctrl-C while nothing else is stopped by it.
    Stopped,
}
