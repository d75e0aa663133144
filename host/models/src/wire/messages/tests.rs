#![allow(clippy::unwrap_used)]

use hermes_conversation::ProviderPayload;
use serde_json::json;

use super::*;
use crate::{
    ApiMode, Breakpoints, Effort, Marks, Prefix, ToolChoice, Ttl,
    wire::{
        body,
        tests::{call, shown, turn},
    },
};

const NATIVE: Style = Style::new(ApiMode::AnthropicMessages, Marks::Native);
const TOOLS: &str = concat!(
    r#"[{"type":"function","function":{"name":"a","description":"does \"a\"","#,
    r#""parameters":{"type":"object", "z":1, "big":12345678901234567890}}},"#,
    r#"{"type":"function","function":{"name":"b","description":"d","parameters":{"anyOf":[{}],"properties":{}}}}]"#,
);

fn prefix(system: System<'_>, tools: &str, messages: &[Shown]) -> Prefix {
    let mut prefix = Prefix::new(NATIVE, tools, system).unwrap();
    for message in messages {
        prefix.push(&NATIVE.render(message));
    }
    prefix
}

fn request<'a>(model: &'a str, prefix: &'a Prefix) -> Request<'a> {
    Request {
        model,
        prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: Some(0.5),
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    }
}

fn written(request: &Request<'_>, dialect: &Dialect) -> Value {
    serde_json::from_slice(&body(request, dialect).unwrap().to_vec()).unwrap()
}

