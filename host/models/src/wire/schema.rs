//! Schemas of tool parameters in the form that APIs take. One tool with another schema makes them refuse the whole request.
//!
//! `keywords.rs` and `root.rs` make the common form, which a session freezes. When the list is sent, `fit.rs` and `keys.rs` bring each
//! schema into the form of the dialect that the server reads; `dialects.rs` is the table of dialects.

pub(crate) mod dialects;
mod fit;
mod grammar;
pub(crate) mod keys;
mod keywords;
mod root;

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

pub use dialects::SchemaDialect;
use fit::Fitted;
use keys::Back;

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

/// Whether a stored schema can be sent as it is, apart from a root without type or `properties`.
pub(super) fn is_taken(parameters: &str, dialect: SchemaDialect) -> bool {
    // A schema that no parser reads is sent as it is stored.
    let Ok(schema) = serde_json::from_str::<Map<String, Value>>(parameters) else { return true };
    let row = dialect.row();
    keywords::mended(&schema).is_none()
        && matches!(fit::fitted(&schema, row), Ok(None))
        && keys::written(parameters, row.names).is_none()
}

/// A schema as a dialect takes it, and how the arguments of calls are read back. Lists of earlier versions are stored without
/// `properties`, which not every dialect needs.
///
/// # Errors
///
/// Why the schema has no form in this dialect.
pub(super) fn sent(parameters: &str, dialect: SchemaDialect) -> Result<(Cow<'_, str>, Back), String> {
    let row = dialect.row();
    let mut sent = mended(parameters, row.needs_properties);
    let mut back = Back::default();
    let schema: Map<String, Value> = serde_json::from_str(&sent).unwrap_or_default();
    if let Some(Fitted { schema, absent }) = fit::fitted(&schema, row).map_err(|unfit| unfit.to_string())? {
        sent = Cow::Owned(Value::Object(schema).to_string());
        back.absent = absent;
    }
    if let Some((schema, names)) = keys::written(&sent, row.names) {
        sent = Cow::Owned(schema);
        back.names = names;
    }
    Ok((sent, back))
}

/// A schema that meets the demands of the APIs is returned as written. In another one, the remaining keys keep their order and values.
fn mended(parameters: &str, needs_properties: bool) -> Cow<'_, str> {
    // No API takes a schema that is nested too deeply for a parser or contains numbers beyond all bounds.
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
