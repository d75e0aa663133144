//! Columns out of process: a command answers each request with the context that it would send, in JSON lines.
//!
//! `docs/develop/lab.md` describes the protocol. A command that dies, hangs or answers nonsense ends its own column with an error
//! and delays no other.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hermes_conversation::{Message, MessageId, Role, Shown, ToolCall, render};
use hermes_engine_trials::trace::Compaction;
use hermes_testkit::{StandIn, Written};
use serde::{Deserialize, Serialize};

use crate::context::{Block, Context, Publication};
use crate::replay::{Answer, Column, Due, Remains};
use crate::{LabError, Terms};

/// The most bytes of a line that a command may answer.
const LONGEST: u64 = 256 * 1024 * 1024;
/// The most summaries that a command may request within one request.
const SUMMARIES: usize = 100;
/// How many bytes at the end of its stderr an error quotes.
const STDERR_TAIL: usize = 600;

/// A column whose contexts come from a command.
pub struct External {
    name: String,
    session: String,
    stand_in: StandIn,
    timeout: Duration,
    process: Process,
    /// The messages of the log, for answers that refer to unchanged messages.
    logged: HashMap<MessageId, Message>,
    shown: HashMap<blake3::Hash, Arc<Block>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Question<'a> {
    Start { window: u32, fixed_tokens: u32, bytes_per_token: f64, session: &'a str },
    Request { now_ms: u64, new: Vec<Wire>, last_prompt_tokens: Option<u32> },
    Summary { text: Option<&'a str> },
    End,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Reply {
    Summarise {
        #[serde(default)]
        task: String,
        prompt: String,
    },
    Context {
        messages: Vec<Wire>,
        #[serde(default)]
        note: Option<String>,
    },
    Error {
        message: String,
    },
}

/// A message in the style of chat completions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Wire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<WireCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct WireCall {
    id: String,
    #[serde(default)]
    r#type: Function,
    function: WireFunction,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Function {
    #[default]
    Function,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct WireFunction {
    name: String,
    arguments: String,
}

impl Wire {
    fn of(message: &Message) -> Self {
        let call = |call: &ToolCall| WireCall {
            id: call.id.clone(),
            r#type: Function::Function,
            function: WireFunction { name: call.name.clone(), arguments: call.arguments.clone() },
        };
        let calls: Vec<WireCall> = message.tool_calls.iter().map(call).collect();
        Self {
            id: Some(message.id.0),
            role: Some(message.role),
            content: Some(message.text_sent().to_owned()),
            tool_calls: (!calls.is_empty()).then_some(calls),
            tool_call_id: message.tool_call_id.clone(),
            name: message.tool_name.clone(),
        }
    }
}

impl External {
    /// Starts a command. `timeout` limits the real time of each of its answers.
    ///
    /// # Errors
    ///
    /// [`LabError::Command`] if the command line cannot be parsed. A command that does not start is an error of the column
    /// at its first request.
    pub fn start(
        name: &str,
        command: &str,
        session: &str,
        terms: Terms,
        stand_in: StandIn,
        timeout: Duration,
    ) -> Result<Self, LabError> {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| LabError::Command { name: name.to_owned(), command: command.to_owned() })?;
        let external = Self {
            name: name.to_owned(),
            session: session.to_owned(),
            stand_in,
            timeout,
            process: Process::start(&words),
            logged: HashMap::new(),
            shown: HashMap::new(),
        };
        external.process.send(&Question::Start {
            window: terms.window,
            fixed_tokens: terms.fixed_tokens,
            bytes_per_token: terms.bytes_per_token,
            session: &external.session,
        });
        Ok(external)
    }

    /// The command's context, rendered as the host would render it.
    fn context(&mut self, messages: &[Wire], note: Option<String>) -> Result<Context, String> {
        let mut list = Vec::with_capacity(messages.len());
        for (at, wire) in messages.iter().enumerate() {
            list.push(self.message(wire).map_err(|why| format!("its message {at} {why}"))?);
        }
        let blocks = render::unrepaired(&list).into_iter().map(|shown| self.block(shown)).collect();
        let compaction =
            |reason| Compaction { by: self.name.clone(), reason, before: None, after: None, extra: BTreeMap::new() };
        let publication =
            note.map(|note| Publication { prepared: false, by_rule: false, compactions: vec![compaction(note)] });
        Ok(Context { blocks, publication })
    }

    fn message(&self, wire: &Wire) -> Result<Message, String> {
        let Some(role) = wire.role else {
            let id = wire.id.ok_or("has neither a role nor an id")?;
            let known = self.logged.get(&MessageId(id));
            return known.cloned().ok_or_else(|| format!("is an unchanged {id}, which was never told"));
        };
        if role == Role::System {
            return Err("is of the role `system`, which the fixed tokens stand for; leave it out".to_owned());
        }
        let calls = wire.tool_calls.iter().flatten().map(|call| ToolCall {
            id: call.id.clone(),
            name: call.function.name.clone(),
            arguments: call.function.arguments.clone(),
        });
        let mut draft = hermes_conversation::Draft::user(wire.content.clone().unwrap_or_default(), 0);
        draft.role = role;
        draft.tool_calls = calls.collect();
        draft.tool_call_id.clone_from(&wire.tool_call_id);
        draft.tool_name.clone_from(&wire.name);
        Ok(draft.numbered(MessageId(wire.id.unwrap_or(0))))
    }

    /// The same block for the same bytes, so that measures recognise unchanged messages.
    fn block(&mut self, shown: Shown) -> Arc<Block> {
        let block = Block::new(shown);
        Arc::clone(self.shown.entry(*block.hash()).or_insert_with(|| Arc::new(block)))
    }
}

impl Column for External {
    fn name(&self) -> &str {
        &self.name
    }

    fn request(&mut self, due: &Due<'_>) -> Result<Answer, String> {
        for message in due.new {
            self.logged.insert(message.id, message.clone());
        }
        let new = due.new.iter().map(Wire::of).collect();
        let question =
            Question::Request { now_ms: due.now_ms, new, last_prompt_tokens: due.last.map(|usage| usage.input) };
        self.process.send(&question);
        let until = Instant::now() + self.timeout;
        let mut summaries: Vec<Written> = Vec::new();
        loop {
            match self.process.receive(until, self.timeout)? {
                Reply::Context { messages, note } => {
                    return Ok(Answer { context: self.context(&messages, note)?, summaries, plans: None });
                }
                Reply::Summarise { prompt, .. } if summaries.len() < SUMMARIES => {
                    let written = self.stand_in.write(&prompt);
                    self.process.send(&Question::Summary { text: written.text.as_deref() });
                    summaries.push(written);
                }
                Reply::Summarise { task, .. } => {
                    return Err(format!("it asked for more than {SUMMARIES} summaries (`{task}`) for one request"));
                }
                Reply::Error { message } => return Err(format!("it gave up: {message}")),
            }
        }
    }

    fn finish(&mut self, _: &Due<'_>) -> Result<Remains, String> {
        self.process.send(&Question::End);
        Ok(Remains::default())
    }
}

/// A child process. Separate threads read and write its pipes, so that it cannot block the lab.
struct Process {
    child: Option<Child>,
    /// Why it did not start.
    start_error: Option<String>,
    input: Option<SyncSender<Vec<u8>>>,
    output: Receiver<Output>,
    stderr_tail: Arc<Mutex<Vec<u8>>>,
    /// The thread that reads stderr.
    stderr_reader: Option<JoinHandle<()>>,
}

enum Output {
    Line(Vec<u8>),
    TooLong,
    End,
}

impl Process {
    fn start(words: &[String]) -> Self {
        let (sender, output) = mpsc::sync_channel(4);
        let stderr_tail = Arc::new(Mutex::new(Vec::new()));
        let mut process = Self {
            child: None,
            start_error: None,
            input: None,
            output,
            stderr_tail: Arc::clone(&stderr_tail),
            stderr_reader: None,
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                process.start_error = Some(format!("`{}` does not start: {error}", words[0]));
                return process;
            }
        };
        let mut started = Vec::new();
        if let Some(mut stdin) = child.stdin.take() {
            // The queue never fills up: there is at most one open request at a time.
            let (input, lines) = mpsc::sync_channel::<Vec<u8>>(8);
            started.push(thread::Builder::new().spawn(move || {
                for line in lines {
                    if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            }));
            process.input = Some(input);
        }
        if let Some(stdout) = child.stdout.take() {
            started.push(thread::Builder::new().spawn(move || read_lines(BufReader::new(stdout), &sender)));
        }
        if let Some(mut stderr) = child.stderr.take() {
            let reader = thread::Builder::new().spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                    let Ok(mut tail) = stderr_tail.lock() else { return };
                    tail.extend_from_slice(&chunk[..length]);
                    let surplus = tail.len().saturating_sub(STDERR_TAIL);
                    tail.drain(..surplus);
                }
            });
            match reader {
                Ok(reader) => process.stderr_reader = Some(reader),
                Err(error) => started.push(Err(error)),
            }
        }
        if let Some(error) = started.into_iter().find_map(Result::err) {
            // Its end is not waited for here, but when the process is dropped.
            let _ = child.kill();
            process.start_error = Some(format!("the system starts no thread for `{}`: {error}", words[0]));
        }
        process.child = Some(child);
        process
    }

