//! Replies of the scripted server: what is said, and how the telling goes wrong.

use std::time::Duration;

use serde_json::{Value, json};

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

#[derive(Debug, Clone)]
pub(crate) struct Completion {
    text: String,
    calls: Vec<Call>,
    usage: Option<(u64, u64)>,
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
        Self::json(status, &json!({"error": {"message": message, "type": "scripted", "param": null, "code": null}}))
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
        let completion = Completion { text, calls, usage: None, step: 8, pause: Duration::ZERO, fault: None };
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

    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    fn with(mut self, change: impl FnOnce(&mut Completion)) -> Self {
        match &mut self.kind {
            Kind::Completion(completion) => change(completion),
            Kind::Raw { .. } => panic!("a raw reply has neither words nor frames: use Reply::text or Reply::calls"),
        }
        self
    }
}

impl Completion {
    fn finish(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }

    fn usage(&self, request_bytes: usize) -> Value {
        let (prompt, reply) = self.usage.unwrap_or_else(|| {
            let said: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
            (request_bytes as u64 / 4, (said + self.text.len()) as u64 / 4 + 1)
        });
        json!({"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply})
    }

    /// The payloads of the events, the closing mark not among them.
    pub(crate) fn frames(&self, request: &Value, request_bytes: usize) -> Vec<String> {
        let model = &request["model"];
        let frame = |choices: Value, usage: Value| {
            let mut frame = json!({
                "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model,
                "choices": choices,
            });
            if !usage.is_null() {
                frame["usage"] = usage;
            }
            frame.to_string()
        };
        let delta = |delta: Value, finish: Value| {
            frame(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), Value::Null)
        };

        let mut frames = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
        frames.extend(pieces(&self.text, self.step).map(|piece| delta(json!({"content": piece}), Value::Null)));
        for (index, call) in self.calls.iter().enumerate() {
            let opening = json!({"tool_calls": [{
                "index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""},
            }]});
            frames.push(delta(opening, Value::Null));
            frames.extend(pieces(&call.arguments, self.step).map(|piece| {
                delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), Value::Null)
            }));
        }
        frames.push(delta(json!({}), self.finish().into()));
        if request["stream_options"]["include_usage"] == true {
            frames.push(frame(json!([]), self.usage(request_bytes)));
        }
        frames
    }

    /// The same, in one piece.
    pub(crate) fn whole(&self, request: &Value, request_bytes: usize) -> Value {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|call| {
                json!({"id": call.id, "type": "function",
                       "function": {"name": call.name, "arguments": call.arguments}})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": self.text});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({
            "id": "chatcmpl-scripted", "object": "chat.completion", "created": 1_700_000_000, "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish()}],
            "usage": self.usage(request_bytes),
        })
    }
}

fn pieces(text: &str, step: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(step).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn frames(reply: &Reply, request: &Value) -> Vec<Value> {
        let Kind::Completion(completion) = &reply.kind else { panic!("no completion") };
        completion.frames(request, 400).iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
    }

    #[test]
    fn the_pieces_of_a_stream_add_up_to_what_was_scripted() {
        let arguments = json!({"path": "a long/päth.txt"});
        let reply = Reply::calls([Call::new("c1", "read_file", &arguments)]).saying("Grüße, a moment").in_steps_of(3);
        let frames = frames(&reply, &json!({"model": "m"}));
        let told =
            |pointer: &str| frames.iter().filter_map(|frame| frame.pointer(pointer)?.as_str()).collect::<String>();
        assert_eq!(told("/choices/0/delta/content"), "Grüße, a moment");
        assert_eq!(told("/choices/0/delta/tool_calls/0/function/arguments"), arguments.to_string());
        assert_eq!(told("/choices/0/finish_reason"), "tool_calls");
        assert!(frames.iter().all(|frame| frame.get("usage").is_none()));
    }

    #[test]
    fn usage_comes_in_a_last_frame_without_choices_if_it_was_asked_for() {
        let request = json!({"model": "m", "stream_options": {"include_usage": true}});
        let frames = frames(&Reply::text("hi").usage(7, 2), &request);
        let last = frames.last().unwrap();
        assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(9)));
    }
}
