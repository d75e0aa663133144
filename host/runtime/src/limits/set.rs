//! Limits that a manifest requests, or that a user grants or configures.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{LIMITS, Limit, Tier, Unit};

/// Some of the limits, each with a value in its range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitSet(BTreeMap<Limit, u64>);

/// Why a limit cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is no limit with this name.
    #[error("there is no limit `{name}`; there are: {}", names())]
    Unknown {
        /// The name as written.
        name: String,
    },
    /// The value cannot be parsed.
    #[error("the limit `{name}` cannot be {found}: write {}", wanted(*.unit))]
    Value {
        /// The limit.
        name: &'static str,
        /// The value as written.
        found: String,
        /// The limit's unit.
        unit: Unit,
    },
    /// The value is out of range.
    #[error("the limit `{name}` cannot be {found}: it can be set from {least} to {most}")]
    Range {
        /// The limit.
        name: &'static str,
        /// The value as written.
        found: String,
        /// The lowest value.
        least: String,
        /// The highest value.
        most: String,
    },
}

fn names() -> String {
    LIMITS.map(|definition| definition.name).join(", ")
}

fn wanted(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "a number of bytes or a size such as 64MiB",
        Unit::Time => "a time with its unit, such as 250ms, 2s or 3min",
        Unit::Count => "a whole number",
    }
}

const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const TIMES: [(&str, u64); 3] = [("min", 60_000), ("ms", 1), ("s", 1_000)];

/// Formats a value in the largest unit in which it is a whole number.
pub(super) fn show(unit: Unit, value: u64) -> String {
    let units = match unit {
        Unit::Count => return value.to_string(),
        Unit::Bytes => &SIZES[..],
        Unit::Time => &[("min", 60_000), ("s", 1_000), ("ms", 1)],
    };
    let fits = |(_, size): &&(&str, u64)| value > 0 && value.is_multiple_of(*size);
    let (name, size) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    format!("{}{name}", value / size)
}

fn read(unit: Unit, text: &str) -> Option<u64> {
    let text = text.trim();
    let (units, bare) = match unit {
        Unit::Count => (&[][..], true),
        Unit::Bytes => (&SIZES[..], true),
        // A bare number could mean seconds or milliseconds.
        Unit::Time => (&TIMES[..], false),
    };
    let with = |(name, size): &(&str, u64)| text.strip_suffix(name).map(|number| (number.trim_end(), *size));
    let (number, size) = units.iter().find_map(with).or(bare.then_some((text, 1)))?;
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| number.parse::<u64>().ok()?.checked_mul(size)).flatten()
}

