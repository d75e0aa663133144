#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::super::NAMELESS;
use super::*;
use crate::{ApiMode, Marks, Prefix, Style, System};

/// The reply, and what a viewer saw.
fn assemble(events: &[Value], formed: bool) -> (Result<Reply, Broken>, Vec<String>) {
    assembled(Assembly::new(formed), events)
}

fn assembled(mut assembly: Assembly, events: &[Value]) -> (Result<Reply, Broken>, Vec<String>) {
    let mut shown = Vec::new();
    for event in events {
        assembly.take(event, &mut |delta| shown.push(told(delta))).unwrap();
    }
    (Box::new(assembly).finish("asked", &mut || "made".to_owned()), shown)
}

fn told(delta: Delta<'_>) -> String {
    match delta {
        Delta::Text(text) => format!("text:{text}"),
        Delta::Reasoning(text) => format!("reasoning:{text}"),
        Delta::Call(name) => format!("call:{name}"),
        Delta::Notice(text) => format!("notice:{text}"),
        Delta::Again => "again".to_owned(),
    }
}

fn start(usage: Value) -> Value {
    json!({"type": "message_start", "message": {"model": "served", "content": [], "usage": usage}})
}

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn tool(index: u64, id: &str, name: &str) -> Value {
    begin(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn input(index: u64, piece: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": piece}))
}

fn close(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
    reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
}

#[test]
fn blocks_become_text_reasoning_and_calls() {
    let mut events = vec![
        start(
            json!({"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}),
        ),
        json!({"type": "ping"}),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "s=="})),
        close(0),
        begin(1, json!({"type": "text", "text": ""})),
        text(1, "Hel"),
        text(1, "lo"),
        close(1),
        tool(2, "tu_1", "ls"),
        input(2, ""),
        input(2, "{\"p\":"),
        input(2, " 12345678901234567890}"),
        close(2),
        begin(3, json!({"type": "text", "text": "an aside"})),
        close(3),
        tool(4, "tu_2", "pwd"),
        close(4),
        json!({"type": "invented_later", "index": 4}),
    ];
    events.extend(end("tool_use"));
    let (reply, shown) = assemble(&events, false);
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.reasoning.as_deref(), &*reply.model), ("Hello\nan aside", Some("hm"), "served"));
    assert_eq!(calls(&reply), [("tu_1", "ls", "{\"p\": 12345678901234567890}"), ("tu_2", "pwd", "{}")]);
    assert_eq!(reply.finish, Finish::ToolCalls);
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output), (130, 100, 20, 9));
    assert_eq!(shown, ["reasoning:hm", "text:Hel", "text:lo", "call:ls", "call:pwd"]);
}

#[test]
fn what_was_shown_is_what_is_kept() {
    let mut events = vec![
        start(json!({})),
        text(0, "one"),
        text(1, "two"),
        delta(2, json!({"type": "thinking_delta", "thinking": "a"})),
    ];
    events.push(delta(3, json!({"type": "thinking_delta", "thinking": "b"})));
    events.extend(end("end_turn"));
    let (reply, shown) = assemble(&events, false);
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("one\ntwo", Some("a\n\nb")));
    assert_eq!(shown, ["text:one", "text:\n", "text:two", "reasoning:a", "reasoning:\n\n", "reasoning:b"]);
}

#[test]
fn a_stream_without_its_end_is_cut_and_no_call_in_it_runs() {
    let whole_call = [start(json!({})), text(0, "half"), tool(1, "c", "rm"), input(1, "{}"), close(1)];
    let cut = |partial: &str| Err(Broken::Cut { partial: partial.to_owned() });
    assert_eq!(assemble(&whole_call, false).0, cut("half"));
    assert_eq!(assemble(&[], false).0, cut(""));
    // A reason to stop is an end, unless more follows or no rule knows it.
    let [reason, _] = end("tool_use");
    let stopped = [whole_call.to_vec(), vec![reason]].concat();
    assert_eq!(assemble(&stopped, false).0.unwrap().finish, Finish::ToolCalls);
    assert_eq!(assemble(&[stopped, vec![text(2, "more")]].concat(), false).0, cut("half\nmore"));
    let [unknown, _] = end("invented_later");
    assert_eq!(assemble(&[whole_call.to_vec(), vec![unknown]].concat(), false).0, cut("half"));
}

