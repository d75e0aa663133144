//! The chunks of chat completions.
//!
//! Servers differ in what they leave out and in what they repeat. These rules read all of them correctly.
//!
//! When a reply is whole:
//!
//! - `[DONE]` ends it.
//! - A reason to end in a chunk without content ends it, and so do counts behind a reason; what may still follow is waited for a moment.
//! - Some gateways give a reason with every piece. So a reason together with content, or before any content, ends a reply only if
//!   the stream also ends. If content follows a reason, the reason was not the end, and from then on silence never ends this
//!   reply.
//! - If a server sends a whole message instead of the first piece, the end of the stream ends the reply. Further whole messages
//!   need a reason, as pieces do.
//! - Counts without a choice at the end of the stream end a reply for servers that give no reason.
//! - Any other end breaks it off. A reason that no rule knows, such as `abort`, is an error.

mod details;

use std::collections::BTreeMap;
use std::sync::Arc;

use hermes_conversation::{Part, ProviderPayload, Usage};
use serde_json::{Map, Value, json};

use super::inline::{Inline, Piece};
use super::last::Last;
use super::{
    Assemble, Broken, MOST_CALLS, Progress, Slot, Unread, arguments, items, joined_thoughts, number,
    object::ObjectScan,
    reason::{Ending, ended_badly},
    settle, without_thinking, word,
};
use crate::{
    Delta, Echo, Finish, OnDelta, Reply,
    failure::{
        Stated,
        complaint::{Place, complaint},
    },
    reasoning::{CALLS_KEY, CONTENT_KEY, DETAILS_KEY, TEXT_KEY},
    usage,
    wire::schema::keys::Renamed,
};

/// Between the text of a reply and its refusal, as between any two parts that are words.
const BEFORE_REFUSAL: &str = "\n\n";

/// What has arrived of a reply.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// What the provider wants back.
    echo: Echo,
    /// How the arguments of calls are read back.
    renamed: Arc<Renamed>,
    /// The text as it was sent, and where its newest piece begins.
    sent: String,
    piece: usize,
    /// The text without the thinking in it.
    text: String,
    /// Finds thinking in the text.
    inline: Inline,
    /// The reasoning as it is shown, without the thinking in the text.
    reasoning: String,
    /// The value of `reasoning_content`.
    reasoning_content: String,
    /// The value of `reasoning`.
    reasoning_text: String,
    /// The items of `reasoning_details`.
    details: Vec<Value>,
    refusal: String,
    calls: Vec<Slot>,
    /// For each call, whether its arguments are complete.
    scans: Vec<ObjectScan>,
    /// For each call, the value of its `extra_content`.
    extras: Vec<Option<Value>>,
    /// The newest slot of each index on the wire.
    newest: BTreeMap<u64, usize>,
    /// There was content.
    begun: bool,
    /// Why the reply ended, unless content followed.
    reason: Option<Ending>,
    /// The words of a reason that declined the reply.
    declined_by: String,
    /// Whether the reason came together with content.
    with_content: bool,
    /// Counts without a choice came last.
    counted: bool,
    /// Content followed a reason or counts: this server gives them too early.
    too_early: bool,
    usage: Option<Usage>,
    model: Option<String>,
    /// The server has said that nothing more follows.
    ended: bool,
    /// There was content in the form of pieces.
    has_pieces: bool,
    /// How many whole messages came instead of pieces.
    messages: usize,
    /// These messages are pieces, too.
    are_pieces: bool,
    /// The final text differs from the text that arrived first.
    is_changed: bool,
}

/// The index of a call in the older form, of which a reply has one.
const ONLY_CALL: u64 = u64::MAX;

