#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::super::NAMELESS;
use super::*;

/// The reply, and what a viewer saw.
fn assemble(chunks: &[Value], done: bool) -> (Result<Reply, Broken>, Vec<String>) {
    let mut assembly = Assembly::new(Echo::RETURNED);
    let mut shown = Vec::new();
    for chunk in chunks {
        let mut on_delta = |delta: Delta<'_>| {
            shown.push(match delta {
                Delta::Text(text) => format!("text:{text}"),
                Delta::Reasoning(text) => format!("reasoning:{text}"),
                Delta::Call(name) => format!("call:{name}"),
                Delta::Notice(text) => format!("notice:{text}"),
                Delta::Again => "again".to_owned(),
            });
        };
        assembly.take(chunk, &mut on_delta).unwrap();
    }
    if done {
        assembly.done();
    }
    let mut made = 0;
    let reply = Box::new(assembly).finish("asked", &mut || {
        made += 1;
        format!("made_{made}")
    });
    (reply, shown)
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(index: Option<u64>, id: Value, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"id": id, "function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = index.into();
    }
    if let Some(name) = name {
        call["function"]["name"] = name.into();
    }
    delta(json!({"tool_calls": [call]}))
}

fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
    reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
}

#[test]
fn text_and_reasoning_are_appended_and_counts_come_last() {
    let (reply, shown) = assemble(
        &[
            json!({"model": "served", "choices": [{"delta": {"role": "assistant", "reasoning_content": "hm"}}]}),
            delta(json!({"content": "Hel"})),
            delta(json!({"content": "lo", "reasoning": null})),
            finish("stop"),
            json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
        ],
        false,
    );
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.reasoning.as_deref(), &*reply.model), ("Hello", Some("hm"), "served"));
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.output)), Some((5, 2)));
    assert_eq!(shown, ["reasoning:hm", "text:Hel", "text:lo"]);
}

#[test]
fn interleaved_calls_are_kept_apart_by_index() {
    let (reply, shown) = assemble(
        &[
            call(Some(0), json!("c1"), Some("a"), "{\"x\":"),
            call(Some(1), json!("c2"), Some("b"), "{\"y\":"),
            call(Some(0), Value::Null, None, "1}"),
            call(Some(1), Value::Null, None, "2}"),
            delta(json!({"content": "an aside"})),
            finish("tool_calls"),
        ],
        true,
    );
    let reply = reply.unwrap();
    assert_eq!(calls(&reply), [("c1", "a", "{\"x\":1}"), ("c2", "b", "{\"y\":2}")]);
    assert_eq!((reply.finish, &*reply.text), (Finish::ToolCalls, "an aside"));
    assert_eq!(shown, ["call:a", "call:b"], "text behind a call is not shown");
}

