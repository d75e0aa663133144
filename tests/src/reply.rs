//! Replies of the scripted server: what is said, and how the telling goes wrong.
//!
//! A script does not say by which API it is asked: the same reply is told in the shape that the request wants.

mod anthropic;
mod chat;

use std::time::Duration;

use serde_json::{Value, json};

use crate::wire::Wire;

/// A call that the scripted model makes.
#[derive(Debug, Clone)]
pub struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl Call {
    /// A call with arguments as a JSON object.
    pub fn new(id: &str, name: &str, arguments: &Value) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_string() }
    }
}

/// One answer of the server. A completion is sent as a stream or whole, as the request asks.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) kind: Kind,
    headers: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Completion(Completion),
    Error { status: u16, message: String },
    Raw { status: u16, content_type: &'static str, body: String },
}

/// What happens in place of the frame with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing more comes, and the connection stays open.
    Hang,
    /// The connection is cut.
    Disconnect,
}

/// What the usage says of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counters {
    /// What the server's cache does; where it has none, nothing was read or written.
    OfTheServer,
    /// Not a word.
    Missing,
    /// These, whatever the server's cache does.
    Told { read: u64, written: u64 },
}

#[derive(Debug, Clone)]
pub(crate) struct Completion {
    text: String,
    calls: Vec<Call>,
    usage: Option<(u64, u64)>,
    pub(crate) counters: Counters,
    /// Characters to a frame.
    step: usize,
    pub(crate) pause: Duration,
    pub(crate) fault: Option<(usize, Fault)>,
}

impl Reply {
    /// Words, in frames of eight characters.
    pub fn text(text: impl Into<String>) -> Self {
        Self::completion(text.into(), Vec::new())
    }

    /// Calls of tools, without words.
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self::completion(String::new(), calls.into_iter().collect())
    }

    /// A refusal, in the shape that the official API gives it.
    pub fn error(status: u16, message: &str) -> Self {
        Self { kind: Kind::Error { status, message: message.to_owned() }, headers: Vec::new() }
    }

    /// Any JSON, whatever the request asked for.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::raw(status, "application/json", body.to_string())
    }

    /// Any text, whatever the request asked for.
    pub fn raw(status: u16, content_type: &'static str, body: impl Into<String>) -> Self {
        Self { kind: Kind::Raw { status, content_type, body: body.into() }, headers: Vec::new() }
    }

    fn completion(text: String, calls: Vec<Call>) -> Self {
        let (pause, counters) = (Duration::ZERO, Counters::OfTheServer);
        let completion = Completion { text, calls, usage: None, counters, step: 8, pause, fault: None };
        Self { kind: Kind::Completion(completion), headers: Vec::new() }
    }

    /// Words before the calls.
    pub fn saying(self, text: &str) -> Self {
        self.with(|completion| text.clone_into(&mut completion.text))
    }

    /// Characters of text or arguments to a frame.
    pub fn in_steps_of(self, characters: usize) -> Self {
        self.with(|completion| completion.step = characters.max(1))
    }

    /// A pause before each frame.
    pub fn every(self, pause: Duration) -> Self {
        self.with(|completion| completion.pause = pause)
    }

    /// Tokens of prompt and reply; without this, a quarter of the bytes.
    pub fn usage(self, prompt: u64, reply: u64) -> Self {
        self.with(|completion| completion.usage = Some((prompt, reply)))
    }

    /// Tokens of the prompt that were read from a cache and written into it.
    pub fn cached(self, read: u64, written: u64) -> Self {
        self.with(|completion| completion.counters = Counters::Told { read, written })
    }

    /// Counts tokens as a server does that knows nothing of caches.
    pub fn without_cache_counters(self) -> Self {
        self.with(|completion| completion.counters = Counters::Missing)
    }

    /// Says nothing more after so many frames, and keeps the connection open.
    pub fn hang_after(self, frames: usize) -> Self {
        self.with(|completion| completion.fault = Some((frames, Fault::Hang)))
    }

    /// Cuts the connection after so many frames.
    pub fn disconnect_after(self, frames: usize) -> Self {
        self.with(|completion| completion.fault = Some((frames, Fault::Disconnect)))
    }

    /// A header of the response.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_headers_of(mut self, other: &Self) -> Self {
        self.headers.extend_from_slice(&other.headers);
        self
    }

    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    fn with(mut self, change: impl FnOnce(&mut Completion)) -> Self {
        match &mut self.kind {
            Kind::Completion(completion) => change(completion),
            Kind::Error { .. } | Kind::Raw { .. } => {
                panic!("a refusal or a raw reply has neither words nor frames: use Reply::text or Reply::calls")
            }
        }
        self
    }
}

impl Completion {
    /// Tokens of the reply, a quarter of its bytes unless the script says otherwise.
    pub(crate) fn tokens(&self) -> u64 {
        let said: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        self.usage.map_or((said + self.text.len()) as u64 / 4 + 1, |(_, reply)| reply)
    }

    /// Whether the script says what the reply is to be billed.
    pub(crate) fn has_usage(&self) -> bool {
        self.usage.is_some()
    }

    /// Tokens of the prompt, a quarter of the request's bytes unless the script says otherwise.
    pub(crate) fn prompt_tokens(&self, request_bytes: usize) -> u64 {
        self.usage.map_or(request_bytes as u64 / 4, |(prompt, _)| prompt)
    }

    /// The events of a stream as they go over the wire, the closing one among them.
    pub(crate) fn events(&self, wire: Wire, request: &Value, usage: &Value) -> Vec<String> {
        match wire {
            Wire::ChatCompletions => self.chat_events(request, usage),
            Wire::AnthropicMessages => self.anthropic_events(request, usage),
        }
    }

    /// The same, in one piece.
    pub(crate) fn whole(&self, wire: Wire, request: &Value, usage: &Value) -> Value {
        match wire {
            Wire::ChatCompletions => self.chat_whole(request, usage),
            Wire::AnthropicMessages => self.anthropic_whole(request, usage),
        }
    }
}

/// A refusal in the shape of an API.
pub(crate) fn refusal(wire: Wire, status: u16, message: &str) -> Value {
    match wire {
        Wire::ChatCompletions => {
            json!({"error": {"message": message, "type": "scripted", "param": null, "code": null}})
        }
        Wire::AnthropicMessages => {
            json!({"type": "error", "error": {"type": anthropic::error_type(status), "message": message}})
        }
    }
}

fn pieces(text: &str, step: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(step).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}
