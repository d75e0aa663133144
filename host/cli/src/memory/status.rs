//! `hermes memory status`, `retry` and `off`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use hermes_app::memory::{self, BUILT_IN, Notebook, Notes, OpenBreaker, Provider, Retried, Suspension, Target, usage};
use hermes_app::{ModelChoice, Undelivered};
use hermes_config::Edit;
use hermes_diagnostic::counted;
use serde_json::{Value, json};

use super::{LoadArguments, failed, printed, printed_json};
use crate::console::{Console, Tone};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::moments::{local, now};
use crate::question::confirmed;
use crate::table::{Align, Table};
use crate::text;

/// What the notes and the providers are like.
struct State {
    notebook: Notebook,
    /// Writes that wait for the user's approval.
    pending: usize,
    selected: Option<String>,
    providers: Vec<Provider>,
    documents: Vec<(Target, Notes, usize)>,
}

impl State {
    async fn read(setup: &Setup) -> Result<Self, Failure> {
        let notebook = Notebook::open(setup);
        let pending = notebook.pending().map_err(failed)?.len();
        let selected = setup.selection(&ModelChoice::default()).memory;
        let providers = memory::providers(setup).await?;
        let mut documents = Vec::new();
        for target in Target::ALL {
            documents.push((target, notebook.notes(target).map_err(failed)?, notebook.limit(target)));
        }
        Ok(Self { notebook, pending, selected, providers, documents })
    }
}

pub(super) async fn show(json: bool, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    if json {
        return printed_json(&as_json(&State::read(setup).await?));
    }
    printed(&text(setup, console).await?)
}

fn as_json(state: &State) -> Value {
    let State { notebook, pending, selected, providers, documents } = state;
    let documents: Vec<_> = documents
        .iter()
        .map(|(target, notes, limit)| {
            json!({
                "target": target.name(), "document": target.document(), "entries": notes.entries().len(),
                "chars": notes.chars(), "limit": limit,
            })
        })
        .collect();
    let listed = providers.iter().map(|provider| {
        json!({
            "name": provider.name,
            "breaker": provider.breaker,
            "selected": provider.is_selected,
            "installed": provider.is_installed,
            "turns": provider.turns,
        })
    });
    json!({
        "builtin": {
            "enabled": notebook.is_on(), "write_approval": notebook.asks(), "pending": pending, "documents": documents,
        },
        "provider": selected,
        "providers": listed.collect::<Vec<_>>(),
    })
}

