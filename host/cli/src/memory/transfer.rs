//! `hermes memory export` and `import`. An import adds all entries or none, and never replaces one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hermes_app::files::{self, Readers};
use hermes_notes::{Change, Done, Notes, Rules, Target};
use hermes_prompt::scan::{self, Scope};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::notebook::{Notebook, refused};
use super::{ImportArguments, diff, printed, printed_json};
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::{output, text};

/// The most bytes of a file.
const LARGEST: u64 = 4 << 20;
const FORMAT: &str = "hermes-memory";

/// The notes of a home.
#[derive(Debug, Serialize, Deserialize)]
struct Export {
    format: String,
    version: u32,
    /// The entries of each target, by its name.
    notes: BTreeMap<String, Vec<String>>,
}

pub(super) fn export(file: Option<&Path>, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let notebook = Notebook::open(setup);
    let mut notes = BTreeMap::new();
    for target in Target::ALL {
        notes.insert(target.name().to_owned(), notebook.notes(target)?.entries().to_vec());
    }
    let count: usize = notes.values().map(Vec::len).sum();
    let exported = text::json(&Export { format: FORMAT.to_owned(), version: 1, notes });
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
        for (target, entries) in read(file, arguments.target)? {
            found.entry(target).or_default().extend(entries);
        }
    }
    let notebook = Notebook::open(setup);
    let (mut added, mut known, mut hostile) = (0_u64, 0_u64, Vec::new());
    let mut plans = Vec::new();
    for (target, entries) in found {
        let mut changes = Vec::new();
        for entry in entries {
            let findings = scan::findings(&entry, Scope::Strict);
            if findings.is_empty() {
                changes.push(Change::Add { content: entry });
            } else {
                let findings = findings.into_iter().collect::<Vec<_>>().join(", ");
                console.warning(&format!("left out {:?} ({findings})", text::shortened(&entry, 60)));
                hostile.push(json!({ "target": target.name(), "text": entry, "findings": findings }));
            }
        }
        let limit = notebook.limit(target);
        let rules = Rules { limit, day: None };
        let before = notebook.notes(target)?;
        let (after, done) =
            before.apply_all(&changes, &rules).map_err(|(_, refusal)| nothing(refused(target, &refusal, limit)))?;
        let new = done.iter().filter(|done| **done == Done::Added).count();
        added += new as u64;
        known += (done.len() - new) as u64;
        if !arguments.json {
            print(&diff(&before, &after, console))?;
        }
        plans.push((target, rules, changes));
    }
    if !arguments.dry_run {
        for (target, rules, changes) in &plans {
            notebook.change(*target, |notes| {
                let changed = notes.apply_all(changes, rules);
                let (after, _) = changed.map_err(|(_, refusal)| refused(*target, &refusal, rules.limit))?;
                Ok(((after != *notes).then_some(after), ()))
            })?;
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

fn nothing(mut failure: Failure) -> Failure {
    failure.what = "nothing was imported".to_owned();
    failure
}

/// The entries of a file or folder.
fn read(file: &Path, chosen: Option<Target>) -> Result<Vec<(Target, Vec<String>)>, Failure> {
    if file.is_dir() {
        // A home, or its folder of memories.
        let inner = file.join("memories");
        let folder = if inner.is_dir() { inner } else { file.to_owned() };
        let files: Vec<PathBuf> =
            Target::ALL.iter().map(|target| folder.join(target.document())).filter(|file| file.is_file()).collect();
        if files.is_empty() {
            let why = format!("{} contains no MEMORY.md, USER.md or FACTS.md", folder.display());
            return Err(Failure::new(Kind::General, "nothing was imported", why, "name the files themselves"));
        }
        return Ok(files.iter().map(|file| read(file, None)).collect::<Result<Vec<_>, _>>()?.concat());
    }
    let content = files::read_text(file, LARGEST).map_err(|error| {
        let why = format!("{} cannot be read: {error}", file.display());
        Failure::new(Kind::General, "nothing was imported", why, "name a text file that you can read")
    })?;
    let by_name = Target::ALL.into_iter().find(|target| file.file_name().is_some_and(|name| name == target.document()));
    if let Some(target) = chosen.or(by_name) {
        return Ok(vec![(target, Notes::parse(&content).entries().to_vec())]);
    }
    let unknown = |why: String| {
        let fix = "name an export, a MEMORY.md or a USER.md, or say with --target what the entries are";
        Failure::new(Kind::General, "nothing was imported", why, fix)
    };
    let export: Export = serde_json::from_str(&content)
        .map_err(|error| unknown(format!("{} is not an export of `hermes memory`: {error}", file.display())))?;
    if export.format != FORMAT || export.version != 1 {
        return Err(unknown(format!("{} has the format {} {}", file.display(), export.format, export.version)));
    }
    let mut all = Vec::new();
    for (name, entries) in export.notes {
        let target = Target::named(&name)
            .ok_or_else(|| unknown(format!("{} has notes for `{name}`, which do not exist here", file.display())))?;
        all.push((target, entries));
    }
    Ok(all)
}
