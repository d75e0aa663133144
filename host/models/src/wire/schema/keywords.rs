//! Mends a schema at every depth: a keyword whose value has not the shape that the keyword takes is corrected where its meaning
//! is plain, and left out otherwise. Providers refuse the whole request over one of them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::root::{self, found};

/// Deeper schemas accept anything.
const DEEPEST: usize = 32;

/// What the value of a keyword is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A schema; a list of them in old drafts.
    Schema,
    /// A schema, `true` or `false`.
    SchemaOrBool,
    /// Schemas by name.
    Schemas,
    /// A list of schemas that is not empty.
    SchemaList,
    /// Schemas, or lists of texts, by name.
    SchemasOrNames,
    Text,
    /// A regular expression.
    Pattern,
    /// The address of a version of JSON Schema.
    Version,
    Number,
    /// A number above zero.
    Positive,
    Count,
    Bool,
    /// A list of texts, each once.
    Names,
    /// Lists of texts by name.
    NamesByName,
    /// A list.
    List,
    /// A list that is not empty.
    Choices,
    Types,
    Ref,
    /// It gives a schema a name of its own, or refers to such a name: nothing that a model needs, and a validator has to find it.
    Anchor,
}

/// The keywords whose values have a shape. All others are notes, and any value is one.
pub(super) fn shape(keyword: &str) -> Option<Shape> {
    Some(match keyword {
        "items" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => Shape::Schema,
        "additionalProperties" | "additionalItems" | "unevaluatedItems" | "unevaluatedProperties" => {
            Shape::SchemaOrBool
        }
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Shape::Schemas,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::SchemaList,
        "dependencies" => Shape::SchemasOrNames,
        "$comment" | "title" | "description" | "format" | "contentMediaType" | "contentEncoding" => Shape::Text,
        "pattern" => Shape::Pattern,
        "$schema" => Shape::Version,
        "multipleOf" => Shape::Positive,
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => Shape::Number,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" | "maxContains"
        | "minContains" => Shape::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => Shape::Bool,
        "required" => Shape::Names,
        "dependentRequired" => Shape::NamesByName,
        "examples" => Shape::List,
        "enum" => Shape::Choices,
        "type" => Shape::Types,
        "$ref" => Shape::Ref,
        "$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$recursiveRef" | "$recursiveAnchor" | "$vocabulary" => {
            Shape::Anchor
        }
        _ => return None,
    })
}

/// A schema of parameters that is mended; none if nothing was wrong with it.
pub(super) fn mended(written: &Map<String, Value>) -> Option<Map<String, Value>> {
    let root = Value::Object(root::joined(written));
    let mut defined = root.clone();
    if let Some(members) = defined.as_object_mut() {
        object(members, &Context { root: &root, depth: 0 });
    }
    // References are checked again: what they lead to may have been left out.
    let checked = defined.clone();
    if let Some(root) = defined.as_object_mut() {
        object(root, &Context { root: &checked, depth: 0 });
    }
    match defined {
        Value::Object(mended) if mended != *written => Some(mended),
        _ => None,
    }
}

struct Context<'r> {
    root: &'r Value,
    depth: usize,
}

impl Context<'_> {
    fn deeper(&self) -> Self {
        Self { depth: self.depth + 1, ..*self }
    }
}

/// Whether a reference leads to a definition of the schema that is more than references in a circle.
fn leads(root: &Value, reference: &str) -> bool {
    if !["#/$defs/", "#/definitions/"].iter().any(|place| reference.starts_with(place)) {
        return false;
    }
    let mut seen = HashSet::new();
    let mut next = reference;
    loop {
        let Some(target) = found(root, next) else { return false };
        let Some(further) = target.get("$ref").and_then(Value::as_str) else { return true };
        if !seen.insert(further) {
            return false;
        }
        next = further;
    }
}

