//! The tools `terminal` and `process`: commands of a shell, in the folder where the session began.
//!
//! The host asks the user about each command, ends a program with everything that it started, and keeps a long output in a file. This
//! plugin turns a command into a program, and its end into words that a model understands.

mod command;
mod exit;
mod process;
mod screen;

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Instance, NoConfig, Setup, Tools};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The longest time limit of a command in seconds, and the longest wait for a background command.
const LONGEST: u64 = 600;

struct Terminal {
    /// The path of the workspace, if the host names it.
    workspace: Option<String>,
}

impl Instance for Terminal {
    type Config = NoConfig;

    fn new(setup: Setup<NoConfig>) -> Result<Self, Error> {
        Ok(Self { workspace: setup.session.workspace })
    }
}

impl Tools for Terminal {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        Ok(vec![
            tool("terminal", &command::description(), command::parameters()),
            tool("process", process::DESCRIPTION, process::parameters()),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let answer = match invocation.name.as_str() {
            "terminal" => command::run(invocation.parse()?, self.workspace.as_deref()),
            "process" => process::run(&invocation.parse()?),
            _ => Err(invocation.unknown()),
        };
        answer.map(Output::text)
    }
}

hermes_plugin::export!(Terminal: Tools);

/// Both tools run alone: commands depend on each other.
fn tool(name: &str, description: &str, parameters: Value) -> Tool {
    let mut tool = Tool::new(name, description, parameters).toolset("terminal").effect(Effect::Writes).open_world(true);
    // Tests and builds take longer than the 30 s of other tools.
    tool.extra.push(("time-limit-ms".to_owned(), (LONGEST * 1_000).to_string()));
    tool
}

/// Accepts a number of seconds, or of a program, as models write it: also as a string, with a fraction, or as null.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    // Well below the range where floats lose integer precision.
    let number = number.filter(|number| (0.0..1e15).contains(number));
    number
        .map(|number| Some(number.ceil() as u64))
        .ok_or_else(|| serde::de::Error::custom(format!("{value} is not a number from 0")))
}

/// Accepts a truth value as models write it: also as a string, or as null.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(flag),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        value => Err(serde::de::Error::custom(format!("{value} is neither true nor false"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::testing;
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_accepted_as_models_write_them() {
        let read = |value: Value| number(value).ok();
        for (value, seconds) in [(json!(7), 7), (json!("7"), 7), (json!(7.0), 7), (json!(0.5), 1)] {
            assert_eq!(read(value), Some(Some(seconds)));
        }
        assert_eq!(read(json!(null)), Some(None));
        for wrong in [json!(-1), json!("many"), json!([7]), json!(1e300)] {
            assert_eq!(read(wrong), None);
        }
        let read = |value: Value| flag(value).ok();
        assert_eq!(
            [json!(true), json!("true"), json!(null), json!("no")].map(read),
            [Some(true), Some(true), Some(false), None]
        );
    }

    #[test]
    fn both_tools_have_effects_and_ask_for_ten_minutes() {
        let host = testing::Host::new();
        let terminal: Terminal = host.start(json!({})).unwrap();
        for tool in terminal.catalog().unwrap() {
            assert_eq!((tool.effect, tool.parallel, tool.toolset.as_str()), (Effect::Writes, false, "terminal"));
            assert_eq!(tool.extra, [("time-limit-ms".to_owned(), "600000".to_owned())]);
        }
    }
}
