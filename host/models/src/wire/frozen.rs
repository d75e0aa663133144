//! Reads the frozen tool list, for wire formats that write tools in another form.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::quote;

/// A schema of a tool without parameters.
const NO_PARAMETERS: &[u8] = br#"{"type":"object","properties":{}}"#;

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Function<'a>,
}

/// A tool of the frozen list.
#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) description: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    parameters: Option<&'a RawValue>,
}

impl Function<'_> {
    /// The schema of the parameters as written; empty if there is none.
    pub(super) fn parameters(&self) -> &str {
        self.parameters.map_or("", RawValue::get)
    }
}

/// The tools of a frozen list, in their order. If several tools have one name, the first is kept.
pub(super) fn tools(tools: &str) -> serde_json::Result<Vec<Function<'_>>> {
    let tools: Vec<Tool<'_>> = serde_json::from_str(tools)?;
    let mut kept: Vec<Function<'_>> = Vec::with_capacity(tools.len());
    for Tool { function } in tools {
        if kept.iter().all(|other| other.name != function.name) {
            kept.push(function);
        }
    }
    Ok(kept)
}

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

/// Appends a schema without what the APIs refuse: unions at the root, and a root without the type `object`. The rest stays as
/// written.
pub(super) fn object_schema(out: &mut Vec<u8>, parameters: &str) {
    mended(out, parameters, false);
}

/// The same for an API that also refuses an object without `properties`.
pub(super) fn complete_object_schema(out: &mut Vec<u8>, parameters: &str) {
    mended(out, parameters, true);
}

fn mended(out: &mut Vec<u8>, parameters: &str, needs_properties: bool) {
    let Ok(Keys(keys)) = serde_json::from_str::<Keys<'_>>(parameters) else {
        out.extend_from_slice(NO_PARAMETERS);
        return;
    };
    let is_union = |key: &str| matches!(key, "oneOf" | "anyOf" | "allOf");
    let is_object = keys.iter().any(|(key, value)| key == "type" && value.get() == "\"object\"");
    let has_properties = keys.iter().any(|(key, _)| key == "properties");
    if is_object && (has_properties || !needs_properties) && !keys.iter().any(|(key, _)| is_union(key)) {
        out.extend_from_slice(parameters.as_bytes());
        return;
    }
    out.extend_from_slice(br#"{"type":"object""#);
    for (key, value) in keys.iter().filter(|(key, _)| key != "type" && !is_union(key)) {
        out.push(b',');
        quote(out, key);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    if !has_properties {
        out.extend_from_slice(br#","properties":{}"#);
    }
    out.push(b'}');
}
