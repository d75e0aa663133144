//! The prices of tokens, relative to a fresh token.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LabError;

/// Prices per token. A file may use any unit, such as dollars per million tokens: the prices are divided by the price of
/// a fresh input token, which is the unit of all costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// An input token outside of the cache.
    pub input: f64,
    /// An input token written to the provider's cache.
    pub cache_write: f64,
    /// An input token read from the cache.
    pub cache_read: f64,
    /// An output token.
    pub output: f64,
    /// The price of the summariser's model, relative to these prices.
    #[serde(default = "Prices::standard_summariser")]
    pub summariser: f64,
    /// How long the provider keeps a cached prompt after its last use, in seconds.
    #[serde(default = "Prices::standard_ttl")]
    pub ttl_seconds: u64,
}

impl Prices {
    /// 1 / 1.25 / 0.1 and 5, a summariser at a fifth, 300 seconds.
    pub const STANDARD: Self =
        Self { input: 1.0, cache_write: 1.25, cache_read: 0.1, output: 5.0, summariser: 0.2, ttl_seconds: 300 };

    fn standard_summariser() -> f64 {
        Self::STANDARD.summariser
    }

    fn standard_ttl() -> u64 {
        Self::STANDARD.ttl_seconds
    }

    /// Reads a JSON or YAML file.
    ///
    /// # Errors
    ///
    /// [`LabError::Read`], [`LabError::Prices`].
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = std::fs::read_to_string(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|why| LabError::Prices { path: path.to_owned(), why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let given: Self = serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())?;
        let all = [
            ("input", given.input),
            ("cache_write", given.cache_write),
            ("cache_read", given.cache_read),
            ("output", given.output),
            ("summariser", given.summariser),
        ];
        if let Some((name, price)) = all.into_iter().find(|(_, price)| !price.is_finite() || *price < 0.0) {
            return Err(format!("`{name}` is {price}; a price is a number and not below zero"));
        }
        if given.input == 0.0 {
            return Err("`input` is 0, and all other prices are relative to it".to_owned());
        }
        let unit = given.input;
        Ok(Self {
            input: 1.0,
            cache_write: given.cache_write / unit,
            cache_read: given.cache_read / unit,
            output: given.output / unit,
            ..given
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn prices_in_any_unit_are_converted_to_fresh_tokens() {
        let yaml = "input: 3\ncache_write: 3.75\ncache_read: 0.3\noutput: 15\n";
        let prices = Prices::parse(yaml).unwrap();
        assert!((prices.cache_read - 0.1).abs() < 1e-12);
        assert_eq!((prices.cache_write, prices.output, prices.ttl_seconds), (1.25, 5.0, 300));
        let json = r#"{"input":1,"cache_write":1,"cache_read":0.5,"output":4,"summariser":0,"ttl_seconds":3600}"#;
        assert_eq!(Prices::parse(json).unwrap().ttl_seconds, 3600);
    }

    #[test]
    fn an_invalid_price_is_named() {
        for (text, named) in [
            ("input: 0\ncache_write: 1\ncache_read: 1\noutput: 1", "`input` is 0"),
            ("input: 1\ncache_write: -1\ncache_read: 1\noutput: 1", "`cache_write` is -1"),
            ("input: 1\ncache_write: .nan\ncache_read: 1\noutput: 1", "`cache_write` is NaN"),
            ("input: 1\ncache_write: 1\ncache_read: 1", "output"),
            ("input: 1\ncache_write: 1\ncache_read: 1\noutput: 1\nfresh: 1", "fresh"),
        ] {
            let why = Prices::parse(text).unwrap_err();
            assert!(why.contains(named), "{why}");
        }
    }
}
