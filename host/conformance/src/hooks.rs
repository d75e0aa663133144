//! Checks of `hooks`: their subscriptions, and that they stop nothing but tool calls.

use hermes_bindings::exported::hooks::Notice;
use hermes_conversation::Usage;
use hermes_plugin_host::{Event, ToolDone, ToolEvent, Verdict as HookVerdict, model_answered};

use crate::arguments::UNICODE;
use crate::bench::{CallFailure, Session, TestBench};
use crate::error::ConformanceError;
use crate::report::{Checks, Fail, Verdict};

const GROUP: &str = "hooks";
const KNOWN: [&str; 4] = ["before-tool", "after-tool", "before-model", "after-model"];

pub(crate) async fn check(bench: &TestBench<'_>, checks: &mut Checks) -> Result<(), ConformanceError> {
    let fix = "add `hooks: true` to `permissions` in plugin.yaml";
    checks.add(GROUP, "requests the permission `hooks`", fix, requested(bench));
    let session = bench.open(&bench.setup())?;
    let fix = "name events as the contract does: before-tool, after-tool, before-model, after-model";
    checks.add(GROUP, "subscribes to known events, the same each time", fix, interests(&session).await);
    let fix = "answer every event with a verdict; what is of no interest with `proceed`";
    checks.add(GROUP, "has a verdict for every event", fix, events(&session).await);
    Ok(())
}

pub(crate) async fn exercise(session: &Session<'_>) -> Result<(), CallFailure> {
    session.call("interests", session.instance.interests()).await?;
    for (_, event) in all("read_file", r#"{"path":"README.md"}"#, "# Harbour\n") {
        session.call("on-event", session.instance.on_event(event)).await?;
    }
    Ok(())
}

fn requested(bench: &TestBench<'_>) -> Verdict {
    match bench.subject.manifest.permissions.hooks {
        true => Ok(String::new()),
        false => Err("its manifest does not request `hooks`, so a session never calls them".into()),
    }
}

async fn interests(session: &Session<'_>) -> Verdict {
    let first = session.call("interests", session.instance.interests()).await.map_err(Fail::from)?;
    let second = session.call("interests", session.instance.interests()).await.map_err(Fail::from)?;
    if first != second {
        return Err(format!("first {first:?}, then {second:?}").into());
    }
    if let Some(unknown) = first.iter().find(|interest| !KNOWN.contains(&interest.as_str())) {
        return Err(format!("`{unknown}` is no event").into());
    }
    if first.is_empty() {
        return Err("it is interested in nothing, so it is never called".into());
    }
    Ok(first.join(", "))
}

/// Every event for one tool. The flag says whether a verdict other than `proceed` is allowed.
fn all(tool: &str, arguments: &str, content: &str) -> Vec<(bool, Event)> {
    let event = ToolEvent {
        call_id: "call-1".to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_owned(),
        plugin: "files".to_owned(),
        extra: Vec::new(),
    };
    let done = |failed| {
        Event::AfterTool(ToolDone {
            event: event.clone(),
            content: content.to_owned(),
            failed,
            elapsed_ms: 12,
            extra: Vec::new(),
        })
    };
    let usage = Usage { input: u32::MAX, output: 7, cache_read: 3, ..Usage::default() };
    let notice = |name: &str, json: &str| Event::Other(Notice { name: name.to_owned(), json: json.to_owned() });
    vec![
        (true, Event::BeforeTool(event.clone())),
        (false, done(false)),
        (false, done(true)),
        (false, Event::BeforeModel(tool.to_owned())),
        (false, Event::AfterModel(model_answered(tool, usage, 900))),
        (false, Event::AfterModel(model_answered(tool, Usage::default(), 0))),
        // Events of later versions: their JSON is anything, and perhaps none.
        (false, notice("a-later-one", r#"{"n":1}"#)),
        (false, notice("", "")),
        (false, notice(tool, arguments)),
    ]
}

async fn events(session: &Session<'_>) -> Verdict {
    let huge = "ü".repeat(200_000);
    let mut tried = 0;
    for (tool, arguments, content) in [
        ("read_file", r#"{"path":"README.md"}"#, "# Harbour\n"),
        ("terminal", r#"{"command":"rm -rf /"}"#, ""),
        ("", "", ""),
        // Tools of the host, of MCP servers and of other plugins, with what models write.
        ("todo", "{}", "[]"),
        ("mcp__files__read_file", r#"{"path":null,"path":["a"]}"#, "null"),
        ("read_file", r#"{"path":"\ud83d","n":9007199254740993,"m":1e400}"#, "\u{0}"),
        ("read_file", r#"[]"#, "{}"),
        ("read_file", r#""text""#, "😀"),
        (UNICODE, UNICODE, UNICODE),
        ("write_file", "not json", &huge),
        ("write_file", &huge, ""),
    ] {
        for (counts, event) in all(tool, arguments, content) {
            let shown: String = format!("{event:?}").chars().take(100).collect();
            let verdict = session.call("on-event", session.instance.on_event(event)).await;
            tried += 1;
            match verdict.map_err(|failure| failure.of(&shown))? {
                HookVerdict::Proceed => {}
                _ if !counts => {
                    return Err(
                        format!("{shown}: only `before-tool` can be stopped, `proceed` is the answer here").into()
                    );
                }
                HookVerdict::Block(text) | HookVerdict::Ask(text) if text.trim().is_empty() => {
                    return Err(format!("{shown}: it is stopped without a word why").into());
                }
                HookVerdict::Block(_) | HookVerdict::Ask(_) => {}
            }
        }
    }
    Ok(format!("{tried} events"))
}
