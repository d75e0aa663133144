//! Variables that a plugin cannot do without: asked for on a terminal, kept in `.env`.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use hermes_plugin_host::{Manifest, RequiredVariable};

use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::text;
use hermes_config::Environment;
use hermes_private_files::append_file;

/// A variable and what was typed for it.
pub(super) type Typed = Vec<(String, String)>;

/// Those that are not set.
pub(super) fn unset<'a>(
    manifest: &'a Manifest,
    environment: &'a Environment,
) -> impl Iterator<Item = &'a RequiredVariable> {
    manifest.requires_env.iter().filter(|wanted| environment.var(wanted.name.as_str()).is_none())
}

/// Asks for those that are not set; where nobody can be asked, they are named.
pub(super) fn ask_for(manifest: &Manifest, environment: &Environment, console: Console) -> Result<Typed, Failure> {
    let mut typed = Typed::new();
    for wanted in unset(manifest, environment) {
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

/// Writes what was typed behind what `.env` holds.
pub(super) fn keep(dotenv: &Path, typed: &[(String, String)]) -> Result<(), Failure> {
    if typed.is_empty() {
        return Ok(());
    }
    let before = std::fs::read(dotenv).unwrap_or_default();
    let mut lines = String::new();
    if before.last().is_some_and(|byte| *byte != b'\n') {
        lines.push('\n');
    }
    for (name, value) in typed {
        lines.push_str(&format!("{name}={}\n", quoted(value)));
    }
    let written = append_file(dotenv).and_then(|mut file| file.write_all(lines.as_bytes()));
    written.map_err(|error| {
        let names: Vec<&str> = typed.iter().map(|(name, _)| name.as_str()).collect();
        let why = format!("{}: {error}", dotenv.display());
        Failure::new(Kind::Configuration, "the values were not kept", why, format!("set {} by hand", names.join(", ")))
    })
}

/// As `.env` is read: single quotes keep everything but themselves.
fn quoted(value: &str) -> String {
    if !value.contains('\'') {
        return format!("'{value}'");
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
    format!("\"{escaped}\"")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let dotenv = folder.path().join(".env");
        std::fs::write(&dotenv, "HERMES_T_FIRST=1").unwrap();
        let values = ["plain", "with blank # and hash", "it's \"both\" \\ $HOME", "$(x) `y`"];
        let typed: Typed =
            (0..).zip(values).map(|(number, value)| (format!("HERMES_T_{number}"), value.to_owned())).collect();
        keep(&dotenv, &typed).unwrap();
        let environment = Environment::read(&dotenv);
        assert!(environment.warnings().is_empty(), "{:?}", environment.warnings());
        assert_eq!(environment.var("HERMES_T_FIRST").as_deref(), Some("1"));
        for (name, value) in typed {
            assert_eq!(environment.var(&name), Some(value));
        }
    }
}
