//! The Responses API: ids, items, whole requests, replies and streams.

use hermes_conversation::part::Reader;
use hermes_conversation::{Part, ProviderPayload, Shown};
use serde_json::{Map, Value, json};

use super::{
    differs,
    messages::{effort_of, history},
    run,
};
use crate::{
    ApiMode, Breakpoints, Delta, Dialect, Finish, Marks, Prefix, Reply, Request, Style, System, ToolChoice,
    assembly::{Assemble, responses::Assembly},
    body,
    wire::responses::split_id,
};

const STYLE: Style = Style::new(ApiMode::Responses, Marks::None);

const NO_ITEM_ID: &str = "calls are sent without the id of their item, which names what a provider has stored";
const HOST_ID: &str = "a call without an id gets one from the host when its reply is read, which its result has too";
const EVERY_MESSAGE: &str = "every message has an item, so that the log and the request stay comparable";
const DETAIL: &str = "the official types require the detail of an image";
const AS_WRITTEN: &str = "a reasoning item goes back as its provider wrote it, with its id, which the official types require, and \
     with nothing between it and the item that followed it";
const PHASE_ALONE: &str = "of a message's item its words and its phase are sent: nothing else is known to a provider that stores \
     nothing";
const ROLES: &str = "a log has no other roles";
const NO_DEFAULT_TEXT: &str =
    "a request without a system prompt is sent without instructions, and with nothing to name for a cache";
const NOT_CHOSEN: &str = "there is no setting for it";
const OTHER_SERVICES: &str = "rules of services that have no login here are not applied";
const OWN_TOOLS: &str = "no tool is replaced by one that the provider runs";
const EMPTY: &str = "an empty reply is the loop's to judge: it asks once more";
const ALONE: &str = "reasoning without an answer is an empty reply: the loop asks once more";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[test]
fn responses_ids() {
    run(
        "responses_ids",
        &[
            differs("split/'|fc_1'", "the id of the item alone becomes the id of the call", json!("call_1")),
            differs("item_id/call_1-fc_9", NO_ITEM_ID, Value::Null),
            differs("item_id/weird id!-None", NO_ITEM_ID, Value::Null),
            differs("deterministic/f-0", HOST_ID, json!("made")),
        ],
        |input| match input["op"].as_str().unwrap() {
            "split" => Some(split_id(input["id"].as_str().unwrap())).filter(|id| !id.is_empty()).into(),
            "item_id" => sent_call(input)["id"].clone(),
            "deterministic" => json!(id_of_a_call_without_one(input)),
            other => panic!("{other}"),
        },
        |expected| expected.get(0).unwrap_or(expected).clone(),
    );
}

