//! `hermes lab cache`: what a simulated week costs with each cache lifetime.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hermes_console::console::{Console, Tone, print};
use hermes_console::failure::{Failure, Kind};
use hermes_console::table::{Align, Table};
use hermes_console::text;
use hermes_models::{Price, Prices};
use serde_json::{Value, json};

use crate::week::{Bill, Cost, Pattern, Week};
use crate::{LabError, Recording, Terms, terms};

/// The recordings and the weeks.
#[derive(Debug, Clone, Args)]
pub(crate) struct CacheArguments {
    /// Recordings, as for `hermes lab replay`
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The model whose list prices count, with its provider
    #[arg(long, value_name = "PROVIDER/MODEL", default_value = "anthropic/claude-opus-4-8")]
    model: String,
    /// Seed of the week with pauses of 3, 20 and 70 minutes
    #[arg(long, value_name = "NUMBER", default_value_t = Pattern::STANDARD.seed)]
    seed: u64,
    /// Also simulate this many weeks with other pauses, each drawn from a seed after --seed
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    weeks: u64,
    /// The model's context window in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = Terms::STANDARD.window)]
    window: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A simulated week and what it costs.
struct Simulated {
    pattern: Pattern,
    requests: usize,
    bill: Bill,
}

pub(super) fn run(arguments: &CacheArguments, console: Console) -> Result<ExitCode, Failure> {
    let terms = terms::with_window(Terms::STANDARD, arguments.window)?;
    let price = price(&arguments.model)?;
    let mut patterns = vec![Pattern { seed: arguments.seed, ..Pattern::STANDARD }];
    patterns.extend((1..=arguments.weeks).map(|more| Pattern::drawn(arguments.seed.wrapping_add(more))));
    let mut lines = Vec::new();
    let mut reports = Vec::new();
    for file in &arguments.files {
        for recording in Recording::read(file).map_err(LabError::from)? {
            let simulated: Vec<Simulated> = patterns
                .iter()
                .map(|pattern| {
                    let week = Week::of(&recording, &terms, pattern);
                    Simulated { pattern: *pattern, requests: week.requests(), bill: week.bill(&price) }
                })
                .collect();
            if arguments.json {
                reports.push(as_json(&recording.name, &simulated));
            } else {
                lines.extend(as_table(&recording.name, &simulated, &arguments.model, console));
            }
        }
    }
    if arguments.json {
        let report =
            json!({ "model": arguments.model, "prices_as_of": hermes_models::prices_as_of(), "recordings": reports });
        print(&(text::escaped(&report.to_string()) + "\n"))?;
    } else {
        print(&lines.concat())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The price of a model, which must charge more for an hour than for five minutes.
fn price(model: &str) -> Result<Price, Failure> {
    let unusable = |why: String| {
        let fix = "name a model such as anthropic/claude-sonnet-4-5; `hermes usage prices` lists the prices";
        Failure::new(Kind::Usage, "the value of --model is invalid", why, fix)
    };
    let Some((provider, name)) = model.split_once('/') else {
        return Err(unusable(format!("`{model}` does not have the form PROVIDER/MODEL")));
    };
    let price = Prices::built_in().of(provider, name);
    let price = price.ok_or_else(|| unusable(format!("the list prices do not contain `{model}`")))?;
    if price.cache_write_1h > price.cache_write {
        Ok(price)
    } else {
        Err(unusable(format!("`{model}` has no price of its own for an hour of caching")))
    }
}

fn rows(bill: &Bill) -> [(&'static str, &Cost); 4] {
    [
        ("5 minutes", &bill.five_minutes),
        ("1 hour", &bill.one_hour),
        ("policy", &bill.policy),
        ("policy and warming", &bill.warming),
    ]
}

fn as_table(name: &str, simulated: &[Simulated], model: &str, console: Console) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(Simulated { pattern, requests, bill }) = simulated.first() {
        let [short, middle, long] = pattern.pauses;
        lines.push(format!(
            "{name}: a week of {requests} requests, bursts with pauses of {short}, {middle} and {long} minutes (seed {}), prices of {} as of {}\n\n",
            pattern.seed, text::escaped(model), hermes_models::prices_as_of()
        ));
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
        table.head(["lifetime", "read", "written", "cost of prompts", "against the better fixed one"]);
        let better = bill.five_minutes.total.min(bill.one_hour.total);
        for (lifetime, cost) in rows(bill) {
            table.row(
                [
                    lifetime.to_owned(),
                    format!("{:.1} M", cost.read / 1e6),
                    format!("{:.1} M", cost.written / 1e6),
                    format!("${:.2}", cost.total),
                    percent(cost.total / better - 1.0),
                ]
                .map(|cell| (Tone::Plain, cell)),
            );
        }
        lines.extend(table.lines(console));
        lines.push(format!(
            "\nThe policy chose an hour for {} requests. {} requests only kept the cache warm.\n",
            bill.hours, bill.warmings
        ));
    }
    if let Some(others) = simulated.get(1..).filter(|others| !others.is_empty()) {
        lines.push("\nWeeks with other pauses:\n\n".to_owned());
        let mut table = Table::new(&[Align::Right; 9]);
        table.head([
            "seed",
            "pauses, minutes",
            "requests",
            "5 minutes",
            "1 hour",
            "policy",
            "against the better",
            "and warming",
            "against the policy",
        ]);
        for Simulated { pattern, requests, bill } in others {
            let [five, hour, policy, warming] = rows(bill).map(|(_, cost)| format!("${:.2}", cost.total));
            let pauses = pattern.pauses.map(|pause| format!("{pause:.0}")).join(", ");
            let cells = [
                pattern.seed.to_string(),
                pauses,
                requests.to_string(),
                five,
                hour,
                policy,
                percent(bill.regret()),
                warming,
                percent(bill.of_warming()),
            ];
            table.row(cells.map(|cell| (Tone::Plain, cell)));
        }
        lines.extend(table.lines(console));
        let summary = |of: fn(&Bill) -> f64| {
            let all = others.iter().map(|week| of(&week.bill));
            let worst = all.clone().fold(f64::MIN, f64::max);
            format!("mean {}, worst {}", percent(all.sum::<f64>() / others.len() as f64), percent(worst))
        };
        lines.push(format!(
            "\nThe policy against the better fixed lifetime: {}. Warming against the policy: {}.\n",
            summary(Bill::regret),
            summary(Bill::of_warming)
        ));
    }
    lines
}

fn percent(share: f64) -> String {
    // The sum turns −0.0 into 0.0.
    format!("{:+.1} %", (share * 1_000.0).round() / 10.0 + 0.0)
}

fn as_json(name: &str, simulated: &[Simulated]) -> Value {
    let weeks: Vec<Value> = simulated
        .iter()
        .map(|Simulated { pattern, requests, bill }| {
            json!({
                "pattern": pattern,
                "requests": requests,
                "bill": bill,
                "regret": bill.regret(),
                "of_warming": bill.of_warming(),
            })
        })
        .collect();
    json!({ "recording": name, "weeks": weeks })
}
