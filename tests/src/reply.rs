//! Replies of the scripted server, and ways in which sending them fails.
//!
//! A script is independent of the API: the same reply is sent in the form that the request expects.

mod anthropic;
mod chat;
mod responses;

use std::time::Duration;

use serde_json::{Value, json};

use crate::wire::Wire;

/// A call by the scripted model.
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

/// An answer of the server. A completion is streamed or sent whole, as the request asks.
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

/// A fault instead of the frame with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing more is sent, and the connection stays open.
    Hang,
    /// The connection is closed.
    Disconnect,
}

/// What the usage says about the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counters {
    /// The state of the server's cache; without one, nothing was read or written.
    OfTheServer,
    /// Nothing.
    Missing,
    /// These numbers, independent of the state of the server's cache.
    Fixed { read: u64, written: u64 },
}

#[derive(Debug, Clone)]
pub(crate) struct Completion {
    /// Before the text: blocks of Anthropic's messages, items of `reasoning_details`, texts of `reasoning_content`, or items of
    /// the Responses API.
    reasoning: Vec<Value>,
    text: String,
    /// Whether the text is a refusal.
    refused: bool,
    /// Whether the output limit ends it.
    cut: bool,
    calls: Vec<Call>,
    /// The model that the reply names; without one, the model that was asked.
    model: Option<String>,
    usage: Option<(u64, u64)>,
    pub(crate) counters: Counters,
    /// Characters per frame.
    step: usize,
    pub(crate) pause: Duration,
    pub(crate) fault: Option<(usize, Fault)>,
}

impl Reply {
    /// A text, in frames of eight characters.
    pub fn text(text: impl Into<String>) -> Self {
        Self::completion(text.into(), Vec::new())
    }

    /// Tool calls without text.
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self::completion(String::new(), calls.into_iter().collect())
    }

    /// A refusal in these words.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self::text(text).with(|completion| completion.refused = true)
    }

    /// The same reply, ended by the output limit.
    pub fn cut(self) -> Self {
        self.with(|completion| completion.cut = true)
    }

    /// An error in the form of the official API.
    pub fn error(status: u16, message: &str) -> Self {
        Self { kind: Kind::Error { status, message: message.to_owned() }, headers: Vec::new() }
    }

    /// JSON, even for a streaming request.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::raw(status, "application/json", body.to_string())
    }

    /// A text, even for a streaming request.
    pub fn raw(status: u16, content_type: &'static str, body: impl Into<String>) -> Self {
        Self { kind: Kind::Raw { status, content_type, body: body.into() }, headers: Vec::new() }
    }

    fn completion(text: String, calls: Vec<Call>) -> Self {
        let (pause, counters) = (Duration::ZERO, Counters::OfTheServer);
        let (reasoning, refused, cut) = (Vec::new(), false, false);
        let (model, usage, step, fault) = (None, None, 8, None);
        let completion =
            Completion { reasoning, text, refused, cut, calls, model, usage, counters, step, pause, fault };
        Self { kind: Kind::Completion(completion), headers: Vec::new() }
    }

    /// Adds a text before the calls.
    pub fn saying(self, text: &str) -> Self {
        self.with(|completion| text.clone_into(&mut completion.text))
    }

    /// Adds reasoning before the text, in the form of the API that is asked: blocks of the types `thinking` and
    /// `redacted_thinking`, items of `reasoning_details`, texts of `reasoning_content`, or items of the type `reasoning`.
    pub fn thinking(self, reasoning: impl IntoIterator<Item = Value>) -> Self {
        self.with(|completion| completion.reasoning.extend(reasoning))
    }

    /// Names another model than was asked, as a router does.
    pub fn served_by(self, model: &str) -> Self {
        self.with(|completion| completion.model = Some(model.to_owned()))
    }

    /// Sets the characters of text or arguments per frame.
    pub fn in_steps_of(self, characters: usize) -> Self {
        self.with(|completion| completion.step = characters.max(1))
    }

    /// Pauses before each frame.
    pub fn every(self, pause: Duration) -> Self {
        self.with(|completion| completion.pause = pause)
    }

    /// Sets the tokens of prompt and reply. The default is a quarter of the bytes.
    pub fn usage(self, prompt: u64, reply: u64) -> Self {
        self.with(|completion| completion.usage = Some((prompt, reply)))
    }

    /// Sets the tokens read from a cache and written into it.
    pub fn cached(self, read: u64, written: u64) -> Self {
        self.with(|completion| completion.counters = Counters::Fixed { read, written })
    }

    /// Reports usage like a server that knows nothing about caches.
    pub fn without_cache_counters(self) -> Self {
        self.with(|completion| completion.counters = Counters::Missing)
    }

    /// Stops after so many frames, and keeps the connection open.
    pub fn hang_after(self, frames: usize) -> Self {
        self.with(|completion| completion.fault = Some((frames, Fault::Hang)))
    }

    /// Closes the connection after so many frames.
    pub fn disconnect_after(self, frames: usize) -> Self {
        self.with(|completion| completion.fault = Some((frames, Fault::Disconnect)))
    }

    /// Sets a header of the response.
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
    /// Tokens of the reply: a quarter of its bytes unless the script sets them.
    pub(crate) fn tokens(&self) -> u64 {
        let call_bytes: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        self.usage.map_or((call_bytes + self.text.len()) as u64 / 4 + 1, |(_, reply)| reply)
    }

    /// The model that the reply names.
    fn model(&self, request: &Value) -> Value {
        self.model.as_deref().map_or_else(|| request["model"].clone(), Value::from)
    }

    /// Whether the script sets the usage.
    pub(crate) fn has_usage(&self) -> bool {
        self.usage.is_some()
    }

    /// Tokens of the prompt: a quarter of the request's bytes unless the script sets them.
    pub(crate) fn prompt_tokens(&self, request_bytes: usize) -> u64 {
        self.usage.map_or(request_bytes as u64 / 4, |(prompt, _)| prompt)
    }

    /// The events of a stream, including the closing one.
    pub(crate) fn events(&self, wire: Wire, request: &Value, usage: &Value) -> Vec<String> {
        match wire {
            Wire::ChatCompletions => self.chat_events(request, usage),
            Wire::AnthropicMessages => self.anthropic_events(request, usage),
            Wire::Responses => self.responses_events(request, usage),
        }
    }

    /// The reply in one piece.
    pub(crate) fn whole(&self, wire: Wire, request: &Value, usage: &Value) -> Value {
        match wire {
            Wire::ChatCompletions => self.chat_whole(request, usage),
            Wire::AnthropicMessages => self.anthropic_whole(request, usage),
            Wire::Responses => self.responses_whole(request, usage),
        }
    }
}

/// An error in the form of an API.
pub(crate) fn refusal(wire: Wire, status: u16, message: &str) -> Value {
    match wire {
        Wire::ChatCompletions | Wire::Responses => {
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