impl Assemble for Assembly {
    fn take(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        let choice = chunk.pointer("/choices/0");
        let place = if choice.is_some() { Place::Part } else { Place::beside(chunk) };
        let complained = complaint(chunk, place).or_else(|| complaint(choice?, Place::Part));
        if let Some(stated) = complained {
            return Err(stated);
        }
        if self.model.is_none() {
            self.model =
                chunk.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()).map(str::to_owned);
        }
        let counted = chunk.get("usage").or_else(|| choice?.get("usage")).and_then(usage::read);
        if let Some(counted) = counted {
            self.usage = Some(counted);
            // With `include_usage`, the chunk that has counts and no choice is the last one.
            self.counted |= choice.is_none() && self.begun;
        }
        let is_piece = chunk.get("object").and_then(Value::as_str) == Some("chat.completion.chunk");
        let first = choice.and_then(|choice| number(choice.get("index")));
        // Gateways that collect pieces put several into one chunk.
        for choice in items(chunk.get("choices")) {
            if number(choice.get("index")) == first {
                self.take_choice(choice, is_piece, on_delta)?;
            }
        }
        Ok(())
    }

    /// A whole completion is one chunk.
    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread> {
        self.take(reply, on_delta)?;
        self.ended = true;
        reply.pointer("/choices/0").map(|_| ()).ok_or(Unread::Lacks("choices"))
    }

    fn done(&mut self) {
        self.ended = true;
    }

    fn progress(&self) -> Progress {
        match self.reason {
            _ if self.ended => Progress::Whole,
            Some(_) if self.begun && !self.too_early && (!self.with_content || self.counted) => Progress::Whole,
            Some(_) => Progress::Closing,
            None if self.counted && !self.too_early => Progress::Closing,
            None if self.messages == 1 && !self.has_pieces => Progress::Closing,
            None => Progress::Open,
        }
    }

    fn calls(&self) -> usize {
        self.calls.len()
    }

    fn stopped(&self) -> Option<&str> {
        let has_begun = !self.text.trim().is_empty() || !self.calls.is_empty();
        let is_stopped = self.reason == Some(Ending::Refused) && has_begun && self.refusal.trim().is_empty();
        is_stopped.then_some(&self.declined_by)
    }

    fn close(&mut self, on_delta: OnDelta<'_>) {
        let is_whole = self.progress() != Progress::Open;
        let rest = self.inline.rest(is_whole && self.finish_stated() == Finish::Stop && self.calls.is_empty());
        if !rest.is_empty() && self.calls.is_empty() && !self.is_changed {
            on_delta(Delta::Text(&rest));
        }
        self.text.push_str(&rest);
    }

    fn into_text(self: Box<Self>) -> String {
        self.text
    }

    fn finish(mut self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        if self.progress() == Progress::Open {
            return Err(Broken::Cut { partial: self.text });
        }
        self.close(&mut |_| {});
        let mut finish = self.finish_stated();
        let declined = !self.refusal.trim().is_empty();
        if declined && self.calls.is_empty() && finish == Finish::Stop {
            finish = Finish::Refused;
        }
        self.calls.iter_mut().for_each(|slot| slot.read_back(&self.renamed));
        let settled = settle(std::mem::take(&mut self.calls), finish, new_id)?;
        let needs_text = settled.finish == Finish::Stop;
        let inline = without_thinking(&mut self.text, std::mem::take(&mut self.inline), needs_text);
        self.reasoning = joined_thoughts(std::mem::take(&mut self.reasoning), inline).unwrap_or_default();
        let extras = self.extras.iter().zip(&settled.places);
        let extras = extras.filter_map(|(extra, place)| Some((&settled.calls[(*place)?], extra.as_ref()?)));
        let extras = extras.map(|(call, extra)| (call.id.clone(), extra.clone())).collect();
        let (tool_calls, finish) = (settled.calls, settled.finish);
        let payload = self.payload(extras);
        let mut parts = Vec::new();
        if declined || payload.is_some() {
            if payload.is_some() || !self.reasoning.is_empty() {
                parts.push(Part::Reasoning { text: self.reasoning.clone(), payload });
            }
            if !self.text.trim().is_empty() {
                parts.push(Part::text(self.text.clone()));
            }
            if declined {
                parts.push(Part::Refusal { text: self.refusal.clone() });
            }
            parts.extend(tool_calls.iter().cloned().map(Part::ToolCall));
        }
        if declined && self.text.trim().is_empty() {
            self.text = self.refusal;
        } else if declined {
            self.text.push_str(BEFORE_REFUSAL);
            self.text.push_str(&self.refusal);
        }
        Ok(Reply {
            text: self.text,
            reasoning: Some(self.reasoning).filter(|reasoning| !reasoning.is_empty()),
            tool_calls,
            finish,
            usage: self.usage,
            model: self.model.unwrap_or_else(|| asked.to_owned()),
            parts,
        })
    }
}

