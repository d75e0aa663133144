//! Reads the lines of a chat: from a terminal with editing and history, or from a pipe.

use std::io::{self, BufRead, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_app::files::append_file;
use hermes_terminal::{Candidates, Written};
use rustyline::completion::Completer;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Context, Editor, Event, EventContext, EventHandler, Helper, KeyCode,
    KeyEvent, Modifiers, Movement, RepeatCount,
};

use crate::completion::Completion;
use crate::input::{HISTORY_LINES, Input, is_continued, joined};
use crate::live::Live;

/// The source of inputs.
pub(crate) enum Lines {
    /// A terminal, with editing.
    Terminal(Box<Terminal>),
    /// A terminal that is drawn.
    Live(Live),
    /// Standard input, line by line.
    Pipe,
}

/// A terminal with its history.
pub(crate) struct Terminal {
    editor: Editor<Assistance, FileHistory>,
    history: PathBuf,
    /// Whether the last line ended with Shift-Tab.
    switches: Arc<AtomicBool>,
    /// Whether the begin of the line may be pasted.
    is_pasted: Arc<AtomicBool>,
}

impl Lines {
    /// Opens the terminal, or the pipe if standard input is not a terminal.
    pub(crate) fn open(history: PathBuf, completion: &Completion) -> io::Result<Self> {
        if !io::IsTerminal::is_terminal(&io::stdin()) {
            return Ok(Self::Pipe);
        }
        let config = rustyline::Config::builder().max_history_size(HISTORY_LINES).map_err(other)?;
        let config = config.completion_type(CompletionType::List).build();
        let mut editor: Editor<Assistance, FileHistory> = Editor::with_config(config).map_err(other)?;
        editor.set_history_ignore_space(true);
        let switches = Arc::new(AtomicBool::new(false));
        editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(ClearsText)));
        editor.set_helper(Some(Assistance(completion.clone())));
        let key = KeyEvent(KeyCode::BackTab, Modifiers::NONE);
        editor.bind_sequence(key, EventHandler::Conditional(Box::new(SwitchMode(Arc::clone(&switches)))));
        let is_pasted = Arc::new(AtomicBool::new(false));
        for key in ['!'.into(), KeyEvent(KeyCode::BracketedPasteStart, Modifiers::NONE)] {
            let begins =
                BeginsLine { is_paste: key.0 == KeyCode::BracketedPasteStart, is_pasted: Arc::clone(&is_pasted) };
            editor.bind_sequence(key, EventHandler::Conditional(Box::new(begins)));
        }
        // Create the file here, with permissions for its owner only.
        drop(append_file(&history)?);
        if let Err(error) = editor.load_history(&history) {
            tracing::warn!(%error, path = %history.display(), "the history cannot be read");
        }
        Ok(Self::Terminal(Box::new(Terminal { editor, history, switches, is_pasted })))
    }

    /// Whether the input comes from a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_) | Self::Live(_))
    }

    /// The terminal, if it is drawn.
    pub(crate) fn live(&self) -> Option<&Live> {
        match self {
            Self::Live(live) => Some(live),
            Self::Terminal(_) | Self::Pipe => None,
        }
    }

    /// Waits for the next input, and blocks the thread. At a terminal the line is behind the prompt and begins with what the user has
    /// typed already.
    pub(crate) fn read(&mut self, prompt: &str, begun: &str) -> io::Result<Input> {
        match self {
            Self::Terminal(terminal) => terminal.read(prompt, begun),
            Self::Live(live) => Ok(live.read(begun)),
            Self::Pipe => read_line(&mut io::stdin().lock()),
        }
    }
}

