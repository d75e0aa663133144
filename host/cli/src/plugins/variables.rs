//! Asks on a terminal for the values of variables that a plugin requires.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use hermes_app::plugins::RequiredVariable;

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::text;

/// Asks for the values of unset variables. Warns about a variable without a value, and about all of them without a
/// terminal.
pub(super) fn ask_for(unset: &[&RequiredVariable], console: Console) -> Result<Vec<(String, String)>, Failure> {
    let mut typed = Vec::new();
    for wanted in unset {
        let value = if io::stdin().is_terminal() { read(wanted)? } else { String::new() };
        if value.is_empty() {
            let place = wanted.url.as_ref().map_or_else(String::new, |url| format!(" (see {url})"));
            let name = wanted.name.as_str();
            console.warning(&format!("the plugin requires {name}, which is not set{place}; set it in .env"));
        } else {
            typed.push((wanted.name.as_str().to_owned(), value));
        }
    }
    Ok(typed)
}

/// Asks for one value; empty if the user skips it.
pub(crate) fn read(wanted: &RequiredVariable) -> Result<String, Failure> {
    let prompt = if wanted.prompt.is_empty() { wanted.name.as_str() } else { &wanted.prompt };
    let place = wanted.url.as_ref().map_or_else(String::new, |url| format!(" (see {url})"));
    let hidden = if wanted.secret { ", hidden" } else { "" };
    let name = wanted.name.as_str();
    read_value(&format!("{prompt}{place} [{name}{hidden}; Enter to skip]:"), name, wanted.secret)
}

/// Asks for the value of the variable `name`; empty if the user skips it. A hidden value is not shown while it is typed.
pub(crate) fn read_value(question: &str, name: &str, is_hidden: bool) -> Result<String, Failure> {
    let mut err = io::stderr();
    // Before the question: an answer that comes at once would be shown, and then dropped with the typed-ahead input.
    let echo_off = is_hidden.then(EchoOff::new).transpose()?;
    write!(err, "{} ", text::exact(question)).and_then(|()| err.flush())?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if echo_off.is_some() {
        writeln!(err)?;
    }
    drop(echo_off);
    if line.contains('\u{3}') {
        return Err(Failure::new(Kind::Interrupted, "nothing was changed", "you pressed ctrl-c", "try again"));
    }
    let value = line.trim().to_owned();
    if value.chars().any(char::is_control) {
        let why = format!("the value of {name} contains a control character");
        return Err(Failure::new(Kind::Usage, "nothing was changed", why, "try again, or set it in .env by hand"));
    }
    Ok(value)
}

/// Turns the echo of the terminal off until it is dropped. Signals are off too: Ctrl-C would end the process and leave
/// the echo off.
pub(super) struct EchoOff(rustix::termios::Termios);

impl EchoOff {
    pub(super) fn new() -> Result<Self, Failure> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let failed = |error: rustix::io::Errno| Failure::from(io::Error::from(error));
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent).map_err(failed)?;
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}
