#![allow(clippy::unwrap_used)]

use hermes_conversation::{Media, ProviderPayload, ToolResult};
use serde_json::{Value, json};

use super::*;
use crate::{
    Breakpoints, Effort,
    wire::{
        body,
        tests::{RESPONSES, call, shown, turn},
    },
};

fn prefix(system: System<'_>, tools: &str, messages: &[Shown]) -> Prefix {
    let mut prefix = Prefix::new(RESPONSES, tools, system).unwrap();
    for message in messages {
        prefix.push(&RESPONSES.render(message));
    }
    prefix
}

fn request<'a>(model: &'a str, prefix: &'a Prefix) -> Request<'a> {
    Request {
        model,
        prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    }
}

fn sent(request: &Request<'_>) -> Value {
    serde_json::from_slice(&body(request, &Dialect::PLAIN).unwrap().to_vec()).unwrap()
}

/// The items of one message.
fn items(message: &Shown) -> Vec<Value> {
    let text = String::from_utf8(RESPONSES.render(message).bytes().to_vec()).unwrap();
    serde_json::from_str(&format!("[{text}]")).unwrap()
}

fn reasoning(data: &str) -> Part {
    Part::Reasoning { text: "hm".into(), payload: Some(ProviderPayload::untagged(data.to_owned())) }
}

fn reply(parts: Vec<Part>) -> Shown {
    Shown { parts, ..shown(Role::Assistant, "so") }
}

