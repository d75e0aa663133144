//! Reads sessions of the pi coding agent: one record per line.

use std::collections::{HashMap, HashSet};

use hermes_conversation::{Draft, Role, ToolCall};
use serde_json::Value;

use super::attached::Content;
use super::records::{Record, Records};
use super::{Fault, Format, Recording, stamp};

pub(super) fn read(name: &str, records: &Records) -> Result<Recording, Fault> {
    let mut recording = Recording::empty(name.to_owned(), Format::Pi);
    let chosen = newest_branch(records);
    for record in records {
        let kind = record.value.get("type").and_then(Value::as_str).unwrap_or_default();
        if let (Some(chosen), Some(id)) = (&chosen, id_of(record))
            && !chosen.contains(id)
        {
            recording.note("records of branches that were left, left out", 1);
            continue;
        }
        match kind {
            "message" => message(record, &mut recording)?,
            "compaction" => recording.note("compactions of the recorded agent, left out", 1),
            "branch_summary" => recording.note("summaries of branches, left out", 1),
            "session" => {}
            "" => return Err(Fault::new(record.line, "it has no `type`")),
            _ => recording.note("changes of settings and other records, left out", 1),
        }
    }
    Ok(recording)
}

fn id_of(record: &Record) -> Option<&str> {
    record.value.get("id").and_then(Value::as_str).filter(|_| record.value.get("type") != Some(&"session".into()))
}

/// Newer files contain a tree of records. The branch that ends in the last record is replayed.
fn newest_branch(records: &Records) -> Option<HashSet<&str>> {
    let parents: HashMap<&str, Option<&str>> = records
        .iter()
        .filter(|record| record.value.get("parentId").is_some())
        .filter_map(|record| Some((id_of(record)?, record.value.get("parentId").and_then(Value::as_str))))
        .collect();
    let mut at = records.iter().rev().find_map(|record| id_of(record).filter(|id| parents.contains_key(id)));
    let mut chosen = HashSet::new();
    at?;
    while let Some(id) = at.filter(|id| chosen.insert(*id)) {
        at = parents.get(id).copied().flatten();
    }
    Some(chosen)
}

fn message(record: &Record, recording: &mut Recording) -> Result<(), Fault> {
    let line = record.line;
    let Some(message) = record.value.get("message") else {
        return Err(Fault::new(line, "a record of type `message` has none"));
    };
    let field = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
    let created_at =
        stamp::of(message, &["timestamp"]).or_else(|| stamp::of(&record.value, &["timestamp"])).unwrap_or(0);
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let draft = match role {
        "user" => {
            let content = content(message.get("content"), recording);
            let draft = Draft::user(content.text(), created_at);
            content.complete(draft)
        }
        "assistant" => assistant(message, line, created_at, recording)?,
        "toolResult" => {
            let content = content(message.get("content"), recording);
            let mut draft = Draft::user(content.text(), created_at);
            draft.role = Role::Tool;
            draft.tool_call_id = field("toolCallId");
            draft.tool_name = field("toolName");
            content.complete(draft)
        }
        // A command that the user ran. The model gets it as a user message.
        "bashExecution" => {
            let (command, output) = (field("command").unwrap_or_default(), field("output").unwrap_or_default());
            Draft::user(format!("Ran `{command}`\n```\n{output}\n```"), created_at)
        }
        "system" | "developer" => {
            recording.note("system messages, left out: the fixed tokens stand for them", 1);
            return Ok(());
        }
        "custom" | "hookMessage" | "branchSummary" | "compactionSummary" => {
            recording.note("messages that the recorded agent wrote itself, left out", 1);
            return Ok(());
        }
        "" => return Err(Fault::new(line, "its message has no `role`")),
        role => return Err(Fault::new(line, format!("its role `{role}` is not known in pi's format"))),
    };
    recording.drafts.push(draft);
    Ok(())
}

fn assistant(message: &Value, line: usize, created_at: u64, recording: &mut Recording) -> Result<Draft, Fault> {
    let mut calls = Vec::new();
    let mut reasoning = Vec::new();
    for part in message.get("content").and_then(Value::as_array).into_iter().flatten() {
        match part.get("type").and_then(Value::as_str) {
            Some("toolCall") => {
                let text = |name: &str| part.get(name).and_then(Value::as_str);
                let (Some(id), Some(name)) = (text("id"), text("name")) else {
                    return Err(Fault::new(line, "a call in it has no `id` or no `name`"));
                };
                let arguments = part.get("arguments").map_or_else(|| "{}".to_owned(), ToString::to_string);
                calls.push(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments });
            }
            Some("thinking") => reasoning.extend(part.get("thinking").and_then(Value::as_str)),
            _ => {}
        }
    }
    let reasoning = (!reasoning.is_empty()).then(|| reasoning.join("\n"));
    let content = content(message.get("content"), recording);
    let draft = Draft { reasoning, ..Draft::assistant(content.text(), calls, created_at) };
    Ok(content.complete(draft))
}

/// A text, or a list of texts and images.
fn content(content: Option<&Value>, recording: &mut Recording) -> Content {
    if let Some(Value::String(text)) = content {
        return Content::of_text(text);
    }
    let mut found = Content::default();
    for part in content.and_then(Value::as_array).into_iter().flatten() {
        match part.get("type").and_then(Value::as_str) {
            Some("text") => found.push_text(part.get("text").and_then(Value::as_str)),
            Some("image") => found.push_picture(part, recording),
            _ => {}
        }
    }
    found
}
