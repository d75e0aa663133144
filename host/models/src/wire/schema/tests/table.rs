//! A table of schemas as servers publish them, and what each dialect gets of them.

use super::*;

/// Schemas with a name each, most of them from reports about servers whose tools were refused.
fn schemas() -> Vec<(&'static str, Value)> {
    let with = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
    let maybe = |property: Value| json!({"type": "object", "properties": {"a": property}});
    let node = json!({"type": "object", "properties": {"label": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}, "required": ["label"]});
    vec![
        ("no arguments", json!({"type": "object", "properties": {}})),
        ("an object without properties", json!({"type": "object"})),
        ("an empty schema", json!({})),
        ("one text", with(json!({"type": "string", "description": "A path."}))),
        ("an argument that may be missing", maybe(json!({"type": "string"}))),
        (
            "the header of TypeScript servers",
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}),
        ),
        (
            "anyOf at the root",
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        ),
        (
            "oneOf at the root without a type",
            json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "x"}, "a": {"type": "string"}}, "required": ["kind", "a"]},
            {"type": "object", "properties": {"kind": {"const": "y"}, "b": {"type": "integer"}}, "required": ["kind"]}]}),
        ),
        (
            "allOf at the root",
            json!({"allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "integer"}}}]}),
        ),
        (
            "a reference at the root",
            json!({"$ref": "#/$defs/Arguments",
            "$defs": {"Arguments": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}}),
        ),
        (
            "not, enum and const at the root",
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "not": {"required": ["b"]}, "enum": [{"a": "x"}], "const": {"a": "x"}}),
        ),
        (
            "a list of types at the root",
            json!({"type": ["object", "null"], "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
        ("a root that is a text", json!({"type": "string"})),
        (
            "a root that may be null",
            json!({"type": "object", "nullable": true, "properties": {"a": {"type": "string", "nullable": true}}}),
        ),
        ("a list without items", with(json!({"type": "array"}))),
        ("a list of lists without items", with(json!({"type": "array", "items": {"type": "array"}}))),
        (
            "a list of texts",
            with(json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true})),
        ),
        (
            "a tuple in the words of draft 4",
            with(json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]})),
        ),
        (
            "a tuple in the words of 2020-12",
            with(json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]})),
        ),
        (
            "an exclusive bound in the words of draft 4",
            with(json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true})),
        ),
        ("an exclusive bound", with(json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}))),
        (
            "required in a property",
            json!({"type": "object", "properties": {"a": {"type": "string", "required": true}}}),
        ),
        (
            "required among the properties",
            json!({"type": "object", "properties": {"a": {"type": "string"}, "required": ["a"]}}),
        ),
        ("required that is null", json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": null})),
        (
            "required without a property",
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "gone"]}),
        ),
        ("a type that is no type", with(json!({"type": "any"}))),
        ("a type in other words", with(json!({"type": "Int"}))),
        ("a property without a type", with(json!({"description": "Anything."}))),
        ("a property that is a sentence", with(json!("what to do"))),
        ("a property that is true", with(json!(true))),
        ("a property that is false", with(json!(false))),
        ("a dangling reference", with(json!({"$ref": "#/$defs/Gone"}))),
        ("a reference to a file", with(json!({"$ref": "https://example.com/s.json", "description": "d"}))),
        (
            "a reference",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/Unit"}}, "required": ["a"],
            "$defs": {"Unit": {"type": "string", "enum": ["m", "km"]}}}),
        ),
        (
            "a reference with a description",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/Unit", "description": "The unit."}},
            "required": ["a"], "$defs": {"Unit": {"type": "string", "enum": ["m", "km"]}}}),
        ),
        (
            "a reference to a definition with a slash",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/x~1y"}}, "required": ["a"],
            "$defs": {"x/y": {"type": "string"}}}),
        ),
        (
            "a reference into a definition",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/P/properties/x"}}, "required": ["a"],
            "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}}),
        ),
        (
            "definitions in the words of draft 4",
            json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}, "required": ["a"],
            "definitions": {"A": {"type": "integer"}}}),
        ),
        (
            "a schema that contains itself",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}, "required": ["a"],
            "$defs": {"Node": node}}),
        ),
        (
            "a list that contains itself",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/Tree"}}, "required": ["a"],
            "$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}),
        ),
        (
            "references in a circle",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"],
            "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}),
        ),
        (
            "allOf around a reference",
            json!({"type": "object", "properties": {"a": {"allOf": [{"$ref": "#/$defs/Unit"}], "default": "m"}},
            "$defs": {"Unit": {"type": "string", "enum": ["m", "km"]}}}),
        ),
        (
            "allOf of objects",
            with(json!({"allOf": [
            {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}, {"properties": {"y": {"type": "integer"}}}]})),
        ),
        ("allOf of rules", with(json!({"allOf": [{"type": "string"}, {"minLength": 2}]}))),
        (
            "a text or null",
            maybe(json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "A"})),
        ),
        ("a text or null as a list of types", maybe(json!({"type": ["string", "null"]}))),
        (
            "a text or a number as a list of types",
            with(json!({"type": ["string", "number"], "minLength": 1, "minimum": 0})),
        ),
        ("a text or null in the words of OpenAPI", maybe(json!({"type": "string", "nullable": true}))),
        (
            "a text or a list",
            with(json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})),
        ),
        (
            "a choice beside properties",
            with(json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
            "anyOf": [{"required": ["x"]}, {"required": ["y"]}]})),
        ),
        ("a choice beside a type", with(json!({"type": "string", "anyOf": [{"format": "date"}, {"enum": ["today"]}]}))),
        ("a single value", with(json!({"const": "fixed"}))),
        ("texts", with(json!({"type": "string", "enum": ["x", "y"]}))),
        ("texts without a type", with(json!({"enum": ["x", "y"]}))),
        ("texts with an empty one", with(json!({"type": "string", "enum": ["", "y"]}))),
        ("numbers", with(json!({"type": "integer", "enum": [1, 5, 10]}))),
        ("values of several types", with(json!({"enum": ["auto", 1, null]}))),
        ("a format", with(json!({"type": "string", "format": "uri"}))),
        ("a date", with(json!({"type": "string", "format": "date-time"}))),
        ("a pattern without anchors", with(json!({"type": "string", "pattern": "\\S"}))),
        (
            "a pattern with classes",
            with(json!({"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$", "description": "A day."})),
        ),
        ("a pattern with anchors", with(json!({"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}))),
        ("a pattern that looks ahead", with(json!({"type": "string", "pattern": "^(?!-)[a-z]+$"}))),
        ("a long text", with(json!({"type": "string", "maxLength": 2000}))),
        (
            "a map",
            with(
                json!({"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^[a-z]+$"}}),
            ),
        ),
        ("an object of any form", with(json!({"type": "object", "additionalProperties": true}))),
        ("properties by pattern", with(json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}}))),
        (
            "a rule that depends",
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "dependentRequired": {"a": ["b"]}, "if": {"required": ["a"]}, "then": {"required": ["b"]}}),
        ),
        (
            "names with other characters",
            json!({"type": "object", "properties": {"$filter": {"type": "string"}, "page[size]": {"type": "integer"},
            "größe": {"type": "number"}}, "required": ["$filter", "page[size]", "größe"]}),
        ),
        (
            "names with a dot, a hyphen and a digit",
            json!({"type": "object", "properties": {"a.b": {"type": "string"}, "c-d": {"type": "string"},
            "2d": {"type": "boolean"}}, "required": ["a.b", "c-d", "2d"]}),
        ),
        (
            "a name that is a keyword",
            json!({"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]}),
        ),
        (
            "a long name",
            json!({"type": "object", "properties": {"a".repeat(70): {"type": "string"}}, "required": ["a".repeat(70)]}),
        ),
        (
            "keywords of one's own",
            with(json!({"type": "string", "x-order": 1, "examples": ["x"], "markdownDescription": "d"})),
        ),
    ]
}

