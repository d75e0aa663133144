//! Reads items of the Responses API: sessions of Codex, and bodies of requests.

use serde_json::Value;

use super::blocks::{BY_AGENT, COMPACTIONS, OTHER_RECORDS, Said, Scribe, contents, is_added};
use super::records::Records;
use super::{Fault, Format, Recording, stamp};

/// Sessions of Codex: one record per line, whose messages are items. Events repeat them.
pub(super) fn codex(name: &str, records: &Records) -> Recording {
    let mut recording = Recording::empty(name.to_owned(), Format::Codex);
    let mut items = Items::of(&mut recording);
    for record in records {
        let (value, payload) = (&record.value, &record.value["payload"]);
        match value["type"].as_str() {
            // The reply that became a summary.
            Some("response_item") if value["metadata"]["compaction_output"] == true => items.note(COMPACTIONS),
            Some("response_item") => items.add(payload, stamp::of(value, &["timestamp"]).unwrap_or(0)),
            Some("compacted") => items.note(COMPACTIONS),
            _ => items.note(OTHER_RECORDS),
        }
    }
    items.end();
    recording
}

/// Bodies of requests, each with a whole conversation in `input`.
pub(super) fn bodies(name: &str, records: &Records) -> Result<Vec<Recording>, Fault> {
    let mut recordings = Vec::new();
    for record in records {
        let Some(input) = record.value.get("input") else {
            return Err(Fault::new(record.line, "it has no `input`, as the others have"));
        };
        let name = if records.len() == 1 { name.to_owned() } else { format!("{name}-{}", recordings.len() + 1) };
        let mut recording = Recording::empty(name, Format::Responses);
        let mut items = Items::of(&mut recording);
        match input {
            Value::String(text) => items.add(&serde_json::json!({ "role": "user", "content": text }), 0),
            other => other.as_array().into_iter().flatten().for_each(|item| items.add(item, 0)),
        }
        items.end();
        recordings.push(recording);
    }
    Ok(recordings)
}

/// Items in order. Those of a reply follow one another.
struct Items<'a> {
    scribe: Scribe<'a>,
    /// The reply so far, and its time.
    reply: Option<(Said, u64)>,
}

impl<'a> Items<'a> {
    fn of(recording: &'a mut Recording) -> Self {
        Self { scribe: Scribe::of(recording), reply: None }
    }

    fn note(&mut self, what: &'static str) {
        self.scribe.recording.note(what, 1);
    }

    fn add(&mut self, item: &Value, at: u64) {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        match (text("type").unwrap_or("message"), text("role")) {
            ("message", Some("assistant")) => {
                let said = said(&item["content"], self.scribe.recording);
                // After a text, another text begins another reply.
                self.more(at, |reply| *reply = merged(std::mem::take(reply), said));
            }
            ("message", Some("user")) if !is_of_user(item) => self.note(BY_AGENT),
            ("message", Some("user")) => {
                self.end();
                let said = said(&item["content"], self.scribe.recording);
                self.scribe.user(said, at);
            }
            ("message", _) => self.note("system messages, left out: the fixed tokens stand for them"),
            ("reasoning", _) => {
                let summaries = item["summary"].as_array().into_iter().flatten();
                let thoughts: Vec<String> =
                    summaries.filter_map(|each| Some(each["text"].as_str()?.to_owned())).collect();
                self.more(at, |reply| reply.thought(Some(&thoughts.join("\n"))));
            }
            ("function_call" | "custom_tool_call", _) => {
                let arguments = item.get("arguments").or_else(|| item.get("input")).cloned().unwrap_or_default();
                self.more(at, |reply| reply.call(text("call_id"), text("name"), &arguments));
            }
            ("local_shell_call", _) => {
                self.more(at, |reply| reply.call(text("call_id"), Some("local_shell"), &item["action"]));
            }
            ("function_call_output" | "custom_tool_call_output" | "local_shell_call_output", _) => {
                self.end();
                let output = match item["output"].get("content") {
                    Some(content) => contents(content, self.scribe.recording),
                    None => contents(&item["output"], self.scribe.recording),
                };
                let mut said = Said::default();
                said.result(text("call_id"), None, output);
                self.scribe.user(said, at);
            }
            _ => self.note("parts that are neither text nor image, left out"),
        }
    }

    fn more(&mut self, at: u64, change: impl FnOnce(&mut Said)) {
        let (reply, _) = self.reply.get_or_insert_with(|| (Said::default(), at));
        change(reply);
    }

    /// Ends the reply.
    fn end(&mut self) {
        if let Some((reply, at)) = self.reply.take() {
            self.scribe.assistant(None, reply, at);
        }
    }
}

fn merged(mut reply: Said, more: Said) -> Said {
    reply.append(more);
    reply
}

fn said(content: &Value, recording: &mut Recording) -> Said {
    let mut said = Said::default();
    match content {
        Value::Array(parts) => {
            for part in parts {
                // Codex writes these around a picture.
                if part["text"].as_str().is_some_and(|text| text.starts_with("<image name=") || text == "</image>") {
                    continue;
                }
                match part["type"].as_str() {
                    Some("refusal") => said.text(part["refusal"].as_str()),
                    _ if said.block(part, recording) => {}
                    _ => recording.note("parts that are neither text nor image, left out", 1),
                }
            }
        }
        other => said.text(other.as_str()),
    }
    said
}

/// Whether a message of the role user is the user's. Codex says which parts it added; older versions only mark their beginning.
fn is_of_user(item: &Value) -> bool {
    let kinds =
        item.pointer("/internal_chat_message_metadata_passthrough/content_item_kinds").and_then(Value::as_array);
    if let Some(kinds) = kinds {
        return kinds.iter().filter_map(Value::as_str).any(|kind| kind.starts_with("user."));
    }
    let parts: Vec<&str> = match &item["content"] {
        Value::String(text) => vec![text],
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    };
    parts.is_empty() || !parts.into_iter().all(is_added)
}
