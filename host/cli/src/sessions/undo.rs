//! `hermes sessions undo`: restores files that a session changed, from outside of it.

use std::process::ExitCode;

use clap::Args;
use hermes_app::AppError;
use hermes_app::sessions::SessionStore;
use hermes_app::undo::{self as app_undo, OnConflict, Record, Turns};
use hermes_diagnostic::{Diagnose as _, Diagnostic, Notice};
use hermes_protocol::SessionId;
use serde_json::json;

use super::{failed, printed, printed_json, with_session};
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

pub(super) async fn run(arguments: &UndoArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let given = arguments.id.as_deref().unwrap_or_default();
    if arguments.list {
        let store = with_session(setup.store_to_read()?, given)?;
        let session = chosen(arguments, &*store).await?;
        return list(&setup.changes_of(&session)?, arguments.json);
    }
    let store = with_session(setup.store_to_change()?, given)?;
    let session = chosen(arguments, &*store).await?;
    let turns = arguments.to.map_or(Turns::Last(1), Turns::From);
    let on_conflict = match (arguments.skip_changed, arguments.force) {
        (true, _) => OnConflict::Skip,
        (_, true) => OnConflict::Overwrite,
        _ => OnConflict::Refuse,
    };
    let warn = |notice: &Notice| console.warning(&notice.to_string());
    let undone = setup.undo(&*store, &session, (turns, on_conflict), warn).await.map_err(failed)?;
    if arguments.json {
        return printed_json(&json!({ "session": session, "undo": undone }));
    }
    let undone = app_undo::report(undone);
    printed(&undo::lines(&undone).iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// The session that is meant.
async fn chosen(arguments: &UndoArguments, store: &dyn SessionStore) -> Result<SessionId, Failure> {
    if let Some(id) = &arguments.id {
        return store.resolve_session(id).await.map_err(failed);
    }
    let workspace = std::env::current_dir()?;
    let newest = store.newest_session(&workspace).await.map_err(failed)?;
    newest.ok_or_else(|| {
        let error = AppError::NoSessionHere { workspace };
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
