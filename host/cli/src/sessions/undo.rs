//! `hermes sessions undo`: restores files that a session changed, from outside of it.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use hermes_checkpoints::{OnConflict, Places, Record, Recorder, Store as Checkpoints, Turns};
use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_protocol::SessionId;
use hermes_store::Store;
use serde_json::json;

use super::{failed, printed, printed_json, to_change, to_read, with_session};
use crate::console::Console;
use crate::failure::Failure;
use crate::launch::Setup;
use crate::undo;

/// What to undo.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct UndoArguments {
    /// The session's id, the beginning of its id, or its title [default: the newest session of this folder]
    id: Option<String>,
    /// Only list the turns that changed files
    #[arg(long, conflicts_with_all = ["to", "skip_changed", "force"])]
    list: bool,
    /// Undo the change with this number and all after it [default: the newest]
    #[arg(long, value_name = "N")]
    to: Option<u32>,
    /// Leave files that changed since as they are, and restore the others
    #[arg(long, conflicts_with = "force")]
    skip_changed: bool,
    /// Restore files that changed since, too: what they contain now is lost
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &UndoArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let checkpoints = Checkpoints::in_home(setup.home.path());
    if arguments.list {
        let given = arguments.id.as_deref().unwrap_or_default();
        let store = with_session(to_read(setup)?, given)?;
        let records = hermes_checkpoints::records(&checkpoints, chosen(arguments, &store)?.as_str());
        return list(&records.map_err(|error| Failure::from(error.diagnose()))?, arguments.json);
    }
    let store = with_session(to_change(setup)?, arguments.id.as_deref().unwrap_or_default())?;
    let session = chosen(arguments, &store)?;
    // A session that is open elsewhere changes files while they are restored.
    let _lease = store.lease(&session).map_err(failed)?;
    for notice in hermes_app::recovered_undos(setup) {
        console.warning(&notice.to_string());
    }
    let limits = setup.checkpoints().limits;
    let records = hermes_checkpoints::records(&checkpoints, session.as_str()).unwrap_or_default();
    if let Some(record) = records.last() {
        let places = Places {
            workspace: record.workspace.clone(),
            hermes: setup.home.path().to_owned(),
            user: std::env::home_dir(),
        };
        let quiet = Box::new(|_| ());
        let recorder = Recorder::new(checkpoints.clone(), session.as_str(), places, limits, quiet).map(Arc::new);
        recorder.inspect(|recorder| recorder.settle());
    }
    let turns = arguments.to.map_or(Turns::Last(1), Turns::From);
    let on_conflict = match (arguments.skip_changed, arguments.force) {
        (true, _) => OnConflict::Skip,
        (_, true) => OnConflict::Overwrite,
        _ => OnConflict::Refuse,
    };
    let undone = hermes_checkpoints::undo(&checkpoints, session.as_str(), turns, on_conflict, &limits);
    let undone = undone.map_err(|error| Failure::from(error.diagnose()))?;
    if arguments.json {
        return printed_json(&json!({ "session": session, "undo": undone }));
    }
    let undone = hermes_agent::undo_report(undone);
    printed(&undo::lines(&undone).iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// The session that is meant.
fn chosen(arguments: &UndoArguments, store: &Store) -> Result<SessionId, Failure> {
    if let Some(id) = &arguments.id {
        return store.resolve_session(id).map_err(failed);
    }
    let workspace = std::env::current_dir()?;
    let newest = store.newest_session(&workspace).map_err(failed)?;
    newest.ok_or_else(|| {
        let error = hermes_app::AppError::NoSessionHere { workspace };
        Diagnostic { what: "nothing was undone".to_owned(), ..error.diagnose() }.into()
    })
}

fn list(records: &[Record], json: bool) -> Result<ExitCode, Failure> {
    let records: Vec<&Record> = records.iter().filter(|record| !record.changes.is_empty()).collect();
    if json {
        return printed_json(&records);
    }
    if records.is_empty() {
        return printed("no turn of this session has changed files\n");
    }
    printed(&records.iter().map(|record| format!("{}\n", undo::summary(record))).collect::<String>())
}
