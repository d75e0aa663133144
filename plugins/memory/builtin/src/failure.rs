//! Errors for the model.

use hermes_plugin::Error;
use serde_json::{Value, json};

/// An error whose message has the same JSON format as a success.
pub(crate) fn failure(code: &str, mut details: Value) -> Error {
    details["success"] = json!(false);
    Error::invalid(details.to_string()).with_code(code)
}
