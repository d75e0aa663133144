//! The events of OpenAI's Responses API.
//!
//! A reply is a list of items: messages, reasoning and calls. An item is added, grows and is done. Its state when it is done
//! counts. Servers of other vendors leave out events, numbers and ids, or give all items one number.
//!
//! When a reply is whole:
//!
//! - `response.completed`, `response.incomplete` or `response.done` ends it. The list of items in this event supplies the items
//!   that were not sent before. An item with the status `incomplete` was cut by a limit.
//! - Any other end breaks it off, `[DONE]` too. A call that was begun and never done counts as cut, even if the end says
//!   otherwise.

mod item;

use std::collections::VecDeque;
use std::sync::Arc;

use hermes_conversation::{Part, ToolCall, Usage};
use serde_json::{Map, Value};

use self::item::{
    BETWEEN_WORDS, Content, Item, Kind, Message, REACH, TEXTS, Thought, is_cut, phase, sealed, take_members, text,
    texts,
};
use super::inline::{Inline, Piece};
use super::last::{Given, Last};
use super::reason::Ending;
use super::{
    Assemble, Broken, MOST_CALLS, Progress, Unread, arguments, items, joined_thoughts, number, settle,
    without_thinking, word,
};
use crate::failure::{
    Stated,
    complaint::{Place, complaint},
};
use crate::{Delta, Finish, OnDelta, Reply, usage, wire::schema::keys::Renamed};

/// Numbers of items in the list of a whole response, which no event has.
const LISTED: u64 = 1 << 40;

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    items: Vec<Item>,
    /// How the arguments of calls are read back.
    renamed: Arc<Renamed>,
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
    /// An item says of itself that it was cut.
    is_cut: bool,
    /// The words of a message are others than those that arrived first.
    is_changed: bool,
}

impl Assembly {
    /// The same for a tool list whose arguments are read back so.
    pub(crate) fn renaming(self, renamed: &Arc<Renamed>) -> Self {
        Self { renamed: Arc::clone(renamed), ..self }
    }

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
    fn item(&mut self, kind: Kind, index: Option<u64>, id: &str) -> usize {
        self.open(kind, index, id).unwrap_or_else(|| {
            self.calls += usize::from(kind == Kind::Call);
            self.items.push(Item { index, id: id.to_owned(), done: false, is_passed: false, content: kind.begin() });
            self.items.len() - 1
        })
    }

    /// The item of an event that says its `words` once more; none if an item that is done has them.
    fn item_of_last(&mut self, kind: Kind, index: Option<u64>, id: &str, words: &str) -> Option<usize> {
        let has_words = |item: &Item| match &item.content {
            Content::Message(message) => message.said.iter().rev().take(REACH).any(|said| said.words == words),
            Content::Reasoning(thought) => thought.parts.iter().rev().take(REACH).any(|(_, _, part)| part == words),
            Content::Call(slot) => slot.arguments == words,
        };
        let is_told = |item: &Item| {
            let same_id = !id.is_empty() && item.id == id;
            let same_place = item.index == index && has_words(item);
            item.done && item.content.kind() == kind && (same_id || same_place)
        };
        if words.is_empty() || self.open(kind, index, id).is_none() && self.items.iter().rev().take(REACH).any(is_told)
        {
            return None;
        }
        Some(self.item(kind, index, id))
    }

    fn message(&mut self, at: usize) -> Option<&mut Message> {
        match &mut self.items.get_mut(at)?.content {
            Content::Message(message) => Some(message),
            _ => None,
        }
    }

