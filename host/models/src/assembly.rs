//! From the events of a reply to the reply. Pure: bytes come from `endpoint`, ids from the caller.
//!
//! A reply is whole only when its format says so, or when its stream ends as servers of this format end it; anything else is a reply that
//! broke off, which is an error in every wire format, and none of its calls runs. The module of each format has its rule.

pub(crate) mod answer;
#[cfg(test)]
mod attack;
pub(crate) mod chat;
mod inline;
mod last;
pub(crate) mod messages;
mod object;
mod reason;
pub(crate) mod responses;

use std::collections::{HashMap, HashSet};

use hermes_conversation::{Part, ToolCall};
use serde_json::Value;

use self::inline::Inline;
use crate::{Finish, OnDelta, Reply, failure::Stated, json, wire::schema::keys::Renamed};

/// The most tool calls of one reply. Models ask for a handful at once; the host runs, stores and shows each of them.
pub(crate) const MOST_CALLS: usize = 256;
/// The most bytes of a tool's name in a call. No tool that is offered has a longer one.
pub(crate) const LONGEST_NAME: usize = 256;
/// The most bytes of a call's id. A call with a longer one gets an id of the host.
const LONGEST_ID: usize = 512;
/// The name of a call that came without one. No tool has it, so the model is told which tools there are.
const NAMELESS: &str = "call_without_a_name";

/// The progress of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is incomplete.
    Open,
    /// It is complete if the stream ends now, but more of it may follow. So silence alone does not end it.
    Closing,
    /// It is complete; counts may follow.
    Whole,
    /// Nothing follows.
    Over,
}

/// Why the events do not form a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It ended before it was whole.
    Cut {
        /// The text so far.
        partial: String,
    },
    /// It contains more than [`MOST_CALLS`] calls.
    TooManyCalls,
}

/// Why a reply in one piece is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The server reports an error.
    Stated(Stated),
    /// It lacks a required member.
    Lacks(&'static str),
}

impl From<Stated> for Unread {
    fn from(stated: Stated) -> Self {
        Unread::Stated(stated)
    }
}

/// Collects the reply of one wire format.
pub(crate) trait Assemble: Send {
    /// Takes the data of one event. The error is what the server reports in place of a reply.
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated>;

    /// Takes a whole reply: servers that do not stream send one.
    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread>;

    /// Takes `[DONE]`.
    fn done(&mut self);

    /// The progress.
    fn progress(&self) -> Progress;

    /// The number of tool calls so far. More than [`MOST_CALLS`] are not collected: the reply is refused.
    fn calls(&self) -> usize;

    /// The reason with which the provider stopped a reply that had begun, so that it is not whole. A refusal in the model's own words
    /// is a whole reply.
    fn stopped(&self) -> Option<&str> {
        None
    }

    /// Shows what was held back, once nothing more comes.
    fn close(&mut self, _on_delta: OnDelta<'_>) {}

    /// The text so far, as far as it goes.
    fn into_text(self: Box<Self>) -> String;

    /// The reply, once nothing more comes. `new_id` makes ids for calls that have none.
    fn finish(self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken>;
}

/// A call as it arrived.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Slot {
    id: String,
    name: String,
    arguments: String,
    /// Whether it is known to be complete.
    whole: bool,
    /// Whether it may be the name of the call before it once more.
    is_echo: bool,
}

impl Slot {
    /// Writes the arguments as the tool knows them.
    fn read_back(&mut self, renamed: &Renamed) {
        if let Some(read) = renamed.read(&self.name, &self.arguments) {
            self.arguments = read;
        }
    }

