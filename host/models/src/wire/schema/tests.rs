//! What is sent, checked by the rules of the providers.

#![allow(clippy::unwrap_used)]

use hermes_conversation::ToolSchema;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::dialects::{References, Row};
use super::keywords::Shape;
use super::*;
use crate::{ApiMode, Style, tools_json};

mod table;

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

/// What a row of the table refuses in a schema, the schemas in it included; none if everything is taken.
fn refused(row: &Row, root: &Value) -> Option<String> {
    let mut found = None;
    let mut look = |schema: &Map<String, Value>| {
        let kind = schema.get("type").cloned().unwrap_or_default();
        let is_of = |name: &str| kind == name || kind.as_array().is_some_and(|kinds| kinds.contains(&json!(name)));
        let choice = ["anyOf", "oneOf"].iter().find(|keyword| schema.contains_key(**keyword)).copied();
        let properties: Vec<&String> =
            schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).collect();
        for (keyword, value) in schema {
            let describes = ["type", "properties", "required", "items", "$ref"].contains(&keyword.as_str())
                || dialects::RULES.contains(&keyword.as_str());
            let mut of_types = dialects::OF_TYPES.iter().filter(|(_, of)| of.contains(&keyword.as_str())).peekable();
            let why = match keyword.as_str() {
                _ if !row.takes(keyword) => "the keyword",
                "$ref" if !row.follows(value.as_str().unwrap()) => "the reference",
                "$ref" if row.references == References::Bare && schema.len() > 1 => "keywords beside the reference",
                _ if row.references == References::Direct
                    && schema.contains_key("$ref")
                    && dialects::RULES.contains(&keyword.as_str())
                    && keyword != "default" =>
                {
                    "keywords beside the reference"
                }
                "format" if row.formats.is_some_and(|formats| !formats.contains(&value.as_str().unwrap())) => {
                    "the format"
                }
                "pattern"
                    if row.grammar_patterns
                        && grammar::pattern(value.as_str().unwrap()).as_deref() != value.as_str() =>
                {
                    "the pattern"
                }
                "minLength" | "maxLength" | "minItems" | "maxItems"
                    if row.most_repeats.is_some_and(|most| value.as_u64().unwrap() > most) =>
                {
                    "the number"
                }
                "type" if row.single_types && !value.is_string() => "the list of types",
                "enum"
                    if row.text_choices
                        && (kind != "string"
                            || !value
                                .as_array()
                                .unwrap()
                                .iter()
                                .all(|value| value.as_str().is_some_and(|text| !text.is_empty()))) =>
                {
                    "the values"
                }
                "properties" if !properties.iter().all(|name| row.names.fits(name)) => "a name",
                _ if row.lone_choices
                    && choice.is_some_and(|choice| choice != keyword)
                    && describes
                    && !dialects::NOTES.contains(&keyword.as_str()) =>
                {
                    "keywords beside the choice"
                }
                _ if row.typed
                    && of_types.peek().is_some()
                    && !of_types.any(|(kinds, _)| kinds.iter().any(|of| is_of(of))) =>
                {
                    "a keyword of another type"
                }
                _ => continue,
            };
            found = Some(format!("{why}: `{keyword}`"));
        }
        if row.typed && kind.is_null() && choice.is_none() && !schema.contains_key("$ref") {
            found = Some("the missing type".to_owned());
        }
        if row.closed && is_of("object") {
            let required: Vec<String> =
                serde_json::from_value(schema.get("required").cloned().unwrap_or_default()).unwrap_or_default();
            let needs_all = properties.len() == required.len() && properties.iter().all(|name| required.contains(name));
            if schema.get("additionalProperties") != Some(&json!(false)) || !needs_all {
                found = Some("an object that is open".to_owned());
            }
        }
    };
    each(root, &mut look);
    let too_deep = row.deepest.is_some_and(|deepest| depth_of(root) > deepest);
    found.or_else(|| too_deep.then(|| "the depth".to_owned()))
}

