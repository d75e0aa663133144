//! BEAM: long chats with an assistant, and the questions about each in a file of its own.

use std::collections::{BTreeSet, HashMap};

use hermes_conversation::Role;
use serde_json::Value;

use super::{
    BROKEN_MESSAGE, BROKEN_QUESTION, BROKEN_TIME, Collection, Dialogue, EMPTY_MESSAGE, UNKNOWN_MESSAGE, Utterance, time,
};

/// Whether this is a chat: a list of batches of turns.
pub(super) fn is_chat(value: &Value) -> bool {
    let is_batch = |batch: &Value| batch.get("turns").is_some_and(Value::is_array);
    value.as_array().is_some_and(|batches| !batches.is_empty() && batches.iter().all(is_batch))
}

/// Whether these are the questions about a chat: lists of questions by their kind.
pub(super) fn is_questions(value: &Value) -> bool {
    let is_question = |question: &Value| question.get("question").is_some() && question.get("rubric").is_some();
    let is_kind = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(is_question));
    value.as_object().is_some_and(|kinds| !kinds.is_empty() && kinds.values().all(is_kind))
}

/// The number of messages of a chat.
pub(super) fn length(chat: &Value) -> usize {
    messages(chat).count()
}

fn batches(chat: &Value) -> impl Iterator<Item = &Value> {
    chat.as_array().into_iter().flatten()
}

/// The messages of each turn of a batch.
fn turns(batch: &Value) -> impl Iterator<Item = &Value> {
    batch.get("turns").and_then(Value::as_array).into_iter().flatten().flat_map(|turn| turn.as_array()).flatten()
}

fn messages(chat: &Value) -> impl Iterator<Item = &Value> {
    batches(chat).flat_map(turns)
}

pub(super) fn read(name: String, chat: &Value, questions: &Value) -> Dialogue {
    let mut dialogue = Dialogue::new(name, Collection::Beam);
    let mut times = time::Timeline::new();
    let mut positions = HashMap::new();
    for batch in batches(chat) {
        let mut anchor = batch.get("time_anchor");
        for message in turns(batch) {
            anchor = message.get("time_anchor").or(anchor);
            if let Some(text) = anchor.take().and_then(Value::as_str) {
                match time::beam(text) {
                    Some(time) => times.at(time),
                    None => dialogue.note(BROKEN_TIME, 1),
                }
            }
            let role = match message.get("role").and_then(Value::as_str) {
                Some("user") => Some(Role::User),
                Some("assistant") => Some(Role::Assistant),
                _ => None,
            };
            let (id, content) = (message.get("id").and_then(Value::as_u64), message.get("content"));
            let (Some(role), Some(id), Some(content)) = (role, id, content.and_then(Value::as_str)) else {
                dialogue.note(BROKEN_MESSAGE, 1);
                continue;
            };
            let text = without_mark(content);
            dialogue.note(EMPTY_MESSAGE, u64::from(text.trim().is_empty()));
            if positions.insert(id, dialogue.messages.len()).is_some() {
                dialogue.note("messages with the id of an earlier one", 1);
            }
            let said_at = times.tick();
            dialogue.messages.push(Utterance { role, text: text.to_owned(), said_at, session: 0 });
        }
    }
    for (kind, list) in questions.as_object().into_iter().flatten() {
        for (at, question) in list.as_array().into_iter().flatten().enumerate() {
            let Some(words) = question.get("question").and_then(Value::as_str) else {
                dialogue.note(BROKEN_QUESTION, 1);
                continue;
            };
            let mut named = BTreeSet::new();
            if let Some(sources) = question.get("source_chat_ids") {
                numbers(sources, &mut named);
            }
            let found: BTreeSet<usize> = named.iter().filter_map(|id| positions.get(id)).copied().collect();
            let lacking = named.iter().filter(|id| !positions.contains_key(id)).count() as u64;
            dialogue.note(UNKNOWN_MESSAGE, lacking);
            dialogue.ask(format!("{kind}-{at}"), &kind.replace('_', " "), words, found, named.len() as u64);
        }
    }
    dialogue
}

/// The ids in lists, in lists by name, and in texts.
fn numbers(value: &Value, ids: &mut BTreeSet<u64>) {
    match value {
        Value::Number(number) => ids.extend(number.as_u64()),
        Value::String(text) => {
            ids.extend(text.split(|sign: char| !sign.is_ascii_digit()).filter_map(|id| id.parse::<u64>().ok()));
        }
        Value::Array(values) => values.iter().for_each(|value| numbers(value, ids)),
        Value::Object(values) => values.values().for_each(|value| numbers(value, ids)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A message without the mark `->-> 1,3` at its end, which names the plan that the message was generated from.
fn without_mark(text: &str) -> &str {
    let Some((before, mark)) = text.rsplit_once("->->") else { return text };
    let is_mark = mark.chars().all(|sign| sign.is_alphanumeric() || "_-., ".contains(sign) || sign.is_whitespace());
    if is_mark { before.trim_end() } else { text }
}
