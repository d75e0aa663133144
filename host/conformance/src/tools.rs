//! `tools`: a catalog that stands, and calls that are answered whatever a model writes.

use std::collections::BTreeSet;

use hermes_plugin_host::Tool;
use serde_json::Value;

use crate::arguments;
use crate::error::ConformanceError;
use crate::lifecycle::differing;
use crate::report::{Checks, Fail, Verdict, fine};
use crate::schema;
use crate::stand::{Ill, Stand, Worker, alive};

const GROUP: &str = "tools";
/// Characters of a name; providers refuse longer ones.
const NAME: usize = 64;

pub(crate) async fn check(stand: &Stand<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let worker = stand.put_on(&stand.scene())?;
    let (first, second) = (catalog(&worker).await, catalog(&worker).await);
    let fix = "make the catalog of constants and configuration only: it is asked once and stands for the session";
    let verdict: Verdict = match (&first, &second) {
        (Ok(one), Ok(other)) if one.is_empty() && other.is_empty() => Err("it offers no tool".into()),
        (Ok(one), Ok(other)) if same(one, other) => Ok(format!("{} tools", one.len())),
        (Ok(one), Ok(other)) => Err(differing(&format!("{one:?}"), &format!("{other:?}")).into()),
        (Err(ill), _) | (_, Err(ill)) => Err(ill.clone().into()),
    };
    checks.add(GROUP, "offers the same tools each time it is asked", fix, verdict);
    let Ok(tools) = first else { return Ok(()) };

    let fix =
        "name a tool with 1 to 64 letters, digits, `_` and `-`, each name once, and say in a sentence what it does";
    checks.add(GROUP, "names and describes its tools", fix, named(&tools));
    let fix =
        "write `parameters` as a JSON Schema object: {\"type\": \"object\", \"properties\": {…}, \"required\": […]}";
    checks.add(GROUP, "has a JSON Schema for each tool's arguments", fix, schemas(&tools));
    let fix = "answer `invocation.unknown()` for a name that is not in the catalog";
    checks.add(GROUP, "answers a name that it does not have with an error", fix, unknown(&worker).await);
    let fix = "take arguments apart with `invocation.parse()?`: an error of it goes to the model, a panic is a crash";
    checks.add(GROUP, "answers wrong, empty, huge and strange arguments", fix, mistaken(&worker, &tools).await);
    let fix = "say in one line what failed and how to do better: the model reads it";
    checks.add(GROUP, "says what is wrong", fix, explains(&worker, &tools).await);
    Ok(())
}

pub(crate) async fn exercise(worker: &Worker<'_>) -> Result<(), Ill> {
    for tool in catalog(worker).await? {
        let schema = serde_json::from_str(&tool.schema.parameters).unwrap_or(Value::Null);
        alive(worker.call_tool(&tool.schema.name, &arguments::fitting(&schema).to_string()).await)?;
    }
    Ok(())
}

async fn catalog(worker: &Worker<'_>) -> Result<Vec<Tool>, Ill> {
    worker.ask("catalog", worker.instance.catalog()).await
}

fn same(one: &[Tool], other: &[Tool]) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

fn named(tools: &[Tool]) -> Verdict {
    let mut names = BTreeSet::new();
    for tool in tools {
        let name = &tool.schema.name;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > NAME || !name.bytes().all(is_plain) {
            return Err(format!("`{name}` is no name that providers take").into());
        }
        if !names.insert(name) {
            return Err(format!("`{name}` stands twice").into());
        }
        if tool.schema.description.trim().is_empty() {
            return Err(format!("`{name}` has no description").into());
        }
        if tool.toolset.trim().is_empty() {
            return Err(format!("`{name}` is in no toolset").into());
        }
    }
    fine()
}

fn schemas(tools: &[Tool]) -> Verdict {
    for tool in tools {
        let name = &tool.schema.name;
        let parameters: Value = serde_json::from_str(&tool.schema.parameters)
            .map_err(|error| format!("the parameters of `{name}` are no JSON: {error}"))?;
        schema::of_object(&parameters).map_err(|why| format!("the parameters of `{name}`: {why}"))?;
    }
    fine()
}

async fn unknown(worker: &Worker<'_>) -> Verdict {
    for name in ["no_such_tool", "", arguments::UNICODE] {
        match worker.call_tool(name, "{}").await {
            Err(Ill::Answered(_)) => {}
            Err(died) => return Err(died.into()),
            Ok(output) => return Err(format!("`{name}` is no tool of it and answers `{}`", output.content).into()),
        }
    }
    fine()
}

async fn mistaken(worker: &Worker<'_>, tools: &[Tool]) -> Verdict {
    let mut tried = 0;
    for tool in tools {
        let schema = serde_json::from_str(&tool.schema.parameters).unwrap_or(Value::Null);
        for arguments in arguments::mistaken(&schema) {
            tried += 1;
            alive(worker.call_tool(&tool.schema.name, &arguments).await).map_err(|died| {
                let shown: String = arguments.chars().take(120).collect();
                Fail::from(format!("`{}` with {shown}: {died}", tool.schema.name))
            })?;
        }
    }
    Ok(format!("{tried} calls"))
}

async fn explains(worker: &Worker<'_>, tools: &[Tool]) -> Verdict {
    for tool in tools {
        let name = &tool.schema.name;
        for wrong in ["not json", "[]"] {
            match worker.call_tool(name, wrong).await {
                Err(Ill::Answered(fault)) if fault.message.trim().is_empty() => {
                    return Err(format!("`{name}` answers `{wrong}` with an error that says nothing").into());
                }
                Err(Ill::Died(why)) => return Err(why.into()),
                // One that has no arguments may take anything for none.
                Err(Ill::Answered(_)) | Ok(_) => {}
            }
        }
    }
    fine()
}