#[test]
fn calls_survive_the_habits_of_servers() {
    type Expected = (&'static str, &'static str, &'static str);
    let cases: Vec<(&str, Vec<Value>, Vec<Expected>)> = vec![
        (
            "the name again in every chunk",
            vec![call(Some(0), json!("c1"), Some("ls"), "{"), call(Some(0), json!("c1"), Some("ls"), "}")],
            vec![("c1", "ls", "{}")],
        ),
        (
            "the id late",
            vec![call(Some(0), Value::Null, Some("ls"), "{"), call(Some(0), json!("c1"), None, "}")],
            vec![("c1", "ls", "{}")],
        ),
        (
            "a new id at a used index",
            vec![
                call(Some(0), json!("c1"), Some("a"), "{}"),
                call(Some(0), json!("c2"), Some("b"), "{\"n\""),
                call(Some(0), Value::Null, None, ":1}"),
            ],
            vec![("c1", "a", "{}"), ("c2", "b", "{\"n\":1}")],
        ),
        ("no index, a number for an id", vec![call(None, json!(7), Some("a"), "{}")], vec![("7", "a", "{}")]),
        (
            "neither ids nor indexes",
            vec![call(None, Value::Null, Some("a"), "{\"n\":1}"), call(None, json!(""), Some("a"), "{\"n\":2}")],
            vec![("made_1", "a", "{\"n\":1}"), ("made_2", "a", "{\"n\":2}")],
        ),
        (
            "one id for two calls",
            vec![call(Some(0), json!("c"), Some("a"), "{}"), call(Some(1), json!("c"), Some("b"), "{}")],
            vec![("c", "a", "{}"), ("c_2", "b", "{}")],
        ),
        (
            "neither ids nor indexes, the name first",
            vec![
                call(Some(0), Value::Null, Some("a"), ""),
                call(Some(0), Value::Null, None, "{\"n\":1}"),
                call(Some(0), Value::Null, Some("a"), ""),
                call(Some(0), Value::Null, None, "{\"n\":2}"),
            ],
            vec![("made_1", "a", "{\"n\":1}"), ("made_2", "a", "{\"n\":2}")],
        ),
        (
            "the name once more at the end",
            vec![call(Some(0), json!("c1"), Some("a"), "{\"n\":1}"), call(Some(0), json!(""), Some("a"), "")],
            vec![("c1", "a", "{\"n\":1}")],
        ),
        (
            "another id with each piece",
            vec![
                call(Some(0), json!("r1"), Some("a"), ""),
                call(Some(0), json!("r2"), None, "{\"n\""),
                call(Some(0), json!("r3"), None, ":1}"),
                call(Some(0), json!("r4"), None, ""),
                call(Some(1), json!("r5"), Some("b"), ""),
                call(Some(1), json!("r6"), Some("b"), "{\"n\""),
                call(Some(1), json!("r7"), Some("b"), ":2}"),
            ],
            vec![("r1", "a", "{\"n\":1}"), ("r5", "b", "{\"n\":2}")],
        ),
        (
            "calls without arguments at one index",
            vec![call(Some(0), json!("c1"), Some("a"), ""), call(Some(0), json!("c2"), Some("a"), "")],
            vec![("c1", "a", "{}"), ("c2", "a", "{}")],
        ),
        (
            "the form of one call",
            vec![
                delta(json!({"function_call": {"name": "a", "arguments": "{\"n\""}})),
                delta(json!({"function_call": {"arguments": ":1}"}})),
            ],
            vec![("made_1", "a", "{\"n\":1}")],
        ),
        (
            "no list, no function, an index that is a text",
            vec![delta(json!({"tool_calls": {"index": "0", "id": 42, "name": "a", "arguments": {"n": 1}}}))],
            vec![("42", "a", "{\"n\":1}")],
        ),
        ("no arguments", vec![call(Some(0), json!("c"), Some("a"), "")], vec![("c", "a", "{}")]),
        (
            "arguments as an object",
            vec![delta(json!({"tool_calls": [{"id": "c", "function": {"name": "a", "arguments": {"x": 1}}}]}))],
            vec![("c", "a", "{\"x\":1}")],
        ),
    ];
    for (habit, mut chunks, expected) in cases {
        // Some say `stop` where they mean calls.
        chunks.push(finish("stop"));
        let reply = assemble(&chunks, false).0.unwrap();
        assert_eq!(calls(&reply), expected, "{habit}");
        assert_eq!(reply.finish, Finish::ToolCalls, "{habit}");
    }
}

#[test]
fn a_stream_that_does_not_say_it_ended_is_cut() {
    let text = delta(json!({"content": "half"}));
    let whole_call = call(Some(0), json!("c1"), Some("ls"), "{}");
    let counts = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let cut = |partial: &str| Err(Broken::Cut { partial: partial.to_owned() });

    assert_eq!(assemble(std::slice::from_ref(&text), false).0, cut("half"));
    assert_eq!(assemble(&[], false).0, cut(""));
    assert_eq!(assemble(std::slice::from_ref(&counts), false).0, cut(""));
    // Whole arguments make no whole reply: further calls may have been about to come.
    assert_eq!(assemble(&[whole_call], false).0, cut(""));

    assert_eq!(assemble(std::slice::from_ref(&text), true).0.unwrap().finish, Finish::Stop, "`[DONE]` ends it");
    assert_eq!(assemble(&[text, counts], false).0.unwrap().finish, Finish::Stop, "so do counts without a choice");
}

#[test]
fn at_the_cap_on_output_calls_stay_as_they_broke_off() {
    let (reply, _) = assemble(
        &[
            call(Some(0), json!("c1"), Some("write_file"), "{\"path\": \"a"),
            call(Some(1), json!("c2"), Some("ls"), ""),
            call(Some(2), json!("c3"), None, ""),
            finish("length"),
        ],
        true,
    );
    let reply = reply.unwrap();
    assert_eq!(reply.finish, Finish::Length);
    assert_eq!(calls(&reply), [("c1", "write_file", "{\"path\": \"a"), ("c2", "ls", "")]);
}

#[test]
fn a_refusal_is_told_from_an_answer() {
    let whole = |message: Value, reason: Value| {
        assemble(&[json!({"choices": [{"message": message, "finish_reason": reason}]})], false).0.unwrap()
    };
    let refused = whole(json!({"content": "  ", "refusal": "I cannot"}), json!("stop"));
    assert_eq!((&*refused.text, refused.finish), ("I cannot", Finish::Refused));
    let at_length = whole(json!({"refusal": "no"}), json!("length"));
    assert_eq!((&*at_length.text, at_length.finish), ("no", Finish::Length));
    let filtered = whole(
        json!({"content": "so far", "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": "{}"}}]}),
        json!("content_filter"),
    );
    assert_eq!((filtered.finish, filtered.tool_calls.len()), (Finish::Refused, 0));
    let odd = whole(json!({"content": [{"type": "text", "text": "x"}]}), json!(24));
    assert_eq!((&*odd.text, odd.finish), ("x", Finish::Stop));
}

