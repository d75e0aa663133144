//! The events of OpenAI's Responses API.
//!
//! A reply is a list of items: messages, reasoning and calls. An item is added, grows and is done; what it is when it is done
//! counts. Servers of other vendors leave out events, numbers and ids, or give all items one number.
//!
//! When a reply is whole:
//!
//! - `response.completed`, `response.incomplete` or `response.done` ends it. The list of items in this event counts for what was not sent
//!   before it.
//! - Any other end breaks it off, `[DONE]` too. A call that was begun and never done is cut, whatever the end says.

use std::collections::VecDeque;

use hermes_conversation::{Part, ProviderPayload, ToolCall, Usage};
use serde_json::{Map, Value, json};

use super::inline::{Inline, Piece};
use super::reason::Ending;
use super::{
    Assemble, Broken, MOST_CALLS, Progress, Slot, Unread, arguments, items, joined_thoughts, number, settle,
    without_thinking, word,
};
use crate::failure::{
    Stated,
    complaint::{Place, complaint},
};
use crate::{Delta, Finish, OnDelta, Reply, usage};

/// Between two messages, and between the text of a message and its refusal.
const BETWEEN_WORDS: &str = "\n\n";
/// Phases of messages that accompany the work and are not the answer. They are shown like reasoning.
const ASIDES: &[&str] = &["commentary", "analysis"];
/// Numbers of items in the list of a whole response, which no event has.
const LISTED: u64 = 1 << 40;
/// How many of the newest items an event may continue. Servers interleave a few items at most.
const REACH: usize = 64;

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    items: Vec<Item>,
    /// Finds thinking in the text.
    inline: Inline,
    /// Calls so far, counted as they begin.
    calls: usize,
    text_begun: bool,
    reasoning_begun: bool,
    /// How it ended, before its calls are looked at.
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: Option<String>,
    /// It arrives in events, whose types say what ended.
    is_streamed: bool,
}

/// An item that has begun.
#[derive(Debug)]
struct Item {
    /// Its number and its id on the wire.
    index: Option<u64>,
    id: String,
    /// Nothing more of it follows.
    done: bool,
    /// Another item was begun at its number: only its id leads to it.
    is_passed: bool,
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
    /// The text as it was sent.
    said: String,
    /// The text without the thinking in it.
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

/// The word of a member, without a copy.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list of parts of some types, joined. Servers of other vendors send a text in place of the list.
fn texts(parts: &Value, kinds: &[&str], key: &str, separator: &str) -> String {
    if let Some(whole) = parts.as_str().filter(|_| key == "text") {
        return whole.to_owned();
    }
    let parts = items(Some(parts)).iter().filter(|part| kinds.contains(&text(part, "type")));
    let texts: Vec<&str> = parts.map(|part| text(part, key)).collect();
    texts.join(separator)
}

/// The types of parts that are text.
const TEXTS: &[&str] = &["output_text", "text"];

impl Assembly {
    /// The item that an event continues, if it has begun and is not done. Numbers count more than ids, which some gateways
    /// change on the way.
    fn open(&self, kind: Kind, index: Option<u64>, id: &str) -> Option<usize> {
        let same = |item: &Item| match (item.index, index) {
            (Some(own), Some(other)) => own == other,
            _ => item.id.is_empty() || id.is_empty() || item.id == id,
        };
        let newest = self.items.iter().enumerate().rev().take(REACH);
        let begun = |(_, item): &(usize, &Item)| !item.done && item.content.kind() == kind && same(item);
        let mut begun = newest.filter(begun);
        // Where all items have one number, the id tells them apart.
        let by_id = begun.clone().find(|(_, item)| !id.is_empty() && item.id == id);
        let by_number = begun.clone().find(|(_, item)| !item.is_passed && item.index.is_some() && item.index == index);
        by_id.or(by_number).or_else(|| begun.find(|(_, item)| !item.is_passed)).map(|(at, _)| at)
    }

