//! Questions that a typed line answers, outside of a chat.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use hermes_terminal::{Candidate, Chooser, Picker};
use rustix::termios::{QueueSelector, tcflush};

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::text;

/// Asks a question, and returns the line that the user types; an empty one if the input has ended.
pub(crate) fn typed(question: &str) -> Result<String, Failure> {
    Ok(line(question)?.unwrap_or_default())
}

/// The same; `None` if the input has ended.
fn line(question: &str) -> Result<Option<String>, Failure> {
    let mut err = io::stderr();
    // If the question cannot be shown, the command fails instead of waiting for an answer.
    write!(err, "{} ", text::exact(question)).and_then(|()| err.flush())?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

/// Lets the user choose a row of a list; `None` if the user wants none. One row is selected.
///
/// A terminal that cannot be drawn on gets the rows with numbers, and a line with a number or with words of rows is typed.
pub(crate) fn chosen(
    title: &str,
    rows: Vec<Candidate>,
    selected: usize,
    console: Console,
) -> Result<Option<usize>, Failure> {
    if console.can_draw() {
        return Ok(Chooser::open(console.colours())?.pick(Picker::new(title, rows, selected)));
    }
    let mut words = String::new();
    loop {
        let found: Vec<usize> = (0..rows.len()).filter(|at| has_words(&rows[*at], &words)).collect();
        for at in &found {
            let row = format!("{:>4}  {}  {}", at + 1, rows[*at].text, rows[*at].about);
            writeln!(io::stderr(), "{}", text::line(row.trim_end()))?;
        }
        let ways = format!("{title} A number, words to search, q to leave; Enter takes {}:", selected + 1);
        let typed = match line(&ways)? {
            None => return Ok(None),
            Some(typed) if typed == "q" => return Ok(None),
            Some(typed) if typed.is_empty() => return Ok(Some(selected)),
            Some(typed) => typed,
        };
        if let Some(at) = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1))
            && at < rows.len()
        {
            return Ok(Some(at));
        }
        words = match rows.iter().any(|row| has_words(row, &typed)) {
            true => typed,
            false => {
                console.note("no row has this number, or all of these words");
                String::new()
            }
        };
    }
}

/// Whether a row has all the words, whatever their case.
fn has_words(row: &Candidate, words: &str) -> bool {
    let text = format!("{} {}", row.text, row.about).to_lowercase();
    words.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
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