/// What a wire format of a dialect sends, and what stands for what in it.
fn row(dialect: SchemaDialect, schema: &Value) -> String {
    let mode = match dialect {
        SchemaDialect::Anthropic => ApiMode::AnthropicMessages,
        _ => ApiMode::ChatCompletions,
    };
    let frozen = complete(&schema.to_string()).into_owned();
    match (sent(mode, dialect, &schema.to_string(), false), super::super::sent(&frozen, dialect)) {
        (Ok(sent), Ok((_, Back { names, absent }))) => {
            let names = names.iter().map(|(sent, name)| format!("\n{:16}   `{sent}` is `{name}`", ""));
            let absent = absent.iter().map(|name| format!("\n{:16}   `{name}` that is null is missing", ""));
            format!("{sent}{}", names.chain(absent).collect::<String>())
        }
        (Err(why), _) => format!("left out: {why}"),
        (Ok(_), Err(why)) => panic!("{schema} is sent, although: {why}"),
    }
}

#[test]
fn each_dialect_gets_what_it_takes() {
    let schemas = schemas();
    assert!(schemas.len() > 60);
    let mut table = String::new();
    for (name, schema) in &schemas {
        check(schema);
        table.push_str(&format!("{name}\n{:16} {schema}\n", "  published"));
        let mut before: Vec<(&str, String)> = vec![("published", schema.to_string())];
        for dialect in SchemaDialect::ALL {
            let row = row(*dialect, schema);
            let same = before.iter().find(|(_, earlier)| *earlier == row).map(|(name, _)| format!("as {name}"));
            let name = dialect.as_str();
            table.push_str(&format!("{:16} {}\n", format!("  {name}"), same.as_ref().unwrap_or(&row)));
            before.push((name, row));
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}
