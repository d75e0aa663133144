//! The items of a response: messages, reasoning and calls, as they are gathered.

use hermes_conversation::{Part, ProviderPayload, found};
use serde_json::{Value, json};

use super::super::last::Given;
use super::super::{Slot, arguments, items, word};
use crate::{Delta, OnDelta};

/// Between two messages, and between the text of a message and its refusal.
pub(super) const BETWEEN_WORDS: &str = "\n\n";
/// Phases of messages that accompany the work and are not the answer. They are shown like reasoning.
pub(super) const ASIDES: &[&str] = &["commentary", "analysis"];
/// How many of the newest items an event may continue. Servers interleave a few items at most.
pub(super) const REACH: usize = 64;

/// The call of the tool that finds deferred tools. It has no name, and its arguments are an object.
const SEARCH_CALL: &str = "tool_search_call";

/// An item that has begun.
#[derive(Debug)]
pub(super) struct Item {
    /// Its number and its id on the wire.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    /// Nothing more of it follows.
    pub(super) done: bool,
    /// Another item was begun at its number: only its id leads to it.
    pub(super) is_passed: bool,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Message(Message),
    Reasoning(Thought),
    Call(Slot),
}

#[derive(Debug, Default)]
pub(super) struct Message {
    /// Its parts as they were sent.
    pub(super) said: Vec<Said>,
    /// Text that was there when it began.
    pub(super) given: Given,
    /// The text without the thinking in it.
    pub(super) text: String,
    pub(super) refusal: String,
    pub(super) phase: Option<String>,
}

/// A part of a message.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) number: Option<u64>,
    pub(super) is_refusal: bool,
    pub(super) words: String,
}

#[derive(Debug, Default)]
pub(super) struct Thought {
    /// Its parts: of the summary or of the reasoning itself, their numbers, their words.
    pub(super) parts: Vec<(bool, Option<u64>, String)>,
    pub(super) sealed: Option<ProviderPayload>,
}

impl Thought {
    pub(super) fn text(&self) -> String {
        let words: Vec<&str> = self.parts.iter().map(|(_, _, words)| words.as_str()).collect();
        words.join(BETWEEN_WORDS)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
}

impl Kind {
    pub(super) fn of(item: &Value) -> Option<Self> {
        match item.get("type")?.as_str()? {
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Reasoning),
            "function_call" => Some(Self::Call),
            // A search that the provider carries out itself was not asked for.
            SEARCH_CALL if text(item, "execution") != "server" => Some(Self::Call),
            // Tools that the provider runs itself, which are not requested.
            _ => None,
        }
    }

    /// The kind of item that has such a part.
    pub(super) fn of_part(part: &Value) -> Option<Self> {
        match text(part, "type") {
            "reasoning_text" | "summary_text" => Some(Self::Reasoning),
            "" | "refusal" | "output_text" | "text" => Some(Self::Message),
            // The part is its event.
            kind if kind.starts_with("response.") => Some(Self::Message),
            _ => None,
        }
    }

    pub(super) fn begin(self) -> Content {
        match self {
            Self::Message => Content::Message(Message::default()),
            Self::Reasoning => Content::Reasoning(Thought::default()),
            Self::Call => Content::Call(Slot::default()),
        }
    }
}

impl Content {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Message(_) => Kind::Message,
            Self::Reasoning(_) => Kind::Reasoning,
            Self::Call(_) => Kind::Call,
        }
    }
}

impl Message {
    pub(super) fn is_aside(&self) -> bool {
        self.phase.as_deref().is_some_and(|phase| ASIDES.contains(&phase))
    }

    /// The newest part with this number, begun where it is new.
    pub(super) fn part(&mut self, number: Option<u64>, is_refusal: bool) -> &mut String {
        let is_it = |said: &Said| {
            said.is_refusal == is_refusal && (said.number == number || said.number.is_none() || number.is_none())
        };
        let newest = self.said.iter().enumerate().rev().take(REACH).find(|(_, said)| is_it(said)).map(|(at, _)| at);
        let at = newest.unwrap_or_else(|| {
            self.said.push(Said { number, is_refusal, words: String::new() });
            self.said.len() - 1
        });
        &mut self.said[at].words
    }

    /// All that was sent of its text, or of its refusal.
    pub(super) fn sent(&self, is_refusal: bool) -> String {
        self.said.iter().filter(|said| said.is_refusal == is_refusal).map(|said| said.words.as_str()).collect()
    }

    /// Whether these words begin with what was sent of its text.
    pub(super) fn begins(&self, words: &str) -> bool {
        let mut rest = words;
        for said in self.said.iter().filter(|said| !said.is_refusal) {
            let Some(behind) = rest.strip_prefix(said.words.as_str()) else { return false };
            rest = behind;
        }
        rest.len() < words.len()
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        [self.text.as_str(), self.refusal.as_str()].into_iter().filter(|words| !words.trim().is_empty())
    }
}

/// The word of a member, without a copy.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list of parts of some types, joined. Servers of other vendors send a text in place of the list.
pub(super) fn texts(parts: &Value, kinds: &[&str], key: &str, separator: &str) -> String {
    if let Some(whole) = parts.as_str().filter(|_| key == "text") {
        return whole.to_owned();
    }
    let parts =
        items(Some(parts)).iter().filter(|part| kinds.contains(&text(part, "type")) || part.get("type").is_none());
    let texts: Vec<&str> = parts.map(|part| text(part, key)).collect();
    texts.join(separator)
}

/// The types of parts that are text.
pub(super) const TEXTS: &[&str] = &["output_text", "text"];

/// Whether an item was cut, whatever is said of the whole response.
pub(super) fn is_cut(item: &Value) -> bool {
    text(item, "status") == "incomplete"
}

pub(super) fn phase(item: &Value) -> Option<String> {
    Some(word(item, "phase")).filter(|phase| !phase.is_empty())
}

/// Takes name, id and arguments of a call, as far as they are there.
pub(super) fn take_members(slot: &mut Slot, item: &Value, on_delta: OnDelta<'_>) {
    let (id, mut name, given) = (word(item, "call_id"), word(item, "name"), arguments(item.get("arguments")));
    if text(item, "type") == SEARCH_CALL {
        found::SEARCH.clone_into(&mut name);
    }
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
pub(super) fn sealed(item: &Value) -> Option<ProviderPayload> {
    item.get("encrypted_content").and_then(Value::as_str).filter(|content| !content.is_empty())?;
    let mut kept = item.as_object()?.clone();
    kept.retain(|key, value| key != "status" && !value.is_null());
    kept.entry("summary").or_insert_with(|| json!([]));
    Some(ProviderPayload::untagged(Value::Object(kept).to_string()))
}

impl Message {
    /// The parts of a message. Its phase, which the provider wants back, is an item of the provider before its words.
    pub(super) fn into_parts(self, parts: &mut Vec<Part>, thoughts: &mut Vec<String>) {
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
