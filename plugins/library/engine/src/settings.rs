//! Parsing of an engine's settings. Every error names the key and the allowed values.

use std::ops::RangeInclusive;

use hermes_plugin::{Error, log};
use serde_json::{Map, Value};

/// The keys and values of a configuration section. An empty text counts as an empty object.
pub fn parse(text: &str) -> Result<Map<String, Value>, Error> {
    let given: Value = if text.trim().is_empty() { Value::Object(Map::new()) } else { serde_json::from_str(text)? };
    match given {
        Value::Object(given) => Ok(given),
        _ => Err(Error::invalid("the configuration must be an object with keys such as `threshold`")),
    }
}

/// A share above 0 and up to 1, as `compression` has them for every engine. What this engine does not support counts as the
/// nearest value that it does.
pub fn nearest_share(key: &str, value: &Value, supported: RangeInclusive<f64>) -> Result<f64, Error> {
    let given = value.as_f64().filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| {
        Error::invalid(format!("the setting `{key}` is {value}: it must be a number above 0 and up to 1"))
    })?;
    let share = given.clamp(*supported.start(), *supported.end());
    if !supported.contains(&given) {
        log::warn(format!("the setting `{key}` is {given}, and counts as {share} for this engine"));
    }
    Ok(share)
}

/// A whole number of at least 0. One above `most` counts as that.
pub fn count(key: &str, value: &Value, most: u32) -> Result<u32, Error> {
    let number = value.as_u64().ok_or_else(|| {
        Error::invalid(format!("the setting `{key}` is {value}: it must be a whole number of at least 0"))
    })?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX).min(most))
}

/// A whole number within a range.
pub fn number(key: &str, value: &Value, allowed: RangeInclusive<u32>) -> Result<u32, Error> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.filter(|number| allowed.contains(number)).ok_or_else(|| {
        let (least, most) = (allowed.start(), allowed.end());
        Error::invalid(format!("the setting `{key}` is {value}: it must be a whole number from {least} to {most}"))
    })
}

/// A boolean.
pub fn flag(key: &str, value: &Value) -> Result<bool, Error> {
    value.as_bool().ok_or_else(|| Error::invalid(format!("the setting `{key}` is {value}: it must be true or false")))
}

/// Warns about an unknown key.
pub fn unknown(key: &str, known: &[&str]) {
    log::warn(format!("unknown setting `{key}` has no effect; known settings are {}", known.join(", ")));
}
