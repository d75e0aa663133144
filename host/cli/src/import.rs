//! `hermes import`: moving in from another program.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use hermes_app::Home;
use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_peer::{Agent, Import, Mode, PartReport, PeerError, PeerHome, Report};
use jiff::Timestamp;
use serde_json::json;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::question;
use crate::text;

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Take over the home of Hermes Agent, the Python program, which stays unchanged
    Peer(PeerArguments),
}

/// The home to take over, and how the user confirms it.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct PeerArguments {
    /// The home of Hermes Agent [default: ~/.hermes]
    path: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Also take keys: those in `.env` that this program knows, and those in settings
    #[arg(long)]
    with_keys: bool,
    /// Only report what would be imported
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: &ImportCommand, console: Console) -> Result<ExitCode, Failure> {
    let ImportCommand::Peer(arguments) = command;
    let home = Home::locate()?;
    // The own home is read afterwards: its error would hide that it is the peer's.
    let peer = PeerHome::find(arguments.path.as_deref(), home.path()).map_err(Diagnostic::from)?;
    let setup = launch::setup(console)?;
    let asks = !arguments.yes && !arguments.dry_run;
    let import = Import::of(&peer, arguments.with_keys).map_err(Diagnostic::from)?;
    if asks || arguments.dry_run {
        let report = import.run(&peer, &setup, Mode::DryRun).await.map_err(Diagnostic::from)?;
        show(&report, true, arguments.json, console)?;
        if arguments.dry_run || !report.has_news() {
            return Ok(ExitCode::SUCCESS);
        }
        // Only now is there something to ask about.
        if !io::stdin().is_terminal() {
            let why = "cannot ask for confirmation: standard input is not a terminal";
            let fix = "add --yes to agree to what is shown above";
            return Err(Failure::new(Kind::Usage, "nothing was imported", why, fix));
        }
        if !question::agreed(&format!("import this into {}?", home.path().display()))? {
            console.note("nothing was imported");
            return Ok(Kind::General.into());
        }
    }
    let now = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    let report = import.run(&peer, &setup, Mode::Write { now }).await.map_err(Diagnostic::from)?;
    show(&report, false, arguments.json, console)?;
    Ok(ExitCode::SUCCESS)
}

/// The cause and the fix of a word in place of a command of `hermes import`: the name of another agent, as in `hermes import claude`,
/// or a home.
pub(crate) fn unknown(command: &str, word: &str) -> Option<(String, String)> {
    if !command.ends_with(" import") {
        return None;
    }
    let path = Path::new(word);
    let error = match Agent::by_word(word) {
        Some(agent) => PeerError::OtherAgent(agent.usable(None)),
        None if path.is_dir() => match PeerHome::find(Some(path), Path::new("")) {
            Ok(_) => {
                let why = format!("there is no command `{word}`");
                return Some((why, format!("write `hermes import peer {word}`")));
            }
            Err(error) => error,
        },
        None => return None,
    };
    let failure = Failure::from(error.diagnose());
    Some((failure.why, failure.fix))
}

fn show(report: &Report, dry_run: bool, json: bool, console: Console) -> Result<(), Failure> {
    if json {
        return print(&text::json(&json!({ "dry_run": dry_run, "parts": report.parts })));
    }
    print(&shown(report, dry_run, console.columns(), |tone, text| console.paint(tone, text)))?;
    console.note(match (report.has_news(), dry_run) {
        (false, _) => "nothing is new: everything that can be imported is here",
        (true, true) => "nothing was written",
        (true, false) => "the home of Hermes Agent is unchanged",
    });
    Ok(())
}

fn shown(report: &Report, dry_run: bool, columns: Option<usize>, paint: impl Fn(Tone, &str) -> String) -> String {
    /// The columns of the longest label with its indent and a space.
    const MARGIN: usize = 12;
    let mut out = String::new();
    for part in &report.parts {
        let PartReport { name, taken, known, rights, changed, left } = part;
        out.push_str(&paint(Tone::Plain, name));
        out.push('\n');
        let kinds = [
            (if dry_run { "would take" } else { "taken" }, Tone::Good, taken),
            ("here", Tone::Faint, known),
            ("effects", Tone::Warning, rights),
            ("changed", Tone::Warning, changed),
            ("left", Tone::Warning, left),
        ];
        for (label, tone, lines) in kinds {
            for (at, line) in lines.iter().enumerate() {
                let label = if at == 0 { format!("  {label}") } else { String::new() };
                out.push_str(&text::labelled(&label, &text::exact(line), MARGIN + 1, columns, |label| {
                    paint(tone, label)
                }));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            parts: vec![PartReport {
                name: "sessions",
                taken: vec![
                    "12 sessions with 3,400 messages".into(),
                    "2 new messages of session peer_a, which continued".into(),
                ],
                known: vec!["3 sessions imported before, without news".into()],
                rights: Vec::new(),
                changed: Vec::new(),
                left: vec!["session x\u{1b}[2J: \nits id is too long".into()],
            }],
        }
    }

    #[test]
    fn a_report_fits_sixty_columns_and_shows_no_control_character() {
        let shown = shown(&report(), true, Some(60), |_, text| text.to_owned());
        assert!(shown.lines().all(|line| text::columns(line) < 60), "{shown}");
        assert!(shown.contains("  would take 12 sessions with 3,400 messages\n"), "{shown}");
        assert!(shown.contains(r"x\u{1b}[2J: its id") && shown.lines().count() == 5 + 1, "{shown}");
    }

    #[test]
    fn a_finished_import_says_what_it_took() {
        let shown = shown(&report(), false, None, |_, text| text.to_owned());
        assert!(shown.starts_with("sessions\n  taken      12 sessions"), "{shown}");
    }
}
