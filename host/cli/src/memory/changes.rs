//! `hermes memory forget` and `tidy`. Both show what changes before they ask.

use std::process::ExitCode;

use hermes_app::memory::{Notebook, Target};

use super::{Consent, agreed, diff, failed, unchanged};
use crate::console::{Console, print};
use crate::failure::Failure;
use crate::launch::Setup;
use crate::moments::now;
use crate::text;

pub(super) fn forget(notes: &[String], consent: Consent, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let mut chosen = Vec::new();
    for note in notes {
        let entry = notebook.entry(note).map_err(failed)?;
        if !chosen.contains(&entry) {
            chosen.push(entry);
        }
    }
    for target in Target::ALL {
        let (before, after) = notebook.without(target, &chosen).map_err(failed)?;
        print(&diff(&before, &after, console))?;
    }
    let count = text::counted(chosen.len() as u64, "note");
    if consent.dry_run {
        console.note(&format!("{count} would be removed"));
        return Ok(ExitCode::SUCCESS);
    }
    if !agreed(consent, &format!("permanently remove {count}?"))? {
        return unchanged(console);
    }
    notebook.forget(&chosen).map_err(failed)?;
    console.note(&format!("{count} removed; a running session keeps its prompt until it is rebuilt"));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn tidy(
    target: Option<Target>,
    consent: Consent,
    setup: &Setup,
    console: Console,
) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let mut plans = Vec::new();
    for target in Target::ALL.into_iter().filter(|one| target.is_none_or(|wanted| wanted == *one)) {
        let Some(plan) = notebook.tidying(target, now()).map_err(failed)? else { continue };
        print(&format!("{}\n{}", target.document(), diff(&plan.before, &plan.after, console)))?;
        plans.push(plan);
    }
    if plans.is_empty() {
        console.note("the notes are tidy");
        return Ok(ExitCode::SUCCESS);
    }
    if consent.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !agreed(consent, "apply these changes?")? {
        return unchanged(console);
    }
    for plan in plans {
        notebook.carry_out(&plan).map_err(failed)?;
    }
    console.note("the notes were tidied");
    Ok(ExitCode::SUCCESS)
}
