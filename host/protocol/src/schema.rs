//! The JSON Schemas of commands and events, generated from the types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::{Accepted, Command, CommandError, Event, VERSION};

/// The schema of a command. Its definitions also describe the two replies, `Accepted` and `CommandError`.
pub fn command_schema() -> Value {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Replies {
        accepted: Accepted,
        refused: CommandError,
    }
    let mut schema = schema::<Command>("A command to a session of Hermes");
    let mut replies = schema_of::<Replies>();
    if let (Some(definitions), Some(further)) =
        (schema["$defs"].as_object_mut(), replies["$defs"].as_object_mut().map(std::mem::take))
    {
        definitions.extend(further);
    }
    schema
}

/// The schema of an event.
pub fn event_schema() -> Value {
    schema::<Event>("An event of a session of Hermes")
}

fn schema<T: JsonSchema>(title: &str) -> Value {
    let mut schema = schema_of::<T>();
    schema["title"] = json!(title);
    schema["$comment"] = json!(format!("version {VERSION} of the protocol"));
    schema
}

fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_published_schemas_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
        for (name, schema) in [("command", command_schema()), ("event", event_schema())] {
            let file = folder.join(format!("{name}.schema.json"));
            let current = format!("{schema:#}\n");
            if std::env::var_os("HERMES_WRITE_SCHEMA").is_some() {
                std::fs::write(&file, &current).unwrap();
            }
            let published = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(published == current, "run this test with HERMES_WRITE_SCHEMA=1 to write {}", file.display());
        }
    }

    /// What a session reads and what the schema allows are the same.
    #[test]
    fn the_schema_of_commands_agrees_with_the_reader() {
        let validator = jsonschema::validator_for(&command_schema()).unwrap();
        for (text, fits) in [
            (r#"{"command":"say","text":"hello"}"#, true),
            (r#"{"command":"say","text":"hello","author":{"id":"7","name":"Ann"},"thread":"t","reply_to":3}"#, true),
            (r#"{"command":"say","text":"","attached":[{"kind":"text","text":"more"}]}"#, true),
            (r#"{"command":"undo","turns":{"last":1}}"#, true),
            (r#"{"command":"undo","turns":{"from":4},"on_conflict":"skip"}"#, true),
            (r#"{"command":"decide","question":1,"decision":"once"}"#, true),
            (r#"{"command":"choose-mode","mode":"accept-edits"}"#, true),
            (r#"{"command":"choose-effort","effort":"xhigh"}"#, true),
            (r#"{"command":"stop"}"#, true),
            (r#"{"command":"say"}"#, false),
            (r#"{"command":"say","text":5}"#, false),
            (r#"{"command":"decide","question":1,"decision":"yes"}"#, false),
            (r#"{"command":"dance"}"#, false),
            (r#"{"text":"hello"}"#, false),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(validator.is_valid(&value), fits, "the schema of {text}");
            assert_eq!(serde_json::from_str::<Command>(text).is_ok(), fits, "the reader of {text}");
        }
    }
}
