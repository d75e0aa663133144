//! Schemas of tool parameters in the form that APIs take. One tool with another schema makes them refuse the whole request.

pub(crate) mod keys;
mod keywords;
mod root;

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use super::quote;

/// The schema of a tool without parameters.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// The keys of a schema in their order, each with its value as written.
struct Keys<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Keys<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Keys<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut keys = Vec::new();
                while let Some(entry) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
                    keys.push(entry);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A schema that has the type `object` and `properties`, and nothing that an API refuses. Every tool list is frozen in this form.
pub(super) fn complete(parameters: &str) -> Cow<'_, str> {
    mended(parameters, true)
}

/// Whether an API would refuse something in a schema, besides a root without type or `properties`.
pub(super) fn is_refused(parameters: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(parameters).is_ok_and(|schema| keywords::mended(&schema).is_some())
}

/// A schema for Anthropic's messages: `properties` may be missing, and their names are those that this API takes. Tool lists of earlier
/// versions are stored without them. With it come the names that stand for others.
pub(super) fn named(parameters: &str) -> (Cow<'_, str>, keys::Names) {
    let mended = mended(parameters, false);
    match keys::written(&mended) {
        Some((schema, names)) => (Cow::Owned(schema), names),
        None => (mended, keys::Names::new()),
    }
}

/// A schema that meets the demands of the APIs is returned as written. In another one, the remaining keys keep their order and values.
fn mended(parameters: &str, needs_properties: bool) -> Cow<'_, str> {
    // What is nested too deep for a parser, or has numbers beyond all bounds, no API takes.
    let Ok(schema) = serde_json::from_str::<Map<String, Value>>(parameters) else {
        return Cow::Borrowed(NO_PARAMETERS);
    };
    match keywords::mended(&schema) {
        None => rooted(parameters, needs_properties),
        Some(schema) => Cow::Owned(rooted(&Value::Object(schema).to_string(), needs_properties).into_owned()),
    }
}

/// A schema whose root has the type `object`, and `properties` where they are needed.
fn rooted(parameters: &str, needs_properties: bool) -> Cow<'_, str> {
    let Ok(Keys(keys)) = serde_json::from_str::<Keys<'_>>(parameters) else {
        return Cow::Borrowed(NO_PARAMETERS);
    };
    let has_type = keys.iter().any(|(key, value)| key == "type" && value.get() == "\"object\"");
    let has_properties = keys.iter().any(|(key, _)| key == "properties");
    if has_type && (has_properties || !needs_properties) {
        return Cow::Borrowed(parameters);
    }
    let mut out = br#"{"type":"object""#.to_vec();
    for (key, value) in keys.iter().filter(|entry| entry.0 != "type") {
        out.push(b',');
        quote(&mut out, key);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    if !has_properties {
        out.extend_from_slice(br#","properties":{}"#);
    }
    out.push(b'}');
    Cow::Owned(String::from_utf8(out).expect("it consists of texts"))
}

#[cfg(test)]
mod tests;