impl LimitSet {
    /// Sets a limit by name; the value is a text such as `64MiB` or a number.
    ///
    /// # Errors
    ///
    /// Returns an error if the limit is unknown, or if the value has no unit where it needs one or is out of range.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), LimitError> {
        let limit = Limit::named(name).ok_or_else(|| LimitError::Unknown { name: name.chars().take(64).collect() })?;
        let definition = limit.definition();
        let found = match value {
            Value::String(text) => text.chars().take(64).collect(),
            other => other.to_string().chars().take(64).collect::<String>(),
        };
        let read = match value {
            Value::String(text) => read(definition.unit, text),
            Value::Number(number) if definition.unit != Unit::Time => number.as_u64(),
            _ => None,
        };
        let Some(read) = read else {
            return Err(LimitError::Value { name: definition.name, found, unit: definition.unit });
        };
        if !(definition.least..=definition.most).contains(&read) {
            let (least, most) = (limit.show(definition.least), limit.show(definition.most));
            return Err(LimitError::Range { name: definition.name, found, least, most });
        }
        self.0.insert(limit, read);
        Ok(())
    }

    /// This set with another value, clamped to the limit's range.
    #[must_use]
    pub fn and(mut self, limit: Limit, value: u64) -> Self {
        let definition = limit.definition();
        self.0.insert(limit, value.clamp(definition.least, definition.most));
        self
    }

    /// The limits of this set with their values.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        self.0.iter().map(|(limit, value)| (*limit, *value))
    }

    /// The value of one limit, if this set has it.
    pub fn get(&self, limit: Limit) -> Option<u64> {
        self.0.get(&limit).copied()
    }

    /// Whether this set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The limits of this request that exceed what was granted; only these need consent.
    #[must_use]
    pub fn widening(&self, granted: &Self) -> Self {
        Self(self.iter().filter(|(limit, value)| granted.get(*limit).is_none_or(|granted| *value > granted)).collect())
    }

    /// The part of this request that takes effect: granted limits only, each at most at its granted value.
    #[must_use]
    pub fn within(&self, granted: &Self) -> Self {
        let both = |(limit, value): (Limit, u64)| Some((limit, value.min(granted.get(limit)?)));
        Self(self.iter().filter_map(both).collect())
    }

    /// One line for each limit. It follows "the plugin can", like the lines of permissions.
    pub fn lines(&self, tier: Tier) -> Vec<String> {
        let line = |(limit, value): (Limit, u64)| {
            let definition = limit.definition();
            let (name, meaning) = (definition.name, definition.meaning);
            let (default, value) = (limit.show(definition.default_for(tier)), limit.show(value));
            format!("raise the limit `{name}` from {default} to {value} ({meaning})")
        };
        self.iter().map(line).collect()
    }

    /// The JSON Schema of `limits`, in manifests and in the configuration.
    pub fn schema() -> Value {
        let properties = LIMITS.iter().map(|definition| {
            let (integer, text) = (
                json!({ "type": "integer", "minimum": definition.least, "maximum": definition.most }),
                |pattern: &str| json!({ "type": "string", "pattern": pattern }),
            );
            let mut schema = match definition.unit {
                Unit::Count => integer,
                Unit::Bytes => json!({ "anyOf": [integer, text("^[0-9]+ *(B|KiB|MiB|GiB)?$")] }),
                Unit::Time => text("^[0-9]+ *(ms|s|min)$"),
            };
            let (limit, tools, session) = (definition.limit, definition.tools, definition.session);
            let defaults = format!("{} for tools, {} for an engine", limit.show(tools), limit.show(session));
            schema["description"] = format!("{}; by default {defaults}", definition.meaning).into();
            (definition.name.to_owned(), schema)
        });
        let properties: serde_json::Map<String, Value> = properties.collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

impl Serialize for LimitSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (limit, value) in self.iter() {
            match limit.definition().unit {
                Unit::Count => map.serialize_entry(limit.name(), &value)?,
                Unit::Bytes | Unit::Time => map.serialize_entry(limit.name(), &limit.show(value))?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for LimitSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Limits;
        impl<'de> Visitor<'de> for Limits {
            type Value = LimitSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("limits by name, such as `memory: 512MiB`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LimitSet, A::Error> {
                let mut set = LimitSet::default();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    set.set(&name, &value).map_err(A::Error::custom)?;
                }
                Ok(set)
            }

            fn visit_unit<E>(self) -> Result<LimitSet, E> {
                Ok(LimitSet::default())
            }
        }
        deserializer.deserialize_any(Limits)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_are_read_as_people_write_them() {
        for (name, written, value) in [
            ("memory", json!("512MiB"), 512 << 20),
            ("memory", json!("1 GiB"), 1 << 30),
            ("memory", json!(2_097_152), 2 << 20),
            ("memory", json!("2097152"), 2 << 20),
            ("cpu", json!("250ms"), 250),
            ("tool_time", json!("3min"), 180_000),
            ("turn_time", json!("2 s"), 2_000),
            ("host_calls", json!(50), 50),
            ("host_calls", json!("50"), 50),
        ] {
            let mut set = LimitSet::default();
            set.set(name, &written).unwrap();
            assert_eq!(set.get(Limit::named(name).unwrap()), Some(value), "{name}: {written}");
        }
    }

    #[test]
    fn an_invalid_limit_is_refused_with_a_hint() {
        for (name, written, part) in [
            ("memroy", json!("1GiB"), "there are: memory, table_elements"),
            ("memory", json!("much"), "such as 64MiB"),
            ("memory", json!("64MB"), "such as 64MiB"),
            ("memory", json!("-1"), "such as 64MiB"),
            ("memory", json!(-1), "such as 64MiB"),
            ("memory", json!("99999999999GiB"), "such as 64MiB"),
            ("memory", json!("64GiB"), "from 1MiB to 4GiB"),
            ("cpu", json!(5), "with its unit"),
            ("cpu", json!("5"), "with its unit"),
            ("cpu", json!(true), "with its unit"),
            ("parallel_calls", json!(0), "from 1 to 32"),
            ("parallel_calls", json!(1.5), "a whole number"),
        ] {
            let error = LimitSet::default().set(name, &written).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {written} gives {error:?}");
        }
    }

    #[test]
    fn only_values_above_the_grant_widen_it_and_only_granted_values_take_effect() {
        let asked = LimitSet::default().and(Limit::Memory, 512 << 20).and(Limit::Cpu, 9_000);
        let granted = LimitSet::default().and(Limit::Memory, 256 << 20).and(Limit::ToolTime, 60_000);
        assert_eq!(asked.widening(&granted), asked);
        assert_eq!(asked.within(&granted), LimitSet::default().and(Limit::Memory, 256 << 20));
        assert!(asked.widening(&asked).is_empty());
        assert_eq!(asked.within(&asked), asked);
        assert!(
            asked.lines(Tier::Tools)[0].starts_with("raise the limit `memory` from 64MiB to 512MiB ("),
            "{asked:?}"
        );
    }

    proptest! {
        #[test]
        fn a_serialized_set_deserializes_to_the_same_set(index in 0..LIMITS.len(), value: u64) {
            let set = LimitSet::default().and(LIMITS[index].limit, value);
            let text = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(serde_json::from_str::<LimitSet>(&text).unwrap(), set, "{}", text);
        }

        #[test]
        fn any_text_is_parsed_or_refused(name in "[a-z_]{0,20}|memory|cpu", text: String) {
            let mut set = LimitSet::default();
            if set.set(&name, &Value::String(text)).is_ok() {
                let (limit, value) = set.iter().next().unwrap();
                let definition = limit.definition();
                prop_assert!((definition.least..=definition.most).contains(&value));
            }
        }
    }
}
