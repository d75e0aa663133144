//! `hermes memory`: the notes of the built-in memory, what waits for the memory provider, and what waits for the user.

mod changes;
mod listing;
mod pending;
mod setup;
pub(crate) mod status;
mod transfer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use hermes_app::memory::{NotebookError, Notes, Refusal, Target, thousands};

use crate::console::{Console, Tone, printed, printed_json};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::question;
use crate::text;

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Select a memory provider, with its settings and secrets, and test its connection
    Setup(setup::SetupArguments),
    /// Show how full the notes are, and what waits for the memory provider and for you
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send again what the memory provider has not stored, also turns that were set aside
    Retry {
        /// Only the turns for this provider
        #[arg(value_name = "PROVIDER")]
        provider: Option<String>,
    },
    /// Give the selected memory provider the conversations that were held before it was selected
    Load(LoadArguments),
    /// List the notes of the built-in memory
    #[command(visible_alias = "ls")]
    List(ListArguments),
    /// Find notes by words
    Search(SearchArguments),
    /// Show a note in full
    Show {
        /// The note's id in `list`, or text that no other note contains
        note: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove notes for good
    Forget {
        /// The notes' ids in `list`, or text that no other note contains
        #[arg(value_name = "NOTE", required = true)]
        notes: Vec<String>,
        #[command(flatten)]
        consent: Consent,
    },
    /// Write all notes to a file that `import` reads
    Export {
        /// The file to write; an existing one is replaced [default: standard output]
        file: Option<PathBuf>,
    },
    /// Add notes from files: exports, MEMORY.md and USER.md, or a folder with them
    Import(ImportArguments),
    /// List the writes that wait for your approval, with their changes
    #[command(visible_alias = "diff")]
    Pending {
        /// Show only this write
        id: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Apply writes that wait for your approval
    Approve(Choice),
    /// Drop writes that wait for your approval
    Reject(Choice),
    /// Merge notes that say the same, and mark those whose time has passed
    Tidy {
        /// Tidy only these notes
        #[arg(long, value_name = "TARGET", value_parser = target)]
        target: Option<Target>,
        #[command(flatten)]
        consent: Consent,
    },
    /// Use no memory provider besides the built-in memory
    Off,
}

/// The conversations to load.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct LoadArguments {
    /// Only turns of the last N days
    #[arg(long, value_name = "N")]
    days: Option<u64>,
    #[command(flatten)]
    consent: Consent,
}

