//! `hermes sessions`: shows and changes stored sessions.

pub(crate) mod changes;
pub(crate) mod listing;
pub(crate) mod search;
pub(crate) mod transfer;
pub(crate) mod undo;
mod upkeep;

use std::process::ExitCode;

use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_store::{SessionError, Store, StoreError};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::arguments::SessionsCommand;
use crate::console::{Console, printed, printed_json};
use crate::failure::Failure;
use crate::launch::{self, Setup};
use crate::text;

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

/// Unix time in milliseconds.
pub(crate) fn now() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// A time in the local time zone.
pub(crate) fn local(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// How long ago something was.
pub(crate) fn age(then: u64, now: u64) -> String {
    let minutes = now.saturating_sub(then) / 60_000;
    match (minutes, minutes / 60, minutes / (24 * 60)) {
        (0, ..) => "just now".to_owned(),
        (minutes, 0, _) => format!("{minutes} min ago"),
        (_, hours, 0) => format!("{hours} h ago"),
        (_, _, days @ 1..30) => format!("{} ago", text::counted(days, "day")),
        _ => local(then),
    }
}

/// The same in fewer words: of an old time, only the day.
pub(crate) fn brief_age(then: u64, now: u64) -> String {
    let age = age(then, now);
    match age.strip_suffix(" ago") {
        Some(ago) => ago.to_owned(),
        None if age.starts_with(|first: char| first.is_ascii_digit()) => age.chars().take(10).collect(),
        None => age,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit() {
        const MINUTE: u64 = 60_000;
        let now = 1_000 * 24 * 60 * MINUTE;
        for (ago, expected) in [
            (0, "just now"),
            (59, "59 min ago"),
            (60, "1 h ago"),
            (24 * 60, "1 day ago"),
            (29 * 24 * 60, "29 days ago"),
        ] {
            assert_eq!(age(now - ago * MINUTE, now), expected);
        }
        assert!(age(now - 30 * 24 * 60 * MINUTE, now).starts_with("19"));
        assert_eq!(age(now + MINUTE, now), "just now");
        let brief = [0, 59, 24 * 60, 40 * 24 * 60].map(|ago| brief_age(now - ago * MINUTE, now));
        assert_eq!(brief[..3], ["just now", "59 min", "1 day"]);
        assert!(brief[3].len() == 10 && brief[3].starts_with("1972"), "{}", brief[3]);
    }
}
