//! The JSON Schema of `config.yaml`, generated from [`Settings`].
//!
//! There are two forms. [`TYPES`] describes the types alone; the reader and the table of keys walk it. [`schema`] is the
//! published form: it also allows what the reader accepts besides, such as empty values and variables.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::settings::Settings;

/// The schema of the types.
pub(crate) static TYPES: LazyLock<Value> = LazyLock::new(|| {
    let mut generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    generator.meta_schema = None;
    let mut schema = generator.into_generator().into_root_schema_for::<Settings>().to_value();
    tidy(&mut schema);
    let model = &mut schema["properties"]["model"];
    let description = model.as_object_mut().and_then(|model| model.remove("description"));
    *model = json!({ "description": description, "anyOf": [{ "type": "string" }, model.take()] });
    schema
});

/// The JSON Schema of `config.yaml`, for editors and other programs. It marks unknown keys as errors; Hermes itself only
/// warns of them.
pub fn schema() -> Value {
    let mut types = TYPES.clone();
    published(&mut types);
    let head =
        [("$schema", json!("https://json-schema.org/draft/2020-12/schema")), ("title", json!("config.yaml of Hermes"))];
    let Value::Object(types) = types else { return types };
    let head = head.into_iter().map(|(name, value)| (name.to_owned(), value));
    let types = types.into_iter().filter(|(name, _)| name != "title" && name != "$schema");
    head.chain(types).collect::<Map<_, _>>().into()
}

/// Takes out what the generator adds for optional values: the type null, and defaults that are null or whole sections.
fn tidy(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    members.remove("title");
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(names)) = members.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    if let Some(Value::Array(variants)) = members.get_mut("anyOf") {
        variants.retain(|variant| variant["type"] != "null");
        if let [Value::Object(only)] = &variants[..] {
            let only = only.clone();
            members.remove("anyOf");
            for (name, value) in only {
                members.entry(name).or_insert(value);
            }
        }
    }
    if members.get("default").is_some_and(Value::is_null) || members.contains_key("properties") {
        members.remove("default");
    }
    for_each_subschema(members, &tidy);
}

/// Adds what the reader accepts besides the types, and takes out what only the table of keys needs.
fn published(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    for_each_subschema(members, &published);
    members.remove("x-name");
    if members.remove("x-no-effect").is_some() {
        members.insert("deprecated".to_owned(), true.into());
    }
    if members.contains_key("properties") && !members.contains_key("additionalProperties") {
        members.insert("additionalProperties".to_owned(), false.into());
    }
    match members.get("type").and_then(Value::as_str) {
        // The value of a variable may be a number, true or false, or one of the names.
        Some(kind) if matches!(kind, "integer" | "number" | "boolean") || members.contains_key("enum") => {
            let kept = ["description", "default"];
            let (outer, own): (Map<_, _>, Map<_, _>) =
                std::mem::take(members).into_iter().partition(|(name, _)| kept.contains(&name.as_str()));
            *members = outer;
            let variable = json!({ "type": "string", "pattern": r"\$\{\w+\}" });
            members.insert("anyOf".to_owned(), json!([own, variable, { "type": "null" }]));
        }
        // An empty value leaves the default in force.
        Some(name) => {
            let types = json!([name, "null"]);
            members.insert("type".to_owned(), types);
        }
        None => {}
    }
}

fn for_each_subschema(members: &mut Map<String, Value>, change: &dyn Fn(&mut Value)) {
    for (name, member) in members.iter_mut() {
        match (name.as_str(), member) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(change),
            ("additionalProperties" | "items", inner) => change(inner),
            ("anyOf", Value::Array(variants)) => variants.iter_mut().for_each(change),
            _ => {}
        }
    }
}

/// The part of a schema that describes a section with fixed names.
pub(crate) fn section(schema: &Value) -> Option<&Value> {
    let variants = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    std::iter::once(schema).chain(variants).find(|schema| schema.get("properties").is_some())
}

/// The schema of a member of a section.
pub(crate) fn member<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let section = section(schema).unwrap_or(schema);
    let own = section.get("properties").and_then(|properties| properties.get(name));
    own.or_else(|| section.get("additionalProperties")).unwrap_or(&Value::Null)
}

/// The names in a section; one in angle brackets stands for any name.
pub(crate) fn names(schema: &Value) -> Vec<&str> {
    let Some(section) = section(schema) else { return Vec::new() };
    let any = section.get("x-name").and_then(Value::as_str);
    let own = section.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    any.into_iter().chain(own.map(String::as_str)).collect()
}

/// Whether a value is one text.
pub(crate) fn is_text(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "string")
}

/// Whether a value is a number.
pub(crate) fn is_numeric(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "integer" || kind == "number")
}

/// Whether only numbers, flags or certain names fit, and no other text.
pub(crate) fn is_scalar(schema: &Value) -> bool {
    is_numeric(schema) || schema.get("type").is_some_and(|kind| kind == "boolean") || schema.get("enum").is_some()
}

/// Whether setting a key changes nothing in this version.
pub(crate) fn has_no_effect(schema: &Value) -> bool {
    schema.get("x-no-effect").is_some()
}

/// What a value must be, for messages and for the table of keys: `a list of strings`.
pub(crate) fn describe(schema: &Value) -> String {
    if let Some(variants) = schema.get("anyOf").and_then(Value::as_array) {
        return variants.iter().map(describe).collect::<Vec<_>>().join(" or ");
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        let names: Vec<_> = names.iter().filter_map(Value::as_str).map(|name| format!("`{name}`")).collect();
        return match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
        };
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "a string".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
            (least, _) => format!("a whole number, at least {}", least.unwrap_or_default()),
        },
        Some("number") => match bound("minimum") {
            Some(least) => format!("a number, at least {least}"),
            None => "a number above 0 and up to 1".to_owned(),
        },
        Some("array") => match schema.get("items") {
            Some(items) if is_text(items) => "a list of strings".to_owned(),
            _ => "a list of sections".to_owned(),
        },
        Some("object") => match (names(schema), schema.get("additionalProperties")) {
            (names, _) if !names.is_empty() => format!("a section with {}", names.join(", ")),
            (_, Some(own)) if own.get("enum").is_some() => format!("{} for each name", describe(own)),
            (_, Some(own)) if own.get("anyOf").is_some() => "a string or a section for each name".to_owned(),
            (_, Some(own)) if is_text(own) => "a string for each name".to_owned(),
            (_, Some(own)) if own.is_object() => "a section for each name".to_owned(),
            _ => "a section".to_owned(),
        },
        _ => "anything".to_owned(),
    }
}

#[cfg(test)]
mod tests;
