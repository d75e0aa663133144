//! From the events of a reply to the reply. Pure: bytes come from `endpoint`, ids from the caller.
//!
//! A stream that breaks off is an error in every wire format, and none of its calls runs.

pub(crate) mod answer;
#[cfg(test)]
mod attack;
pub(crate) mod chat;
pub(crate) mod messages;
mod object;
pub(crate) mod responses;

use std::collections::{HashMap, HashSet};

use hermes_conversation::{Part, ToolCall};
use serde_json::Value;

use crate::{Finish, OnDelta, Reply, failure::Stated};

/// The most tool calls of one reply. Models ask for a handful at once; the host runs, stores and shows each of them.
pub(crate) const MOST_CALLS: usize = 256;
/// The most bytes of a tool's name in a call. No tool that is offered has a longer one.
pub(crate) const LONGEST_NAME: usize = 256;
/// The most bytes of a call's id. A call with a longer one gets an id of the host.
const LONGEST_ID: usize = 512;

/// The progress of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is incomplete.
    Open,
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
    /// It is complete, and a call in it has no name.
    NamelessCall,
    /// The name of a call is longer than any tool's.
    LongName,
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
}

/// The parts of a finished reply with its calls as they were settled; none if the fields of the reply say the same. Each call stays in
/// its place between reasoning: a signature covers the sequence.
fn settled(mut parts: Vec<Part>, calls: &[ToolCall]) -> Vec<Part> {
    if parts.iter().all(|part| part.payload().is_none() && !matches!(part, Part::Refusal { .. })) {
        return Vec::new();
    }
    let mut calls = calls.iter();
    parts.retain_mut(|part| match part {
        Part::ToolCall(call) if call.name.is_empty() => false,
        Part::ToolCall(call) => calls.next().map(|kept| call.clone_from(kept)).is_some(),
        _ => true,
    });
    parts
}

/// The calls of a finished reply, and why it ended, given its calls.
fn settle(
    mut slots: Vec<Slot>,
    mut finish: Finish,
    new_id: &mut dyn FnMut() -> String,
) -> Result<(Vec<ToolCall>, Finish), Broken> {
    match finish {
        Finish::Refused => slots.clear(),
        // Cut off before its name was out.
        Finish::Length => slots.retain(|slot| !slot.name.is_empty()),
        Finish::Stop | Finish::ToolCalls => {
            finish = if slots.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        }
    }
    if slots.len() > MOST_CALLS {
        return Err(Broken::TooManyCalls);
    }
    let mut seen = HashSet::new();
    // The last number behind each id that came more than once.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut calls = Vec::with_capacity(slots.len());
    for mut slot in slots {
        if slot.name.is_empty() {
            return Err(Broken::NamelessCall);
        }
        if slot.name.len() > LONGEST_NAME {
            return Err(Broken::LongName);
        }
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
        calls.push(ToolCall { id: slot.id, name: slot.name, arguments: slot.arguments });
    }
    Ok((calls, finish))
}
