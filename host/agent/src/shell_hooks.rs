//! Shell hooks: programs that `hooks` in `config.yaml` names. They get the events of hook plugins, and can stop a tool call as
//! those can.
//!
//! [`ShellHook`] is a checked entry of the configuration, and [`SessionHook`] one at work in a session. A hook runs with the
//! user's rights and without a sandbox, like the program of an MCP server, so no file of the workspace may be its program: the
//! model could have written it.

mod answer;
mod entry;
mod script;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hermes_capabilities::process::{End, OwnProgram};
use hermes_conversation::one_line_within;
use hermes_diagnostic::{Fix, Notice};
use hermes_plugin_host::{CallError, Event, Hooks, Identity, ToolEvent, Verdict};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::approval::is_interpreter;
use crate::report::NoticeSender;

pub use entry::{HookEntry, HookError, HookFlaw, ShellHook};

use answer::{Answer, Unheard};
use entry::HookMoment;

/// The name of shell hooks in questions and rules, in place of a plugin's.
pub const SHELL_HOOKS: &str = "hooks";

/// The most bytes of a hook's output.
const MOST_OUTPUT: usize = 1 << 20;
/// The most bytes that are kept of a hook's standard error.
const MOST_ERRORS: usize = 16 << 10;
/// Where programs are if `PATH` has no other folder.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The most bytes of a script that is read for what it starts.
const LONGEST_SCRIPT: u64 = 64 << 10;
/// The options of Python that are letters without a value.
const PYTHON_FLAGS: [char; 15] = ['b', 'B', 'd', 'E', 'i', 'I', 'O', 'P', 'q', 's', 'S', 'u', 'v', 'V', 'x'];
/// The most bytes of a command in a line that tells of its failure, and of the cause.
const SHOWN_COMMAND: usize = 100;
const SHOWN: usize = 500;

/// A hook of a session.
pub(crate) struct SessionHook {
    hook: ShellHook,
    session: String,
    workspace: PathBuf,
    home: PathBuf,
    notices: NoticeSender,
    /// Whether the user knows that some of its output has no effect.
    has_told: AtomicBool,
}

/// What a program wrote until it ended.
struct Ended {
    end: End,
    output: Vec<u8>,
    errors: String,
}

/// The hooks of a session.
pub(crate) fn of_session(
    hooks: &[ShellHook],
    session: &str,
    workspace: &Path,
    home: &Path,
    notices: &NoticeSender,
) -> Vec<Arc<dyn Hooks>> {
    let of_session = |hook: &ShellHook| {
        Arc::new(SessionHook {
            hook: hook.clone(),
            session: session.to_owned(),
            workspace: workspace.to_owned(),
            home: home.to_owned(),
            notices: notices.clone(),
            has_told: AtomicBool::new(false),
        }) as Arc<dyn Hooks>
    };
    hooks.iter().map(of_session).collect()
}

/// The hooks in approvals: an answer holds until one of them changes.
pub(crate) fn identity(hooks: &[ShellHook]) -> Identity {
    let mut hasher = blake3::Hasher::new();
    for hook in hooks {
        hasher.update(format!("{}\n", hook.described()).as_bytes());
    }
    Identity {
        name: SHELL_HOOKS.to_owned(),
        version: "config.yaml".to_owned(),
        digest: hasher.finalize().to_hex().to_string(),
        is_bundled: false,
    }
}

#[async_trait]
impl Hooks for SessionHook {
    fn name(&self) -> &str {
        SHELL_HOOKS
    }

    async fn interests(&self) -> Result<Vec<String>, CallError> {
        Ok(vec![self.hook.moment.name().to_owned()])
    }

