//! The providers' rules for requests, written independently of the host.

mod anthropic;
mod content;
mod media;
mod responses;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::request::unmarked;
use crate::wire::{list, messages, texts};

pub use anthropic::{assert_valid_anthropic_request, check_anthropic_request, marks};
pub use responses::{assert_valid_responses_request, check_responses_request};

/// The parameters of a chat completion in the official SDK's types.
const PARAMETERS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Panics with the rule, the position and the messages unless a provider would accept the request.
#[track_caller]
pub fn assert_valid_request(body: &Value) {
    if let Err(broken) = check_request(body) {
        panic!("a provider would refuse this request: {broken}\n{}", outline(body));
    }
}

/// The same for a gateway with cache marks, where contents can be lists of marked texts.
#[track_caller]
pub fn assert_valid_marked_request(body: &Value) {
    if let Err(broken) = check_marked_request(body) {
        panic!("a gateway would refuse this request: {broken}\n{}", outline(body));
    }
}

/// The same for a gateway that returned reasoning and takes it back.
#[track_caller]
pub fn assert_valid_reasoning_request(body: &Value) {
    if let Err(broken) = check_reasoning_request(body) {
        panic!("a gateway would refuse this request: {broken}\n{}", outline(body));
    }
}

/// Panics unless the request fits the window, estimated at four bytes of text per token.
#[track_caller]
pub fn assert_fits(body: &Value, window: usize) {
    let tokens = tokens(body);
    assert!(tokens <= window, "about {tokens} tokens do not fit a window of {window}\n{}", outline(body));
}

/// Panics unless the later request begins with the whole earlier one: same tools, system prompt and messages, byte for byte. Cache
/// marks, which move from request to request, are ignored.
#[track_caller]
pub fn assert_extends(earlier: &Value, later: &Value) {
    for part in ["tools", "system", "instructions"] {
        let [earlier, later] = [earlier, later].map(|body| unmarked(&body[part].to_string()));
        assert_eq!(earlier, later, "`{part}` changed between two requests");
    }
    let [earlier, later] = [earlier, later]
        .map(|body| -> Vec<String> { messages(body).iter().map(|message| unmarked(&message.to_string())).collect() });
    assert!(later.len() >= earlier.len(), "{} messages became {}", earlier.len(), later.len());
    for (at, (before, after)) in earlier.iter().zip(&later).enumerate() {
        assert_eq!(before, after, "message {at} changed between two requests");
    }
}

/// The reason why a provider would refuse the request, if any.
pub fn check_request(body: &Value) -> Result<(), String> {
    let request = object(body, "the request")?;
    only(request, PARAMETERS, "the request")?;
    text(request, "model", "the request")?;
    if let Some(options) = request.get("stream_options") {
        only(object(options, "stream_options")?, &["include_usage", "include_obfuscation"], "stream_options")?;
        if request.get("stream") != Some(&Value::Bool(true)) {
            return Err("stream_options without stream".into());
        }
    }
    if let Some(tools) = request.get("tools") {
        check_tools(tools)?;
    } else if request.contains_key("tool_choice") || request.contains_key("parallel_tool_calls") {
        return Err("tool_choice or parallel_tool_calls without tools".into());
    }
    let messages = request.get("messages").and_then(Value::as_array).ok_or("there are no messages")?;
    Conversation::default().check(messages)
}

/// The reason why a gateway with cache marks would refuse the request, if any.
pub fn check_marked_request(body: &Value) -> Result<(), String> {
    anthropic::check_marks(body)?;
    let mut plain = body.clone();
    for message in plain["messages"].as_array_mut().into_iter().flatten() {
        let Some(parts) = message["content"].as_array_mut() else { continue };
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            part.shift_remove("cache_control");
        }
        // The official API takes a list only from the user.
        if parts.iter().all(|part| part["type"] == "text" && part.as_object().is_some_and(|part| part.len() == 2)) {
            message["content"] = parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>().into();
        }
    }
    check_request(&plain)
}

