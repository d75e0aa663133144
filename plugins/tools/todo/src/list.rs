//! The list of tasks: how a call changes it, and what the model reads of it.

use std::collections::HashSet;

use serde_json::{Value, json};

/// The statuses, in the order of a summary.
pub(crate) const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "cancelled"];
/// The most tasks of a list. Later ones are dropped: the first are the most important.
const MOST: usize = 256;
/// The most characters of a task.
const LONGEST: usize = 4_000;
const CUT: &str = "… [shortened]";
const UNDESCRIBED: &str = "(no description)";

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    id: String,
    content: String,
    /// One of [`STATUSES`].
    status: &'static str,
}

/// A task as a call gives it. What is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Given {
    id: Option<String>,
    content: Option<String>,
    status: Option<&'static str>,
}

/// The tasks, the most important first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct List(Vec<Task>);

/// Reads the tasks of a call, which some models write as a text with JSON.
pub(crate) fn items(todos: &Value) -> Result<Vec<Given>, String> {
    let parsed;
    let todos = match todos {
        Value::String(text) => {
            parsed = serde_json::from_str(text)
                .map_err(|error| format!("todos is a list of objects, but this text is not JSON: {error}"))?;
            &parsed
        }
        todos => todos,
    };
    let Value::Array(todos) = todos else { return Err(format!("todos is a list of objects, not {todos}")) };
    todos.iter().map(Given::of).collect()
}

impl Given {
    fn of(item: &Value) -> Result<Self, String> {
        match item {
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(text).filter(|text| !text.is_empty());
                let status = text("status").map(|status| status.to_lowercase());
                Ok(Self {
                    id: text("id"),
                    content: text("content").map(shortened),
                    status: status.and_then(|status| STATUSES.into_iter().find(|known| *known == status)),
                })
            }
            Value::String(content) => {
                Ok(Self { content: Some(shortened(content.trim().to_owned())), ..Self::default() })
            }
            other => Err(format!("each task is an object with id, content and status, not {other}")),
        }
    }
}

/// A text, also one that a model wrote as a number.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn shortened(content: String) -> String {
    if content.chars().count() <= LONGEST {
        return content;
    }
    let kept = LONGEST - CUT.chars().count();
    content.chars().take(kept).chain(CUT.chars()).collect()
}

impl List {
    /// Changes the tasks with known ids and appends the others. A task without an id gets a free number.
    pub(crate) fn merge(&mut self, given: &[Given]) {
        // Of several tasks with one id, the last counts, and has its place.
        let mut named = HashSet::new();
        let mut last: Vec<&Given> =
            given.iter().rev().filter(|given| given.id.as_ref().is_none_or(|id| named.insert(id))).collect();
        last.reverse();
        let mut next = 1_u64;
        for Given { id, content, status } in last {
            let known = self.0.iter_mut().find(|task| Some(&task.id) == id.as_ref());
            if let Some(task) = known {
                content.iter().for_each(|content| task.content.clone_from(content));
                status.iter().for_each(|status| task.status = status);
                continue;
            }
            let id = id.clone().unwrap_or_else(|| {
                let is_taken = |id: &String| named.contains(id) || self.0.iter().any(|task| task.id == *id);
                while is_taken(&next.to_string()) {
                    next += 1;
                }
                next.to_string()
            });
            let content = content.clone().unwrap_or_else(|| UNDESCRIBED.to_owned());
            self.0.push(Task { id, content, status: status.unwrap_or(STATUSES[0]) });
        }
        self.0.truncate(MOST);
    }

    /// The list that an earlier answer contains. The answer may come from an imported conversation, so it is read like a call.
    pub(crate) fn of_answer(answer: &str) -> Option<Self> {
        let answer: Value = serde_json::from_str(answer).ok()?;
        let given = items(answer.get("todos")?).ok()?;
        let mut list = Self::default();
        list.merge(&given);
        Some(list)
    }

