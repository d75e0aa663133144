//! The rules of Anthropic's messages API, without beta features.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{is_name, media, object, only, text};
use crate::wire::list;

/// The parameters of the stable API.
const PARAMETERS: &[&str] = &[
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// Most marks in a request.
const MARKS: usize = 4;

/// Panics with the rule, the position and the messages unless Anthropic would accept the request.
#[track_caller]
pub fn assert_valid_anthropic_request(body: &Value) {
    if let Err(broken) = check_anthropic_request(body) {
        panic!("Anthropic would refuse this request: {broken}\n{}", super::outline(body));
    }
}

/// The reason why Anthropic would refuse the request, if any.
pub fn check_anthropic_request(body: &Value) -> Result<(), String> {
    let request = object(body, "the request")?;
    only(request, PARAMETERS, "the request")?;
    if text(request, "model", "the request")?.is_empty() {
        return Err("the request: no model".into());
    }
    if request.get("max_tokens").and_then(Value::as_u64).is_none_or(|cap| cap == 0) {
        return Err("max_tokens is missing or no count".into());
    }
    if let Some(temperature) = request.get("temperature")
        && !temperature.as_f64().is_some_and(|temperature| (0.0..=1.0).contains(&temperature))
    {
        return Err(format!("a temperature of {temperature} is not between 0 and 1"));
    }
    check_thinking(body)?;
    check_marks(body)?;
    let mut deferred = HashSet::new();
    if let Some(tools) = request.get("tools") {
        deferred = check_tools(tools)?;
    } else if request.contains_key("tool_choice") {
        return Err("tool_choice without tools".into());
    }
    match request.get("system") {
        None => {}
        Some(Value::String(system)) if !system.trim().is_empty() => {}
        Some(Value::Array(blocks)) if !blocks.is_empty() => {
            for (at, block) in blocks.iter().enumerate() {
                check_text(object(block, "system")?, &format!("system block {at}"))?;
            }
        }
        Some(_) => return Err("system is neither a text nor a list of texts, or empty".into()),
    }
    check_messages(request.get("messages").and_then(Value::as_array).ok_or("there are no messages")?, &deferred)
}

/// Checks the tools and returns those that are deferred.
fn check_tools(tools: &Value) -> Result<HashSet<&str>, String> {
    let (mut names, mut deferred) = (HashSet::new(), HashSet::new());
    for (at, tool) in tools.as_array().ok_or("tools is no list")?.iter().enumerate() {
        let place = format!("tool {at}");
        let tool = object(tool, &place)?;
        only(tool, &["type", "name", "description", "input_schema", "cache_control", "defer_loading"], &place)?;
        if tool.get("type").is_some_and(|kind| kind != "custom") {
            return Err(format!("{place}: the type is not `custom`"));
        }
        let name = text(tool, "name", &place)?;
        if !is_name(name, 128) || !names.insert(name) {
            return Err(format!("{place}: `{name}` is no name for a tool, or there twice"));
        }
        if tool.get("description").is_some_and(|description| !description.is_string()) {
            return Err(format!("{place}: the description is no text"));
        }
        let schema = object(tool.get("input_schema").unwrap_or(&Value::Null), &format!("{place}, input_schema"))?;
        if schema.get("type") != Some(&Value::String("object".into())) {
            return Err(format!("{place}: the input of `{name}` is no object"));
        }
        if let Some(key) = ["anyOf", "oneOf", "allOf"].iter().find(|key| schema.contains_key(**key)) {
            return Err(format!("{place}: `{key}` at the root of the input of `{name}`"));
        }
        match tool.get("defer_loading") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) if tool.contains_key("cache_control") => {
                return Err(format!("{place}: `{name}` has both `defer_loading` and a mark"));
            }
            Some(Value::Bool(true)) => _ = deferred.insert(name),
            Some(_) => return Err(format!("{place}: `defer_loading` is neither true nor false")),
        }
    }
    if !names.is_empty() && names == deferred {
        return Err("all tools have `defer_loading`".into());
    }
    Ok(deferred)
}