/// The reason why a gateway that returned reasoning would refuse the request, if any.
pub fn check_reasoning_request(body: &Value) -> Result<(), String> {
    let mut plain = body.clone();
    for (at, message) in plain["messages"].as_array_mut().into_iter().flatten().enumerate() {
        let Some(message) = message.as_object_mut().filter(|message| message["role"] == "assistant") else { continue };
        let is_item = |item: &Value| item["type"].is_string();
        let is_content = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        let is_details =
            |value: &Value| value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_item));
        if message.shift_remove("reasoning_content").is_some_and(|value| !is_content(&value)) {
            return Err(format!("message {at}: reasoning_content is empty or no text"));
        }
        if message.shift_remove("reasoning_details").is_some_and(|value| !is_details(&value)) {
            return Err(format!("message {at}: reasoning_details is empty or no list of items with a type"));
        }
    }
    check_request(&plain)
}

/// Estimated tokens of the request: a quarter of the bytes of its system prompt, messages and tools.
pub fn tokens(body: &Value) -> usize {
    let words = |content: &Value| texts(content).iter().map(|text| text.len()).sum::<usize>();
    let said: usize = messages(body)
        .iter()
        .map(|message| {
            let calls: usize = list(&message["tool_calls"]).iter().map(|call| call["function"].to_string().len()).sum();
            let item = match message["type"].as_str() {
                Some("function_call") => message["name"].to_string().len() + message["arguments"].to_string().len(),
                Some("function_call_output") => words(&message["output"]),
                _ => 0,
            };
            let blocks = list(&message["content"]).iter();
            let blocks = blocks.map(|block| match block["type"].as_str() {
                Some("tool_use") => block["name"].to_string().len() + block["input"].to_string().len(),
                Some("tool_result") => words(&block["content"]),
                _ => 0,
            });
            words(&message["content"]) + calls + item + blocks.sum::<usize>()
        })
        .sum();
    let tools = if body["tools"].is_null() { 0 } else { body["tools"].to_string().len() };
    (said + words(&body["system"]) + words(&body["instructions"]) + tools) / 4
}

fn check_tools(tools: &Value) -> Result<(), String> {
    let tools = tools.as_array().ok_or("tools is no list")?;
    if tools.is_empty() {
        return Err("tools is an empty list".into());
    }
    let mut names = HashSet::new();
    for (at, tool) in tools.iter().enumerate() {
        let place = format!("tool {at}");
        let tool = object(tool, &place)?;
        only(tool, &["type", "function"], &place)?;
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            return Err(format!("{place}: the type is not `function`"));
        }
        let function = object(tool.get("function").unwrap_or(&Value::Null), &place)?;
        only(function, &["name", "description", "parameters", "strict"], &place)?;
        let name = text(function, "name", &place)?;
        if !is_name(name, 64) {
            return Err(format!("{place}: `{name}` is no name for a function"));
        }
        if !names.insert(name) {
            return Err(format!("{place}: `{name}` is there twice"));
        }
        if let Some(parameters) = function.get("parameters") {
            if parameters["type"] != "object" {
                return Err(format!("{place}: the parameters of `{name}` are no schema of an object"));
            }
            if !parameters["properties"].is_object() {
                return Err(format!("{place}: object schema missing properties (`{name}`)"));
            }
        }
    }
    Ok(())
}

/// Walks over the messages and tracks what may come next.
#[derive(Default)]
struct Conversation {
    ids: HashSet<String>,
    /// Unanswered calls of the last assistant message, in order.
    open: Vec<String>,
    before: Option<String>,
}

