//! Chat history to Anthropic's messages, and whole requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::{Media, Part, ProviderPayload, Role, Shown, ToolCall, ToolResult};
use serde_json::{Map, Value, json};

use super::{as_blocks, differs, run};
use crate::{ApiMode, Breakpoints, Dialect, Effort, Marks, Prefix, Request, Style, System, ToolChoice, body};

const NATIVE: Style = Style::new(ApiMode::AnthropicMessages, Marks::Native);

const SNIFFED: &str = "the type of an image is read from its bytes, and other bytes are refused when they are attached";
const IMAGE_ALONE: &str = "an image without text is sent";
const NO_CITATIONS: &str = "documents are sent without citations, and replies keep none";
const PARTS_AS_TEXT: &str = "the text parts of a result are sent as text, not as the JSON of their list";
const EVERY_TURN: &str =
    "signed reasoning stays in every turn, so that sent bytes stay; the API ignores what it does not need";
const UNSIGNED: &str =
    "reasoning without a signature is only shown: it is not sent as something that the model answered";
const BUDGETS: &str = "more effort never gets a smaller budget";
const HAIKU: &str = "Haiku thinks since 4.5";
const REFUSED_EFFORT: &str = "an unknown effort is refused where it is configured";
const CAP_STAYS: &str = "a cap on output is kept, and thinking gets what it leaves";
const BETA: &str = "the cap of 128,000 would need a beta header";
const PAIRED_BEFORE: &str = "the host renders a valid conversation for every wire: a call without a result gets one that says so, \
     and a result without a call is left out";
const BLOCKS_STAY: &str = "texts of neighbours stay blocks of their own: what was sent is a prefix of what follows";
const MARKS_LAST: &str = "marks are placed by breakpoints when a body is written, not taken from messages";
const MENDED_ONLY: &str = "a schema is sent as its author wrote it unless the API refuses it";
const ROOM: &str = "prompt and cap on output have to fit the window together";

/// System prompt and messages of a recorded history.
pub(super) fn history(messages: &Value) -> (String, Vec<Shown>) {
    let mut system = Vec::new();
    let mut shown = Vec::new();
    for message in messages.as_array().unwrap() {
        let content = text_of(&message["content"]);
        let role = match message["role"].as_str().unwrap() {
            "system" => {
                system.push(content);
                continue;
            }
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => Role::User,
        };
        let calls: Vec<ToolCall> = message["tool_calls"].as_array().into_iter().flatten().map(call_of).collect();
        shown.push(Shown {
            parts: parts_of(role, message, &calls),
            reasoning: message["reasoning_content"].as_str().map(str::to_owned),
            tool_calls: calls,
            tool_call_id: message["tool_call_id"].as_str().map(str::to_owned),
            ..Shown::words(role, content)
        });
    }
    (system.join("\n\n"), shown)
}

/// The effort of a recorded configuration; none for one that is absent or unknown.
pub(super) fn effort_of(config: &Value) -> Option<Effort> {
    match config["enabled"].as_bool()? {
        false => Some(Effort::None),
        true => Effort::parse(config["effort"].as_str()?),
    }
}

