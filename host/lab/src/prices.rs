//! Reads the prices of tokens.

use std::path::Path;

use hermes_engine_trials::Prices;
use hermes_recordings::RecordingError;

use crate::LabError;

/// Reads prices from a JSON or YAML file, in any unit.
///
/// # Errors
///
/// [`LabError::File`], [`LabError::Prices`].
pub fn read(path: &Path) -> Result<Prices, LabError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| RecordingError::Read { path: path.to_owned(), source })?;
    parse(&text).map_err(|why| LabError::Prices { path: path.to_owned(), why })
}

fn parse(text: &str) -> Result<Prices, String> {
    let given: Prices = serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())?;
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
    Ok(Prices {
        input: 1.0,
        cache_write: given.cache_write / unit,
        cache_read: given.cache_read / unit,
        output: given.output / unit,
        ..given
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn prices_in_any_unit_are_converted_to_fresh_tokens() {
        let yaml = "input: 3\ncache_write: 3.75\ncache_read: 0.3\noutput: 15\n";
        let prices = parse(yaml).unwrap();
        assert!((prices.cache_read - 0.1).abs() < 1e-12);
        assert_eq!((prices.cache_write, prices.output, prices.ttl_seconds), (1.25, 5.0, 300));
        let json = r#"{"input":1,"cache_write":1,"cache_read":0.5,"output":4,"summariser":0,"ttl_seconds":3600}"#;
        assert_eq!(parse(json).unwrap().ttl_seconds, 3600);
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
            let why = parse(text).unwrap_err();
            assert!(why.contains(named), "{why}");
        }
    }
}
