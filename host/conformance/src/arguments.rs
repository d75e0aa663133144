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

/// Arguments that fit: the usual ones, those with the required properties only, and one for each further example.
pub(crate) fn ordinary(schema: &Value) -> Vec<String> {
    let fitted = valid(schema);
    let mut all = vec![fitted.to_string()];
    let Some(usual) = fitted.as_object() else { return all };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let only: Map<String, Value> = usual
        .iter()
        .filter(|(name, _)| required.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // Without any property that is required, an empty object is rarely what a model would write.
    if !only.is_empty() {
        all.push(Value::Object(only).to_string());
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let property = resolved(property, schema);
        let further = |key: &str| property.get(key).and_then(Value::as_array).into_iter().flatten().skip(1);
        for value in further("examples").chain(further("enum")).take(EXAMPLES) {
            let mut arguments = usual.clone();
            arguments.insert(name.clone(), value.clone());
            all.push(Value::Object(arguments).to_string());
        }
    }
    let whole = schema.get("examples").and_then(Value::as_array).into_iter().flatten().skip(1).take(EXAMPLES);
    all.extend(whole.map(Value::to_string));
    all.dedup();
    all
}

/// How many further examples of a property are tried.
const EXAMPLES: usize = 3;
/// The largest text that is tried.
const LARGEST: usize = 8 << 20;

/// JSON texts of values that are awkward for code which confuses bytes, UTF-16 and characters, or numbers and floating point. All of them are
/// valid JSON.
fn awkward_values() -> Vec<String> {
    let mut values: Vec<String> =
        // Halves of a pair of surrogates, alone and in the wrong order.
        ["\"\\ud83d\"", "\"\\ude00\"", "\"lamp \\ud83d lit\"", "\"\\ude00\\ud83d\"", "\"\\u0000\""].map(str::to_owned).to_vec();
    // Each cut of a text at a number of bytes or of UTF-16 units lies within a character of one of these.
    for character in ['é', '語', '😀'] {
        for shift in 0..character.len_utf8() {
            for length in [20, 20_000] {
                values.push(json!("a".repeat(shift) + &character.to_string().repeat(length)).to_string());
            }
        }
    }
    values.extend(
        ["9007199254740993", "-9223372036854775808", "18446744073709551616", "1e400", "-0.0", "1e-400"]
            .map(str::to_owned),
    );
    values
}

/// Arguments with awkward values for each property. `most` is the largest input of a call in bytes.
pub(crate) fn awkward_arguments(schema: &Value, most: usize) -> Vec<String> {
    let fitted = valid(schema).as_object().cloned().unwrap_or_default();
    let mut all = vec![
        r#"{"\ud83d": 1, "no such argument": "\ude00"}"#.to_owned(),
        // As deep as the host passes on.
        format!("{}1{}", "[".repeat(DEEP), "]".repeat(DEEP)),
        format!("{}1{}", "{\"a\":".repeat(DEEP), "}".repeat(DEEP)),
    ];
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        // The JSON text of the other properties, without the closing brace.
        let others: Map<String, Value> = fitted
            .iter()
            .filter(|(other, _)| *other != name)
            .map(|(other, value)| (other.clone(), value.clone()))
            .collect();
        let others = Value::Object(others).to_string();
        let begin = others.strip_suffix('}').unwrap_or("{");
        let comma = if begin.len() > 1 { "," } else { "" };
        let with = |value: &str| format!("{begin}{comma}{}:{value}}}", json!(name));
        let is_text = matches!(type_of(resolved(property, schema)), "string" | "array");
        all.extend(awkward_values().iter().map(|value| with(value)));
        // The property twice.
        if let Some(usual) = fitted.get(name) {
            all.push(with(&format!("{usual},{}:null", json!(name))));
        }
        if is_text {
            let room = most.saturating_sub(with("").len() + INPUT_AROUND);
            all.push(with(&json!("a".repeat(LARGEST.min(room))).to_string()));
        }
    }
    all
}

/// Levels of nesting. The host refuses arguments that are nested deeper than 128 levels, and the parsers of languages overflow their stacks at
/// some thousands, before any code of the author runs.
const DEEP: usize = 120;
/// Bytes of a call's input around the arguments: the name of the tool and the id.
const INPUT_AROUND: usize = 1 << 10;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_arguments_are_the_usual_ones_the_required_ones_and_further_examples() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "examples": ["lamp", "two lamps"] },
                "unit": { "enum": ["lines", "words"] },
            },
            "required": ["text"],
        });
        let expected = [
            r#"{"text":"lamp","unit":"lines"}"#,
            r#"{"text":"lamp"}"#,
            r#"{"text":"two lamps","unit":"lines"}"#,
            r#"{"text":"lamp","unit":"words"}"#,
        ];
        assert_eq!(ordinary(&schema), expected);
        assert_eq!(ordinary(&json!({ "type": "object", "properties": {} })), ["{}"]);
    }

    /// A byte that lies within a character, for every place at which code could cut.
    #[test]
    fn every_cut_lies_within_a_character_of_an_awkward_text() {
        let schema =
            json!({ "type": "object", "properties": { "text": { "type": "string" }, "n": { "type": "integer" } } });
        let all = awkward_arguments(&schema, 1 << 20);
        let texts: Vec<String> = all
            .iter()
            .filter_map(|arguments| {
                serde_json::from_str::<Value>(arguments).ok()?.get("text")?.as_str().map(str::to_owned)
            })
            .collect();
        // Every place in a short text, and some in a long one.
        for cut in (1..=60).chain([255, 256, 1_023, 1_024, 4_095, 4_096, 9_999]) {
            assert!(texts.iter().any(|text| text.len() > cut && !text.is_char_boundary(cut)), "{cut}");
            // In UTF-16 a cut halves a pair.
            let halves =
                |text: &String| text.encode_utf16().nth(cut).is_some_and(|unit| (0xdc00..0xe000).contains(&unit));
            assert!(cut > 20 || texts.iter().any(halves), "{cut}");
        }
        assert!(all.iter().any(|arguments| arguments.contains(r#""text":"\ud83d""#)));
        assert!(all.iter().any(|arguments| arguments.contains(r#""n":9007199254740993}"#)));
        let largest = all.iter().map(String::len).max().unwrap();
        assert!(((1 << 20) - 2_000..=1 << 20).contains(&largest), "{largest}");
    }

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
