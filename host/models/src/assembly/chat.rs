//! The chunks of chat completions.
//!
//! Servers differ in what they leave out and in what they repeat. These rules read all of them correctly.

mod details;

use std::collections::BTreeMap;

use hermes_conversation::{Part, ProviderPayload, ToolCall, Usage};
use serde_json::{Map, Value};

use super::{Assemble, Broken, MOST_CALLS, Progress, Slot, Unread, object::ObjectScan, settle};
use crate::{
    Delta, Echo, Finish, OnDelta, Reply,
    failure::Stated,
    reasoning::{CALLS_KEY, CONTENT_KEY, DETAILS_KEY, TEXT_KEY},
    usage,
};

/// Between the text of a reply and its refusal, as between any two parts that are words.
const BEFORE_REFUSAL: &str = "\n\n";

/// What has arrived of a reply.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// What the provider wants back.
    echo: Echo,
    text: String,
    /// The reasoning as it is shown.
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
    finish: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    /// The server has said that nothing more follows.
    ended: bool,
}

impl Assemble for Assembly {
    fn take(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Stated::from_value(200, chunk));
        }
        if self.model.is_none() {
            self.model =
                chunk.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()).map(str::to_owned);
        }
        let choice = chunk.pointer("/choices/0");
        let counted = chunk.get("usage").or_else(|| choice?.get("usage")).and_then(usage::read);
        if let Some(counted) = counted {
            self.usage = Some(counted);
            // With `include_usage`, the chunk that has counts and no choice is the last one.
            self.ended |= choice.is_none() && !self.is_empty();
        }
        let Some(choice) = choice else { return Ok(()) };
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            self.take_delta(delta, false, on_delta);
        } else if let Some(message) = choice.get("message") {
            self.take_delta(message, true, on_delta);
            self.ended = true;
        }
        match choice.get("finish_reason") {
            Some(Value::String(reason)) if !reason.is_empty() => self.finish = Some(reason.clone()),
            Some(Value::Number(reason)) => self.finish = Some(reason.to_string()),
            _ => {}
        }
        if self.finish.as_deref() == Some("error") {
            return Err(Stated {
                status: 500,
                code: String::new(),
                message: "the model failed midway".to_owned(),
                window: None,
            });
        }
        Ok(())
    }

    /// A whole completion is one chunk.
    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread> {
        self.take(reply, on_delta)?;
        reply.pointer("/choices/0").map(|_| ()).ok_or(Unread::Lacks("choices"))
    }

    fn done(&mut self) {
        self.ended = true;
    }

    fn progress(&self) -> Progress {
        // Whatever gave a reason to end: only counts can follow, and `[DONE]`.
        if self.finish.is_some() || self.ended { Progress::Whole } else { Progress::Open }
    }

    fn calls(&self) -> usize {
        self.calls.len()
    }

    fn into_text(self: Box<Self>) -> String {
        self.text
    }

    fn finish(mut self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        if self.progress() == Progress::Open {
            return Err(Broken::Cut { partial: self.text });
        }
        let mut finish = match self.finish.as_deref() {
            Some("length" | "max_tokens") => Finish::Length,
            Some("content_filter" | "refusal") => Finish::Refused,
            _ => Finish::Stop,
        };
        let declined = !self.refusal.trim().is_empty();
        if declined && self.calls.is_empty() && finish == Finish::Stop {
            finish = Finish::Refused;
        }
        let (tool_calls, finish) = settle(std::mem::take(&mut self.calls), finish, new_id)?;
        let payload = self.payload(&tool_calls);
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
    /// For a reply of a provider that wants this reasoning back.
    pub(crate) fn new(echo: Echo) -> Self {
        Self {
            echo,
            text: String::new(),
            reasoning: String::new(),
            reasoning_content: String::new(),
            reasoning_text: String::new(),
            details: Vec::new(),
            refusal: String::new(),
            calls: Vec::new(),
            scans: Vec::new(),
            extras: Vec::new(),
            newest: BTreeMap::new(),
            finish: None,
            usage: None,
            model: None,
            ended: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.reasoning.is_empty()
            && self.details.is_empty()
            && self.refusal.is_empty()
            && self.calls.is_empty()
    }

    /// What the provider wants back unchanged. Other members are only for people to read.
    fn payload(&self, calls: &[ToolCall]) -> Option<ProviderPayload> {
        // A call that was cut off or dropped leaves the others without their places.
        let extras = self.extras.iter().filter(|_| self.extras.len() == calls.len());
        let of_calls = calls.iter().zip(extras);
        let extras: Map<_, _> = of_calls.filter_map(|(call, extra)| Some((call.id.clone(), extra.clone()?))).collect();
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

    fn take_delta(&mut self, delta: &Value, whole: bool, on_delta: OnDelta<'_>) {
        if let Some(more) = delta.get(CONTENT_KEY).and_then(Value::as_str) {
            self.reasoning_content.push_str(more);
        }
        if let Some(more) = delta.get(TEXT_KEY).and_then(Value::as_str) {
            self.reasoning_text.push_str(more);
        }
        let new_details = delta.get(DETAILS_KEY).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        details::append(&mut self.details, new_details, whole);
        // Some servers send the same words under several names.
        let named =
            [TEXT_KEY, CONTENT_KEY].iter().find_map(|key| delta.get(key).map(text_of).filter(|text| !text.is_empty()));
        if let Some(more) = named.or_else(|| details::words(new_details)) {
            on_delta(Delta::Reasoning(&more));
            self.reasoning.push_str(&more);
        }
        let more = delta.get("content").map(text_of).unwrap_or_default();
        if !more.is_empty() {
            // Behind the first call, text is an aside that would tear the display of calls apart.
            if self.calls.is_empty() {
                on_delta(Delta::Text(&more));
            }
            self.text.push_str(&more);
        }
        if let Some(more) = delta.get("refusal").and_then(Value::as_str).filter(|more| !more.is_empty()) {
            if self.refusal.is_empty() && !self.text.trim().is_empty() {
                on_delta(Delta::Text(BEFORE_REFUSAL));
            }
            on_delta(Delta::Text(more));
            self.refusal.push_str(more);
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for (position, call) in calls.into_iter().flatten().enumerate() {
            if self.calls.len() > MOST_CALLS {
                return;
            }
            // A whole message numbers its calls by their places.
            let index = if whole { position as u64 } else { call.get("index").and_then(Value::as_u64).unwrap_or(0) };
            self.take_call(index, call, on_delta);
        }
    }

    fn take_call(&mut self, index: u64, call: &Value, on_delta: OnDelta<'_>) {
        let id = match call.get("id") {
            Some(Value::String(id)) => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            _ => String::new(),
        };
        let function = call.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.get("arguments") {
            Some(Value::String(arguments)) => arguments.clone(),
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            _ => String::new(),
        };

        let open = self.newest.get(&index).copied().filter(|at| {
            let slot = &self.calls[*at];
            let other_id = !id.is_empty() && !slot.id.is_empty() && slot.id != id;
            // Servers without ids may put all calls at one index: a name behind whole arguments begins another.
            let next = id.is_empty() && !name.is_empty() && !arguments.is_empty() && self.scans[*at].is_object();
            !other_id && !next
        });
        let at = open.unwrap_or_else(|| {
            self.calls.push(Slot::default());
            self.scans.push(ObjectScan::default());
            self.extras.push(None);
            self.calls.len() - 1
        });
        self.newest.insert(index, at);
        if let Some(extra) = call.get(CALLS_KEY).filter(|extra| extra.is_object()) {
            self.extras[at] = Some(extra.clone());
        }
        let slot = &mut self.calls[at];
        if !id.is_empty() {
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
    }
}

/// Text, or the text of a list of parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
