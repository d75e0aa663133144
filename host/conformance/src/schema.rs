//! Checks that a value is a JSON Schema of an object, for the arguments of tools and for configurations.

use serde_json::{Map, Value};

use crate::report::Verdict;

/// Checks that it is a schema of an object whose defaults are valid.
pub(crate) fn of_configuration(schema: &Value) -> Verdict {
    of_object(schema)?;
    let validator = hermes_plugin_host::json_schema(schema)?;
    for (name, property) in properties(schema).into_iter().flatten() {
        let Some(default) = property.get("default") else { continue };
        let section = Value::Object(Map::from_iter([(name.clone(), default.clone())]));
        // Ignores errors of the section itself, such as missing properties.
        let misfit = validator.iter_errors(&section).find(|error| !error.instance_path().as_str().is_empty());
        if let Some(misfit) = misfit {
            return Err(format!("the default of `{name}` is not valid for it: {misfit}").into());
        }
    }
    Ok(String::new())
}

/// Whether a value fits a schema.
pub(crate) fn fits(schema: &Value, value: &Value) -> bool {
    hermes_plugin_host::json_schema(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// Where and why a value does not fit a schema; `None` if it fits.
pub(crate) fn misfit(schema: &Value, value: &Value) -> Option<String> {
    let validator = match hermes_plugin_host::json_schema(schema) {
        Ok(validator) => validator,
        Err(why) => return Some(why),
    };
    let error = validator.iter_errors(value).next()?;
    let at = match error.instance_path().as_str() {
        "" => "the whole".to_owned(),
        path => format!("`{path}`"),
    };
    Some(format!("{at}: {error}"))
}

/// Checks that it is a schema of an object that requires only properties which it defines.
pub(crate) fn of_object(schema: &Value) -> Result<(), String> {
    hermes_plugin_host::json_schema(schema)?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("it must say `\"type\": \"object\"` at its top".to_owned());
    }
    let required = schema.get("required").and_then(Value::as_array);
    let lacks = |name: &str| properties(schema).is_none_or(|properties| !properties.contains_key(name));
    match required.into_iter().flatten().filter_map(Value::as_str).find(|name| lacks(name)) {
        Some(name) => Err(format!("`/required` names `{name}`, which is not among the properties")),
        None => Ok(()),
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_fits_a_schema_that_requires_nothing_else() {
        let schema = json!({ "type": "object", "properties": { "url": { "type": "string" } }, "required": ["url"] });
        assert!(fits(&schema, &json!({ "url": "x" })));
        assert!(!fits(&schema, &json!({})) && !fits(&json!({ "type": "thing" }), &json!({})));
        assert_eq!(misfit(&schema, &json!({ "url": "x" })), None);
        let wrong = [json!({ "url": 7 }), json!({})].map(|value| misfit(&schema, &value).unwrap_or_default());
        assert!(wrong[0].starts_with("`/url`: 7 is not") && wrong[1].starts_with("the whole: \"url\""), "{wrong:?}");
    }

    #[test]
    fn an_invalid_object_schema_is_reported_with_the_path() {
        for (schema, part) in [
            (json!([]), "section such as"),
            (json!({ "type": "string" }), "object"),
            (json!({ "type": "object", "properties": [] }), "`/properties`"),
            (json!({ "type": "thing" }), "`/type`"),
            (json!({ "type": "object", "properties": { "a": { "type": "words" } } }), "`/properties/a/type`"),
            (json!({ "type": "object", "properties": { "a": { "items": 7 } } }), "`/properties/a/items`"),
            (json!({ "type": "object", "properties": { "a": { "anyOf": [] } } }), "anyOf"),
            (json!({ "type": "object", "properties": { "a": { "enum": "b" } } }), "enum"),
            (json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }), "pattern"),
            (json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/b" } } }), "/$defs/b"),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "https://example.org/b.json" } } }),
                "example.org",
            ),
            (json!({ "type": "object", "properties": {}, "required": ["a"] }), "names `a`"),
            (json!({ "type": "object", "required": "a" }), "`/required`"),
        ] {
            let result = of_object(&schema);
            assert!(result.as_ref().is_err_and(|why| why.contains(part)), "{schema}: {result:?}");
        }
        let plain =
            json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"] });
        assert_eq!(of_object(&plain), Ok(()));
    }

    #[test]
    fn a_default_must_be_valid_for_its_property() {
        let schema = |default: Value| {
            json!({
                "type": "object",
                "properties": {
                    "a": { "$ref": "#/$defs/small", "default": default },
                    "b": { "type": "string" },
                },
                "required": ["b"],
                "$defs": { "small": { "type": "integer", "maximum": 9 } },
            })
        };
        assert!(of_configuration(&schema(json!(3))).is_ok());
        for default in [json!("3"), json!(10)] {
            let verdict = of_configuration(&schema(default));
            assert!(verdict.is_err_and(|fail| fail.why.contains("default of `a`")));
        }
    }
}
