//! The arguments of a call, as models write them.

use serde_json::Value;

use super::DelegationSettings;

/// The most tasks of one call.
pub(super) const MOST_TASKS: usize = 20;

/// What a call wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) tasks: Vec<Task>,
    /// Names of tools and toolsets; `None` for all of the parent.
    pub(super) toolsets: Option<Vec<String>>,
    pub(super) max_iterations: u32,
    pub(super) model: Option<String>,
    /// Whether the parent does not wait for the results.
    pub(super) background: bool,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) goal: String,
    pub(super) context: Option<String>,
}

impl Wanted {
    /// Reads the arguments, a JSON object.
    ///
    /// # Errors
    ///
    /// The text for the model.
    pub(super) fn read(arguments: &str, settings: &DelegationSettings) -> Result<Self, String> {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let tasks =
            match listed(&arguments["tasks"]).ok_or("nothing was delegated: `tasks` must be a list of objects")? {
                tasks if tasks.is_empty() => vec![Task::read(&arguments, "`goal`")?],
                _ if words(&arguments["goal"]).is_some() => {
                    return Err("nothing was delegated: give either `goal` or `tasks`".to_owned());
                }
                tasks => {
                    let read = |(number, task)| Task::read(task, &format!("`goal` of task {number}"));
                    (1..).zip(&tasks).map(read).collect::<Result<_, _>>()?
                }
            };
        if tasks.len() > MOST_TASKS {
            return Err(format!(
                "nothing was delegated: {} tasks are more than {MOST_TASKS} for one call",
                tasks.len()
            ));
        }
        let toolsets = listed(&arguments["toolsets"])
            .and_then(|names| names.iter().map(words).collect::<Option<Vec<_>>>())
            .ok_or("nothing was delegated: `toolsets` must be a list of names")?;
        let model = words(&arguments["model"]);
        if let Some(model) = model.as_ref().filter(|model| !settings.models.contains(model)) {
            let known = match settings.models.is_empty() {
                true => "leave `model` out".to_owned(),
                false => format!("choose one of {}", settings.models.join(", ")),
            };
            return Err(format!("nothing was delegated: `{model}` is not a model for subagents; {known}"));
        }
        let most = arguments["max_iterations"].as_u64().and_then(|most| u32::try_from(most).ok());
        Ok(Self {
            tasks,
            toolsets: (!toolsets.is_empty()).then_some(toolsets),
            max_iterations: most.unwrap_or(u32::MAX).clamp(1, settings.max_iterations.max(1)),
            model,
            background: matches!(&arguments["background"], Value::Bool(true)) || arguments["background"] == "true",
        })
    }
}

impl Task {
    fn read(task: &Value, what: &str) -> Result<Self, String> {
        // Some models write a task as a text.
        let goal = words(task).or_else(|| words(&task["goal"]));
        let goal = goal.ok_or_else(|| format!("nothing was delegated: {what} must say what is to be done"))?;
        Ok(Self { goal, context: words(&task["context"]) })
    }
}

/// The members of a list, also of one that a model wrote as a text; `None` if it is something else.
fn listed(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(values) => Some(values.clone()),
        Value::String(text) if text.trim().is_empty() => Some(Vec::new()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

fn words(value: &Value) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(arguments: &Value) -> Result<Wanted, String> {
        let models = vec!["small".to_owned()];
        Wanted::read(&arguments.to_string(), &DelegationSettings { models, ..DelegationSettings::default() })
    }

    fn task(goal: &str, context: Option<&str>) -> Task {
        Task { goal: goal.to_owned(), context: context.map(str::to_owned) }
    }

    #[test]
    fn one_task_and_several_are_read_also_from_text() {
        let one = read(&json!({"goal": " count ", "context": "in src", "tasks": []})).unwrap();
        assert_eq!(one.tasks, [task("count", Some("in src"))]);
        assert_eq!((one.toolsets, one.max_iterations, one.model, one.background), (None, 50, None, false));
        let listed = json!([{"goal": "a", "context": " "}, "b"]);
        for tasks in [listed.clone(), Value::String(listed.to_string())] {
            let wanted = json!({"tasks": tasks, "toolsets": ["files"], "max_iterations": 7, "model": "small", "background": true});
            let several = read(&wanted).unwrap();
            assert_eq!(several.tasks, [task("a", None), task("b", None)]);
            assert_eq!(several.toolsets, Some(vec!["files".to_owned()]));
            assert_eq!(
                (several.max_iterations, several.model.as_deref(), several.background),
                (7, Some("small"), true)
            );
        }
    }

    #[test]
    fn a_budget_is_never_larger_than_the_configured_one_and_never_empty() {
        for (asked, given) in [(json!(0), 1), (json!(50), 50), (json!(51), 50), (json!(u64::MAX), 50), (json!("9"), 50)]
        {
            assert_eq!(read(&json!({"goal": "g", "max_iterations": asked})).unwrap().max_iterations, given);
        }
    }

    #[test]
    fn arguments_without_a_task_say_what_is_missing() {
        let many = vec![json!({"goal": "g"}); MOST_TASKS + 1];
        for (arguments, why) in [
            (json!({}), "`goal` must say"),
            (json!({"goal": " ", "tasks": "no"}), "`tasks` must be a list"),
            (json!({"tasks": [{"goal": "a"}, {"context": "c"}]}), "`goal` of task 2 must say"),
            (json!({"goal": "a", "tasks": [{"goal": "b"}]}), "either `goal` or `tasks`"),
            (json!({"tasks": many}), "21 tasks are more than 20"),
            (json!({"goal": "a", "toolsets": [1]}), "`toolsets` must be a list"),
            (json!({"goal": "a", "model": "large"}), "`large` is not a model for subagents; choose one of small"),
        ] {
            let refused = read(&arguments).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