impl Conversation {
    fn check(mut self, messages: &[Value]) -> Result<(), String> {
        for (at, message) in messages.iter().enumerate() {
            let place = format!("message {at}");
            let message = object(message, &place)?;
            let role = text(message, "role", &place)?;
            let content = message.get("content").unwrap_or(&Value::Null);
            let mut has_media = false;
            if role == "user" {
                only(message, &["role", "content", "name"], &place)?;
                has_media = content::check_user_content(content, &place)?;
            }
            let repeats_pictures = has_media && self.before.as_deref() == Some("tool") && self.open.is_empty();
            if repeats_pictures {
                // The pictures belong to the results before them.
                self.before = Some("pictures".to_owned());
                continue;
            }
            self.check_order(&place, role)?;
            match role {
                "system" => {
                    only(message, &["role", "content", "name"], &place)?;
                    if text(message, "content", &place)?.trim().is_empty() {
                        return Err(format!("{place}: the system message is empty"));
                    }
                }
                "user" => {}
                "assistant" => self.check_assistant(message, &place)?,
                _ => self.check_result(message, &place)?,
            }
            self.before = Some(role.to_owned());
        }
        if let Some(open) = self.open.first() {
            return Err(format!("the call `{open}` has no result"));
        }
        match self.before.as_deref() {
            Some("user" | "tool" | "pictures") => Ok(()),
            Some(last) => Err(format!("the last message is of the role {last}: there is nothing to answer")),
            None => Err("there are no messages".into()),
        }
    }

    fn check_order(&self, place: &str, role: &str) -> Result<(), String> {
        if role != "tool"
            && let Some(open) = self.open.first()
        {
            return Err(format!("{place}: the call `{open}` has no result before the next message"));
        }
        match (self.before.as_deref(), role) {
            (None, "system")
            | (Some("system" | "assistant"), "user")
            | (Some("user" | "tool" | "pictures"), "assistant")
            | (Some("assistant" | "tool"), "tool") => Ok(()),
            (before, role) => Err(format!("{place}: {role} may not follow {}", before.unwrap_or("nothing"))),
        }
    }

    fn check_assistant(&mut self, message: &Map<String, Value>, place: &str) -> Result<(), String> {
        only(message, &["role", "content", "name", "tool_calls", "refusal", "audio"], place)?;
        let refusal = match message.get("refusal") {
            None | Some(Value::Null) => false,
            Some(Value::String(refusal)) => !refusal.is_empty(),
            Some(_) => return Err(format!("{place}: `refusal` is no text")),
        };
        let words = content::check_assistant_content(message.get("content"), place)? || refusal;
        let Some(calls) = message.get("tool_calls") else {
            return if words { Ok(()) } else { Err(format!("{place}: neither words nor calls")) };
        };
        let calls = calls.as_array().filter(|calls| !calls.is_empty());
        for (number, call) in calls.ok_or(format!("{place}: tool_calls is no list, or empty"))?.iter().enumerate() {
            let place = format!("{place}, call {number}");
            let call = object(call, &place)?;
            only(call, &["id", "type", "function"], &place)?;
            if call.get("type").and_then(Value::as_str) != Some("function") {
                return Err(format!("{place}: the type is not `function`"));
            }
            let function = object(call.get("function").unwrap_or(&Value::Null), &place)?;
            only(function, &["name", "arguments"], &place)?;
            if text(function, "name", &place)?.is_empty() {
                return Err(format!("{place}: no name"));
            }
            let arguments = text(function, "arguments", &place)?;
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                return Err(format!("{place}: the arguments are no JSON object: {arguments}"));
            }
            let id = text(call, "id", &place)?;
            if id.is_empty() || !self.ids.insert(id.to_owned()) {
                return Err(format!("{place}: the id `{id}` is empty or was used before"));
            }
            self.open.push(id.to_owned());
        }
        Ok(())
    }

    fn check_result(&mut self, message: &Map<String, Value>, place: &str) -> Result<(), String> {
        only(message, &["role", "content", "tool_call_id"], place)?;
        text(message, "content", place)?;
        let id = text(message, "tool_call_id", place)?;
        match self.open.first() {
            Some(open) if open == id => drop(self.open.remove(0)),
            Some(open) => return Err(format!("{place}: a result for `{id}` where `{open}` is due")),
            None => return Err(format!("{place}: a result for `{id}`, which no call waits for")),
        }
        Ok(())
    }
}

fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{place}: no object"))
}

