//! The root of a schema of parameters. APIs take an object there, and neither a reference nor a choice between schemas: what the choices
//! describe is described by the root, and which of them holds stays with the tool to check.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Keywords that APIs refuse at the root, whatever their value.
const REFUSED: &[&str] = &["not", "enum", "const"];
/// Keywords with schemas that must all hold, and keywords with schemas one of which must hold.
const ALL: &[&str] = &["allOf"];
const ONE: &[&str] = &["anyOf", "oneOf"];
/// References that are followed in a row.
const MOST_REFERENCES: usize = 16;
/// Schemas that are joined. References can name more than anybody can read.
const MOST_SCHEMAS: usize = 256;

/// What a local reference leads to.
pub(super) fn found<'r>(root: &'r Value, reference: &str) -> Option<&'r Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(pointer).filter(|target| target.is_object())
}

/// The root without what is refused there, or as it is.
pub(super) fn joined(written: &Map<String, Value>) -> Map<String, Value> {
    let whole = Value::Object(written.clone());
    let mut left = MOST_SCHEMAS;
    let mut root = joined_within(inlined(written, &whole), &whole, &mut left);
    root.retain(|keyword, _| !REFUSED.contains(&keyword.as_str()));
    root
}

/// The schema with its reference replaced by the definition.
fn inlined(written: &Map<String, Value>, whole: &Value) -> Map<String, Value> {
    let mut inlined = written.clone();
    for _ in 0..MOST_REFERENCES {
        let Some(Value::String(reference)) = inlined.get("$ref") else { break };
        let Some(Value::Object(target)) = found(whole, reference).cloned() else { break };
        inlined.shift_remove("$ref");
        for (key, value) in target {
            inlined.entry(key).or_insert(value);
        }
    }
    inlined
}

fn joined_within(mut schema: Map<String, Value>, whole: &Value, left: &mut usize) -> Map<String, Value> {
    for (keywords, all) in [(ALL, true), (ONE, false)] {
        for keyword in keywords {
            let Some(choices) = schema.shift_remove(*keyword) else { continue };
            let choices = match choices {
                Value::Array(choices) => choices,
                one => vec![one],
            };
            let mut schemas = Vec::new();
            for choice in choices.iter().filter_map(Value::as_object) {
                if *left > 0 {
                    *left -= 1;
                    schemas.push(joined_within(inlined(choice, whole), whole, left));
                }
            }
            join(&mut schema, &schemas, all);
        }
    }
    schema
}

/// Adds the properties of these schemas to one that does not describe them itself, and what all of them, or any of them, requires.
pub(super) fn join(schema: &mut Map<String, Value>, schemas: &[Map<String, Value>], all: bool) {
    let described = |schema: &Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned();
    let own = described(schema).unwrap_or_default();
    let mut added: Map<String, Value> = Map::new();
    for (name, property) in schemas.iter().filter_map(described).flatten() {
        if own.contains_key(&name) {
            continue;
        }
        let Some(known) = added.get_mut(&name) else {
            added.insert(name, property);
            continue;
        };
        if *known == property {
            continue;
        }
        // The choice moves to where it is allowed.
        match known.get_mut(CHOICE).and_then(Value::as_array_mut) {
            Some(choices) if choices.contains(&property) => {}
            Some(choices) => choices.push(property),
            None => *known = json!({CHOICE: [known.clone(), property]}),
        }
    }
    if !added.is_empty() {
        let mut properties = own;
        properties.extend(added);
        schema.insert("properties".to_owned(), properties.into());
    }
    let list =
        |schema: &Map<String, Value>| schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut required = list(schema);
    let lists: Vec<Vec<Value>> = schemas.iter().map(list).collect();
    let sets: Vec<HashSet<&Value>> = lists.iter().map(|list| list.iter().collect()).collect();
    let mut seen: HashSet<Value> = required.iter().cloned().collect();
    for name in lists.iter().flatten() {
        if (all || sets.iter().all(|set| set.contains(name))) && seen.insert(name.clone()) {
            required.push(name.clone());
        }
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
}

/// The keyword for a choice that this module makes. A property that already is such a choice is extended.
const CHOICE: &str = "anyOf";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn choices_at_the_root_become_its_properties() {
        let one =
            |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}, "required": [name]});
        for (written, root) in [
            (json!({"not": {}, "enum": [{}], "const": {}, "description": "d"}), json!({"description": "d"})),
            (
                json!({"oneOf": [one("a", json!({"type": "string"})), one("b", json!({}))]}),
                json!({"properties": {"a": {"type": "string"}, "b": {}}}),
            ),
            (
                json!({"properties": {"a": {}}, "allOf": [one("a", json!({"type": "string"})), {"required": ["c"]}]}),
                json!({"properties": {"a": {}}, "required": ["a", "c"]}),
            ),
            (
                json!({"anyOf": [one("kind", json!({"const": 1})), one("kind", json!({"const": 2})), one("kind", json!({"const": 1}))]}),
                json!({"properties": {"kind": {"anyOf": [{"const": 1}, {"const": 2}]}}, "required": ["kind"]}),
            ),
            (
                json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"anyOf": [{"$ref": "#/$defs/C"}]},
                    "C": one("c", json!({}))}}),
                json!({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"anyOf": [{"$ref": "#/$defs/C"}]}, "C": one("c", json!({}))},
                    "properties": {"c": {}}, "required": ["c"]}),
            ),
            (json!({"anyOf": null, "oneOf": 7, "allOf": [null, "x", []]}), json!({})),
        ] {
            assert_eq!(Value::Object(joined(written.as_object().unwrap())), root, "{written}");
        }
    }

    #[test]
    fn many_required_names_are_joined_in_their_order() {
        // In quadratic time, so many names would take minutes.
        let names: Vec<String> = (0..60_000).map(|at| format!("n{at}")).collect();
        for (keyword, schemas, expected) in [
            ("oneOf", json!([{"required": names}]), &names[..]),
            ("allOf", json!([{"required": names}, {"required": names}]), &names[..]),
            ("anyOf", json!([{"required": names}, {"required": ["n1", "n0", "x"]}]), &names[..2]),
        ] {
            assert_eq!(
                joined(json!({ keyword: schemas }).as_object().unwrap())["required"],
                json!(expected),
                "{keyword}"
            );
        }
    }

    #[test]
    fn schemas_that_refer_to_each_other_without_end_are_joined_to_a_bound() {
        let two = |name: &str| json!({"allOf": [{"$ref": name}, {"$ref": name}]});
        let defined: Map<String, Value> =
            (0..64).map(|at| (format!("s{at}"), two(&format!("#/$defs/s{}", (at + 1) % 64)))).collect();
        let root = joined(json!({"$ref": "#/$defs/s0", "$defs": defined}).as_object().unwrap());
        assert!(!root.contains_key("allOf") && !root.contains_key("$ref"));
    }
}
