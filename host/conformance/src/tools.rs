//! Checks of `tools`: a stable catalog, and calls that survive any arguments.

use std::collections::BTreeSet;

use hermes_conversation::one_line_within;
use hermes_plugin_host::{Effect, FaultKind, Limit, Output, Tool};
use serde_json::Value;

use crate::arguments;
use crate::bench::{CallFailure, Session, TestBench, ignore_errors};
use crate::difference::difference;
use crate::error::ConformanceError;
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

    let fix = "name a tool with 1 to 64 letters, digits, `_` and `-`, each name once, and say in a sentence what it does, and which toolset it belongs to";
    checks.add(GROUP, "names and describes its tools", fix, named(&tools));
    let fix =
        "write `parameters` as a JSON Schema object: {\"type\": \"object\", \"properties\": {…}, \"required\": […]}";
    checks.add(GROUP, "has a JSON Schema for each tool's arguments", fix, schemas(&tools));
    let words = bench.subject.language.words();
    // Ordinary calls come first: a tool that crashes at them is not called with anything else.
    let fix = format!(
        "answer every tool, and structured results as JSON that fits the tool's `output-schema`; what it cannot do is an error with a \
         reason: {} is a crash",
        words.crash
    );
    checks.add(
        GROUP,
        "answers ordinary arguments as its manifest and schemas say",
        fix,
        ordinary(&session, &tools).await,
    );
    let fix = format!("{} for a name that is not in the catalog", words.unknown_tool);
    checks.add(GROUP, "answers a name that it does not have with an error", fix, unknown(&session).await);
    let fix = format!("{}; {} is a crash", words.arguments, words.crash);
    checks.add(
        GROUP,
        "answers wrong, empty, huge and strange arguments",
        fix,
        survives(&session, &tools, arguments::invalid_arguments).await,
    );
    let fix = format!(
        "cut texts at characters, not at bytes; take what JSON can say, such as long texts, half a pair of surrogates and large numbers; {} \
         is a crash",
        words.crash
    );
    checks.add(
        GROUP,
        "answers awkward texts",
        fix,
        survives(&session, &tools, |schema| awkward(&session, schema)).await,
    );
    if bench.exports.tool_preview {
        let fix = "say what each call would do, and change nothing: after an error the user is asked about every call, without a sentence";
        checks.add(GROUP, "says what a call would do", fix, previews(&session, &tools).await);
    }
    let fix = "say in one line what failed and how to do better: the model reads it";
    checks.add(GROUP, "explains its errors", fix, explains(&session, &tools).await);
    Ok(())
}

pub(crate) async fn exercise(session: &Session<'_>) -> Result<(), Fail> {
    let tools = catalog(session).await?;
    let mut fails = Vec::new();
    for tool in tools.iter().filter(|tool| session.bench.works(tool)) {
        let answer = session.call_tool(&tool.schema.name, &arguments::valid(&parameters(tool)).to_string()).await;
        if let Err(crash) = ignore_errors(answer) {
            fails.push(crash.of(&format!("`{}`", tool.schema.name)));
        }
    }
    all(fails, &tools)
}

/// Asks what calls would do, as the host does before a call that may need the user: with arguments that fit, and with others, which may
/// be an error.
async fn previews(session: &Session<'_>, tools: &[Tool]) -> Verdict {
    let (mut fails, mut tried) = (Vec::new(), 0);
    let asked = tools.iter().filter(|tool| tool.effect != Effect::Reads);
    for tool in asked {
        let (name, schema) = (&tool.schema.name, parameters(tool));
        let ask = |arguments: String| session.call("preview", session.instance.preview(name.clone(), arguments));
        let ordinary = arguments::valid(&schema).to_string();
        let (first, second) = (ask(ordinary.clone()).await, ask(ordinary.clone()).await);
        tried += 2;
        match (first, second) {
            (Ok(first), Ok(second)) if first == second => {}
            (Ok(first), Ok(second)) => {
                fails.push(difference(&format!("{first:?}"), &format!("{second:?}")).into());
                continue;
            }
            (Err(failure), _) | (_, Err(failure)) => {
                fails.push(failure.of(&format!("`{name}` with {}", shown(&ordinary))));
                continue;
            }
        }
        for odd in arguments::invalid_arguments(&schema) {
            tried += 1;
            if let Err(crash) = ignore_errors(ask(odd.clone()).await) {
                fails.push(crash.of(&format!("`{name}` with {}", shown(&odd))));
                break;
            }
        }
    }
    all(fails, tools).map(|()| counted(tried, "call"))
}

