//! The cost of a request: list prices as data with a date, and sums.
//!
//! A model that is not in the table has no price, and none is guessed. Models whose price changes with the
//! length of the prompt are left out.

use std::sync::{Arc, LazyLock};

use hermes_conversation::Usage;
use serde::Deserialize;

use crate::Ttl;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/prices.json")).expect("the table is part of the program and tested")
});

/// The list prices in use: those of the user's file, and the built-in ones for all other models.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: Option<Arc<Table>>,
}

/// A row of the prices in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceRow<'a> {
    /// Who charges: the provider as the configuration names it.
    pub vendor: &'a str,
    /// The model.
    pub model: &'a str,
    /// Its price.
    pub price: Price,
    /// Whether it is from the user's file.
    pub is_own: bool,
}

/// Why a file has no usable prices. `Display` continues a sentence that begins with the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceFlaw {
    /// The file has another form.
    #[error("it is not a file of prices: {0}")]
    Form(String),
    /// `as_of` is not a day.
    #[error("as_of is `{0}`, not a day such as 2026-01-31")]
    Date(String),
    /// A row names no vendor or no model.
    #[error("row {0} names no vendor or no model")]
    Nameless(usize),
    /// A price that nobody charges.
    #[error("row {0} ({1}) has a price below 0 or above 100,000 dollars")]
    Price(usize, String),
    /// Two prices for one model.
    #[error("row {0} ({1}) gives a second price to a model")]
    Again(usize, String),
}

impl Prices {
    /// The most bytes of a file.
    pub const LARGEST: u64 = 1 << 20;

    /// The built-in prices.
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The prices of a file, over the built-in ones.
    ///
    /// # Errors
    ///
    /// If the text is not a table of prices, or has a row that cannot be right.
    pub fn of_file(text: &str) -> Result<Self, PriceFlaw> {
        let table: Table = serde_json::from_str(text).map_err(|error| PriceFlaw::Form(error.to_string()))?;
        table.check()?;
        Ok(Self { own: Some(Arc::new(table)) })
    }

    /// The day of the prices, in words if there are two.
    pub fn as_of(&self) -> String {
        match &self.own {
            Some(own) => format!("{}, else {}", own.as_of, TABLE.as_of),
            None => TABLE.as_of.clone(),
        }
    }

    /// The day of the user's prices.
    pub fn own_as_of(&self) -> Option<&str> {
        self.own.as_deref().map(|own| own.as_of.as_str())
    }

    /// All prices in use, those of the user's file first.
    pub fn rows(&self) -> impl Iterator<Item = PriceRow<'_>> {
        let own = self.own.iter().flat_map(|own| &own.models).map(|row| row.shown(true));
        let is_replaced = |row: &Row| self.own.as_ref().is_some_and(|own| own.find(&row.vendor, &row.model).is_some());
        own.chain(TABLE.models.iter().filter(move |row| !is_replaced(row)).map(|row| row.shown(false)))
    }

    /// The list price of a model, by the provider's name in the configuration; none if it is not certain.
    ///
    /// The vendor before a slash, the spelling of versions and the date after a name do not matter.
    ///
    /// ```
    /// let prices = hermes_models::Prices::built_in();
    /// let price = prices.of("openrouter", "anthropic/claude-sonnet-4.5").unwrap();
    /// assert_eq!(price.input, 3.0);
    /// assert!(prices.of("ollama", "claude-sonnet-4-5").is_none());
    /// ```
    pub fn of(&self, provider: &str, model: &str) -> Option<Price> {
        let (before, name) = model.rsplit_once('/').unwrap_or(("", model));
        let vendor = match provider {
            // Passes on what the vendors charge.
            "openrouter" => before,
            provider => provider,
        };
        let vendor = if vendor == "google" { "gemini" } else { vendor };
        let own = self.own.as_ref().and_then(|own| own.find(vendor, name));
        own.or_else(|| TABLE.find(vendor, name)).map(Row::price)
    }

    /// The list price of a request to `asked` that `answered` served, as the reply names it; none if it is not certain.
    ///
    /// The model that served decides: behind an alias such as `openrouter/auto` it is another one each time. A snapshot of the
    /// model that was asked, such as `grok-4-0709` of `grok-4`, costs the same.
    ///
    /// ```
    /// let prices = hermes_models::Prices::built_in();
    /// let of_reply = |asked, answered| prices.of_reply("openrouter", asked, Some(answered));
    /// assert_eq!(of_reply("openrouter/auto", "anthropic/claude-sonnet-4.5").unwrap().input, 3.0);
    /// assert!(of_reply("anthropic/claude-sonnet-4.5", "unknown/model").is_none());
    /// ```
    pub fn of_reply(&self, provider: &str, asked: &str, answered: Option<&str>) -> Option<Price> {
        let served = answered.unwrap_or(asked);
        self.of(provider, served).or_else(|| self.of(provider, asked).filter(|_| is_snapshot(served, asked)))
    }
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Uncached prompt tokens.
    pub input: f64,
    /// A reply.
    pub output: f64,
    /// Tokens read from the cache.
    pub cache_read: f64,
    /// Tokens written to it for five minutes.
    pub cache_write: f64,
    /// Tokens written to it for an hour.
    pub cache_write_1h: f64,
}