    /// The item of an event, begun where it is new.
    fn item(&mut self, kind: Kind, index: Option<u64>, id: &str) -> &mut Item {
        let at = self.open(kind, index, id).unwrap_or_else(|| {
            self.calls += usize::from(kind == Kind::Call);
            self.items.push(Item { index, id: id.to_owned(), done: false, is_passed: false, content: kind.begin() });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn added(&mut self, index: Option<u64>, item: &Value, on_delta: OnDelta<'_>) {
        let Some(kind) = Kind::of(item) else { return };
        let id = word(item, "id");
        // An item that is added while another one at its number is open is not the same.
        if let Some(at) = self.open(kind, index, &id) {
            let open = &mut self.items[at];
            let is_other = !id.is_empty() && !open.id.is_empty() && open.id != id;
            open.is_passed |= match &open.content {
                Content::Message(message) => is_other && message.words().next().is_some(),
                Content::Reasoning(thought) => is_other && !thought.text.is_empty(),
                Content::Call(slot) => {
                    let call = word(item, "call_id");
                    let is_same = (!id.is_empty() && open.id == id) || (!call.is_empty() && slot.id == call);
                    !is_same && !slot.name.is_empty()
                }
            };
        }
        match &mut self.item(kind, index, &id).content {
            Content::Message(message) => message.phase = phase(item),
            Content::Reasoning(_) => {}
            Content::Call(slot) => take_members(slot, item, on_delta),
        }
    }

    /// Takes an item as it is when it is done, and shows what was not shown yet.
    fn done_item(&mut self, index: Option<u64>, item: &Value, on_delta: OnDelta<'_>) {
        let Some(kind) = Kind::of(item) else { return };
        let (id, is_streamed) = (&word(item, "id"), self.is_streamed);
        match kind {
            Kind::Message => self.done_message(index, item, on_delta),
            Kind::Reasoning => {
                let summary = texts(&item["summary"], &["summary_text"], "text", BETWEEN_WORDS);
                let words = if summary.is_empty() {
                    texts(&item["content"], &["reasoning_text", "text"], "text", BETWEEN_WORDS)
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
                // Some servers leave the status as it was in the beginning: then the arguments tell.
                slot.whole = match text(item, "status") {
                    "incomplete" => false,
                    "in_progress" => is_streamed && is_object(&slot.arguments),
                    _ => true,
                };
            }
        }
        self.item(kind, index, id).done = true;
    }

    fn done_message(&mut self, index: Option<u64>, item: &Value, on_delta: OnDelta<'_>) {
        let id = &word(item, "id");
        let content = &item["content"];
        let (text, refusal) = (texts(content, TEXTS, "text", ""), texts(content, &["refusal"], "refusal", ""));
        let Content::Message(message) = &mut self.item(Kind::Message, index, id).content else { return };
        message.phase = phase(item).or(message.phase.take());
        let unsaid = |said: &str, whole: &str| whole.strip_prefix(said).unwrap_or_default().to_owned();
        let (more, more_refusal) = (unsaid(&message.said, &text), unsaid(&message.refusal, &refusal));
        let is_changed = more.is_empty() && !text.is_empty() && text != message.said;
        self.say(index, id, &more, false, on_delta);
        self.say(index, id, &more_refusal, true, on_delta);
        let Content::Message(message) = &mut self.item(Kind::Message, index, id).content else { return };
        // What it is when it is done counts.
        if is_changed {
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
        if !refusing {
            message.said.push_str(more);
        }
        if message.is_aside() || refusing {
            let is_aside = message.is_aside();
            self.put(index, id, more, refusing, is_aside, on_delta);
            return;
        }
        for piece in self.inline.take(more) {
            match piece {
                Piece::Reasoning(more) => {
                    self.reasoning_begun = true;
                    on_delta(Delta::Reasoning(&more));
                }
                Piece::Text(more) => self.put(index, id, &more, false, false, on_delta),
            }
        }
    }

    fn put(&mut self, index: Option<u64>, id: &str, more: &str, refusing: bool, aside: bool, on_delta: OnDelta<'_>) {
        let Content::Message(message) = &mut self.item(Kind::Message, index, id).content else { return };
        let target = if refusing { &mut message.refusal } else { &mut message.text };
        let begins = target.is_empty();
        target.push_str(more);
        if aside {
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
            self.model = Some(word(response, "model")).filter(|model| !model.is_empty());
        }
    }

    /// Takes the list of items of the whole response, as far as they were not sent before: some servers send everything in their only
    /// event, others stream texts and only list the calls.
    fn list(&mut self, response: &Value, on_delta: OnDelta<'_>) {
        // The items of each kind, in their order: the list has no numbers, and gateways change ids.
        let mut known: [VecDeque<usize>; 3] = Default::default();
        for (at, item) in self.items.iter().enumerate() {
            known[item.content.kind() as usize].push_back(at);
        }
        for (number, item) in (LISTED..).zip(items(response.get("output"))) {
            if self.calls > MOST_CALLS {
                break;
            }
            let Some(kind) = Kind::of(item) else { continue };
            match known[kind as usize].pop_front() {
                None => self.done_item(Some(number), item, on_delta),
                Some(at) if self.items[at].done => {}
                Some(at) => {
                    // Only this item has the number.
                    (self.items[at].index, self.items[at].is_passed) = (Some(number), false);
                    self.done_item(Some(number), item, on_delta);
                }
            }
        }
    }

    /// Takes the state of the whole response; `is_event` if an event of the stream says that it ended.
    fn end(&mut self, response: &Value, is_event: bool) {
        self.served(response);
        self.usage = response.get("usage").and_then(usage::read);
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let status = match text(response, "status") {
            // Some servers leave the status as it was in the beginning: the event says that it ended.
            "in_progress" | "queued" if is_event => "",
            status => status,
        };
        self.finish = Some(match (status, reason) {
            (_, Some(reason)) if Ending::of(reason) == Some(Ending::Refused) => Finish::Refused,
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
    Some(word(item, "phase")).filter(|phase| !phase.is_empty())
}

/// Takes name, id and arguments of a call, as far as they are there.
fn take_members(slot: &mut Slot, item: &Value, on_delta: OnDelta<'_>) {
    let (id, name, given) = (word(item, "call_id"), word(item, "name"), arguments(item.get("arguments")));
    if slot.name.is_empty() && !name.is_empty() {
        on_delta(Delta::Call(&name));
    }
    for (target, value) in [(&mut slot.id, id), (&mut slot.name, name), (&mut slot.arguments, given)] {
        if !value.is_empty() {
            *target = value;
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
    let code = text(error, "code");
    let blames_request = code.starts_with("invalid_") || code.contains("image") || code == "data_residency_mismatch";
    match code {
        "rate_limit_exceeded" => Stated::from_value(429, report),
        _ if blames_request => Stated::from_value(400, report),
        _ => Stated::from_value(200, report),
    }
}

/// Whether arguments are a whole object.
fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}

fn is_failed(response: &Value) -> bool {
    ["failed", "cancelled"].contains(&text(response, "status"))
        || response.get("error").is_some_and(|error| !error.is_null())
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        self.is_streamed = true;
        let index = number(event.get("output_index"));
        let (id, delta) = (&word(event, "item_id"), text(event, "delta"));
        let number = |key: &str| number(event.get(key));
        let response = event.get("response").unwrap_or(&Value::Null);
        let kind = text(event, "type");
        if let Some(stated) = complaint(event, Place::Part).filter(|_| event.get("base_resp").is_some()) {
            return Err(stated);
        }
        match kind {
            "response.created" | "response.in_progress" => self.served(response),
            "response.output_item.added" => self.added(index, &event["item"], on_delta),
            "response.output_text.delta" | "response.content_part.delta" => self.say(index, id, delta, false, on_delta),
            "response.refusal.delta" => self.say(index, id, delta, true, on_delta),
            "response.reasoning_summary_text.delta" => self.think(index, id, number("summary_index"), delta, on_delta),
            "response.reasoning_text.delta" => self.think(index, id, number("content_index"), delta, on_delta),
            "response.function_call_arguments.delta" => {
                let more = arguments(event.get("delta"));
                if let Content::Call(slot) = &mut self.item(Kind::Call, index, id).content {
                    slot.arguments.push_str(&more);
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
            "response.completed" | "response.incomplete" | "response.done" if !is_failed(response) => {
                self.list(response, on_delta);
                self.end(response, true);
                if kind == "response.incomplete" && self.finish == Some(Finish::Stop) {
                    self.finish = Some(Finish::Length);
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.done"
            | "response.failed"
            | "response.cancelled"
            | "error" => return Err(failure(event)),
            // Events of tools that the provider runs, and of later versions of the API.
            _ => {
                let place = match kind {
                    "" => Place::Stray,
                    kind if kind.starts_with("response.") => Place::Part,
                    _ => Place::Named,
                };
                if complaint(event, place).is_some() {
                    return Err(failure(event));
                }
            }
        }
        Ok(())
    }

    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread> {
        let place = if reply.get("output").is_some() { Place::Part } else { Place::Stray };
        if is_failed(reply) || complaint(reply, place).is_some() {
            return Err(failure(reply).into());
        }
        if !reply.get("output").is_some_and(Value::is_array) {
            return Err(Unread::Lacks("output"));
        }
        self.list(reply, on_delta);
        self.end(reply, false);
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

    fn stopped(&self) -> Option<&str> {
        let has_refusal = self.items.iter().any(|item| match &item.content {
            Content::Message(message) => !message.refusal.trim().is_empty(),
            _ => false,
        });
        let has_begun = self.calls > 0 || !self.said().trim().is_empty();
        (self.finish == Some(Finish::Refused) && has_begun && !has_refusal).then_some("content_filter")
    }

    fn close(&mut self, on_delta: OnDelta<'_>) {
        let rest = self.inline.rest(self.finish == Some(Finish::Stop) && self.calls == 0);
        let last = self
            .items
            .iter()
            .rposition(|item| matches!(&item.content, Content::Message(message) if !message.is_aside()));
        if let Some(Content::Message(message)) = last.map(|at| &mut self.items[at].content)
            && !rest.is_empty()
        {
            message.text.push_str(&rest);
            if self.calls == 0 {
                on_delta(Delta::Text(&rest));
            }
        }
    }

    fn into_text(self: Box<Self>) -> String {
        self.said()
    }

    fn finish(mut self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        let Some(mut finish) = self.finish else {
            return Err(Broken::Cut { partial: self.said() });
        };
        self.close(&mut |_| {});
        let needs_text = finish == Finish::Stop && self.calls == 0;
        let inline = std::mem::take(&mut self.inline);
        let first = self.items.iter_mut().find_map(|item| match &mut item.content {
            Content::Message(message) if !message.is_aside() => Some(message),
            _ => None,
        });
        let inline = match first {
            Some(message) => without_thinking(&mut message.text, inline, needs_text),
            None => None,
        };
        let text = self.said();
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
        let settled = settle(slots, finish, new_id)?;
        let parts = settled.parts(parts);
        Ok(Reply {
            text,
            reasoning: joined_thoughts(thoughts.join(BETWEEN_WORDS), inline),
            tool_calls: settled.calls,
            finish: settled.finish,
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
