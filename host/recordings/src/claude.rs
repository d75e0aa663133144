//! Reads sessions of Claude Code: one record per line, which form a tree.
//!
//! A reply is several records with one message id, one for each block. Results of parallel calls hang on the record of their own
//! call, so the way from the last record to the first misses some: records of the same reply, and results of its calls, belong
//! to the branch, too.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::blocks::{BRANCHES, BY_AGENT, COMPACTIONS, OTHER_RECORDS, Said, Scribe, is_added};
use super::records::{Record, Records};
use super::{Format, Recording, stamp};

/// Whether a record is of such a session.
pub(super) fn is_record(value: &Value) -> bool {
    value.get("sessionId").is_some()
        && (value.get("uuid").is_some() && value.get("parentUuid").is_some() || value.get("operation").is_some())
        && value.pointer("/message/parts").is_none()
        || value
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind == "file-history-snapshot" || kind == "last-prompt")
}

pub(super) fn read(name: &str, records: &Records) -> Recording {
    let mut recording = Recording::empty(name.to_owned(), Format::ClaudeCode);
    // Older versions wrote subagents into the same file; newer ones give each a file of its own.
    let is_side = |record: &Record| record.value["isSidechain"] == true;
    let is_conversation = |record: &Record| is_turn(&record.value);
    let has_main = records.iter().any(|record| is_conversation(record) && !is_side(record));
    let kept: Vec<&Record> = records.iter().filter(|record| !has_main || !is_side(record)).collect();
    recording.note("records of subagents, left out", (records.len() - kept.len()) as u64);
    let chosen = newest_branch(&kept);
    let mut scribe = Scribe::of(&mut recording);
    for record in kept {
        let value = &record.value;
        if !is_turn(value) {
            let what = if value["subtype"] == "compact_boundary" { COMPACTIONS } else { OTHER_RECORDS };
            scribe.recording.note(what, 1);
            continue;
        }
        if !text(value, "/uuid").is_some_and(|id| chosen.contains(id)) {
            scribe.recording.note(BRANCHES, 1);
            continue;
        }
        let at = stamp::of(value, &["timestamp"]).unwrap_or(0);
        let said = said(&value["message"]["content"], scribe.recording);
        match value["type"] == "assistant" {
            true => scribe.assistant(text(value, "/message/id"), said, at),
            false if value["isCompactSummary"] == true || value["isMeta"] == true || is_of_agent(value) => {
                scribe.recording.note(BY_AGENT, 1);
            }
            false => scribe.user(said, at),
        }
    }
    recording
}

fn is_turn(value: &Value) -> bool {
    matches!(text(value, "/type"), Some("user" | "assistant")) && value["message"].is_object()
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// Whether a message of the role user is only what the agent added, such as the output of a command.
fn is_of_agent(value: &Value) -> bool {
    let content = &value["message"]["content"];
    content.as_str().is_some_and(is_added)
        || content.as_array().is_some_and(|parts| {
            !parts.is_empty() && parts.iter().all(|part| part["text"].as_str().is_some_and(is_added))
        })
}

fn said(content: &Value, recording: &mut Recording) -> Said {
    let mut said = Said::default();
    match content {
        Value::Array(parts) => {
            for part in parts.iter().filter(|part| !part["text"].as_str().is_some_and(is_added)) {
                if !said.block(part, recording) {
                    recording.note("parts that are neither text nor image, left out", 1);
                }
            }
        }
        other => said.text(other.as_str()),
    }
    said
}

/// The records of the branch that ends in the last record.
fn newest_branch<'a>(records: &[&'a Record]) -> HashSet<&'a str> {
    let mut parents: HashMap<&str, Option<&str>> = HashMap::new();
    for record in records {
        let value = &record.value;
        if let Some(id) = text(value, "/uuid") {
            // A compaction begins a new tree, and names the message before it.
            parents.insert(id, text(value, "/parentUuid").or_else(|| text(value, "/logicalParentUuid")));
        }
    }
    let turns = || records.iter().map(|record| &record.value).filter(|value| is_turn(value));
    let mut at = turns().next_back().and_then(|value| text(value, "/uuid"));
    let mut chosen: HashSet<&str> = HashSet::new();
    while let Some(id) = at.filter(|id| chosen.insert(*id)) {
        at = parents.get(id).copied().flatten();
    }
    let is_chosen = |value: &Value, chosen: &HashSet<&str>| text(value, "/uuid").is_some_and(|id| chosen.contains(id));
    let replies: HashSet<&str> =
        turns().filter(|value| is_chosen(value, &chosen)).filter_map(|value| text(value, "/message/id")).collect();
    let (mut more, mut calls): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for value in turns() {
        if text(value, "/message/id").is_some_and(|id| replies.contains(id)) {
            more.extend(text(value, "/uuid"));
            let parts = value["message"]["content"].as_array().into_iter().flatten();
            calls.extend(parts.filter_map(|part| part["id"].as_str()));
        }
    }
    for value in turns() {
        let parts = value["message"]["content"].as_array().into_iter().flatten();
        let mut answers = parts.filter_map(|part| part["tool_use_id"].as_str());
        if answers.any(|id| calls.contains(id)) {
            more.extend(text(value, "/uuid"));
        }
    }
    chosen.extend(more);
    chosen
}