#[test]
fn a_body_is_what_the_vendors_library_would_send() {
    let system = System { text: "stable\n\nrest", stable: 6, ephemeral: "only now" };
    let prefix = prefix(system, TOOLS, &turn());
    let request = Request {
        breakpoints: Breakpoints { ttl: Ttl::OneHour, previous: Some(0), summaries: None },
        ..request("anthropic/claude-sonnet-4.5", &prefix)
    };
    let dialect = Dialect { vendor_names: true, context_length: Some(200_000), ..Dialect::PLAIN };
    let body = String::from_utf8(body(&request, &dialect).unwrap().to_vec()).unwrap();
    insta::assert_snapshot!(body.replace("},{", "},\n{"), @r#"
    {"model":"claude-sonnet-4-5","max_tokens":64000,"stream":true,"temperature":0.5,"tool_choice":{"type":"auto"},"tools":[{"name":"a","description":"does \"a\"","input_schema":{"type":"object", "z":1, "big":12345678901234567890}},
    {"name":"b","description":"d","input_schema":{"type":"object","properties":{}}}],"system":[{"type":"text","text":"stable","cache_control":{"type":"ephemeral","ttl":"1h"}},
    {"type":"text","text":"\n\nrest","cache_control":{"type":"ephemeral","ttl":"1h"}},
    {"type":"text","text":"\n\nonly now"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]},
    {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read_file","input":{"path": "a", "n": 12345678901234567890}},
    {"type":"tool_use","id":"c2","name":"read_file","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"A"},
    {"type":"tool_result","tool_use_id":"c2","content":"B","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}
    "#);
}

#[test]
fn what_the_api_would_refuse_stands_in_no_message() {
    let block = |message: &Shown| String::from_utf8(NATIVE.render(message).bytes().to_vec()).unwrap();
    assert_eq!(block(&shown(Role::User, " \n")), r#"{"type":"text","text":"(empty message)"}"#);
    assert_eq!(block(&shown(Role::Assistant, "")), r#"{"type":"text","text":"(empty)"}"#);
    let result = Shown { tool_call_id: Some("functions.ls:0".to_owned()), ..shown(Role::Tool, "") };
    assert_eq!(block(&result), r#"{"type":"tool_result","tool_use_id":"functions_ls_0","content":"(no output)"}"#);
    for (arguments, sent) in [
        (r#" {"n":12345678901234567890, "f":1.0} "#, r#"{"n":12345678901234567890, "f":1.0}"#),
        ("", "{}"),
        ("[1]", "{}"),
        (r#"{"half":"\ud83d"}"#, "{}"),
        (r#"{"a":1} {"b":2}"#, "{}"),
        (&format!("{{\"a\":{}{}}}", "[".repeat(5000), "]".repeat(5000)), "{}"),
    ] {
        let caller = Shown { tool_calls: vec![call("", arguments)], ..shown(Role::Assistant, " ") };
        let expected = format!(r#"{{"type":"tool_use","id":"tool_0","name":"read_file","input":{sent}}}"#);
        assert_eq!(block(&caller), expected);
    }
}

#[test]
fn neighbours_of_one_side_make_one_message() {
    let messages = [shown(Role::Assistant, "first"), shown(Role::User, "a"), shown(Role::User, "b")];
    let prefix = prefix(System::default(), "", &messages);
    assert_eq!(
        String::from_utf8(prefix.bytes().to_vec()).unwrap(),
        concat!(
            r#"[{"role":"assistant","content":[{"type":"text","text":"first"}]},"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}"#
        )
    );
    let value = written(&request("m", &prefix), &Dialect::PLAIN);
    assert_eq!(value["messages"].as_array().unwrap().len(), 2);
    assert!(value.get("system").is_none() && value.get("tools").is_none() && value.get("tool_choice").is_none());
}

#[test]
fn without_any_message_a_body_is_still_json() {
    assert_eq!(
        written(&request("m", &prefix(System::default(), "", &[])), &Dialect::PLAIN)["messages"],
        Value::Array(vec![])
    );
}

#[test]
fn the_cap_on_output_leaves_room_for_the_prompt() {
    let said = [shown(Role::User, &"x".repeat(3_000))];
    let prefix = prefix(System::default(), "", &said);
    let cap = |model, asked, window| {
        let request = Request { max_tokens: asked, ..request(model, &prefix) };
        written(&request, &Dialect { context_length: window, ..Dialect::PLAIN })["max_tokens"].as_u64().unwrap()
    };
    assert_eq!(cap("claude-sonnet-4-5", None, None), 64_000);
    assert_eq!(cap("claude-sonnet-4-5", None, Some(200_000)), 64_000);
    assert_eq!(cap("claude-sonnet-4-5", Some(0), Some(200_000)), 64_000);
    assert_eq!(cap("claude-sonnet-4-5", Some(100), Some(200_000)), 100);
    assert!((8_500..9_000).contains(&cap("claude-sonnet-4-5", None, Some(10_000))));
    assert_eq!(cap("claude-sonnet-4-5", None, Some(900)), 899);
}

#[test]
fn what_a_family_refuses_is_left_out() {
    let prefix = prefix(System::plain("s"), "", &[shown(Role::User, "hi")]);
    let of = |model, temperature| {
        let request = Request { temperature, schema: Some(r#"{"type":"object"}"#), ..request(model, &prefix) };
        written(&request, &Dialect::PLAIN)
    };
    let older = of("claude-sonnet-4-5", Some(1.5));
    assert_eq!((&older["temperature"], &older["tool_choice"]["type"]), (&Value::from(1.0), &Value::from("tool")));
    assert_eq!(older["tools"][0]["input_schema"], serde_json::json!({"type": "object"}));
    let newer = of("claude-sonnet-5-5", Some(1.5));
    assert_eq!((newer.get("temperature"), &newer["tool_choice"]["type"]), (None, &Value::from("auto")));
    assert_eq!(of("kimi-k2.5", Some(f32::NAN)).get("temperature"), None);
}

#[test]
fn a_schema_of_the_reply_cannot_be_asked_for_beside_tools() {
    let prefix = prefix(System::default(), TOOLS, &[shown(Role::User, "hi")]);
    let request = Request { schema: Some("{}"), ..request("m", &prefix) };
    assert!(body(&request, &Dialect::PLAIN).unwrap_err().to_string().contains("beside tools"));
    let alone = Prefix::new(NATIVE, "", System::default()).unwrap();
    let request = Request { prefix: &alone, schema: Some("{"), ..request };
    assert!(body(&request, &Dialect::PLAIN).unwrap_err().to_string().contains("schema of the reply"));
}

#[test]
fn tools_that_the_api_would_refuse_are_mended_and_no_others_touched() {
    let schema = |parameters: &str| {
        let mut out = Vec::new();
        let tool = format!(r#"[{{"type":"function","function":{{"name":"f","parameters":{parameters}}}}}]"#);
        tools(&mut out, NATIVE, &tool).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.strip_prefix(r#"[{"name":"f","description":"","input_schema":"#)
            .unwrap()
            .strip_suffix("}]")
            .unwrap()
            .to_owned()
    };
    for untouched in [
        r#"{ "type":"object", "properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}"#,
        r#"{"type":"object"}"#,
    ] {
        assert_eq!(schema(untouched), untouched);
    }
    assert_eq!(schema(r#"{"type":"object","properties":null}"#), r#"{"type":"object"}"#);
    let empty = r#"{"type":"object","properties":{}}"#;
    for (given, sent) in [
        ("null", empty),
        ("{}", empty),
        (r#"{"type":"string"}"#, empty),
        (
            r#"{"oneOf":[],"properties":{"n":{"maximum":12345678901234567890}},"allOf":[{}]}"#,
            r#"{"type":"object","properties":{"n":{"maximum":12345678901234567890}}}"#,
        ),
    ] {
        assert_eq!(schema(given), sent, "{given}");
    }
    let mut out = Vec::new();
    let twice = r#"[{"function":{"name":"f","parameters":{"type":"object","a":1}}},{"function":{"name":"f"}}]"#;
    tools(&mut out, NATIVE, twice).unwrap();
    assert_eq!(out, br#"[{"name":"f","description":"","input_schema":{"type":"object","a":1}}]"#);
    assert!(tools(&mut Vec::new(), NATIVE, r#"[{"function":{}}]"#).is_err());
}

#[test]
fn the_room_for_a_reply_is_read_off_a_refusal() {
    let room = output_room;
    assert_eq!(
        room("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"),
        Some(11_760)
    );
    assert_eq!(room("input length and `max_tokens` exceed context limit: 199999 + 9 > 200000"), None);
    assert_eq!(room("exceed context limit: 5 + 99999999999999999999 > 7"), None);
    assert_eq!(room("prompt is too long: 208310 tokens > 200000 maximum"), None);
}

#[test]
fn unsigned_reasoning_goes_back_only_where_every_reply_needs_some() {
    let demanding = {
        let url = url::Url::parse("https://api.kimi.com/coding").unwrap();
        Style::of_route(ApiMode::AnthropicMessages, "custom", &url, "")
    };
    let reply = |payload: Option<&str>| {
        let payload = payload.map(|data| ProviderPayload::untagged(data.to_owned()));
        let reasoning = payload.map(|payload| Part::Reasoning { text: String::new(), payload: Some(payload) });
        let calls = vec![call("c", "{}")];
        let parts = reasoning.into_iter().chain(calls.iter().cloned().map(Part::ToolCall)).collect();
        Shown { parts, tool_calls: calls, ..shown(Role::Assistant, "") }
    };
    let sent = |style: Style, payload| String::from_utf8(style.render(&reply(payload)).bytes().to_vec()).unwrap();
    let call = r#"{"type":"tool_use","id":"c","name":"read_file","input":{}}"#;
    let blank = r#"{"type":"thinking","thinking":" "}"#;
    let unsigned = r#"{"type":"thinking","thinking":"hm"}"#;
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"s"}"#;
    for (payload, kept, demanded) in [
        (None, String::new(), format!("{blank},")),
        (Some(unsigned), String::new(), format!("{unsigned},")),
        (Some(signed), format!("{signed},"), format!("{signed},")),
        (Some(r#"{"type":"text","text":"a"}"#), String::new(), format!("{blank},")),
    ] {
        assert_eq!(sent(NATIVE, payload), format!("{kept}{call}"));
        assert_eq!(sent(demanding, payload), format!("{demanded}{call}"));
    }
    let words = demanding.render(&shown(Role::Assistant, "so"));
    assert_eq!(words.bytes(), format!(r#"{blank},{{"type":"text","text":"so"}}"#).as_bytes());
}

#[test]
fn thinking_is_requested_as_the_family_takes_it() {
    let plain = prefix(System::default(), TOOLS, &[shown(Role::User, "hi")]);
    let asked = |model: &str, effort: Effort| {
        let body = written(&Request { effort: Some(effort), ..request(model, &plain) }, &Dialect::PLAIN);
        let temperature = body.get("temperature").is_some();
        (body["thinking"].clone(), body["output_config"]["effort"].clone(), temperature)
    };
    let budget = |tokens: u32| (json!({"type": "enabled", "budget_tokens": tokens}), Value::Null, false);
    let adaptive = |word: &str| (json!({"type": "adaptive", "display": "summarized"}), json!(word), false);
    let off = |sampling: bool| (Value::Null, Value::Null, sampling);
    let disabled = |sampling: bool| (json!({"type": "disabled"}), Value::Null, sampling);
    for (model, effort, wanted) in [
        ("claude-sonnet-4-5", Effort::Minimal, budget(2_000)),
        ("claude-sonnet-4-5", Effort::Max, budget(32_000)),
        ("claude-sonnet-4-5", Effort::None, off(true)),
        // The cap of 32,000 leaves that much.
        ("claude-opus-4-1", Effort::Max, budget(27_904)),
        ("claude-3-5-sonnet-latest", Effort::High, off(true)),
        ("claude-sonnet-4-6", Effort::XHigh, adaptive("max")),
        ("claude-opus-4-7", Effort::XHigh, adaptive("xhigh")),
        ("claude-opus-4-7", Effort::None, off(false)),
        ("claude-opus-5", Effort::None, disabled(false)),
        ("claude-unreleased-9", Effort::None, adaptive("low")),
        ("deepseek-v4-pro", Effort::Medium, (json!({"type": "enabled"}), json!("high"), false)),
        ("kimi-k2.5", Effort::None, disabled(true)),
        ("glm-5", Effort::High, budget(16_000)),
    ] {
        let (thinking, word, temperature) = asked(model, effort);
        assert_eq!((thinking, word, temperature), wanted, "{model} {effort}");
    }
}

#[test]
fn a_budget_is_requested_only_where_the_api_accepts_it() {
    let asked = |max_tokens: Option<u32>, schema: Option<&str>, messages: &[Shown]| {
        let prefix = prefix(System::default(), "", messages);
        let effort = Some(Effort::High);
        let request = Request { max_tokens, schema, effort, ..request("claude-sonnet-4-5", &prefix) };
        written(&request, &Dialect::PLAIN)["thinking"]["budget_tokens"].as_u64()
    };
    let hi = [shown(Role::User, "hi")];
    assert_eq!(asked(None, None, &hi), Some(16_000));
    assert_eq!(asked(Some(10_000), None, &hi), Some(5_904), "what the cap leaves beside an answer");
    assert_eq!(asked(Some(5_000), None, &hi), None, "less than the least budget");
    assert_eq!(asked(None, Some("{}"), &hi), None, "a call is demanded");
    // The calls of the running turn need reasoning; those of earlier turns do not.
    assert_eq!(asked(None, None, &turn()), None);
    let later = [turn(), vec![shown(Role::Assistant, "so"), shown(Role::User, "and?")]].concat();
    assert_eq!(asked(None, None, &later), Some(16_000));
    let mut reasoned = turn();
    let payload = Some(ProviderPayload::untagged(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#.to_owned()));
    let calls = reasoned[1].tool_calls.iter().cloned().map(Part::ToolCall);
    reasoned[1].parts = [Part::Reasoning { text: "hm".to_owned(), payload }].into_iter().chain(calls).collect();
    assert_eq!(asked(None, None, &reasoned), Some(16_000));
}

/// Two tools, and two that have to be found.
const DEFERRED: &str = concat!(
    r#"[{"type":"function","function":{"name":"tool_search","description":"finds","parameters":{"type":"object","properties":{}}}},"#,
    r#"{"type":"function","function":{"name":"part","description":"one","parameters":{"type":"object","properties":{}}},"defer_loading":true},"#,
    r#"{"type":"function","function":{"name":"parcel","description":"two","parameters":{"type":"object","properties":{}}},"defer_loading":true}]"#,
);

fn search_result(tools: &[&str]) -> Shown {
    let result = hermes_conversation::ToolResult {
        call_id: "c".into(),
        tool_name: Some("tool_search".into()),
        parts: vec![Part::text("## part")],
        failed: false,
        structured: Some(found::to_json(tools.iter().copied())),
        reminder: None,
    };
    Shown { tool_call_id: Some("c".to_owned()), parts: vec![Part::ToolResult(result)], ..shown(Role::Tool, "## part") }
}

/// The tools of a request in this style, and its only message.
fn sent_with(style: Style, tools: &str, message: &Shown) -> (Value, Value) {
    let mut prefix = Prefix::new(style, tools, System::plain("be brief")).unwrap();
    prefix.push(&style.render(message));
    let body = written(&request("claude-sonnet-4-5", &prefix), &Dialect::PLAIN);
    (body["tools"].clone(), body["messages"][0]["content"][0].clone())
}

#[test]
fn a_result_of_a_search_loads_deferred_tools_by_reference_and_keeps_its_mark() {
    let style = Style { defers: true, ..NATIVE };
    let (tools, result) = sent_with(style, DEFERRED, &search_result(&["parcel", "part"]));
    assert_eq!(tools[0].get("defer_loading"), None);
    let part = json!({
        "name": "part", "description": "one", "input_schema": {"type": "object", "properties": {}}, "defer_loading": true,
    });
    assert_eq!(tools[1], part);
    let references = json!([
        {"type": "tool_reference", "tool_name": "parcel"},
        {"type": "tool_reference", "tool_name": "part"},
    ]);
    let expected = json!({
        "type": "tool_result", "tool_use_id": "c", "content": references, "cache_control": {"type": "ephemeral"},
    });
    assert_eq!(result, expected);
}

#[test]
fn what_cannot_be_loaded_is_sent_as_text() {
    let defers = Style { defers: true, ..NATIVE };
    let mut failed = search_result(&["part"]);
    if let Some(Part::ToolResult(result)) = failed.parts.first_mut() {
        result.failed = true;
    }
    let mut of_another_tool = search_result(&["part"]);
    if let Some(Part::ToolResult(result)) = of_another_tool.parts.first_mut() {
        result.tool_name = Some("mcp_shop_part".into());
    }
    for (why, style, tools, message) in [
        ("the route does not defer", NATIVE, DEFERRED, search_result(&["part"])),
        ("an older session has no deferred tools", defers, TOOLS, search_result(&["part"])),
        ("one of the tools is not deferred", defers, DEFERRED, search_result(&["part", "newer"])),
        ("nothing was found", defers, DEFERRED, search_result(&[])),
        ("the search failed", defers, DEFERRED, failed),
        ("another tool has the same JSON", defers, DEFERRED, of_another_tool),
    ] {
        let (_, result) = sent_with(style, tools, &message);
        assert_eq!(result["content"], "## part", "{why}");
    }
    let (tools, _) = sent_with(NATIVE, DEFERRED, &search_result(&["part"]));
    assert_eq!(tools.as_array().map(Vec::len), Some(1), "a route without the form gets no deferred tools");
}

#[test]
fn deferred_tools_take_no_room_from_the_reply() {
    let cap = |style: Style| {
        let filler = "x".repeat(300_000);
        let long = DEFERRED.replace(r#""description":"two""#, &format!(r#""description":"{filler}""#));
        let mut prefix = Prefix::new(style, &long, System::plain("be brief")).unwrap();
        prefix.push(&style.render(&shown(Role::User, "hi")));
        let dialect = Dialect { context_length: Some(100_000), ..Dialect::PLAIN };
        written(&request("claude-sonnet-4-5", &prefix), &dialect)["max_tokens"].clone()
    };
    assert_eq!(cap(Style { defers: true, ..NATIVE }), cap(NATIVE));
}
