//! What is sent, checked by the rules of the providers.

#![allow(clippy::unwrap_used)]

use hermes_conversation::ToolSchema;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{ApiMode, Style, tools_json};

/// What a provider expects of a schema: in words, and as a test.
type Rule = (&'static str, fn(&Value) -> bool);

/// The rules by which providers refuse a schema of parameters, apart from those of JSON Schema itself.
const RULES: &[Rule] = &[
    ("the root is an object", |root| root["type"] == "object"),
    ("no choice, negation, value or reference at the root", |root| {
        ["oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref"].iter().all(|keyword| root.get(*keyword).is_none())
    }),
    ("a list has items", |root| {
        every(root, &|schema| {
            let is_list = schema["type"] == "array"
                || schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("array")));
            !is_list || schema["items"].is_object()
        })
    }),
    ("what is required is described", |root| {
        every(root, &|schema| {
            let names = schema["required"].as_array().cloned().unwrap_or_default();
            names.iter().all(|name| schema["properties"].get(name.as_str().unwrap()).is_some())
        })
    }),
    ("patterns are regular expressions", |root| {
        every(root, &|schema| schema["pattern"].as_str().is_none_or(|pattern| regex::Regex::new(pattern).is_ok()))
    }),
    ("references lead somewhere", |root| {
        every(root, &|schema| {
            let reference = schema.get("$ref").and_then(Value::as_str);
            reference.is_none_or(|reference| root.pointer(&reference[1..]).is_some_and(Value::is_object))
        })
    }),
    ("properties are objects", |root| every(root, &|schema| schema.get("properties").is_none_or(Value::is_object))),
];

/// Names of properties in Anthropic's API.
fn has_fitting_names(root: &Value) -> bool {
    let fits = regex::Regex::new("^[a-zA-Z0-9_.-]{1,64}$").unwrap();
    every(root, &|schema| {
        let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        names.into_iter().all(|name| fits.is_match(name))
    })
}

/// Whether a rule holds for a schema and all schemas in it.
fn every(schema: &Value, rule: &dyn Fn(&Value) -> bool) -> bool {
    let Some(members) = schema.as_object() else { return schema.is_boolean() };
    rule(schema)
        && members.iter().all(|(keyword, value)| match keyword.as_str() {
            "items" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "additionalProperties" => {
                every(value, rule)
            }
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                value.as_object().unwrap().values().all(|schema| every(schema, rule))
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array().unwrap().iter().all(|schema| every(schema, rule))
            }
            _ => true,
        })
}

/// What a format sends for a tool with this schema: frozen by this version, or by an earlier one that left it as it was.
fn sent(mode: ApiMode, schema: &str, is_stored: bool) -> Value {
    let tool = ToolSchema { name: "f".into(), description: String::new(), parameters: schema.to_owned() };
    let stored =
        || format!(r#"[{{"type":"function","function":{{"name":"f","description":"","parameters":{schema}}}}}]"#);
    let list = if is_stored { stored() } else { tools_json(&[tool]) };
    let mut out = Vec::new();
    mode.format().tools(&mut out, Style::PLAIN, &list).unwrap();
    let tools: Value = serde_json::from_slice(&out).unwrap();
    match mode {
        ApiMode::ChatCompletions => &tools[0]["function"]["parameters"],
        ApiMode::Responses => &tools[0]["parameters"],
        ApiMode::AnthropicMessages => &tools[0]["input_schema"],
    }
    .clone()
}

fn check(schema: &Value) {
    for mode in [ApiMode::ChatCompletions, ApiMode::Responses, ApiMode::AnthropicMessages] {
        for is_stored in [false, true] {
            // Lists of earlier versions keep a root without a type, which most servers take.
            if is_stored && (mode == ApiMode::ChatCompletions && schema["type"] != "object" || !schema.is_object()) {
                continue;
            }
            let sent = sent(mode, &schema.to_string(), is_stored);
            for (rule, holds) in RULES {
                assert!(holds(&sent), "{mode:?} {is_stored} {rule}: {schema} is sent as {sent}");
            }
            assert!(mode != ApiMode::AnthropicMessages || has_fitting_names(&sent), "{schema} is sent as {sent}");
            let flaw = jsonschema::draft202012::meta::validate(&sent).err().map(|flaw| flaw.to_string());
            assert_eq!(flaw, None, "{mode:?}: {schema} is sent as {sent}");
        }
    }
}

#[test]
fn every_provider_takes_what_is_sent() {
    for schema in [
        json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": ["null", "array"]}}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"required": ["a"]}}),
        json!({"type": "object", "enum": [{"a": 1}], "const": {"a": 1}}),
        json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}),
        json!({"oneOf": [{"type": "object", "properties": {"a": {"type": "array"}}}, {"$ref": "#/$defs/B"}], "$defs": {"B": {"properties": {"b c": {}}}}}),
        json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}}}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/Gone"}),
        json!({"type": ["object", "null"], "properties": {"$filter": {"pattern": "("}}, "required": ["$filter", "gone"]}),
        json!({"properties": [], "required": {"a": true}}),
        json!({"type": "string"}),
        json!(null),
        json!(true),
        json!([]),
        json!("object"),
        json!({"type": "object", "properties": {"x".repeat(70): {"type": "string"}, "": {}}, "required": ["x".repeat(70)]}),
    ] {
        check(&schema);
    }
}

#[test]
fn a_schema_that_no_parser_reads_takes_nothing() {
    let deep = format!(r#"{{"type":"object","properties":{{"a":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
    for schema in [&deep, r#"{"type":"object","maximum":1e999}"#, "nonsense", ""] {
        assert_eq!(complete(schema), NO_PARAMETERS);
        assert_eq!(named(schema).0, NO_PARAMETERS);
    }
}

/// Any JSON of the words of schemas.
fn any_value() -> impl Strategy<Value = Value> {
    let word = proptest::sample::select(vec![
        "type",
        "properties",
        "items",
        "required",
        "enum",
        "$ref",
        "$defs",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "additionalProperties",
        "patternProperties",
        "prefixItems",
        "dependencies",
        "dependentRequired",
        "a",
        "$b",
        "string",
        "array",
        "object",
        "description",
        "minLength",
        "multipleOf",
        "pattern",
        "(",
        "#/$defs/a",
        "#/$defs/$b",
        "#",
        "const",
        "if",
        "$id",
        "$schema",
        "$anchor",
        "title",
        "uniqueItems",
        "examples",
        "format",
        "contains",
        "propertyNames",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6).prop_map(|members| Value::Object(
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_server_sends_becomes_a_schema(value in any_value()) {
        check(&value);
        // Once mended, it stays as it is.
        let sent = complete(&value.to_string()).into_owned();
        prop_assert_eq!(complete(&sent), sent.as_str());
    }
}