/// The failures of all tools as one; none if every tool passed.
fn all(fails: Vec<Fail>, tools: &[Tool]) -> Result<(), Fail> {
    if fails.is_empty() { Ok(()) } else { Err(Fail::of_tools(fails, tools.len())) }
}

/// The schema of a tool's arguments.
fn parameters(tool: &Tool) -> Value {
    serde_json::from_str(&tool.schema.parameters).unwrap_or(Value::Null)
}

/// Arguments in an error.
fn shown(arguments: &str) -> String {
    match arguments.char_indices().nth(120) {
        _ if arguments.is_empty() => "an empty text".to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &arguments[..end], arguments.len()),
        None => arguments.to_owned(),
    }
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

/// The awkward arguments that the host would pass on: a longer text exceeds the limit of a call's input.
fn awkward(session: &Session<'_>, schema: &Value) -> Vec<String> {
    let most = session.bench.limits.get(Limit::Input);
    arguments::awkward_arguments(schema, usize::try_from(most).unwrap_or(usize::MAX))
}

/// Calls each tool that works with arguments that are made from its schema. It may answer an error, and must not crash.
async fn survives(session: &Session<'_>, tools: &[Tool], made: impl Fn(&Value) -> Vec<String>) -> Verdict {
    let (mut tried, mut fails) = (0, Vec::new());
    for tool in tools.iter().filter(|tool| session.bench.works(tool)) {
        for arguments in made(&parameters(tool)) {
            tried += 1;
            let answer = ignore_errors(session.call_tool(&tool.schema.name, &arguments).await);
            if let Err(crash) = answer {
                fails.push(crash.of(&format!("`{}` with {}", tool.schema.name, shown(&arguments))));
                break;
            }
        }
    }
    all(fails, tools).map(|()| counted(tried, "call"))
}

/// Calls each tool with arguments that fit. Whatever it answers, no import was denied, and a result is there and valid.
async fn ordinary(session: &Session<'_>, tools: &[Tool]) -> Verdict {
    let (mut fails, mut refusals) = (Vec::new(), String::new());
    for tool in tools {
        match answers(session, tool).await {
            Err(fail) => fails.push(fail),
            // A tool may need what the test cannot know, such as the name of a file. Its author sees that nothing else was tried.
            Ok(Some(refusal)) => {
                let (name, refusal) = (&tool.schema.name, one_line_within(&refusal, 100));
                refusals.push_str(&format!("; `{name}` answered only errors, such as: {refusal}"));
            }
            Ok(None) => {}
        }
    }
    all(fails, tools).map(|()| format!("{}{refusals}", counted(tools.len(), "tool")))
}

/// Calls a tool with arguments that fit. If it answered errors only, the last one is returned.
async fn answers(session: &Session<'_>, tool: &Tool) -> Result<Option<String>, Fail> {
    let may_be_denied = session.requests_programs();
    let name = &tool.schema.name;
    let promised: Option<Value> = tool.output_schema.as_ref().and_then(|schema| serde_json::from_str(schema).ok());
    // The empty results so far; none as soon as a call fails or a result has content.
    let mut nothing = Some(Vec::new());
    let (mut refusal, mut worked) = (None, false);
    for arguments in arguments::ordinary(&parameters(tool)) {
        let answer = session.until_answered(|| session.call_tool(name, &arguments)).await;
        let tried = format!("`{name}` with {}", shown(&arguments));
        let output = match answer {
            Err(CallFailure::Returned(fault)) if fault.kind != FaultKind::Denied || may_be_denied => {
                nothing = None;
                refusal = Some(fault.message);
                continue;
            }
            Err(CallFailure::Down(_)) => {
                nothing = None;
                worked = true;
                continue;
            }
            Err(failure) => {
                if matches!(failure, CallFailure::Crashed(_)) {
                    session.bench.is_broken(name);
                }
                return Err(failure.of(&tried));
            }
            Ok(output) => output,
        };
        worked = true;
        match (&promised, &output.structured) {
            (Some(schema), Some(structured)) => {
                let value: Value = serde_json::from_str(structured)
                    .map_err(|error| format!("{tried}: its structured result is not JSON: {error}"))?;
                if let Some(misfit) = schema::misfit(schema, &value) {
                    let value: String = structured.chars().take(120).collect();
                    return Err(format!(
                        "{tried}: its structured result does not fit `output-schema`: {misfit}; it is {value}"
                    )
                    .into());
                }
            }
            (Some(_), None) => {
                return Err(format!(
                    "{tried}: its `output-schema` promises a structured result, and there is no structured result"
                )
                .into());
            }
            (None, Some(structured)) => {
                serde_json::from_str::<Value>(structured)
                    .map_err(|error| format!("{tried}: its structured result is not JSON: {error}"))?;
            }
            (None, None) => {}
        }
        match said_nothing(&output) {
            Some(text) => nothing.iter_mut().for_each(|all| all.push(format!("`{text}` to {}", shown(&arguments)))),
            None => nothing = None,
        }
    }
    match nothing {
        Some(said) if !said.is_empty() => Err(Fail {
            fix: Some("return a result, or say what was done; in languages with `async`, wait for it first"),
            ..format!("`{name}` answers every ordinary call with an empty result: {}", said.join(", ")).into()
        }),
        _ => Ok(refusal.filter(|_| !worked)),
    }
}

