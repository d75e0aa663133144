//! `hermes usage` and `/usage`: tokens and cost of requests by day, session, model and plugin.

mod prices;

use std::collections::HashMap;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use hermes_app::spending::{self, Asker, Group, Key, Sum, UsageRow};
use serde_json::{Value, json};

use crate::bars;
use crate::console::{Console, Tone, print};
use crate::failure::Failure;
use crate::launch;
use crate::table::{Align, Table};
use crate::text::{self, counted, dollars, grouped, line};

/// Columns of a bar.
const WIDTH: usize = 16;
/// Who asks in a conversation, beside the names of plugins.
const CONVERSATION: &str = "(conversation)";
/// Who asks in the conversations of subagents.
const DELEGATED: &str = "(subagents)";

/// What `hermes usage` shows.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct UsageArguments {
    #[command(subcommand)]
    prices: Option<PricesCommand>,
    /// Sum up by this
    #[arg(long, value_enum, default_value_t = By::Day)]
    by: By,
    /// Count only the last N days, today included; 0 for all
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What requests are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// The day on which they were sent
    Day,
    /// The session
    Session,
    /// The model that answered
    Model,
    /// The plugin that asked, and the conversation itself
    Plugin,
}

/// The prices of requests.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum PricesCommand {
    /// Show the prices in use, or replace them by those of a file
    Prices(prices::PricesArguments),
}

impl By {
    /// The key in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Session => "session",
            Self::Model => "model",
            Self::Plugin => "plugin",
        }
    }
}

impl From<By> for spending::By {
    fn from(by: By) -> Self {
        match by {
            By::Day => Self::Day,
            By::Session => Self::Session,
            By::Model => Self::Model,
            By::Plugin => Self::Asker,
        }
    }
}

