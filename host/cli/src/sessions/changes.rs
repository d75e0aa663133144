//! `hermes sessions rename`, `branch`, `delete` and `prune`. Sessions are deleted only after confirmation.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use hermes_app::sessions::{Deletion, Kept, Leftover, PruneFilter, Pruning, SessionStore};
use hermes_protocol::{MessageId, SessionId};
use jiff::civil;
use jiff::tz::TimeZone;
use serde_json::json;

use super::{failed, printed, printed_json, with_session};
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::moments::now;
use crate::question;
use crate::sessions::listing;
use crate::table::Table;
use crate::text;

/// How the user confirms a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct Consent {
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Only report what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The sessions to delete.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct PruneArguments {
    /// Only sessions without a new message for this many days
    #[arg(long, value_name = "DAYS")]
    older_than: u64,
    /// Only sessions of this front end, such as cli
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only sessions that worked in or below this folder
    #[arg(long, value_name = "FOLDER")]
    workspace: Option<PathBuf>,
    /// Only sessions whose model's name contains TEXT
    #[arg(long, value_name = "TEXT")]
    model_name: Option<String>,
    /// Only sessions whose title contains TEXT
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Only sessions with at least N messages
    #[arg(long, value_name = "N")]
    min_messages: Option<u64>,
    /// Only sessions with at most N messages; 0 selects empty sessions
    #[arg(long, value_name = "N")]
    max_messages: Option<u64>,
    /// Only sessions started on or after this day, such as 2026-01-31
    #[arg(long, value_name = "DATE")]
    started_after: Option<civil::Date>,
    /// Only sessions started before this day
    #[arg(long, value_name = "DATE")]
    started_before: Option<civil::Date>,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn rename(id: &str, title: &str, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let store = with_session(setup.store_to_change()?, id)?;
    let id = store.resolve_session(id).await.map_err(failed)?;
    match store.set_title(&id, title).await.map_err(failed)? {
        Some(title) => console.note(&format!("session {id} now has the title `{title}`")),
        None => console.note(&format!("session {id} now has no title")),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn branch(id: &str, at: Option<u64>, title: Option<&str>, setup: &Setup) -> Result<ExitCode, Failure> {
    let store = with_session(setup.store_to_change()?, id)?;
    let id = store.resolve_session(id).await.map_err(failed)?;
    let branch = store.branch(&id, at.map(MessageId), title, now()).await.map_err(failed)?;
    printed(&format!("{}\n", branch.id))
}

pub(super) async fn delete(
    ids: &[String],
    with_children: bool,
    consent: &Consent,
    setup: &Setup,
    console: Console,
) -> Result<ExitCode, Failure> {
    let first = ids.first().map_or("", String::as_str);
    let store = with_session(opened(consent, setup)?, first)?;
    let mut sessions = Vec::new();
    for id in ids {
        sessions.push(store.resolve_session(id).await.map_err(failed)?);
    }
    let planned = store.deletion(&sessions, with_children).await.map_err(failed)?;
    if !consent.json {
        print(&listed(&*store, &planned.sessions, console).await?)?;
        for session in &planned.detached {
            console
                .note(&format!("session {session} started from one of them, but does not depend on it, so it is kept"));
        }
    }
    let count = text::counted(planned.sessions.len() as u64, "session");
    if !consent.dry_run && !agreed(consent, &format!("permanently delete {count}?"))? {
        return Ok(refused(console));
    }
    let done = match consent.dry_run {
        true => planned,
        false => {
            let done = store.delete_planned(&planned).await.map_err(failed)?;
            forget_files(&*store, setup, console).await;
            done
        }
    };
    deleted(&done, consent, console)
}

/// The store. A trial only reads it.
fn opened(consent: &Consent, setup: &Setup) -> Result<Option<Arc<dyn SessionStore>>, Failure> {
    if consent.dry_run { setup.store_to_read() } else { setup.store_to_change() }.map_err(failed)
}

/// Removes the files of deleted sessions, and names those that are left.
async fn forget_files(store: &dyn SessionStore, setup: &Setup, console: Console) {
    for left in setup.forget_files(store).await {
        let (what, folder, source) = match left {
            Leftover::Results { folder, source } => ("long results", folder, source),
            Leftover::SavedFiles { folder, source } => ("saved files", folder, source),
        };
        console.note(&format!("{what} of deleted sessions are left in {}: {source}", folder.display()));
    }
}

fn deleted(done: &Deletion, consent: &Consent, console: Console) -> Result<ExitCode, Failure> {
    if consent.json {
        return printed_json(
            &json!({"dry_run": consent.dry_run, "sessions": done.sessions, "detached": done.detached}),
        );
    }
    let count = text::counted(done.sessions.len() as u64, "session");
    console.note(&format!("{count} {}", if consent.dry_run { "would be deleted" } else { "deleted" }));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn prune(arguments: &PruneArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let consent = &arguments.consent;
    let filter = filter(arguments)?;
    let Some(store) = opened(consent, setup)? else { return pruned(&Pruning::default(), consent, console) };
    let planned = store.pruning(&filter).await.map_err(failed)?;
    if planned.sessions.is_empty() {
        return pruned(&planned, consent, console);
    }
    let ids: Vec<SessionId> = planned.sessions.iter().map(|session| session.id.clone()).collect();
    if !consent.json {
        print(&listed(&*store, &ids, console).await?)?;
    }
    let count = text::counted(planned.sessions.len() as u64, "session");
    if !consent.dry_run && !agreed(consent, &format!("permanently delete {count} with their delegated tasks?"))? {
        return Ok(refused(console));
    }
    let done = match consent.dry_run {
        true => planned,
        false => {
            let done = store.prune(&filter, &ids).await.map_err(failed)?;
            forget_files(&*store, setup, console).await;
            done
        }
    };
    pruned(&done, consent, console)
}

fn pruned(done: &Pruning, consent: &Consent, console: Console) -> Result<ExitCode, Failure> {
    if consent.json {
        let kept = done.kept.iter().map(|(id, why)| json!({"id": id, "kept": why})).collect::<Vec<_>>();
        return printed_json(&json!({"dry_run": consent.dry_run, "sessions": done.sessions, "kept": kept}));
    }
    for (session, why) in &done.kept {
        let why = match why {
            Kept::InUse => "another process is using it".to_owned(),
            Kept::Newest => "it is the session that `--continue` resumes in its folder".to_owned(),
            Kept::Needed { by } => format!("session {by} continues it"),
        };
        console.note(&format!("session {session} stays: {why}"));
    }
    let count = text::counted(done.sessions.len() as u64, "session");
    console.note(&format!("{count} {}", if consent.dry_run { "would be deleted" } else { "deleted" }));
    Ok(ExitCode::SUCCESS)
}

fn filter(arguments: &PruneArguments) -> Result<PruneFilter, Failure> {
    const DAY: u64 = 86_400_000;
    let midnight = |date: Option<civil::Date>| -> Result<Option<u64>, Failure> {
        let Some(date) = date else { return Ok(None) };
        let zoned = date.to_zoned(TimeZone::system()).map_err(|error| {
            let fix = "give another day, such as 2026-01-31";
            Failure::new(Kind::Usage, "the command line is invalid", error.to_string(), fix)
        })?;
        Ok(Some(u64::try_from(zoned.timestamp().as_millisecond()).unwrap_or(0)))
    };
    let workspace = arguments.workspace.as_ref().map(std::path::absolute).transpose()?;
    Ok(PruneFilter {
        source: arguments.source.clone(),
        workspace,
        model: arguments.model_name.clone(),
        title: arguments.title.clone(),
        min_messages: arguments.min_messages,
        max_messages: arguments.max_messages,
        started_after: midnight(arguments.started_after)?,
        started_before: midnight(arguments.started_before)?,
        ..PruneFilter::silent_since(now().saturating_sub(arguments.older_than.saturating_mul(DAY)))
    })
}

/// The sessions that will be removed, one on each line.
async fn listed(store: &dyn SessionStore, ids: &[SessionId], console: Console) -> Result<String, Failure> {
    let mut table = Table::new(listing::COLUMNS);
    for summary in store.sessions().await.map_err(failed)?.iter().filter(|summary| ids.contains(&summary.id)) {
        let title = summary.title.as_deref().unwrap_or(&summary.preview);
        table.row(listing::row(summary, Tone::Warning, text::title(title)));
    }
    Ok(table.text(console))
}

/// Asks for confirmation if there is a terminal.
fn agreed(consent: &Consent, question: &str) -> Result<bool, Failure> {
    const FIX: &str = "add --yes, or --dry-run to see what would be deleted";
    Ok(consent.yes || question::confirmed(question, "nothing was deleted", FIX)?)
}

fn refused(console: Console) -> ExitCode {
    console.note("nothing was deleted");
    Kind::General.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;
    use jiff::Timestamp;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        prune: PruneArguments,
    }

    fn parse(line: &str) -> Result<PruneArguments, clap::Error> {
        Line::try_parse_from(std::iter::once("prune").chain(line.split_whitespace())).map(|line| line.prune)
    }

    #[test]
    fn days_and_dates_become_times() {
        let arguments = parse("--older-than 2 --started-after 2026-01-31 --source cli --max-messages 0 -y").unwrap();
        let filter = filter(&arguments).unwrap();
        let ago = now() - filter.silent_since;
        assert!((2 * 86_400_000..2 * 86_400_000 + 60_000).contains(&ago), "{ago}");
        let begun = Timestamp::from_millisecond(filter.started_after.unwrap().cast_signed()).unwrap();
        assert_eq!(begun.to_zoned(TimeZone::system()).date(), civil::date(2026, 1, 31));
        assert_eq!(
            (filter.source.as_deref(), filter.max_messages, filter.started_before),
            (Some("cli"), Some(0), None)
        );
        for line in ["", "--older-than -1", "--older-than 1 --started-after yesterday"] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
        let always = parse(&format!("--older-than {}", u64::MAX)).unwrap();
        assert_eq!(super::filter(&always).unwrap().silent_since, 0);
    }

    #[test]
    fn the_option_yes_answers_the_question() {
        assert!(agreed(&Consent { yes: true, dry_run: false, json: false }, "?").unwrap());
    }
}