#[test]
fn a_refusal_is_shown_while_it_arrives_and_kept_as_one() {
    let pieces = [
        delta(json!({"content": "Well."})),
        delta(json!({"refusal": "I can"})),
        delta(json!({"refusal": "not."})),
        finish("stop"),
    ];
    let (reply, shown) = assemble(&pieces, true);
    let reply = reply.unwrap();
    assert_eq!(shown, ["text:Well.", "text:\n\n", "text:I can", "text:not."]);
    assert_eq!((&*reply.text, reply.finish), ("Well.\n\nI cannot.", Finish::Refused));
    assert_eq!(reply.parts, [Part::text("Well."), Part::Refusal { text: "I cannot.".into() }]);
    let (alone, shown) = assemble(&pieces[1..], true);
    let alone = alone.unwrap();
    assert_eq!((shown.concat(), &*alone.text), ("text:I cantext:not.".to_owned(), "I cannot."));
    assert_eq!(alone.parts, [Part::Refusal { text: "I cannot.".into() }]);
}

fn kept(reply: &Reply) -> Value {
    let payloads: Vec<&ProviderPayload> = reply.parts.iter().filter_map(Part::payload).collect();
    assert_eq!(payloads.len(), 1, "{reply:?}");
    serde_json::from_str(&payloads[0].data).unwrap()
}

#[test]
fn reasoning_that_the_provider_wants_back_is_kept_as_it_came() {
    let details = json!([
        {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "xyz", "id": "e1", "index": 1},
        {"type": "reasoning.later", "else": [1, {"a": null}]},
    ]);
    let message = json!({"content": "so", "reasoning": "hm", "reasoning_details": details,
        "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": "{}"}}]});
    let whole = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    let (reply, shown) = assemble(&[whole], true);
    let reply = reply.unwrap();
    assert_eq!(kept(&reply), json!({"reasoning_details": details}));
    assert_eq!((reply.reasoning.as_deref(), &*shown[0]), (Some("hm"), "reasoning:hm"));
    assert_eq!(reply.parts[1..], [Part::text("so"), Part::ToolCall(reply.tool_calls[0].clone())]);

    let pieces = [
        delta(json!({"reasoning_content": "step "})),
        delta(json!({"reasoning_content": "one", "reasoning": "step one"})),
        delta(json!({"content": "so"})),
        finish("stop"),
    ];
    assert_eq!(kept(&assemble(&pieces, true).0.unwrap()), json!({"reasoning_content": "step one"}));

    // `reasoning` alone is for people to read.
    let plain = [delta(json!({"reasoning": "hm"})), delta(json!({"content": "so"})), finish("stop")];
    assert_eq!(assemble(&plain, true).0.unwrap().parts, []);
}