    async fn on_event(&self, event: Event) -> Result<Verdict, CallError> {
        let tool = match &event {
            Event::BeforeTool(event) => Some(event.name.as_str()),
            Event::AfterTool(done) => Some(done.event.name.as_str()),
            Event::BeforeModel(_) | Event::AfterModel(_) | Event::Other(_) => None,
        };
        if tool.is_some_and(|tool| !self.hook.matches(tool)) {
            return Ok(Verdict::Proceed);
        }
        let Some(input) = self.input(event) else { return Ok(Verdict::Proceed) };
        let answer = match self.run(&input).await {
            Ok(ended) => {
                let guards = self.hook.moment == HookMoment::BeforeTool;
                let answer = answer::answer(ended.end, &ended.output, &ended.errors, self.hook.timeout, guards);
                // Only the output of a guard has to be understood.
                match answer {
                    Err(why) if ended.end == End::Exited(0) && !guards => {
                        Ok(Answer { verdict: Verdict::Proceed, unheard: Some(Unheard::Odd(why)) })
                    }
                    answer => self.explained(answer),
                }
            }
            Err(why) => Err(why),
        };
        Ok(match answer {
            Ok(answer) => self.decided(answer),
            Err(why) => self.failed(&why),
        })
    }
}

impl SessionHook {
    /// The decision of the hook. Words without effect are shown once in a session; a refusal that comes too late is shown each
    /// time.
    fn decided(&self, answer: Answer) -> Verdict {
        let is_before = self.hook.moment == HookMoment::BeforeTool;
        let moment = self.hook.moment.name();
        let tell = |what: &str| {
            let hook = one_line_within(&self.hook.written, SHOWN_COMMAND);
            self.notices
                .notice(Notice::new(format!("the hook `{hook}` {}", one_line_within(what, SHOWN)), Fix::none()));
        };
        match answer.verdict {
            Verdict::Block(why) | Verdict::Ask(why) if !is_before => {
                tell(&format!("objects, and a hook at `{moment}` decides nothing: {why}"));
                return Verdict::Proceed;
            }
            Verdict::Proceed => {}
            verdict => return verdict,
        }
        if let Some(what) = answer.unheard
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            let so = if is_before { "the call goes on" } else { "this has no effect" };
            tell(&format!("{what}; {so} (you are told once in a session)"));
        }
        Verdict::Proceed
    }

    /// The answer; a failure names the first line of a script that cannot work.
    fn explained(&self, answer: Result<Answer, String>) -> Result<Answer, String> {
        // Other interpreters than shells read lines of Windows.
        let program = self.hook.find();
        let is_shell = program.iter().any(|program| program.as_os_str().as_encoded_bytes().ends_with(b"sh"));
        let scripts = self.hook.arguments.iter().filter(|_| is_shell).map(|argument| self.workspace.join(argument));
        let flaw = || scripts.chain(program).find_map(|script| script::flaw(&script));
        answer.map_err(|why| match flaw() {
            Some(flaw) => format!("{why} ({flaw})"),
            None => why,
        })
    }

    /// Tells the user of a failure. A hook that could have stopped a call stops it: a rule that cannot be checked must not be
    /// skipped.
    fn failed(&self, why: &str) -> Verdict {
        let ShellHook { written, key, .. } = &self.hook;
        let stops = self.hook.moment == HookMoment::BeforeTool;
        // A long command must not hide the cause.
        let what = format!("the hook `{}` {}", one_line_within(written, SHOWN_COMMAND), one_line_within(why, SHOWN));
        let so = if stops { "; the call was not run" } else { "" };
        let fix = Fix::words(format!("correct it, or `{key}` in config.yaml"));
        self.notices.notice(Notice::new(format!("{what}{so}"), fix));
        match stops {
            true => {
                Verdict::Block(format!("{what}. Tell the user, and do not try to reach the same end in another way."))
            }
            false => Verdict::Proceed,
        }
    }

    /// What the program reads: the fields of hook plugins, under the names that hooks of other agents have.
    fn input(&self, event: Event) -> Option<Value> {
        let mut input = json!({
            "hook_event_name": self.hook.moment.name(),
            "session_id": self.session,
            "cwd": self.workspace.display().to_string(),
        });
        let more = match event {
            Event::BeforeTool(event) => of_tool(&event),
            Event::AfterTool(done) => {
                let mut more = of_tool(&done.event);
                more.insert("content".to_owned(), done.content.into());
                more.insert("failed".to_owned(), done.failed.into());
                more.insert("elapsed_ms".to_owned(), done.elapsed_ms.into());
                more
            }
            Event::BeforeModel(model) => members(json!({ "model": model })),
            Event::AfterModel(reply) => members(json!({
                "model": reply.model,
                "usage": {
                    "input": reply.usage.input,
                    "output": reply.usage.output,
                    "cache_read": reply.usage.cache_read,
                    "cache_write": reply.usage.cache_write,
                    "reasoning": reply.usage.reasoning,
                },
                "elapsed_ms": reply.elapsed_ms,
            })),
            Event::Other(_) => return None,
        };
        input.as_object_mut()?.extend(more);
        Some(input)
    }

    /// Runs the program to its end, or to its time limit. Dropping the future ends it with everything that it started.
    async fn run(&self, input: &Value) -> Result<Ended, String> {
        let ShellHook { arguments, timeout, .. } = &self.hook;
        let environment = self.environment();
        let program =
            self.hook.find_in(&environment).ok_or("was not found (folders of PATH in the workspace do not count)")?;
        if let Some(file) = self.changeable(&program) {
            let file = file.display();
            return Err(format!(
                "is not started: {file} is in the workspace, where the model may change it; move it elsewhere"
            ));
        }
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let begun = OwnProgram::talk(program.as_os_str(), &arguments, &self.workspace, environment, None).await;
        let mut running = begun.map_err(|error| match script::flaw_of_unstarted(&program) {
            Some(flaw) => format!("cannot be started: {flaw} ({error})"),
            None => format!("cannot be started: {error}"),
        })?;
        let (pipe, output, errors) = (running.input.take(), running.output.take(), running.errors.take());
        let input = input.to_string();
        let feed = async move {
            if let Some(mut pipe) = pipe {
                // A hook may end without reading all input, which breaks the pipe.
                let _ = pipe.write_all(input.as_bytes()).await;
            }
        };
        let done = async {
            let (end, output, errors, ()) =
                tokio::join!(running.ended(), read(output, MOST_OUTPUT), read(errors, MOST_ERRORS), feed);
            (end, output, errors)
        };
        let done = tokio::time::timeout(*timeout, done).await;
        running.end().await;
        let Ok((end, (output, is_cut), (errors, _))) = done else {
            return Ok(Ended { end: End::TimedOut, output: Vec::new(), errors: String::new() });
        };
        if is_cut {
            return Err(format!("wrote more than {} KiB", MOST_OUTPUT >> 10));
        }
        let end = end.map_err(|error| format!("ended in a way that is unknown: {error}"))?;
        Ok(Ended { end, output, errors: String::from_utf8_lossy(&errors).into_owned() })
    }

    /// The variables of the program. Nothing that it starts by a name, such as `jq` in a script or the interpreter that `env` looks up,
    /// comes from the workspace: an activated virtual environment of Python would be in `PATH`.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.hook.environment.clone();
        for (_, value) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
            let folders = std::env::split_paths(value).filter(|folder| {
                let real = folder.canonicalize();
                // An entry that is relative depends on the folder that a program runs in.
                folder.is_absolute()
                    && ![Some(folder.clone()), real.ok()].iter().flatten().any(|path| self.is_changeable(path))
            });
            // An empty variable would stand for the current folder.
            let joined = std::env::join_paths(folders).ok().filter(|joined| !joined.is_empty());
            *value = joined.unwrap_or_else(|| USUAL_PATH.into());
        }
        // A hook is often a script of a shell, or hands one to a shell.
        let scripts = self.hook.arguments.iter().map(|argument| self.workspace.join(argument));
        let scripts = scripts.chain(self.hook.find_in(&environment));
        // A script of Python finds the modules beside it, and not those of the current folder.
        let scripts = scripts.filter(|script| script.extension().is_none_or(|end| end != "py"));
        let scripts = scripts.filter_map(|script| hermes_private_files::read_text(&script, LONGEST_SCRIPT).ok());
        let is_of_python = |script: &String| script.lines().next().is_some_and(|line| line.contains("python"));
        let mut scripts = scripts.filter(|script| !is_of_python(script));
        if has_python_of_folder(&self.hook.written) || scripts.any(|script| has_python_of_folder(&script)) {
            environment.push(("PYTHONSAFEPATH".into(), "1".into()));
        }
        environment
    }

    /// The part of the program that the model may have written: the file itself, an interpreter in a first line, or the script of an
    /// interpreter.
    fn changeable(&self, program: &Path) -> Option<PathBuf> {
        let real = program.canonicalize().ok()?;
        let names = [program, &real].map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        let scripts = self.hook.arguments.iter().filter(|_| names.iter().any(|name| is_interpreter(name)));
        let scripts = scripts.filter_map(|script| self.workspace.join(script).canonicalize().ok());
        let files = [real.clone()].into_iter().chain(scripts.filter(|script| script.is_file()));
        let mut files = files.flat_map(|file| interpreters(&file, &self.workspace).into_iter().chain([file]));
        files.find(|file| self.is_changeable(file))
    }

    /// Whether the model may have written a file. Neither file tools nor confined programs write in the home.
    fn is_changeable(&self, file: &Path) -> bool {
        let home = self.home.canonicalize();
        self.workspace.canonicalize().is_ok_and(|workspace| file.starts_with(workspace))
            && !home.is_ok_and(|home| file.starts_with(home))
    }
}

