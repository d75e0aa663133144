//! What providers refuse in a conversation, as far as their documentation or their errors say it.

use std::collections::HashSet;

use hermes_models::ApiMode;
use serde_json::Value;

/// Which ids of calls are taken.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ids {
    /// Up to 64 characters that are shown.
    Any,
    /// Up to so many.
    AtMost(usize),
    /// Nine letters and digits.
    Nine,
    /// Letters, digits, `_` and `-`, each id once in a request.
    Plain,
}

/// The rules in which providers of one wire format differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) ids: Ids,
    /// Whether each reply has reasoning.
    pub(super) reasons: bool,
}

type Checked = Result<(), String>;

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(why()) }
}

fn text<'v>(value: &'v Value, what: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{what} is no text: {value}"))
}

fn said(value: &Value, what: &str) -> Checked {
    let text = text(value, what)?;
    ensure(!text.trim().is_empty(), || format!("{what} is blank"))
}

fn list<'v>(value: &'v Value, what: &str) -> Result<&'v [Value], String> {
    let list = value.as_array().ok_or_else(|| format!("{what} is no list: {value}"))?;
    ensure(!list.is_empty(), || format!("{what} is empty"))?;
    Ok(list)
}

/// `[a-zA-Z_][a-zA-Z0-9_-]{0,63}`: what OpenAI, Anthropic, Bedrock and Gemini have in common.
fn name(value: &Value) -> Checked {
    let name = text(value, "a name")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    ensure(begins && name.len() <= 64 && name.bytes().all(fits), || format!("the name `{name}`"))
}

/// Nothing that servers cannot store, and no deeper nesting than parsers read.
fn storable(value: &Value, depth: usize) -> Checked {
    ensure(depth <= 100, || "it is nested too deep".to_owned())?;
    match value {
        Value::String(text) => ensure(!text.contains('\0'), || "U+0000 in a text".to_owned()),
        Value::Array(list) => list.iter().try_for_each(|value| storable(value, depth + 1)),
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            ensure(!key.contains('\0'), || "U+0000 in a key".to_owned())?;
            storable(value, depth + 1)
        }),
        _ => Ok(()),
    }
}

/// The text of a JSON object that strict parsers read.
fn arguments(value: &Value) -> Checked {
    let text = text(value, "arguments")?;
    let read: Value = serde_json::from_str(text).map_err(|error| format!("arguments: {error}: {text}"))?;
    ensure(read.is_object(), || format!("arguments are no object: {text}"))?;
    storable(&read, 0)
}

impl Rules {
    pub(super) fn check(&self, mode: ApiMode, body: &Value) -> Checked {
        storable(body, 0)?;
        match mode {
            ApiMode::ChatCompletions => self.chat(list(&body["messages"], "messages")?),
            ApiMode::AnthropicMessages => self.blocks(list(&body["messages"], "messages")?),
            ApiMode::Responses => self.items(list(&body["input"], "input")?),
        }
    }

    fn id(&self, value: &Value) -> Result<String, String> {
        let id = text(value, "an id")?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let fits = match self.ids {
            Ids::Any => id.len() <= 64 || id.contains("__thought__"),
            Ids::AtMost(most) => id.len() <= most,
            Ids::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            Ids::Plain => id.len() <= 64 && id.bytes().all(plain),
        };
        let is_shown = !id.trim().is_empty() && !id.contains(char::is_control);
        ensure(fits && is_shown, || format!("the id `{id}`"))?;
        Ok(id.to_owned())
    }

    fn chat(&self, messages: &[Value]) -> Checked {
        let mut open: HashSet<String> = HashSet::new();
        let mut before = "";
        for (at, message) in messages.iter().enumerate() {
            let role = text(&message["role"], "a role")?;
            let follows = match role {
                "system" => at == 0,
                "user" => matches!(before, "system" | "assistant"),
                "assistant" => matches!(before, "user" | "tool"),
                "tool" => matches!(before, "assistant" | "tool"),
                _ => false,
            };
            ensure(follows, || format!("message {at}: {role} behind {before}"))?;
            ensure(role == "tool" || open.is_empty(), || format!("message {at}: no result for {open:?}"))?;
            let calls = &message["tool_calls"];
            match &message["content"] {
                Value::Null => ensure(role == "assistant" && !calls.is_null(), || format!("message {at}: no content"))?,
                Value::Array(_) => {
                    for part in list(&message["content"], "content")? {
                        said(&part["text"], "a part")?;
                    }
                }
                content => said(content, "content")?,
            }
            if role == "tool" {
                let id = self.id(&message["tool_call_id"])?;
                ensure(open.remove(&id), || format!("message {at}: a result for `{id}`, which no call has"))?;
            }
            if !calls.is_null() {
                ensure(role == "assistant", || format!("message {at}: calls of {role}"))?;
                for call in list(calls, "tool_calls")? {
                    name(&call["function"]["name"])?;
                    arguments(&call["function"]["arguments"])?;
                    let id = self.id(&call["id"])?;
                    ensure(open.insert(id.clone()), || format!("message {at}: two calls with the id `{id}`"))?;
                    let extra = &call["extra_content"];
                    ensure(extra.is_null() || extra.is_object(), || format!("message {at}: {extra}"))?;
                }
            }
            if role == "assistant" {
                for key in ["reasoning_content", "reasoning"] {
                    let reasoning = &message[key];
                    let is_said = reasoning.as_str().is_some_and(|text| !text.is_empty());
                    let is_needed = self.reasons && key == "reasoning_content";
                    ensure(is_said || (reasoning.is_null() && !is_needed), || {
                        format!("message {at}: {key} {reasoning}")
                    })?;
                }
                let details = &message["reasoning_details"];
                let is_list =
                    |items: &Vec<Value>| !items.is_empty() && items.iter().all(|item| item["type"].is_string());
                ensure(details.is_null() || details.as_array().is_some_and(is_list), || {
                    format!("message {at}: {details}")
                })?;
            }
            before = role;
        }
        ensure(open.is_empty() && matches!(before, "user" | "tool"), || {
            format!("it ends with {before}, open: {open:?}")
        })
    }

