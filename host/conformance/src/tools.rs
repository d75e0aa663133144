//! Checks of `tools`: a stable catalog, and calls that survive any arguments.

use std::collections::BTreeSet;

use hermes_plugin_host::{FaultKind, Tool};
use serde_json::Value;

use crate::arguments;
use crate::bench::{CallFailure, Session, TestBench, ignore_errors};
use crate::error::ConformanceError;
use crate::lifecycle::difference;
use crate::report::{Checks, Fail, Verdict, counted, passed};
use crate::schema;

const GROUP: &str = "tools";
/// The most characters of a tool's name that providers accept.
const NAME: usize = 64;

pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let session = bench.open(&bench.setup())?;
    let (first, second) = (catalog(&session).await, catalog(&session).await);
    let fix = "make the catalog of constants and configuration only: it is read once per session";
    let verdict: Verdict = match (&first, &second) {
        (Ok(one), Ok(other)) if one.is_empty() && other.is_empty() => Err("it offers no tool".into()),
        (Ok(one), Ok(other)) if same(one, other) => Ok(counted(one.len(), "tool")),
        (Ok(one), Ok(other)) => Err(difference(&format!("{one:?}"), &format!("{other:?}")).into()),
        (Err(failure), _) | (_, Err(failure)) => Err(failure.clone().into()),
    };
    checks.add(GROUP, "offers the same tools each time it is asked", fix, verdict);
    let Ok(tools) = first else { return Ok(()) };

    let fix =
        "name a tool with 1 to 64 letters, digits, `_` and `-`, each name once, and say in a sentence what it does";
    checks.add(GROUP, "names and describes its tools", fix, named(&tools));
    let fix =
        "write `parameters` as a JSON Schema object: {\"type\": \"object\", \"properties\": {…}, \"required\": […]}";
    checks.add(GROUP, "has a JSON Schema for each tool's arguments", fix, schemas(&tools));
    let words = bench.subject.language.words();
    let fix = format!("{} for a name that is not in the catalog", words.unknown_tool);
    checks.add(GROUP, "answers a name that it does not have with an error", fix, unknown(&session).await);
    let fix = format!("{}; {} is a crash", words.arguments, words.crash);
    checks.add(
        GROUP,
        "answers wrong, empty, huge and strange arguments",
        fix,
        invalid_arguments(&session, &tools).await,
    );
    let fix = "answer every tool, and structured results as JSON that fits the tool's `output-schema`";
    checks.add(
        GROUP,
        "answers ordinary arguments as its manifest and schemas say",
        fix,
        ordinary(&session, &tools).await,
    );
    let fix = "say in one line what failed and how to do better: the model reads it";
    checks.add(GROUP, "explains its errors", fix, explains(&session, &tools).await);
    Ok(())
}

pub(crate) async fn exercise(session: &Session<'_>) -> Result<(), CallFailure> {
    for tool in catalog(session).await? {
        let schema = serde_json::from_str(&tool.schema.parameters).unwrap_or(Value::Null);
        ignore_errors(session.call_tool(&tool.schema.name, &arguments::valid(&schema).to_string()).await)?;
    }
    Ok(())
}

async fn catalog(session: &Session<'_>) -> Result<Vec<Tool>, CallFailure> {
    session.call("catalog", session.instance.catalog()).await
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
            return Err(format!("`{name}` is not a name that providers accept").into());
        }
        if !names.insert(name) {
            return Err(format!("`{name}` is listed twice").into());
        }
        if tool.schema.description.trim().is_empty() {
            return Err(format!("`{name}` has no description").into());
        }
        if tool.toolset.trim().is_empty() {
            return Err(format!("`{name}` is in no toolset").into());
        }
    }
    passed()
}