/// Visits a schema and all schemas in it.
fn each(schema: &Value, look: &mut dyn FnMut(&Map<String, Value>)) {
    let Some(members) = schema.as_object() else { return };
    look(members);
    for (keyword, value) in members {
        match keywords::shape(keyword) {
            Some(Shape::Schema | Shape::SchemaOrBool) => each(value, look),
            Some(Shape::Schemas | Shape::SchemasOrNames) => {
                value.as_object().unwrap().values().for_each(|value| each(value, look))
            }
            Some(Shape::SchemaList) => value.as_array().unwrap().iter().for_each(|value| each(value, look)),
            _ => {}
        }
    }
}

/// How many objects are inside of each other, apart from what references lead to.
fn depth_of(schema: &Value) -> usize {
    let Some(members) = schema.as_object() else { return 0 };
    let inner = members.iter().map(|(keyword, value)| match keywords::shape(keyword) {
        Some(Shape::Schema | Shape::SchemaOrBool) => depth_of(value),
        Some(Shape::Schemas) => value.as_object().unwrap().values().map(depth_of).max().unwrap_or_default(),
        Some(Shape::SchemaList) => value.as_array().unwrap().iter().map(depth_of).max().unwrap_or_default(),
        _ => 0,
    });
    inner.max().unwrap_or_default() + usize::from(members.contains_key("properties"))
}

/// Every dialect in a wire format, and every wire format.
fn ways() -> impl Iterator<Item = (ApiMode, SchemaDialect)> {
    let chat = SchemaDialect::ALL.iter().map(|dialect| (ApiMode::ChatCompletions, *dialect));
    chat.chain([
        (ApiMode::Responses, SchemaDialect::OpenAi),
        (ApiMode::Responses, SchemaDialect::OpenAiStrict),
        (ApiMode::AnthropicMessages, SchemaDialect::Anthropic),
    ])
}