/// The notes to list.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct ListArguments {
    /// List only these notes: memory, user or facts
    #[arg(long, value_name = "TARGET", value_parser = target)]
    target: Option<Target>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What to search for.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct SearchArguments {
    /// Words to find
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,
    /// Show at most N notes
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The files to import.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct ImportArguments {
    /// Files or folders
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Add all entries of a text file to these notes [default: those of the file's name]
    #[arg(long, value_name = "TARGET", value_parser = target)]
    target: Option<Target>,
    /// Only report what would be imported
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How the user confirms a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct Consent {
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

/// Writes that wait.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct Choice {
    /// The numbers of the writes in `pending`
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<u64>,
    /// All writes that wait
    #[arg(long)]
    all: bool,
}

fn target(name: &str) -> Result<Target, String> {
    Target::named(name).ok_or_else(|| "use memory, user or facts".to_owned())
}

pub(crate) fn run(command: &MemoryCommand, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    match command {
        MemoryCommand::Setup(arguments) => crate::wait(setup::run(arguments, console)),
        MemoryCommand::Status { json } => crate::wait_for_store(status::show(*json, &setup, console)),
        MemoryCommand::Retry { provider } => crate::wait_for_store(status::retry(provider.as_deref(), &setup, console)),
        MemoryCommand::Load(arguments) => crate::wait_for_store(status::load(arguments, &setup, console)),
        MemoryCommand::List(arguments) => listing::list(arguments, &setup, console),
        MemoryCommand::Search(arguments) => listing::search(arguments, &setup, console),
        MemoryCommand::Show { note, json } => listing::show(note, *json, &setup),
        MemoryCommand::Forget { notes, consent } => changes::forget(notes, *consent, &setup, console),
        MemoryCommand::Export { file } => transfer::export(file.as_deref(), &setup, console),
        MemoryCommand::Import(arguments) => transfer::import(arguments, &setup, console),
        MemoryCommand::Pending { id, json } => pending::list(*id, *json, &setup, console),
        MemoryCommand::Approve(choice) => pending::approve(choice, &setup, console),
        MemoryCommand::Reject(choice) => pending::reject(choice, &setup, console),
        MemoryCommand::Tidy { target, consent } => changes::tidy(*target, *consent, &setup, console),
        MemoryCommand::Off => status::off(&setup),
    }
}

/// What differs between two versions of a document, entry by entry.
fn differences(before: &Notes, after: &Notes) -> Vec<(char, String)> {
    let gone =
        before.entries().iter().filter(|entry| !after.entries().contains(entry)).map(|entry| ('-', entry.clone()));
    let new =
        after.entries().iter().filter(|entry| !before.entries().contains(entry)).map(|entry| ('+', entry.clone()));
    gone.chain(new).collect()
}

/// The differences as lines, with the sign in front of every line of an entry.
fn diff(before: &Notes, after: &Notes, console: Console) -> String {
    let mut shown = String::new();
    for (sign, entry) in differences(before, after) {
        let tone = if sign == '-' { Tone::Bad } else { Tone::Good };
        for line in text::exact_lines(&entry) {
            shown.push_str(&console.paint(tone, &format!("{sign} {line}")));
            shown.push('\n');
        }
    }
    shown
}

/// An error of the notes, which says what to do.
fn failed(error: NotebookError) -> Failure {
    let failure = |what: &str, fix: &str| Failure::new(Kind::General, what, error.to_string(), fix);
    match &error {
        NotebookError::NoSuchNote(named) => {
            let why = format!("no note has this id or contains {:?}", text::shortened(named, 60));
            Failure { why, ..failure("there is no such note", "`hermes memory list` shows all notes") }
        }
        NotebookError::Ambiguous { named, ids } => {
            let why = format!("{} notes contain {:?}: {}", ids.len(), text::shortened(named, 60), ids.join(", "));
            Failure { why, ..failure("the note is not clear", "name one of them by its id") }
        }
        NotebookError::DamagedList { file, .. } => {
            failure("the pending writes cannot be read", &format!("correct or remove {file}"))
        }
        NotebookError::UnknownTarget { write, .. } => failure(
            &format!("write {write} cannot be applied"),
            &format!("drop it with `hermes memory reject {write}`"),
        ),
        NotebookError::Contended { .. } => failure("the notes were not changed", "try again"),
        NotebookError::Refused { target, refusal: Refusal::OverLimit { .. }, limit } => failure(
            &format!("{} was not changed", target.document()),
            &format!(
                "remove notes with `hermes memory forget`, run `hermes memory tidy`, or raise memory.{}_char_limit (now {})",
                target.name(),
                thousands(*limit),
            ),
        ),
        NotebookError::Refused { target, .. } => {
            failure(&format!("{} was not changed", target.document()), "`hermes memory list` shows the present notes")
        }
        NotebookError::Document(_) | NotebookError::Suspicious(_) => {
            failure("the notes cannot be read or written", "correct the file, then try again")
        }
    }
}

/// Asks before a change, unless the user agreed already.
fn agreed(consent: Consent, question: &str) -> Result<bool, Failure> {
    const FIX: &str = "add --yes, or --dry-run to see what would change";
    Ok(consent.yes || question::confirmed(question, "nothing was changed", FIX)?)
}

fn unchanged(console: Console) -> Result<ExitCode, Failure> {
    console.note("nothing was changed");
    Ok(Kind::General.into())
}
