//! The events of OpenAI's Responses API.
//!
//! A reply is a list of items: messages, reasoning and calls. An item is added, grows and is done; what it is when it is done
//! counts. `response.completed` or `response.incomplete` ends the reply; a stream without either is incomplete. Servers of
//! other vendors leave out events, numbers and ids.

use hermes_conversation::{Part, ProviderPayload, ToolCall, Usage};
use serde_json::{Value, json};

use super::{Assemble, Broken, MOST_CALLS, Progress, Slot, Unread, settle, settled};
use crate::{Delta, Finish, OnDelta, Reply, failure::Stated, usage};

/// Between two messages, and between the text of a message and its refusal.
const BETWEEN_WORDS: &str = "\n\n";
/// Phases of messages that accompany the work and are not the answer. They are shown like reasoning.
const ASIDES: &[&str] = &["commentary", "analysis"];
/// How many of the newest items an event may continue. Servers interleave a few items at most.
const REACH: usize = 64;

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    items: Vec<Item>,
    /// Calls so far, counted as they begin.
    calls: usize,
    text_begun: bool,
    reasoning_begun: bool,
    /// How it ended, before its calls are looked at.
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: Option<String>,
}

/// An item that has begun.
#[derive(Debug)]
struct Item {
    /// Its number and its id on the wire.
    index: Option<u64>,
    id: String,
    /// Nothing more of it follows.
    done: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Message(Message),
    Reasoning(Thought),
    Call(Slot),
}

#[derive(Debug, Default)]
struct Message {
    text: String,
    refusal: String,
    phase: Option<String>,
}

#[derive(Debug, Default)]
struct Thought {
    text: String,
    /// Which part of the item is arriving.
    part: Option<u64>,
    sealed: Option<ProviderPayload>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Call,
}

impl Kind {
    fn of(item: &Value) -> Option<Self> {
        match item.get("type")?.as_str()? {
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Reasoning),
            "function_call" => Some(Self::Call),
            // Tools that the provider runs itself, which are not requested.
            _ => None,
        }
    }

    fn begin(self) -> Content {
        match self {
            Self::Message => Content::Message(Message::default()),
            Self::Reasoning => Content::Reasoning(Thought::default()),
            Self::Call => Content::Call(Slot::default()),
        }
    }
}

impl Content {
    fn kind(&self) -> Kind {
        match self {
            Self::Message(_) => Kind::Message,
            Self::Reasoning(_) => Kind::Reasoning,
            Self::Call(_) => Kind::Call,
        }
    }
}

impl Message {
    fn is_aside(&self) -> bool {
        self.phase.as_deref().is_some_and(|phase| ASIDES.contains(&phase))
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        [self.text.as_str(), self.refusal.as_str()].into_iter().filter(|words| !words.trim().is_empty())
    }
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list of parts of one type, joined.
fn texts(parts: &Value, kind: &str, key: &str, separator: &str) -> String {
    let parts = parts.as_array().map_or(&[][..], Vec::as_slice).iter();
    let texts: Vec<&str> = parts.filter(|part| word(part, "type") == kind).map(|part| word(part, key)).collect();
    texts.join(separator)
}

impl Assembly {
    /// The item that an event continues, if it has begun and is not done. Numbers count more than ids, which some gateways
    /// change on the way.
    fn open(&self, kind: Kind, index: Option<u64>, id: &str) -> Option<usize> {
        let same = |item: &Item| match (item.index, index) {
            (Some(own), Some(other)) => own == other,
            _ => item.id.is_empty() || id.is_empty() || item.id == id,
        };
        let begun = |item: &Item| !item.done && item.content.kind() == kind && same(item);
        let newest = self.items.iter().rev().take(REACH).position(begun)?;
        Some(self.items.len() - 1 - newest)
    }