fn text<'a>(object: &'a Map<String, Value>, key: &str, place: &str) -> Result<&'a str, String> {
    object.get(key).and_then(Value::as_str).ok_or_else(|| format!("{place}: `{key}` is missing or no text"))
}

fn is_name(name: &str, longest: usize) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    !name.is_empty() && name.len() <= longest && name.chars().all(allowed)
}

fn only(object: &Map<String, Value>, keys: &[&str], place: &str) -> Result<(), String> {
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("{place}: the SDK's types know no key `{key}`")),
        None => Ok(()),
    }
}

/// One line per message, for failure reports.
fn outline(body: &Value) -> String {
    let lines = messages(body).iter().enumerate().map(|(at, message)| {
        let line: String = message.to_string().chars().take(160).collect();
        format!("{at:>4} {line}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(messages: Value) -> Value {
        json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true}, "messages": messages,
            "tools": [{"type": "function", "function": {"name": "read_file", "description": "reads", "parameters": {"type": "object", "properties": {}}}}],
        })
    }

    fn system() -> Value {
        json!({"role": "system", "content": "You help."})
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn calls(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": "{}"}}))
            .collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "content": "", "tool_call_id": id})
    }

    fn said(text: &str) -> Value {
        json!({"role": "assistant", "content": text})
    }

    #[test]
    fn a_conversation_with_calls_and_results_is_accepted() {
        let messages = json!([
            system(),
            user("hi"),
            calls(&["a", "b"]),
            result("a"),
            result("b"),
            said("done"),
            user("and"),
            calls(&["c"]),
            result("c"),
        ]);
        assert_eq!(check_request(&request(messages)), Ok(()));
        let plain = json!({"model": "m", "messages": [system(), user("hi")]});
        assert_eq!(check_request(&plain), Ok(()));
    }

    #[test]
    fn an_invalid_conversation_is_refused_with_its_position() {
        let cases = [
            (json!([]), "no messages"),
            (json!([user("hi")]), "user may not follow nothing"),
            (json!([system(), said("hi")]), "message 1: assistant may not follow system"),
            (json!([system(), user("a"), user("b")]), "message 2: user may not follow user"),
            (json!([system(), user("a"), said("b"), said("c")]), "message 3: assistant may not follow assistant"),
            (json!([system(), user("a"), said("b")]), "nothing to answer"),
            (json!([system(), user("a"), system()]), "message 2: system may not follow user"),
            (json!([system(), user(" ")]), "message 1: the content is empty"),
            (json!([system(), user("a"), said(""), user("b")]), "neither words nor calls"),
            (json!([system(), user("a"), calls(&[]), user("b")]), "tool_calls is no list, or empty"),
            (json!([system(), user("a"), calls(&["a"]), user("b")]), "message 3: the call `a` has no result"),
            (json!([system(), user("a"), calls(&["a"])]), "the call `a` has no result"),
            (json!([system(), user("a"), calls(&["a", "b"]), result("b"), result("a")]), "for `b` where `a` is due"),
            (json!([system(), user("a"), calls(&["a"]), result("a"), result("a")]), "which no call waits for"),
            (json!([system(), user("a"), said("b"), result("a")]), "which no call waits for"),
            (json!([system(), user("a"), calls(&["a", "a"]), result("a"), result("a")]), "used before"),
            (json!([system(), user("a"), calls(&["a"]), result("a"), calls(&["a"]), result("a")]), "used before"),
        ];
        for (messages, rule) in cases {
            let refused = check_request(&request(messages.clone())).unwrap_err();
            assert!(refused.contains(rule), "{refused} for {messages}");
        }
    }

    #[test]
    fn keys_unknown_to_the_sdk_are_refused_everywhere() {
        let good = request(json!([system(), user("a"), calls(&["a"]), result("a")]));
        for (place, key) in [
            ("", "session_id"),
            ("/stream_options", "raw"),
            ("/tools/0", "toolset"),
            ("/tools/0/function", "effect"),
            ("/messages/0", "cache_control"),
            ("/messages/1", "id"),
            ("/messages/2", "reasoning_content"),
            ("/messages/2/tool_calls/0", "index"),
            ("/messages/2/tool_calls/0/function", "parsed"),
            ("/messages/3", "name"),
        ] {
            let mut bad = good.clone();
            bad.pointer_mut(place).unwrap()[key] = json!("x");
            assert!(check_request(&bad).unwrap_err().contains(key), "{place} {key}");
        }
    }

    #[test]
    fn a_gateway_accepts_marks_only_in_content_parts() {
        let mark = json!({"type": "ephemeral"});
        let mut good = request(json!([system(), user("a"), calls(&["a"]), result("a")]));
        for at in [0, 1, 3] {
            let text = format!("text {at}");
            good["messages"][at]["content"] = json!([{"type": "text", "text": text, "cache_control": mark}]);
        }
        assert_eq!(check_marked_request(&good), Ok(()));
        assert!(check_request(&good).is_err());
        for (place, rule) in [("/messages/2", "no key `cache_control`"), ("/tools/0", "no key `cache_control`")] {
            let mut bad = good.clone();
            bad.pointer_mut(place).unwrap()["cache_control"] = mark.clone();
            assert!(check_marked_request(&bad).unwrap_err().contains(rule), "{place}");
        }
        good["messages"][1]["content"][0]["text"] = json!("");
        assert!(check_marked_request(&good).unwrap_err().contains("a mark on an empty text"));
    }

    #[test]
    fn arguments_and_schemas_must_be_objects() {
        let mut bad = request(json!([system(), user("a"), calls(&["a"]), result("a")]));
        for arguments in ["", "[]", "{\"a\":", "null"] {
            bad["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!(arguments);
            assert!(check_request(&bad).unwrap_err().contains("no JSON object"), "{arguments}");
        }
        let mut bad = request(json!([system(), user("a")]));
        bad["tools"][0]["function"]["parameters"] = json!({"type": "string"});
        assert!(check_request(&bad).unwrap_err().contains("no schema of an object"));
        bad["tools"][0]["function"]["parameters"] = json!({"type": "object"});
        assert!(check_request(&bad).unwrap_err().contains("missing properties"));
    }

    #[test]
    fn a_longer_request_extends_a_shorter_one_byte_for_byte() {
        let shorter = request(json!([system(), user("a")]));
        let longer = request(json!([system(), user("a"), said("b"), user("c")]));
        assert_extends(&shorter, &longer);
        let changed = request(json!([system(), user("A"), said("b"), user("c")]));
        assert!(std::panic::catch_unwind(|| assert_extends(&shorter, &changed)).is_err());
        assert!(std::panic::catch_unwind(|| assert_extends(&longer, &shorter)).is_err());
    }

    #[test]
    fn text_calls_and_tools_count_against_the_window() {
        let small = request(json!([system(), user("a")]));
        let large = request(json!([system(), user(&"word ".repeat(800))]));
        assert!((999..=1_000).contains(&(tokens(&large) - tokens(&small))));
        assert_fits(&large, 1_100);
        assert!(std::panic::catch_unwind(|| assert_fits(&large, 1_000)).is_err());
        assert!(tokens(&request(json!([system(), user("a"), calls(&["a"]), result("a")]))) > tokens(&small));
        // The forms differ only by a few bytes.
        let [chat, others @ ..] = crate::wire::examples::all().map(|body| tokens(&body));
        assert!(others.iter().all(|other| chat.abs_diff(*other) < 20), "{chat} and {others:?}");
    }

    #[test]
    fn only_marks_may_move() {
        let [_, earlier, _] = crate::wire::examples::all();
        let mut later = earlier.clone();
        later["system"][0].as_object_mut().unwrap().shift_remove("cache_control");
        later["messages"][2]["content"][1]["cache_control"] = json!({"type": "ephemeral"});
        assert_extends(&earlier, &later);
        later["system"][0]["text"] = json!("You  ");
        assert!(std::panic::catch_unwind(|| assert_extends(&earlier, &later)).is_err());
    }
}