/// Turns a value at the place of a schema into a valid schema.
fn schema(value: &mut Value, context: &Context<'_>) {
    if context.depth > DEEPEST {
        *value = json!({});
        return;
    }
    match value {
        Value::Object(members) => return object(members, context),
        // Not every provider takes these two, although both are schemas.
        Value::Bool(true) => *value = json!({}),
        Value::Bool(false) => *value = json!({"not": {}}),
        // The short form of people: `"path": "string"`.
        Value::String(text) => {
            *value = match type_named(text) {
                Some(name) => json!({"type": name}),
                None => json!({"description": text}),
            };
        }
        Value::Array(choices)
            if !choices.is_empty() && choices.iter().all(|choice| !choice.is_object() && !choice.is_array()) =>
        {
            *value = json!({"enum": choices});
        }
        _ => *value = json!({}),
    }
    if let Value::Object(members) = value {
        object(members, context);
    }
}

/// Mends the keywords of a schema.
fn object(members: &mut Map<String, Value>, context: &Context<'_>) {
    required_inside(members);
    exclusive_in_words(members);
    let inner = context.deeper();
    members.retain(|keyword, value| shape(keyword).is_none_or(|shape| keep(shape, keyword, value, &inner)));
    // A requirement of something that is not described any more cannot be met knowingly.
    if let Some(Value::Array(names)) = members.get("required").cloned()
        && let Some(Value::Object(properties)) = members.get("properties")
        && members.get("patternProperties").is_none()
        && names.iter().any(|name| is_left_out(name, properties))
    {
        let left: Vec<Value> = names.into_iter().filter(|name| !is_left_out(name, properties)).collect();
        members.insert("required".to_owned(), left.into());
    }
    // Some APIs refuse a requirement of what is not described, and all of them a list of unknown items.
    let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_described = |name: &str| members.get("properties").is_some_and(|properties| properties.get(name).is_some());
    let further: Vec<&str> = required.iter().filter_map(Value::as_str).filter(|name| !is_described(name)).collect();
    if !further.is_empty() {
        let mut properties = members.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        properties.extend(further.into_iter().map(|name| (name.to_owned(), json!({}))));
        members.insert("properties".to_owned(), properties.into());
    }
    let is_list = members.get("type").is_some_and(|kind| {
        kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
    });
    if is_list && !members.contains_key("items") {
        members.insert("items".to_owned(), json!({}));
    }
}

/// Whether a required name was only a misplaced `required`.
fn is_left_out(name: &Value, properties: &Map<String, Value>) -> bool {
    name == "required" && !properties.contains_key("required")
}

/// Turns the exclusive bounds of old drafts into those of the current draft.
fn exclusive_in_words(members: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if members.get(exclusive) == Some(&Value::Bool(true))
            && let Some(value) = members.shift_remove(bound)
        {
            members.insert(exclusive.to_owned(), value);
        }
    }
}

/// Moves `required` to where it belongs, if it is among the properties or in one of them.
fn required_inside(members: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
    let mut found: Vec<String> = Vec::new();
    let is_list_of_names =
        |value: &Value| value.as_array().is_some_and(|names| names.iter().all(|name| name.as_str().is_some()));
    if properties.get("required").is_some_and(is_list_of_names) {
        let names = properties.shift_remove("required").unwrap_or_default();
        let names = names.as_array().cloned().unwrap_or_default();
        found.extend(
            names.iter().filter_map(Value::as_str).filter(|name| properties.contains_key(*name)).map(str::to_owned),
        );
    }
    for (name, property) in properties.iter_mut() {
        let Some(property) = property.as_object_mut() else { continue };
        if let Some(Value::Bool(is_required)) = property.get("required") {
            if *is_required {
                found.push(name.clone());
            }
            property.shift_remove("required");
        }
    }
    if found.is_empty() {
        return;
    }
    let known = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let names: Vec<Value> = known.into_iter().chain(found.into_iter().map(Value::from)).collect();
    members.insert("required".to_owned(), names.into());
}

