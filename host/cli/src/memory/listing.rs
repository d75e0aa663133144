//! `hermes memory list`, `search` and `show`.

use std::process::ExitCode;

use hermes_app::memory::{Entry, Notebook};
use serde_json::{Value, json};

use super::{ListArguments, SearchArguments, failed, printed, printed_json};
use crate::console::{Console, Tone};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::table::{Align, Table};
use crate::text;

/// Characters of an entry in a list.
const PREVIEW: usize = 200;

pub(super) fn list(arguments: &ListArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let mut entries = Notebook::open(setup).entries().map_err(failed)?;
    entries.retain(|entry| arguments.target.is_none_or(|target| target == entry.target));
    if arguments.json {
        return printed_json(&entries.iter().map(described).collect::<Vec<_>>());
    }
    say_what_is_elsewhere(setup, console);
    if entries.is_empty() {
        console.note(
            "there are no notes; the model adds them with the tool `memory`, and you can edit MEMORY.md and USER.md",
        );
        return Ok(ExitCode::SUCCESS);
    }
    printed(&table(&entries, console))
}

pub(super) fn search(arguments: &SearchArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let mut found = Notebook::open(setup).find(&arguments.words.join(" ")).map_err(failed)?;
    found.truncate(arguments.limit);
    if arguments.json {
        return printed_json(&found.iter().map(described).collect::<Vec<_>>());
    }
    say_what_is_elsewhere(setup, console);
    if found.is_empty() {
        console.note("no note contains one of these words");
        return Ok(Kind::General.into());
    }
    printed(&table(&found, console))
}

pub(super) fn show(note: &str, json: bool, setup: &Setup) -> Result<ExitCode, Failure> {
    let entry = Notebook::open(setup).entry(note).map_err(failed)?;
    if json {
        return printed_json(&described(&entry));
    }
    printed(&format!("{}\n", text::lines(&entry.text)))
}

/// The contract has no function that lists what an external provider stored.
fn say_what_is_elsewhere(setup: &Setup, console: Console) {
    if let Some(provider) = &setup.config.settings().memory.provider {
        console.note(&format!(
            "these are the notes of the built-in memory; `{provider}` keeps its memories itself and offers no list: ask for \
             them in a chat"
        ));
    }
}

pub(super) fn described(entry: &Entry) -> Value {
    json!({ "id": entry.id, "target": entry.target.name(), "text": entry.text })
}

fn table(entries: &[Entry], console: Console) -> String {
    let mut table = Table::new(&[Align::Left, Align::Left]);
    for entry in entries {
        let text = text::line(&text::shortened(&entry.text, PREVIEW));
        table.row([(Tone::Faint, entry.id.clone()), (Tone::Plain, text)]);
    }
    table.text(console)
}