    /// The answer to a call, in JSON.
    pub(crate) fn answer(&self) -> Value {
        let todo = |Task { id, content, status }: &Task| json!({ "id": id, "content": content, "status": status });
        let todos: Vec<Value> = self.0.iter().map(todo).collect();
        let mut summary = json!({ "total": todos.len() });
        for status in STATUSES {
            summary[status] = self.0.iter().filter(|task| task.status == status).count().into();
        }
        json!({ "todos": todos, "summary": summary })
    }

    /// The unfinished tasks; empty if there are none. Finished ones are left out, so that no model does them again.
    pub(crate) fn reminder(&self) -> String {
        let line = |task: &Task| {
            let mark = match task.status {
                "in_progress" => ">",
                "pending" => " ",
                _ => return None,
            };
            Some(format!("\n- [{mark}] {}. {} ({})", task.id, task.content, task.status))
        };
        let lines: String = self.0.iter().filter_map(line).collect();
        if lines.is_empty() { lines } else { format!("Unfinished tasks:{lines}") }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn list(calls: &[Value]) -> List {
        let mut list = List::default();
        calls.iter().for_each(|call| list.merge(&items(call).unwrap()));
        list
    }

    fn lines(list: &List) -> Vec<String> {
        list.0.iter().map(|task| format!("{}. {} {}", task.id, task.content, task.status)).collect()
    }

    #[test]
    fn tasks_are_read_as_models_write_them() {
        let written = json!([
            { "id": 7, "content": "  number as id ", "status": "IN_PROGRESS" },
            { "id": " ", "content": "no id", "status": "later" },
            "only a text",
            { "id": "1", "content": "", "status": null },
        ]);
        let expected = [
            "7. number as id in_progress",
            "2. no id pending",
            "3. only a text pending",
            "1. (no description) pending",
        ];
        assert_eq!(lines(&list(std::slice::from_ref(&written))), expected);
        assert_eq!(lines(&list(&[written.to_string().into()])), expected);
    }

    #[test]
    fn of_tasks_with_one_id_the_last_counts_in_its_place() {
        let written = json!([
            { "id": "a", "content": "first" },
            { "id": "b", "content": "second" },
            { "id": "a", "content": "third", "status": "completed" },
        ]);
        assert_eq!(lines(&list(&[written])), ["b. second pending", "a. third completed"]);
    }

    #[test]
    fn a_merge_changes_only_what_it_names() {
        let before = json!([{ "id": "a", "content": "first" }, { "id": "b", "content": "second" }]);
        let change = json!([
            { "id": "c", "content": "new", "status": "unknown" },
            { "id": "b", "status": "completed" },
            { "id": "a", "content": "changed", "status": "unknown" },
        ]);
        assert_eq!(lines(&list(&[before, change])), ["a. changed pending", "b. second completed", "c. new pending"]);
    }

    #[test]
    fn long_tasks_and_long_lists_are_shortened() {
        let many: Vec<Value> = (0..300).map(|id| json!({ "id": id, "content": "é".repeat(5_000) })).collect();
        let list = list(&[many.into()]);
        assert_eq!((list.0.len(), list.0[255].id.as_str()), (256, "255"));
        assert_eq!(list.0[0].content.chars().count(), 4_000);
        assert!(list.0[0].content.ends_with("é… [shortened]"));
    }

    #[test]
    fn an_answer_is_the_list_again() {
        let list = list(&[json!([
            { "id": "a", "content": "first", "status": "completed" },
            { "id": "b", "content": "second" },
            { "id": "c", "content": "third" },
        ])]);
        let answer = list.answer();
        assert_eq!(List::of_answer(&answer.to_string()), Some(list));
        let expected = json!({ "total": 3, "pending": 2, "in_progress": 0, "completed": 1, "cancelled": 0 });
        assert_eq!(answer["summary"], expected);
        for wrong in ["", "{}", "[]", "{\"todos\": {}}", "{\"todos\": [[]]}"] {
            assert_eq!(List::of_answer(wrong), None, "{wrong}");
        }
    }
}