/// Mends the value of a keyword. False if the keyword is to be left out.
fn keep(shape: Shape, keyword: &str, value: &mut Value, context: &Context<'_>) -> bool {
    match shape {
        Shape::Schema | Shape::SchemaOrBool if value.is_null() => return false,
        Shape::SchemaOrBool if value.is_boolean() => {}
        Shape::Schema if value.is_array() => {
            let mut schemas = value.as_array().cloned().unwrap_or_default();
            schemas.iter_mut().for_each(|value| schema(value, context));
            let mut seen = HashSet::new();
            schemas.retain(|schema| seen.insert(schema.clone()));
            // Old drafts have a schema for each place: an item fits one of them.
            let is_choice = keyword == "items" && !schemas.contains(&json!({}));
            *value = match schemas.len() {
                1 => schemas.swap_remove(0),
                2.. if is_choice => json!({ "anyOf": schemas }),
                _ => json!({}),
            };
        }
        Shape::Schema | Shape::SchemaOrBool => schema(value, context),
        Shape::Schemas => {
            let Some(schemas) = value.as_object_mut() else { return false };
            if keyword == "patternProperties" {
                schemas.retain(|pattern, _| is_pattern(pattern));
            }
            schemas.values_mut().for_each(|value| schema(value, context));
        }
        Shape::SchemasOrNames => {
            let Some(schemas) = value.as_object_mut() else { return false };
            schemas.retain(|_, value| match value {
                Value::Array(_) => keep(Shape::Names, keyword, value, context),
                _ => {
                    schema(value, context);
                    true
                }
            });
        }
        Shape::SchemaList => {
            if value.is_object() {
                *value = json!([value]);
            }
            let Some(schemas) = value.as_array_mut() else { return false };
            schemas.retain(|value| !value.is_null());
            schemas.iter_mut().for_each(|value| schema(value, context));
            return !schemas.is_empty();
        }
        Shape::Text => match value {
            Value::String(_) => {}
            Value::Number(_) | Value::Bool(_) if keyword == "description" || keyword == "title" => {
                *value = value.to_string().into();
            }
            _ => return false,
        },
        Shape::Pattern => return value.as_str().is_some_and(is_pattern),
        Shape::Version => {
            let is_known = |address: &str| {
                let place = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
                place.is_some_and(|place| place.starts_with("json-schema.org/"))
            };
            return value.as_str().is_some_and(is_known);
        }
        Shape::Anchor => return false,
        Shape::Positive => {
            return keep(Shape::Number, keyword, value, context) && value.as_f64().is_some_and(|number| number > 0.0);
        }
        Shape::Number => {
            if let Some(number) = value.as_str().and_then(|text| text.trim().parse::<serde_json::Number>().ok()) {
                *value = number.into();
            }
            return value.is_number();
        }
        Shape::Count => {
            let count = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
            let count = count.or_else(|| {
                value.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0).map(|count| count as u64)
            });
            let Some(count) = count else { return false };
            if value.as_u64() != Some(count) {
                *value = count.into();
            }
        }
        Shape::Bool => match value.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("true") => *value = true.into(),
            Some("false") => *value = false.into(),
            _ => return value.is_boolean(),
        },
        Shape::Names => {
            if value.is_string() {
                *value = json!([value]);
            }
            let Some(names) = value.as_array_mut() else { return false };
            let mut seen = HashSet::new();
            names.retain(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned())));
        }
        Shape::NamesByName => {
            let Some(lists) = value.as_object_mut() else { return false };
            lists.retain(|_, names| keep(Shape::Names, keyword, names, context));
        }
        Shape::List => return value.is_array(),
        Shape::Choices => {
            if matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_)) {
                *value = json!([value]);
            }
            let Some(choices) = value.as_array_mut() else { return false };
            let mut seen = HashSet::new();
            choices.retain(|choice| seen.insert(choice.clone()));
            return !choices.is_empty();
        }
        Shape::Types => return types(value),
        Shape::Ref => return value.as_str().is_some_and(|reference| leads(context.root, reference)),
    }
    true
}

/// Whether a text is a regular expression that servers understand. They know several languages of them, whose common part counts.
fn is_pattern(text: &str) -> bool {
    !matches!(regex::Regex::new(text), Err(regex::Error::Syntax(_)))
}

