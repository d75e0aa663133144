//! `hermes sessions`: shows and changes stored sessions.

pub(crate) mod changes;
pub(crate) mod command;
pub(crate) mod listing;
pub(crate) mod search;
pub(crate) mod transfer;
pub(crate) mod undo;
mod upkeep;

use std::process::ExitCode;

use hermes_app::AppError;
use hermes_app::sessions::{SessionError, StoreError, TransferError};
use hermes_diagnostic::{Diagnose as _, Diagnostic};

use crate::console::{Console, printed, printed_json};
use crate::failure::Failure;
use crate::launch;
use crate::sessions::command::SessionsCommand;

pub(crate) async fn run(command: &SessionsCommand, console: Console) -> Result<ExitCode, Failure> {
    if let SessionsCommand::Search(arguments) = command {
        return search::run(arguments, console).await;
    }
    let setup = launch::read()?;
    match command {
        SessionsCommand::List(arguments) => listing::list(arguments, &setup, console).await,
        SessionsCommand::Show { id, json } => listing::show(id, *json, &setup, console).await,
        SessionsCommand::Search(arguments) => search::run(arguments, console).await,
        SessionsCommand::Rename { id, title } => changes::rename(id, &title.join(" "), &setup, console).await,
        SessionsCommand::Branch { id, at, title } => changes::branch(id, *at, title.as_deref(), &setup).await,
        SessionsCommand::Export(arguments) => transfer::export(arguments, &setup, console).await,
        SessionsCommand::Import { file, dry_run, trust, json } => {
            transfer::import(file, (*dry_run, *trust), *json, &setup, console).await
        }
        SessionsCommand::Delete { ids, with_children, consent } => {
            changes::delete(ids, *with_children, consent, &setup, console).await
        }
        SessionsCommand::Undo(arguments) => undo::run(arguments, &setup, console).await,
        SessionsCommand::Prune(arguments) => changes::prune(arguments, &setup, console).await,
        SessionsCommand::Stats { json } => upkeep::stats(*json, &setup).await,
        SessionsCommand::Check { quick, json } => upkeep::check(*quick, *json, &setup).await,
        SessionsCommand::Repair { json } => upkeep::repair(*json, &setup),
    }
}

/// The store, or the error that the session does not exist.
fn with_session<T>(store: Option<T>, id: &str) -> Result<T, Failure> {
    store.ok_or_else(|| failed(StoreError::from(SessionError::UnknownSession(id.to_owned()))))
}

/// Describes what these commands could not do. Other errors keep their description.
pub(crate) fn failed(error: impl Into<AppError>) -> Failure {
    let error = error.into();
    let what = match &error {
        AppError::Store(StoreError::Session(SessionError::HasChildren { .. })) => "nothing was deleted",
        AppError::Store(StoreError::Session(SessionError::NoSuchMessage { .. })) => {
            "the session cannot be branched there"
        }
        _ => match error {
            AppError::Store(StoreError::Transfer(TransferError::Output(source))) => return source.into(),
            error => return error.into(),
        },
    };
    Diagnostic { what: what.to_owned(), ..error.diagnose() }.into()
}
