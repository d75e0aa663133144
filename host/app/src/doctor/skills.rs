//! Checks the skills of the user: those that `hermes skills` installed, and what the scan finds in any of them. The plugin that
//! shows skills to the model reports the broken ones.

use hermes_diagnostic::Fix;

use super::Check;
use crate::Setup;
use crate::skills::review;

const SUBJECT: &str = "skills";

/// Nothing for a home without skills.
pub(super) fn examine(setup: &Setup) -> Vec<Check> {
    let installer = setup.skill_installer();
    let all = match installer.inventory() {
        Ok(all) => all,
        Err(error) => return vec![Check::fail(SUBJECT, error)],
    };
    let mut checks = Vec::new();
    for found in &all {
        let name = found.name();
        if found.is_missing {
            let fix = Fix::words(format!("`hermes skills update {name}` installs it again"))
                .or(format!("`hermes skills remove {name}` forgets it"));
            checks.push(Check::warn(SUBJECT, format!("`{name}` is in skills.lock, and its folder is missing"), fix));
            continue;
        }
        let (Ok(header), Ok(files)) = (&found.header, installer.files(found)) else { continue };
        // The user accepted what the scan finds in exactly these files.
        if found.edits.is_empty() && found.entry.as_ref().is_some_and(|entry| !entry.accepted.is_empty()) {
            continue;
        }
        let blocked = review(header, &files).blocked;
        if let Some(first) = blocked.first() {
            let more = if blocked.len() > 1 { format!(" and {} more", blocked.len() - 1) } else { String::new() };
            checks.push(match found.entry.is_some() && !found.edits.is_empty() {
                true => Check::warn(
                    SUBJECT,
                    format!(
                        "`{name}` was changed since it was installed, and is not loaded: the scan refuses {first}{more}"
                    ),
                    Fix::words("read these lines")
                        .or(format!("`hermes skills update {name} --discard-edits` brings the installed text back")),
                ),
                false => Check::warn(
                    SUBJECT,
                    format!("`{name}`: {first}{more} looks like injected instructions, and the model can read it"),
                    "read these lines, and remove the skill if you did not write them",
                ),
            });
        }
    }
    let usable = all.iter().filter(|found| found.header.is_ok()).count();
    let edited: Vec<&str> = all.iter().filter(|found| !found.edits.is_empty()).map(|found| found.name()).collect();
    if usable > 0 {
        let edited = match edited.len() {
            0 => String::new(),
            _ => format!("; changed since they were installed: {}", edited.join(", ")),
        };
        checks.push(Check::ok(SUBJECT, format!("{}{edited}", crate::counted(usable as u64, "skill"))));
    }
    checks
}