/// The table of `hermes memory status` and `/memory`.
pub(crate) async fn text(setup: &Setup, console: Console) -> Result<String, Failure> {
    let state = State::read(setup).await?;
    let State { notebook, pending, selected, providers, documents } = state;
    let mut table = Table::new(&[Align::Left, Align::Left]);
    let on = |is_on: bool| if is_on { (Tone::Good, "on".to_owned()) } else { (Tone::Faint, "off".to_owned()) };
    table.row([(Tone::Plain, BUILT_IN.to_owned()), on(notebook.is_on())]);
    for (target, notes, limit) in &documents {
        let entries = match notes.entries().len() {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        let line = format!("{}, {entries}", usage(notes.chars(), *limit));
        let tone = if notes.chars() > *limit { Tone::Warning } else { Tone::Plain };
        table.row([(Tone::Plain, format!("  {}", target.document())), (tone, line)]);
    }
    if pending > 0 || notebook.asks() {
        let line = format!("{} for your approval (`hermes memory pending`)", waits(pending));
        let tone = if pending > 0 { Tone::Warning } else { Tone::Plain };
        table.row([(Tone::Plain, "  pending".to_owned()), (tone, line)]);
    }
    if selected.is_none() {
        table
            .row([(Tone::Plain, "provider".to_owned()), (Tone::Faint, "none (memory.provider is not set)".to_owned())]);
    }
    for Provider { name, is_selected, is_installed, breaker, suspension, turns } in &providers {
        let state = match (is_selected, is_installed) {
            (true, true) => (Tone::Good, "selected".to_owned()),
            (true, false) => (Tone::Bad, "selected, but not installed".to_owned()),
            (false, _) => (Tone::Faint, "not selected".to_owned()),
        };
        table.row([(Tone::Plain, text::line(name)), state]);
        if let Some(OpenBreaker { since, retry_at, failures, why }) = breaker {
            let next = match retry_at.saturating_sub(now()).div_ceil(1_000) {
                0 => "the next one asks it again".to_owned(),
                seconds => format!("one asks it again in {seconds} s"),
            };
            let line = format!(
                "open since {}, after {failures} failures in a row: turns go on without it, and {next} ({why})",
                local(*since)
            );
            table.row([(Tone::Plain, "  breaker".to_owned()), (Tone::Bad, text::line(&line))]);
        } else if *is_selected {
            table.row([(Tone::Plain, "  breaker".to_owned()), (Tone::Plain, "closed".to_owned())]);
        }
        if let Some(Suspension { failures, last }) = suspension {
            let line = format!("disabled after {failures} crashes in a row in its last session: {}", last.cause);
            table.row([(Tone::Plain, "  suspended".to_owned()), (Tone::Bad, text::line(&line))]);
        }
        let Undelivered { waiting, set_aside } = Undelivered::among(turns, name);
        if let Some(waiting) = waiting {
            table.row([(Tone::Plain, "  waiting".to_owned()), (Tone::Warning, text::line(&waiting.line()))]);
        }
        if let Some(rejected) = set_aside {
            let line = format!("{} (`hermes memory retry` sends them again)", rejected.line());
            table.row([(Tone::Plain, "  set aside".to_owned()), (Tone::Bad, text::line(&line))]);
        }
    }
    Ok(table.text(console))
}

fn waits(count: usize) -> String {
    match count {
        0 => "nothing waits".to_owned(),
        1 => "1 write waits".to_owned(),
        count => format!("{count} writes wait"),
    }
}

pub(super) async fn retry(provider: Option<&str>, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let Retried { turns, of, asked_again } = memory::retry(setup, provider).await?;
    for name in asked_again {
        console.note(&format!("the next session asks the memory `{}` again", text::line(&name)));
    }
    if turns == 0 {
        let whom = provider.map_or_else(String::new, |name| format!(" for `{}`", text::line(name)));
        console.note(&format!("no turn waits{whom}, and none was set aside"));
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<String> = of.iter().map(|name| format!("`{}`", text::line(name))).collect();
    printed(&format!(
        "{} for {}: a session that runs sends them again after its next turn, else the next one that starts\n",
        counted(turns as u64, "turn"),
        names.join(", ")
    ))
}

pub(super) async fn load(arguments: &LoadArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    const DAY: u64 = 24 * 60 * 60 * 1_000;
    let Some(provider) = setup.selection(&ModelChoice::default()).memory else {
        let what = "no conversations were loaded";
        let fix = "select one with `hermes memory setup NAME`";
        return Err(Failure::new(Kind::Usage, what, "no memory provider is selected", fix));
    };
    let store = setup.store()?;
    let since = arguments.days.map_or(0, |days| now().saturating_sub(days.saturating_mul(DAY)));
    let turns = store.finished_turns(since).await?;
    let sessions: BTreeSet<_> = turns.iter().map(|turn| &turn.session).collect();
    let (Some(first), Some(last)) = (turns.first(), turns.last()) else {
        console.note("there are no finished turns to load");
        return Ok(ExitCode::SUCCESS);
    };
    let name = text::line(&provider);
    let what = format!(
        "{} of {}, from {} to {}",
        counted(turns.len() as u64, "turn"),
        counted(sessions.len() as u64, "session"),
        local(first.ended_at),
        local(last.ended_at)
    );
    console.note(&format!(
        "{what}\n`{name}` gets what you and the model wrote in them, and may send it to the addresses that it may reach \
         (`hermes plugins info {name}`). It may get turns that it has already, and is to store those only once: `hermes plugins \
         test` checks that of a provider."
    ));
    if arguments.consent.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let question = format!("Give them to `{name}`?");
    let fix = "run it in a terminal, or add --yes";
    if !arguments.consent.yes && !confirmed(&question, "no conversations were loaded", fix)? {
        return printed("Nothing was loaded.\n");
    }
    let count = store.queue_turns(&provider, &turns).await?;
    printed(&format!(
        "{} for `{name}`: the next sessions deliver them in the background, the oldest first, up to 32 conversations each; \
         `hermes memory status` shows what still waits\n",
        counted(count as u64, "turn")
    ))
}

pub(super) fn off(setup: &Setup) -> Result<ExitCode, Failure> {
    let Some(name) = &setup.config.settings().memory.provider else {
        return printed(
            "Nothing changed: no memory provider is selected. `hermes plugins disable builtin` turns off the built-in memory.\n",
        );
    };
    let mut edit = Edit::of(&setup.home.config())?;
    edit.remove("memory.provider")?;
    edit.save()?;
    printed(&format!(
        "memory.provider: none (was {})\nThe change applies to new sessions. Turns that wait for it are kept.\n",
        text::line(name)
    ))
}
