//! The tool `todo`: the model's list of tasks.
//!
//! The list has no store of its own: it is the newest result of the tool in the conversation. So a resumed session, a branch and a
//! rewound conversation each have the list that belongs to them. The result also carries a reminder with the unfinished tasks,
//! which the host shows when a compaction has hidden the result.

mod list;

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Instance, MessageRange, NoConfig, Part, Setup, Tools, history};
use serde_json::{Map, Value, json};

use crate::list::List;

const NAME: &str = "todo";

struct Todo;

impl Instance for Todo {
    type Config = NoConfig;

    fn new(_: Setup<NoConfig>) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Tools for Todo {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let item = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "content": { "type": "string" },
                "status": { "type": "string", "enum": list::STATUSES },
            },
            "required": ["id", "content", "status"],
        });
        let parameters = json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "items": item,
                    "description": "The most important first. Leave it out to read the list.",
                },
                "merge": {
                    "type": "boolean",
                    "description": "true: change the tasks with these ids and append new ones. Else the list is replaced.",
                },
            },
        });
        let description = "Your list of tasks in this conversation. Use it for work of three steps or more, and when the user \
                           asks for several things. Keep one task in_progress, and complete it as soon as it is done. Cancel \
                           what fails, and add the task that replaces it. The answer is the whole list. Unfinished tasks stay \
                           in view when older messages are summarised.";
        // The answer is the only thing that a call changes. It runs alone because it depends on the answer before.
        Ok(vec![Tool::new(NAME, description, parameters).title("List of tasks").effect(Effect::Reads)])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        if invocation.name != NAME {
            return Err(invocation.unknown());
        }
        let arguments: Map<String, Value> = invocation.parse()?;
        let merge = match arguments.get("merge") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(merge)) => *merge,
            Some(Value::String(text)) if text == "true" => true,
            Some(Value::String(text)) if text == "false" => false,
            Some(other) => return Err(Error::invalid(format!("merge is true or false, not {other}"))),
        };
        let list = match arguments.get("todos") {
            None | Some(Value::Null) => stored()?,
            Some(todos) => {
                let todos = list::items(todos).map_err(Error::invalid)?;
                let mut list = if merge { stored()? } else { List::default() };
                list.merge(&todos);
                list
            }
        };
        // Without text, the model reads the JSON.
        let output = Output { content: Vec::new(), ..Output::text("") };
        Ok(output.structured(list.answer()).reminder(list.reminder()))
    }
}

hermes_plugin::export!(Todo: Tools);

/// The list in the newest result of the tool; an empty one if there is none.
fn stored() -> Result<List, Error> {
    let Some(whole) = history::whole()? else { return Ok(List::default()) };
    let headers = history::headers(whole)?;
    for header in headers.iter().rev().filter(|header| header.tool_name.as_deref() == Some(NAME)) {
        let messages = history::parts(MessageRange::new(header.id, header.id))?.messages;
        let answers = messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolResult(result) if !result.failed => result.structured.as_deref(),
            _ => None,
        });
        if let Some(list) = answers.filter_map(List::of_answer).next() {
            return Ok(list);
        }
    }
    Ok(List::default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::{Message, Role, ToolResultPart, testing};

    use super::*;

    fn call(todo: &mut Todo, arguments: Value) -> Output {
        todo.call(&Invocation::new(NAME, arguments)).unwrap()
    }

    fn contents(output: &Output) -> Vec<String> {
        let answer: Value = serde_json::from_str(output.structured.as_ref().unwrap()).unwrap();
        let item = |item: &Value| format!("{} {} {}", item["id"], item["content"], item["status"]).replace('"', "");
        answer["todos"].as_array().unwrap().iter().map(item).collect()
    }

    /// A message with a result of a tool.
    fn result(id: u64, tool: &str) -> Message {
        Message { tool_name: Some(tool.to_owned()), ..Message::new(id, Role::Tool, "") }
    }

    fn part(structured: Option<&str>, failed: bool) -> [Part; 1] {
        [Part::ToolResult(ToolResultPart {
            call_id: "c".to_owned(),
            parts: Vec::new(),
            failed,
            structured: structured.map(str::to_owned),
            extra: Vec::new(),
        })]
    }

    #[test]
    fn the_list_is_the_newest_valid_result_of_the_conversation() {
        let host = testing::Host::new();
        let mut todo: Todo = host.start(json!({})).unwrap();
        assert_eq!(contents(&call(&mut todo, json!({}))), [""; 0]);
        let task = |content: &str| json!({ "todos": [{ "id": "1", "content": content, "status": "pending" }] });
        let (old, new) = (call(&mut todo, task("old")), call(&mut todo, task("new")));
        let _host = host
            .messages([Message::new(1, Role::User, "go")])
            .messages([(2, NAME), (3, NAME), (4, NAME), (5, NAME), (6, "other")].map(|(id, tool)| result(id, tool)))
            .parts(2, part(old.structured.as_deref(), false))
            .parts(3, part(new.structured.as_deref(), false))
            .parts(4, part(Some("{\"todos\": 7}"), false))
            .parts(5, part(old.structured.as_deref(), true))
            .parts(6, part(old.structured.as_deref(), false));
        assert_eq!(contents(&call(&mut todo, json!({}))), ["1 new pending"]);
        let merged = json!({ "merge": true, "todos": [{ "id": "1", "status": "completed" }, { "content": "more" }] });
        assert_eq!(contents(&call(&mut todo, merged)), ["1 new completed", "2 more pending"]);
        assert_eq!(contents(&call(&mut todo, task("replaced"))), ["1 replaced pending"]);
    }

    #[test]
    fn the_reminder_has_the_unfinished_tasks_only() {
        let mut todo: Todo = testing::Host::new().start(json!({})).unwrap();
        let reminder = |output: &Output| output.extra.iter().find(|(key, _)| key == "reminder").unwrap().1.clone();
        let todos = json!([
            { "id": "a", "content": "plan", "status": "completed" },
            { "id": "b", "content": "paint", "status": "in_progress" },
            { "id": "c", "content": "dry", "status": "pending" },
            { "id": "d", "content": "wait", "status": "cancelled" },
        ]);
        let output = call(&mut todo, json!({ "todos": todos }));
        assert_eq!(reminder(&output), "Unfinished tasks:\n- [>] b. paint (in_progress)\n- [ ] c. dry (pending)");
        assert_eq!(output.content, [], "the model reads the JSON");
        assert_eq!(reminder(&call(&mut todo, json!({ "todos": [] }))), "");
    }

    #[test]
    fn the_tool_runs_alone_and_wrong_arguments_are_explained() {
        let mut todo: Todo = testing::Host::new().start(json!({})).unwrap();
        let tool = &todo.catalog().unwrap()[0];
        assert_eq!(
            (tool.effect, tool.parallel, tool.idempotent, tool.toolset.as_str()),
            (Effect::Reads, false, false, NAME)
        );
        for (arguments, why) in [
            (json!({ "todos": 7 }), "todos is a list of objects, not 7"),
            (json!({ "todos": "[{" }), "todos is a list of objects, but this text is not JSON"),
            (json!({ "todos": [7] }), "each task is an object with id, content and status, not 7"),
            (json!({ "todos": [], "merge": "perhaps" }), "merge is true or false"),
        ] {
            let error = todo.call(&Invocation::new(NAME, arguments)).unwrap_err();
            assert!(error.message.contains(why), "{error}");
        }
    }
}
