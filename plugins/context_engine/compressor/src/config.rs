//! What users may set, and what holds where they do not.

use hermes_plugin::{Error, log};
use serde_json::{Map, Value};

/// The plugin's section of the user's configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Share of the usable window at which the view is replaced.
    pub(crate) threshold: f64,
    /// Share of the threshold's tokens that the newest messages may take.
    pub(crate) target_ratio: f64,
    /// Messages at the beginning that the first compaction leaves as they are.
    pub(crate) protect_first_n: usize,
    /// Messages at the end that are kept as far as the room goes.
    pub(crate) protect_last_n: usize,
    /// Share of the usable window from which on summaries are written ahead.
    pub(crate) prepare_at: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { threshold: 0.75, target_ratio: 0.20, protect_first_n: 3, protect_last_n: 8, prepare_at: 0.60 }
    }
}

impl Config {
    /// From a JSON object; what does not fit is said by its key.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let given: Value = if text.trim().is_empty() { Value::Object(Map::new()) } else { serde_json::from_str(text)? };
        let Value::Object(given) = given else {
            return Err(Error::invalid("the configuration is no object with keys such as `threshold`"));
        };
        let mut config = Self::default();
        for (key, value) in &given {
            match key.as_str() {
                "threshold" => config.threshold = share(key, value, 0.2, 0.95)?,
                "target_ratio" => config.target_ratio = share(key, value, 0.05, 0.80)?,
                "prepare_at" => config.prepare_at = share(key, value, 0.1, 0.95)?,
                "protect_first_n" => config.protect_first_n = count(key, value)?,
                "protect_last_n" => config.protect_last_n = count(key, value)?,
                _ => log::warn(format!(
                    "the setting `{key}` is not known and has no effect; known are threshold, target_ratio, prepare_at, \
                     protect_first_n and protect_last_n"
                )),
            }
        }
        Ok(config)
    }
}

fn share(key: &str, value: &Value, least: f64, most: f64) -> Result<f64, Error> {
    match value.as_f64() {
        Some(share) if (least..=most).contains(&share) => Ok(share),
        _ => Err(Error::invalid(format!("the setting `{key}` is {value}: it must be a number from {least} to {most}"))),
    }
}

fn count(key: &str, value: &Value) -> Result<usize, Error> {
    match value.as_u64().and_then(|count| usize::try_from(count).ok()) {
        Some(count) if count <= 1_000 => Ok(count),
        _ => Err(Error::invalid(format!("the setting `{key}` is {value}: it must be a whole number from 0 to 1000"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nothing_set_means_the_defaults() {
        for text in ["", "{}", r#"{"colour":"red"}"#] {
            assert_eq!(Config::parse(text).unwrap(), Config::default());
        }
    }

    #[test]
    fn what_is_set_holds() {
        let text = r#"{"threshold":0.5,"target_ratio":0.3,"protect_first_n":0,"protect_last_n":20,"prepare_at":0.4}"#;
        let config = Config::parse(text).unwrap();
        let expected =
            Config { threshold: 0.5, target_ratio: 0.3, protect_first_n: 0, protect_last_n: 20, prepare_at: 0.4 };
        assert_eq!(config, expected);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, named) in [
            (r#"{"threshold":"high"}"#, "`threshold`"),
            (r#"{"threshold":7}"#, "`threshold`"),
            (r#"{"target_ratio":null}"#, "`target_ratio`"),
            (r#"{"prepare_at":[]}"#, "`prepare_at`"),
            (r#"{"protect_first_n":-1}"#, "`protect_first_n`"),
            (r#"{"protect_last_n":1.5}"#, "`protect_last_n`"),
            ("[]", "object"),
            ("{", "JSON"),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.message.contains(named), "{text} gives {error}");
        }
    }
}
