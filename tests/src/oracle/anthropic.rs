//! The rules of Anthropic's messages API, without beta features.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{object, only, text};
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
    check_marks(body)?;
    if let Some(tools) = request.get("tools") {
        check_tools(tools)?;
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
    check_messages(request.get("messages").and_then(Value::as_array).ok_or("there are no messages")?)
}

fn check_tools(tools: &Value) -> Result<(), String> {
    let mut names = HashSet::new();
    for (at, tool) in tools.as_array().ok_or("tools is no list")?.iter().enumerate() {
        let place = format!("tool {at}");
        let tool = object(tool, &place)?;
        only(tool, &["type", "name", "description", "input_schema", "cache_control"], &place)?;
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

fn check_messages(messages: &[Value]) -> Result<(), String> {
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
                check_results(blocks, open, &place)?;
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

/// Checks that results for all open calls come first, followed by text.
fn check_results(blocks: &[Value], mut open: Vec<String>, place: &str) -> Result<(), String> {
    let mut words = false;
    for (number, block) in blocks.iter().enumerate() {
        let place = format!("{place}, block {number}");
        let block = object(block, &place)?;
        match text(block, "type", &place)? {
            "text" => {
                check_text(block, &place)?;
                words = true;
            }
            "tool_result" if words => return Err(format!("{place}: a result behind words")),
            "tool_result" => {
                only(block, &["type", "tool_use_id", "content", "is_error", "cache_control"], &place)?;
                let id = text(block, "tool_use_id", &place)?;
                let Some(called) = open.iter().position(|call| call == id) else {
                    return Err(format!("{place}: a result for `{id}`, which the message before does not call"));
                };
                open.remove(called);
                match block.get("content") {
                    None | Some(Value::String(_)) => {}
                    Some(Value::Array(parts)) => {
                        for part in parts {
                            check_text(object(part, &place)?, &place)?;
                        }
                    }
                    Some(_) => return Err(format!("{place}: the content of the result is no text")),
                }
            }
            other => return Err(format!("{place}: a block of the type `{other}` in a message of the user")),
        }
    }
    match open.first() {
        Some(open) => Err(format!("{place}: the call `{open}` has no result")),
        None => Ok(()),
    }
}

fn check_calls(blocks: &[Value], ids: &mut HashSet<String>, place: &str) -> Result<Vec<String>, String> {
    let mut open = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let place = format!("{place}, block {number}");
        let block = object(block, &place)?;
        match text(block, "type", &place)? {
            "text" => check_text(block, &place)?,
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

fn is_name(name: &str, longest: usize) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    !name.is_empty() && name.len() <= longest && name.chars().all(allowed)
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
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::examples;

    fn request(messages: Value) -> Value {
        let [_, mut request] = examples::both();
        request["messages"] = messages;
        request
    }

    fn user(blocks: Value) -> Value {
        json!({"role": "user", "content": blocks})
    }

    fn said(blocks: Value) -> Value {
        json!({"role": "assistant", "content": blocks})
    }

    fn calls(ids: &[&str]) -> Value {
        let call =
            |id: &&str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"cache_control": 1}});
        said(ids.iter().map(call).collect())
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": ""})
    }

    #[test]
    fn a_conversation_with_calls_and_results_is_accepted() {
        let [_, example] = examples::both();
        assert_eq!(check_anthropic_request(&example), Ok(()));
        let messages = json!([
            user(json!("hi")),
            calls(&["a", "b"]),
            // Results can be in any order, followed by text.
            user(json!([result("b"), result("a"), {"type": "text", "text": "and"}])),
            said(json!("done")),
            user(json!([{"type": "text", "text": "more"}])),
        ]);
        assert_eq!(check_anthropic_request(&request(messages)), Ok(()));
        let plain = json!({"model": "m", "max_tokens": 1, "system": "You help.", "messages": [user(json!("hi"))]});
        assert_eq!(check_anthropic_request(&plain), Ok(()));
    }

    #[test]
    fn an_invalid_conversation_is_refused_with_its_position() {
        let empty = json!([{"type": "text", "text": " "}]);
        let hi = || user(json!("hi"));
        let cases = [
            (json!([]), "no messages"),
            (json!([said(json!("hi"))]), "message 0: assistant where user is due"),
            (json!([{"role": "system", "content": "hi"}]), "message 0: system where user is due"),
            (json!([hi(), hi()]), "message 1: user where assistant is due"),
            (json!([hi(), said(json!("a")), said(json!("b"))]), "message 2: assistant where user is due"),
            (json!([hi(), said(json!("a"))]), "nothing to answer"),
            (json!([user(json!(""))]), "message 0: the content"),
            (json!([user(json!([]))]), "message 0: the content"),
            (json!([user(json!(null))]), "message 0: the content"),
            (json!([user(empty.clone())]), "message 0, block 0: the text is empty"),
            (json!([hi(), said(empty), hi()]), "message 1, block 0: the text is empty"),
            (json!([user(json!([{"type": "image"}]))]), "of the type `image`"),
            (json!([hi(), said(json!([result("a")])), hi()]), "of the type `tool_result`"),
            (json!([hi(), calls(&["a"]), hi()]), "message 2: the call `a` has no result"),
            (json!([hi(), calls(&["a", "b"]), user(json!([result("a")]))]), "the call `b` has no result"),
            (json!([hi(), calls(&["a"]), user(json!([result("b")]))]), "`b`, which the message before"),
            (json!([hi(), calls(&["a"]), user(json!([result("a"), result("a")]))]), "`a`, which the message before"),
            (json!([hi(), said(json!("a")), user(json!([result("a")]))]), "`a`, which the message before"),
            (json!([hi(), calls(&["a"]), user(json!([{"type": "text", "text": "x"}, result("a")]))]), "behind words"),
            (json!([hi(), calls(&["a", "a"]), hi()]), "used before"),
            (json!([hi(), calls(&["a:1"]), hi()]), "the id `a:1`"),
        ];
        for (messages, rule) in cases {
            let refused = check_anthropic_request(&request(messages.clone())).unwrap_err();
            assert!(refused.contains(rule), "{refused} for {messages}");
        }
    }

    #[test]
    fn unknown_keys_are_refused_everywhere() {
        let [_, good] = examples::both();
        for (place, key) in [
            ("", "stream_options"),
            ("", "cache_control"),
            ("/tools/0", "function"),
            ("/system/0", "name"),
            ("/system/0/cache_control", "scope"),
            ("/messages/0", "cache_control"),
            ("/messages/0/content/0", "id"),
            ("/messages/1/content/1", "index"),
            ("/messages/2/content/0", "name"),
        ] {
            let mut bad = good.clone();
            bad.pointer_mut(place).unwrap()[key] = json!({"type": "ephemeral"});
            assert!(check_anthropic_request(&bad).unwrap_err().contains(key), "{place} {key}");
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        let [_, good] = examples::both();
        for (place, value, rule) in [
            ("/max_tokens", json!(0), "max_tokens"),
            ("/max_tokens", json!(null), "max_tokens"),
            ("/model", json!(""), "no model"),
            ("/system", json!(""), "system"),
            ("/system", json!([]), "system"),
            ("/system/1/text", json!(""), "system block 1: the text is empty"),
            ("/tools/0/input_schema", json!({"type": "string"}), "no object"),
            ("/tools/0/input_schema/anyOf", json!([]), "`anyOf` at the root"),
            ("/tools/0/name", json!("a b"), "no name"),
            ("/messages/1/content/1/input", json!("{}"), "input: no object"),
            ("/messages/1/content/1/input", json!([]), "input: no object"),
            ("/messages/2/content/0/content", json!([{"type": "text", "text": ""}]), "the text is empty"),
        ] {
            let mut bad = good.clone();
            let (parent, key) = place.rsplit_once('/').unwrap();
            bad.pointer_mut(parent).unwrap()[key] = value.clone();
            let refused = check_anthropic_request(&bad).unwrap_err();
            assert!(refused.contains(rule), "{place} {value}: {refused}");
        }
        let mut bad = good;
        bad["temperature"] = json!(1.5);
        assert!(check_anthropic_request(&bad).unwrap_err().contains("temperature"));
    }

    #[test]
    fn at_most_four_marks_are_allowed_and_none_on_an_empty_block() {
        let [_, mut request] = examples::both();
        let mark = json!({"type": "ephemeral"});
        let places = ["/tools/0", "/messages/0/content/0", "/messages/2/content/1", "/messages/2/content/0"];
        for place in &places[..3] {
            request.pointer_mut(place).unwrap()["cache_control"] = mark.clone();
        }
        assert_eq!(check_anthropic_request(&request), Ok(()));
        assert_eq!(marks(&request), ["/tools/0", "/system/0", "/messages/0/content/0", "/messages/2/content/1"]);
        let mut bad = request.clone();
        bad.pointer_mut(places[3]).unwrap()["cache_control"] = mark;
        assert!(check_anthropic_request(&bad).unwrap_err().contains("5 marks"));

        let mut bad = request.clone();
        bad["system"][0]["text"] = json!("");
        assert!(check_anthropic_request(&bad).unwrap_err().contains("a mark on an empty text"));
        for (mark, rule) in [
            (json!({"type": "ephemeral", "ttl": "1h"}), "an hour behind"),
            (json!({"type": "ephemeral", "ttl": "1d"}), "neither 5m nor 1h"),
            (json!({"type": "permanent"}), "not `ephemeral`"),
            (json!(null), "mark: no object"),
        ] {
            let mut bad = request.clone();
            bad["messages"][0]["content"][0]["cache_control"] = mark.clone();
            assert!(check_anthropic_request(&bad).unwrap_err().contains(rule), "{mark}");
        }
        request["tools"][0]["cache_control"]["ttl"] = json!("1h");
        assert_eq!(check_anthropic_request(&request), Ok(()));
    }
}
