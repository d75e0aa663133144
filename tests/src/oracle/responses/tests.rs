#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::wire::examples;

const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

fn request(items: Value) -> Value {
    let [_, _, mut request] = examples::all();
    request["input"] = items;
    request
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": "{}"})
}

fn result(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": ""})
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"})
}

fn image() -> Value {
    json!({"type": "input_image", "image_url": PNG, "detail": "auto"})
}

#[test]
fn a_conversation_with_reasoning_calls_and_pictures_is_accepted() {
    let [_, _, example] = examples::all();
    assert_eq!(check_responses_request(&example), Ok(()));
    let items = json!([
        user(json!([{"type": "input_text", "text": "look"}, image()])),
        thought("r1"),
        call("a"),
        thought("r2"),
        call("b"),
        // Results can be in any order.
        {"type": "function_call_output", "call_id": "b", "output": [image()]},
        result("a"),
        // Empty words close reasoning that nothing followed.
        thought("r3"),
        said(""),
        user(json!("and?")),
        {"role": "assistant", "content": "I look.", "phase": "commentary"},
        call("c"),
        result("c"),
    ]);
    let mut good = request(items);
    good["include"] = json!(["reasoning.encrypted_content"]);
    good["reasoning"] = json!({"effort": "medium", "summary": "auto"});
    assert_eq!(check_responses_request(&good), Ok(()));
}

#[test]
fn an_invalid_conversation_is_refused_with_its_position() {
    let hi = || user(json!("hi"));
    let mut unsealed = thought("r");
    unsealed["encrypted_content"] = json!("");
    let long = "x".repeat(65);
    let cases = [
        (json!([]), "no items"),
        (json!([hi(), said("a")]), "nothing to answer"),
        (json!([hi(), hi()]), "item 1: the user speaks before the model"),
        (json!([user(json!(" "))]), "item 0: the content is empty"),
        (json!([user(json!([]))]), "item 0: no text and no list"),
        (json!([{"role": "system", "content": "hi"}]), "item 0: a message of the role system"),
        (json!([hi(), call("a"), hi()]), "item 2: the call `a` has no result"),
        (json!([hi(), call("a")]), "the call `a` has no result"),
        (json!([hi(), call("a"), call("b"), result("a")]), "the call `b` has no result"),
        (json!([hi(), result("a")]), "item 1: a result for `a`"),
        (json!([hi(), call("a"), result("a"), result("a")]), "item 3: a result for `a`"),
        (json!([hi(), call("a"), result("a"), hi()]), "item 3: the user speaks before the model"),
        (json!([hi(), call("a"), result("a"), call("a"), result("a")]), "item 3: the id `a`"),
        (json!([hi(), call(&long), result(&long)]), "too long"),
        (json!([hi(), thought("r"), hi()]), "item 2: the reasoning before it"),
        (json!([hi(), call("a"), thought("r"), result("a")]), "item 3: the reasoning before it"),
        (json!([hi(), thought("r"), said("a"), hi(), thought("r"), said("b"), hi()]), "item 4: the id `r`"),
        (json!([hi(), unsealed, said("a"), hi()]), "item 1: reasoning that is not sealed"),
        (json!([hi(), {"type": "item_reference", "id": "x"}, hi()]), "of the type `item_reference`"),
        (json!([hi(), {"role": "assistant", "content": "a", "phase": "analysis"}, hi()]), "`phase`"),
        (json!([user(json!([{"type": "text", "text": "a"}]))]), "part 0: a part of the type `text`"),
        (json!([user(json!([{"type": "input_image", "image_url": PNG}]))]), "part 0: `detail`"),
    ];
    for (items, rule) in cases {
        let refused = check_responses_request(&request(items.clone())).unwrap_err();
        assert!(refused.contains(rule), "{refused} for {items}");
    }
}

#[test]
fn settings_that_the_api_refuses_are_named() {
    let [_, _, good] = examples::all();
    for (place, value, rule) in [
        ("/store", json!(true), "`store`"),
        ("/instructions", json!(" "), "the instructions are empty"),
        ("/max_output_tokens", json!(15), "max_output_tokens"),
        ("/temperature", json!(3), "temperature"),
        ("/prompt_cache_key", json!("x".repeat(65)), "prompt_cache_key"),
        ("/include", json!(["message.output_text.logprobs"]), "`include`"),
        ("/reasoning", json!({"effort": "huge"}), "`effort`"),
        ("/previous_response_id", json!("resp_1"), "previous_response_id"),
        ("/messages", json!([]), "messages"),
        ("/tools/0/parameters", json!({"type": "object"}), "no object with properties"),
        ("/tools/0/parameters", json!({"type": "object", "properties": {}, "anyOf": []}), "`anyOf`"),
        ("/tools/0/strict", json!(null), "`strict`"),
        ("/tools/0/cache_control", json!({}), "cache_control"),
        ("/input/2/arguments", json!("{"), "no JSON object"),
        ("/input/2/id", json!("fc_1"), "no key `id`"),
    ] {
        let mut bad = good.clone();
        let (object, key) = place.rsplit_once('/').unwrap();
        bad.pointer_mut(object).unwrap()[key] = value;
        let refused = check_responses_request(&bad).unwrap_err();
        assert!(refused.contains(rule), "{refused} for {place}");
    }
    let mut bad = good;
    bad.as_object_mut().unwrap().shift_remove("tools");
    bad["tool_choice"] = json!("auto");
    assert!(check_responses_request(&bad).unwrap_err().contains("without tools"));
}

#[test]
fn a_search_of_the_client_is_answered_with_definitions_and_words_behind_them() {
    let search = |execution: &str| json!({"type": "tool_search_call", "call_id": "s", "execution": execution, "status": "completed", "arguments": {"query": "x"}});
    let output = |id: &str, tools: Value| json!({"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": tools});
    let words = |content: &str| json!({"role": "developer", "content": content});
    let part = |more: Value| {
        let mut tool = json!({"type": "function", "name": "part", "strict": false, "defer_loading": true,
            "parameters": {"type": "object", "properties": {}}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    let check = |kind: &str, items: Value| {
        let mut body = request(items);
        body["tools"] = json!([{"type": "tool_search", "execution": kind, "parameters": {"type": "object"}}]);
        check_responses_request(&body)
    };
    let hi = || user(json!("hi"));
    let found =
        json!([hi(), search("client"), call("a"), output("s", json!([part(json!({}))])), words("so"), result("a")]);
    assert_eq!(check("client", found), Ok(()));
    assert_eq!(check("client", json!([hi(), search("client"), output("s", json!([]))])), Ok(()));
    for (kind, items, rule) in [
        ("server", json!([hi()]), "a search of the provider"),
        ("client", json!([hi(), search("server"), output("s", json!([]))]), "a search of the provider"),
        ("client", json!([hi(), search("client")]), "the call `s` has no result"),
        ("client", json!([hi(), search("client"), result("s")]), "a usual result for the search `s`"),
        ("client", json!([hi(), call("a"), output("a", json!([]))]), "`a`, which is no search"),
        (
            "client",
            json!([hi(), search("client"), output("s", json!([part(json!({"strict": null}))]))]),
            "`strict` is missing",
        ),
        ("client", json!([hi(), search("client"), output("s", json!([])), words(" ")]), "the content is empty"),
    ] {
        let refused = check(kind, items.clone()).unwrap_err();
        assert!(refused.contains(rule), "{refused} for {items}");
    }
}
