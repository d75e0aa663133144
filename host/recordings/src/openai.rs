//! Reads messages in the format of chat completions: one per line, or a whole conversation in each object's `messages`.

use hermes_conversation::{Draft, Role, ToolCall};
use serde_json::Value;

use super::attached::Content;
use super::blocks::{Said, Scribe, unwrapped};
use super::records::Records;
use super::{Fault, Format, Recording, stamp};

/// Where a message has its time; `ts` is that of Cline.
const TIMES: &[&str] = &["timestamp", "created_at", "created", "ts"];

pub(super) fn read(name: &str, records: &Records) -> Result<Vec<Recording>, Fault> {
    let conversations = records.iter().filter(|record| record.value.get("messages").is_some()).count();
    if conversations == 0 {
        let mut recording = Recording::empty(name.to_owned(), Format::OpenAi);
        for record in records {
            message(&record.value, record.line, &mut recording)?;
        }
        return Ok(vec![recording]);
    }
    let mut recordings = Vec::new();
    for record in records {
        let Some(messages) = record.value.get("messages").and_then(Value::as_array) else {
            return Err(Fault::new(record.line, "it has no list of `messages`, as the others have"));
        };
        let number = recordings.len() + 1;
        let name = if conversations == 1 { name.to_owned() } else { format!("{name}-{number}") };
        let mut recording = Recording::empty(name, Format::OpenAi);
        for (at, value) in messages.iter().enumerate() {
            message(value, record.line, &mut recording)
                .map_err(|fault| Fault::new(fault.line, format!("message {}: {}", at + 1, fault.why)))?;
        }
        recordings.push(recording);
    }
    Ok(recordings)
}

fn message(value: &Value, line: usize, recording: &mut Recording) -> Result<(), Fault> {
    let Some(role) = value.get("role").and_then(Value::as_str) else {
        return Err(Fault::new(line, "it has no `role`"));
    };
    let role = match role {
        "system" | "developer" => {
            recording.note("system messages, left out: the fixed tokens stand for them", 1);
            return Ok(());
        }
        role => Role::parse(role)
            .ok_or_else(|| Fault::new(line, format!("its role `{role}` is none of user, assistant, tool, system")))?,
    };
    // A request of the Messages API has the same shape, but calls and results are blocks of its messages.
    if let Some(parts) = value.get("content").and_then(Value::as_array).filter(|parts| parts.iter().any(is_block)) {
        let mut said = Said::default();
        for part in parts {
            if !said.block(part, recording) {
                recording.note("parts that are neither text nor image, left out", 1);
            }
        }
        let created_at = stamp::of(value, TIMES).unwrap_or(0);
        recording.format = Format::Messages;
        let mut scribe = Scribe::of(recording);
        match role {
            Role::Assistant => scribe.assistant(None, said, created_at),
            _ => scribe.user(said, created_at),
        }
        return Ok(());
    }
    let content = content(value.get("content"), line, recording)?;
    let calls = match value.get("tool_calls") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => {
            calls.iter().enumerate().map(|(at, value)| call(value, at, line)).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(Fault::new(line, "its `tool_calls` are no list")),
    };
    if !calls.is_empty() && role != Role::Assistant {
        return Err(Fault::new(line, format!("a message of the role `{}` makes calls", role.as_str())));
    }
    let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let created_at = stamp::of(value, TIMES).unwrap_or(0);
    let mut draft = Draft { role, ..Draft::assistant(content.text(), calls, created_at) };
    draft.reasoning = field("reasoning").or_else(|| field("reasoning_content"));
    if role == Role::Tool {
        draft.tool_call_id = field("tool_call_id");
        draft.tool_name = field("name").or_else(|| field("tool_name"));
    }
    recording.drafts.push(content.complete(draft));
    Ok(())
}

fn is_block(part: &Value) -> bool {
    matches!(
        part["type"].as_str(),
        Some("tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use")
    )
}

fn call(value: &Value, at: usize, line: usize) -> Result<ToolCall, Fault> {
    let function = value.get("function").unwrap_or(value);
    let Some(name) = function.get("name").and_then(Value::as_str) else {
        return Err(Fault::new(line, format!("its call {} names no function", at + 1)));
    };
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let id = value.get("id").and_then(Value::as_str).map_or_else(|| format!("call_{at}"), str::to_owned);
    Ok(ToolCall { id, name: name.to_owned(), arguments })
}

/// The text of a content, which is a text or a list of parts.
fn content(content: Option<&Value>, line: usize, recording: &mut Recording) -> Result<Content, Fault> {
    let parts = match content {
        None | Some(Value::Null) => return Ok(Content::default()),
        Some(Value::String(text)) => return Ok(Content::of_text(text)),
        Some(Value::Array(parts)) => parts,
        Some(_) => return Err(Fault::new(line, "its `content` is neither a text nor a list of parts")),
    };
    let mut content = Content::default();
    for part in parts {
        let field = |name: &str| part.get(name).and_then(Value::as_str);
        match part {
            Value::String(text) => content.push_text(Some(text)),
            part => match field("type") {
                Some("text" | "input_text" | "output_text") => content.push_text(field("text").map(unwrapped)),
                Some("refusal") => content.push_refusal(field("refusal")),
                Some("image_url" | "input_image" | "image") => content.push_picture(part, recording),
                _ => recording.note("parts that are neither text nor image, left out", 1),
            },
        }
    }
    Ok(content)
}