    /// The item of an event, begun where it is new.
    fn item(&mut self, kind: Kind, index: Option<u64>, id: &str) -> &mut Item {
        let at = self.open(kind, index, id).unwrap_or_else(|| {
            self.calls += usize::from(kind == Kind::Call);
            self.items.push(Item { index, id: id.to_owned(), done: false, content: kind.begin() });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn added(&mut self, index: Option<u64>, item: &Value, on_delta: OnDelta<'_>) {
        let Some(kind) = Kind::of(item) else { return };
        match &mut self.item(kind, index, word(item, "id")).content {
            Content::Message(message) => message.phase = phase(item),
            Content::Reasoning(_) => {}
            Content::Call(slot) => take_members(slot, item, on_delta),
        }
    }

    /// Takes an item as it is when it is done, and shows what was not shown yet.
    fn done_item(&mut self, index: Option<u64>, item: &Value, on_delta: OnDelta<'_>) {
        let Some(kind) = Kind::of(item) else { return };
        let id = word(item, "id");
        match kind {
            Kind::Message => self.done_message(index, item, on_delta),
            Kind::Reasoning => {
                let summary = texts(&item["summary"], "summary_text", "text", BETWEEN_WORDS);
                let words = if summary.is_empty() {
                    texts(&item["content"], "reasoning_text", "text", BETWEEN_WORDS)
                } else {
                    summary
                };
                let Content::Reasoning(thought) = &mut self.item(kind, index, id).content else { return };
                thought.sealed = sealed(item);
                if thought.text.is_empty() && !words.is_empty() {
                    self.think(index, id, None, &words, on_delta);
                }
            }
            Kind::Call => {
                let Content::Call(slot) = &mut self.item(kind, index, id).content else { return };
                take_members(slot, item, on_delta);
                slot.whole = !["in_progress", "incomplete"].contains(&word(item, "status"));
            }
        }
        self.item(kind, index, id).done = true;
    }

    fn done_message(&mut self, index: Option<u64>, item: &Value, on_delta: OnDelta<'_>) {
        let id = word(item, "id");
        let content = &item["content"];
        let (text, refusal) = (texts(content, "output_text", "text", ""), texts(content, "refusal", "refusal", ""));
        let Content::Message(message) = &mut self.item(Kind::Message, index, id).content else { return };
        message.phase = phase(item).or(message.phase.take());
        let unsaid = |said: &str, whole: &str| whole.strip_prefix(said).unwrap_or_default().to_owned();
        let (more, more_refusal) = (unsaid(&message.text, &text), unsaid(&message.refusal, &refusal));
        self.say(index, id, &more, false, on_delta);
        self.say(index, id, &more_refusal, true, on_delta);
        let Content::Message(message) = &mut self.item(Kind::Message, index, id).content else { return };
        if !text.is_empty() {
            message.text = text;
        }
        if !refusal.is_empty() {
            message.refusal = refusal;
        }
    }

    /// Adds to the text of a message, or to its refusal.
    fn say(&mut self, index: Option<u64>, id: &str, more: &str, refusing: bool, on_delta: OnDelta<'_>) {
        let Content::Message(message) = &mut self.item(Kind::Message, index, id).content else { return };
        if more.is_empty() {
            return;
        }
        let target = if refusing { &mut message.refusal } else { &mut message.text };
        let begins = target.is_empty();
        target.push_str(more);
        if message.is_aside() {
            self.show_reasoning(begins, more, on_delta);
            return;
        }
        // Behind the first call, text is an aside that would tear the display of calls apart.
        if self.calls == 0 {
            if begins && self.text_begun {
                on_delta(Delta::Text(BETWEEN_WORDS));
            }
            on_delta(Delta::Text(more));
        }
        self.text_begun = true;
    }

    /// Adds to reasoning. `part` is the number of the part of the item that grows.
    fn think(&mut self, index: Option<u64>, id: &str, part: Option<u64>, more: &str, on_delta: OnDelta<'_>) {
        let Content::Reasoning(thought) = &mut self.item(Kind::Reasoning, index, id).content else { return };
        if more.is_empty() {
            return;
        }
        let begins = thought.text.is_empty() || thought.part != part;
        if begins && !thought.text.is_empty() {
            thought.text.push_str(BETWEEN_WORDS);
        }
        thought.part = part;
        thought.text.push_str(more);
        self.show_reasoning(begins, more, on_delta);
    }

    fn show_reasoning(&mut self, begins: bool, more: &str, on_delta: OnDelta<'_>) {
        if begins && self.reasoning_begun {
            on_delta(Delta::Reasoning(BETWEEN_WORDS));
        }
        on_delta(Delta::Reasoning(more));
        self.reasoning_begun = true;
    }

    fn served(&mut self, response: &Value) {
        if self.model.is_none() {
            self.model = Some(word(response, "model")).filter(|model| !model.is_empty()).map(str::to_owned);
        }
    }

    /// Takes the state of the whole response.
    fn end(&mut self, response: &Value) {
        self.served(response);
        self.usage = response.get("usage").and_then(usage::read);
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        self.finish = Some(match (word(response, "status"), reason) {
            (_, Some("content_filter")) => Finish::Refused,
            ("incomplete" | "in_progress" | "queued", _) | (_, Some(_)) => Finish::Length,
            _ => Finish::Stop,
        });
    }

    fn said(&self) -> String {
        let messages = self.items.iter().filter_map(|item| match &item.content {
            Content::Message(message) if !message.is_aside() => Some(message),
            _ => None,
        });
        messages.flat_map(Message::words).collect::<Vec<_>>().join(BETWEEN_WORDS)
    }
}

fn phase(item: &Value) -> Option<String> {
    Some(word(item, "phase")).filter(|phase| !phase.is_empty()).map(str::to_owned)
}

/// Takes name, id and arguments of a call, as far as they are there.
fn take_members(slot: &mut Slot, item: &Value, on_delta: OnDelta<'_>) {
    if slot.name.is_empty() && !word(item, "name").is_empty() {
        on_delta(Delta::Call(word(item, "name")));
    }
    for (target, key) in [(&mut slot.id, "call_id"), (&mut slot.name, "name"), (&mut slot.arguments, "arguments")] {
        let value = word(item, key);
        if !value.is_empty() {
            value.clone_into(target);
        }
    }
}

/// A reasoning item as its provider takes it back: without its state, which the provider refuses. An item without sealed
/// content is known only to a provider that stores it.
fn sealed(item: &Value) -> Option<ProviderPayload> {
    item.get("encrypted_content").and_then(Value::as_str).filter(|content| !content.is_empty())?;
    let mut kept = item.as_object()?.clone();
    kept.retain(|key, value| key != "status" && !value.is_null());
    kept.entry("summary").or_insert_with(|| json!([]));
    Some(ProviderPayload::untagged(Value::Object(kept).to_string()))
}

/// What a server reports in place of a reply, or of the rest of one. Events have no status; a code that blames the request
/// counts as 400, any other as a failure of the server.
fn failure(event: &Value) -> Stated {
    let report = event.get("response").unwrap_or(event);
    let error = report.get("error").filter(|error| !error.is_null()).unwrap_or(report);
    let code = word(error, "code");
    let blames_request = code.starts_with("invalid_") || code.contains("image") || code == "data_residency_mismatch";
    match code {
        "rate_limit_exceeded" => Stated::from_value(429, report),
        _ if blames_request => Stated::from_value(400, report),
        _ => Stated::from_value(200, report),
    }
}

fn is_failed(response: &Value) -> bool {
    ["failed", "cancelled"].contains(&word(response, "status"))
        || response.get("error").is_some_and(|error| !error.is_null())
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        let index = event.get("output_index").and_then(Value::as_u64);
        let (id, delta) = (word(event, "item_id"), word(event, "delta"));
        let number = |key: &str| event.get(key).and_then(Value::as_u64);
        let response = event.get("response").unwrap_or(&Value::Null);
        match word(event, "type") {
            "response.created" | "response.in_progress" => self.served(response),
            "response.output_item.added" => self.added(index, &event["item"], on_delta),
            "response.output_text.delta" => self.say(index, id, delta, false, on_delta),
            "response.refusal.delta" => self.say(index, id, delta, true, on_delta),
            "response.reasoning_summary_text.delta" => self.think(index, id, number("summary_index"), delta, on_delta),
            "response.reasoning_text.delta" => self.think(index, id, number("content_index"), delta, on_delta),
            "response.function_call_arguments.delta" => {
                if let Content::Call(slot) = &mut self.item(Kind::Call, index, id).content {
                    slot.arguments.push_str(delta);
                }
            }
            "response.function_call_arguments.done" => {
                let open = self.open(Kind::Call, index, id).map(|at| &mut self.items[at].content);
                if let Some(Content::Call(slot)) = open {
                    take_members(slot, event, on_delta);
                    slot.whole = true;
                }
            }
            "response.output_item.done" => self.done_item(index, &event["item"], on_delta),
            "response.completed" | "response.incomplete" if !is_failed(response) => {
                // Some servers do not stream, and send everything in their only event.
                let items = response.get("output").and_then(Value::as_array).filter(|_| self.items.is_empty());
                for (index, item) in (0..).zip(items.into_iter().flatten()).take(MOST_CALLS + 1) {
                    self.done_item(Some(index), item, on_delta);
                }
                self.end(response);
                if word(event, "type") == "response.incomplete" && self.finish == Some(Finish::Stop) {
                    self.finish = Some(Finish::Length);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "error" => {
                return Err(failure(event));
            }
            _ if event.get("error").is_some_and(|error| !error.is_null()) => return Err(failure(event)),
            // Events of tools that the provider runs, and of later versions of the API.
            _ => {}
        }
        Ok(())
    }

    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread> {
        if is_failed(reply) {
            return Err(failure(reply).into());
        }
        let Some(items) = reply.get("output").and_then(Value::as_array) else {
            return Err(Unread::Lacks("output"));
        };
        for (index, item) in (0..).zip(items) {
            if self.calls > MOST_CALLS {
                break;
            }
            self.done_item(Some(index), item, on_delta);
        }
        self.end(reply);
        Ok(())
    }

    fn done(&mut self) {
        // Other wire formats end with it; this one does not.
    }

    fn progress(&self) -> Progress {
        if self.finish.is_some() { Progress::Over } else { Progress::Open }
    }

    fn calls(&self) -> usize {
        self.calls
    }

    fn into_text(self: Box<Self>) -> String {
        self.said()
    }

    fn finish(self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        let text = self.said();
        let Some(mut finish) = self.finish else {
            return Err(Broken::Cut { partial: text });
        };
        let mut thoughts: Vec<String> = Vec::new();
        let mut slots = Vec::new();
        let mut parts = Vec::new();
        for item in self.items {
            match item.content {
                Content::Message(message) => message.into_parts(&mut parts, &mut thoughts),
                Content::Reasoning(thought) => {
                    thoughts.extend(Some(thought.text.clone()).filter(|text| !text.is_empty()));
                    parts.push(Part::Reasoning { text: thought.text, payload: thought.sealed });
                }
                Content::Call(slot) => {
                    let call = ToolCall { id: slot.id.clone(), name: slot.name.clone(), arguments: String::new() };
                    parts.push(Part::ToolCall(call));
                    slots.push(slot);
                }
            }
        }
        let declined = parts.iter().any(|part| matches!(part, Part::Refusal { .. }));
        if finish == Finish::Stop && declined && slots.is_empty() {
            finish = Finish::Refused;
        }
        // A call that was begun and not finished must not run, whatever the server says of the whole.
        if finish == Finish::Stop && slots.iter().any(|slot| !slot.whole && !slot.name.is_empty()) {
            finish = Finish::Length;
        }
        let (tool_calls, finish) = settle(slots, finish, new_id)?;
        let parts = settled(parts, &tool_calls);
        Ok(Reply {
            text,
            reasoning: Some(thoughts.join(BETWEEN_WORDS)).filter(|reasoning| !reasoning.is_empty()),
            tool_calls,
            finish,
            usage: self.usage,
            model: self.model.unwrap_or_else(|| asked.to_owned()),
            parts,
        })
    }
}

impl Message {
    /// The parts of a message. Its phase, which the provider wants back, is an item of the provider before its words.
    fn into_parts(self, parts: &mut Vec<Part>, thoughts: &mut Vec<String>) {
        if self.is_aside() {
            let text = self.words().collect::<Vec<_>>().join(BETWEEN_WORDS);
            let item = json!({"type": "message", "role": "assistant", "content": text, "phase": self.phase});
            if !text.is_empty() {
                thoughts.push(text.clone());
                let payload = Some(ProviderPayload::untagged(item.to_string()));
                parts.push(Part::Reasoning { text, payload });
            }
            return;
        }
        if let Some(phase) = self.phase.as_ref().filter(|_| self.words().next().is_some()) {
            let item = json!({"type": "message", "phase": phase});
            parts.push(Part::Provider(ProviderPayload::untagged(item.to_string())));
        }
        if !self.text.trim().is_empty() {
            parts.push(Part::text(self.text));
        }
        if !self.refusal.trim().is_empty() {
            parts.push(Part::Refusal { text: self.refusal });
        }
    }
}

#[cfg(test)]
mod tests;