#[derive(Debug, Deserialize)]
struct Table {
    as_of: String,
    models: Vec<Row>,
}

impl Table {
    fn find(&self, vendor: &str, model: &str) -> Option<&Row> {
        let name = spelt(undated(model));
        self.models.iter().find(|row| row.vendor == vendor && spelt(undated(&row.model)) == name)
    }

    /// Checks the rules of the built-in table that a user's file has to keep too.
    fn check(&self) -> Result<(), PriceFlaw> {
        let parts: Vec<&str> = self.as_of.split('-').collect();
        let is_day = matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2));
        if !is_day {
            return Err(PriceFlaw::Date(self.as_of.clone()));
        }
        for (at, row) in self.models.iter().enumerate() {
            let number = at + 1;
            if row.vendor.trim().is_empty() || row.model.trim().is_empty() {
                return Err(PriceFlaw::Nameless(number));
            }
            let Price { input, output, cache_read, cache_write, cache_write_1h } = row.price();
            let prices = [input, output, cache_read, cache_write, cache_write_1h];
            if !prices.iter().all(|price| (0.0..=100_000.0).contains(price)) {
                return Err(PriceFlaw::Price(number, row.model.clone()));
            }
            let name = |row: &Row| (row.vendor.clone(), spelt(undated(&row.model)));
            if self.models[..at].iter().any(|other| name(other) == name(row)) {
                return Err(PriceFlaw::Again(number, row.model.clone()));
            }
        }
        Ok(())
    }
}

#[derive(Debug, Deserialize)]
struct Row {
    vendor: String,
    model: String,
    input: f64,
    output: f64,
    #[serde(default)]
    cache_read: Option<f64>,
    #[serde(default)]
    cache_write: Option<f64>,
    #[serde(default)]
    cache_write_1h: Option<f64>,
}

impl Row {
    fn shown(&self, is_own: bool) -> PriceRow<'_> {
        PriceRow { vendor: &self.vendor, model: &self.model, price: self.price(), is_own }
    }

    /// Without a price for the cache, cached tokens cost as much as others.
    fn price(&self) -> Price {
        let cache_write = self.cache_write.unwrap_or(self.input);
        Price {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write,
            cache_write_1h: self.cache_write_1h.unwrap_or(cache_write),
        }
    }
}

/// The day on which the built-in prices were looked up, such as `2026-01-31`.
pub fn prices_as_of() -> &'static str {
    &TABLE.as_of
}