impl Assembly {
    /// The same for a tool list whose arguments are read back so.
    pub(crate) fn renaming(self, renamed: &Arc<Renamed>) -> Self {
        Self { renamed: Arc::clone(renamed), ..self }
    }

    /// For a reply of a provider that wants this reasoning back.
    pub(crate) fn new(echo: Echo) -> Self {
        Self {
            echo,
            renamed: Arc::default(),
            sent: String::new(),
            piece: 0,
            text: String::new(),
            inline: Inline::default(),
            reasoning: String::new(),
            reasoning_content: String::new(),
            reasoning_text: String::new(),
            details: Vec::new(),
            refusal: String::new(),
            calls: Vec::new(),
            scans: Vec::new(),
            extras: Vec::new(),
            newest: BTreeMap::new(),
            begun: false,
            reason: None,
            declined_by: String::new(),
            with_content: false,
            counted: false,
            too_early: false,
            usage: None,
            model: None,
            ended: false,
            has_pieces: false,
            messages: 0,
            are_pieces: false,
            is_changed: false,
        }
    }

    fn take_choice(&mut self, choice: &Value, is_piece: bool, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        let reason = word(choice, "finish_reason");
        let is_last = Ending::of(&reason).is_some();
        let mut grew = false;
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            grew = self.take_delta(delta, false, on_delta);
        } else if let Some(text) = choice.get("delta").or_else(|| choice.get("text")).filter(|text| text.is_string()) {
            // The form of the older completions API, among others.
            grew = self.take_delta(&json!({"content": text}), false, on_delta);
        }
        self.has_pieces |= grew;
        // A whole message beside a piece repeats the piece, so only the last one is read.
        if let Some(message) = choice.get("message").filter(|message| message.is_object() && (is_last || !grew)) {
            grew |= self.take_message(message, is_last, on_delta);
            self.messages += usize::from(!is_piece);
            if grew && self.ended {
                (self.ended, self.too_early) = (false, true);
            }
            self.ended |= is_last && !is_piece && !self.too_early;
        }
        if grew {
            self.begun = true;
            self.too_early |= self.reason.is_some() || self.counted;
            (self.reason, self.counted) = (None, false);
        }
        if let Some(ending) = Ending::of(&reason) {
            if matches!(ending, Ending::Failed | Ending::Unknown) {
                return Err(ended_badly(&reason));
            }
            if ending == Ending::Refused {
                self.declined_by.clone_from(&reason);
            }
            self.reason = Some(ending.with(self.reason));
            self.with_content = grew;
        }
        Ok(())
    }

    /// How the reply ended, before its calls are looked at.
    fn finish_stated(&self) -> Finish {
        match self.reason {
            Some(Ending::Length) => Finish::Length,
            Some(Ending::Refused) => Finish::Refused,
            _ => Finish::Stop,
        }
    }

    /// What the provider wants back unchanged. Other members are only for people to read.
    fn payload(&self, extras: Map<String, Value>) -> Option<ProviderPayload> {
        let mut members = Map::new();
        for key in self.echo.members {
            let value = match *key {
                CONTENT_KEY if !self.reasoning_content.is_empty() => self.reasoning_content.clone().into(),
                TEXT_KEY if !self.reasoning_text.is_empty() => self.reasoning_text.clone().into(),
                DETAILS_KEY if !self.details.is_empty() => self.details.clone().into(),
                CALLS_KEY if !extras.is_empty() => extras.clone().into(),
                _ => continue,
            };
            members.insert((*key).to_owned(), value);
        }
        (!members.is_empty()).then(|| ProviderPayload::untagged(Value::Object(members).to_string()))
    }

    /// Takes more of the reply. Whether there was any.
    fn take_delta(&mut self, delta: &Value, whole: bool, on_delta: OnDelta<'_>) -> bool {
        let mut grew = false;
        if let Some(more) = delta.get(CONTENT_KEY).and_then(Value::as_str) {
            self.reasoning_content.push_str(more);
        }
        if let Some(more) = delta.get(TEXT_KEY).and_then(Value::as_str) {
            self.reasoning_text.push_str(more);
        }
        let new_details = delta.get(DETAILS_KEY).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        details::append(&mut self.details, new_details, whole);
        grew |= !new_details.is_empty();
        // Some servers send the same words under several names.
        let named =
            [TEXT_KEY, CONTENT_KEY].iter().find_map(|key| delta.get(key).map(text_of).filter(|text| !text.is_empty()));
        if let Some(more) = named.or_else(|| details::words(new_details)) {
            self.think(&more, on_delta);
            grew = true;
        }
        for (kind, more) in parts_of(delta.get("content")) {
            grew = true;
            match kind {
                Kind::Thinking => self.think(&more, on_delta),
                Kind::Text => self.say(&more, on_delta),
                Kind::Refusal => self.refuse(&more, on_delta),
            }
        }
        if let Some(more) = delta.get("refusal").and_then(Value::as_str).filter(|more| !more.is_empty()) {
            self.refuse(more, on_delta);
            grew = true;
        }
        for (position, call) in items(delta.get("tool_calls")).iter().enumerate() {
            if self.calls.len() > MOST_CALLS {
                return true;
            }
            // A whole message numbers its calls by their places.
            let index = if whole { position as u64 } else { number(call.get("index")).unwrap_or(0) };
            grew |= self.take_call(index, call, on_delta);
        }
        // The form before there were several calls.
        if let Some(function) = delta.get("function_call").filter(|function| function.is_object()) {
            grew |= self.take_call(ONLY_CALL, function, on_delta);
        }
        grew
    }

    fn say(&mut self, more: &str, on_delta: OnDelta<'_>) {
        self.piece = self.sent.len();
        self.sent.push_str(more);
        for piece in self.inline.take(more) {
            match piece {
                Piece::Reasoning(more) => on_delta(Delta::Reasoning(&more)),
                Piece::Text(more) => {
                    // Behind the first call, text is an aside that would tear the display of calls apart.
                    if self.calls.is_empty() {
                        on_delta(Delta::Text(&more));
                    }
                    self.text.push_str(&more);
                }
            }
        }
    }

    fn refuse(&mut self, more: &str, on_delta: OnDelta<'_>) {
        if self.refusal.is_empty() && !self.text.trim().is_empty() {
            on_delta(Delta::Text(BEFORE_REFUSAL));
        }
        on_delta(Delta::Text(more));
        self.refusal.push_str(more);
    }

    /// Takes a whole message that came instead of a piece or after all pieces. It may be a single piece, everything so far, or
    /// the complete reply. Returns whether it added something.
    fn take_message(&mut self, message: &Value, is_last: bool, on_delta: OnDelta<'_>) -> bool {
        let is_first = !self.has_pieces && self.messages == 0;
        let mut text = String::new();
        for (kind, more) in parts_of(message.get("content")) {
            text.push_str(if kind == Kind::Text { &more } else { "" });
        }
        let last = Last::of(&self.sent, &text);
        self.are_pieces |= last == Last::Instead && !self.has_pieces && !(is_last && self.sent[self.piece..] == text);
        let repeats = last == Last::Same && is_last;
        if is_first || self.are_pieces && !repeats {
            return self.take_delta(message, is_first, on_delta);
        }
        let (mut rest, mut grew) = (message.clone(), false);
        if let Some(members) = rest.as_object_mut() {
            members.shift_remove("content");
            members.shift_remove("tool_calls");
            if self.newest.contains_key(&ONLY_CALL) {
                members.shift_remove("function_call");
            }
            grew |= self.settle_thoughts(message, members, on_delta);
            let refusal = members.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned();
            match Last::of(&self.refusal, &refusal) {
                Last::More(more) => drop(members.insert("refusal".to_owned(), more.into())),
                _ => drop(members.shift_remove("refusal")),
            }
        }
        match last {
            Last::Same => {}
            Last::More(more) => {
                let more = more.to_owned();
                self.say(&more, on_delta);
                grew = true;
            }
            // Some servers write the last piece twice.
            Last::Instead if self.sent[self.piece..] == text => {}
            Last::Instead => {
                (self.inline, self.is_changed) = (Inline::default(), true);
                self.sent.clear();
                self.piece = 0;
                self.text.clear();
                self.say(&text, &mut |_| {});
                grew = true;
            }
        }
        grew |= self.settle_calls(message, on_delta);
        self.take_delta(&rest, true, on_delta) || grew
    }

    /// Takes the new reasoning of a whole message. Leaves in `members` only what is new.
    fn settle_thoughts(&mut self, message: &Value, members: &mut Map<String, Value>, on_delta: OnDelta<'_>) -> bool {
        let whole = [TEXT_KEY, CONTENT_KEY]
            .iter()
            .find_map(|key| message.get(*key).map(text_of).filter(|text| !text.is_empty()));
        let mut in_content = String::new();
        for (kind, more) in parts_of(message.get("content")) {
            in_content.push_str(if kind == Kind::Thinking { &more } else { "" });
        }
        let whole = whole.unwrap_or(in_content);
        for (key, kept) in [(TEXT_KEY, &mut self.reasoning_text), (CONTENT_KEY, &mut self.reasoning_content)] {
            if let Some(Value::String(whole)) = members.shift_remove(key).filter(|whole| whole != "") {
                *kept = whole;
            }
        }
        if let Some(Value::Array(details)) = members.shift_remove(DETAILS_KEY).filter(|details| details != &json!([])) {
            self.details = details;
        }
        match Last::of(&self.reasoning, &whole) {
            Last::More(more) => {
                let more = more.to_owned();
                self.think(&more, on_delta);
                true
            }
            _ => false,
        }
    }

    /// Takes the calls of a whole message, which are those that arrived before, in their order, and further ones.
    fn settle_calls(&mut self, message: &Value, on_delta: OnDelta<'_>) -> bool {
        let known = self.calls.len();
        let mut left: Vec<usize> = (0..known).collect();
        let mut grew = false;
        for (position, call) in items(message.get("tool_calls")).iter().enumerate() {
            if self.calls.len() > MOST_CALLS {
                break;
            }
            let id = word(call, "id");
            let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
            let (name, whole) = (word(function, "name"), arguments(function.get("arguments")));
            let fits = |at: &usize| {
                let slot = &self.calls[*at];
                name.is_empty() || slot.name.is_empty() || slot.name == name
            };
            let by_id = left.iter().position(|at| !id.is_empty() && self.calls[*at].id == id);
            let Some(at) = by_id.or_else(|| left.iter().position(fits)).map(|place| left.remove(place)) else {
                // Numbers of pieces are below.
                grew |= self.take_call((1 << 32) + position as u64, call, on_delta);
                continue;
            };
            let slot = &mut self.calls[at];
            if slot.name.is_empty() && !name.is_empty() {
                on_delta(Delta::Call(&name));
                slot.name = name;
            }
            if !whole.trim().is_empty() && slot.arguments != whole {
                slot.arguments = whole;
                self.scans[at] = ObjectScan::default();
                self.scans[at].take(&slot.arguments, slot.arguments.len());
                grew = true;
            }
            if let Some(extra) = call.get(CALLS_KEY).filter(|extra| extra.is_object()) {
                self.extras[at] = Some(extra.clone());
            }
        }
        grew
    }

    fn think(&mut self, more: &str, on_delta: OnDelta<'_>) {
        on_delta(Delta::Reasoning(more));
        self.reasoning.push_str(more);
    }

    /// The call that a piece continues; none if it begins another one.
    fn continued(&self, index: u64, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let at = *self.newest.get(&index)?;
        let (slot, is_whole) = (&self.calls[at], self.scans[at].is_object());
        let continues = if !id.is_empty() && !slot.id.is_empty() && slot.id != id {
            // Some servers make a new id for each piece: it belongs to a call that lacks arguments, unless it begins one of its own.
            let begins = arguments.trim_start().starts_with('{') && !slot.arguments.is_empty();
            !is_whole && (name.is_empty() || name == slot.name && !arguments.is_empty() && !begins)
        } else {
            // Servers without ids may put all calls at one index: a name behind whole arguments begins another.
            !(is_whole && id.is_empty() && !name.is_empty())
        };
        continues.then_some(at)
    }

    /// Takes a call or a piece of one. Whether it says anything.
    fn take_call(&mut self, index: u64, call: &Value, on_delta: OnDelta<'_>) -> bool {
        let id = word(call, "id");
        let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = arguments(function.get("arguments"));

        let open = self.continued(index, &id, name, &arguments);
        let at = open.unwrap_or_else(|| {
            // Or it is the name of a whole call once more.
            let before = self.newest.get(&index).map(|at| &self.calls[*at]);
            let is_echo = id.is_empty() && before.is_some_and(|before| before.name == name);
            self.calls.push(Slot { is_echo, ..Slot::default() });
            self.scans.push(ObjectScan::default());
            self.extras.push(None);
            self.calls.len() - 1
        });
        self.newest.insert(index, at);
        if let Some(extra) = call.get(CALLS_KEY).filter(|extra| extra.is_object()) {
            self.extras[at] = Some(extra.clone());
        }
        let slot = &mut self.calls[at];
        if slot.id.is_empty() {
            slot.id = id;
        }
        if !name.is_empty() {
            if slot.name.is_empty() {
                on_delta(Delta::Call(name));
            }
            // Some repeat the name in every chunk.
            name.clone_into(&mut slot.name);
        }
        slot.arguments.push_str(&arguments);
        self.scans[at].take(&slot.arguments, arguments.len());
        !name.is_empty() || !arguments.is_empty()
    }
}

/// Text, or the text of a list of parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(part) => {
            let text =
                ["text", "content", "value"].iter().find_map(|key| part.get(*key).filter(|text| !text.is_null()));
            text.map(text_of).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// What a part of a content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Refusal,
}

/// The texts of a content, which is a text or a list of parts, each with its kind.
fn parts_of(content: Option<&Value>) -> Vec<(Kind, String)> {
    let parts: Vec<&Value> = match content {
        Some(Value::Array(parts)) => parts.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let parts = parts.into_iter().map(|part| {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        let thinking = part.get("thinking").or_else(|| part.get("reasoning"));
        match (thinking, part.get("refusal")) {
            (Some(thinking), _) => (Kind::Thinking, text_of(thinking)),
            (None, Some(refusal)) => (Kind::Refusal, text_of(refusal)),
            (None, None) if kind.contains("reasoning") || kind.contains("thinking") => (Kind::Thinking, text_of(part)),
            (None, None) => (Kind::Text, text_of(part)),
        }
    });
    parts.filter(|(_, text)| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests;