fn call_of(call: &Value) -> ToolCall {
    ToolCall {
        id: call["id"].as_str().unwrap().to_owned(),
        name: call["function"]["name"].as_str().unwrap().to_owned(),
        arguments: match &call["function"]["arguments"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other["text_summary"].as_str().map_or_else(|| other.to_string(), str::to_owned),
    }
}

/// The parts of a recorded message that is more than text and calls; none for any other.
fn parts_of(role: Role, message: &Value, calls: &[ToolCall]) -> Vec<Part> {
    let content = &message["content"];
    let said = content.as_array().or_else(|| content["content"].as_array());
    let said: Vec<Part> = said.into_iter().flatten().filter_map(part_of).collect();
    if role == Role::Tool {
        let has_media = said.iter().any(|part| part.media().is_some());
        let call_id = message["tool_call_id"].as_str().unwrap().to_owned();
        let result =
            ToolResult { call_id, tool_name: None, parts: said, failed: false, structured: None, reminder: None };
        return if has_media { vec![Part::ToolResult(result)] } else { Vec::new() };
    }
    let blocks = |key: &str| message[key].as_array().cloned().unwrap_or_default();
    let (ordered, details) = (blocks("anthropic_content_blocks"), blocks("reasoning_details"));
    if !ordered.is_empty() {
        let call = |block: &Value| calls.iter().find(|call| call.id == block["id"]).cloned().map(Part::ToolCall);
        return ordered
            .iter()
            .filter_map(|block| payload_of(block).or_else(|| call(block)).or_else(|| part_of(block)))
            .collect();
    }
    if details.is_empty() {
        return if role == Role::User { said } else { Vec::new() };
    }
    let text = (!text_of(content).is_empty()).then(|| Part::text(text_of(content)));
    let calls = calls.iter().cloned().map(Part::ToolCall);
    details.iter().filter_map(payload_of).chain(text).chain(calls).collect()
}

/// A block of reasoning, as the reply to a request leaves it in the log.
fn payload_of(block: &Value) -> Option<Part> {
    let is_reasoning = block["type"].as_str()?.ends_with("thinking");
    let text = block["thinking"].as_str().unwrap_or_default().to_owned();
    is_reasoning.then(|| Part::Reasoning { text, payload: Some(ProviderPayload::untagged(block.to_string())) })
}

/// A text, or an image as it is attached to a message.
fn part_of(part: &Value) -> Option<Part> {
    if let Some(text) = part.as_str().or_else(|| part["text"].as_str()) {
        return Some(Part::text(text));
    }
    let url = part.pointer("/image_url/url")?.as_str()?;
    let image = match url.split_once(";base64,") {
        Some((_, data)) => Media::image(STANDARD.decode(data).unwrap(), None),
        None => Media::image_at(url),
    };
    image.ok().map(Part::Image)
}

/// What is compared of a body: texts and one-block lists are the same to the API.
pub(super) fn compared(body: &Value) -> Value {
    let mut kept = Map::new();
    for (key, value) in body.as_object().unwrap() {
        let value = match key.as_str() {
            "stream" => continue,
            "system" if value.is_null() => continue,
            // 1 is the default, and the only allowed value together with thinking.
            "temperature" if value == 1 => continue,
            "system" => as_blocks(value),
            "messages" => value
                .as_array()
                .unwrap()
                .iter()
                .map(|message| json!({"role": message["role"], "content": as_blocks(&message["content"])}))
                .collect(),
            _ => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}

pub(super) fn written(prefix: &Prefix, breakpoints: Breakpoints) -> Value {
    let request = Request {
        model: "m",
        prefix,
        breakpoints,
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    serde_json::from_slice(&body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap()
}

/// The breakpoints that come nearest to the marks of a recorded history.
fn marked_in(messages: &Value) -> Option<Breakpoints> {
    let messages: Vec<&Value> =
        messages.as_array().unwrap().iter().filter(|message| message["role"] != "system").collect();
    let previous = messages.iter().rposition(|message| !message["cache_control"].is_null())?;
    let ttl = messages[previous]["cache_control"]["ttl"].as_str().unwrap_or("5m").parse().unwrap();
    Some(Breakpoints { ttl, previous: Some(previous), summaries: None })
}

#[test]
fn anthropic_messages() {
    let said = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let (user, assistant) = (|text: &str| said("user", text), |text: &str| said("assistant", text));
    let file =
        |id: &str, path: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": path}});
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let calls = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let results = |blocks: Value| json!({"role": "user", "content": blocks});
    let read = || calls(json!([file("call_1", "a.txt")]));
    let answered = |text: &str| results(json!([result("call_1", text)]));
    let history_of = |messages: Value| json!({"messages": messages});
    let look = || history_of(json!([user("look")]));
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}});
    let signed = json!({"type": "thinking", "thinking": "step one", "signature": "sig=="});
    let marked_last = {
        let mut last = result("call_1", "A");
        last["cache_control"] = json!({"type": "ephemeral"});
        let mut call = file("call_1", "a.txt");
        call["cache_control"] = json!({"type": "ephemeral"});
        json!([user("q"), calls(json!([{"type": "text", "text": "text"}, call])), results(json!([last]))])
    };
    run(
        "anthropic_messages",
        &[
            differs(
                "system-parts-cached",
                MARKS_LAST,
                json!({"system": [{"type": "text", "text": "one\ntwo"}], "messages": [user("hi")]}),
            ),
            differs("user-image-only-has-no-text-part", IMAGE_ALONE, history_of(json!([results(json!([image]))]))),
            differs("image-data-url-no-mime", SNIFFED, look()),
            differs("part-text-citations", NO_CITATIONS, history_of(json!([user("q"), assistant("t"), user("n")]))),
            differs(
                "tool-result-text-parts",
                PARTS_AS_TEXT,
                history_of(json!([user("q"), read(), answered("one\ntwo")])),
            ),
            differs("orphan-call-at-end", PAIRED_BEFORE, history_of(json!([user("q"), read()]))),
            differs(
                "orphan-result",
                PAIRED_BEFORE,
                history_of(json!([
                    results(json!([{"type": "text", "text": "q"}, result("call_9", "stray")])),
                    assistant("ok")
                ])),
            ),
            differs(
                "merge-users-strings",
                BLOCKS_STAY,
                history_of(json!([
                    results(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])),
                    assistant("c")
                ])),
            ),
            differs("cache-on-assistant-tools", MARKS_LAST, history_of(marked_last)),
            differs(
                "thinking-signed-older-dropped",
                EVERY_TURN,
                history_of(json!([
                    user("q"),
                    calls(json!([signed, {"type": "text", "text": "a"}])),
                    user("n"),
                    assistant("b")
                ])),
            ),
            differs("thinking-content-field", UNSIGNED, history_of(json!([user("q"), assistant("a")]))),
            differs(
                "thinking-kimi-model-keeps-all",
                UNSIGNED,
                history_of(json!([
                    user("q"),
                    calls(json!([{"type": "text", "text": "a"}, file("call_1", "a.txt")])),
                    answered("A")
                ])),
            ),
        ],
        |input| {
            let (system, messages) = history(&input["messages"]);
            let marked = marked_in(&input["messages"]);
            let mut prefix = Prefix::of(NATIVE, System::plain(&system), &messages).unwrap();
            if marked.is_some() {
                prefix = Prefix::new(NATIVE, "", System::plain(&system)).unwrap();
                messages.iter().for_each(|message| prefix.push(&NATIVE.render(message)));
            }
            let mut body = compared(&written(&prefix, marked.unwrap_or_default()));
            body.as_object_mut().unwrap().retain(|key, _| matches!(key.as_str(), "system" | "messages"));
            body
        },
        compared,
    );
}