/// Whether a name is that of a model with numbers behind it.
fn is_snapshot(name: &str, model: &str) -> bool {
    let own = |name: &str| spelt(name.rsplit_once('/').map_or(name, |(_, own)| own));
    own(name)
        .strip_prefix(&own(model))
        .is_some_and(|rest| rest.starts_with('-') && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

fn spelt(name: &str) -> String {
    name.to_ascii_lowercase().replace('.', "-")
}

/// A name without `-latest`, `-20250929` or `-2025-09-29` at its end.
fn undated(name: &str) -> &str {
    if let Some(name) = name.strip_suffix("-latest") {
        return name;
    }
    for length in [9, 11] {
        let Some((name, end)) = name.len().checked_sub(length).and_then(|at| name.split_at_checked(at)) else {
            continue;
        };
        let parts: Vec<&str> = end.split('-').collect();
        let dated = match parts[..] {
            ["", date] => digits(date, 8),
            ["", year, month, day] => digits(year, 4) && digits(month, 2) && digits(day, 2),
            _ => false,
        };
        if dated {
            return name;
        }
    }
    name
}

/// Whether a text is so many digits.
fn digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn dollars(tokens: u32, price: f64) -> f64 {
    f64::from(tokens) * price / 1e6
}

impl Price {
    /// The price of writing to a cache that keeps for this long.
    pub fn write(&self, ttl: Ttl) -> f64 {
        match ttl {
            Ttl::FiveMinutes => self.cache_write,
            Ttl::OneHour => self.cache_write_1h,
        }
    }
}

/// What a request cost in US dollars. `ttl` is the lifetime of what it wrote to the cache.
pub fn cost(usage: &Usage, price: &Price, ttl: Ttl) -> f64 {
    let plain = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
    dollars(plain, price.input)
        + dollars(usage.cache_read, price.cache_read)
        + dollars(usage.cache_write, price.write(ttl))
        + dollars(usage.output, price.output)
}

/// What the cache saved in US dollars: reading is cheaper, writing may cost more. Negative
/// until the writes have paid off.
pub fn saved(usage: &Usage, price: &Price, ttl: Ttl) -> f64 {
    dollars(usage.cache_read, price.input - price.cache_read)
        - dollars(usage.cache_write, price.write(ttl) - price.input)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_dated() {
        let date: Vec<&str> = prices_as_of().split('-').collect();
        assert!(matches!(date[..], [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() == 2));
        for (at, row) in TABLE.models.iter().enumerate() {
            let price = row.price();
            assert!(0.0 < price.cache_read && price.cache_read <= price.input, "{}", row.model);
            assert!(price.input <= price.cache_write && price.cache_write <= price.cache_write_1h, "{}", row.model);
            assert!(price.input < price.output, "{}", row.model);
            assert_eq!(undated(&row.model), row.model);
            let again = |other: &Row| other.vendor == row.vendor && spelt(&other.model) == spelt(&row.model);
            assert!(!TABLE.models[at + 1..].iter().any(again), "{} stands twice", row.model);
        }
    }

    #[test]
    fn a_model_is_found_however_its_name_is_written_and_only_where_its_vendor_charges() {
        let input = |provider, model| Prices::built_in().of(provider, model).map(|price| price.input);
        for (provider, model, expected) in [
            ("anthropic", "claude-sonnet-4-5", Some(3.0)),
            ("anthropic", "claude-sonnet-4-5-20250929", Some(3.0)),
            ("anthropic", "Anthropic/Claude-Sonnet-4.5", Some(3.0)),
            ("anthropic", "claude-opus-4-20250514", Some(15.0)),
            ("openrouter", "anthropic/claude-3.5-haiku", Some(0.8)),
            ("openrouter", "google/gemini-2.5-flash", Some(0.3)),
            ("openrouter", "openai/gpt-4.1-mini", Some(0.4)),
            ("openai", "gpt-4o-2024-08-06", Some(2.5)),
            ("anthropic", "claude-3-5-haiku-latest", Some(0.8)),
            ("anthropic", "claude-unreleased-9", None),
            ("openrouter", "anthropic/claude-sonnet-4.5:free", None),
            ("openrouter", "claude-sonnet-4.5", None),
            ("openai", "claude-sonnet-4-5", None),
            ("custom", "gpt-4.1", None),
            ("openai", "-20250929", None),
            ("openai", "ä-2025-09-2", None),
            ("offline", "offline", None),
        ] {
            assert_eq!(input(provider, model), expected, "{provider} {model}");
        }
    }

    #[test]
    fn the_model_that_answered_decides_the_price() {
        let prices = Prices::built_in();
        let input = |provider, asked, answered| prices.of_reply(provider, asked, answered).map(|price| price.input);
        for (provider, asked, answered, expected) in [
            ("openrouter", "openrouter/auto", Some("anthropic/claude-sonnet-4.5"), Some(3.0)),
            ("openrouter", "openrouter/auto", Some("openai/gpt-4o-2024-08-06"), Some(2.5)),
            ("openrouter", "openrouter/auto", Some("openrouter/auto"), None),
            ("openrouter", "openrouter/auto", None, None),
            ("openai", "gpt-4.1", Some("gpt-4.1-mini"), Some(0.4)),
            ("openai", "gpt-4.1", Some("gpt-4.1-0414"), Some(2.0)),
            ("openai", "gpt-4.1", Some("another-4.1"), None),
            ("openai", "gpt-4.1", Some("gpt-4.1-turbo"), None),
            ("openai", "gpt-4.1", None, Some(2.0)),
        ] {
            assert_eq!(input(provider, asked, answered), expected, "{provider} {asked} {answered:?}");
        }
    }

    fn file(models: &str) -> String {
        format!(r#"{{"as_of": "2027-02-03", "models": [{models}]}}"#)
    }

    #[test]
    fn a_file_takes_precedence_and_leaves_other_models_as_they_are() {
        let rows = r#"{"vendor":"openai","model":"gpt-4.1","input":1,"output":2},{"vendor":"work","model":"big","input":0,"output":0}"#;
        let prices = Prices::of_file(&file(rows)).unwrap();
        let input = |provider, model| prices.of(provider, model).map(|price| price.input);
        assert_eq!(
            (input("openai", "gpt-4.1-2025-04-14"), input("openrouter", "openai/gpt-4.1")),
            (Some(1.0), Some(1.0))
        );
        assert_eq!((input("work", "big"), input("openai", "gpt-4.1-mini")), (Some(0.0), Some(0.4)));
        assert_eq!(prices.as_of(), format!("2027-02-03, else {}", prices_as_of()));
        assert_eq!((prices.own_as_of(), Prices::built_in().own_as_of()), (Some("2027-02-03"), None));
        let replaced: Vec<bool> = prices.rows().filter(|row| row.model == "gpt-4.1").map(|row| row.is_own).collect();
        assert_eq!((replaced, prices.rows().count()), (vec![true], Prices::built_in().rows().count() + 1));
    }

    #[test]
    fn a_file_that_cannot_be_right_is_refused() {
        let row = r#"{"vendor":"v","model":"m-1","input":1,"output":2}"#;
        let flaw = |models: &str| Prices::of_file(&file(models)).unwrap_err();
        assert!(matches!(Prices::of_file("[]").unwrap_err(), PriceFlaw::Form(_)));
        assert!(matches!(flaw(r#"{"vendor":"v","model":"m"}"#), PriceFlaw::Form(_)));
        let undated = file(row).replace("2027-02-03", "soon");
        assert_eq!(Prices::of_file(&undated).unwrap_err(), PriceFlaw::Date("soon".into()));
        assert_eq!(flaw(&row.replace("m-1", " ")), PriceFlaw::Nameless(1));
        for price in ["-1", "100001", "1e300"] {
            assert_eq!(flaw(&row.replace(":1,", &format!(":{price},"))), PriceFlaw::Price(1, "m-1".into()), "{price}");
        }
        assert_eq!(flaw(&format!("{row},{}", row.replace("m-1", "M.1"))), PriceFlaw::Again(2, "M.1".into()));
        assert!(Prices::of_file(&file("")).unwrap().own_as_of().is_some());
    }

    #[test]
    fn a_request_costs_the_sum_of_its_parts_and_saves_what_was_read() {
        let price = Prices::built_in().of("anthropic", "claude-sonnet-4-5").unwrap();
        let usage = Usage { input: 13_000, output: 500, cache_read: 10_000, cache_write: 2_000, reasoning: 100 };
        let near = |left: f64, right: f64| assert!((left - right).abs() < 1e-12, "{left} {right}");
        near(cost(&usage, &price, Ttl::FiveMinutes), 0.003 + 0.0075 + 0.003 + 0.0075);
        near(cost(&usage, &price, Ttl::OneHour), 0.003 + 0.012 + 0.003 + 0.0075);
        near(saved(&usage, &price, Ttl::FiveMinutes), 0.027 - 0.0015);
        let uncached = Usage { cache_read: 0, cache_write: 0, ..usage };
        near(
            cost(&uncached, &price, Ttl::FiveMinutes),
            cost(&usage, &price, Ttl::FiveMinutes) + saved(&usage, &price, Ttl::FiveMinutes),
        );
        // If a server reports more tokens read than sent, no cost is negative.
        let odd = Usage { input: 5, cache_read: 10, ..Usage::default() };
        assert!(cost(&odd, &price, Ttl::FiveMinutes) > 0.0);
    }
}