    fn blocks(&self, messages: &[Value]) -> Checked {
        let mut ids: HashSet<String> = HashSet::new();
        let mut open: HashSet<String> = HashSet::new();
        for (at, message) in messages.iter().enumerate() {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            ensure(message["role"] == role, || format!("message {at} is of {}", message["role"]))?;
            let blocks = list(&message["content"], "content")?;
            let mut is_behind_text = false;
            for block in blocks {
                let kind = text(&block["type"], "a type")?;
                match (role, kind) {
                    (_, "text") => said(&block["text"], "a text")?,
                    ("user", "tool_result") => {
                        let id = self.id(&block["tool_use_id"])?;
                        ensure(!is_behind_text, || format!("message {at}: a result behind a text"))?;
                        ensure(open.remove(&id), || format!("message {at}: a result for `{id}`, which no call has"))?;
                        said(&block["content"], "a result")?;
                    }
                    ("assistant", "tool_use") => {
                        let id = self.id(&block["id"])?;
                        name(&block["name"])?;
                        ensure(block["input"].is_object(), || format!("message {at}: {}", block["input"]))?;
                        ensure(ids.insert(id.clone()), || format!("message {at}: the id `{id}` is used twice"))?;
                        open.insert(id);
                    }
                    ("assistant", "thinking") => {
                        text(&block["thinking"], "thinking")?;
                        let is_signed = block["signature"].as_str().is_some_and(|signature| !signature.is_empty());
                        ensure(is_signed || self.reasons, || format!("message {at}: thinking without a signature"))?;
                    }
                    ("assistant", "redacted_thinking") => drop(text(&block["data"], "data")?),
                    _ => return Err(format!("message {at}: a block {kind} of {role}")),
                }
                is_behind_text |= kind == "text";
            }
            if role == "assistant" {
                let is_thought = |block: &Value| block["type"].as_str().is_some_and(|kind| kind.ends_with("thinking"));
                ensure(!blocks.last().is_some_and(is_thought), || format!("message {at} ends with reasoning"))?;
                ensure(!self.reasons || blocks.iter().any(is_thought), || format!("message {at} lacks reasoning"))?;
            } else {
                ensure(open.is_empty(), || format!("message {at}: no result for {open:?}"))?;
            }
        }
        ensure(open.is_empty() && messages.len() % 2 == 1, || format!("it ends with a reply, open: {open:?}"))
    }

    fn items(&self, items: &[Value]) -> Checked {
        let mut ids: HashSet<String> = HashSet::new();
        let mut open: HashSet<String> = HashSet::new();
        let mut reasoned = false;
        for (at, item) in items.iter().enumerate() {
            let kind = item["type"].as_str().unwrap_or("message");
            let is_reply = item["role"] == "assistant" || kind == "function_call" || kind == "reasoning";
            ensure(!reasoned || is_reply, || format!("item {at}: nothing follows reasoning"))?;
            reasoned = kind == "reasoning";
            match kind {
                "message" => {
                    ensure(item["role"] == "user" || item["role"] == "assistant", || format!("item {at}: its role"))?;
                    ensure(item["role"] == "assistant" || open.is_empty(), || {
                        format!("item {at}: no result for {open:?}")
                    })?;
                    // The API takes a blank text.
                    text(&item["content"], "content")?;
                }
                "function_call" => {
                    let id = self.id(&item["call_id"])?;
                    name(&item["name"])?;
                    arguments(&item["arguments"])?;
                    ensure(ids.insert(id.clone()), || format!("item {at}: the id `{id}` is used twice"))?;
                    open.insert(id);
                }
                "function_call_output" => {
                    let id = self.id(&item["call_id"])?;
                    ensure(open.remove(&id), || format!("item {at}: a result for `{id}`, which no call has"))?;
                    text(&item["output"], "output")?;
                }
                "reasoning" => {
                    said(&item["encrypted_content"], "encrypted_content")?;
                    ensure(item["summary"].is_array(), || format!("item {at}: {}", item["summary"]))?;
                }
                _ => return Err(format!("item {at}: the type {kind}")),
            }
        }
        ensure(open.is_empty() && !reasoned, || format!("it ends with open calls {open:?}, or with reasoning"))
    }
}

