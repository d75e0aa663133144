//! The consent screen of a skill: what it is, where it comes from, its files, and what the scan found.
//!
//! The skill chooses most of the text here, so it is shown on the sheet of plugins: cleaned, wrapped by Hermes, and never in
//! the column of the labels. The question comes last.

use std::io::{self, IsTerminal as _};

use hermes_app::operations::{SkillConsent, SkillOffer};
use hermes_app::skills::Suspicion;

use super::files::{changed, is_program};
use super::listing::{declared, guessed};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::plugins::consent::screen::ConsentScreen;
use crate::question;
use crate::text;

/// Most files, and most changes, that are listed. The number of all of them is above the list.
const MOST_LISTED: usize = 20;
/// Most programs, and most suspicious passages, that are listed.
const MOST_WARNED: usize = 40;
/// Asks on the terminal, or agrees by `--yes`.
pub(super) struct Terminal {
    pub(super) console: Console,
    pub(super) yes: bool,
}

impl Terminal {
    /// Fails at once where `--accept` would lead to a question that nobody can answer.
    pub(super) fn can_settle(&self, accepts: bool, done: &str) -> Result<(), Failure> {
        if self.yes || !accepts || io::stdin().is_terminal() {
            return Ok(());
        }
        let why =
            "--accept agrees to what the scan found, and not to the rest, and there is no terminal on which to ask";
        Err(Failure::new(Kind::Usage, format!("nothing was {done}"), why, "add --yes behind --accept DIGEST"))
    }
}

/// Adds a title and rows that only describe; the last ones as a number.
fn listed(sheet: &mut ConsentScreen, label: &str, title: &str, rows: impl ExactSizeIterator<Item = String>) {
    let more = rows.len().saturating_sub(MOST_LISTED);
    sheet.row(label, title);
    rows.take(MOST_LISTED).for_each(|row| sheet.row("-", &row));
    if more > 0 {
        sheet.row("-", &format!("and {more} more"));
    }
}

/// Adds a title and numbered rows that are a warning; the last ones as a number.
fn warned(sheet: &mut ConsentScreen, label: &str, none: &str, title: &str, rows: &[String]) {
    if rows.is_empty() {
        return sheet.row(label, none);
    }
    sheet.numbered(label, title, &rows[..rows.len().min(MOST_WARNED)], 1);
    if rows.len() > MOST_WARNED {
        sheet.row("-", &format!("and {} more", rows.len() - MOST_WARNED));
    }
}

impl SkillConsent for Terminal {
    type Error = Failure;

    fn is_unattended(&self) -> bool {
        self.yes || !io::stdin().is_terminal()
    }

