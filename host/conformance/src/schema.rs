//! Whether a value is a JSON Schema, as far as tools and configurations use it: the shape of its keywords, at every depth.

use serde_json::{Map, Value};

use crate::report::Verdict;

const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
/// Schemas within schemas that are followed.
const DEPTH: usize = 32;

/// Whether it is a schema of an object whose properties admit their own defaults.
pub(crate) fn of_configuration(schema: &Value) -> Verdict {
    of_object(schema)?;
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|default| !is_of_type(default, property)) {
            return Err(format!("the default of `{name}`, {default}, is not of its type").into());
        }
    }
    Ok(String::new())
}

/// Whether it is a schema of an object, and requires nothing that it does not have.
pub(crate) fn of_object(schema: &Value) -> Result<(), String> {
    check(schema, "", 0)?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("it must say `\"type\": \"object\"` at its top".to_owned());
    }
    Ok(())
}

fn check(schema: &Value, at: &str, depth: usize) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("`{at}/` {why}"));
    let keywords = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(_) if depth > DEPTH => return wrong("is too deep"),
        Value::Object(keywords) => keywords,
        _ => return wrong("is no schema: an object is one"),
    };
    for (keyword, value) in keywords {
        let at = format!("{at}/{keyword}");
        let wrong = |why: &str| Err(format!("`{at}` {why}"));
        match keyword.as_str() {
            "type" if !is_type(value) => {
                return wrong("is none of object, array, string, integer, number, boolean, null");
            }
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                let Value::Object(schemas) = value else { return wrong("must be an object of schemas") };
                for (name, schema) in schemas {
                    check(schema, &format!("{at}/{name}"), depth + 1)?;
                }
            }
            "items" | "additionalProperties" | "not" | "contains" | "propertyNames" => check(value, &at, depth + 1)?,
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let Some(schemas) = value.as_array().filter(|schemas| !schemas.is_empty()) else {
                    return wrong("must be an array of schemas");
                };
                for (number, schema) in schemas.iter().enumerate() {
                    check(schema, &format!("{at}/{number}"), depth + 1)?;
                }
            }
            "enum" if value.as_array().is_none_or(Vec::is_empty) => {
                return wrong("must be an array of values");
            }
            "required" => required(value, keywords, &at)?,
            "description" | "title" | "format" | "pattern" | "$ref" if !value.is_string() => {
                return wrong("must be a text");
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" if !value.is_number() => {
                return wrong("must be a number");
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" if !value.is_u64() => {
                return wrong("must be a whole number");
            }
            _ => {}
        }
    }
    Ok(())
}

fn required(value: &Value, keywords: &Map<String, Value>, at: &str) -> Result<(), String> {
    let names = value.as_array().and_then(|names| names.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let Some(names) = names else { return Err(format!("`{at}` must be an array of names")) };
    let properties = keywords.get("properties").and_then(Value::as_object);
    match names.into_iter().find(|name| properties.is_none_or(|properties| !properties.contains_key(*name))) {
        Some(name) => Err(format!("`{at}` names `{name}`, which is none of the properties")),
        None => Ok(()),
    }
}

fn is_type(value: &Value) -> bool {
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        name => known(name),
    }
}

fn is_of_type(value: &Value, schema: &Value) -> bool {
    let fits = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    };
    match schema.get("type") {
        Some(Value::String(name)) => fits(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(fits),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_schema_of_an_object_is_told_with_its_place() {
        for (schema, part) in [
            (json!([]), "no schema"),
            (json!({ "type": "string" }), "object"),
            (json!({ "type": "object", "properties": [] }), "`/properties`"),
            (json!({ "type": "thing" }), "`/type`"),
            (json!({ "type": "object", "properties": { "a": { "type": "words" } } }), "`/properties/a/type`"),
            (json!({ "type": "object", "properties": { "a": { "items": 7 } } }), "`/properties/a/items/`"),
            (json!({ "type": "object", "properties": { "a": { "anyOf": [] } } }), "anyOf"),
            (json!({ "type": "object", "properties": { "a": { "enum": "b" } } }), "enum"),
            (json!({ "type": "object", "properties": {}, "required": ["a"] }), "names `a`"),
            (json!({ "type": "object", "required": "a" }), "array of names"),
        ] {
            let told = of_object(&schema);
            assert!(told.as_ref().is_err_and(|why| why.contains(part)), "{schema}: {told:?}");
        }
        let plain =
            json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"] });
        assert_eq!(of_object(&plain), Ok(()));
    }

    #[test]
    fn a_default_is_of_its_type() {
        let schema = |default: Value| json!({ "type": "object", "properties": { "a": { "type": "integer", "default": default } } });
        assert!(of_configuration(&schema(json!(3))).is_ok());
        assert!(of_configuration(&schema(json!("3"))).is_err_and(|fail| fail.why.contains("default of `a`")));
    }
}
