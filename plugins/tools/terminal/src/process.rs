//! `process`: the commands in the background of the session.

use hermes_plugin::process::{Background, Chunk, Program, programs};
use hermes_plugin::{Error, clock};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{LONGEST, exit, number, screen};

pub(crate) const DESCRIPTION: &str = "List, read, write to, wait for and kill the background commands of `terminal`. \
    They end with the session.";

/// How long `read` and `wait` wait if the call does not say otherwise, in seconds.
const READ: u64 = 1;
const WAIT: u64 = 60;
/// The most characters of a command in the list.
const SHOWN: usize = 200;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    action: Action,
    #[serde(default, alias = "session_id", deserialize_with = "number")]
    id: Option<u64>,
    #[serde(default)]
    data: String,
    #[serde(default, deserialize_with = "number")]
    timeout: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    /// Other agents call it by these names.
    #[serde(alias = "poll", alias = "log")]
    Read,
    Write,
    Submit,
    Close,
    Wait,
    #[serde(alias = "stop")]
    Kill,
}

pub(crate) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["list", "read", "write", "close", "wait", "kill"],
                "description": "read: what it wrote since the last read. close: ends its input.",
            },
            "id": { "type": "integer", "description": "Its number." },
            "data": { "type": "string", "description": "The input, with its line breaks." },
            "timeout": { "type": "integer", "description": "Seconds to wait for output, or for the end." },
        },
        "required": ["action"],
    })
}

/// What a program wrote, and whether it has ended.
pub(crate) struct Seen {
    pub(crate) text: String,
    pub(crate) has_ended: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<String, Error> {
    let Arguments { action, id, data, timeout } = arguments;
    let listed = programs()?;
    if *action == Action::List {
        return Ok(list(&listed));
    }
    let id =
        id.ok_or_else(|| Error::invalid(format!("id is missing: give the number of a program.\n{}", list(&listed))))?;
    let known = listed.iter().find(|program| u64::from(program.id) == id);
    let known = known.ok_or_else(|| Error::invalid(format!("there is no program {id}.\n{}", list(&listed))))?;
    let (program, command) = (Program(known.id), command(known));
    let wait = |usual: u64| u32::try_from(timeout.unwrap_or(usual).min(LONGEST) * 1_000).unwrap_or(u32::MAX);
    match action {
        Action::List | Action::Read => {}
        Action::Write => program.write(data)?,
        Action::Submit => program.write(format!("{data}\n"))?,
        Action::Close => program.close_input()?,
        Action::Wait => drop(program.wait(wait(WAIT))?),
        Action::Kill => drop(program.stop()?),
    }
    let patience = if matches!(action, Action::Wait | Action::Kill) { 0 } else { wait(READ) };
    Ok(take(program, command, patience)?.text)
}

/// Takes what a program wrote since the last time.
pub(crate) fn take(program: Program, command: &str, wait_ms: u32) -> Result<Seen, Error> {
    let Chunk { output, errors, output_lost, errors_lost, end, extra } = program.read(wait_ms)?;
    let lost = match output_lost.saturating_add(errors_lost) {
        0 => String::new(),
        lost => format!("[{lost} bytes before this were lost: nobody read them]\n"),
    };
    let status = match &end {
        Some(end) => exit::explained(command, end, None),
        None => "[still running]".to_owned(),
    };
    let (text, denied) = (screen::text(&output, &errors), exit::denied(&extra));
    Ok(Seen { text: format!("{lost}{text}{denied}\n{status}"), has_ended: end.is_some() })
}

fn list(listed: &[Background]) -> String {
    if listed.is_empty() {
        return "There are no background programs.".to_owned();
    }
    let now = clock::now();
    let line = |program: &Background| {
        let command = command(program);
        let state = match &program.end {
            Some(end) => exit::explained(command, end, None),
            None => format!("[running for {} s]", now.saturating_sub(program.started_at) / 1_000),
        };
        let mut shown: String = command.chars().take(SHOWN).map(|c| if c == '\n' { ' ' } else { c }).collect();
        if command.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        format!("{}  {shown}  {state}", program.id)
    };
    listed.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The command that a shell got: its last argument.
fn command(program: &Background) -> &str {
    program.arguments.last().map_or(program.program.as_str(), String::as_str)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::process::Command;
    use hermes_plugin::testing::Host;

    use super::*;

    fn call(arguments: Value) -> Result<String, Error> {
        run(&serde_json::from_value(arguments).unwrap())
    }

    /// A host with a background program that repeats its input.
    fn host() -> Host {
        let host = Host::new().background("bash", <[u8]>::to_vec);
        Command::new("bash").args(["-c", "cat\n-u"]).start().unwrap();
        host
    }

    #[test]
    fn a_program_is_listed_read_written_to_and_killed() {
        let _host = host();
        assert!(call(json!({ "action": "list" })).unwrap().starts_with("1  cat -u  [running for "));
        assert_eq!(call(json!({ "action": "read", "id": 1 })).unwrap(), "(no output)\n[still running]");
        assert_eq!(call(json!({ "action": "write", "id": "1", "data": "a\n" })).unwrap(), "a\n[still running]");
        assert_eq!(call(json!({ "action": "submit", "session_id": 1, "data": "b" })).unwrap(), "b\n[still running]");
        let killed = "[stopped, with all that it started]";
        assert_eq!(call(json!({ "action": "kill", "id": 1 })).unwrap(), format!("(no output)\n{killed}"));
        assert_eq!(call(json!({ "action": "list" })).unwrap(), format!("1  cat -u  {killed}"));
    }

    #[test]
    fn a_program_whose_input_ends_can_be_waited_for() {
        let _host = host();
        assert_eq!(call(json!({ "action": "wait", "id": 1 })).unwrap(), "(no output)\n[still running]");
        assert_eq!(call(json!({ "action": "close", "id": 1 })).unwrap(), "(no output)\n[exit code 0]");
        assert!(call(json!({ "action": "write", "id": 1, "data": "x" })).is_err());
    }

    #[test]
    fn a_wrong_number_is_answered_with_the_programs() {
        let host = host();
        for wrong in [json!({ "action": "read" }), json!({ "action": "kill", "id": 7 })] {
            assert!(call(wrong).unwrap_err().message.contains("1  cat -u"));
        }
        drop(host);
        let _host = Host::new();
        assert_eq!(call(json!({ "action": "list" })).unwrap(), "There are no background programs.");
    }
}