/// Checks a budget for thinking, and what the API then demands of the rest.
fn check_thinking(body: &Value) -> Result<(), String> {
    if body["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    let tokens = |value: &Value| value.as_u64().unwrap_or_default();
    let (budget, cap) = (tokens(&body["thinking"]["budget_tokens"]), tokens(&body["max_tokens"]));
    if budget < 1_024 || budget >= cap {
        return Err(format!("a budget of {budget} is not between 1024 and the cap of {cap}"));
    }
    if !body["temperature"].is_null() && body["temperature"] != 1 {
        return Err("thinking with another temperature than 1".into());
    }
    if ["any", "tool"].iter().any(|kind| body["tool_choice"]["type"] == *kind) {
        return Err("thinking with a call that is demanded".into());
    }
    let is = |block: &Value, kinds: &[&str]| kinds.iter().any(|kind| block["type"] == *kind);
    let [.., reply, results] = list(&body["messages"]) else { return Ok(()) };
    let awaits = list(&results["content"]).iter().any(|block| is(block, &["tool_result"]));
    if awaits && !is(&reply["content"][0], &["thinking", "redacted_thinking"]) {
        return Err("thinking, and the calls whose results follow were asked for without reasoning".into());
    }
    Ok(())
}

/// Checks the marks in reading order: tools, system, messages.
pub(super) fn check_marks(body: &Value) -> Result<(), String> {
    let mut marks = Vec::new();
    for part in ["tools", "system", "messages"] {
        collect_marks(&body[part], part, &mut marks)?;
    }
    if marks.len() > MARKS {
        return Err(format!("{} marks, where {MARKS} are allowed: {}", marks.len(), marks.join(", ")));
    }
    Ok(())
}

fn collect_marks(value: &Value, place: &str, marks: &mut Vec<String>) -> Result<(), String> {
    match value {
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                collect_marks(value, &format!("{place}/{at}"), marks)?;
            }
        }
        Value::Object(members) => {
            if let Some(mark) = members.get("cache_control") {
                check_mark(mark, members, place)?;
                let lifetime = if mark["ttl"] == "1h" { "1h" } else { "5m" };
                if lifetime == "1h" && marks.iter().any(|earlier| earlier.ends_with("5m")) {
                    return Err(format!("{place}: a mark for an hour behind one for five minutes"));
                }
                marks.push(format!("{place} {lifetime}"));
            }
            // Arguments of a call and schemas can contain any key.
            for (key, value) in members.iter().filter(|(key, _)| !["input", "input_schema"].contains(&key.as_str())) {
                collect_marks(value, &format!("{place}/{key}"), marks)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn check_mark(mark: &Value, block: &Map<String, Value>, place: &str) -> Result<(), String> {
    let mark = object(mark, &format!("{place}, mark"))?;
    only(mark, &["type", "ttl"], &format!("{place}, mark"))?;
    if mark.get("type") != Some(&Value::String("ephemeral".into())) {
        return Err(format!("{place}: the type of the mark is not `ephemeral`"));
    }
    if mark.get("ttl").is_some_and(|ttl| ttl != "5m" && ttl != "1h") {
        return Err(format!("{place}: the mark lives neither 5m nor 1h"));
    }
    if block.get("text").is_some_and(|text| text == "") {
        return Err(format!("{place}: a mark on an empty text"));
    }
    Ok(())
}

fn check_messages(messages: &[Value], deferred: &HashSet<&str>) -> Result<(), String> {
    let mut ids = HashSet::new();
    // Unanswered calls of the previous message, in order.
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("message {at}");
        let message = object(message, &place)?;
        only(message, &["role", "content"], &place)?;
        let role = text(message, "role", &place)?;
        let due = if at % 2 == 0 { "user" } else { "assistant" };
        if role != due {
            return Err(format!("{place}: {role} where {due} is due"));
        }
        let blocks = match message.get("content") {
            Some(Value::String(content)) if !content.trim().is_empty() => &[],
            Some(Value::Array(blocks)) if !blocks.is_empty() => blocks.as_slice(),
            _ => return Err(format!("{place}: the content is neither a text nor a list of blocks, or empty")),
        };
        open = match role {
            "user" => {
                check_results(blocks, open, deferred, &place)?;
                Vec::new()
            }
            _ => check_calls(blocks, &mut ids, &place)?,
        };
    }
    match messages.len() {
        0 => Err("there are no messages".into()),
        count if count % 2 == 0 => Err("the last message is the assistant's: there is nothing to answer".into()),
        _ => Ok(()),
    }
}

/// Checks that results for all open calls come first, followed by text, pictures and documents.
fn check_results(blocks: &[Value], mut open: Vec<String>, deferred: &HashSet<&str>, place: &str) -> Result<(), String> {
    let mut results_end = false;
    for (number, block) in blocks.iter().enumerate() {
        let place = format!("{place}, block {number}");
        let block = object(block, &place)?;
        match text(block, "type", &place)? {
            "tool_result" if results_end => return Err(format!("{place}: a result behind words or pictures")),
            "tool_result" => {
                let id = check_result(block, deferred, &place)?;
                let Some(called) = open.iter().position(|call| call == id) else {
                    return Err(format!("{place}: a result for `{id}`, which the message before does not call"));
                };
                open.remove(called);
            }
            kind => {
                if !check_said(kind, block, &place)? {
                    return Err(format!("{place}: a block of the type `{kind}` in a message of the user"));
                }
                results_end = true;
            }
        }
    }
    match open.first() {
        Some(open) => Err(format!("{place}: the call `{open}` has no result")),
        None => Ok(()),
    }
}

/// Checks a result and returns the id of its call.
fn check_result<'a>(block: &'a Map<String, Value>, deferred: &HashSet<&str>, place: &str) -> Result<&'a str, String> {
    only(block, &["type", "tool_use_id", "content", "is_error", "cache_control"], place)?;
    if block.get("is_error").is_some_and(|failed| !failed.is_boolean()) {
        return Err(format!("{place}: `is_error` is neither true nor false"));
    }
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    match block.get("content") {
        None | Some(Value::String(_)) => {}
        Some(Value::Array(parts)) if parts.iter().any(|part| part["type"] == "tool_reference") => {
            for (number, part) in parts.iter().enumerate() {
                check_reference(part, deferred, &format!("{place}, part {number}"))?;
            }
            if is_error {
                return Err(format!("{place}: a result with `is_error` takes only text"));
            }
        }
        Some(Value::Array(parts)) => {
            for (number, part) in parts.iter().enumerate() {
                let place = format!("{place}, part {number}");
                let part = object(part, &place)?;
                let kind = text(part, "type", &place)?;
                if !check_said(kind, part, &place)? {
                    return Err(format!("{place}: a block of the type `{kind}` in a result"));
                }
                if is_error && kind != "text" {
                    return Err(format!("{place}: a result with `is_error` takes only text"));
                }
            }
        }
        Some(_) => return Err(format!("{place}: the content of the result is neither a text nor a list of blocks")),
    }
    text(block, "tool_use_id", place)
}

