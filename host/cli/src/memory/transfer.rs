//! `hermes memory export` and `import`. An import adds all entries or none, and never replaces one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use hermes_app::files::Readers;
use hermes_app::memory::{
    Addition, LeftOut, Notebook, NotebookError, NotesFile, NotesFileError, Target, read_notes, screened,
};
use serde_json::json;

use super::{ImportArguments, diff, failed, printed, printed_json};
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::{output, text};

/// What failed if an import adds nothing.
const NOTHING: &str = "nothing was imported";

pub(super) fn export(file: Option<&Path>, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let notes = NotesFile::of(&notebook).map_err(failed)?;
    let (count, exported) = (notes.count(), text::json(&notes));
    let Some(file) = output::file(file) else { return printed(&exported) };
    // A wrong name would replace the notes by their export.
    if file.is_file() && is_within(&setup.home.path().join("memories"), file) {
        let why = format!("{} holds notes, and an export would replace them", file.display());
        return Err(Failure::new(Kind::General, "nothing was exported", why, "choose another file"));
    }
    output::write(file, exported.as_bytes(), Readers::Owner, console).map_err(|error| {
        let why = format!("{} cannot be written: {error}", file.display());
        Failure::new(Kind::General, "nothing was exported", why, "choose another file")
    })?;
    console.note(&format!("{} written to {}", text::counted(count as u64, "note"), file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Whether a path leads into a folder.
fn is_within(folder: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(folder).zip(real(path)).is_some_and(|(folder, path)| path.starts_with(folder))
}

pub(super) fn import(arguments: &ImportArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let mut found: BTreeMap<Target, Vec<String>> = BTreeMap::new();
    for file in &arguments.files {
        for (target, entries) in read_notes(file, arguments.target).map_err(unreadable)? {
            found.entry(target).or_default().extend(entries);
        }
    }
    let notebook = Notebook::open(setup);
    let (mut added, mut known, mut hostile) = (0_u64, 0_u64, Vec::new());
    let mut plans = Vec::new();
    for (target, entries) in found {
        let (sound, left_out) = screened(entries);
        for LeftOut { text, findings } in left_out {
            console.warning(&format!("left out {:?} ({findings})", text::shortened(&text, 60)));
            hostile.push(json!({ "target": target.name(), "text": text, "findings": findings }));
        }
        let Addition { plan, new, known: old } = notebook.adding(target, sound).map_err(|error| {
            let is_refused = matches!(error, NotebookError::Refused { .. });
            let failure = failed(error);
            if is_refused { Failure { what: NOTHING.to_owned(), ..failure } } else { failure }
        })?;
        added += new;
        known += old;
        if !arguments.json {
            print(&diff(&plan.before, &plan.after, console))?;
        }
        plans.push(plan);
    }
    if !arguments.dry_run {
        for plan in &plans {
            notebook.carry_out(plan).map_err(failed)?;
        }
    }
    if arguments.json {
        return printed_json(
            &json!({ "dry_run": arguments.dry_run, "added": added, "known": known, "left_out": hostile }),
        );
    }
    let would = if arguments.dry_run { "would be added" } else { "added" };
    console.note(&format!(
        "{} {would}, {known} known already, {} left out",
        text::counted(added, "note"),
        hostile.len()
    ));
    Ok(ExitCode::SUCCESS)
}

fn unreadable(error: NotesFileError) -> Failure {
    let fix = match &error {
        NotesFileError::NoDocuments(_) => "name the files themselves",
        NotesFileError::Unreadable { .. } => "name a text file that you can read",
        NotesFileError::NoExport { .. } | NotesFileError::OtherFormat { .. } | NotesFileError::UnknownTarget { .. } => {
            "name an export, a MEMORY.md or a USER.md, or say with --target what the entries are"
        }
    };
    Failure::new(Kind::General, NOTHING, error.to_string(), fix)
}
