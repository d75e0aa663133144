//! The user's settings and their defaults.

use hermes_guest_engine::settings::{self, count, flag, nearest_share, number};
use hermes_plugin::Error;

use crate::policy;

/// Below this threshold, summaries would take the place of the conversation.
const LOWEST: f64 = 0.2;
/// The most messages that are protected by their place.
const MOST_PROTECTED: u32 = 1_000;

const KEYS: [&str; 10] = [
    "threshold",
    "target_ratio",
    "protect_first_n",
    "protect_last_n",
    "tail_tokens",
    "fold_tokens",
    "working_tokens",
    "prefix_tokens",
    "assist",
    "notes",
];

/// The plugin's section of the configuration. Token settings use the host's estimate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Share of the usable window at which the view is replaced at any cost.
    pub(crate) threshold: f64,
    /// Size of the tail as a share of the threshold's tokens; overrides `tail_tokens`.
    pub(crate) target_ratio: Option<f64>,
    /// Number of first messages that stay in full.
    pub(crate) protect_first_n: usize,
    /// Number of newest messages that stay in full, as far as room allows.
    pub(crate) protect_last_n: usize,
    /// Tokens of the tail (the newest messages).
    pub(crate) tail_tokens: u32,
    /// Tokens that must have left the tail before they are folded.
    pub(crate) fold_tokens: u32,
    /// Tokens of the working set; 0 turns it off.
    pub(crate) working_tokens: u32,
    /// Most tokens of all segments together.
    pub(crate) prefix_tokens: u32,
    /// Whether `assist` inserts passages that the user's message names.
    pub(crate) assist: bool,
    /// Whether a model writes notes beside the rule-based lists.
    pub(crate) notes: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threshold: 0.75,
            target_ratio: None,
            protect_first_n: 0,
            protect_last_n: 0,
            tail_tokens: policy::TAIL,
            fold_tokens: policy::FOLD,
            working_tokens: policy::WORKING,
            prefix_tokens: policy::PREFIX,
            assist: true,
            notes: true,
        }
    }
}

impl Config {
    /// Parses a JSON object. An error names the invalid key.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut config = Self::default();
        for (key, value) in &settings::parse(text)? {
            match key.as_str() {
                // `compression` has these for every engine, so each value that is allowed there is one here.
                "threshold" => config.threshold = nearest_share(key, value, LOWEST..=policy::HIGHEST)?,
                "target_ratio" => config.target_ratio = Some(nearest_share(key, value, 0.02..=0.80)?),
                "protect_first_n" => config.protect_first_n = count(key, value, MOST_PROTECTED)? as usize,
                "protect_last_n" => config.protect_last_n = count(key, value, MOST_PROTECTED)? as usize,
                "tail_tokens" => config.tail_tokens = number(key, value, 500..=1_000_000)?,
                "fold_tokens" => config.fold_tokens = number(key, value, 1_000..=1_000_000)?,
                "working_tokens" => config.working_tokens = number(key, value, 0..=200_000)?,
                "prefix_tokens" => config.prefix_tokens = number(key, value, 1_000..=policy::PREFIX)?,
                "assist" => config.assist = flag(key, value)?,
                "notes" => config.notes = flag(key, value)?,
                _ => settings::unknown(key, &KEYS),
            }
        }
        Ok(config)
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
    fn settings_override_the_defaults() {
        let text = r#"{"threshold":0.95,"target_ratio":0.3,"protect_first_n":2,"protect_last_n":20,"tail_tokens":4000,
            "fold_tokens":9000,"working_tokens":0,"prefix_tokens":6000,"assist":false,"notes":false}"#;
        let expected = Config {
            threshold: 0.85,
            target_ratio: Some(0.3),
            protect_first_n: 2,
            protect_last_n: 20,
            tail_tokens: 4_000,
            fold_tokens: 9_000,
            working_tokens: 0,
            prefix_tokens: 6_000,
            assist: false,
            notes: false,
        };
        assert_eq!(Config::parse(text).unwrap(), expected);
    }

    #[test]
    fn every_value_that_the_host_passes_on_is_accepted() {
        for (given, holds) in [("0.001", 0.2), ("0.15", 0.2), ("0.2", 0.2), ("0.5", 0.5), ("0.99", 0.85), ("1", 0.85)] {
            assert_eq!(Config::parse(&format!(r#"{{"threshold":{given}}}"#)).unwrap().threshold, holds);
        }
        for (given, holds) in [("0.001", 0.02), ("0.3", 0.3), ("1", 0.8), ("1.0", 0.8)] {
            assert_eq!(Config::parse(&format!(r#"{{"target_ratio":{given}}}"#)).unwrap().target_ratio, Some(holds));
        }
        for (given, holds) in [("0", 0), ("7", 7), ("100000", 1_000), ("18446744073709551615", 1_000)] {
            let text = format!(r#"{{"protect_first_n":{given},"protect_last_n":{given}}}"#);
            let config = Config::parse(&text).unwrap();
            assert_eq!((config.protect_first_n, config.protect_last_n), (holds, holds));
        }
    }

    #[test]
    fn an_error_names_the_invalid_setting() {
        for (text, named) in [
            (r#"{"threshold":"high"}"#, "`threshold`"),
            (r#"{"threshold":0}"#, "`threshold`"),
            (r#"{"threshold":7}"#, "`threshold`"),
            (r#"{"target_ratio":7}"#, "`target_ratio`"),
            (r#"{"protect_first_n":-1}"#, "`protect_first_n`"),
            (r#"{"protect_last_n":1.5}"#, "`protect_last_n`"),
            (r#"{"tail_tokens":1}"#, "`tail_tokens`"),
            (r#"{"fold_tokens":null}"#, "`fold_tokens`"),
            (r#"{"working_tokens":[]}"#, "`working_tokens`"),
            (r#"{"prefix_tokens":50000}"#, "`prefix_tokens`"),
            (r#"{"assist":"yes"}"#, "`assist`"),
            (r#"{"notes":1}"#, "`notes`"),
            ("[]", "object"),
            ("{", "JSON"),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.message.contains(named), "{text} gives {error}");
        }
    }
}