#[test]
fn only_what_the_provider_takes_back_is_kept() {
    let reply = |provider: &str| {
        let url = url::Url::parse("http://127.0.0.1:1/v1").unwrap();
        let mut assembly = Assembly::new(Echo::of(provider, &url));
        let details = json!([{"type": "reasoning.text", "text": "hm"}]);
        let all = json!({"reasoning": "h", "reasoning_content": "hm", "reasoning_details": details});
        for chunk in [delta(all), delta(json!({"reasoning": "m"})), delta(json!({"content": "so"})), finish("stop")] {
            assembly.take(&chunk, &mut |_| {}).unwrap();
        }
        Box::new(assembly).finish("m", &mut || "made".to_owned()).unwrap()
    };
    for (provider, wanted) in [
        ("deepseek", json!({"reasoning_content": "hm"})),
        ("openrouter", json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]})),
        ("ollama", json!({"reasoning": "hm"})),
    ] {
        assert_eq!(kept(&reply(provider)), wanted, "{provider}");
    }
    let groq = reply("groq");
    assert_eq!((groq.parts.as_slice(), groq.reasoning.as_deref()), (&[][..], Some("hm")));
}

#[test]
fn items_of_reasoning_that_arrive_in_pieces_are_joined() {
    let piece = |item: Value| delta(json!({"reasoning_details": [item]}));
    let (reply, shown) = assemble(
        &[
            piece(json!({"type": "reasoning.summary", "summary": "One", "index": 0, "id": null})),
            piece(json!({"type": "reasoning.summary", "summary": " two", "index": 0, "id": "r1"})),
            piece(json!({"type": "reasoning.text", "text": "a", "signature": null, "index": 1})),
            piece(json!({"type": "reasoning.text", "text": "other", "index": 2})),
            piece(json!({"type": "reasoning.text", "text": "b", "index": 1})),
            piece(json!({"type": "reasoning.text", "text": null, "signature": "sig", "index": 1})),
            piece(json!({"type": "reasoning.encrypted", "data": "x", "index": 0})),
            piece(json!({"type": "reasoning.encrypted", "data": "y", "index": 0})),
            piece(json!({"type": "reasoning.text", "text": "c"})),
            piece(json!({"type": "reasoning.text", "text": "d"})),
            delta(json!({"content": "so"})),
            finish("stop"),
        ],
        true,
    );
    let reply = reply.unwrap();
    assert_eq!(
        kept(&reply)["reasoning_details"],
        json!([
            {"type": "reasoning.summary", "summary": "One two", "index": 0, "id": "r1"},
            {"type": "reasoning.text", "text": "ab", "signature": "sig", "index": 1},
            {"type": "reasoning.text", "text": "other", "index": 2},
            {"type": "reasoning.encrypted", "data": "x", "index": 0},
            {"type": "reasoning.encrypted", "data": "y", "index": 0},
            {"type": "reasoning.text", "text": "cd"},
        ])
    );
    assert_eq!(shown[0], "reasoning:One");
    assert_eq!(reply.reasoning.as_deref(), Some("One twoaotherbcd"));
}

#[test]
fn a_whole_completion_without_indexes_keeps_its_calls_apart() {
    let call = |arguments: &str| json!({"function": {"name": "a", "arguments": arguments}});
    let message = json!({"content": null, "tool_calls": [call(""), call("{\"n\":2}")]});
    let (reply, shown) = assemble(&[json!({"choices": [{"message": message, "finish_reason": null}]})], false);
    assert_eq!(calls(&reply.unwrap()), [("made_1", "a", "{}"), ("made_2", "a", "{\"n\":2}")]);
    assert_eq!(shown, ["call:a", "call:a"]);
}

#[test]
fn an_error_in_a_stream_is_an_error() {
    let mut assembly = Assembly::new(Echo::RETURNED);
    let stated = assembly.take(&json!({"error": {"code": 502, "message": "upstream"}}), &mut |_| {}).unwrap_err();
    assert_eq!((stated.status, &*stated.message), (502, "upstream"));
    assert!(assembly.take(&finish("error"), &mut |_| {}).is_err());
    assert!(assembly.take(&json!({"error": null, "choices": []}), &mut |_| {}).is_ok());
}

