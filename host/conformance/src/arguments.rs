//! Generates values from JSON Schemas: some valid, many invalid.

use serde_json::{Map, Value, json};

/// Bytes of a text far larger than any that a model would write.
const HUGE: usize = 1 << 20;
/// Text that breaks code which confuses bytes with characters, or expects ASCII.
pub(crate) const UNICODE: &str = "é\u{0}\u{202e}語😀\u{feff}\u{fffd}\n\r\t\"'\\";
/// How many nested schemas are followed.
const DEPTH: usize = 8;

/// A value that the schema admits: its first example, if it has any. Understands only simple schemas.
pub(crate) fn valid(schema: &Value) -> Value {
    valid_at(schema, schema, 0)
}

fn valid_at(schema: &Value, root: &Value, depth: usize) -> Value {
    let schema = resolved(schema, root);
    if depth > DEPTH {
        return Value::Null;
    }
    let example = || schema.get("examples").and_then(|all| all.get(0));
    if let Some(given) = schema.get("const").or_else(example).or_else(|| schema.get("default")) {
        return given.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|all| all.get(0)) {
        return first.clone();
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(first) = schema.get(choice).and_then(|all| all.get(0)) {
            return valid_at(first, root, depth + 1);
        }
    }
    match type_of(schema) {
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let fitted = properties.into_iter().flatten();
            let fitted: Map<String, Value> =
                fitted.map(|(name, property)| (name.clone(), valid_at(property, root, depth + 1))).collect();
            Value::Object(fitted)
        }
        "array" => {
            let item = schema.get("items").map(|items| valid_at(items, root, depth + 1));
            Value::Array(item.into_iter().collect())
        }
        "integer" => json!(least(schema).ceil() as i64),
        "number" => json!(least(schema)),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            json!("lamp".repeat((least / 4 + 1).min(64) as usize))
        }
    }
}

fn least(schema: &Value) -> f64 {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    bound("minimum")
        .or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0))
        .or_else(|| bound("maximum"))
        .unwrap_or(1.0)
}

fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?)).unwrap_or(schema)
}

fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    }
}

/// Values for a property that are wrong, empty, huge or strange.
pub(crate) fn invalid_values(schema: &Value) -> Vec<Value> {
    let mut values = vec![Value::Null, json!([]), json!({}), json!(true), json!(-1), json!(1.5), json!(""), json!("x")];
    values.extend([json!(i64::MAX), json!(u64::MAX), json!(1e308), json!(UNICODE)]);
    if matches!(type_of(schema), "string" | "array") {
        values.push(json!("a".repeat(HUGE)));
    }
    if type_of(schema) == "array" {
        values.push(json!(vec![UNICODE; 1_000]));
    }
    values
}

/// Arguments that a model might write by mistake, and some that only an attacker would write.
pub(crate) fn invalid_arguments(schema: &Value) -> Vec<String> {
    let mut all: Vec<String> = ["", "  ", "null", "[]", "7", "\"text\"", "{", "{\"a\":", "not json", "\u{0}", "{}"]
        .map(str::to_owned)
        .to_vec();
    all.push(format!("{}1{}", "[".repeat(500), "]".repeat(500)));
    all.push(json!({ "no such argument": UNICODE }).to_string());
    let fitted = valid(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        for value in invalid_values(resolved(property, schema)) {
            let mut arguments = fitted.as_object().cloned().unwrap_or_default();
            arguments.insert(name.clone(), value);
            all.push(Value::Object(arguments).to_string());
        }
        let mut without = fitted.as_object().cloned().unwrap_or_default();
        without.remove(name);
        all.push(Value::Object(without).to_string());
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_value_matches_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "minLength": 9 },
                "count": { "type": "integer", "minimum": 3, "maximum": 5 },
                "share": { "type": ["number", "null"], "maximum": 0.5 },
                "order": { "enum": ["asc", "desc"] },
                "city": { "type": "string", "examples": ["Oslo", "Bergen"], "default": "Rome" },
                "items": { "type": "array", "items": { "$ref": "#/$defs/item" }, "minItems": 1 },
                "deep": { "anyOf": [{ "type": "object", "properties": { "on": { "type": "boolean" } } }] },
            },
            "$defs": { "item": { "type": "object", "properties": { "id": { "const": 7 } }, "required": ["id"] } },
            "required": ["text", "count", "items"],
        });
        let expected = json!({
            "text": "lamplamplamp",
            "count": 3,
            "share": 0.5,
            "order": "asc",
            "city": "Oslo",
            "items": [{ "id": 7 }],
            "deep": { "on": true },
        });
        assert_eq!(valid(&schema), expected);
        let invalid_arguments = invalid_arguments(&schema);
        assert!(
            invalid_arguments.len() > 80 && !invalid_arguments.contains(&expected.to_string()),
            "{}",
            invalid_arguments.len()
        );
    }

    #[test]
    fn a_recursive_schema_gives_a_finite_value() {
        let schema = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
        assert!(valid(&schema).is_object());
    }
}
