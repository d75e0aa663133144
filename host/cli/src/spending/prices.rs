//! `hermes usage prices`: shows the list prices in use, and replaces them by those of a file. Nothing is fetched.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use hermes_app::prices::{Prices, PricesError};
use serde_json::{Value, json};

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::table::{Align, Table};
use crate::text::{self, counted, line};

/// What failed if the prices stay as they are.
const FAILED: &str = "the prices were not replaced";

/// Which prices to use.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct PricesArguments {
    /// A JSON file with prices to use from now on [default: show the prices in use]
    file: Option<PathBuf>,
    /// Use only the built-in prices again
    #[arg(long, conflicts_with = "file")]
    built_in: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["file", "built_in"])]
    json: bool,
}

pub(super) fn run(arguments: &PricesArguments, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    match (&arguments.file, arguments.built_in) {
        (Some(file), _) => keep(file, setup, console),
        (None, true) => forget(setup, console),
        (None, false) => show(arguments.json, setup, console),
    }
}

/// Keeps the prices of a file in the home.
fn keep(file: &Path, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let prices = setup.keep_prices(file).map_err(|error| {
        let fix = match &error {
            PricesError::Unreadable { .. } => "give a file of prices",
            PricesError::Form { .. } => "correct the file; docs/use/usage.md describes its form",
            PricesError::Unwritable { .. } => "make room, or check who owns the folder",
            PricesError::Home(_) => "",
        };
        match error {
            PricesError::Home(error) => (*error).into(),
            error => Failure::new(Kind::General, FAILED, error.to_string(), fix),
        }
    })?;
    let own = prices.rows().filter(|row| row.is_own).count() as u64;
    let built_in = prices.rows().filter(|row| !row.is_own).count() as u64;
    console.note(&format!(
        "{} of {} from now on, in {}; {} more built in; costs in the ledger stay as they are",
        counted(own, "price"),
        prices.own_as_of().unwrap_or_default(),
        setup.home.prices().display(),
        counted(built_in, "price"),
    ));
    Ok(ExitCode::SUCCESS)
}

fn forget(setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let had_own = setup.forget_prices().map_err(|error| {
        let why = format!("{} cannot be removed: {error}", setup.home.prices().display());
        Failure::new(Kind::General, FAILED, why, "remove the file")
    })?;
    let since = if had_own { "from now on" } else { "are in use already" };
    console.note(&format!("the built-in prices of {} {since}", Prices::built_in().as_of()));
    Ok(ExitCode::SUCCESS)
}

fn show(json: bool, setup: &Setup, console: Console) -> Result<ExitCode, Failure> {
    let (prices, flaw) = setup.prices();
    if let Some(flaw) = flaw {
        console.warning(&flaw.to_string());
    }
    if json {
        print(&text::json(&as_json(&prices)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&[
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ]);
    table.head(["provider", "model", "input", "output", "cache read", "write 5m", "write 1h", "from"]);
    for row in prices.rows() {
        let price = row.price;
        let [input, output, read, write, longer] =
            [price.input, price.output, price.cache_read, price.cache_write, price.cache_write_1h].map(dollars);
        let from = if row.is_own { "prices.json" } else { "built in" };
        let cells = [line(row.vendor), line(row.model), input, output, read, write, longer, from.to_owned()];
        table.row(cells.map(|cell| (Tone::Plain, cell)));
    }
    print(&format!("{}US dollars per million tokens, list prices of {}\n", table.text(console), prices.as_of()))?;
    Ok(ExitCode::SUCCESS)
}

/// At most three decimals, without zeros at the end.
fn dollars(price: f64) -> String {
    let text = format!("{price:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn as_json(prices: &Prices) -> Value {
    let rows = prices.rows().map(|row| {
        json!({
            "vendor": row.vendor,
            "model": row.model,
            "input": row.price.input,
            "output": row.price.output,
            "cache_read": row.price.cache_read,
            "cache_write": row.price.cache_write,
            "cache_write_1h": row.price.cache_write_1h,
            "built_in": !row.is_own,
        })
    });
    json!({"as_of": prices.as_of(), "models": rows.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_shown_without_needless_zeros() {
        for (price, shown) in
            [(3.0, "3"), (0.25, "0.25"), (12.5, "12.5"), (0.0, "0"), (100.0, "100"), (0.0034, "0.003")]
        {
            assert_eq!(dollars(price), shown);
        }
    }
}
