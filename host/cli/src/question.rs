//! Questions that a typed line answers, outside of a chat.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use rustix::termios::{QueueSelector, tcflush};

use crate::failure::{Failure, Kind};
use crate::text;

/// Asks a question, and returns the line that the user types.
pub(crate) fn typed(question: &str) -> Result<String, Failure> {
    let mut err = io::stderr();
    // If the question cannot be shown, the command fails instead of waiting for an answer.
    write!(err, "{} ", text::exact(question)).and_then(|()| err.flush())?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Asks a question. Every answer but `y` or `yes` is a no.
pub(crate) fn agreed(question: &str) -> Result<bool, Failure> {
    Ok(is_yes(&typed(&format!("{question} [y/N]"))?))
}

/// Asks for confirmation. `what` and `fix` describe the failure without a terminal.
pub(crate) fn confirmed(question: &str, what: &str, fix: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let why = "cannot ask for confirmation: standard input is not a terminal";
        return Err(Failure::new(Kind::Usage, what, why, fix));
    }
    agreed(question)
}

/// Asks for consent. Every answer but `y` or `yes` is a no. `what` and `fix` describe the failure without a terminal.
pub(crate) fn consented(question: &str, what: &str, fix: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let why = "cannot ask for consent: standard input is not a terminal";
        return Err(Failure::new(Kind::Usage, what, why, fix));
    }
    // Keys typed before the question was shown must not answer it.
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(io::Error::from)?;
    agreed(question)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for yes in ["y", "Y\n", " yes \r\n", "YES"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n", "no", "yess", "j"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