mod tests {
    use serde_json::json;

    use super::*;

    /// The rules would be worth nothing if they held for everything.
    #[test]
    fn what_providers_refuse_is_noticed() {
        let rules = Rules { ids: Ids::AtMost(64), reasons: false };
        let user = json!({"role": "user", "content": "hi"});
        let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        let caller = |calls: Vec<Value>| json!({"role": "assistant", "content": null, "tool_calls": calls});
        let result = |id: &str| json!({"role": "tool", "content": "out", "tool_call_id": id});
        let chat = |messages: Vec<Value>| rules.check(ApiMode::ChatCompletions, &json!({"messages": messages}));
        let system = json!({"role": "system", "content": "s"});
        let with = |calls: Vec<Value>, rest: Vec<Value>| {
            let messages = [system.clone(), user.clone(), caller(calls)].into_iter().chain(rest).collect();
            chat(messages)
        };
        assert_eq!(with(vec![call("a", "f", "{}")], vec![result("a")]), Ok(()));
        for (calls, rest) in [
            (vec![call("a", "f.g", "{}")], vec![result("a")]),
            (vec![call("a", &"f".repeat(65), "{}")], vec![result("a")]),
            (vec![call("a", "f", "[]")], vec![result("a")]),
            (vec![call("a", "f", r#"{"x":"\ud83d"}"#)], vec![result("a")]),
            (vec![call("a", "f", r#"{"x":1e999}"#)], vec![result("a")]),
            (vec![call("a", "f", r#"{"x":"\u0000"}"#)], vec![result("a")]),
            (vec![call("", "f", "{}")], vec![result("")]),
            (vec![call("a", "f", "{}"), call("a", "f", "{}")], vec![result("a")]),
            (vec![call("a", "f", "{}")], vec![result("b")]),
            (vec![call("a", "f", "{}")], vec![]),
            (vec![call("a", "f", "{}")], vec![user.clone()]),
            (vec![], vec![user.clone()]),
        ] {
            assert!(with(calls.clone(), rest.clone()).is_err(), "{calls:?} {rest:?}");
        }
        assert!(chat(vec![user.clone(), user.clone()]).is_err());
        assert!(chat(vec![system, user, json!({"role": "assistant", "content": ""})]).is_err());

        let plain = Rules { ids: Ids::Plain, reasons: false };
        let tool_use = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
        let tool_result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "out"});
        let message = |role: &str, blocks: Vec<Value>| json!({"role": role, "content": blocks});
        let said = |text: &str| json!({"type": "text", "text": text});
        let blocks = |messages: Vec<Value>| {
            let first = message("user", vec![said("hi")]);
            let messages: Vec<Value> = std::iter::once(first).chain(messages).collect();
            plain.check(ApiMode::AnthropicMessages, &json!({"messages": messages}))
        };
        let once = || [message("assistant", vec![tool_use("a")]), message("user", vec![tool_result("a")])];
        assert_eq!(blocks(once().to_vec()), Ok(()));
        for messages in [
            once().into_iter().chain(once()).collect(),
            vec![message("assistant", vec![said(" ")]), message("user", vec![said("x")])],
            vec![message("assistant", vec![tool_use("a.b")]), message("user", vec![tool_result("a.b")])],
            vec![message("assistant", vec![tool_use("a")]), message("user", vec![said("x"), tool_result("a")])],
            vec![message("assistant", vec![tool_use("a")]), message("user", vec![said("x")])],
            vec![message("assistant", vec![])],
        ] {
            assert!(blocks(messages.clone()).is_err(), "{messages:?}");
        }
        let item = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
        let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "out"});
        let items = |items: Vec<Value>| rules.check(ApiMode::Responses, &json!({"input": items}));
        let thought = json!({"type": "reasoning", "summary": [], "encrypted_content": "x"});
        assert_eq!(items(vec![thought.clone(), item("a"), output("a")]), Ok(()));
        assert!(items(vec![item("a")]).is_err() && items(vec![output("a")]).is_err() && items(vec![thought]).is_err());
        assert!(items(vec![item("a"), output("a"), item("a"), output("a")]).is_err());
    }
}