#[test]
fn a_call_that_cannot_be_run_costs_itself() {
    let text = delta(json!({"content": "Done."}));
    let good = call(Some(1), json!("c2"), Some("ls"), "{}");
    // Nothing was called.
    let empty = delta(json!({"tool_calls": [{"index": 0, "id": "", "type": "function"}]}));
    let reply = assemble(&[text.clone(), empty.clone(), finish("stop")], true).0.unwrap();
    assert_eq!((&*reply.text, reply.tool_calls.len(), reply.finish), ("Done.", 0, Finish::Stop));
    let reply = assemble(&[empty, good.clone(), finish("stop")], true).0.unwrap();
    assert_eq!(calls(&reply), [("c2", "ls", "{}")]);
    // The model learns from the name that no tool has which ones there are.
    let nameless = call(Some(0), json!("c1"), None, "{\"path\":\"a\"}");
    let reply = assemble(&[text, nameless, good, finish("tool_calls")], true).0.unwrap();
    assert_eq!(calls(&reply), [("c1", NAMELESS, "{\"path\":\"a\"}"), ("c2", "ls", "{}")]);
    assert_eq!((&*reply.text, reply.finish), ("Done.", Finish::ToolCalls));
}

proptest! {
    #[test]
    fn however_arguments_are_split_they_come_out_whole(
        cuts in proptest::collection::vec(0usize..40, 0..6),
        order in any::<bool>(),
    ) {
        let texts = [r#"{"path":"ä/b","n":[1,2,{"x":"}"}]}"#, r#"{"pattern":"\"quoted\" 漢字"}"#];
        let mut pieces: Vec<Vec<String>> = Vec::new();
        for text in texts {
            let characters: Vec<char> = text.chars().collect();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut % characters.len()).collect();
            at.extend([0, characters.len()]);
            at.sort_unstable();
            pieces.push(at.windows(2).map(|pair| characters[pair[0]..pair[1]].iter().collect()).collect());
        }
        let mut chunks = vec![
            call(Some(0), json!("c0"), Some("a"), ""),
            call(Some(1), json!("c1"), Some("b"), ""),
        ];
        for (one, other) in pieces[0].iter().zip(&pieces[1]) {
            let mut pair = [(0, one), (1, other)];
            if order {
                pair.reverse();
            }
            chunks.extend(pair.map(|(index, piece)| call(Some(index), Value::Null, None, piece)));
        }
        chunks.push(finish("tool_calls"));
        let reply = assemble(&chunks, true).0.unwrap();
        prop_assert_eq!(calls(&reply), [("c0", "a", texts[0]), ("c1", "b", texts[1])]);
    }
}

#[test]
fn the_signature_of_a_thought_is_kept_with_its_call() {
    let url = url::Url::parse("https://generativelanguage.googleapis.com/v1beta/openai").unwrap();
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let call = |index: u64, id: &str, extra: Value| {
        let function = json!({"name": "a", "arguments": "{}"});
        delta(json!({"tool_calls": [{"index": index, "id": id, "function": function, "extra_content": extra}]}))
    };
    let read = |provider_url: &url::Url| {
        let mut assembly = Assembly::new(Echo::of("custom", provider_url));
        // Parallel calls have one signature, at the first of them.
        for chunk in [call(0, "c1", signature.clone()), call(1, "c2", Value::Null), finish("tool_calls")] {
            assembly.take(&chunk, &mut |_| {}).unwrap();
        }
        Box::new(assembly).finish("m", &mut || "made".to_owned()).unwrap()
    };
    let reply = read(&url);
    assert_eq!(kept(&reply), json!({"extra_content": {"c1": signature}}));
    assert_eq!(reply.parts.len(), 3);
    assert_eq!(read(&url::Url::parse("http://127.0.0.1:1/v1").unwrap()).parts, []);
}