/// Whether a command starts Python so that it looks for modules in the current folder, as it does unless it runs a script.
fn has_python_of_folder(command: &str) -> bool {
    let words = command.split(|c: char| c.is_whitespace() || "'\"".contains(c));
    // `-c` and `-m` may be behind other letters, and before their text: `-Bmjson`.
    let is_of_folder = |word: &str| {
        word.strip_prefix('-').is_some_and(|rest| rest.trim_start_matches(PYTHON_FLAGS).starts_with(['c', 'm']))
    };
    words.skip_while(|word| !word.contains("python")).any(is_of_folder)
}

/// The files that the first line of a script names, its interpreter first; of an interpreter that is a script the same.
fn interpreters(script: &Path, folder: &Path) -> Vec<PathBuf> {
    /// The system reads no more of a line, and follows no more interpreters.
    const LINE: u64 = 256;
    const DEEPEST: usize = 5;
    let mut found: Vec<PathBuf> = Vec::new();
    let mut next = Some(script.to_owned());
    while let Some(script) = next.take_if(|_| found.len() < DEEPEST) {
        let mut line = Vec::new();
        // A program that is no script has no such line, and one that cannot be read does not start.
        let file = hermes_private_files::open_regular(&script);
        let _ = file.and_then(|file| std::io::Read::read_to_end(&mut std::io::Read::take(file, LINE), &mut line));
        let line = line.split(|byte| *byte == b'\n').next().and_then(|line| line.strip_prefix(b"#!"));
        let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
        let mut named = line.split_whitespace().map(|named| folder.join(named).canonicalize().ok());
        next = named.next().flatten();
        found.extend(next.iter().cloned().chain(named.flatten().filter(|file| file.is_file())));
    }
    found
}

fn of_tool(event: &ToolEvent) -> Map<String, Value> {
    let arguments: Value = serde_json::from_str(&event.arguments).unwrap_or_else(|_| event.arguments.clone().into());
    members(json!({
        "tool_name": event.name,
        "tool_input": arguments,
        "call_id": event.call_id,
        "plugin": event.plugin,
    }))
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Reads to the end, and keeps this many bytes. Also returns whether there were more.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> (Vec<u8>, bool) {
    let (mut kept, mut is_cut) = (Vec::new(), false);
    let Some(mut pipe) = pipe else { return (kept, is_cut) };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let room = most - kept.len();
        is_cut |= count > room;
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
    (kept, is_cut)
}

/// Seconds, for a message.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
