//! The user's settings and their defaults.

use hermes_guest_engine::settings;
use hermes_plugin::Error;
use serde_json::Value;

/// Windows smaller than this get a higher default threshold, because they fill quickly.
const SMALL_WINDOW: u32 = 512_000;

const KEYS: [&str; 5] = ["threshold", "target_ratio", "prepare_at", "protect_first_n", "protect_last_n"];

/// The plugin's section of the user's configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Share of the usable window at which the view is replaced. `None` derives it from the window's size.
    pub(crate) threshold: Option<f64>,
    /// Size of the tail as a share of the threshold's tokens.
    pub(crate) target_ratio: f64,
    /// Number of first messages that the first compaction keeps in full.
    pub(crate) protect_first_n: usize,
    /// Number of newest messages that are kept as far as room allows, and shortened last.
    pub(crate) protect_last_n: usize,
    /// Share of the usable window from which summaries are prepared and better views offered. `None`: four fifths of the
    /// threshold.
    pub(crate) prepare_at: Option<f64>,
}

impl Default for Config {
    fn default() -> Self {
        Self { threshold: None, target_ratio: 0.20, protect_first_n: 3, protect_last_n: 20, prepare_at: None }
    }
}

impl Config {
    /// The threshold for a window. The maximum of 0.85 leaves room for estimation errors.
    pub(crate) fn threshold(&self, window: u32) -> f64 {
        let default = if window < SMALL_WINDOW { 0.75 } else { 0.50 };
        self.threshold.unwrap_or(default).clamp(0.05, 0.85)
    }

    /// Number of newest messages kept before the tail budget applies.
    pub(crate) fn least_tail(&self) -> usize {
        self.protect_last_n.clamp(3, 8)
    }

    /// Parses a JSON object. An error names the invalid key.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut config = Self::default();
        for (key, value) in &settings::parse(text)? {
            match key.as_str() {
                "threshold" => config.threshold = Some(share(key, value)?),
                "target_ratio" => config.target_ratio = share(key, value)?.clamp(0.10, 0.80),
                "prepare_at" => config.prepare_at = Some(share(key, value)?),
                "protect_first_n" => config.protect_first_n = settings::count(key, value, 1_000)? as usize,
                "protect_last_n" => config.protect_last_n = settings::count(key, value, 1_000)? as usize,
                _ => settings::unknown(key, &KEYS),
            }
        }
        Ok(config)
    }
}

fn share(key: &str, value: &Value) -> Result<f64, Error> {
    match value.as_f64() {
        Some(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(Error::invalid(format!("the setting `{key}` is {value}: it must be a number above 0 and up to 1"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_configuration_gives_the_defaults() {
        for text in ["", "{}", r#"{"colour":"red"}"#] {
            assert_eq!(Config::parse(text).unwrap(), Config::default());
        }
    }

    #[test]
    fn settings_apply_within_their_limits() {
        let text = r#"{"threshold":0.5,"target_ratio":0.3,"protect_first_n":0,"protect_last_n":6,"prepare_at":0.4}"#;
        let expected = Config {
            threshold: Some(0.5),
            target_ratio: 0.3,
            protect_first_n: 0,
            protect_last_n: 6,
            prepare_at: Some(0.4),
        };
        assert_eq!(Config::parse(text).unwrap(), expected);
        for (given, holds) in [("0.01", 0.10), ("0.10", 0.10), ("0.8", 0.80), ("1", 0.80)] {
            assert_eq!(Config::parse(&format!(r#"{{"target_ratio":{given}}}"#)).unwrap().target_ratio, holds);
        }
        for (given, floor) in [(0, 3), (3, 3), (6, 6), (20, 8)] {
            assert_eq!(Config { protect_last_n: given, ..Config::default() }.least_tail(), floor);
        }
    }

    #[test]
    fn small_windows_raise_the_threshold_unless_the_user_set_it() {
        let at = |given: Option<f64>, window| Config { threshold: given, ..Config::default() }.threshold(window);
        for (given, window, holds) in [
            (None, 64_000, 0.75),
            (None, 511_999, 0.75),
            (None, 512_000, 0.50),
            (None, 1_000_000, 0.50),
            (Some(0.5), 200_000, 0.5),
            (Some(0.95), 200_000, 0.85),
            (Some(0.001), 200_000, 0.05),
        ] {
            assert_eq!(at(given, window), holds, "{given:?} at {window}");
        }
    }

    #[test]
    fn an_error_names_the_invalid_setting() {
        for (text, named) in [
            (r#"{"threshold":"high"}"#, "`threshold`"),
            (r#"{"threshold":7}"#, "`threshold`"),
            (r#"{"threshold":0}"#, "`threshold`"),
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
