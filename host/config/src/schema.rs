//! The JSON Schema of `config.yaml`, for editors and other front ends. It is built from the same table as the checks, and
//! published as `docs/schema/config.schema.json`.

use serde_json::{Map, Value, json};

use crate::keys::{CHAIN, KEYS, Wants};

/// The JSON Schema of `config.yaml`. It marks unknown keys as errors, which Hermes itself only warns about.
pub fn schema() -> Value {
    let mut root = section();
    for key in KEYS {
        let mut property = of(key.wants);
        if let Some(property) = property.as_object_mut() {
            property.insert("description".to_owned(), key.meaning.into());
            if let Ok(default) = serde_json::from_str::<Value>(key.default) {
                property.insert("default".to_owned(), default);
            }
            if !key.works {
                property.insert("deprecated".to_owned(), true.into());
            }
        }
        insert(&mut root, &key.path.split('.').collect::<Vec<_>>(), property);
    }
    let model = root["properties"]["model"].take();
    root["properties"]["model"] =
        json!({ "description": "the session's model: its name, or a section", "anyOf": [{ "type": "string" }, model] });
    let Value::Object(root) = root else { return root };
    let head =
        [("$schema", json!("https://json-schema.org/draft/2020-12/schema")), ("title", json!("config.yaml of Hermes"))];
    let head = head.into_iter().map(|(name, value)| (name.to_owned(), value));
    head.chain(root).collect::<Map<_, _>>().into()
}

fn section() -> Value {
    json!({ "type": ["object", "null"], "properties": {}, "additionalProperties": false })
}

/// Puts a property at its path. A name in angle brackets stands for any name.
fn insert(section: &mut Value, path: &[&str], property: Value) {
    let Some((name, rest)) = path.split_first() else { return };
    let place =
        if name.starts_with('<') { &mut section["additionalProperties"] } else { &mut section["properties"][*name] };
    if rest.is_empty() {
        *place = property;
        return;
    }
    if !place.is_object() {
        *place = self::section();
    }
    insert(place, rest, property);
}

fn of(wants: Wants) -> Value {
    // The text of a variable may be a number or true or false.
    let or_variable =
        |own: Value| json!({ "anyOf": [own, { "type": "null" }, { "type": "string", "pattern": r"\$\{\w+\}" }] });
    let chain =
        || -> Map<String, Value> { CHAIN.iter().map(|(name, wants)| ((*name).to_owned(), of(*wants))).collect() };
    match wants {
        Wants::Text => json!({ "type": ["string", "null"] }),
        Wants::Flag => or_variable(json!({ "type": "boolean" })),
        Wants::Count(least) => or_variable(json!({ "type": "integer", "minimum": least })),
        Wants::Between(least, most) => or_variable(json!({ "type": "integer", "minimum": least, "maximum": most })),
        Wants::Share => or_variable(json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })),
        Wants::Texts => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        Wants::Sections => {
            json!({ "type": ["object", "null"], "additionalProperties": { "type": ["object", "null"] } })
        }
        Wants::Hints => json!({
            "type": ["object", "null"],
            "additionalProperties": { "anyOf": [
                { "type": ["string", "null"] },
                {
                    "type": "object",
                    "properties": { "replace": { "type": ["string", "null"] }, "append": { "type": ["string", "null"] } },
                    "additionalProperties": false,
                },
            ] },
        }),
        Wants::Chain => json!({
            "type": ["array", "null"],
            "items": { "type": "object", "properties": chain(), "additionalProperties": false },
        }),
        Wants::Anything => json!({}),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Config;

    #[test]
    fn the_published_schema_is_current() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/config.schema.json");
        let current = format!("{:#}\n", schema());
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&file, &current).unwrap();
        }
        let published = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(published == current, "run this test with UPDATE_SCHEMA=1 to write {}", file.display());
    }

    #[test]
    fn the_schema_and_the_checks_agree() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        for (text, fits) in [
            ("model: name\n", true),
            ("model: {default: name, context_length: 12000, api_key: '${KEY}'}\n", true),
            ("model: {context_length: '${WINDOW}'}\n", true),
            ("model:\ncompression: {enabled: true, threshold: 0.5}\n", true),
            ("plugins: {enabled: [a], entries: {a: {b: 1}, c: }}\n", true),
            ("auxiliary: {transient_retries: 2, any: {timeout: 5, fallback_chain: [{model: x}]}}\n", true),
            ("platform_hints: {cli: more, serve: {replace: x}}\n", true),
            ("model: {context_length: 10}\n", false),
            ("compression: {threshold: 50}\n", false),
            ("plugins: {enabled: a}\n", false),
            ("auxiliary: {transient_retries: 7}\n", false),
            ("auxiliary: {any: {fallback_chain: x}}\n", false),
            ("platform_hints: {cli: 3}\n", false),
            ("agent: {max_turns: 0}\n", false),
        ] {
            let value: Value = serde_saphyr::from_str(text).unwrap();
            assert_eq!(validator.is_valid(&value), fits, "{text}");
            let variable = |name: &str| (name == "WINDOW").then(|| "12000".to_owned());
            assert_eq!(Config::parse(text, Path::new("config.yaml"), &variable).is_ok(), fits, "{text}");
        }
        let unknown: Value = serde_saphyr::from_str("modle: x\n").unwrap();
        assert!(!validator.is_valid(&unknown));
    }
}
