//! What the model asks for: the tool's description, and its arguments.

use hermes_notes::{Change, Operation, Target, thousands, threats};
use hermes_plugin::Error;
use hermes_plugin::tools::Tool;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::Config;
use crate::failure::failure;

/// The most changes of one call.
const MOST: usize = 64;

/// Where a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Notes(Target),
    /// The working state of this conversation.
    Session,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Notes(target) => target.name(),
            Self::Session => "session",
        }
    }
}

/// Checked arguments.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) place: Place,
    /// At least one.
    pub(crate) changes: Vec<Change>,
    pub(crate) is_batch: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Arguments {
    #[serde(flatten)]
    single: Operation,
    target: Option<String>,
    /// Null items are refused by their position, not as a whole.
    #[serde(default, deserialize_with = "items")]
    operations: Vec<Option<Operation>>,
}

fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Option<Operation>>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

pub(crate) fn tool(config: Config) -> Tool {
    let limit = |target| thousands(config.limit(target));
    let description = format!(
        "Keep notes beyond this conversation. Save without being asked what will matter again: who the user is and how they \
         like to work (target `user`, {} characters), and facts about the environment, conventions and lessons learned (target \
         `memory`, {} characters); both begin every later conversation. What happened, with names and numbers that someone may \
         ask for later: target `facts`, recalled when a message mentions it. Progress on the task at hand: target `session`; it \
         survives a summary of this conversation. Nothing that can be looked up. Short entries, one fact each. `replace` and \
         `remove` act on the whole entry that alone has old_text in it.",
        limit(Target::User),
        limit(Target::Memory),
    );
    let action = json!({ "type": "string", "enum": ["add", "replace", "remove"] });
    let content = json!({ "type": "string", "description": "The entry." });
    let text = json!({ "type": "string" });
    let parameters = json!({
        "type": "object",
        "properties": {
            "action": action,
            "target": { "type": "string", "enum": ["memory", "user", "facts", "session"] },
            "content": content,
            "old_text": text,
            "operations": {
                "type": "array",
                "description": "Several changes of a target, all or nothing.",
                "items": {
                    "type": "object",
                    "properties": { "action": action, "content": text, "old_text": text },
                    "required": ["action"],
                },
            },
        },
        "required": ["target"],
    });
    Tool::new("memory", description, parameters)
}

impl Request {
    pub(crate) fn read(arguments: Arguments) -> Result<Self, Error> {
        let place = match arguments.target.as_deref() {
            None => Place::Notes(Target::Memory),
            Some("session") => Place::Session,
            Some(name) => Place::Notes(Target::named(name).ok_or_else(|| {
                let error = format!("there is no target {name:?}: use memory, user, facts or session");
                failure("invalid-target", json!({ "error": error }))
            })?),
        };
        let is_batch = !arguments.operations.is_empty();
        let operations = match is_batch {
            true => arguments.operations,
            false => vec![Some(arguments.single)],
        };
        if operations.len() > MOST {
            let error = format!("one call has at most {MOST} operations; nothing was applied");
            return Err(failure("too-many-operations", json!({ "error": error })));
        }
        let mut changes = Vec::new();
        for (at, operation) in operations.iter().enumerate() {
            let refused = |code: &str, error: String| refusal(code, error, is_batch.then_some(at));
            let operation = operation.clone().unwrap_or_default();
            let Some(change) = operation.change() else {
                let error = format!("there is no action {:?}: use add, replace or remove", operation.action);
                return Err(refused("unknown-action", error));
            };
            let threats = threats(change.text());
            if !threats.is_empty() {
                let error = format!(
                    "the entry looks like an instruction to a model or hides text ({}); nothing was written. Describe the \
                     fact in plain words instead",
                    threats.join(", ")
                );
                return Err(refused("threat", error));
            }
            changes.push(change);
        }
        Ok(Self { place, changes, is_batch })
    }
}

/// A refusal before the document was read.
fn refusal(code: &str, error: String, failed_operation: Option<usize>) -> Error {
    let mut details: Value = json!({ "error": error });
    if let Some(at) = failed_operation {
        details["error"] = json!(format!("operation {}: {error}; no operation was applied", at + 1));
        details["failed_operation"] = json!(at + 1);
    }
    failure(code, details)
}