impl Terminal {
    fn read(&mut self, prompt: &str, begun: &str) -> io::Result<Input> {
        // The user sees the begun text before sending it, so it does not count as pasted unseen.
        self.is_pasted.store(false, Ordering::Relaxed);
        let text = match self.editor.readline_with_initial(prompt, (begun, "")) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => return Ok(Input::Interrupted),
            Err(ReadlineError::Eof) => return Ok(Input::End),
            Err(error) => return Err(other(error)),
        };
        if self.switches.swap(false, Ordering::Relaxed) {
            return Ok(Input::NextMode(text));
        }
        let is_command = !self.is_pasted.load(Ordering::Relaxed);
        let text = Written { text, is_command }.as_line();
        if !text.trim().is_empty() && self.editor.add_history_entry(text.as_str()).unwrap_or(false) {
            // A history that cannot be written must not end the chat.
            if let Err(error) = self.editor.append_history(&self.history) {
                tracing::warn!(%error, path = %self.history.display(), "the history cannot be written");
            }
        }
        Ok(Input::Text(joined(&text)))
    }
}

fn other(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        error => io::Error::other(error),
    }
}

/// The most bytes of a message from a pipe. No model's window is larger.
pub(crate) const LARGEST_INPUT: usize = 16 << 20;
pub(crate) const TOO_LONG: &str = "it has more than 16 MiB, and no model's window is as large";

/// Reads a line from a pipe, and further lines as long as they end with a backslash.
fn read_line(pipe: &mut impl BufRead) -> io::Result<Input> {
    let mut text = String::new();
    loop {
        let read = pipe.by_ref().take((LARGEST_INPUT - text.len()) as u64 + 1).read_line(&mut text)?;
        if text.len() > LARGEST_INPUT {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, TOO_LONG));
        }
        if read == 0 {
            return Ok(if text.is_empty() { Input::End } else { Input::Text(joined(&text)) });
        }
        if !is_continued(text.trim_end_matches(['\n', '\r'])) {
            return Ok(Input::Text(joined(text.trim_end_matches(['\n', '\r']))));
        }
    }
}

/// Sees whether the begin of a line is typed or pasted: a pasted `!` is text.
struct BeginsLine {
    is_paste: bool,
    is_pasted: Arc<AtomicBool>,
}

impl ConditionalEventHandler for BeginsLine {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        // A paste may become the beginning of the line when the text before it is deleted, unless that text is a typed `!`.
        if context.pos() == 0 || (self.is_paste && !context.line().starts_with('!')) {
            self.is_pasted.store(self.is_paste, Ordering::Relaxed);
        }
        None
    }
}

/// Ends the line with Shift-Tab.
struct SwitchMode(Arc<AtomicBool>);

impl ConditionalEventHandler for SwitchMode {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

/// Ctrl-C clears a text. The text stays where Ctrl-Y finds it.
struct ClearsText;

impl ConditionalEventHandler for ClearsText {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        Some(match context.line().is_empty() {
            true => Cmd::Interrupt,
            false => Cmd::Kill(Movement::WholeBuffer),
        })
    }
}

/// Completes commands, skills and files, and continues lines after a backslash.
struct Assistance(Completion);

impl Helper for Assistance {}
impl Highlighter for Assistance {}

impl Hinter for Assistance {
    type Hint = String;
}

impl Completer for Assistance {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        /// Who presses Tab waits a moment for the names of the files.
        const PATIENCE: Duration = Duration::from_secs(1);
        let Candidates { begin, list } = self.0.complete_within(&line[..at], PATIENCE);
        Ok((begin, list.into_iter().map(|candidate| candidate.text).collect()))
    }
}

impl Validator for Assistance {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let more = is_continued(context.input());
        Ok(if more { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_at_the_end_of_a_line_continues_it() {
        let mut pipe = "one\\\ntwo\\\nthree\nfour\\\\\nfive\\\n".as_bytes();
        let mut read = || read_line(&mut pipe).unwrap();
        assert_eq!(read(), Input::Text("one\ntwo\nthree".to_owned()));
        assert_eq!(read(), Input::Text("four\\\\".to_owned()));
        assert_eq!(read(), Input::Text("five\n".to_owned()));
        assert_eq!(read(), Input::End);
    }

    #[test]
    fn a_pasted_text_keeps_its_lines() {
        assert_eq!(joined("a\r\nb\n\nc"), "a\nb\n\nc");
    }
}