    fn thought(&mut self, at: usize) -> Option<&mut Thought> {
        match &mut self.items.get_mut(at)?.content {
            Content::Reasoning(thought) => Some(thought),
            _ => None,
        }
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
                Content::Reasoning(thought) => is_other && !thought.parts.is_empty(),
                Content::Call(slot) => {
                    let call = word(item, "call_id");
                    let is_same = (!id.is_empty() && open.id == id) || (!call.is_empty() && slot.id == call);
                    !is_same && !slot.name.is_empty()
                }
            };
        }
        let at = self.item(kind, index, &id);
        match &mut self.items[at].content {
            Content::Message(message) => {
                message.phase = phase(item);
                self.give(at, None, &texts(&item["content"], TEXTS, "text", ""), on_delta);
            }
            Content::Reasoning(_) => {}
            Content::Call(slot) => take_members(slot, item, on_delta),
        }
    }

    /// Takes a text that a message, or a part of it, begins with.
    fn give(&mut self, at: usize, number: Option<u64>, text: &str, on_delta: OnDelta<'_>) {
        if text.is_empty() {
            return;
        }
        let Some(message) = self.message(at) else { return };
        // The beginning of a part repeats that of its message.
        let more = message.given.fresh(text);
        message.given = Given::default();
        message.given.add(text);
        self.say(at, number, &more, false, on_delta);
    }

    /// Takes an item as it is when it is done, and shows what was not shown yet.
    fn done_item(&mut self, index: Option<u64>, item: &Value, on_delta: OnDelta<'_>) {
        let Some(kind) = Kind::of(item) else { return };
        let is_streamed = self.is_streamed;
        let at = self.item(kind, index, &word(item, "id"));
        self.is_cut |= is_cut(item);
        match &mut self.items[at].content {
            Content::Message(message) => {
                message.phase = phase(item).or(message.phase.take());
                let content = &item["content"];
                self.settle(at, None, &texts(content, TEXTS, "text", ""), false, on_delta);
                self.settle(at, None, &texts(content, &["refusal"], "refusal", ""), true, on_delta);
            }
            Content::Reasoning(thought) => {
                let summary = texts(&item["summary"], &["summary_text"], "text", BETWEEN_WORDS);
                let words = if summary.is_empty() {
                    texts(&item["content"], &["reasoning_text", "text"], "text", BETWEEN_WORDS)
                } else {
                    summary
                };
                thought.sealed = sealed(item);
                if let Last::More(more) = Last::of(&thought.text(), &words) {
                    let (is_summary, part) = thought.parts.last().map_or((true, None), |last| (last.0, last.1));
                    self.think(at, is_summary, part, more, on_delta);
                }
            }
            Content::Call(slot) => {
                take_members(slot, item, on_delta);
                // Some servers leave the status as it was in the beginning: then the arguments tell.
                slot.whole = match text(item, "status") {
                    "incomplete" => false,
                    "in_progress" => is_streamed && is_object(&slot.arguments),
                    _ => true,
                };
            }
        }
        self.items[at].done = true;
    }

    /// Takes the words of a message, or of a part of it, as they are when they are whole.
    fn settle(&mut self, at: usize, number: Option<u64>, whole: &str, is_refusal: bool, on_delta: OnDelta<'_>) {
        let Some(message) = self.message(at) else { return };
        if !whole.is_empty() && !is_refusal {
            message.given = Given::default();
        }
        let gathered =
            if number.is_some() { message.part(number, is_refusal).clone() } else { message.sent(is_refusal) };
        match Last::of(&gathered, whole) {
            Last::Same => {}
            Last::More(more) => self.say(at, number, more, is_refusal, on_delta),
            Last::Instead => {
                if number.is_none() {
                    message.said.retain(|said| said.is_refusal != is_refusal);
                }
                whole.clone_into(message.part(number, is_refusal));
                if is_refusal {
                    message.refusal = message.sent(true);
                }
                self.is_changed = true;
            }
        }
    }

    /// Adds to the text of a message, or to its refusal.
    fn say(&mut self, at: usize, number: Option<u64>, more: &str, is_refusal: bool, on_delta: OnDelta<'_>) {
        let Some(message) = self.message(at) else { return };
        if more.is_empty() {
            return;
        }
        message.part(number, is_refusal).push_str(more);
        let is_aside = message.is_aside();
        if is_aside || is_refusal {
            self.put(at, more, is_refusal, is_aside, on_delta);
            return;
        }
        for piece in self.inline.take(more) {
            match piece {
                Piece::Reasoning(more) => {
                    self.reasoning_begun = true;
                    on_delta(Delta::Reasoning(&more));
                }
                Piece::Text(more) => self.put(at, &more, false, false, on_delta),
            }
        }
    }

    fn put(&mut self, at: usize, more: &str, is_refusal: bool, is_aside: bool, on_delta: OnDelta<'_>) {
        let Some(message) = self.message(at) else { return };
        let target = if is_refusal { &mut message.refusal } else { &mut message.text };
        let begins = target.is_empty();
        target.push_str(more);
        if is_aside {
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

    /// Adds to reasoning. `number` is that of the part of the item that grows.
    fn think(&mut self, at: usize, is_summary: bool, number: Option<u64>, more: &str, on_delta: OnDelta<'_>) {
        let Some(thought) = self.thought(at) else { return };
        if more.is_empty() {
            return;
        }
        let begins = thought.parts.last().is_none_or(|last| (last.0, last.1) != (is_summary, number));
        if begins {
            thought.parts.push((is_summary, number, String::new()));
        }
        if let Some((_, _, words)) = thought.parts.last_mut() {
            words.push_str(more);
        }
        self.show_reasoning(begins, more, on_delta);
    }

    /// Takes a part of reasoning as it is when it is whole.
    fn settle_thought(&mut self, at: usize, is_summary: bool, number: Option<u64>, whole: &str, on_delta: OnDelta<'_>) {
        let Some(thought) = self.thought(at) else { return };
        let part = thought.parts.iter().rev().take(REACH).find(|part| (part.0, part.1) == (is_summary, number));
        if let Last::More(more) = Last::of(part.map_or("", |part| part.2.as_str()), whole) {
            self.think(at, is_summary, number, more, on_delta);
        }
    }

    /// Reads the text of all messages again, whose words are others than those that arrived first.
    fn read_again(&mut self) {
        self.inline = Inline::default();
        for item in &mut self.items {
            let Content::Message(message) = &mut item.content else { continue };
            let sent = message.sent(false);
            message.text = if message.is_aside() {
                sent
            } else {
                let texts = self.inline.take(&sent).into_iter().filter_map(|piece| match piece {
                    Piece::Text(text) => Some(text),
                    Piece::Reasoning(_) => None,
                });
                texts.collect()
            };
        }
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
        let items = items(response.get("output"));
        for (number, item) in (LISTED..).zip(items) {
            if self.calls > MOST_CALLS {
                break;
            }
            let Some(kind) = Kind::of(item) else { continue };
            self.is_cut |= is_cut(item);
            let known = &mut known[kind as usize];
            match self.listed(known, item).and_then(|place| known.remove(place)) {
                None => self.done_item(Some(number), item, on_delta),
                Some(at) if self.items[at].done => {}
                Some(at) => {
                    // Only this item has the number.
                    (self.items[at].index, self.items[at].is_passed) = (Some(number), false);
                    self.done_item(Some(number), item, on_delta);
                }
            }
        }
        // The vendor's library has the whole text in a member, and some servers send it.
        let text = text(response, "output_text");
        if !text.is_empty() && items.is_empty() && !self.items.iter().any(|item| item.content.kind() == Kind::Message) {
            let at = self.item(Kind::Message, None, "");
            self.settle(at, None, text, false, on_delta);
        }
    }

    /// Finds the known item that a listed item repeats: the one with its id, the first whose words it begins with, or the next
    /// one.
    fn listed(&self, known: &VecDeque<usize>, item: &Value) -> Option<usize> {
        let (id, call) = (word(item, "id"), word(item, "call_id"));
        let words = texts(&item["content"], TEXTS, "text", "");
        let near = || known.iter().take(REACH).map(|at| &self.items[*at]);
        let same = |own: &str, other: &str| !own.is_empty() && own == other;
        let by_id = near().position(|known| {
            same(&known.id, &id) || matches!(&known.content, Content::Call(slot) if same(&slot.id, &call))
        });
        let by_words = || {
            near().position(|known| match &known.content {
                Content::Message(message) => message.begins(&words),
                _ => false,
            })
        };
        by_id.or_else(by_words).or_else(|| (!known.is_empty()).then_some(0))
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
            _ if self.is_cut => Finish::Length,
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
        let delta = event.get("delta").map_or("", |delta| delta.as_str().unwrap_or_else(|| text(delta, "text")));
        let id = &word(event, "item_id");
        let number = |key: &str| number(event.get(key));
        let response = event.get("response").unwrap_or(&Value::Null);
        let kind = text(event, "type");
        if let Some(stated) = complaint(event, Place::Part).filter(|_| event.get("base_resp").is_some()) {
            return Err(stated);
        }
        match kind {
            // The whole response in place of its events.
            "" if event.get("output").is_some_and(Value::is_array) && !is_failed(event) => {
                self.list(event, on_delta);
                self.end(event, false);
            }
            "response.created" | "response.in_progress" => self.served(response),
            "response.output_item.added" => self.added(index, &event["item"], on_delta),
            "response.output_text.delta" | "response.content_part.delta" => {
                let at = self.item(Kind::Message, index, id);
                let more = self.message(at).map(|message| message.given.fresh(delta)).unwrap_or_default();
                self.say(at, number("content_index"), &more, false, on_delta);
            }
            "response.refusal.delta" => {
                let at = self.item(Kind::Message, index, id);
                self.say(at, number("content_index"), delta, true, on_delta);
            }
            "response.content_part.added" if Kind::of_part(&event["part"]) == Some(Kind::Message) => {
                let given = text(&event["part"], "text");
                if !given.is_empty() {
                    let at = self.item(Kind::Message, index, id);
                    self.give(at, number("content_index"), given, on_delta);
                }
            }
            "response.output_text.done" | "response.refusal.done" | "response.content_part.done" => {
                let part = event.get("part").unwrap_or(event);
                let kind = Kind::of_part(part);
                for (words, is_refusal) in [(text(part, "text"), false), (text(part, "refusal"), true)] {
                    if kind == Some(Kind::Message)
                        && let Some(at) = self.item_of_last(Kind::Message, index, id, words)
                    {
                        self.settle(at, number("content_index"), words, is_refusal, on_delta);
                    }
                }
            }
            "response.reasoning_summary_text.delta" => {
                let at = self.item(Kind::Reasoning, index, id);
                self.think(at, true, number("summary_index"), delta, on_delta);
            }
            "response.reasoning_text.delta" => {
                let at = self.item(Kind::Reasoning, index, id);
                self.think(at, false, number("content_index"), delta, on_delta);
            }
            "response.reasoning_summary_text.done"
            | "response.reasoning_summary_part.done"
            | "response.reasoning_text.done" => {
                let is_summary = kind != "response.reasoning_text.done";
                let part = number(if is_summary { "summary_index" } else { "content_index" });
                let words = text(event.get("part").unwrap_or(event), "text");
                if let Some(at) = self.item_of_last(Kind::Reasoning, index, id, words) {
                    self.settle_thought(at, is_summary, part, words, on_delta);
                }
            }
            "response.function_call_arguments.delta" => {
                let more = arguments(event.get("delta"));
                let at = self.item(Kind::Call, index, id);
                if let Content::Call(slot) = &mut self.items[at].content {
                    slot.arguments.push_str(&more);
                }
            }
            "response.function_call_arguments.done" => {
                let open = self.open(Kind::Call, index, id);
                let at = open.or_else(|| self.item_of_last(Kind::Call, index, id, &arguments(event.get("arguments"))));
                if let Some(Content::Call(slot)) = at.map(|at| &mut self.items[at].content) {
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
        for at in 0..self.items.len() {
            let rest = self.message(at).map(|message| message.given.rest()).unwrap_or_default();
            self.say(at, None, &rest, false, on_delta);
        }
        let is_shown = !self.is_changed && self.calls == 0;
        if std::mem::take(&mut self.is_changed) {
            self.read_again();
        }
        let rest = self.inline.rest(self.finish == Some(Finish::Stop) && self.calls == 0);
        let last = self
            .items
            .iter()
            .rposition(|item| matches!(&item.content, Content::Message(message) if !message.is_aside()));
        if let Some(Content::Message(message)) = last.map(|at| &mut self.items[at].content)
            && !rest.is_empty()
        {
            message.text.push_str(&rest);
            if is_shown {
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
                    let text = thought.text();
                    thoughts.extend(Some(text.clone()).filter(|text| !text.is_empty()));
                    parts.push(Part::Reasoning { text, payload: thought.sealed });
                }
                Content::Call(mut slot) => {
                    slot.read_back(&self.renamed);
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

#[cfg(test)]
mod tests;