/// The item of a recorded call in a request.
fn sent_call(input: &Value) -> Value {
    let call = json!({"id": input["call_id"], "call_id": input["call_id"], "type": "function",
        "function": {"name": "f", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": input["call_id"], "content": "r"},
    ]);
    let body = written(&json!({ "messages": messages }));
    let items = body["input"].as_array().unwrap();
    items.iter().find(|item| item["type"] == "function_call").unwrap().clone()
}

/// The id that a recorded call gets when a reply brings it without one.
fn id_of_a_call_without_one(input: &Value) -> String {
    let item = json!({"type": "function_call", "name": input["name"], "arguments": input["arguments"]});
    let mut assembly = Assembly::default();
    assembly.take_whole(&json!({"status": "completed", "output": [item]}), &mut |_| {}).unwrap();
    let reply = Box::new(assembly).finish("m", &mut || "made".to_owned()).unwrap();
    reply.tool_calls[0].id.clone()
}

/// Adds what the recorded provider wanted back, as the reply to a request leaves it in the log.
fn with_items(mut shown: Shown, message: &Value) -> Shown {
    let list = |key: &str| message[key].as_array().cloned().unwrap_or_default();
    let payload = |item: Value| ProviderPayload::untagged(item.to_string());
    let mut parts = Vec::new();
    for mut item in list("codex_reasoning_items") {
        item.as_object_mut().unwrap().shift_remove("_issuer_kind");
        parts.push(Part::Reasoning { text: String::new(), payload: Some(payload(item)) });
    }
    let items = list("codex_message_items");
    for item in &items {
        parts.push(Part::Provider(payload(json!({"type": "message", "phase": item["phase"]}))));
        parts.push(Part::text(text(&item["content"][0]["text"])));
    }
    if parts.is_empty() {
        return shown;
    }
    if items.is_empty() && !shown.content.is_empty() {
        parts.push(Part::text(shown.content.clone()));
    }
    parts.extend(shown.tool_calls.iter().cloned().map(Part::ToolCall));
    shown.parts = parts;
    shown
}

fn prefix(input: &Value) -> Prefix {
    let messages = input["messages"].as_array().unwrap();
    let (system, shown) = history(&input["messages"]);
    let tools = if input["tools"].is_null() { String::new() } else { input["tools"].to_string() };
    let mut prefix = Prefix::new(STYLE, &tools, System::plain(&system)).unwrap();
    let others = messages.iter().filter(|message| message["role"] != "system");
    for (mut shown, message) in shown.into_iter().zip(others) {
        for (call, recorded) in shown.tool_calls.iter_mut().zip(message["tool_calls"].as_array().into_iter().flatten())
        {
            if let Some(id) = recorded["call_id"].as_str() {
                id.clone_into(&mut call.id);
            }
        }
        let mut shown = with_items(shown, message);
        if input["replay_encrypted_reasoning"] == false {
            shown.keep_payloads_for(&Reader { provider: "another", model: "m", api_mode: "codex_responses" });
        }
        prefix.push(&STYLE.render(&shown));
    }
    prefix
}

fn written(input: &Value) -> Value {
    let prefix = prefix(input);
    let request = Request {
        model: input["model"].as_str().unwrap_or("m"),
        prefix: &prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: input["max_tokens"].as_u64().map(|tokens| tokens as u32),
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: effort_of(&input["reasoning_config"]),
    };
    serde_json::from_slice(&body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap()
}

#[test]
fn responses_input() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let sealed = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ENC1",
        "summary": [{"type": "summary_text", "text": "s"}]});
    let call = json!({"type": "function_call", "call_id": "call_1", "name": "read_file",
        "arguments": "{\"path\": \"a.txt\"}"});
    let unnamed = json!({"type": "function_call", "call_id": "call_e3b0c44298fc1c149afbf4c8", "name": "f", "arguments": "{\"x\":1}"});
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "A"});
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"});
    let unstamped = json!({"type": "reasoning", "encrypted_content": "E", "id": "rs_3"});
    let exact = || json!([user("q"), {"role": "assistant", "content": "exact", "phase": "final_answer"}]);
    run(
        "responses_input",
        &[
            differs("assistant-empty", EVERY_MESSAGE, json!([user("q"), assistant(""), user("n")])),
            differs("user-parts-blank-text-dropped", DETAIL, json!([{"role": "user", "content": [image]}])),
            differs("tool-id-missing-deterministic", HOST_ID, json!([user("q"), unnamed])),
            differs("reasoning-with-tool", AS_WRITTEN, json!([user("q"), sealed, call, output])),
            differs("reasoning-unstamped-kept", AS_WRITTEN, json!([user("q"), unstamped, assistant("a")])),
            differs("message-item-64-id", PHASE_ALONE, exact()),
            differs("message-item-status-unknown", PHASE_ALONE, exact()),
            differs("unknown-role-ignored", ROLES, json!([user("x"), user("q")])),
        ],
        |input| written(input)["input"].clone(),
        |expected| expected["items"].clone(),
    );
}

#[test]
fn responses_request() {
    let asked = |model: &str| {
        json!({"model": model, "store": false, "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "medium", "summary": "auto"}, "prompt_cache_key": "pck_c6266aa2837a9114505536f4",
            "instructions": "be brief", "input": [{"role": "user", "content": "hi"}]})
    };
    let gpt = || asked("gpt-5.4");
    let mut plain = gpt();
    plain.as_object_mut().unwrap().retain(|key, _| !["instructions", "prompt_cache_key"].contains(&key.as_str()));
    let mut capped = gpt();
    capped["max_output_tokens"] = json!(500);
    let mut grok = asked("grok-4.3");
    let tool = |name: &str, description: &str, properties: Value| {
        json!({"type": "function", "name": name, "description": description, "strict": false,
            "parameters": {"type": "object", "properties": properties}})
    };
    grok["reasoning"] = json!({"effort": "medium"});
    grok["tool_choice"] = json!("auto");
    grok["parallel_tool_calls"] = json!(true);
    grok["tools"] = json!([
        tool("web_search", "w", json!({})),
        tool("zeta", "z", json!({})),
        tool("alpha", "", json!({"x": {"type": "string"}}))
    ]);
    grok["prompt_cache_key"] = json!("pck_");
    run(
        "responses_request",
        &[
            differs("no-system-default-identity", NO_DEFAULT_TEXT, plain),
            differs("codex-backend-headers", OTHER_SERVICES, capped),
            differs("github-no-reasoning", OTHER_SERVICES, gpt()),
            differs("xai-native-web-search", OWN_TOOLS, grok),
            differs("override-cache-key-blank", NOT_CHOSEN, gpt()),
        ],
        |input| {
            let mut body = written(input);
            assert_eq!(body.as_object_mut().unwrap().shift_remove("stream"), Some(json!(true)));
            if !input["tools"].is_null() {
                // Digests of tools are not recorded.
                let key = text(&body["prompt_cache_key"]);
                assert_eq!(key.len(), 28);
                body["prompt_cache_key"] = json!(key[..4]);
            }
            body
        },
        // `timeout` is for the client and is not sent. An empty list means the same as no list.
        |expected| {
            let is_sent = |(key, value): &(&String, &Value)| *key != "timeout" && **value != json!([]);
            let members = expected.as_object().unwrap().iter().filter(is_sent);
            members.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into()
        },
    );
}

