//! `terminal`: runs a command of the shell and waits for its end, or starts it in the background.

use hermes_plugin::process::{Command, Exit, Program};
use hermes_plugin::{Error, task};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{LONGEST, exit, flag, number, process, screen};

/// The time limit of a command that does not say otherwise, in seconds.
const USUAL: u64 = 180;
/// The first shell that exists runs the commands. Models write for bash.
const SHELLS: [&str; 2] = ["bash", "sh"];
/// How long a background command is watched after its start, in milliseconds: a mistyped one ends at once.
const FIRST_LOOK: u32 = 500;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    command: String,
    #[serde(default)]
    workdir: Option<String>,
    #[serde(default, deserialize_with = "number")]
    timeout: Option<u64>,
    #[serde(default, deserialize_with = "flag")]
    background: bool,
}

pub(crate) fn description() -> String {
    "Run a shell command in the workspace (bash if installed, else sh) and get its output and exit code. The user approves \
     each command. It has no terminal and no input. Start servers and other commands that do not end with background: \
     `process` reads and ends them."
        .to_owned()
}

pub(crate) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": { "type": "string" },
            "workdir": { "type": "string", "description": "A folder of the workspace." },
            "timeout": {
                "type": "integer",
                "description": format!("Seconds until it is ended: {USUAL} by default, at most {LONGEST}."),
            },
            "background": { "type": "boolean" },
        },
        "required": ["command"],
    })
}

pub(crate) fn run(arguments: Arguments, workspace: Option<&str>) -> Result<String, Error> {
    let Arguments { command, workdir, timeout, background } = arguments;
    if command.trim().is_empty() {
        return Err(Error::invalid("command is empty: give a command of the shell"));
    }
    let folder = folder(workdir.as_deref().unwrap_or_default(), workspace)?;
    let timeout = timeout.map(|seconds| seconds.clamp(1, LONGEST));
    if background {
        return start(&command, &folder, timeout);
    }
    // The host may give this call less time than it asked for.
    let seconds = timeout.unwrap_or(USUAL).min(u64::from(task::time_left() / 1_000).max(1));
    let exit = in_shell(&command, &folder, Some(seconds), Command::run)?;
    Ok(answer(&command, &exit, seconds))
}

fn start(command: &str, folder: &str, timeout: Option<u64>) -> Result<String, Error> {
    let program: Program = in_shell(command, folder, timeout, Command::start)?;
    program.wait(FIRST_LOOK)?;
    let seen = process::take(program, command, 0)?;
    let Program(id) = program;
    let hint = if seen.has_ended { "" } else { ": `process` reads its output and ends it" };
    Ok(format!("{}\nThis is program {id}{hint}.", seen.text))
}

/// Hands the command to the first shell that is installed.
fn in_shell<T>(
    command: &str,
    folder: &str,
    seconds: Option<u64>,
    hand_over: impl Fn(&Command) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut result = Err(Error::unavailable("there is no shell"));
    for shell in SHELLS {
        let mut order = Command::new(shell).args(["-c", command]).folder(folder);
        order.timeout_ms = seconds.and_then(|seconds| u32::try_from(seconds * 1_000).ok());
        // Errors appear in the output where they happened, and the user sees the last line of it.
        order.extra = ["merge-errors", "show-output"].map(|key| (key.to_owned(), "true".to_owned())).to_vec();
        result = hand_over(&order);
        if !result.as_ref().is_err_and(|error| error.code == "not-found") {
            return result;
        }
    }
    result
}

/// The folder relative to the workspace. The host checks that it does not leave the workspace.
fn folder(workdir: &str, workspace: Option<&str>) -> Result<String, Error> {
    let workdir = workdir.trim();
    if !workdir.starts_with('/') {
        return Ok(workdir.trim_end_matches('/').to_owned());
    }
    let below = workspace.and_then(|workspace| workdir.strip_prefix(workspace.trim_end_matches('/')));
    match below.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => Ok(rest.trim_matches('/').to_owned()),
        None => Err(Error::invalid(format!(
            "`{workdir}` is not a folder of the workspace: a command starts in the workspace, and can go elsewhere with `cd`"
        ))),
    }
}