#[test]
fn a_body_has_the_sdks_keys_in_a_fixed_order_and_nothing_else() {
    let tools = r#"[{"type":"function","function":{"name":"z","parameters":{"b":1,"type":"object"}}}]"#;
    let prefix = prefix(System::plain("be \"brief\""), tools, &turn());
    let request = Request {
        max_tokens: Some(9),
        temperature: Some(0.7),
        schema: Some(r#"{"type":"object"}"#),
        tool_choice: ToolChoice::Auto,
        ..request("gpt-4.1", &prefix)
    };
    assert_eq!(
        String::from_utf8(body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap(),
        concat!(
            r#"{"model":"gpt-4.1","stream":true,"store":false,"max_output_tokens":16,"temperature":0.7,"#,
            r#""text":{"format":{"type":"json_schema","name":"reply","schema":{"type":"object"}}},"#,
            r#""tool_choice":"auto","parallel_tool_calls":true,"prompt_cache_key":"pck_829d2bbd4b6a3f2703b3ab9a","#,
            r#""tools":[{"type":"function","name":"z","description":"","strict":false,"#,
            r#""parameters":{"type":"object","b":1,"properties":{}}}],"#,
            r#""instructions":"be \"brief\"","input":[{"role":"user","content":"hi"},"#,
            r#"{"type":"function_call","call_id":"c1","name":"read_file","#,
            r#""arguments":"{\"path\": \"a\", \"n\": 12345678901234567890}"},"#,
            r#"{"type":"function_call","call_id":"c2","name":"read_file","arguments":"{}"},"#,
            r#"{"type":"function_call_output","call_id":"c1","output":"A"},"#,
            r#"{"type":"function_call_output","call_id":"c2","output":"B"}]}"#,
        )
    );
}

#[test]
fn what_is_absent_is_left_out() {
    let prefix = prefix(System::default(), "[]", &[shown(Role::User, "hi")]);
    let body = body(&request("m", &prefix), &Dialect::PLAIN).unwrap().to_vec();
    assert_eq!(body, br#"{"model":"m","stream":true,"store":false,"input":[{"role":"user","content":"hi"}]}"#);
}

#[test]
fn only_models_that_think_are_asked_for_reasoning_and_they_get_no_temperature() {
    let prefix = prefix(System::plain("s"), "", &[shown(Role::User, "hi")]);
    let of = |model: &str| sent(&Request { temperature: Some(0.5), ..request(model, &prefix) });
    let thinking = of("gpt-5.4");
    assert_eq!(thinking["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(thinking["reasoning"], json!({"effort": "medium", "summary": "auto"}));
    assert_eq!((&thinking["temperature"], &thinking["store"]), (&Value::Null, &json!(false)));
    let plain = of("gpt-4.1");
    assert_eq!(
        (&plain["include"], &plain["reasoning"], &plain["temperature"]),
        (&Value::Null, &Value::Null, &json!(0.5))
    );
}

#[test]
fn an_effort_replaces_the_usual_one_and_none_asks_for_no_reasoning() {
    let prefix = prefix(System::plain("s"), "", &[shown(Role::User, "hi")]);
    let of = |model: &str, effort: Effort| {
        let body = sent(&Request { effort: Some(effort), ..request(model, &prefix) });
        (body["reasoning"].clone(), !body["include"].is_null())
    };
    assert_eq!(of("gpt-5.4", Effort::XHigh), (json!({"effort": "xhigh", "summary": "auto"}), true));
    assert_eq!(of("gpt-5.4", Effort::None), (Value::Null, false));
    assert_eq!(of("o3", Effort::None), (json!({"effort": "low", "summary": "auto"}), true), "it always thinks");
    assert_eq!(of("gpt-4.1", Effort::High), (Value::Null, false));
}

#[test]
fn the_cache_key_stays_while_messages_and_the_layer_of_a_call_change() {
    let tools = r#"[{"type":"function","function":{"name":"z"}}]"#;
    let key = |text: &str, tools: &str, ephemeral: &str, messages: &[Shown]| {
        let prefix = prefix(System { text, stable: 0, ephemeral }, tools, messages);
        sent(&request("m", &prefix))["prompt_cache_key"].as_str().unwrap().to_owned()
    };
    let first = key("be brief", tools, "", &[shown(Role::User, "hi")]);
    assert_eq!(first, key("be brief", tools, "only now", &turn()));
    for other in [key("be briefer", tools, "", &[]), key("be brief", "", "", &[]), key("", tools, "", &[])] {
        assert!(other != first && other.len() == 28 && other.starts_with("pck_"), "{other}");
    }
}

#[test]
fn the_layer_of_a_call_is_the_end_of_the_instructions() {
    let system = System { text: "stable\n\nrest", stable: 6, ephemeral: "only now" };
    let prefix = prefix(system, "", &[shown(Role::User, "hi")]);
    let body = sent(&request("m", &prefix));
    assert_eq!(body["instructions"], "stable\n\nrest\n\nonly now");
    assert_eq!(&prefix.bytes()[..prefix.stable_end()], b"\"stable");
    assert_eq!(&prefix.bytes()[..prefix.ephemeral_start()], br#""stable\n\nrest"#);
}

#[test]
fn sealed_reasoning_goes_back_byte_for_byte_before_what_followed_it() {
    let data = r#"{"type": "reasoning","id":"rs_1","summary":[],"encrypted_content":"RU5D\u002b"}"#;
    let message = Shown {
        tool_calls: vec![call("c", "{}")],
        ..reply(vec![reasoning(data), Part::text("so"), reasoning(data), Part::ToolCall(call("c", "{}"))])
    };
    let bytes = String::from_utf8(RESPONSES.render(&message).bytes().to_vec()).unwrap();
    let words = r#"{"role":"assistant","content":"so"}"#;
    assert!(bytes.starts_with(&format!(r#"{data},{words},{data},{{"type":"function_call","#)), "{bytes}");
    // The API refuses reasoning that nothing follows.
    let last = items(&reply(vec![Part::text("so"), reasoning(data)]));
    assert_eq!((last.len(), &last[2]), (3, &json!({"role": "assistant", "content": ""})));
    for other in [
        r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
        r#"{"type":"reasoning","type":"function_call","encrypted_content":"x"}"#,
        r#"{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}"#,
        r#"{"type":"message","role":"user","content":"x"}"#,
        r#"{"type":"message","role":"assistant","content":[]}"#,
        "[1]",
        "nonsense",
    ] {
        let sent = items(&reply(vec![reasoning(other), Part::text("so")]));
        assert_eq!(sent, [json!({"role": "assistant", "content": "so"})], "{other}");
    }
}

#[test]
fn a_phase_goes_back_with_its_words() {
    let phase = |data: &str| Part::Provider(ProviderPayload::untagged(data.to_owned()));
    let comment = r#"{"type":"message","role":"assistant","content":"I look.","phase":"commentary"}"#;
    let final_answer = r#"{"type":"message","phase":"final_answer"}"#;
    let sent = items(&reply(vec![reasoning(comment), phase(final_answer), Part::text("so"), Part::text("on")]));
    assert_eq!(
        sent,
        [
            serde_json::from_str::<Value>(comment).unwrap(),
            json!({"role": "assistant", "content": "so", "phase": "final_answer"}),
            json!({"role": "assistant", "content": "on"}),
        ]
    );
    for other in ["{}", "nonsense", r#"{"type":"message","phase":1}"#] {
        let sent = items(&reply(vec![phase(other), Part::text("so")]));
        assert_eq!(sent, [json!({"role": "assistant", "content": "so"})], "{other}");
    }
}

#[test]
fn pictures_and_files_are_parts_of_messages_and_results() {
    let gif = Media::image(b"GIF89a\x01\0\x01\0".to_vec(), Some("dot.gif")).unwrap();
    let file = |bytes: &[u8], kind, name| Part::File(Media::file(bytes.to_vec(), kind, name).unwrap());
    let parts = vec![
        Part::text("look"),
        Part::text("  "),
        Part::Image(gif),
        Part::Image(Media::image_at("https://example.com/a.png").unwrap()),
        file(b"%PDF-1.7", "application/pdf", Some("a.pdf")),
        file(b"one, two", "text/csv", Some("a.csv")),
        file(b"PK", "application/zip", Some("a.zip")),
    ];
    let image = |url: &str| json!({"type": "input_image", "image_url": url, "detail": "auto"});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let expected = json!([
        text("look"),
        image("data:image/gif;base64,R0lGODlhAQABAA=="),
        image("https://example.com/a.png"),
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjc="},
        text("[file: a.csv, text/csv]\none, two"),
        text("[file: a.zip, application/zip]"),
    ]);
    let user = Shown { parts: parts.clone(), ..shown(Role::User, "look") };
    assert_eq!(items(&user), [json!({"role": "user", "content": expected})]);
    let result = |parts: Vec<Part>| {
        let call_id = "c".to_owned();
        let whole = ToolResult {
            call_id: call_id.clone(),
            tool_name: None,
            parts,
            failed: true,
            structured: None,
            reminder: None,
        };
        let parts = vec![Part::ToolResult(whole)];
        items(&Shown { parts, tool_call_id: Some(call_id), ..shown(Role::Tool, "look") })
    };
    assert_eq!(result(parts), [json!({"type": "function_call_output", "call_id": "c", "output": expected})]);
    let words = [json!({"type": "function_call_output", "call_id": "c", "output": "look"})];
    assert_eq!(result(vec![Part::text("look")]), words, "words alone are a text");
    // The pictures are in the result, and not behind it again.
    assert!(!RESPONSES.takes(&Shown { repeats_pictures: true, ..shown(Role::User, "") }));
}

#[test]
fn ids_of_calls_fit_the_api() {
    for (id, expected) in
        [("call_1", "call_1"), ("call_1|fc_1", "call_1"), ("|fc_1", "call_1"), ("|x", "x"), ("a:b", "a:b")]
    {
        assert_eq!(call_id(id, 0), expected, "{id}");
    }
    let (long, longer) = ("x".repeat(65), "x".repeat(66));
    assert_eq!((call_id(&long, 0).len(), call_id(&long[..64], 0).len()), (29, 64));
    assert_ne!(call_id(&long, 0), call_id(&longer, 0));
    // A call and its result still have the same id.
    let called = items(&Shown { tool_calls: vec![call(&long, "{}")], ..shown(Role::Assistant, "") });
    let answered = items(&Shown { tool_call_id: Some(long.clone()), ..shown(Role::Tool, "x") });
    assert_eq!(called[0]["call_id"], answered[0]["call_id"]);
}

#[test]
fn a_blank_message_has_an_item() {
    assert_eq!(items(&shown(Role::Assistant, " ")), [json!({"role": "assistant", "content": ""})]);
    assert_eq!(items(&reply(vec![Part::text(" ")])), [json!({"role": "assistant", "content": ""})]);
    assert_eq!(items(&shown(Role::User, "")), [json!({"role": "user", "content": ""})]);
}

#[test]
fn a_schema_of_a_tool_is_completed_where_the_api_refuses_it() {
    for (parameters, expected) in [
        (r#"{"type":"object","properties":{"a":{}}}"#, json!({"type": "object", "properties": {"a": {}}})),
        ("{}", json!({"type": "object", "properties": {}})),
        (r#"{"type":"object"}"#, json!({"type": "object", "properties": {}})),
        (r#"{"type":"object","properties":{},"anyOf":[{}]}"#, json!({"type": "object", "properties": {}})),
        ("null", json!({"type": "object", "properties": {}})),
    ] {
        let list =
            format!(r#"[{{"function":{{"name":"f","parameters":{parameters}}}}},{{"function":{{"name":"f"}}}}]"#);
        let mut out = Vec::new();
        tools(&mut out, RESPONSES, &list).unwrap();
        let written: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(written.as_array().unwrap().len(), 1, "the first of one name is kept");
        assert_eq!(written[0]["parameters"], expected, "{parameters}");
    }
}

#[test]
fn the_largest_cap_on_output_is_read_from_a_refusal() {
    let refusal =
        "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 16384, but got 100000 instead.";
    let format = RESPONSES.mode.format();
    assert_eq!(format.output_room(refusal), Some(16_384));
    assert_eq!(format.output_room("Range of max_tokens should be [1, 65536]"), Some(65_536));
    assert_eq!(
        format.output_room("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."),
        None
    );
}

/// A search, one tool, and one that has to be found.
const DEFERRED: &str = concat!(
    r#"[{"type":"function","function":{"name":"read_file","description":"reads","parameters":{"type":"object","properties":{}}}},"#,
    r#"{"type":"function","function":{"name":"tool_search","description":"finds","parameters":{"type":"object","properties":{}}}},"#,
    r#"{"type":"function","function":{"name":"part","description":"one","parameters":{"type":"object","properties":{}}},"defer_loading":true}]"#,
);

/// The tools and items of a request in which the model searches twice, calls something else, and gets these answers to its searches.
fn searched(style: Style, list: &str, answers: [Shown; 2]) -> (Value, Value) {
    let call =
        |id: &str, name: &str| ToolCall { id: id.into(), name: name.into(), arguments: r#"{"query": "x"}"#.into() };
    let calls = vec![call("s1", found::SEARCH), call("c", "read_file"), call("s2", found::SEARCH)];
    let other = Shown { tool_call_id: Some("c".to_owned()), ..shown(Role::Tool, "words of a file") };
    let [first, second] = answers;
    let mut prefix = Prefix::new(style, list, System::plain("be brief")).unwrap();
    for message in
        [shown(Role::User, "hi"), Shown { tool_calls: calls, ..shown(Role::Assistant, "") }, first, other, second]
    {
        prefix.push(&style.render(&message));
    }
    let body = sent(&request("gpt-5.5", &prefix));
    (body["tools"].clone(), body["input"].clone())
}

fn answer(id: &str, text: &str, found: Option<&[&str]>) -> Shown {
    let parts = found.map(|tools| {
        Part::ToolResult(hermes_conversation::ToolResult {
            call_id: id.into(),
            tool_name: Some(found::SEARCH.into()),
            parts: vec![Part::text(text)],
            failed: false,
            structured: Some(found::to_json(tools.iter().copied())),
            reminder: None,
        })
    });
    Shown { tool_call_id: Some(id.to_owned()), parts: parts.into_iter().collect(), ..shown(Role::Tool, text) }
}

#[test]
fn the_output_of_a_search_has_the_definitions_and_words_follow_it() {
    let style = Style { defers: true, ..RESPONSES };
    let answers = || [answer("s1", "## part", Some(&["part"])), answer("s2", "No tool has any of these words.", None)];
    let (tools, items) = searched(style, DEFERRED, answers());
    let parameters = json!({"type": "object", "properties": {}});
    assert_eq!(
        tools,
        json!([
            {"type": "function", "name": "read_file", "description": "reads", "strict": false, "parameters": parameters},
            {"type": "tool_search", "execution": "client", "description": "finds", "parameters": parameters},
        ])
    );
    let loaded = json!({
        "type": "function", "name": "part", "description": "one", "strict": false, "defer_loading": true, "parameters": parameters,
    });
    let search = |id: &str| {
        json!({"type": "tool_search_call", "call_id": id, "execution": "client", "status": "completed",
            "arguments": {"query": "x"}})
    };
    let output = |id: &str, tools: Value| json!({"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": tools});
    assert_eq!(
        items,
        json!([
            {"role": "user", "content": "hi"},
            search("s1"),
            {"type": "function_call", "call_id": "c", "name": "read_file", "arguments": "{\"query\": \"x\"}"},
            search("s2"),
            output("s1", json!([loaded])),
            {"type": "function_call_output", "call_id": "c", "output": "words of a file"},
            output("s2", json!([])),
            {"role": "developer", "content": "No tool has any of these words."},
        ])
    );
    // A tool that the session did not have when it began cannot be loaded: the words have its parameters.
    let (_, items) = searched(style, DEFERRED, [answer("s1", "## newer", Some(&["newer"])), answers()[1].clone()]);
    assert_eq!(items[4], output("s1", json!([])));
    assert_eq!(items[5], json!({"role": "developer", "content": "## newer"}));
}

#[test]
fn without_deferred_tools_a_search_is_a_call_like_any_other() {
    let defers = Style { defers: true, ..RESPONSES };
    let common = &DEFERRED[..DEFERRED.rfind(",{").unwrap()].to_owned();
    let common = format!("{common}]");
    for (style, list) in [(RESPONSES, DEFERRED), (defers, common.as_str())] {
        let (tools, items) =
            searched(style, list, [answer("s1", "## part", Some(&["part"])), answer("s2", "none", None)]);
        let kinds: Vec<&str> = items.as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
        assert_eq!(kinds, [&["function_call"; 3][..], &["function_call_output"; 3][..]].concat());
        assert_eq!(items[4]["output"], "## part");
        assert!(tools.as_array().unwrap().iter().all(|tool| tool["type"] == "function"), "{tools}");
    }
}