#[test]
fn messages_in_place_of_pieces_lose_nothing_and_double_nothing() {
    let message =
        |message: Value, reason: Value| json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]});
    let said = |content: &str| message(json!({"role": "assistant", "content": content}), Value::Null);
    let last = |content: &str| message(json!({"role": "assistant", "content": content}), json!("stop"));
    let text = |content: &str| delta(json!({"content": content}));
    let both = |piece: &str, whole: &str, reason: Value| json!({"choices": [{"delta": {"content": piece}, "message": {"content": whole}, "finish_reason": reason}]});
    let part = |text: &str| json!({"type": "text", "text": text});
    for (chunks, expected) in [
        (vec![last("Hello")], "Hello"),
        (vec![said("Hello")], "Hello"),
        // Pieces, all so far, and the whole behind pieces.
        (vec![said("Hel"), said("lo"), finish("stop")], "Hello"),
        (vec![said("Hel"), said("lo"), last("Hello")], "Hello"),
        (vec![said("Hel"), said("Hello"), last("Hello, you")], "Hello, you"),
        (vec![text("Hel"), text("lo"), last("Hello")], "Hello"),
        (vec![text("Hel"), last("Hello")], "Hello"),
        (vec![text("HelloHello"), last("Hello")], "Hello"),
        (vec![text("Bye"), last("<think>hm</think>Hello")], "Hello"),
        (vec![text("Hel"), text("lo"), last("lo")], "Hello"),
        (vec![delta(json!({"role": "assistant", "content": ""})), last("Hello")], "Hello"),
        (vec![both("", "Hello", json!("stop"))], "Hello"),
        (vec![both("Hel", "Hel", Value::Null), both("lo", "lo", json!("stop"))], "Hello"),
        (vec![both("Hel", "Hel", Value::Null), both("lo", "Hello", json!("stop"))], "Hello"),
        // Content as a list of parts, in other forms.
        (vec![delta(json!({"content": [part("Hel"), part("lo")]})), finish("stop")], "Hello"),
        (
            vec![
                delta(json!({"content": [{"type": "text", "content": "Hel"}, {"text": {"value": "lo"}}]})),
                finish("stop"),
            ],
            "Hello",
        ),
        (vec![text("Hel"), message(json!({"content": [part("Hel"), part("lo")]}), json!("stop"))], "Hello"),
        (
            vec![json!({"choices": [{"text": "Hel"}]}), json!({"choices": [{"text": "lo", "finish_reason": "stop"}]})],
            "Hello",
        ),
    ] {
        let (reply, shown) = assemble(&chunks, false);
        assert_eq!(reply.unwrap().text, expected, "{chunks:?}");
        let shown = shown.concat().replace("text:", "");
        assert!(shown == expected || shown.starts_with("Bye") || shown == "HelloHello", "{shown} {chunks:?}");
    }
    for cut in [vec![said("Hel"), said("lo")], vec![said("Hel"), said("Hello")]] {
        assert!(assemble(&cut, false).0.is_err(), "{cut:?}");
    }
    let refused = delta(json!({"content": [{"type": "refusal", "refusal": "I cannot."}]}));
    assert_eq!(assemble(&[refused, finish("stop")], false).0.unwrap().finish, Finish::Refused);
}

#[test]
fn calls_and_reasoning_of_a_message_behind_pieces_are_those_of_the_pieces() {
    let whole = |id: &str| {
        let call = |id: &str, name: &str, n: u64| json!({"id": id, "function": {"name": name, "arguments": format!("{{\"n\":{n}}}")}});
        json!({"choices": [{"message": {"reasoning_content": "hm", "content": null, "tool_calls": [call(id, "a", 1), call("c2", "b", 2)]},
            "finish_reason": "tool_calls"}]})
    };
    let think = delta(json!({"reasoning_content": "hm"}));
    for (pieces, last) in [
        (vec![], whole("c1")),
        (
            vec![
                think.clone(),
                call(Some(0), json!("c1"), Some("a"), "{\"n\":1}"),
                call(Some(1), json!("c2"), Some("b"), "{\"n\":2}"),
            ],
            whole("c1"),
        ),
        (vec![think.clone(), call(Some(0), json!("c1"), Some("a"), "")], whole("c1")),
        (
            vec![think, call(Some(0), json!("c1"), Some("a"), "{\"n\":"), call(Some(1), json!("c2"), Some("b"), "")],
            whole(""),
        ),
    ] {
        let chunks = [pieces, vec![last]].concat();
        let reply = assemble(&chunks, false).0.unwrap();
        assert_eq!(calls(&reply), [("c1", "a", "{\"n\":1}"), ("c2", "b", "{\"n\":2}")], "{chunks:?}");
        assert_eq!(reply.reasoning.as_deref(), Some("hm"));
        assert_eq!(kept(&reply)["reasoning_content"], "hm");
    }
}
