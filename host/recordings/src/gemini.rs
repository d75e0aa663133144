//! Reads sessions of Gemini CLI and of Qwen Code, which are made of the parts of Gemini's API.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::blocks::{BRANCHES, BY_AGENT, COMPACTIONS, OTHER_RECORDS, Said, Scribe, is_added};
use super::records::Records;
use super::{Format, Recording, stamp};

/// Sessions of Gemini CLI: messages are written again when they change, and `$set` replaces all of them.
pub(super) fn gemini(name: &str, records: &Records) -> Recording {
    let mut recording = Recording::empty(name.to_owned(), Format::Gemini);
    let mut messages: Vec<&Value> = Vec::new();
    for record in records {
        if let Some(whole) = record.value.pointer("/$set/messages").or_else(|| record.value.get("messages")) {
            messages = whole.as_array().into_iter().flatten().collect();
        } else if let Some(id) = record.value.get("id").and_then(Value::as_str) {
            match messages.iter_mut().find(|message| message["id"] == id) {
                Some(message) => *message = &record.value,
                None => messages.push(&record.value),
            }
        }
    }
    let mut scribe = Scribe::of(&mut recording);
    for message in messages {
        let at = stamp::of(message, &["timestamp"]).unwrap_or(0);
        let mut said = Said::default();
        let thoughts = message["thoughts"].as_array().into_iter().flatten();
        thoughts.for_each(|thought| said.thought(thought["description"].as_str()));
        let is_left = parts(&message["content"], &mut said, scribe.recording);
        match message["type"].as_str() {
            Some("gemini" | "model") => {
                for call in message["toolCalls"].as_array().into_iter().flatten() {
                    said.call(call["id"].as_str(), call["name"].as_str(), &call["args"]);
                    call["result"].as_array().into_iter().flatten().for_each(|part| said.part(part, scribe.recording));
                }
                scribe.assistant(None, said, at);
            }
            Some("user") if is_left => scribe.recording.note(BY_AGENT, 1),
            Some("user") => scribe.user(said, at),
            _ => scribe.recording.note(OTHER_RECORDS, 1),
        }
    }
    recording
}

/// Sessions of Qwen Code: a tree of records, as in Claude Code, with parts as in Gemini CLI.
pub(super) fn qwen(name: &str, records: &Records) -> Recording {
    let mut recording = Recording::empty(name.to_owned(), Format::Qwen);
    let id = |value: &Value| value["uuid"].as_str().map(str::to_owned);
    let parents: HashMap<String, Option<String>> = records
        .iter()
        .filter_map(|record| Some((id(&record.value)?, record.value["parentUuid"].as_str().map(str::to_owned))))
        .collect();
    let mut at = records.iter().rev().find_map(|record| id(&record.value));
    let mut chosen: HashSet<String> = HashSet::new();
    while let Some(record) = at.filter(|id| chosen.insert(id.clone())) {
        at = parents.get(&record).cloned().flatten();
    }
    let mut scribe = Scribe::of(&mut recording);
    for record in records {
        let value = &record.value;
        if !id(value).is_some_and(|id| chosen.contains(&id)) {
            scribe.recording.note(BRANCHES, 1);
            continue;
        }
        let at = stamp::of(value, &["timestamp"]).unwrap_or(0);
        let mut said = Said::default();
        match value["type"].as_str() {
            Some(kind @ ("user" | "assistant" | "tool_result")) => {
                let is_left = parts(&value["message"]["parts"], &mut said, scribe.recording);
                match kind {
                    "assistant" => scribe.assistant(None, said, at),
                    _ if is_left => scribe.recording.note(BY_AGENT, 1),
                    _ => scribe.user(said, at),
                }
            }
            _ if value["subtype"] == "chat_compression" => scribe.recording.note(COMPACTIONS, 1),
            _ => scribe.recording.note(OTHER_RECORDS, 1),
        }
    }
    recording
}

/// Adds parts, without those that the agent added. Whether it added all of them.
fn parts(content: &Value, said: &mut Said, recording: &mut Recording) -> bool {
    let parts = match content {
        Value::Array(parts) => parts,
        other => {
            let text = other.as_str();
            said.text(text.filter(|text| !is_added(text)));
            return text.is_some_and(is_added);
        }
    };
    let is_of_agent =
        |part: &&Value| part["text"].as_str().is_some_and(|text| part["thought"] != true && is_added(text));
    parts.iter().filter(|part| !is_of_agent(part)).for_each(|part| said.part(part, recording));
    !parts.is_empty() && parts.iter().all(|part| is_of_agent(&part))
}
