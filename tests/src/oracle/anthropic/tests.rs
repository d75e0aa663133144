#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::wire::examples;

fn request(messages: Value) -> Value {
    let [_, mut request, _] = examples::all();
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
    let call = |id: &&str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"cache_control": 1}});
    said(ids.iter().map(call).collect())
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": ""})
}

#[test]
fn a_conversation_with_calls_and_results_is_accepted() {
    let [_, example, _] = examples::all();
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
        (json!([user(json!([{"type": "image"}]))]), "source: no object"),
        (json!([user(json!([{"type": "image_url"}]))]), "of the type `image_url`"),
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
    let [_, good, _] = examples::all();
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
    let [_, good, _] = examples::all();
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
    let [_, mut request, _] = examples::all();
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

const PNG: &str = "iVBORw0KGgo=";

fn base64(kind: &str, media_type: &str, data: &str) -> Value {
    json!({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}})
}

fn thinking(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": signature})
}

#[test]
fn pictures_documents_and_signed_reasoning_are_accepted() {
    let image = base64("image", "image/png", PNG);
    let url = json!({"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}});
    let pdf = base64("document", "application/pdf", "JVBERi0xLjc=");
    let words = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}});
    let hidden = json!({"type": "redacted_thinking", "data": "x"});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {}});
    let shot = json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "a"}, image]});
    let failed = json!({"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": true});
    let messages = json!([
        user(json!([image, {"type": "text", "text": "look"}, url, pdf, words])),
        said(json!([thinking("s"), call("a"), hidden, call("b")])),
        user(json!([failed, shot, image])),
        said(json!([thinking("s"), {"type": "text", "text": "I cannot."}])),
        user(json!("why?")),
    ]);
    assert_eq!(check_anthropic_request(&request(messages)), Ok(()));
}

#[test]
fn invalid_pictures_and_reasoning_are_refused() {
    let hi = || user(json!("hi"));
    let text = json!({"type": "text", "text": "so"});
    let reply = |first: Value| json!([hi(), said(json!([first, text])), hi()]);
    let marked = |mut block: Value| {
        block["cache_control"] = json!({"type": "ephemeral"});
        block
    };
    let result = |content: Value, failed: Value| {
        let block = json!({"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": failed});
        json!([hi(), calls(&["a"]), user(json!([block]))])
    };
    let image = base64("image", "image/png", PNG);
    let source = |source: Value| json!([user(json!([{"type": "image", "source": source}]))]);
    let cases = [
        (json!([user(json!([base64("image", "image/gif", PNG)]))]), "not of the type `image/gif`"),
        (json!([user(json!([base64("image", "application/pdf", "JVBERi0=")]))]), "the type `application/pdf`"),
        (json!([user(json!([base64("document", "text/csv", "YQ==")]))]), "the type `text/csv`"),
        (json!([user(json!([base64("image", "image/png", "")]))]), "not of the type"),
        (source(json!({"type": "url", "url": "file:///a.png"})), "no `https:` address"),
        (source(json!({"type": "text", "media_type": "text/plain", "data": "a"})), "the type `text`"),
        (source(json!({"type": "base64", "media_type": "image/png", "data": PNG, "name": "a"})), "no key `name`"),
        (reply(image.clone()), "of the type `image` in a message of the assistant"),
        (reply(thinking("")), "without a signature"),
        (reply(json!({"type": "thinking", "thinking": "hm"})), "`signature` is missing"),
        (reply(json!({"type": "redacted_thinking", "data": ""})), "without data"),
        (reply(marked(thinking("s"))), "no key `cache_control`"),
        (json!([hi(), said(json!([text, thinking("s")])), hi()]), "the last block of a message is reasoning"),
        (json!([user(json!([thinking("s")]))]), "in a message of the user"),
        (result(json!([image]), json!(true)), "takes only text"),
        (result(json!("x"), json!("no")), "`is_error`"),
        (result(json!([thinking("s")]), json!(false)), "in a result"),
        (
            json!([hi(), calls(&["a"]), user(json!([image, {"type": "tool_result", "tool_use_id": "a"}]))]),
            "behind words",
        ),
    ];
    for (messages, rule) in cases {
        let refused = check_anthropic_request(&request(messages.clone())).unwrap_err();
        assert!(refused.contains(rule), "{refused} for {messages}");
    }
}

#[test]
fn a_budget_for_thinking_is_below_the_cap_and_its_calls_begin_with_reasoning() {
    let asked = |thinking: Value, more: Value, opening: Value| {
        let call = json!({"type": "tool_use", "id": "a", "name": "read_file", "input": {}});
        let mut blocks = vec![opening, call];
        blocks.retain(|block| !block.is_null());
        let mut body = request(json!([user(json!("hi")), said(blocks.into()), user(json!([result("a")]))]));
        body["thinking"] = thinking;
        body["max_tokens"] = json!(8_000);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check_anthropic_request(&body)
    };
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let (signed, adaptive) = (thinking("s"), json!({"type": "adaptive"}));
    assert_eq!(asked(budget(4_000), json!({"temperature": 1}), signed.clone()), Ok(()));
    assert_eq!(asked(adaptive, json!({}), Value::Null), Ok(()));
    for (refused, rule) in [
        (asked(budget(1_000), json!({}), signed.clone()), "a budget of 1000"),
        (asked(budget(8_000), json!({}), signed.clone()), "a budget of 8000"),
        (asked(budget(4_000), json!({"temperature": 0.5}), signed.clone()), "another temperature"),
        (asked(budget(4_000), json!({"tool_choice": {"type": "any"}}), signed), "is demanded"),
        (asked(budget(4_000), json!({}), Value::Null), "without reasoning"),
    ] {
        assert!(refused.as_ref().is_err_and(|why| why.contains(rule)), "{refused:?} for {rule}");
    }
}

#[test]
fn a_deferred_tool_has_no_mark_and_only_a_result_of_references_loads_it() {
    let hi = || user(json!("hi"));
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let deferred = || json!({"name": "later", "input_schema": {"type": "object"}, "defer_loading": true});
    let loading = |content: Value, failed: bool| {
        json!([
            hi(),
            calls(&["a"]),
            user(json!([{"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": failed}]))
        ])
    };
    let check = |tools: Value, messages: Value| {
        let mut body = request(messages);
        body["tools"] = tools;
        check_anthropic_request(&body)
    };
    let reference = |name: &str| json!({"type": "tool_reference", "tool_name": name});
    let mut marked = deferred();
    marked["cache_control"] = json!({"type": "ephemeral"});
    let both = || json!([tool("search"), deferred()]);
    assert_eq!(check(both(), loading(json!([reference("later"), reference("later")]), false)), Ok(()));
    for (refused, rule) in [
        (check(json!([tool("search"), marked]), json!([hi()])), "both `defer_loading` and a mark"),
        (check(json!([deferred()]), json!([hi()])), "all tools have"),
        (check(both(), loading(json!([reference("search")]), false)), "no tool `search` is deferred"),
        (check(both(), loading(json!([reference("unknown")]), false)), "no tool `unknown` is deferred"),
        (
            check(both(), loading(json!([reference("later"), {"type": "text", "text": "so"}]), false)),
            "beside references",
        ),
        (check(both(), loading(json!([reference("later")]), true)), "takes only text"),
    ] {
        assert!(refused.as_ref().is_err_and(|why| why.contains(rule)), "{refused:?} for {rule}");
    }
}
