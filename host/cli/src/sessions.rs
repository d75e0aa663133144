//! `hermes sessions`: shows and changes stored sessions.

pub(crate) mod changes;
pub(crate) mod command;
pub(crate) mod listing;
pub(crate) mod search;
pub(crate) mod transfer;
pub(crate) mod undo;
mod upkeep;

use std::process::ExitCode;

use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_store::{SessionError, Store, StoreError};

use crate::console::{Console, printed, printed_json};
use crate::failure::Failure;
use crate::launch::{self, Setup};
use crate::sessions::command::SessionsCommand;

pub(crate) fn run(command: &SessionsCommand, console: Console) -> Result<ExitCode, Failure> {
    if let SessionsCommand::Search(arguments) = command {
        return search::run(arguments, console);
    }
    let setup = launch::read()?;
    match command {
        SessionsCommand::List(arguments) => listing::list(arguments, &setup, console),
        SessionsCommand::Show { id, json } => listing::show(id, *json, &setup, console),
        SessionsCommand::Search(arguments) => search::run(arguments, console),
        SessionsCommand::Rename { id, title } => changes::rename(id, &title.join(" "), &setup, console),
        SessionsCommand::Branch { id, at, title } => changes::branch(id, *at, title.as_deref(), &setup),
        SessionsCommand::Export(arguments) => transfer::export(arguments, &setup, console),
        SessionsCommand::Import { file, dry_run, trust, json } => {
            transfer::import(file, (*dry_run, *trust), *json, &setup, console)
        }
        SessionsCommand::Delete { ids, with_children, consent } => {
            changes::delete(ids, *with_children, consent, &setup, console)
        }
        SessionsCommand::Undo(arguments) => undo::run(arguments, &setup, console),
        SessionsCommand::Prune(arguments) => changes::prune(arguments, &setup, console),
        SessionsCommand::Stats { json } => upkeep::stats(*json, &setup),
        SessionsCommand::Check { quick, json } => upkeep::check(*quick, *json, &setup),
        SessionsCommand::Repair { json } => upkeep::repair(*json, &setup),
    }
}

/// Opens the store to read it. None if nothing is stored yet.
fn to_read(setup: &Setup) -> Result<Option<Store>, Failure> {
    Store::open_read_only(setup.home.path()).map_err(failed)
}

/// Opens the store to change it. None if nothing is stored yet, so that no store is created.
fn to_change(setup: &Setup) -> Result<Option<Store>, Failure> {
    match to_read(setup)? {
        None => Ok(None),
        Some(_) => Store::open(setup.home.path()).map(Some).map_err(failed),
    }
}

/// The store, or the error that the session does not exist.
fn with_session(store: Option<Store>, id: &str) -> Result<Store, Failure> {
    store.ok_or_else(|| failed(SessionError::UnknownSession(id.to_owned()).into()))
}

/// Describes what these commands could not do. Other errors keep their description.
pub(crate) fn failed(error: StoreError) -> Failure {
    let what = match &error {
        StoreError::Output(_) | StoreError::Input(_) => "the sessions cannot be transferred",
        StoreError::Import { .. } => "the file cannot be imported",
        StoreError::ImportStopped { .. } => "the file was imported only in part",
        StoreError::BeyondRepair { .. } => "the store cannot be repaired",
        StoreError::Session(SessionError::HasChildren { .. }) => "nothing was deleted",
        StoreError::Session(SessionError::NoSuchMessage { .. }) => "the session cannot be branched there",
        StoreError::Session(SessionError::TitleTaken { .. } | SessionError::TitleTooLong { .. }) => {
            "the session cannot have this title"
        }
        _ => return error.into(),
    };
    if let StoreError::Output(source) = error {
        return source.into();
    }
    Diagnostic { what: what.to_owned(), ..error.diagnose() }.into()
}
