//! The cost of a request: list prices as data with a date, and sums.
//!
//! A model that is not in the table has no price, and none is guessed. Models whose price changes with the
//! length of the prompt are left out.

use std::sync::LazyLock;

use hermes_conversation::Usage;
use serde::Deserialize;

use crate::Ttl;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/prices.json")).expect("the table is part of the program and tested")
});

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

#[derive(Deserialize)]
struct Table {
    as_of: String,
    models: Vec<Row>,
}

#[derive(Deserialize)]
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

/// The day on which the prices were looked up, such as `2026-01-31`.
pub fn prices_as_of() -> &'static str {
    &TABLE.as_of
}

/// The list price of a model, by the provider's name in the configuration; none if it is not certain.
///
/// The vendor before a slash, the spelling of versions and the date after a name do not matter.
///
/// ```
/// let price = hermes_models::price("openrouter", "anthropic/claude-sonnet-4.5").unwrap();
/// assert_eq!(price.input, 3.0);
/// assert!(hermes_models::price("ollama", "claude-sonnet-4-5").is_none());
/// ```
pub fn price(provider: &str, model: &str) -> Option<Price> {
    let (before, name) = model.rsplit_once('/').unwrap_or(("", model));
    let vendor = match provider {
        // Passes on what the vendors charge.
        "openrouter" => before,
        provider => provider,
    };
    let vendor = if vendor == "google" { "gemini" } else { vendor };
    let name = spelt(undated(name));
    TABLE.models.iter().find(|row| row.vendor == vendor && spelt(&row.model) == name).map(Row::price)
}

/// The list price of a request to `asked` that `answered` served, as the reply names it; none if it is not certain.
///
/// The model that served decides: behind an alias such as `openrouter/auto` it is another one each time. A snapshot of the model
/// that was asked, such as `grok-4-0709` of `grok-4`, costs the same.
///
/// ```
/// use hermes_models::price_of_reply;
///
/// let price = price_of_reply("openrouter", "openrouter/auto", Some("anthropic/claude-sonnet-4.5")).unwrap();
/// assert_eq!(price.input, 3.0);
/// assert!(price_of_reply("openrouter", "anthropic/claude-sonnet-4.5", Some("unknown/model")).is_none());
/// ```
pub fn price_of_reply(provider: &str, asked: &str, answered: Option<&str>) -> Option<Price> {
    let served = answered.unwrap_or(asked);
    price(provider, served).or_else(|| price(provider, asked).filter(|_| is_snapshot(served, asked)))
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
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
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

fn dollars(tokens: u32, price: f64) -> f64 {
    f64::from(tokens) * price / 1e6
}

fn write_price(price: &Price, ttl: Ttl) -> f64 {
    match ttl {
        Ttl::FiveMinutes => price.cache_write,
        Ttl::OneHour => price.cache_write_1h,
    }
}

/// What a request cost in US dollars. `ttl` is the lifetime of what it wrote to the cache.
pub fn cost(usage: &Usage, price: &Price, ttl: Ttl) -> f64 {
    let plain = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
    dollars(plain, price.input)
        + dollars(usage.cache_read, price.cache_read)
        + dollars(usage.cache_write, write_price(price, ttl))
        + dollars(usage.output, price.output)
}

/// What the cache saved in US dollars: reading is cheaper, writing may cost more. Negative
/// until the writes have paid off.
pub fn saved(usage: &Usage, price: &Price, ttl: Ttl) -> f64 {
    dollars(usage.cache_read, price.input - price.cache_read)
        - dollars(usage.cache_write, write_price(price, ttl) - price.input)
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
        let input = |provider, model| price(provider, model).map(|price| price.input);
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
        let input = |provider, asked, answered| price_of_reply(provider, asked, answered).map(|price| price.input);
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

    #[test]
    fn a_request_costs_the_sum_of_its_parts_and_saves_what_was_read() {
        let price = price("anthropic", "claude-sonnet-4-5").unwrap();
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
