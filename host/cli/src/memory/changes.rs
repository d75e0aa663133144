//! `hermes memory forget` and `tidy`. Both show what changes before they ask.

use std::process::ExitCode;

use hermes_notes::{Change, Notes, Rules, Target, day};
use jiff::Timestamp;

use super::notebook::{Notebook, refused};
use super::{Consent, agreed, diff, unchanged};
use crate::console::{Console, print};
use crate::failure::Failure;
use crate::launch::Setup;
use crate::text;

/// Changes of a document for which no limit counts: they only remove text, or were checked before.
const UNLIMITED: Rules = Rules { limit: usize::MAX, day: None };

pub(super) fn forget(notes: &[String], consent: Consent, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let mut chosen = Vec::new();
    for note in notes {
        let entry = notebook.entry(note)?;
        if !chosen.contains(&entry) {
            chosen.push(entry);
        }
    }
    for target in Target::ALL {
        let before = notebook.notes(target)?;
        let after =
            without(&before, chosen.iter().filter(|entry| entry.target == target).map(|entry| entry.text.as_str()));
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
    for target in Target::ALL {
        let texts = || chosen.iter().filter(|entry| entry.target == target).map(|entry| entry.text.as_str());
        if texts().next().is_some() {
            notebook.change(target, |notes| Ok((Some(without(notes, texts())), ())))?;
        }
    }
    console.note(&format!("{count} removed; a running session keeps its prompt until it is rebuilt"));
    Ok(ExitCode::SUCCESS)
}

/// The notes without these entries, as far as they are there.
fn without<'a>(notes: &Notes, entries: impl Iterator<Item = &'a str>) -> Notes {
    entries.fold(notes.clone(), |notes, entry| {
        let removal = Change::Remove { old_text: entry.to_owned() };
        match notes.entries().iter().any(|known| known == entry) {
            true => notes.apply(&removal, &UNLIMITED).map_or(notes, |(rest, _)| rest),
            false => notes,
        }
    })
}

pub(super) fn tidy(
    target: Option<Target>,
    consent: Consent,
    setup: &Setup,
    console: Console,
) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let today = day(u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0));
    let mut plans = Vec::new();
    for target in Target::ALL.into_iter().filter(|one| target.is_none_or(|wanted| wanted == *one)) {
        let before = notebook.notes(target)?;
        let plan = hermes_notes::tidy(&before, &today);
        if plan.steps.is_empty() {
            continue;
        }
        let limit = notebook.limit(target);
        let rules = Rules { limit, day: None };
        let (after, _) =
            before.apply_all(&plan.changes(), &rules).map_err(|(_, refusal)| refused(target, &refusal, limit))?;
        print(&format!("{}\n{}", target.document(), diff(&before, &after, console)))?;
        plans.push((target, rules, plan));
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
    for (target, rules, plan) in plans {
        // What was shown is applied as a whole, or not at all if the notes changed meanwhile.
        notebook.change(target, |notes| {
            let changed = notes.apply_all(&plan.changes(), &rules);
            let (after, _) = changed.map_err(|(_, refusal)| refused(target, &refusal, rules.limit))?;
            Ok((Some(after), ()))
        })?;
    }
    console.note("the notes were tidied");
    Ok(ExitCode::SUCCESS)
}
