//! Recorded suites of test cases.

use serde_json::Value;

/// The suite of this name; `None` if the recordings are missing.
pub(crate) fn suite(name: &str) -> Option<Value> {
    let path = hermes_test_data::recorded(&format!("vectors/{name}.json"))?;
    let text = std::fs::read_to_string(path).unwrap();
    let suite: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(suite["cases"].as_array().unwrap().len() as u64, suite["count"].as_u64().unwrap());
    Some(suite)
}
