//! What users may set, and what holds where they do not.

use hermes_plugin::{Error, log};
use serde_json::{Map, Value};

use crate::policy;

/// The plugin's section of the user's configuration. Tokens are those of the host's estimate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Share of the usable window at which the view is replaced whatever it costs.
    pub(crate) threshold: f64,
    /// Share of the threshold's tokens that the newest messages may take; none for `tail_tokens`.
    pub(crate) target_ratio: Option<f64>,
    /// Messages at the beginning that stay as they are.
    pub(crate) protect_first_n: usize,
    /// Messages at the end that stay as they are, as far as the room goes.
    pub(crate) protect_last_n: usize,
    /// Tokens that the newest messages may take.
    pub(crate) tail_tokens: u32,
    /// Tokens that have to have left the tail before they are folded.
    pub(crate) fold_tokens: u32,
    /// Tokens of the working set; 0 for none.
    pub(crate) working_tokens: u32,
    /// Tokens of all segments together.
    pub(crate) prefix_tokens: u32,
    /// Whether passages are brought back without being asked for.
    pub(crate) assist: bool,
    /// Whether a model writes notes beside what is listed by rule.
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
    /// From a JSON object; what does not fit is said by its key.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let given: Value = if text.trim().is_empty() { Value::Object(Map::new()) } else { serde_json::from_str(text)? };
        let Value::Object(given) = given else {
            return Err(Error::invalid("the configuration is no object with keys such as `threshold`"));
        };
        let mut config = Self::default();
        for (key, value) in &given {
            match key.as_str() {
                // Users share the setting with engines that take more; a window is never filled beyond 85 % here.
                "threshold" => config.threshold = share(key, value, 0.2, 0.95)?.min(policy::HIGHEST),
                "target_ratio" => config.target_ratio = Some(share(key, value, 0.02, 0.80)?),
                "protect_first_n" => config.protect_first_n = number(key, value, 0, 1_000)? as usize,
                "protect_last_n" => config.protect_last_n = number(key, value, 0, 1_000)? as usize,
                "tail_tokens" => config.tail_tokens = number(key, value, 500, 1_000_000)?,
                "fold_tokens" => config.fold_tokens = number(key, value, 1_000, 1_000_000)?,
                "working_tokens" => config.working_tokens = number(key, value, 0, 200_000)?,
                "prefix_tokens" => config.prefix_tokens = number(key, value, 1_000, policy::PREFIX)?,
                "assist" => config.assist = flag(key, value)?,
                "notes" => config.notes = flag(key, value)?,
                _ => log::warn(format!(
                    "the setting `{key}` is not known and has no effect; known are threshold, target_ratio, \
                     protect_first_n, protect_last_n, tail_tokens, fold_tokens, working_tokens, prefix_tokens, assist \
                     and notes"
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

fn number(key: &str, value: &Value, least: u32, most: u32) -> Result<u32, Error> {
    match value.as_u64().and_then(|count| u32::try_from(count).ok()) {
        Some(count) if (least..=most).contains(&count) => Ok(count),
        _ => Err(Error::invalid(format!(
            "the setting `{key}` is {value}: it must be a whole number from {least} to {most}"
        ))),
    }
}

fn flag(key: &str, value: &Value) -> Result<bool, Error> {
    value.as_bool().ok_or_else(|| Error::invalid(format!("the setting `{key}` is {value}: it must be true or false")))
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
    fn what_does_not_fit_is_named() {
        for (text, named) in [
            (r#"{"threshold":"high"}"#, "`threshold`"),
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
