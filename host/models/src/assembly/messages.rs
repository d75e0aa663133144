//! The events of Anthropic's messages.
//!
//! Blocks are numbered, started, filled and closed. `message_stop` ends the reply; a stream without it is incomplete. Servers of
//! other vendors leave out events, so the first event of a block starts it.

use std::collections::BTreeMap;

use hermes_conversation::{Part, ProviderPayload, ToolCall};
use serde_json::{Map, Value};

use super::{Assemble, Broken, MOST_CALLS, Progress, Slot, Unread, settle, settled};
use crate::{Delta, Echo, Finish, OnDelta, Reply, failure::Stated, usage, wire::messages::REPLY_TOOL};

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    blocks: BTreeMap<u64, Block>,
    /// What was shown, or would have been before the first call.
    text_begun: bool,
    reasoning_begun: bool,
    /// Calls so far, counted as they begin.
    calls: usize,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
    model: Option<String>,
    ended: bool,
    /// The reply is the input of the one tool that was offered for it.
    formed: bool,
    /// Whether the provider demands reasoning back that it has not signed.
    demanded: bool,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Thinking(Thought),
    /// Reasoning that only the provider can read: the block as it came.
    Redacted(String),
    Call(Slot),
    /// Of a kind that is neither shown nor kept.
    Other,
}

/// A block of reasoning that can be read.
#[derive(Debug, Default)]
struct Thought {
    /// The block as it began.
    block: Map<String, Value>,
    text: String,
    signature: String,
}

impl Thought {
    /// The block as the provider takes it back. Most refuse one without a signature; others sign nothing and demand every block.
    fn payload(mut self, demanded: bool) -> Option<ProviderPayload> {
        if self.signature.is_empty() && !demanded {
            return None;
        }
        self.block.insert("type".to_owned(), "thinking".into());
        self.block.insert("thinking".to_owned(), self.text.into());
        if self.signature.is_empty() {
            self.block.remove("signature");
        } else {
            self.block.insert("signature".to_owned(), self.signature.into());
        }
        Some(ProviderPayload::untagged(Value::Object(self.block).to_string()))
    }
}

impl Assembly {
    /// For a reply; `formed` where it was asked for in a form of its own.
    pub(crate) fn new(formed: bool) -> Self {
        Self { formed, ..Self::default() }
    }

    /// The same for a provider that wants this reasoning back.
    pub(crate) fn echoing(self, echo: Echo) -> Self {
        Self { demanded: echo.demanded, ..self }
    }

    fn begin(&mut self, index: u64, block: &Value, on_delta: OnDelta<'_>) {
        let word = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match word("type") {
            "text" => {
                self.blocks.insert(index, Block::Text(String::new()));
                self.text(index, word("text"), on_delta);
            }
            "thinking" => {
                let begun = Thought { block: block.as_object().cloned().unwrap_or_default(), ..Thought::default() };
                self.blocks.insert(index, Block::Thinking(begun));
                self.thinking(index, word("thinking"), on_delta);
                self.sign(index, word("signature"));
            }
            "redacted_thinking" => {
                self.blocks.insert(index, Block::Redacted(block.to_string()));
            }
            "tool_use" => {
                // Streams begin with an empty object. Servers that do not stream the input send it here.
                let input = block.get("input").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
                let arguments = input.map(Value::to_string).unwrap_or_default();
                let slot = Slot { id: word("id").to_owned(), name: word("name").to_owned(), ..Slot::default() };
                self.calls += 1;
                if !self.formed && !slot.name.is_empty() {
                    on_delta(Delta::Call(&slot.name));
                }
                self.blocks.insert(index, Block::Call(slot));
                self.input(index, &arguments, on_delta);
            }
            _ => {
                self.blocks.insert(index, Block::Other);
            }
        }
    }

    fn text(&mut self, index: u64, more: &str, on_delta: OnDelta<'_>) {
        let Block::Text(text) = self.blocks.entry(index).or_insert_with(|| Block::Text(String::new())) else { return };
        if more.is_empty() {
            return;
        }
        // Behind the first call, text is an aside that would tear the display of calls apart.
        if self.calls == 0 && !self.formed {
            if text.is_empty() && self.text_begun {
                on_delta(Delta::Text("\n"));
            }
            on_delta(Delta::Text(more));
        }
        self.text_begun = true;
        text.push_str(more);
    }

    fn thinking(&mut self, index: u64, more: &str, on_delta: OnDelta<'_>) {
        let Block::Thinking(thought) = thought(&mut self.blocks, index) else { return };
        if more.is_empty() {
            return;
        }
        if thought.text.is_empty() && self.reasoning_begun {
            on_delta(Delta::Reasoning("\n\n"));
        }
        on_delta(Delta::Reasoning(more));
        self.reasoning_begun = true;
        thought.text.push_str(more);
    }

    fn sign(&mut self, index: u64, more: &str) {
        if let Block::Thinking(thought) = thought(&mut self.blocks, index) {
            thought.signature.push_str(more);
        }
    }

    fn input(&mut self, index: u64, more: &str, on_delta: OnDelta<'_>) {
        // A call without a start has no name, so that the reply is invalid.
        let calls = &mut self.calls;
        let begin = || {
            *calls += 1;
            Block::Call(Slot::default())
        };
        let Block::Call(slot) = self.blocks.entry(index).or_insert_with(begin) else { return };
        if self.formed && !more.is_empty() {
            on_delta(Delta::Text(more));
        }
        slot.arguments.push_str(more);
    }