/// Checks what loads a deferred tool. References are the whole content of a result.
fn check_reference(part: &Value, deferred: &HashSet<&str>, place: &str) -> Result<(), String> {
    let part = object(part, place)?;
    if text(part, "type", place)? != "tool_reference" {
        return Err(format!("{place}: another block beside references to tools"));
    }
    only(part, &["type", "tool_name", "cache_control"], place)?;
    let name = text(part, "tool_name", place)?;
    match deferred.contains(name) {
        true => Ok(()),
        false => Err(format!("{place}: no tool `{name}` is deferred")),
    }
}

/// Checks a text, a picture or a document. False for a block of another type.
fn check_said(kind: &str, block: &Map<String, Value>, place: &str) -> Result<bool, String> {
    match kind {
        "text" => check_text(block, place)?,
        "image" => {
            only(block, &["type", "source", "cache_control"], place)?;
            check_source(block, media::check_picture, place)?;
        }
        "document" => {
            only(block, &["type", "source", "title", "context", "citations", "cache_control"], place)?;
            check_source(block, media::check_document, place)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn check_source(
    block: &Map<String, Value>,
    check: fn(&str, &str, &str) -> Result<(), String>,
    place: &str,
) -> Result<(), String> {
    let place = format!("{place}, source");
    let source = object(block.get("source").unwrap_or(&Value::Null), &place)?;
    let is_document = block.get("type").is_some_and(|kind| kind == "document");
    match text(source, "type", &place)? {
        "url" => {
            only(source, &["type", "url"], &place)?;
            media::check_address(text(source, "url", &place)?, &place)
        }
        "base64" => {
            only(source, &["type", "media_type", "data"], &place)?;
            check(text(source, "media_type", &place)?, text(source, "data", &place)?, &place)
        }
        "text" if is_document => {
            only(source, &["type", "media_type", "data"], &place)?;
            match (text(source, "media_type", &place)?, text(source, "data", &place)?.trim()) {
                ("text/plain", data) if !data.is_empty() => Ok(()),
                _ => Err(format!("{place}: no plain text, or an empty one")),
            }
        }
        other => Err(format!("{place}: the type `{other}`")),
    }
}

fn check_calls(blocks: &[Value], ids: &mut HashSet<String>, place: &str) -> Result<Vec<String>, String> {
    let mut open = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let place = format!("{place}, block {number}");
        let block = object(block, &place)?;
        let is_last = number + 1 == blocks.len();
        match text(block, "type", &place)? {
            "text" => check_text(block, &place)?,
            "thinking" | "redacted_thinking" if is_last => {
                return Err(format!("{place}: the last block of a message is reasoning"));
            }
            "thinking" => {
                only(block, &["type", "thinking", "signature"], &place)?;
                // Models that do not show their reasoning sign an empty text.
                text(block, "thinking", &place)?;
                if text(block, "signature", &place)?.is_empty() {
                    return Err(format!("{place}: reasoning without a signature"));
                }
            }
            "redacted_thinking" => {
                only(block, &["type", "data"], &place)?;
                if text(block, "data", &place)?.is_empty() {
                    return Err(format!("{place}: redacted reasoning without data"));
                }
            }
            "tool_use" => {
                only(block, &["type", "id", "name", "input", "cache_control"], &place)?;
                let id = text(block, "id", &place)?;
                if !is_name(id, usize::MAX) || !ids.insert(id.to_owned()) {
                    return Err(format!("{place}: the id `{id}` is none, or was used before"));
                }
                if !is_name(text(block, "name", &place)?, 128) {
                    return Err(format!("{place}: no name of a tool"));
                }
                object(block.get("input").unwrap_or(&Value::Null), &format!("{place}, input"))?;
                open.push(id.to_owned());
            }
            other => return Err(format!("{place}: a block of the type `{other}` in a message of the assistant")),
        }
    }
    Ok(open)
}

fn check_text(block: &Map<String, Value>, place: &str) -> Result<(), String> {
    only(block, &["type", "text", "cache_control"], place)?;
    if block.get("type") != Some(&Value::String("text".into())) {
        return Err(format!("{place}: no text block"));
    }
    match text(block, "text", place)?.trim() {
        "" => Err(format!("{place}: the text is empty")),
        _ => Ok(()),
    }
}

/// The positions of the marks, as JSON pointers in reading order.
pub fn marks(body: &Value) -> Vec<String> {
    let mut places = Vec::new();
    let mut note = |place: String, block: &Value| {
        if block.get("cache_control").is_some() {
            places.push(place);
        }
    };
    for part in ["tools", "system"] {
        list(&body[part]).iter().enumerate().for_each(|(at, block)| note(format!("/{part}/{at}"), block));
    }
    for (at, message) in list(&body["messages"]).iter().enumerate() {
        let blocks = list(&message["content"]).iter().enumerate();
        blocks.for_each(|(number, block)| note(format!("/messages/{at}/content/{number}"), block));
    }
    places
}

#[cfg(test)]
mod tests;