fn schemas(tools: &[Tool]) -> Verdict {
    for tool in tools {
        let name = &tool.schema.name;
        let parameters: Value = serde_json::from_str(&tool.schema.parameters)
            .map_err(|error| format!("the parameters of `{name}` are not JSON: {error}"))?;
        schema::of_object(&parameters).map_err(|why| format!("the parameters of `{name}`: {why}"))?;
        let Some(output) = &tool.output_schema else { continue };
        let output: Value = serde_json::from_str(output)
            .map_err(|error| format!("the output schema of `{name}` is not JSON: {error}"))?;
        hermes_plugin_host::json_schema(&output).map_err(|why| format!("the output schema of `{name}`: {why}"))?;
    }
    passed()
}

async fn unknown(session: &Session<'_>) -> Verdict {
    for name in ["no_such_tool", "", arguments::UNICODE] {
        match session.call_tool(name, "{}").await {
            Err(CallFailure::Returned(_) | CallFailure::Down(_)) => {}
            Err(crash) => return Err(crash.into()),
            Ok(output) => {
                return Err(format!("`{name}` is not one of its tools, and it answers `{}`", output.content).into());
            }
        }
    }
    passed()
}

async fn invalid_arguments(session: &Session<'_>, tools: &[Tool]) -> Verdict {
    let mut tried = 0;
    for tool in tools {
        let schema = serde_json::from_str(&tool.schema.parameters).unwrap_or(Value::Null);
        for arguments in arguments::invalid_arguments(&schema) {
            tried += 1;
            ignore_errors(session.call_tool(&tool.schema.name, &arguments).await).map_err(|crash| {
                let shown: String = if arguments.is_empty() {
                    "an empty text".to_owned()
                } else {
                    arguments.chars().take(120).collect()
                };
                Fail::from(format!("`{}` with {shown}: {crash}", tool.schema.name))
            })?;
        }
    }
    Ok(counted(tried, "call"))
}

/// Calls each tool with arguments that fit. Whatever it answers, no import was denied, and a structured result is valid.
async fn ordinary(session: &Session<'_>, tools: &[Tool]) -> Verdict {
    let may_be_denied = session.requests_programs();
    for tool in tools {
        let name = &tool.schema.name;
        let schema = serde_json::from_str(&tool.schema.parameters).unwrap_or(Value::Null);
        let arguments = arguments::valid(&schema).to_string();
        let answer = session.until_answered(|| session.call_tool(name, &arguments)).await;
        let shown: String = arguments.chars().take(120).collect();
        let tried = format!("`{name}` with {shown}");
        match answer {
            Err(CallFailure::Returned(fault)) if fault.kind != FaultKind::Denied || may_be_denied => {}
            Err(CallFailure::Down(_)) => {}
            Err(failure) => return Err(failure.of(&tried)),
            Ok(output) => {
                let Some(structured) = &output.structured else { continue };
                let value: Value = serde_json::from_str(structured)
                    .map_err(|error| format!("{tried}: its structured result is not JSON: {error}"))?;
                let schema = tool.output_schema.as_ref().and_then(|schema| serde_json::from_str(schema).ok());
                if let Some(schema) = schema
                    && !schema::fits(&schema, &value)
                {
                    let value: String = structured.chars().take(120).collect();
                    return Err(format!("{tried}: its structured result does not fit `output-schema`: {value}").into());
                }
            }
        }
    }
    passed()
}

async fn explains(session: &Session<'_>, tools: &[Tool]) -> Verdict {
    for tool in tools {
        let name = &tool.schema.name;
        for wrong in ["not json", "[]"] {
            match session.call_tool(name, wrong).await {
                Err(CallFailure::Returned(fault)) if fault.message.trim().is_empty() => {
                    return Err(format!("`{name}` answers `{wrong}` with an error that says nothing").into());
                }
                Err(CallFailure::Crashed(why)) => return Err(why.into()),
                // A tool without arguments may accept any text.
                Err(CallFailure::Returned(_) | CallFailure::Down(_)) | Ok(_) => {}
            }
        }
    }
    passed()
}
