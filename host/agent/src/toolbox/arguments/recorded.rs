//! Recorded cases of arguments whose types do not fit (tests/evidence/vectors.md).

use serde_json::{Value, json};

use super::fitting;

/// Cases that come out otherwise here: a value whose meaning is not plain stays as the model wrote it, and the tool says what is wrong.
const DIFFERING: &[(&str, &str)] = &[
    // A text is not put into a list.
    ("array/broken-json", r#""[\"a\",""#),
    ("array/json-object", r#""{\"a\":1}""#),
    ("array/empty-string", r#""""#),
    // Items are read by their schema too.
    ("array/json-with-json-items", r#"[{"id":1}]"#),
    // A number where only a text fits is the text.
    ("string/number-kept", r#""5""#),
    // A text that fits one of the types stays.
    ("union/string-first", r#""42""#),
    ("nullable/flag", r#""NULL""#),
];

/// The value that a tool gets.
fn given(schema: &Value, value: &Value) -> Value {
    let parameters = json!({"type": "object", "properties": {"v": schema}}).to_string();
    let written = json!({ "v": value }).to_string();
    let read: Value = serde_json::from_str(&fitting(&written, &parameters).unwrap_or(written)).unwrap();
    read["v"].clone()
}

#[test]
fn tool_args_coerce() {
    let Some(path) = hermes_test_data::recorded("vectors/tool_args_coerce.json") else { return };
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut failures = Vec::new();
    let mut seen = 0;
    for case in recorded["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let ours = given(&case["input"]["schema"], &case["input"]["value"]);
        let differing = DIFFERING.iter().find(|(case, _)| *case == name);
        seen += usize::from(differing.is_some());
        let wanted = differing
            .map_or_else(|| case["expected"]["value"].clone(), |(_, ours)| serde_json::from_str(ours).unwrap());
        if ours != wanted {
            failures.push(format!("{name}: ours {ours}, wanted {wanted}"));
        }
        if differing.is_some() && ours == case["expected"]["value"] {
            failures.push(format!("{name} is listed as differing and does not differ"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(seen, DIFFERING.len(), "a listed case is not recorded");
}
