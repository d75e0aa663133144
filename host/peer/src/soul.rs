//! SOUL.md: the identity of the agent in the user's words.

use std::fs;
use std::io::ErrorKind;

use hermes_app::Setup;
use hermes_diagnostic::counted;
use hermes_prompt::scan::{self, Scope};

use crate::report::PartReport;
use crate::{Mode, PeerHome};

const NAME: &str = "SOUL.md";
/// More than fits into a prompt.
const LARGEST: u64 = 1 << 20;
/// How the texts begin that the peer installs.
const INSTALLED: [&str; 2] =
    ["You are Hermes Agent, an intelligent AI assistant created by", "# Hermes Agent Persona\n\n<!--"];

pub(crate) fn import(peer: &PeerHome, setup: &Setup, mode: Mode, report: &mut PartReport) {
    let text = match read(peer) {
        Ok(None) => return,
        Ok(Some(text)) => text,
        Err(why) => return report.left(why),
    };
    if text.trim().is_empty() || (INSTALLED.iter().any(|text_of| text.starts_with(text_of)) && text.len() < 1_500) {
        return report.left("SOUL.md: it is the text that Hermes Agent installs");
    }
    let findings = scan::findings(&text, Scope::Context);
    if !findings.is_empty() {
        let findings = findings.into_iter().collect::<Vec<_>>().join(", ");
        return report.left(format!("SOUL.md: suspicious ({findings}); read it, and copy it by hand"));
    }
    let own = setup.home.path().join(NAME);
    match hermes_private_files::read_text(&own, LARGEST) {
        Ok(here) if here.trim() == text.trim() => return report.known("SOUL.md"),
        // The text that this program writes for the user to change.
        Ok(here) if !here.trim().is_empty() && here.trim() != hermes_prompt::IDENTITY.trim() => {
            return report.left("SOUL.md: another one is here");
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return report.left(format!("SOUL.md: the one here cannot be read: {error}")),
    }
    if let Mode::Write { .. } = mode {
        let written = fs::create_dir_all(setup.home.path())
            .and_then(|()| hermes_private_files::write_whole(&own, text.as_bytes()));
        if let Err(error) = written {
            return report.left(format!("SOUL.md: it cannot be written: {error}"));
        }
    }
    report.taken("SOUL.md");
    report.right(format!("each prompt begins with SOUL.md: {}", quoted(&text)));
}

/// The beginning of a text, and how long it is. The file itself can be read in that home.
fn quoted(text: &str) -> String {
    /// More than fits on a screen would hide the rest of the report.
    const MOST: usize = 1_000;
    let count = text.trim().chars().count();
    let shown: String = text.trim().chars().take(MOST).collect();
    if count > MOST { format!("{shown} … and {} more", counted((count - MOST) as u64, "character")) } else { shown }
}

fn read(peer: &PeerHome) -> Result<Option<String>, String> {
    let Some(file) = peer.within(NAME)? else { return Ok(None) };
    let text = hermes_private_files::read_text(&file, LARGEST);
    text.map(Some).map_err(|error| format!("{NAME} cannot be read: {error}"))
}