/// What is sent for a tool with this schema: frozen by this version, or by an earlier one that left it as it was. None if the tool is
/// left out.
fn sent(mode: ApiMode, dialect: SchemaDialect, schema: &str, is_stored: bool) -> Result<Value, String> {
    let tool = ToolSchema { name: "f".into(), description: String::new(), parameters: schema.to_owned() };
    let stored =
        || format!(r#"[{{"type":"function","function":{{"name":"f","description":"","parameters":{schema}}}}}]"#);
    let list = if is_stored { stored() } else { tools_json(&[tool]) };
    let mut out = Vec::new();
    let written = mode.format().tools(&mut out, Style { schemas: dialect, ..Style::PLAIN }, &list).unwrap();
    if let [left_out] = &written.left_out[..] {
        assert!(out.is_empty(), "no tool is left");
        return Err(left_out.why.clone());
    }
    let tools: Value = serde_json::from_slice(&out).unwrap();
    Ok(match mode {
        ApiMode::ChatCompletions => &tools[0]["function"]["parameters"],
        ApiMode::Responses => &tools[0]["parameters"],
        ApiMode::AnthropicMessages => &tools[0]["input_schema"],
    }
    .clone())
}

fn check(schema: &Value) {
    for (mode, dialect) in ways() {
        for is_stored in [false, true] {
            // Lists of earlier versions keep a root without a type, which most servers take.
            let is_rootless = mode == ApiMode::ChatCompletions && schema["type"] != "object" || !schema.is_object();
            if is_stored && (is_rootless || schema.get("properties").is_none()) {
                continue;
            }
            let Ok(sent) = sent(mode, dialect, &schema.to_string(), is_stored) else { continue };
            for (rule, holds) in RULES {
                assert!(holds(&sent), "{mode:?} {dialect:?} {is_stored} {rule}: {schema} is sent as {sent}");
            }
            let refused = refused(dialect.row(), &sent);
            assert_eq!(refused, None, "{mode:?} {dialect:?} {is_stored}: {schema} is sent as {sent}");
            let flaw = jsonschema::draft202012::meta::validate(&sent).err().map(|flaw| flaw.to_string());
            assert_eq!(flaw, None, "{mode:?} {dialect:?}: {schema} is sent as {sent}");
            // Once mended, it stays as it is.
            let again = self::sent(mode, dialect, &sent.to_string(), false);
            assert_eq!(again.as_ref(), Ok(&sent), "{mode:?} {dialect:?}: {schema}");
            assert_eq!(again.unwrap().to_string(), sent.to_string(), "{mode:?} {dialect:?}: {schema}");
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
        assert_eq!(super::sent(schema, SchemaDialect::Anthropic).unwrap().0, NO_PARAMETERS);
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

/// Schemas as servers write them.
fn any_schema() -> impl Strategy<Value = Value> {
    let text = proptest::sample::select(vec!["", "a", "b", "c d"]);
    let leaf = prop_oneof![
        proptest::sample::select(vec!["string", "integer", "number", "boolean", "null", "array", "object"])
            .prop_map(|kind| json!({ "type": kind })),
        proptest::collection::vec(proptest::sample::select(vec!["string", "integer", "null", "array", "object"]), 1..4)
            .prop_map(|kinds| json!({ "type": kinds })),
        proptest::collection::vec(
            prop_oneof![text.prop_map(Value::from), (0..3).prop_map(Value::from), Just(Value::Null)],
            1..4
        )
        .prop_map(|values| json!({ "enum": values })),
        proptest::sample::select(vec!["#/$defs/A", "#/$defs/B", "#/$defs/c~1d", "#/$defs/A/properties/a"])
            .prop_map(|reference| json!({ "$ref": reference, "description": "d" })),
        proptest::sample::select(vec!["#/$defs/A", "#/$defs/B"]).prop_map(|reference| json!({ "$ref": reference })),
        (proptest::sample::select(vec![r"^\d+$", "a", "^[a-z]{2}$"]), 0_u64..400).prop_map(
            |(pattern, count)| json!({"type": "string", "pattern": pattern, "maxLength": count, "format": "uri"})
        ),
        Just(json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "nullable": true, "format": "int64"})),
        proptest::sample::select(vec![json!(1), json!("x"), json!(null), json!([1])])
            .prop_map(|value| json!({ "const": value })),
        Just(json!({})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let some = proptest::collection::vec(inner.clone(), 1..4);
        let name = proptest::sample::select(vec!["a", "b", "c-d", "$ref", "9"]);
        let object = proptest::collection::btree_map(name.clone(), inner.clone(), 0..4);
        prop_oneof![
            (object, proptest::collection::vec(name, 0..3)).prop_map(
                |(properties, required)| json!({"type": "object", "properties": properties, "required": required})
            ),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items, "maxItems": 300, "uniqueItems": true})),
            inner.clone().prop_map(|value| json!({"type": "object", "additionalProperties": value})),
            (proptest::sample::select(vec!["anyOf", "oneOf", "allOf"]), some, inner.clone(), any::<bool>()).prop_map(
                |(keyword, schemas, beside, is_alone)| {
                    let mut schema = if is_alone { Map::new() } else { beside.as_object().unwrap().clone() };
                    schema.insert(keyword.to_owned(), schemas.into());
                    Value::Object(schema)
                }
            ),
            (inner.clone(), inner).prop_map(|(one, other)| json!({"not": one, "if": other, "description": "d"})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_that_a_dialect_refuses_is_sent(root in any_schema(), a in any_schema(), b in any_schema(), c in any_schema()) {
        let mut root = root.as_object().unwrap().clone();
        let defined = json!({"A": {"type": "object", "properties": {"a": a, "next": {"$ref": "#/$defs/A"}}}, "B": b, "c/d": c});
        root.insert("$defs".to_owned(), defined);
        check(&Value::Object(root));
    }

    #[test]
    fn whatever_a_server_sends_becomes_a_schema(value in any_value()) {
        check(&value);
    }
}