pub(crate) async fn run(arguments: &UsageArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    if let Some(PricesCommand::Prices(arguments)) = &arguments.prices {
        return prices::run(arguments, &setup, console);
    }
    let since = spending::first_moment(arguments.days, &setup.now()?);
    let store = setup.store_to_read()?;
    let rows = match &store {
        Some(store) => store.usage(since, None).await?,
        None => Vec::new(),
    };
    let titles = match (&store, arguments.by) {
        (Some(store), By::Session) => spending::titles(&**store).await?,
        _ => HashMap::new(),
    };
    let groups = spending::groups(&rows, arguments.by.into(), &titles);
    let total = rows.iter().collect::<Sum>();
    let as_of = setup.prices().0.as_of();
    if arguments.json {
        print(&text::json(&as_json(arguments.by, since, &groups, &total, &as_of)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        let when = if arguments.days == 0 {
            String::new()
        } else {
            format!(" in the last {}", counted(arguments.days.into(), "day"))
        };
        console.note(&format!("no request was sent{when}; `--days 0` counts all"));
        return Ok(ExitCode::SUCCESS);
    }
    print(&shown(arguments.by, &groups, &total, &as_of, console))?;
    Ok(ExitCode::SUCCESS)
}

/// The usage of one session, for `/usage`.
pub(crate) fn of_session(rows: &[UsageRow], as_of: &str, console: Console) -> String {
    /// The columns that the table needs.
    const COLUMNS: usize = 90;
    let total = rows.iter().collect::<Sum>();
    let key = |row: &UsageRow| (Asker::of(row), spending::model(row));
    if console.columns().is_some_and(|columns| columns < COLUMNS) {
        let mut out = String::new();
        for ((asker, model), sum) in spending::sums(rows, key) {
            let [_, input, cached, output, cost] = cells(&sum);
            let requests = counted(sum.requests, "request");
            out.push_str(&console.hanging(&format!("{} · {}", asked_by(&asker), line(&model)), 2));
            let used = format!("  {requests}: {input} in ({cached} from cache), {output} out, cost {cost}");
            out.push_str(&console.hanging(&used, 4));
        }
        return out + &closing(&total, as_of).lines().map(|line| console.hanging(line, 2)).collect::<String>();
    }
    let mut table =
        Table::new(&[Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right]);
    table.head(["asked by", "model", "requests", "input", "from cache", "output", "cost"]);
    for ((asker, model), sum) in spending::sums(rows, key) {
        let [requests, input, cached, output, cost] = cells(&sum);
        table.row(
            [asked_by(&asker), line(&model), requests, input, cached, output, cost].map(|cell| (Tone::Plain, cell)),
        );
    }
    format!("{}{}", table.text(console), closing(&total, as_of))
}

/// Requests, input, what came from a cache, output, cost.
fn cells(sum: &Sum) -> [String; 5] {
    [
        grouped(sum.requests),
        grouped(sum.input),
        grouped(sum.cached),
        grouped(sum.output),
        sum.known_cost().map_or_else(|| "-".to_owned(), dollars),
    ]
}

fn asked_by(asker: &Asker) -> String {
    match asker {
        Asker::Conversation => CONVERSATION.to_owned(),
        Asker::Subagents => DELEGATED.to_owned(),
        Asker::Plugin(name) => line(name),
    }
}

fn shown(by: By, groups: &[Group], total: &Sum, as_of: &str, console: Console) -> String {
    let mut table = Table::new(&[
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
    ]);
    let name = match by {
        By::Day => "day",
        By::Session => "session",
        By::Model => "model",
        By::Plugin => "asked by",
    };
    let title = if by == By::Session { "title" } else { "" };
    table.head([name, "requests", "input", "from cache", "output", "cost", "", title]);
    let most = groups.iter().map(|group| share(group, total)).fold(0.0, f64::max);
    for group in groups {
        let [requests, input, cached, output, cost] = cells(&group.sum);
        let bar = bars::bar(if most > 0.0 { share(group, total) / most } else { 0.0 }, WIDTH);
        let plain = |text| (Tone::Plain, text);
        let key = match &group.key {
            Key::Day(day) => line(day),
            Key::Session(session) => line(session.as_str()),
            Key::Model(model) => line(model),
            Key::Asker(asker) => asked_by(asker),
        };
        table.row([
            plain(key),
            plain(requests),
            plain(input),
            plain(cached),
            plain(output),
            plain(cost),
            (Tone::Good, bar),
            plain(text::title(group.title.as_deref().unwrap_or_default())),
        ]);
    }
    format!("{}{}", table.text(console), closing(total, as_of))
}

/// The length of a bar: by cost if every price is known, else by tokens, which are always comparable.
fn share(group: &Group, total: &Sum) -> f64 {
    if total.unpriced == 0 { group.sum.cost } else { group.sum.tokens() as f64 }
}

/// The last lines: the total, and what it leaves out.
fn closing(total: &Sum, as_of: &str) -> String {
    let [_, input, cached, output, _] = cells(total);
    let cost = match total.known_cost() {
        Some(cost) => format!("{} (list prices of {as_of})", dollars(cost)),
        None => "cost unknown".to_owned(),
    };
    let requests = counted(total.requests, "request");
    let mut out = format!("{requests}: {input} tokens in ({cached} from caches), {output} out, {cost}\n");
    if total.unpriced > 0 {
        out.push_str(&format!("no known price: {}\n", counted(total.unpriced, "request")));
    }
    if total.unreported > 0 {
        out.push_str(&format!("no report of the provider: {}\n", counted(total.unreported, "request")));
    }
    out
}

fn as_json(by: By, since: u64, groups: &[Group], total: &Sum, as_of: &str) -> Value {
    let row = |group: &Group| {
        let mut row = sum_json(&group.sum);
        row[by.name()] = match &group.key {
            Key::Day(day) => json!(day),
            Key::Session(session) => json!(session),
            Key::Model(model) => json!(model),
            Key::Asker(Asker::Conversation) => Value::Null,
            Key::Asker(Asker::Subagents) => json!(DELEGATED),
            Key::Asker(Asker::Plugin(name)) => json!(name),
        };
        if by == By::Session {
            row["title"] = json!(group.title);
        }
        row
    };
    json!({
        "by": by.name(),
        "since": (since > 0).then_some(since),
        "rows": groups.iter().map(row).collect::<Vec<_>>(),
        "total": sum_json(total),
        "prices_as_of": as_of,
    })
}

fn sum_json(sum: &Sum) -> Value {
    json!({
        "requests": sum.requests,
        "unreported": sum.unreported,
        "unpriced": sum.unpriced,
        "input": sum.input,
        "cache_read": sum.cached,
        "cache_write": sum.written,
        "output": sum.output,
        "cost": sum.known_cost(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use hermes_protocol::{SessionId, Usage};

    use super::*;

    fn row(plugin: Option<&str>, input: u32, cost: Option<f64>) -> UsageRow {
        UsageRow {
            session: SessionId("a".into()),
            delegated_by: None,
            plugin: plugin.map(str::to_owned),
            task: None,
            sent_at: 0,
            provider: "p".into(),
            model: "m".into(),
            usage: (input > 0).then(|| Usage { input, output: 10, cache_read: input / 2, ..Usage::default() }),
            cost,
        }
    }

    #[test]
    fn the_table_names_what_the_total_leaves_out() {
        let rows = [
            row(None, 4_000, Some(2.0)),
            row(Some("compressor"), 2_000, Some(0.1)),
            row(None, 4_000, None),
            row(None, 0, None),
        ];
        let groups = spending::groups(&rows, spending::By::Asker, &HashMap::new());
        let total = rows.iter().collect::<Sum>();
        let shown = shown(By::Plugin, &groups, &total, "2026-01-31", Console::plain(false));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].starts_with("(conversation)") && lines[1].contains("8,000"), "{shown}");
        assert!(lines[2].contains("$0.1000"), "{shown}");
        assert_eq!(
            &lines[3..],
            [
                "4 requests: 10,000 tokens in (5,000 from caches), 30 out, $2.1000 (list prices of 2026-01-31)",
                "no known price: 1 request",
                "no report of the provider: 1 request",
            ]
        );
        let json = as_json(By::Plugin, 0, &groups, &total, "2026-01-31");
        assert_eq!((&json["rows"][0]["plugin"], &json["rows"][1]["plugin"]), (&Value::Null, &json!("compressor")));
        assert_eq!((&json["total"]["requests"], &json["since"]), (&json!(4), &Value::Null));
    }
}
