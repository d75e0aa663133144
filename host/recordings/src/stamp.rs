//! The timestamps of recordings.

use jiff::Timestamp;
use serde_json::Value;

/// The first timestamp of a recording without timestamps; further messages are [`STEP`] apart.
pub(super) const BEGIN: u64 = 1_767_225_600_000;
/// The milliseconds between two messages of a recording without timestamps.
pub(super) const STEP: u64 = 5_000;

/// Unix time in milliseconds, from a number of seconds or milliseconds, or from RFC 3339.
pub(super) fn parse(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| *number >= 0.0)?;
            // A number of seconds reaches this value only in the year 5138.
            Some(if number < 1e11 { (number * 1_000.0).round() } else { number.round() } as u64)
        }
        Value::String(text) => {
            let moment: Timestamp = text.parse().ok()?;
            u64::try_from(moment.as_millisecond()).ok()
        }
        _ => None,
    }
}

/// The first of these fields that contains a time.
pub(super) fn of(value: &Value, fields: &[&str]) -> Option<u64> {
    fields.iter().find_map(|field| value.get(field).and_then(parse))
}