#[test]
fn reasons_to_stop_are_sorted_by_what_follows() {
    for (reason, expected) in [
        (json!("end_turn"), Finish::Stop),
        (json!("stop_sequence"), Finish::Stop),
        (json!("pause_turn"), Finish::Stop),
        (json!("max_tokens"), Finish::Length),
        (json!("model_context_window_exceeded"), Finish::Length),
        (json!("refusal"), Finish::Refused),
        (Value::Null, Finish::Stop),
        (json!("invented_later"), Finish::Stop),
        (json!("tool_use"), Finish::Stop),
    ] {
        let events = [
            text(0, "t"),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ];
        assert_eq!(assemble(&events, false).0.unwrap().finish, expected, "{reason}");
    }
}

#[test]
fn at_the_cap_calls_stay_as_they_broke_off_and_a_refusal_has_none() {
    let mut events =
        vec![tool(0, "c1", "pwd"), close(0), tool(1, "c2", "write"), input(1, "{\"path\": \"a"), tool(2, "c3", "ls")];
    events.extend(end("max_tokens"));
    let reply = assemble(&events, false).0.unwrap();
    assert_eq!(calls(&reply), [("c1", "pwd", "{}"), ("c2", "write", "{\"path\": \"a"), ("c3", "ls", "")]);
    assert_eq!(reply.finish, Finish::Length);
    events.truncate(5);
    events.extend(end("refusal"));
    let reply = assemble(&events, false).0.unwrap();
    assert_eq!((reply.finish, reply.tool_calls.len()), (Finish::Refused, 0));
}

#[test]
fn servers_of_other_makers_are_understood() {
    // Counts only at the end, ids missing or twice, the input in one piece, blocks never begun or closed.
    let events = [
        start(json!({"input_tokens": 0, "output_tokens": 0})),
        begin(0, json!({"type": "tool_use", "name": "a", "input": {"x": 1}})),
        begin(1, json!({"type": "tool_use", "id": "c", "name": "a", "input": {}})),
        begin(2, json!({"type": "tool_use", "id": "c", "name": "b"})),
        text(3, "t"),
        json!({"type": "message_delta", "delta": {"stop_reason": null},
               "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": null}}),
        json!({"type": "message_stop"}),
    ];
    let reply = assemble(&events, false).0.unwrap();
    assert_eq!(calls(&reply), [("made", "a", "{\"x\":1}"), ("c", "a", "{}"), ("c_2", "b", "{}")]);
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.output)), Some((7, 3)));
    assert_eq!((reply.finish, &*reply.text), (Finish::ToolCalls, "t"));
}

#[test]
fn hostile_events_make_no_call_and_no_panic() {
    let nameless = [text(1, "said"), input(0, "{}"), json!({"type": "message_stop"})];
    let reply = assemble(&nameless, false).0.unwrap();
    assert_eq!((&*reply.text, calls(&reply)), ("said", vec![("made", NAMELESS, "{}")]));
    let odd = [
        json!(null),
        json!([1, 2]),
        json!({"type": 7, "error": null}),
        json!({"type": "content_block_start"}),
        json!({"type": "content_block_start", "index": 0, "content_block": "x"}),
        json!({"type": "content_block_delta", "index": 18446744073709551615u64, "delta": []}),
        input(0, "{}"),
        text(0, "dropped: the block is of another kind"),
        json!({"type": "message_delta", "usage": [1]}),
        json!({"type": "message_start", "message": {"usage": {"input_tokens": -5, "output_tokens": "many"}}}),
        begin(0, json!({"type": "text", "text": "begun again"})),
        json!({"type": "message_stop"}),
    ];
    let reply = assemble(&odd, false).0.unwrap();
    assert_eq!((&*reply.text, reply.tool_calls.len(), reply.usage), ("begun again", 0, None));
}

#[test]
fn an_error_in_a_stream_is_an_error() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let stated = Assembly::new(false).take(&error, &mut |_| {}).unwrap_err();
    assert_eq!((stated.status, &*stated.message, stated.passes()), (529, "Overloaded", true));
    assert!(matches!(Assembly::new(false).take_whole(&error, &mut |_| {}), Err(Unread::Stated(_))));
    assert_eq!(Assembly::new(false).take_whole(&json!({"hello": 1}), &mut |_| {}), Err(Unread::Lacks("content")));
}