/// The whole result, if it says nothing: no text, or what a language writes in place of a value that is missing. A list without elements says
/// something: that nothing was found.
fn said_nothing(output: &Output) -> Option<String> {
    const NOTHING: [&str; 7] = ["", "{}", "null", "undefined", "None", "nil", "<nil>"];
    if !output.images.is_empty() {
        return None;
    }
    let text =
        if output.content.is_empty() { output.structured.as_deref().unwrap_or_default() } else { &output.content };
    let said = text.trim();
    let between = |begin: &str, end: char| said.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    let is_name = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // `[object Promise]`, `<coroutine object f at 0x7f00>`
    let is_object = between("[object ", ']').is_some_and(is_name)
        || between("<", '>').is_some_and(|object| object.contains(" object ") && object.contains(" at 0x"));
    (NOTHING.contains(&said) || is_object).then(|| said.to_owned())
}

async fn explains(session: &Session<'_>, tools: &[Tool]) -> Verdict {
    let mut fails = Vec::new();
    for tool in tools.iter().filter(|tool| session.bench.works(tool)) {
        let name = &tool.schema.name;
        for wrong in ["not json", "[]"] {
            match session.call_tool(name, wrong).await {
                Err(CallFailure::Returned(fault)) if fault.message.trim().is_empty() => {
                    fails.push(format!("`{name}` answers `{wrong}` with an error that says nothing").into());
                    break;
                }
                Err(failure @ CallFailure::Crashed(_)) => {
                    fails.push(failure.of(&format!("`{name}` with `{wrong}`")));
                    break;
                }
                // A tool without arguments may accept any text.
                Err(CallFailure::Returned(_) | CallFailure::Down(_)) | Ok(_) => {}
            }
        }
    }
    all(fails, tools).map(|()| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, structured: Option<&str>) -> Option<String> {
        said_nothing(&Output {
            content: text.to_owned(),
            structured: structured.map(str::to_owned),
            ..Output::default()
        })
    }

    #[test]
    fn a_result_that_says_nothing_is_recognized() {
        for nothing in
            ["", " \n", "{}", "null", "None", "undefined", "[object Promise]", "<coroutine object f at 0x7f00>"]
        {
            assert_eq!(said(nothing, None).as_deref(), Some(nothing.trim()), "{nothing}");
        }
        assert_eq!(said("", Some("null")).as_deref(), Some("null"));
        for something in
            ["[]", "0", "false", "done", "no file", "<p>an object is here</p>", "[object storage: 3 buckets] are full"]
        {
            assert_eq!(said(something, None), None, "{something}");
        }
        assert_eq!(said("", Some(r#"{"n":1}"#)), None);
    }

    #[test]
    fn long_arguments_are_shortened_at_a_character() {
        assert_eq!(shown(""), "an empty text");
        assert_eq!(shown("{}"), "{}");
        assert!(shown(&"ü".repeat(500)).ends_with("ü… (1000 bytes)"));
    }
}
