//! `hermes usage` and `/usage`: tokens and cost of requests by day, session, model and plugin.

mod prices;
mod sum;

use std::collections::HashMap;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use hermes_app::sessions::{SessionStore, UsageRow};
use hermes_protocol::SessionId;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use serde_json::{Value, json};

use self::sum::Sum;
use crate::bars;
use crate::console::{Console, Tone, print};
use crate::failure::Failure;
use crate::launch;
use crate::table::{Align, Table};
use crate::text::{self, counted, dollars, line};

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

/// A group of requests: what identifies it, what is shown, and the sum.
struct Group {
    key: String,
    about: String,
    sum: Sum,
}

pub(crate) async fn run(arguments: &UsageArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    if let Some(PricesCommand::Prices(arguments)) = &arguments.prices {
        return prices::run(arguments, &setup, console);
    }
    let since = first_moment(arguments.days, &setup.now()?);
    let store = setup.store_to_read()?;
    let rows = match &store {
        Some(store) => store.usage(since, None).await?,
        None => Vec::new(),
    };
    let titles = match (&store, arguments.by) {
        (Some(store), By::Session) => titles(&**store).await?,
        _ => HashMap::new(),
    };
    let groups = groups(&rows, arguments.by, &titles);
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

/// What requests cost, if all of their prices are known.
pub(crate) fn known_cost(rows: &[UsageRow]) -> Option<f64> {
    let sum = rows.iter().collect::<Sum>();
    (sum.unpriced == 0).then_some(sum.cost)
}

/// The usage of one session, for `/usage`.
pub(crate) fn of_session(rows: &[UsageRow], as_of: &str, console: Console) -> String {
    /// The columns that the table needs.
    const COLUMNS: usize = 90;
    let total = rows.iter().collect::<Sum>();
    let key = |row: &UsageRow| (asker(row).to_owned(), model(row));
    if console.columns().is_some_and(|columns| columns < COLUMNS) {
        let mut out = String::new();
        for ((asker, model), sum) in sum::by(rows, key) {
            let [_, input, cached, output, cost] = sum.cells();
            let requests = counted(sum.requests, "request");
            out.push_str(&console.hanging(&format!("{} · {}", line(&asker), line(&model)), 2));
            let used = format!("  {requests}: {input} in ({cached} from cache), {output} out, cost {cost}");
            out.push_str(&console.hanging(&used, 4));
        }
        return out + &closing(&total, as_of).lines().map(|line| console.hanging(line, 2)).collect::<String>();
    }
    let mut table =
        Table::new(&[Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right]);
    table.head(["asked by", "model", "requests", "input", "from cache", "output", "cost"]);
    for ((asker, model), sum) in sum::by(rows, key) {
        let [requests, input, cached, output, cost] = sum.cells();
        table.row([line(&asker), line(&model), requests, input, cached, output, cost].map(|cell| (Tone::Plain, cell)));
    }
    format!("{}{}", table.text(console), closing(&total, as_of))
}

/// The first millisecond of the first day that counts; 0 for all days.
fn first_moment(days: u32, now: &Zoned) -> u64 {
    let Some(back) = days.checked_sub(1) else { return 0 };
    let day = now.date().checked_sub(Span::new().days(i64::from(back.min(36_500)))).unwrap_or(jiff::civil::Date::MIN);
    let begun = day.to_zoned(now.time_zone().clone()).map(|begun| begun.timestamp().as_millisecond());
    begun.ok().and_then(|moment| u64::try_from(moment).ok()).unwrap_or(0)
}

async fn titles(store: &dyn SessionStore) -> Result<HashMap<SessionId, String>, Failure> {
    let sessions = store.sessions().await?;
    Ok(sessions.into_iter().filter_map(|session| Some((session.id, session.title?))).collect())
}

fn asker(row: &UsageRow) -> &str {
    row.plugin.as_deref().unwrap_or(if row.delegated_by.is_some() { DELEGATED } else { CONVERSATION })
}

fn model(row: &UsageRow) -> String {
    format!("{}/{}", row.provider, row.model)
}

/// The day of a moment in the user's time zone.
fn day(sent_at: u64) -> String {
    let time = i64::try_from(sent_at).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string()
}

/// Days in their order, anything else by its cost.
fn groups(rows: &[UsageRow], by: By, titles: &HashMap<SessionId, String>) -> Vec<Group> {
    let sums = match by {
        By::Day => sum::by(rows, |row| day(row.sent_at)),
        By::Session => sum::by(rows, |row| row.delegated_by.as_ref().unwrap_or(&row.session).to_string()),
        By::Model => sum::by(rows, model),
        By::Plugin => sum::by(rows, |row| asker(row).to_owned()),
    };
    let about = |key: &String| titles.get(&SessionId(key.clone())).cloned().unwrap_or_default();
    let mut groups: Vec<Group> = sums.into_iter().map(|(key, sum)| Group { about: about(&key), key, sum }).collect();
    if by != By::Day {
        groups.sort_by(|left, right| right.sum.weight().total_cmp(&left.sum.weight()));
    }
    groups
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
        let [requests, input, cached, output, cost] = group.sum.cells();
        let bar = bars::bar(if most > 0.0 { share(group, total) / most } else { 0.0 }, WIDTH);
        let plain = |text| (Tone::Plain, text);
        table.row([
            plain(line(&group.key)),
            plain(requests),
            plain(input),
            plain(cached),
            plain(output),
            plain(cost),
            (Tone::Good, bar),
            plain(text::title(&group.about)),
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
    let [_, input, cached, output, _] = total.cells();
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
    let name = match by {
        By::Day => "day",
        By::Session => "session",
        By::Model => "model",
        By::Plugin => "plugin",
    };
    let row = |group: &Group| {
        let key = if group.key == CONVERSATION { Value::Null } else { group.key.clone().into() };
        let mut row = group.sum.json();
        row[name] = key;
        if by == By::Session {
            row["title"] = if group.about.is_empty() { Value::Null } else { group.about.clone().into() };
        }
        row
    };
    json!({
        "by": name,
        "since": (since > 0).then_some(since),
        "rows": groups.iter().map(row).collect::<Vec<_>>(),
        "total": total.json(),
        "prices_as_of": as_of,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_protocol::Usage;

    use super::*;

    fn row(session: &str, plugin: Option<&str>, model: &str, input: u32, cost: Option<f64>) -> UsageRow {
        UsageRow {
            session: SessionId(session.into()),
            delegated_by: None,
            plugin: plugin.map(str::to_owned),
            task: plugin.map(|_| "compression".to_owned()),
            sent_at: 0,
            provider: "p".into(),
            model: model.into(),
            usage: (input > 0).then(|| Usage { input, output: 10, cache_read: input / 2, ..Usage::default() }),
            cost,
        }
    }

    fn rows() -> Vec<UsageRow> {
        vec![
            row("a", None, "large", 1_000, Some(0.5)),
            row("a", Some("compressor"), "small", 2_000, Some(0.1)),
            row("b", None, "large", 3_000, Some(1.5)),
            row("b", None, "free", 4_000, None),
            row("b", None, "large", 0, None),
        ]
    }

    fn keys(by: By) -> Vec<String> {
        groups(&rows(), by, &HashMap::new()).into_iter().map(|group| group.key).collect()
    }

    #[test]
    fn requests_are_summed_up_by_session_model_and_plugin() {
        assert_eq!(keys(By::Session), ["b", "a"]);
        assert_eq!(keys(By::Model), ["p/large", "p/small", "p/free"]);
        assert_eq!(keys(By::Plugin), [CONVERSATION, "compressor"]);
        let by_model = groups(&rows(), By::Model, &HashMap::new());
        let large = &by_model[0].sum;
        assert_eq!(
            (large.requests, large.input, large.cached, large.unreported, large.unpriced),
            (3, 4_000, 2_000, 1, 0)
        );
        assert_eq!((large.known_cost(), by_model[2].sum.known_cost()), (Some(2.0), None));
    }

    #[test]
    fn requests_of_subagents_count_for_the_session_that_delegated() {
        let by = Some(SessionId("a".into()));
        let mut rows = rows();
        rows.extend([None, Some("compressor")].map(|plugin| {
            let row = row("child", plugin, "large", 100, Some(5.0));
            UsageRow { delegated_by: by.clone(), ..row }
        }));
        let of = |by: By| {
            let groups = groups(&rows, by, &HashMap::new()).into_iter();
            groups.map(|group| (group.key, group.sum.cost)).collect::<Vec<_>>()
        };
        let named =
            |rows: &[(&str, f64)]| rows.iter().map(|(key, cost)| ((*key).to_owned(), *cost)).collect::<Vec<_>>();
        assert_eq!(of(By::Session), named(&[("a", 10.6), ("b", 1.5)]));
        assert_eq!(of(By::Plugin), named(&[("compressor", 5.1), (DELEGATED, 5.0), (CONVERSATION, 2.0)]));
    }

    #[test]
    fn the_table_names_what_the_total_leaves_out() {
        let groups = groups(&rows(), By::Plugin, &HashMap::new());
        let total = rows().iter().collect::<Sum>();
        let shown = shown(By::Plugin, &groups, &total, "2026-01-31", Console::plain(false));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].starts_with("(conversation)") && lines[1].contains("8,000"), "{shown}");
        assert!(lines[2].contains("$0.1000"), "{shown}");
        assert_eq!(
            &lines[3..],
            [
                "5 requests: 10,000 tokens in (5,000 from caches), 40 out, $2.1000 (list prices of 2026-01-31)",
                "no known price: 1 request",
                "no report of the provider: 1 request",
            ]
        );
        let json = as_json(By::Plugin, 0, &groups, &total, "2026-01-31");
        assert_eq!((&json["rows"][0]["plugin"], &json["rows"][1]["plugin"]), (&Value::Null, &json!("compressor")));
        assert_eq!((&json["total"]["requests"], &json["since"]), (&json!(5), &Value::Null));
    }

    #[test]
    fn the_first_day_begins_at_midnight() {
        let now: Zoned = "2026-03-02T13:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let begun = |days| first_moment(days, &now);
        let at = |text: &str| u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap();
        assert_eq!(begun(0), 0);
        assert_eq!(begun(1), at("2026-03-01T23:00:00Z"));
        assert_eq!(begun(3), at("2026-02-27T23:00:00Z"));
        assert_eq!(begun(u32::MAX), 0);
    }
}
