//! Schemas of tool parameters in the form that APIs take. One tool with another schema makes them refuse the whole request.

mod keywords;

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

/// What an API demands of the root of a schema, besides the type `object`.
#[derive(Clone, Copy)]
struct Demands {
    /// An object in `properties`.
    properties: bool,
    /// No `oneOf`, `anyOf` or `allOf`.
    no_union: bool,
}

/// A schema that has the type `object` and `properties`. Every tool list is frozen in this form.
pub(super) fn complete(parameters: &str) -> Cow<'_, str> {
    mended(parameters, Demands { properties: true, no_union: false })
}

/// Whether an API would refuse something within a schema.
pub(super) fn is_refused(parameters: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(parameters).is_ok_and(|schema| keywords::mended(&schema).is_some())
}

/// A schema for Anthropic's messages, which refuse unions at the root and a root without the type `object`.
pub(super) fn without_union(parameters: &str) -> Cow<'_, str> {
    mended(parameters, Demands { properties: false, no_union: true })
}

/// The same for the Responses API, which also refuses an object without `properties`. Tool lists of earlier versions are
/// stored without them.
pub(super) fn complete_without_union(parameters: &str) -> Cow<'_, str> {
    mended(parameters, Demands { properties: true, no_union: true })
}

/// A schema that meets the demands is returned as written. In another one, the remaining keys keep their order and values.
fn mended(parameters: &str, demands: Demands) -> Cow<'_, str> {
    // First what no API takes at any depth, then what they demand of the root.
    let deep = serde_json::from_str::<Map<String, Value>>(parameters).ok().and_then(|schema| keywords::mended(&schema));
    match deep {
        None => rooted(parameters, demands),
        Some(schema) => Cow::Owned(rooted(&Value::Object(schema).to_string(), demands).into_owned()),
    }
}

/// A schema whose root meets the demands.
fn rooted(parameters: &str, demands: Demands) -> Cow<'_, str> {
    let Ok(Keys(keys)) = serde_json::from_str::<Keys<'_>>(parameters) else {
        return Cow::Borrowed(NO_PARAMETERS);
    };
    let is_type = |(key, value): &(Cow<'_, str>, &RawValue)| key == "type" && value.get() == "\"object\"";
    let is_properties = |(key, value): &(Cow<'_, str>, &RawValue)| key == "properties" && value.get().starts_with('{');
    let is_refused = |(key, value): &(Cow<'_, str>, &RawValue)| match &**key {
        "oneOf" | "anyOf" | "allOf" => demands.no_union,
        "properties" => demands.properties && !value.get().starts_with('{'),
        _ => false,
    };
    let lacks_properties = demands.properties && !keys.iter().any(is_properties);
    if keys.iter().any(is_type) && !lacks_properties && !keys.iter().any(is_refused) {
        return Cow::Borrowed(parameters);
    }
    let mut out = br#"{"type":"object""#.to_vec();
    for (key, value) in keys.iter().filter(|entry| entry.0 != "type" && !is_refused(entry)) {
        out.push(b',');
        quote(&mut out, key);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    if !keys.iter().any(|entry| entry.0 == "properties" && !is_refused(entry)) {
        out.extend_from_slice(br#","properties":{}"#);
    }
    out.push(b'}');
    Cow::Owned(String::from_utf8(out).expect("it consists of texts"))
}