/// Mends a type, or a list of types. False if none is known.
fn types(value: &mut Value) -> bool {
    match value {
        Value::String(written) => match type_named(written) {
            Some(name) if name == written => true,
            Some(name) => {
                *value = name.into();
                true
            }
            None => false,
        },
        Value::Array(written) => {
            let mut names: Vec<&str> = Vec::new();
            for name in written.iter().filter_map(Value::as_str).filter_map(type_named) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let is_known = !names.is_empty();
            let names: Vec<Value> = names.into_iter().map(Value::from).collect();
            if *written != names {
                *written = names;
            }
            is_known
        }
        _ => false,
    }
}

/// The type that a word means.
fn type_named(written: &str) -> Option<&'static str> {
    Some(match written.trim().to_ascii_lowercase().as_str() {
        "string" | "str" | "text" | "char" => "string",
        "integer" | "int" | "long" | "int32" | "int64" | "uint" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "boolean" | "bool" => "boolean",
        "object" | "dict" | "map" | "struct" | "record" => "object",
        "array" | "list" | "tuple" | "set" => "array",
        "null" | "none" | "nil" => "null",
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mend(schema: Value) -> Option<Value> {
        mended(schema.as_object().unwrap()).map(Value::Object)
    }

    #[test]
    fn a_sound_schema_is_left_as_it_is() {
        for schema in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"], "default": null, "enum": ["x", null]}},
                "required": ["a"], "additionalProperties": false}),
            json!({"properties": {"required": {"type": "boolean"}, "type": {"type": "string"}, "items": {"type": "array",
                "items": {"anyOf": [{"type": "string"}, {"const": {"a": null}}]}, "minItems": 1, "uniqueItems": true}}}),
            json!({"properties": {"s": {"$ref": "#/$defs/S"}}, "$defs": {"S": {"type": "object", "properties": {"next":
                {"$ref": "#/$defs/S"}}}}}),
            json!({"properties": {"a": {"x-note": null, "examples": [1, null], "maximum": 1e3, "pattern": "^[\\w/]{2,}$"}}}),
        ] {
            assert_eq!(mend(schema.clone()), None, "{schema}");
        }
    }

    #[test]
    fn what_is_wrong_is_mended_at_every_depth() {
        let inside = |property: Value| json!({"type": "object", "properties": {"a": property}});
        for (wrong, right) in [
            (json!({"$ref": "#/$defs/Gone"}), json!({})),
            (json!({"$ref": "https://example.com/s.json", "description": "d"}), json!({"description": "d"})),
            (json!({"$ref": "#/properties/a"}), json!({})),
            (json!({"$ref": 7}), json!({})),
            (Value::Null, json!({})),
            (json!("string"), json!({"type": "string"})),
            (json!("what to do"), json!({"description": "what to do"})),
            (json!(7), json!({})),
            (json!(["a", "b"]), json!({"enum": ["a", "b"]})),
            (json!(true), json!({})),
            (json!(false), json!({"not": {}})),
            (json!({"type": "str"}), json!({"type": "string"})),
            (json!({"type": "STRING"}), json!({"type": "string"})),
            (json!({"type": "uuid", "description": "x"}), json!({"description": "x"})),
            (json!({"type": null}), json!({})),
            (json!({"type": ["int", "none", "x", "int"]}), json!({"type": ["integer", "null"]})),
            (json!({"type": []}), json!({})),
            (json!({"type": "array", "items": null}), json!({"type": "array", "items": {}})),
            (json!({"type": ["array", "null"]}), json!({"type": ["array", "null"], "items": {}})),
            (
                json!({"type": "array", "prefixItems": ["int"]}),
                json!({"type": "array", "prefixItems": [{"type": "integer"}], "items": {}}),
            ),
            (json!({"pattern": "(", "title": "t"}), json!({"title": "t"})),
            (
                json!({"patternProperties": {"[": {}, "^a": "int"}}),
                json!({"patternProperties": {"^a": {"type": "integer"}}}),
            ),
            (json!({"pattern": "^(?!a)"}), json!({})),
            (json!({"multipleOf": 0, "$id": "#x", "$anchor": "a", "$dynamicRef": "#a", "$schema": "x"}), json!({})),
            (
                json!({"dependencies": {"a": ["b", 1], "c": "int"}}),
                json!({"dependencies": {"a": ["b"], "c": {"type": "integer"}}}),
            ),
            (json!({"not": {"required": ["b"]}}), json!({"not": {"required": ["b"], "properties": {"b": {}}}})),
            (
                json!({"properties": {"b": {}}, "required": ["b", "c"]}),
                json!({"properties": {"b": {}, "c": {}}, "required": ["b", "c"]}),
            ),
            (json!({"items": ["string", {"type": "string"}]}), json!({"items": {"type": "string"}})),
            (
                json!({"items": ["string", "int"]}),
                json!({"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}),
            ),
            (json!({"items": ["string", null]}), json!({"items": {}})),
            (json!({"items": [{"type": "string"}]}), json!({"items": {"type": "string"}})),
            (json!({"properties": null, "required": null}), json!({})),
            (json!({"properties": []}), json!({})),
            (json!({"required": "b"}), json!({"required": ["b"], "properties": {"b": {}}})),
            (json!({"required": ["b", 7, "b"]}), json!({"required": ["b"], "properties": {"b": {}}})),
            (json!({"required": {"b": true}}), json!({})),
            (json!({"enum": []}), json!({})),
            (json!({"enum": "x"}), json!({"enum": ["x"]})),
            (json!({"enum": [1, 1, null]}), json!({"enum": [1, null]})),
            (json!({"enum": null}), json!({})),
            (json!({"anyOf": null, "oneOf": [], "allOf": {"type": "str"}}), json!({"allOf": [{"type": "string"}]})),
            (json!({"anyOf": [null, "string", true]}), json!({"anyOf": [{"type": "string"}, {}]})),
            (json!({"minLength": "3", "maxLength": -1, "minItems": 2.0}), json!({"minLength": 3, "minItems": 2})),
            (json!({"minimum": "0", "exclusiveMinimum": true}), json!({"exclusiveMinimum": 0})),
            (json!({"maximum": 9, "exclusiveMaximum": false, "exclusiveMinimum": true}), json!({"maximum": 9})),
            (json!({"description": null, "title": ["x"], "pattern": 5}), json!({})),
            (json!({"description": 5}), json!({"description": "5"})),
            (json!({"nullable": "true", "uniqueItems": "yes"}), json!({"nullable": true})),
            (json!({"additionalProperties": null}), json!({})),
            (json!({"additionalProperties": "string"}), json!({"additionalProperties": {"type": "string"}})),
            (
                json!({"properties": {"b": {"items": {"type": "list"}}}}),
                json!({"properties": {"b": {"items": {"type": "array", "items": {}}}}}),
            ),
            (
                json!({"const": null, "default": {"a": null}, "type": "any"}),
                json!({"const": null, "default": {"a": null}}),
            ),
        ] {
            assert_eq!(mend(inside(wrong.clone())), Some(inside(right)), "{wrong}");
        }
    }

    #[test]
    fn a_misplaced_required_moves_to_where_it_belongs() {
        for (wrong, right) in [
            (
                json!({"properties": {"coin": {"type": "string"}, "required": ["coin"]}}),
                json!({"properties": {"coin": {"type": "string"}}, "required": ["coin"]}),
            ),
            (
                json!({"required": ["b"], "properties": {"a": {"required": true}, "b": {"required": false}}}),
                json!({"required": ["b", "a"], "properties": {"a": {}, "b": {}}}),
            ),
            (
                json!({"required": ["a", "required"], "properties": {"a": {}, "required": ["a"]}}),
                json!({"required": ["a"], "properties": {"a": {}}}),
            ),
        ] {
            assert_eq!(mend(wrong.clone()), Some(right), "{wrong}");
        }
    }

    #[test]
    fn references_that_lead_nowhere_or_in_a_circle_are_left_out() {
        let circle = json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}});
        assert_eq!(mend(circle), Some(json!({"properties": {"a": {}}, "$defs": {"A": {}, "B": {}}})));
        let root = json!({"$ref": "#/$defs/Arguments", "$defs": {"Arguments": {"type": "object", "properties": {"a": {"type": "str"}}}}});
        let mended = mend(root).unwrap();
        assert_eq!(mended["properties"], json!({"a": {"type": "string"}}));
        assert!(mended.get("$ref").is_none(), "{mended}");
    }
}
