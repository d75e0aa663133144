//! Recorded suites of cases, read where they lie: in a folder `shared` beside the repository, or where `HERMES_SHARED` says.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// None, and a line that says so, where the recordings are not there.
pub(crate) fn suite(name: &str) -> Option<Value> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("HERMES_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("vectors").join(name).with_extension("json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: there is no {}", path.display());
        return None;
    };
    let suite: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(suite["cases"].as_array().unwrap().len() as u64, suite["count"].as_u64().unwrap());
    Some(suite)
}