#[test]
fn a_reply_of_a_given_form_is_the_input_of_its_call() {
    let mut events = vec![text(0, "here it is"), tool(1, "c", "reply"), input(1, "{\"a\":"), input(1, "1}"), close(1)];
    events.extend(end("tool_use"));
    let (reply, shown) = assemble(&events, true);
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.finish, reply.tool_calls.len()), ("{\"a\":1}", Finish::Stop, 0));
    assert_eq!(shown, ["text:{\"a\":", "text:1}"]);
    // If the model answers in words despite the tool, the words are the reply.
    let mut events = vec![text(0, "{\"a\":1}")];
    events.extend(end("end_turn"));
    assert_eq!(assemble(&events, true).0.unwrap().text, "{\"a\":1}");
}

proptest! {
    #[test]
    fn however_an_input_is_split_it_comes_out_whole(cuts in proptest::collection::vec(0usize..40, 0..6)) {
        let whole = r#"{"path":"ä/b","n":[1,2,{"x":"}"}],"t":"漢字"}"#;
        let characters: Vec<char> = whole.chars().collect();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut % characters.len()).collect();
        at.extend([0, characters.len()]);
        at.sort_unstable();
        let mut events = vec![tool(0, "c", "a"), tool(1, "d", "b")];
        for pair in at.windows(2) {
            let piece: String = characters[pair[0]..pair[1]].iter().collect();
            events.extend([input(0, &piece), input(1, &piece)]);
        }
        events.extend(end("tool_use"));
        let reply = assemble(&events, false).0.unwrap();
        prop_assert_eq!(calls(&reply), [("c", "a", whole), ("d", "b", whole)]);
    }
}

#[test]
fn signed_and_redacted_reasoning_is_kept_in_its_place() {
    let events = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "ln"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "xyz"}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "so"}}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "message_stop"}),
    ];
    let mut assembly = Assembly::default();
    for event in &events {
        assembly.take(event, &mut |_| {}).unwrap();
    }
    let reply = Box::new(assembly).finish("m", &mut String::new).unwrap();
    let payload = |part: &Part| part.payload().map(|payload| serde_json::from_str::<Value>(&payload.data).unwrap());
    let payloads: Vec<Option<Value>> = reply.parts.iter().map(payload).collect();
    assert_eq!(
        payloads,
        [
            Some(json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"})),
            Some(json!({"type": "redacted_thinking", "data": "xyz"})),
            None,
            None
        ]
    );
    assert_eq!(reply.parts[2], Part::text("so"));
    assert_eq!(reply.parts[3], Part::ToolCall(reply.tool_calls[0].clone()));
    assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), ("so", Some("hm")));
}

