//! Columns out of process: a command that answers each request with the context it would send, in JSON lines.
//!
//! The protocol is told in `docs/lab.md`. A command that dies, hangs or answers nonsense ends its column with an error;
//! it never holds up the others.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hermes_conversation::{Message, MessageId, Role, Shown, ToolCall, render};
use serde::{Deserialize, Serialize};

use crate::context::{Block, Context, Publication};
use crate::replay::{Answer, Column, Due, Remains};
use crate::summariser::{StandIn, Written};
use crate::{LabError, Terms};

/// Bytes of a line that a command may answer.
const LONGEST: u64 = 256 * 1024 * 1024;
/// Summaries that it may ask for within one request.
const SUMMARIES: usize = 100;
/// Bytes of its last words that an error quotes.
const LAST_WORDS: usize = 600;

/// A column that a command fills.
pub struct External {
    name: String,
    session: String,
    stand_in: StandIn,
    patience: Duration,
    process: Process,
    /// The log's messages as blocks, so that what is unchanged is not made again.
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
    /// Starts a command. `patience` bounds each of its answers, in real time.
    ///
    /// # Errors
    ///
    /// [`LabError::Command`] for a command line that cannot be taken apart; a command that does not start is an error of the
    /// column, told at its first request.
    pub fn start(
        name: &str,
        command: &str,
        session: &str,
        terms: Terms,
        stand_in: StandIn,
        patience: Duration,
    ) -> Result<Self, LabError> {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| LabError::Command { name: name.to_owned(), command: command.to_owned() })?;
        let external = Self {
            name: name.to_owned(),
            session: session.to_owned(),
            stand_in,
            patience,
            process: Process::start(&words),
            logged: HashMap::new(),
            shown: HashMap::new(),
        };
        external.process.say(&Question::Start {
            window: terms.window,
            fixed_tokens: terms.fixed_tokens,
            bytes_per_token: terms.bytes_per_token,
            session: &external.session,
        });
        Ok(external)
    }

    /// What the command sends, as the host would render it.
    fn context(&mut self, messages: &[Wire], note: Option<String>) -> Result<Context, String> {
        let mut list = Vec::with_capacity(messages.len());
        for (at, wire) in messages.iter().enumerate() {
            list.push(self.message(wire).map_err(|why| format!("its message {at} {why}"))?);
        }
        let blocks = render::unrepaired(&list).into_iter().map(|shown| self.block(shown)).collect();
        let publication = note.map(|note| Publication { prepared: false, by_rule: false, note });
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

    /// The same block for the same bytes, so that measures see at once what has not changed.
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
        self.process.say(&question);
        let until = Instant::now() + self.patience;
        let mut summaries: Vec<Written> = Vec::new();
        loop {
            match self.process.hear(until, self.patience)? {
                Reply::Context { messages, note } => {
                    return Ok(Answer { context: self.context(&messages, note)?, summaries });
                }
                Reply::Summarise { prompt, .. } if summaries.len() < SUMMARIES => {
                    let written = self.stand_in.write(&prompt);
                    self.process.say(&Question::Summary { text: written.text.as_deref() });
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
        self.process.say(&Question::End);
        Ok(Remains::default())
    }
}

/// A child whose ears and mouth have threads of their own, so that none of them can block the laboratory.
struct Process {
    child: Option<Child>,
    /// Why it did not start.
    stillborn: Option<String>,
    mouth: Option<SyncSender<Vec<u8>>>,
    ears: Receiver<Heard>,
    last_words: Arc<Mutex<Vec<u8>>>,
    /// Reads them.
    murmur: Option<JoinHandle<()>>,
}

enum Heard {
    Line(Vec<u8>),
    TooLong,
    Nothing,
}

impl Process {
    fn start(words: &[String]) -> Self {
        let (told, ears) = mpsc::sync_channel(4);
        let last_words = Arc::new(Mutex::new(Vec::new()));
        let mut process =
            Self { child: None, stillborn: None, mouth: None, ears, last_words: Arc::clone(&last_words), murmur: None };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                process.stillborn = Some(format!("`{}` does not start: {error}", words[0]));
                return process;
            }
        };
        if let Some(mut stdin) = child.stdin.take() {
            // Two requests at most wait to be read: more than one is never asked at a time.
            let (mouth, to_say) = mpsc::sync_channel::<Vec<u8>>(8);
            thread::spawn(move || {
                for line in to_say {
                    if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            });
            process.mouth = Some(mouth);
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || listen(BufReader::new(stdout), &told));
        }
        if let Some(mut stderr) = child.stderr.take() {
            process.murmur = Some(thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                    let Ok(mut words) = last_words.lock() else { return };
                    words.extend_from_slice(&chunk[..length]);
                    let surplus = words.len().saturating_sub(LAST_WORDS);
                    words.drain(..surplus);
                }
            }));
        }
        process.child = Some(child);
        process
    }

    /// A command that no longer listens is found out when it does not answer.
    fn say(&self, question: &Question<'_>) {
        if let (Some(mouth), Ok(mut line)) = (&self.mouth, serde_json::to_vec(question)) {
            line.push(b'\n');
            let _ = mouth.try_send(line);
        }
    }

    fn hear(&mut self, until: Instant, patience: Duration) -> Result<Reply, String> {
        if let Some(why) = &self.stillborn {
            return Err(why.clone());
        }
        let line = match self.ears.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Heard::Line(line)) => line,
            Ok(Heard::TooLong) => return Err(format!("it answered a line of more than {LONGEST} bytes")),
            Err(RecvTimeoutError::Timeout) => {
                let words = self.last_words();
                return Err(format!("it did not answer within {} s{words}", patience.as_secs_f64()));
            }
            Ok(Heard::Nothing) | Err(RecvTimeoutError::Disconnected) => {
                let how = self.death();
                let words = self.last_words();
                return Err(format!("it ended without an answer{how}{words}"));
            }
        };
        serde_json::from_slice(&line).map_err(|error| {
            let start: String = String::from_utf8_lossy(&line).chars().take(120).collect();
            format!("it answered what is no reply of the protocol ({error}): {start}")
        })
    }

    /// How it ended, once its last words are heard. It has closed its mouth, so that this takes no time unless it lingers.
    fn death(&mut self) -> String {
        let mut how = String::new();
        for _ in 0..100 {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                how = format!(" ({status})");
                if self.murmur.as_ref().is_none_or(JoinHandle::is_finished) {
                    break;
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
        how
    }

    fn last_words(&self) -> String {
        let words = self.last_words.lock().map(|words| String::from_utf8_lossy(&words).trim().to_owned());
        match words {
            Ok(words) if !words.is_empty() => format!("; its last words: {words}"),
            _ => String::new(),
        }
    }
}

fn listen(mut stdout: impl BufRead, told: &SyncSender<Heard>) {
    loop {
        let mut line = Vec::new();
        let heard = match (&mut stdout).take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => Heard::Nothing,
            Ok(length) if length as u64 == LONGEST && line.last() != Some(&b'\n') => Heard::TooLong,
            Ok(_) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(_) => Heard::Line(line),
        };
        let goes_on = matches!(heard, Heard::Line(_));
        if told.send(heard).is_err() || !goes_on {
            return;
        }
    }
}

impl Drop for Process {
    /// With all that it started.
    fn drop(&mut self) {
        self.mouth = None;
        let Some(mut child) = self.child.take() else { return };
        // One that was told the end may end by itself.
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