    /// Sends a line. A command that no longer reads is noticed when it does not answer.
    fn send(&self, question: &Question<'_>) {
        if let (Some(input), Ok(mut line)) = (&self.input, serde_json::to_vec(question)) {
            line.push(b'\n');
            let _ = input.try_send(line);
        }
    }

    fn receive(&mut self, until: Instant, timeout: Duration) -> Result<Reply, String> {
        if let Some(why) = &self.start_error {
            return Err(why.clone());
        }
        let line = match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Output::Line(line)) => line,
            Ok(Output::TooLong) => return Err(format!("it answered a line of more than {LONGEST} bytes")),
            Err(RecvTimeoutError::Timeout) => {
                let words = self.stderr_text();
                return Err(format!("it did not answer within {} s{words}", timeout.as_secs_f64()));
            }
            Ok(Output::End) | Err(RecvTimeoutError::Disconnected) => {
                let how = self.exit_status();
                let words = self.stderr_text();
                return Err(format!("it ended without an answer{how}{words}"));
            }
        };
        serde_json::from_slice(&line).map_err(|error| {
            let start: String = String::from_utf8_lossy(&line).chars().take(120).collect();
            format!("it answered a line that is not a reply of the protocol ({error}): {start}")
        })
    }

    /// The exit status, once stderr has been read. The child has closed its stdout, so that this is quick unless it lingers.
    fn exit_status(&mut self) -> String {
        let mut how = String::new();
        for _ in 0..100 {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                how = format!(" ({status})");
                if self.stderr_reader.as_ref().is_none_or(JoinHandle::is_finished) {
                    break;
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
        how
    }

    fn stderr_text(&self) -> String {
        let words = self.stderr_tail.lock().map(|words| String::from_utf8_lossy(&words).trim().to_owned());
        match words {
            Ok(words) if !words.is_empty() => format!("; its last words: {words}"),
            _ => String::new(),
        }
    }
}

fn read_lines(mut stdout: impl BufRead, sender: &SyncSender<Output>) {
    loop {
        let mut line = Vec::new();
        let output = match (&mut stdout).take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => Output::End,
            Ok(length) if length as u64 == LONGEST && line.last() != Some(&b'\n') => Output::TooLong,
            Ok(_) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(_) => Output::Line(line),
        };
        let goes_on = matches!(output, Output::Line(_));
        if sender.send(output).is_err() || !goes_on {
            return;
        }
    }
}

impl Drop for Process {
    /// Ends the child and the processes that it started.
    fn drop(&mut self) {
        self.input = None;
        let Some(mut child) = self.child.take() else { return };
        // After `end`, a child may end by itself.
        for _ in 0..20 {
            if let Ok(Some(_)) = child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        #[cfg(unix)]
        if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}