fn answer(command: &str, exit: &Exit, seconds: u64) -> String {
    let mut text = screen::text(&exit.output, &exit.errors);
    if exit.truncated {
        text.push_str("\n[The output was too long to be kept whole. Write it to a file to see all of it.]");
    }
    text.push_str(&exit::denied(&exit.extra));
    format!("{text}\n{}", exit::explained(command, &exit.end, Some(seconds)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::process::End;
    use hermes_plugin::testing::Host;

    use super::*;

    fn arguments(value: Value) -> Arguments {
        serde_json::from_value(value).unwrap()
    }

    fn ended(end: End, output: &str, truncated: bool) -> Exit {
        Exit { end, output: output.as_bytes().to_vec(), errors: Vec::new(), truncated, extra: Vec::new() }
    }

    #[test]
    fn a_command_runs_in_bash_with_one_output_and_a_time_limit() {
        let host = Host::new().program("bash", "one\ntwo\n").time_left(600_000);
        let wanted = json!({ "command": "echo one; echo two >&2", "workdir": "sub/", "timeout": "20" });
        assert_eq!(run(arguments(wanted), None).unwrap(), "one\ntwo\n[exit code 0]");
        let command = &host.commands()[0];
        assert_eq!(command.arguments, ["-c", "echo one; echo two >&2"]);
        assert_eq!((command.folder.as_str(), command.timeout_ms), ("sub", Some(20_000)));
        let flags = ["merge-errors", "show-output"].map(|key| (key.to_owned(), "true".to_owned()));
        assert_eq!(command.extra, flags);
    }

    #[test]
    fn the_time_limit_has_a_default_and_a_maximum_and_ends_before_the_call() {
        let host = Host::new().program("bash", "").program("bash", "").program("bash", "").time_left(600_000);
        for wanted in [json!({ "command": "x" }), json!({ "command": "x", "timeout": 9_999 })] {
            run(arguments(wanted), None).unwrap();
        }
        let host = host.time_left(25_000);
        run(arguments(json!({ "command": "x" })), None).unwrap();
        let times: Vec<_> = host.commands().iter().map(|command| command.timeout_ms).collect();
        assert_eq!(times, [Some(180_000), Some(600_000), Some(25_000)]);
    }

    #[test]
    fn without_bash_sh_runs_the_command_and_a_refusal_is_passed_on() {
        let missing = || Error::unavailable("no folder of PATH has it").with_code("not-found");
        let refused = Error::denied("`bash` was not run").with_code("refused");
        let host = Host::new().program("bash", missing()).program("sh", "hi\n").program("bash", refused);
        assert_eq!(run(arguments(json!({ "command": "echo hi" })), None).unwrap(), "hi\n[exit code 0]");
        let error = run(arguments(json!({ "command": "echo hi" })), None).unwrap_err();
        assert_eq!((error.code.as_str(), host.commands().len()), ("refused", 3));
    }

    #[test]
    fn the_answer_says_what_happened_and_what_to_do() {
        let answer = |exit: &Exit| answer("cargo test", exit, 180);
        assert_eq!(answer(&ended(End::Exited(0), "", false)), "(no output)\n[exit code 0]");
        let timed_out = answer(&ended(End::TimedOut, "half", false));
        assert!(
            timed_out.starts_with("half\n[timed out after 180 s:") && timed_out.contains("background"),
            "{timed_out}"
        );
        assert!(answer(&ended(End::Exited(0), "a", true)).contains("Write it to a file"));
    }

    #[test]
    fn what_the_sandbox_denied_comes_before_the_end() {
        let extra = [("sandbox-denied", "the network is off"), ("later", "x")];
        let extra = extra.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let exit = Exit { extra, ..ended(End::Exited(7), "no route", false) };
        assert_eq!(answer("curl x", &exit, 180).lines().nth(1), Some("[sandbox: the network is off]"));
        assert!(answer("curl x", &exit, 180).contains("\n[exit code 7: "));
    }

    #[test]
    fn a_background_command_that_fails_at_once_says_so() {
        let host = Host::new().program("bash", ended(End::Exited(127), "nope: not found\n", false));
        let text = run(arguments(json!({ "command": "nope", "background": true })), None).unwrap();
        assert!(
            text.starts_with("nope: not found\n[exit code 127: ") && text.ends_with("This is program 1."),
            "{text}"
        );
        assert_eq!(host.commands()[0].timeout_ms, None);
        let _host = host.background("bash", |_| Vec::new());
        let text = run(arguments(json!({ "command": "serve", "background": true })), None).unwrap();
        assert!(text.starts_with("(no output)\n[still running]\nThis is program 2: `process`"), "{text}");
    }

    #[test]
    fn a_folder_of_the_workspace_can_be_named_by_its_whole_path() {
        let inside = |workdir: &str| folder(workdir, Some("/home/ada/project"));
        assert_eq!(inside("").unwrap(), "");
        assert_eq!(inside("./src").unwrap(), "./src");
        assert_eq!(inside("/home/ada/project").unwrap(), "");
        assert_eq!(inside("/home/ada/project/src/").unwrap(), "src");
        for outside in ["/home/ada/project2", "/tmp"] {
            assert!(inside(outside).unwrap_err().message.contains(outside));
        }
    }
}
