//! The fields of `plugin.yaml`: one table for the parser and for the JSON Schema that editors read.

use hermes_runtime::LimitSet;
use serde_json::{Map, Value, json};

use crate::permission::Permissions;

/// The interfaces that a component can export, by the names of the contract.
pub(super) const KINDS: &[&str] = &[
    "context-engine",
    "context-assist",
    "memory-provider",
    "memory-events",
    "memory-prefetch",
    "memory-mirror",
    "memory-rewind",
    "memory-upkeep",
    "tools",
    "tool-preview",
    "skills",
    "hooks",
    // A name of version 0.1, which the host never called.
    "upkeep",
    "embedder",
];

/// A top-level field.
pub(super) struct Field {
    pub(super) name: &'static str,
    meaning: &'static str,
    schema: fn() -> Value,
}

const fn field(name: &'static str, schema: fn() -> Value, meaning: &'static str) -> Field {
    Field { name, meaning, schema }
}

/// All fields, in the usual order of a manifest.
pub(super) const FIELDS: &[Field] = &[
    field("name", || json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}), "The name that users select."),
    field(
        "version",
        || json!({"type": "string", "pattern": r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"}),
        "The plugin's semantic version, such as 1.2.0.",
    ),
    field("api", || json!({"type": "string"}), "The supported versions of the contract, such as ^1.0.0."),
    field("description", || json!({"type": "string", "maxLength": 500}), "What the plugin does, in one line."),
    field("author", words, "The author."),
    field("license", words, "An SPDX expression, such as MIT OR Apache-2.0; can also be spelt licence."),
    field("licence", words, "Same as license."),
    field("repository", words, "The source repository."),
    field("homepage", words, "The home page."),
    field("kind", words, "For readers only: the exports determine the plugin's kind."),
    field("component", file, "The WebAssembly component beside this file; optional if there is only one."),
    field(
        "native",
        || json!({"type": "object", "additionalProperties": file()}),
        "Native libraries beside this file, by target, such as x86_64-unknown-linux-gnu.",
    ),
    field("permissions", Permissions::schema, "The requested permissions. Nothing else can be granted."),
    field(
        "config",
        || json!({"type": ["object", "boolean"]}),
        "A JSON Schema for the section plugins.entries.<name>, which is checked before the plugin receives it.",
    ),
    field(
        "requires_env",
        || {
            json!({"type": "array", "items": {"oneOf": [
                {"type": "string"},
                {"type": "object", "required": ["name"], "additionalProperties": false, "properties": {
                    "name": {"type": "string"},
                    "prompt": {"type": "string"},
                    "url": {"type": "string"},
                    "secret": {"type": "boolean"}
                }}
            ]}})
        },
        "Required variables; install asks for those that are not set.",
    ),
    field("limits", LimitSet::schema, "Limits to raise, such as memory: 512MiB; part of the user's grant."),
    field(
        "provides",
        || json!({"type": "array", "items": {"enum": KINDS}}),
        "The kinds that the plugin exports; must match its exports.",
    ),
    field(
        "publisher_key",
        || json!({"type": "string"}),
        "The minisign public key of the publisher, for the signature plugin.statement.minisig beside the manifest.",
    ),
];

fn words() -> Value {
    json!({"type": "string", "maxLength": 300})
}

fn file() -> Value {
    json!({"type": "string", "pattern": "^[^./\\\\:][^/\\\\:]*$"})
}

pub(super) fn schema() -> Value {
    let mut properties = Map::new();
    for field in FIELDS {
        let mut schema = (field.schema)();
        if let Value::Object(members) = &mut schema {
            members.entry("description").or_insert(Value::from(field.meaning));
        }
        properties.insert(field.name.to_owned(), schema);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plugin.yaml of a Hermes plugin",
        "type": "object",
        "required": ["name"],
        "properties": properties,
    })
}

/// The most references in a schema. If each leads to two more, the work doubles with every step; with this many it still takes
/// only a moment.
const MOST_REFERENCES: usize = 32;

/// A validator that loads no other schemas, and whose patterns take linear time.
///
/// # Errors
///
/// Why the value is not a JSON Schema, with the position in it.
pub fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err("it has to be a section such as `type: object`".to_owned());
    }
    if references(schema) > MOST_REFERENCES {
        return Err(format!(
            "it has more than {MOST_REFERENCES} references (`$ref`): replace some of them by what they refer to"
        ));
    }
    jsonschema::options()
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(1 << 20))
        .build(schema)
        .map_err(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("`{place}`: {error}"),
        })
}

/// Counts all references. The parser of the manifest limits the depth.
fn references(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let is_one = |name: &str| matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef");
            members.iter().map(|(name, value)| usize::from(is_one(name)) + references(value)).sum()
        }
        Value::Array(items) => items.iter().map(references).sum(),
        _ => 0,
    }
}

/// The most keys that are named.
const MOST_UNDEFINED: usize = 8;

/// Adds a line for each key of a section that the schema does not define. A schema that allows other keys, or composes others,
/// defines all of them.
pub(super) fn undefined(schema: &Value, section: &Value, place: &str, lines: &mut Vec<String>) {
    /// Below this, a suggestion would confuse more than it helps.
    const LEAST_ALIKE: f64 = 0.6;
    const OPEN: [&str; 9] = [
        "additionalProperties",
        "patternProperties",
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "unevaluatedProperties",
    ];
    let (Some(properties), Some(section)) = (schema.get("properties").and_then(Value::as_object), section.as_object())
    else {
        return;
    };
    let is_open = OPEN.iter().any(|word| schema.get(word).is_some_and(|value| *value != Value::Bool(false)));
    for (key, value) in section {
        if let Some(inner) = properties.get(key) {
            undefined(inner, value, &format!("{place}.{key}"), lines);
            continue;
        }
        if is_open || lines.len() == MOST_UNDEFINED {
            continue;
        }
        let plain = |key: &str| key.replace(['_', '-'], "").to_lowercase();
        let alike =
            properties.keys().map(|known| (strsim::normalized_damerau_levenshtein(&plain(key), &plain(known)), known));
        let nearest = alike.filter(|(alike, _)| *alike >= LEAST_ALIKE).max_by(|one, other| one.0.total_cmp(&other.0));
        let key: String = key.chars().map(|each| if each.is_control() { '\u{fffd}' } else { each }).take(100).collect();
        lines.push(match nearest {
            Some((_, nearest)) => format!("{place}.{key}: the plugin has no such key (did you mean `{nearest}`?)"),
            None => format!("{place}.{key}: the plugin has no such key"),
        });
    }
}