/// A reply in the recorded form.
fn told(reply: Reply) -> Value {
    let finish = match reply.finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "incomplete",
        Finish::Refused => "content_filter",
    };
    // A call that is not whole is in the reply, and the loop runs none of a reply that was cut.
    let runs = |_: &&hermes_conversation::ToolCall| reply.finish == Finish::ToolCalls;
    let calls: Vec<Value> = reply
        .tool_calls
        .iter()
        .filter(runs)
        .map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}))
        .collect();
    let data = |part: &Part| part.payload().map(|payload| serde_json::from_str::<Value>(&payload.data).unwrap());
    let of = |kind: &str| -> Vec<Value> {
        reply.parts.iter().filter_map(data).filter(|item| item["type"] == kind).collect()
    };
    let phases: Vec<Value> = of("message").into_iter().map(|item| item["phase"].clone()).collect();
    json!({
        "content": reply.text,
        "finish_reason": finish,
        "reasoning": reply.reasoning,
        "tool_calls": Some(calls).filter(|calls| !calls.is_empty()),
        "reasoning_items": of("reasoning"),
        "phases": phases,
    })
}

#[test]
fn responses_reply() {
    let nothing = |reasoning: Value, items: Value| {
        json!({"content": "", "finish_reason": "stop", "reasoning": reasoning, "tool_calls": null,
            "reasoning_items": items, "phases": []})
    };
    let sealed = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ENC",
        "summary": [{"type": "summary_text", "text": "why"}]});
    run(
        "responses_reply",
        &[
            differs("reasoning-only-codex", ALONE, nothing(json!("why"), json!([sealed]))),
            differs("empty-output", EMPTY, nothing(Value::Null, json!([]))),
        ],
        |input| {
            let mut assembly = Assembly::default();
            match assembly.take_whole(&input["response"], &mut |_| {}) {
                Ok(()) => told(Box::new(assembly).finish("m", &mut || "made".to_owned()).unwrap()),
                Err(_) => json!({"error": true}),
            }
        },
        |expected| {
            if expected["error"] == true {
                return json!({"error": true});
            }
            let list = |key: &str| expected["provider_data"][key].as_array().cloned().unwrap_or_default();
            let calls = expected["tool_calls"].as_array().map(|calls| {
                let calls = calls.iter();
                let plain =
                    |call: &Value| json!({"id": call["id"], "name": call["name"], "arguments": call["arguments"]});
                calls.map(plain).collect::<Vec<_>>()
            });
            // Which service sealed an item is known from the tags that the loop adds.
            let unstamped = |mut item: Value| {
                item.as_object_mut().unwrap().shift_remove("_issuer_kind");
                item
            };
            let items: Vec<Value> = list("codex_reasoning_items").into_iter().map(unstamped).collect();
            // A message that has no phase is told by its text.
            let phases: Vec<Value> =
                list("codex_message_items").iter().filter_map(|item| item.get("phase").cloned()).collect();
            json!({
                "content": expected["content"],
                "finish_reason": expected["finish_reason"],
                "reasoning": expected["reasoning"],
                "tool_calls": calls,
                "reasoning_items": items,
                "phases": phases,
            })
        },
    );
}

#[test]
fn responses_stream() {
    run(
        "responses_stream",
        &[],
        |input| {
            let mut assembly = Assembly::default();
            let (mut texts, mut thoughts) = (Vec::new(), Vec::new());
            for event in input["events"].as_array().unwrap() {
                let taken = assembly.take(event, &mut |delta| match delta {
                    Delta::Text(text) => texts.push(text.to_owned()),
                    Delta::Reasoning(text) => thoughts.push(text.to_owned()),
                    Delta::Call(_) | Delta::Notice(_) | Delta::Again => {}
                });
                if let Err(stated) = taken {
                    let code = stated.code.split(' ').find(|code| *code != "error");
                    return json!({"failed": true, "code": code, "shown": {"text": texts, "reasoning": thoughts}});
                }
            }
            let shown = json!({"text": texts, "reasoning": thoughts});
            match Box::new(assembly).finish("m", &mut || "made".to_owned()) {
                Err(_) => json!({"failed": true, "code": null, "shown": shown}),
                Ok(reply) => {
                    let calls: Vec<Value> =
                        reply.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments])).collect();
                    let usage = reply.usage.unwrap();
                    json!({"text": reply.text, "calls": calls, "tokens": [usage.input, usage.output], "shown": shown})
                }
            }
        },
        |expected| {
            let shown = json!({"text": expected["shown"]["text"], "reasoning": expected["shown"]["reasoning"]});
            if expected["raised"] == true || expected["status"] == "failed" {
                return json!({"failed": true, "code": expected["error"]["code"], "shown": shown});
            }
            let calls = expected["output"].as_array().unwrap().iter().filter(|item| item["type"] == "function_call");
            let calls: Vec<Value> =
                calls.map(|item| json!([item["call_id"], item["name"], item["arguments"]])).collect();
            let usage = &expected["usage"];
            json!({
                "text": expected["output_text"], "calls": calls,
                "tokens": [usage["input_tokens"], usage["output_tokens"]], "shown": shown,
            })
        },
    );
}
