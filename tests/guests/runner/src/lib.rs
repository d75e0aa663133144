//! Tests approvals. Its tool `run` runs the programs listed in `runs` one after another, and returns the results as JSON, including
//! errors with their codes. `background` uses background programs in `steps`, and returns the answers. `wipe` is marked dangerous and returns `wiped`. `look` is harmless. `order` asks above 10 euros. `run` and `look` can run in parallel.
//! The hook asks for approval before the tools in `ask` of its configuration. The memory provider runs `sh` with the script `sync`
//! of its configuration after each turn, and logs the result.

mod background;

use hermes_plugin::hooks::{Event, Verdict, interest};
use hermes_plugin::memory_provider::Turn;
use hermes_plugin::process::{Command, End};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{CallPreview, Error, Hooks, MemoryProvider, Plugin, ToolPreview, Tools, log, task};
use serde_json::{Value, json};

/// The plugin.
pub struct Runner {
    config: Value,
}

impl Plugin for Runner {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self { config: serde_json::from_str(config)? })
    }
}

impl Tools for Runner {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name: &str, description: &str| {
            Tool::new(name, description, json!({ "type": "object" })).toolset("runner").parallel(true)
        };
        Ok(vec![
            tool("run", "Runs programs."),
            tool("background", "Uses background programs, step by step."),
            tool("wipe", "Wipes.").effect(Effect::Dangerous),
            tool("order", "Orders tea.").effect(Effect::Dangerous),
            tool("look", "Looks.").effect(Effect::Reads),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Value = invocation.parse()?;
        match invocation.name.as_str() {
            "run" => {
                let runs = arguments["runs"].as_array().into_iter().flatten();
                let answers: Value = runs.map(run).collect();
                Ok(Output::text(json!({ "answers": answers, "time-left": task::time_left() }).to_string()))
            }
            "background" => Ok(Output::text(background::steps(&arguments).to_string())),
            "wipe" => Ok(Output::text("wiped")),
            "order" => Ok(Output::text("ordered")),
            "look" => Ok(Output::text("seen")),
            _ => Err(invocation.unknown()),
        }
    }
}

impl ToolPreview for Runner {
    fn preview(&mut self, name: &str, arguments: &str) -> Result<CallPreview, Error> {
        let arguments: Value = serde_json::from_str(arguments)?;
        match (name, arguments["euros"].as_u64()) {
            ("order", Some(euros @ 0..=10)) => {
                Ok(CallPreview { sentence: Some(format!("Orders tea for {euros} €.")), ..CallPreview::harmless() })
            }
            ("order", Some(euros)) => {
                Ok(CallPreview::dangerous(format!("Orders tea for {euros} €.\nAlways allow this.")))
            }
            ("order", None) => Err(Error::invalid("how much?")),
            ("wipe", _) => Ok(CallPreview { effect: Effect::Dangerous, sentence: None }),
            _ => Ok(CallPreview::harmless()),
        }
    }
}

impl Hooks for Runner {
    fn interests(&self) -> Vec<&'static str> {
        vec![interest::BEFORE_TOOL]
    }

    fn on_event(&mut self, event: &Event) -> Verdict {
        let Event::BeforeTool(call) = event else { return Verdict::Proceed };
        match self.config["ask"].as_array().is_some_and(|names| names.contains(&json!(call.name))) {
            true => Verdict::Ask("it is Friday".to_owned()),
            false => Verdict::Proceed,
        }
    }
}

impl MemoryProvider for Runner {
    fn sync_turn(&mut self, _: &Turn) -> Result<(), Error> {
        if let Some(script) = self.config["sync"].as_str() {
            let answer = run(&json!({ "program": "sh", "arguments": ["-c", script] }));
            log::info(json!({ "synced": answer }));
        }
        Ok(())
    }
}

/// An error, as JSON.
fn refused(error: &Error) -> Value {
    json!({ "code": error.code, "message": error.message })
}

/// An end, as JSON.
fn shown(end: &End) -> Value {
    match end {
        End::Exited(code) => json!(code),
        End::Killed(signal) => json!({ "signal": signal }),
        End::TimedOut => json!("timed-out"),
        End::Stopped => json!("stopped"),
        End::Other(name) => json!(name),
    }
}

fn run(wanted: &Value) -> Value {
    match command(wanted).run() {
        Ok(exit) => json!({
            "end": shown(&exit.end),
            "output": exit.output_text(),
            "errors": exit.errors_text(),
            "bytes": exit.output.len(),
            "truncated": exit.truncated,
        }),
        Err(error) => refused(&error),
    }
}

fn command(wanted: &Value) -> Command {
    let text = |name: &str| wanted[name].as_str().unwrap_or_default();
    let arguments = wanted["arguments"].as_array().into_iter().flatten();
    let mut command = Command::new(text("program"))
        .args(arguments.map(|argument| argument.as_str().unwrap_or_default()))
        .folder(text("folder"))
        .input(text("input"));
    command.timeout_ms = wanted["timeout"].as_u64().and_then(|timeout| u32::try_from(timeout).ok());
    for (name, value) in wanted["environment"].as_object().into_iter().flatten() {
        command = command.variable(name, value.as_str().unwrap_or_default());
    }
    command
}

hermes_plugin::export!(Runner: Tools, ToolPreview, Hooks, MemoryProvider);