#[test]
fn anthropic_request() {
    let asked = |model: &str, max_tokens: u32| {
        json!({"model": model, "max_tokens": max_tokens, "system": [{"type": "text", "text": "sys"}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]})
    };
    let budgeted = |model: &str, max_tokens: u32, budget: u32| {
        let mut body = asked(model, max_tokens);
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        body
    };
    let mut nullable = asked("claude-sonnet-4-6", 64_000);
    nullable["tool_choice"] = json!({"type": "auto"});
    nullable["tools"] = json!([{"name": "f", "description": "d", "input_schema": {"type": "object", "properties":
        {"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "opt"}}}}]);
    run(
        "anthropic_request",
        &[
            differs("max-tokens-clamped-to-window", ROOM, asked("claude-sonnet-4-6", 8_164)),
            differs("tools-nullable-union", MENDED_ONLY, nullable),
            differs("thinking:claude-haiku-4-5:medium", HAIKU, budgeted("claude-haiku-4-5", 64_000, 8_000)),
            differs(
                "thinking:claude-3-7-sonnet-20250219:xhigh",
                BETA,
                budgeted("claude-3-7-sonnet-20250219", 64_000, 32_000),
            ),
            differs("thinking-budget:minimal", BUDGETS, budgeted("claude-sonnet-4-5", 64_000, 2_000)),
            differs("thinking-budget:max", BUDGETS, budgeted("claude-sonnet-4-5", 64_000, 32_000)),
            differs("thinking-effort:bogus", REFUSED_EFFORT, asked("claude-opus-4-7", 128_000)),
            differs("thinking-budget-raises-cap", CAP_STAYS, asked("claude-sonnet-4-5", 2_000)),
        ],
        |input| {
            let (system, messages) = history(&input["messages"]);
            let none = input["tool_choice"] == "none";
            let tools = if input["tools"].is_null() || none { String::new() } else { input["tools"].to_string() };
            let mut prefix = Prefix::new(NATIVE, &tools, System::plain(&system)).unwrap();
            for message in &messages {
                prefix.push(&NATIVE.render(message));
            }
            let request = Request {
                model: input["model"].as_str().unwrap(),
                prefix: &prefix,
                // Marks are a suite of their own.
                breakpoints: Breakpoints::default(),
                max_tokens: input["max_tokens"].as_f64().map(|tokens| tokens as u32),
                temperature: None,
                schema: None,
                tool_choice: ToolChoice::Auto,
                effort: effort_of(&input["reasoning_config"]),
            };
            let dialect = Dialect {
                vendor_names: input["preserve_dots"] != true,
                context_length: input["context_length"].as_u64().map(|window| window as u32),
                ..Dialect::PLAIN
            };
            let body = String::from_utf8(body(&request, &dialect).unwrap().to_vec()).unwrap();
            let unmarked = body.replace(crate::Ttl::FiveMinutes.mark(), "");
            compared(&serde_json::from_str(&unmarked).unwrap())
        },
        compared,
    );
}
