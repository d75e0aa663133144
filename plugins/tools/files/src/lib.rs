//! The tools `read_file`, `write_file`, `patch` and `search_files`, in the folder where the session began.
//!
//! The host restricts every path to that folder. This plugin adapts the output to models: numbered lines in pages, answers
//! that say how to continue, pictures, and errors that suggest an alternative.

mod patch;
mod path;
mod picture;
mod read;
mod search;
mod text;
mod write;

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Plugin, Tools};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// The root that this plugin requests in its manifest.
const ROOT: &str = "workspace";
/// The root with the session's results that are too long for the model; it is read only.
const RESULTS: &str = "results";

struct Files;

impl Plugin for Files {
    fn configure(_config: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Tools for Files {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        Ok(vec![
            reader("read_file", &read::description(), read::parameters()),
            tool("write_file", write::DESCRIPTION, write::parameters()).effect(Effect::Writes),
            tool("patch", patch::DESCRIPTION, patch::parameters()).effect(Effect::Writes),
            reader("search_files", search::DESCRIPTION, search::parameters()),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        match invocation.name.as_str() {
            "read_file" => read::run(&invocation.parse()?),
            "write_file" => write::run(&invocation.parse()?).map(Output::text),
            "patch" => patch::run(&invocation.parse()?).map(Output::text),
            "search_files" => search::run(&invocation.parse()?).map(Output::text),
            _ => Err(invocation.unknown()),
        }
    }
}

hermes_plugin::export!(Files: Tools);

fn tool(name: &str, description: &str, parameters: Value) -> Tool {
    Tool::new(name, description, parameters).toolset("file")
}

fn reader(name: &str, description: &str, parameters: Value) -> Tool {
    tool(name, description, parameters).effect(Effect::Reads).parallel(true).idempotent(true)
}

fn parameters(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Accepts a number as models write it: also as a string, as a float without fraction, or as null.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.map(Some).ok_or_else(|| serde::de::Error::custom(format!("{value} is not a number from 0")))
}

fn whole(number: f64) -> Option<u64> {
    // Well below the range where floats lose integer precision.
    (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_accepted_as_models_write_them() {
        let read = |value: Value| number(value).ok();
        assert_eq!(read(json!(7)), Some(Some(7)));
        assert_eq!(read(json!("7")), Some(Some(7)));
        assert_eq!(read(json!(7.0)), Some(Some(7)));
        assert_eq!(read(json!(null)), Some(None));
        for wrong in [json!(-1), json!(7.5), json!("many"), json!([7])] {
            assert_eq!(read(wrong), None);
        }
    }

    #[test]
    fn tools_that_write_have_effects_and_run_alone_each_time() {
        let catalog = Files.catalog().unwrap();
        let traits: Vec<_> = catalog
            .iter()
            .map(|tool| (tool.schema.name.as_str(), tool.effect, tool.parallel, tool.idempotent))
            .collect();
        assert_eq!(
            traits,
            [
                ("read_file", Effect::Reads, true, true),
                ("write_file", Effect::Writes, false, false),
                ("patch", Effect::Writes, false, false),
                ("search_files", Effect::Reads, true, true),
            ]
        );
    }
}