    /// Whether nothing was called: there is neither a name of its own nor an argument.
    fn is_nothing(&self) -> bool {
        (self.name.is_empty() || self.is_echo) && self.arguments.trim().is_empty()
    }
}

/// The calls of a finished reply.
#[derive(Debug, PartialEq, Eq)]
struct Settled {
    calls: Vec<ToolCall>,
    /// For each slot that arrived, its call in `calls`.
    places: Vec<Option<usize>>,
    finish: Finish,
}

impl Settled {
    /// The parts of the reply, with its settled calls. Empty if the fields of the reply already say the same. Each call stays in
    /// its place between reasoning, because a signature covers the sequence. The calls of `parts` are those of the slots, in
    /// their order.
    fn parts(&self, mut parts: Vec<Part>) -> Vec<Part> {
        if parts.iter().all(|part| part.payload().is_none() && !matches!(part, Part::Refusal { .. })) {
            return Vec::new();
        }
        let mut places = self.places.iter();
        parts.retain_mut(|part| match part {
            Part::ToolCall(call) => {
                let kept = places.next().copied().flatten().and_then(|at| self.calls.get(at));
                kept.map(|kept| call.clone_from(kept)).is_some()
            }
            _ => true,
        });
        parts
    }
}

/// The calls of a finished reply, and why it ended, given its calls. A call that cannot be run costs itself, not the reply: the loop tells
/// the model what is wrong with it.
fn settle(slots: Vec<Slot>, mut finish: Finish, new_id: &mut dyn FnMut() -> String) -> Result<Settled, Broken> {
    let is_kept = |slot: &Slot| match finish {
        Finish::Refused => false,
        // Cut off before its name was out.
        Finish::Length => !slot.name.is_empty() && !slot.is_nothing(),
        Finish::Stop | Finish::ToolCalls => !slot.is_nothing(),
    };
    let kept: Vec<bool> = slots.iter().map(is_kept).collect();
    let count = kept.iter().filter(|kept| **kept).count();
    if count > MOST_CALLS {
        return Err(Broken::TooManyCalls);
    }
    if matches!(finish, Finish::Stop | Finish::ToolCalls) {
        finish = if count == 0 { Finish::Stop } else { Finish::ToolCalls };
    }
    let mut settled = Settled { calls: Vec::with_capacity(count), places: Vec::with_capacity(slots.len()), finish };
    let mut seen = HashSet::new();
    // The last number behind each id that came more than once.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (mut slot, is_kept) in slots.into_iter().zip(kept) {
        settled.places.push(is_kept.then_some(settled.calls.len()));
        if !is_kept {
            continue;
        }
        if slot.name.is_empty() {
            NAMELESS.clone_into(&mut slot.name);
        }
        slot.name.truncate(slot.name.floor_char_boundary(LONGEST_NAME));
        if slot.id.is_empty() || slot.id.len() > LONGEST_ID {
            slot.id = new_id();
        }
        if !seen.insert(slot.id.clone()) {
            let number = numbers.entry(slot.id.clone()).or_insert(1);
            let wanted = slot.id;
            slot.id = loop {
                *number += 1;
                let numbered = format!("{wanted}_{number}");
                if seen.insert(numbered.clone()) {
                    break numbered;
                }
            };
        }
        // Many models write nothing for a tool without parameters. In a reply that was cut, arguments may be missing.
        if slot.arguments.trim().is_empty() && (slot.whole || finish != Finish::Length) {
            slot.arguments = "{}".to_owned();
        }
        if let Some(mended) = json::mended_object(&slot.arguments) {
            slot.arguments = mended;
        }
        settled.calls.push(ToolCall { id: slot.id, name: slot.name, arguments: slot.arguments });
    }
    Ok(settled)
}

/// A word, or a number that a server writes in its place.
fn word(value: &Value, key: &str) -> String {
    match value.get(key) {
        Some(Value::String(word)) => word.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The arguments of a call: as text, or as the JSON that the text would be.
fn arguments(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(arguments)) => arguments.clone(),
        Some(arguments @ (Value::Object(_) | Value::Array(_))) => arguments.to_string(),
        _ => String::new(),
    }
}

/// The items of a list, or the one value in place of a list.
fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        Some(one @ Value::Object(_)) => std::slice::from_ref(one),
        _ => &[],
    }
}

/// A number, or a text that is one.
fn number(value: Option<&Value>) -> Option<u64> {
    value.and_then(|value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()))
}

/// Takes the thinking out of the text of a finished reply: what was written between tags, and what is before a closing tag whose opening
/// one was in the prompt. A reply that `needs_text` keeps at least something of it.
fn without_thinking(text: &mut String, inline: Inline, needs_text: bool) -> Option<String> {
    let mut thoughts = inline.into_thoughts();
    if thoughts.is_empty()
        && let Some((thought, said)) = inline::unopened(text)
        && !(needs_text && said.is_empty())
    {
        thought.clone_into(&mut thoughts);
        *text = said.to_owned();
    }
    (!thoughts.is_empty()).then_some(thoughts)
}

/// Reasoning that came apart from the text, and reasoning that was in it.
fn joined_thoughts(apart: String, inline: Option<String>) -> Option<String> {
    let both: Vec<String> = [Some(apart).filter(|apart| !apart.is_empty()), inline].into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join("\n\n"))
}