    fn agree(&self, offer: &SkillOffer<'_>) -> Result<bool, Failure> {
        let SkillOffer { skill, review, is_update, changes, .. } = offer;
        let (header, entry, before) = (&skill.header, &skill.entry, &skill.replacing);
        let mut sheet = ConsentScreen::on_stderr(self.console);
        sheet.whole("skill", &header.name);
        // The model reads all of it in every session.
        sheet.whole("description", &header.description);
        sheet.row("version", &header.version);
        sheet.row("license", &header.license);
        sheet.row("needs", &header.compatibility);
        sheet.whole("source", &entry.source);
        sheet.whole("in source", &entry.path);
        sheet.whole("revision", entry.resolved.as_deref().unwrap_or_default());
        sheet.row("digest", &entry.digest.to_string());
        sheet.list("programs", &header.programs);
        sheet.list("variables", &header.variables.iter().map(declared).collect::<Vec<_>>());
        sheet.list("settings", &header.settings.iter().map(declared).collect::<Vec<_>>());
        sheet.list("credentials", &header.credentials);
        if let Some(why) = &header.guessed {
            sheet.row("front matter", &guessed(why));
        }
        let size: u64 = skill.files.iter().map(|file| file.bytes.len() as u64).sum();
        let size = format!("{}, {}", text::counted(skill.files.len() as u64, "file"), text::bytes(size));
        if before.is_there {
            sheet.row("files", &size);
            let differing = format!("{} differ from what is there now:", text::counted(changes.len() as u64, "file"));
            listed(&mut sheet, "changes", &differing, changes.iter().map(changed));
        } else {
            listed(
                &mut sheet,
                "files",
                &format!("{size}:"),
                skill.files.iter().map(|file| format!("{} ({})", file.name, text::bytes(file.bytes.len() as u64))),
            );
        }
        let programs: Vec<String> =
            skill.files.iter().filter(|file| is_program(file)).map(|file| file.name.clone()).collect();
        let count = text::counted(programs.len() as u64, "program");
        let title = format!("{count} that the skill may ask the model to start:");
        warned(&mut sheet, "scripts", "none", &title, &programs);
        let explained = |found: &[Suspicion]| found.iter().map(Suspicion::explained).collect::<Vec<_>>();
        let (blocked, asked) = (explained(&review.blocked), explained(&review.asked));
        let noted: Vec<String> = review.noted.iter().map(ToString::to_string).collect();
        let passages = |found: &[String]| text::counted(found.len() as u64, "suspicious passage");
        if !blocked.is_empty() {
            let title = format!("{} that the scan refuses, and that you accept by the digest:", passages(&blocked));
            warned(&mut sheet, "refused", "", &title, &blocked);
        }
        if !asked.is_empty() {
            let title = format!("{} that the text marks as an example, or that may hide something:", passages(&asked));
            warned(&mut sheet, "to read", "", &title, &asked);
        }
        if (blocked.is_empty() && asked.is_empty()) || !noted.is_empty() {
            let title = format!("{}, which may be harmless:", passages(&noted));
            warned(&mut sheet, "scan", "nothing found; that does not prove that the skill is harmless", &title, &noted);
        }
        sheet.print();
        self.warn(offer);
        // A mark is no proof, so somebody has to read these lines.
        if self.is_unattended() && !asked.is_empty() && !offer.is_accepted {
            let digest = entry.digest;
            let why = unread(self.yes, &passages(&asked));
            let fix = format!(
                "answer the question in a terminal, or add `--accept {digest} --yes` after reading these lines"
            );
            return Err(Failure::new(Kind::Plugin, "nothing was changed", why, fix));
        }
        if self.yes {
            return Ok(true);
        }
        let question = match (is_update, before.is_there) {
            (true, true) => "update the skill?",
            (_, true) => "replace the skill that is there?",
            (_, false) => "install the skill?",
        };
        question::consented(question, "nothing was changed", "add --yes to agree to what is shown")
    }
}

/// Why passages that a person has to read stop an installation that nobody watches.
fn unread(yes: bool, passages: &str) -> String {
    match yes {
        true => format!("--yes does not agree to {passages} that a person has to read"),
        false => format!("a person has to read {passages}, and there is no terminal on which to ask"),
    }
}

impl Terminal {
    /// Says what would be lost.
    fn warn(&self, offer: &SkillOffer<'_>) {
        let before = &offer.skill.replacing;
        match &before.entry {
            None if before.is_there => {
                self.console.warning("the skill of this name in your skills folder is your own, and would be deleted");
            }
            Some(_) if !before.edits.is_empty() => {
                let edits: Vec<String> = before.edits.iter().map(changed).collect();
                let edits = text::exact_within(&edits.join(", "), 1_000);
                self.console.warning(&format!("your own changes would be lost: {edits}"));
            }
            Some(entry) if !offer.is_update => {
                let source = text::exact(&entry.source);
                self.console.warning(&format!("the installed skill of this name comes from {source}"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_gave_yes_reads_about_it() {
        for (yes, expected) in [
            (true, "--yes does not agree to 1 suspicious passage that a person has to read"),
            (false, "a person has to read 1 suspicious passage, and there is no terminal on which to ask"),
        ] {
            assert_eq!(unread(yes, "1 suspicious passage"), expected);
        }
    }
}