    fn count(&mut self, usage: Option<&Value>) {
        for (key, value) in usage.and_then(Value::as_object).into_iter().flatten() {
            // Later events repeat the counts, some of them as zero or null.
            let counts = value.as_f64().is_some_and(|count| count > 0.0) || value.is_object();
            if counts || !self.usage.contains_key(key) {
                self.usage.insert(key.clone(), value.clone());
            }
        }
    }

    fn stop(&mut self, reason: Option<&Value>) {
        if let Some(reason) = reason.and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    fn served(&mut self, model: Option<&Value>) {
        if self.model.is_none() {
            self.model = model.and_then(Value::as_str).filter(|model| !model.is_empty()).map(str::to_owned);
        }
    }

    fn texts(&self) -> String {
        let texts = self.blocks.values().filter_map(|block| match block {
            Block::Text(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The block of reasoning with this number, begun where it is new.
fn thought(blocks: &mut BTreeMap<u64, Block>, index: u64) -> &mut Block {
    blocks.entry(index).or_insert_with(|| Block::Thinking(Thought::default()))
}

fn is_error(event: &Value) -> bool {
    event.get("type").and_then(Value::as_str) == Some("error")
        || event.get("error").is_some_and(|error| !error.is_null())
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        if is_error(event) {
            return Err(Stated::from_value(200, event));
        }
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => {
                self.served(event.pointer("/message/model"));
                self.count(event.pointer("/message/usage"));
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    self.begin(index, block, on_delta);
                }
            }
            "content_block_delta" => {
                let word = |key: &str| event.pointer(key).and_then(Value::as_str).unwrap_or_default();
                match word("/delta/type") {
                    "text_delta" => self.text(index, word("/delta/text"), on_delta),
                    "signature_delta" => self.sign(index, word("/delta/signature")),
                    "thinking_delta" => self.thinking(index, word("/delta/thinking"), on_delta),
                    "input_json_delta" => self.input(index, word("/delta/partial_json"), on_delta),
                    _ => {}
                }
            }
            "content_block_stop" => {
                if let Some(Block::Call(slot)) = self.blocks.get_mut(&index) {
                    slot.whole = true;
                }
            }
            "message_delta" => {
                self.stop(event.pointer("/delta/stop_reason"));
                self.count(event.get("usage"));
            }
            "message_stop" => self.ended = true,
            // Pings, and events of later versions of the API.
            _ => {}
        }
        Ok(())
    }

    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread> {
        if is_error(reply) {
            return Err(Stated::from_value(200, reply).into());
        }
        let Some(blocks) = reply.get("content").and_then(Value::as_array) else {
            return Err(Unread::Lacks("content"));
        };
        self.served(reply.get("model"));
        for (index, block) in (0..).zip(blocks) {
            if self.calls > MOST_CALLS {
                break;
            }
            self.begin(index, block, on_delta);
            if let Some(Block::Call(slot)) = self.blocks.get_mut(&index) {
                slot.whole = true;
            }
        }
        self.stop(reply.get("stop_reason"));
        self.count(reply.get("usage"));
        self.ended = true;
        Ok(())
    }

    fn done(&mut self) {
        // Other wire formats end with it; this one does not.
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Over } else { Progress::Open }
    }

    fn calls(&self) -> usize {
        self.calls
    }

    fn into_text(self: Box<Self>) -> String {
        self.texts()
    }

    fn finish(self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        let mut text = self.texts();
        if !self.ended {
            return Err(Broken::Cut { partial: text });
        }
        let finish = match self.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::Refused,
            _ => Finish::Stop,
        };
        let mut thoughts: Vec<String> = Vec::new();
        let mut slots = Vec::new();
        let mut parts = Vec::new();
        for block in self.blocks.into_values() {
            match block {
                Block::Thinking(thought) => {
                    let text = thought.text.clone();
                    if !text.is_empty() {
                        thoughts.push(text.clone());
                    }
                    parts.push(Part::Reasoning { text, payload: thought.payload(self.demanded) });
                }
                Block::Redacted(block) => {
                    let payload = Some(ProviderPayload::untagged(block));
                    parts.push(Part::Reasoning { text: String::new(), payload });
                }
                Block::Text(text) if !text.is_empty() && finish == Finish::Refused => {
                    parts.push(Part::Refusal { text });
                }
                Block::Text(text) if !text.is_empty() => parts.push(Part::text(text)),
                Block::Call(slot) => {
                    let call = ToolCall { id: slot.id.clone(), name: slot.name.clone(), arguments: String::new() };
                    parts.push(Part::ToolCall(call));
                    slots.push(slot);
                }
                Block::Text(_) | Block::Other => {}
            }
        }
        let (mut tool_calls, mut finish) = settle(slots, finish, new_id)?;
        // The calls of a formed reply become its text.
        let parts = if self.formed { Vec::new() } else { settled(parts, &tool_calls) };
        if self.formed && tool_calls.first().is_some_and(|call| call.name == REPLY_TOOL) {
            text = tool_calls.swap_remove(0).arguments;
            tool_calls.clear();
            if finish == Finish::ToolCalls {
                finish = Finish::Stop;
            }
        }
        Ok(Reply {
            text,
            reasoning: Some(thoughts.join("\n\n")).filter(|reasoning| !reasoning.is_empty()),
            tool_calls,
            finish,
            usage: usage::read_messages(&Value::Object(self.usage)),
            model: self.model.unwrap_or_else(|| asked.to_owned()),
            parts,
        })
    }
}

#[cfg(test)]
mod tests;
