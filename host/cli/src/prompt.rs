//! `hermes prompt`: the system prompt of a session by tier and layer, and its difference from a prompt built now.

use std::process::ExitCode;

use hermes_app::prompt::{self, Difference, Layer, Opening, OpeningComparison, Tools};
use hermes_app::{Beginning, Desk, Lifetime, Opened, SessionRequest};
use hermes_protocol::{Command, EventKind};
use serde_json::{Value, json};

use crate::arguments::PromptArguments;
use crate::bars;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::session_arguments::ModelArguments;
use crate::table::{Align, Table};
use crate::text::{self, grouped};
use crate::wording;

/// Columns of a bar.
const WIDTH: usize = 24;

pub(crate) async fn run(
    arguments: &PromptArguments,
    model: &ModelArguments,
    verbose: u8,
    console: Console,
) -> Result<ExitCode, Failure> {
    let request = launch::request(model, Lifetime::OneTurn)?;
    let desk = launch::desk(launch::read()?, &request, verbose, console).await?;
    let store = desk.store(None)?;
    if let Some(id) = &arguments.rebuild {
        return rebuild(&desk, request, id, console).await;
    }
    let wanted = arguments.diff.as_deref().or(arguments.id.as_deref());
    let id = match wanted {
        Some(id) => Some(store.resolve_session(id).await?),
        None => None,
    };
    let openings = desk.compare_openings(&request, id.as_ref()).await?;
    for notice in &openings.notices {
        console.note(&wording::notice(notice));
    }
    if arguments.diff.is_some() {
        return difference(&openings, console);
    }
    let shown = match (&openings.stored, &id) {
        (Some(stored), _) => stored,
        (None, Some(id)) => {
            console.note(&format!("session {id} has sent no requests yet; this is the prompt that it would use"));
            &openings.now
        }
        (None, None) => &openings.now,
    };
    if arguments.json {
        print(&text::json(&as_json(shown)))?;
    } else if arguments.text {
        let is_foreign = match &id {
            Some(id) => store.session(id).await?.imported,
            None => false,
        };
        let text = shown.prompt.text();
        // The user decides about it, so a terminal shows every character.
        let text = if is_foreign && console.screen { text::exact_lines(&text).join("\n") } else { text.to_string() };
        print(&format!("{text}\n"))?;
    } else {
        print(&table(shown, console))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn rebuild(desk: &Desk, request: SessionRequest, id: &str, console: Console) -> Result<ExitCode, Failure> {
    let begin = Beginning::Resume { id: id.to_owned(), branch: false };
    let Opened { session, .. } = desk.session(&request.beginning(begin)).await?;
    let id = session.session().map(|id| id.to_string()).unwrap_or_default();
    let mut events = session.subscribe(Some(&session.beginning()));
    let rebuilt = session.send(Command::RebuildPrompt).await;
    let closed = session.send(Command::Close).await;
    while let Some(event) = events.next().await {
        match &event.kind {
            EventKind::Notice { text, fix } => console.note(&wording::with_fix(text, fix)),
            EventKind::PromptRebuilt { changed: Some(changed) } => console.note(&format!(
                "the system prompt of {id} was rebuilt; changed: {changed}; the next request cannot use the provider's \
                 prompt cache"
            )),
            EventKind::PromptRebuilt { changed: None } => {
                console.note(&format!("the system prompt of {id} is up to date; nothing was changed"));
            }
            _ => {}
        }
    }
    rebuilt?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

fn difference(openings: &OpeningComparison, console: Console) -> Result<ExitCode, Failure> {
    let Some(Difference { layers, tools }) = prompt::difference(openings) else {
        let why = "the session has sent no requests yet";
        return Err(Failure::new(
            Kind::General,
            "there is no prompt to compare",
            why,
            "choose another session of `hermes sessions list`",
        ));
    };
    let mut out = String::new();
    for layer in layers {
        for (number, line) in layer.lines().enumerate() {
            let tone = match line.as_bytes().first() {
                _ if number == 0 => Tone::Faint,
                Some(b'+') => Tone::Good,
                Some(b'-') => Tone::Bad,
                _ => Tone::Plain,
            };
            out.push_str(&console.paint(tone, &console.shown(line)));
            out.push('\n');
        }
    }
    if let Some((gone, new)) = tools {
        out.push_str(&console.paint(Tone::Faint, "tools: changed\n"));
        out.extend(gone.iter().map(|name| format!("- {name}\n")));
        out.extend(new.iter().map(|name| format!("+ {name}\n")));
    }
    if out.is_empty() {
        console.note("nothing has changed since the session's prompt was built");
    }
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// The rows of the table: tier, name and tokens of each layer.
fn rows(opening: &Opening) -> Vec<(String, String, u32)> {
    let Tools { shown, deferred, tokens } = prompt::tools(opening);
    let mut counted = text::counted(shown as u64, "tool");
    if deferred > 0 {
        counted.push_str(&format!(", {deferred} deferred"));
    }
    let mut rows: Vec<(String, String, u32)> = vec![("tools".to_owned(), counted, tokens)];
    rows.extend(prompt::layers(opening).into_iter().map(|layer| (layer.tier, layer.name, layer.tokens)));
    rows
}

fn table(opening: &Opening, console: Console) -> String {
    let rows = rows(opening);
    let total: u32 = rows.iter().map(|(_, _, tokens)| tokens).sum();
    let width = bar_width(&rows, console.columns());
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left, Align::Right, Align::Right]);
    let mut before = String::new();
    for (tier, name, tokens) in rows {
        let shown = if tier == before { String::new() } else { tier.clone() };
        let share = f64::from(tokens) / f64::from(total.max(1));
        table.row([
            (Tone::Good, shown),
            (Tone::Plain, text::line(&name)),
            (Tone::Faint, bars::bar(share, width)),
            (Tone::Plain, grouped(u64::from(tokens))),
            (Tone::Plain, format!("{:.1}%", share * 100.0)),
        ]);
        before = tier;
    }
    table.row(["", "", "", &grouped(u64::from(total)), "tokens"].map(|cell| (Tone::Plain, cell.to_owned())));
    format!("{} (estimate)\n", table.text(console).trim_end())
}

/// The columns of a bar, so that a row fits the terminal.
fn bar_width(rows: &[(String, String, u32)], columns: Option<usize>) -> usize {
    /// The columns of tokens, shares, and the spaces between all cells; with `(estimate)` below them.
    const NUMBERS: usize = 6 + 6 + 4 * 2 + 11;
    const LEAST: usize = 4;
    let Some(columns) = columns else { return WIDTH };
    let widest =
        |of: fn(&(String, String, u32)) -> &String| rows.iter().map(|row| text::columns(of(row))).max().unwrap_or(0);
    let taken = widest(|row| &row.0) + widest(|row| &row.1) + NUMBERS;
    columns.saturating_sub(taken + 1).clamp(LEAST, WIDTH)
}

fn as_json(opening: &Opening) -> Value {
    let layer = |Layer { tier, name, text, tokens }: Layer| json!({"tier": tier, "layer": name, "tokens": tokens, "text": text});
    json!({
        "layers": prompt::layers(opening).into_iter().map(layer).collect::<Vec<Value>>(),
        "text": opening.prompt.text(),
        "tools": serde_json::from_str::<Value>(&opening.tools).unwrap_or_default(),
        "tool_tokens": prompt::tools(opening).tokens,
    })
}