#[test]
fn calls_between_signed_reasoning_keep_their_places() {
    let signed = |text: &str| json!({"type": "thinking", "thinking": text, "signature": text});
    let blocks = json!([signed("a"), {"type": "tool_use", "id": "c", "name": "f", "input": {}}, signed("b"),
        {"type": "tool_use", "id": "c", "name": "g", "input": {"n": 1}}]);
    let mut assembly = Assembly::default();
    assembly.take_whole(&json!({"content": blocks, "stop_reason": "tool_use"}), &mut |_| {}).unwrap();
    let reply = Box::new(assembly).finish("m", &mut String::new).unwrap();
    let kinds: Vec<String> = reply
        .parts
        .iter()
        .map(|part| match part {
            Part::Reasoning { text, .. } => text.clone(),
            Part::ToolCall(call) => format!("{} {}", call.name, call.id),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["a", "f c", "b", "g c_2"]);
    assert_eq!(reply.tool_calls[1].arguments, r#"{"n":1}"#);
}

#[test]
fn a_refusal_is_kept_as_one_also_behind_signed_reasoning() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s", "later": 1});
    let said = json!({"type": "text", "text": "I cannot."});
    let call = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    let read = |blocks: Value| {
        let mut assembly = Assembly::default();
        assembly.take_whole(&json!({"content": blocks, "stop_reason": "refusal"}), &mut |_| {}).unwrap();
        Box::new(assembly).finish("m", &mut String::new).unwrap()
    };
    let reply = read(json!([thinking, said, call]));
    assert_eq!((&*reply.text, reply.finish, reply.tool_calls.len()), ("I cannot.", Finish::Refused, 0));
    let payload = ProviderPayload::untagged(thinking.to_string());
    let refusal = Part::Refusal { text: "I cannot.".into() };
    assert_eq!(reply.parts, [Part::Reasoning { text: "hm".into(), payload: Some(payload) }, refusal.clone()]);
    assert_eq!(read(json!([said])).parts, [refusal]);
}

#[test]
fn reasoning_without_a_signature_is_kept_where_it_is_demanded() {
    let kept = |echo: Echo| {
        let mut assembly = Assembly::new(false).echoing(echo);
        let mut events = vec![
            begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            tool(1, "c", "ls"),
            close(1),
        ];
        events.extend(end("tool_use"));
        events.iter().for_each(|event| assembly.take(event, &mut |_| {}).unwrap());
        let reply = Box::new(assembly).finish("m", &mut || "made".to_owned()).unwrap();
        assert_eq!(reply.reasoning.as_deref(), Some("hm"));
        reply.parts.first().and_then(Part::payload).map(|payload| payload.data.clone())
    };
    assert_eq!(kept(Echo::RETURNED), None);
    let demanded = Echo { demanded: true, ..Echo::RETURNED };
    assert_eq!(kept(demanded).as_deref(), Some(r#"{"type":"thinking","thinking":"hm"}"#));
}

#[test]
fn blocks_with_one_number_or_none_are_kept_apart() {
    let bare = |mut event: Value| {
        event.as_object_mut().unwrap().remove("index");
        event
    };
    let events = [
        begin(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        close(0),
        begin(0, json!({"type": "text", "text": ""})),
        text(0, "one"),
        close(0),
        begin(0, json!({"type": "text", "text": "two"})),
        close(0),
        tool(0, "c1", "write"),
        input(0, "{\"n\":"),
        input(0, "1}"),
        close(0),
        tool(0, "c2", "write"),
        input(0, "{\"n\":2}"),
        close(0),
    ];
    let unclosed: Vec<Value> = events.iter().filter(|event| event["type"] != "content_block_stop").cloned().collect();
    let unnumbered: Vec<Value> = events.iter().cloned().map(bare).collect();
    let half: Vec<Value> = events
        .iter()
        .cloned()
        .map(|event| if event["type"] == "content_block_delta" { bare(event) } else { event })
        .collect();
    for (events, said) in
        [(events.to_vec(), "one\ntwo"), (unclosed, "onetwo"), (unnumbered, "one\ntwo"), (half, "one\ntwo")]
    {
        let reply = assemble(&[events, end("tool_use").to_vec()].concat(), false).0.unwrap();
        assert_eq!((&*reply.text, reply.reasoning.as_deref()), (said, Some("hm")));
        assert_eq!(calls(&reply), [("c1", "write", "{\"n\":1}"), ("c2", "write", "{\"n\":2}")]);
    }
}

#[test]
fn a_call_is_read_in_the_forms_of_other_makers() {
    let whole = json!({"type": "tool_use", "id": 7, "name": "a", "input": {"x": 1}});
    for (events, expected) in [
        // The input whole, and in pieces as well.
        (vec![begin(0, whole.clone()), input(0, "{\"x\":1}")], ("7", "a", "{\"x\":1}")),
        (
            vec![begin(0, json!({"type": "tool_use", "id": "c", "name": "a", "input": "{\"x\":1}"}))],
            ("c", "a", "{\"x\":1}"),
        ),
        (
            vec![tool(0, "c", "a"), delta(0, json!({"type": "input_json_delta", "partial_json": {"x": 1}}))],
            ("c", "a", "{\"x\":1}"),
        ),
        // Begun again with each piece, and text amid it.
        (
            vec![tool(0, "c", "a"), input(0, "{\"x\""), text(0, "stray"), tool(0, "c", "a"), input(0, ":1}")],
            ("c", "a", "{\"x\":1}"),
        ),
    ] {
        let reply = assemble(&[events, end("tool_use").to_vec()].concat(), false).0.unwrap();
        assert_eq!(calls(&reply), [expected]);
    }
    // Blocks of tools that the provider runs are none of ours.
    let foreign = [
        begin(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        input(0, "{\"query\":\"x\"}"),
        close(0),
        text(1, "found"),
    ];
    let reply = assemble(&[foreign.to_vec(), end("end_turn").to_vec()].concat(), false).0.unwrap();
    assert_eq!((&*reply.text, reply.tool_calls.len()), ("found", 0));
}

#[test]
fn empty_blocks_amid_a_text_do_not_break_it() {
    let empty = |at: u64| [begin(at, json!({"type": "thinking", "thinking": "", "signature": ""})), close(at)];
    let piece = |at: u64, words: &str| [begin(at, json!({"type": "text", "text": ""})), text(at, words), close(at)];
    let mut events = [&piece(0, "one ")[..], &empty(1), &piece(2, "two "), &empty(3), &piece(4, "three")].concat();
    events.extend(end("end_turn"));
    let (reply, shown) = assemble(&events, false);
    assert_eq!(
        (reply.unwrap().text.as_str(), shown.concat().as_str()),
        ("one two three", "text:one text:two text:three")
    );
}

#[test]
fn what_a_message_or_a_block_begins_or_ends_with_is_said_once() {
    let given = |content: Value| json!({"type": "message_start", "message": {"model": "served", "content": content}});
    let block = |text: &str| json!({"type": "text", "text": text});
    let stop =
        |text: &str| json!({"type": "content_block_stop", "index": 0, "content_block": {"type": "text", "text": text}});
    for (events, said) in [
        (vec![given(json!([block("Hello")]))], "Hello"),
        (vec![given(json!("Hello"))], "Hello"),
        (vec![given(json!([block("Hello")])), begin(0, block("")), text(0, "Hel"), text(0, "lo"), close(0)], "Hello"),
        (vec![given(json!([block("Hello")])), begin(0, block("Hello")), close(0)], "Hello"),
        (vec![given(json!([block("Hel")])), text(0, "lo")], "Hello"),
        (
            vec![given(json!([block("Hello")])), begin(0, block("")), text(0, "Hel"), text(0, "lo, you"), close(0)],
            "Hello, you",
        ),
        (vec![begin(0, block("Hel")), text(0, "lo")], "Hello"),
        (vec![begin(0, block("Hello")), close(0)], "Hello"),
        (vec![stop("Hello")], "Hello"),
        (vec![begin(0, block("")), text(0, "Hel"), stop("Hello")], "Hello"),
        (vec![text(0, "Bye"), stop("<think>hm</think>Hello")], "Hello"),
        (vec![delta(0, json!({"type": "text", "text": "Hello"}))], "Hello"),
        (vec![json!({"type": "message_stop", "message": {"content": [block("Hello")]}})], "Hello"),
    ] {
        let (reply, shown) = assemble(&[&events[..], &end("end_turn")].concat(), false);
        assert_eq!(reply.unwrap().text, said, "{events:?}");
        let shown = shown.concat().replace("text:", "");
        assert!(shown == said || shown == "Bye", "{shown} {events:?}");
    }
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let call = json!({"type": "tool_use", "id": "c", "name": "ls", "input": {"n": 1}});
    let again = vec![
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "s"})),
        close(0),
        tool(1, "c", "ls"),
        input(1, "{\"n\":1}"),
        close(1),
    ];
    for more in [vec![], again] {
        let events = [vec![given(json!([thinking, call]))], more, end("tool_use").to_vec()].concat();
        let reply = assemble(&events, false).0.unwrap();
        assert_eq!((reply.reasoning.as_deref(), calls(&reply)), (Some("hm"), vec![("c", "ls", "{\"n\":1}")]));
        let payload = reply.parts[0].payload().map(|payload| serde_json::from_str::<Value>(&payload.data).unwrap());
        assert_eq!(payload, Some(thinking.clone()));
    }
}

#[test]
fn arguments_have_the_names_that_the_tool_knows() {
    let tools = r#"[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":
        {"$top":{},"pos_x_offset":{},"row":{"type":"object"}}}}},{"type":"function","function":{"name":"free"}}]"#;
    let prefix = Prefix::new(Style::new(ApiMode::AnthropicMessages, Marks::Native), tools, System::plain("s")).unwrap();
    for (name, given, read) in [
        ("ls", r#"{"_x24_top": 1.0, "path":"_x24_top"}"#, r#"{"$top": 1.0, "path":"_x24_top"}"#),
        ("ls", r#"{"row":{"grid_x_min":1,"pos_x_offset":2}}"#, r#"{"row":{"grid_x_min":1,"pos_x_offset":2}}"#),
        ("free", r#"{"_x24_top":1}"#, r#"{"_x24_top":1}"#),
    ] {
        let events = [&[tool(0, "c", name), input(0, given), close(0)][..], &end("tool_use")].concat();
        let assembly = Assembly::new(false).renaming(prefix.renamed());
        assert_eq!(calls(&assembled(assembly, &events).0.unwrap()), [("c", name, read)]);
    }
}
