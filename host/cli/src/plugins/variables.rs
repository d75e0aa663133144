//! Variables that a plugin cannot do without, asked for on a terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use hermes_plugin_host::RequiredVariable;

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::text;

/// Asks for the values of variables on a terminal; elsewhere it names them.
pub(super) fn ask_for(unset: &[&RequiredVariable], console: Console) -> Result<Vec<(String, String)>, Failure> {
    let mut typed = Vec::new();
    for wanted in unset {
        let value = if io::stdin().is_terminal() { read(wanted)? } else { String::new() };
        if value.is_empty() {
            let place = wanted.url.as_ref().map_or_else(String::new, |url| format!(" (see {url})"));
            console.warning(&format!("{} is not set, and it needs it{place}; set it in .env", wanted.name.as_str()));
        } else {
            typed.push((wanted.name.as_str().to_owned(), value));
        }
    }
    Ok(typed)
}

fn read(wanted: &RequiredVariable) -> Result<String, Failure> {
    let mut err = io::stderr();
    let prompt = if wanted.prompt.is_empty() { wanted.name.as_str() } else { &wanted.prompt };
    let place = wanted.url.as_ref().map_or_else(String::new, |url| format!(" (see {url})"));
    let hidden = if wanted.secret { ", hidden" } else { "" };
    let question = text::line(&format!("{prompt}{place} [{}{hidden}; Enter to leave it out]:", wanted.name.as_str()));
    write!(err, "{question} ").and_then(|()| err.flush())?;
    let quiet = wanted.secret.then(Quiet::begin).transpose()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if quiet.is_some() {
        writeln!(err)?;
    }
    drop(quiet);
    if line.contains('\u{3}') {
        return Err(Failure::new(Kind::Interrupted, "nothing was changed", "you pressed ctrl-c", "try again"));
    }
    let value = line.trim().to_owned();
    if value.chars().any(char::is_control) {
        let why = format!("the value of {} has a control character in it", wanted.name.as_str());
        return Err(Failure::new(Kind::Usage, "nothing was changed", why, "try again, or set it in .env by hand"));
    }
    Ok(value)
}

/// A terminal that does not show what is typed, until it is dropped. Ctrl-C is a key meanwhile, or it would leave the
/// terminal mute.
struct Quiet(rustix::termios::Termios);

impl Quiet {
    fn begin() -> Result<Self, Failure> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let failed = |error: rustix::io::Errno| Failure::from(io::Error::from(error));
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet).map_err(failed)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}
