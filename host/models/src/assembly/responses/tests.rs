#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::super::NAMELESS;
use super::*;

/// The reply, and what a viewer saw.
fn assemble(events: &[Value]) -> (Result<Reply, Broken>, Vec<String>) {
    let mut assembly = Assembly::default();
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

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn text(index: u64, delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": delta})
}

fn arguments(index: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments,
        "status": "completed"})
}

fn completed() -> Value {
    let usage = json!({"input_tokens": 130, "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 20},
        "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 139});
    json!({"type": "response.completed", "response": {"id": "resp_1", "model": "served", "status": "completed",
        "output": null, "usage": usage}})
}

fn incomplete(reason: &str) -> Value {
    json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}}})
}

fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
    reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
}

#[test]
fn items_become_text_reasoning_and_calls_in_their_order() {
    let sealed = json!({"type": "reasoning", "id": "rs_1", "status": null, "encrypted_content": "RU5D",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]});
    let summary = |index: u64, delta: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": index, "delta": delta});
    let events = [
        json!({"type": "response.created", "response": {"model": "served", "status": "in_progress", "error": null}}),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "par"})),
        summary(0, "First"),
        summary(0, "."),
        summary(1, "Then."),
        done(0, sealed),
        added(1, json!({"type": "message", "id": "msg_1", "content": []})),
        json!({"type": "response.content_part.added", "output_index": 1, "part": {"type": "output_text", "text": ""}}),
        text(1, "Hel"),
        text(1, "lo"),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "Hello"}),
        done(1, message("Hello")),
        added(2, call("call_1", "ls", "")),
        added(3, call("call_2", "pwd", "")),
        arguments(2, "{\"p\":"),
        arguments(3, ""),
        arguments(2, " 12345678901234567890}"),
        done(2, call("call_1", "ls", "{\"p\": 12345678901234567890}")),
        done(3, call("call_2", "pwd", "")),
        completed(),
    ];
    let (reply, shown) = assemble(&events);
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.reasoning.as_deref(), &*reply.model), ("Hello", Some("First.\n\nThen."), "served"));
    assert_eq!(calls(&reply), [("call_1", "ls", "{\"p\": 12345678901234567890}"), ("call_2", "pwd", "{}")]);
    assert_eq!(reply.finish, Finish::ToolCalls);
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning), (130, 100, 20, 9, 5));
    assert_eq!(shown[..4], ["reasoning:First", "reasoning:.", "reasoning:\n\n", "reasoning:Then."]);
    assert_eq!(shown[4..], ["text:Hel", "text:lo", "call:ls", "call:pwd"]);
    let [Part::Reasoning { text, payload: Some(payload) }, Part::Text { .. }, Part::ToolCall(_), Part::ToolCall(last)] =
        &reply.parts[..]
    else {
        panic!("{:?}", reply.parts);
    };
    assert_eq!((text.as_str(), last.arguments.as_str()), ("First.\n\nThen.", "{}"));
    // The provider refuses a state in what comes back.
    let item = r#"{"type":"reasoning","id":"rs_1","encrypted_content":"RU5D","summary":[{"type":"summary_text","text":"First."},{"type":"summary_text","text":"Then."}]}"#;
    assert_eq!(payload.data, item);
}

#[test]
fn a_stream_without_its_end_is_cut_and_no_call_in_it_runs() {
    let whole_call = [text(0, "half"), done(1, call("c", "rm", "{}"))];
    let cut = |partial: &str| Err(Broken::Cut { partial: partial.to_owned() });
    assert_eq!(assemble(&whole_call).0, cut("half"));
    assert_eq!(assemble(&[]).0, cut(""));
    let mut assembly = Box::new(Assembly::default());
    assembly.take(&text(0, "half"), &mut |_| {}).unwrap();
    assembly.done();
    assert_eq!(assembly.progress(), Progress::Open, "another format ends with [DONE]");
    assert_eq!(assembly.into_text(), "half");
}

#[test]
fn a_call_that_is_not_done_never_runs() {
    let begun = [added(0, call("c1", "pwd", "")), done(0, call("c1", "pwd", "{}")), added(1, call("c2", "write", ""))];
    let half = [&begun[..], &[arguments(1, "{\"path\": \"a")]].concat();
    for end in [completed(), incomplete("max_output_tokens")] {
        let reply = assemble(&[&half[..], &[end]].concat()).0.unwrap();
        assert_eq!(reply.finish, Finish::Length, "the loop runs no call of such a reply");
        assert_eq!(calls(&reply), [("c1", "pwd", "{}"), ("c2", "write", "{\"path\": \"a")]);
    }
    // The event says that the call is done, unless its status is a cut; a status that was left as it was is none.
    for (status, given) in [("in_progress", "{\"path\": \"a"), ("incomplete", "{}")] {
        let mut item = call("c2", "write", given);
        item["status"] = json!(status);
        let reply = assemble(&[done(1, item), completed()]).0.unwrap();
        assert_eq!(reply.finish, Finish::Length, "{status}");
    }
    let mut item = call("c2", "write", "{}");
    item["status"] = json!("in_progress");
    let end = json!({"type": "response.completed", "response": {"status": "in_progress", "output": [item]}});
    for events in [vec![done(1, item.clone()), end.clone()], vec![end]] {
        assert_eq!(assemble(&events).0.unwrap().finish, Finish::ToolCalls);
    }
    // The end of the arguments is enough.
    let arguments =
        json!({"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{\"path\": \"ab\"}"});
    let reply = assemble(&[&half[..], &[arguments, completed()]].concat()).0.unwrap();
    assert_eq!((reply.finish, calls(&reply)[1].2), (Finish::ToolCalls, "{\"path\": \"ab\"}"));
}

#[test]
fn a_reply_ends_as_its_server_says() {
    let words = |end: Value| assemble(&[text(0, "t"), end]).0.unwrap();
    for (end, expected) in [
        (completed(), Finish::Stop),
        (incomplete("max_output_tokens"), Finish::Length),
        (incomplete("invented_later"), Finish::Length),
        (incomplete("content_filter"), Finish::Refused),
        (json!({"type": "response.incomplete", "response": {}}), Finish::Length),
        (json!({"type": "response.completed", "response": {"status": "incomplete"}}), Finish::Length),
        (json!({"type": "response.completed"}), Finish::Stop),
    ] {
        assert_eq!(words(end.clone()).finish, expected, "{end}");
    }
    let calls = assemble(&[done(0, call("c", "rm", "{}")), incomplete("content_filter")]).0.unwrap();
    assert_eq!((calls.finish, calls.tool_calls.len()), (Finish::Refused, 0));
}

#[test]
fn a_refusal_is_shown_and_kept_as_one() {
    let delta = |delta: &str| json!({"type": "response.refusal.delta", "output_index": 0, "delta": delta});
    let item = json!({"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]});
    let (reply, shown) = assemble(&[delta("I can"), done(0, item), completed()]);
    let reply = reply.unwrap();
    assert_eq!((reply.finish, &*reply.text), (Finish::Refused, "I cannot."));
    assert_eq!(reply.parts, [Part::Refusal { text: "I cannot.".into() }]);
    assert_eq!(shown, ["text:I can", "text:not."]);
    // Words before it stay words.
    let (reply, shown) = assemble(&[text(0, "Well."), delta("No."), completed()]);
    assert_eq!(reply.unwrap().text, "Well.\n\nNo.");
    assert_eq!(shown, ["text:Well.", "text:\n\n", "text:No."]);
}

#[test]
fn a_phase_sorts_messages_and_is_kept_for_the_provider() {
    let of = |phase: &str, text: &str| {
        let mut item = message(text);
        item["phase"] = json!(phase);
        item
    };
    let events = [
        added(0, of("commentary", "")),
        text(0, "I look."),
        done(0, of("commentary", "I look.")),
        done(1, of("final_answer", "Found.")),
        completed(),
    ];
    let (reply, shown) = assemble(&events);
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("Found.", Some("I look.")));
    assert_eq!(shown, ["reasoning:I look.", "text:Found."]);
    let data: Vec<&str> = reply.parts.iter().filter_map(Part::payload).map(|payload| &*payload.data).collect();
    assert_eq!(
        data,
        [
            r#"{"type":"message","role":"assistant","content":"I look.","phase":"commentary"}"#,
            r#"{"type":"message","phase":"final_answer"}"#,
        ]
    );
    assert_eq!(reply.parts[2], Part::text("Found."));
}

#[test]
fn servers_of_other_makers_are_understood() {
    // No numbers and no ids, one number for all, other ids at the end, no added items, texts only at the end.
    let bare = |kind: &str, item: Value| json!({"type": kind, "item": item});
    let (add, end) = ("response.output_item.added", "response.output_item.done");
    let events = [
        bare(add, json!({"type": "function_call", "name": "a"})),
        json!({"type": "response.function_call_arguments.delta", "delta": "{\"x\":1}"}),
        bare(end, json!({"type": "function_call", "name": "a", "arguments": ""})),
        bare(end, json!({"type": "function_call", "name": "b", "call_id": "c", "arguments": "{}"})),
        bare(end, json!({"type": "function_call", "name": "b", "call_id": "c", "arguments": "{}"})),
        completed(),
    ];
    let reply = assemble(&events).0.unwrap();
    assert_eq!(calls(&reply), [("made", "a", "{\"x\":1}"), ("c", "b", "{}"), ("c_2", "b", "{}")]);
    let mut late = message("words");
    late["id"] = json!("changed");
    let events = [
        added(0, message("")),
        text(0, "wor"),
        done(0, late),
        added(0, call("c1", "ls", "")),
        done(0, call("c1", "ls", "{}")),
        done(0, call("c2", "ls", "{}")),
        completed(),
    ];
    let (reply, shown) = assemble(&events);
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, calls(&reply).len(), reply.finish), ("words", 2, Finish::ToolCalls));
    assert_eq!(shown, ["text:wor", "text:ds", "call:ls", "call:ls"]);
    // Everything in the only event.
    let mut all = completed();
    all["response"]["output"] = json!([message("one"), message("two"), call("c", "ls", "{}")]);
    let (reply, shown) = assemble(&[all]);
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, calls(&reply)), ("one\n\ntwo", vec![("c", "ls", "{}")]));
    assert_eq!(shown, ["text:one", "text:\n\n", "text:two", "call:ls"]);
}

#[test]
fn reasoning_that_only_a_storing_provider_knows_is_not_kept() {
    let open = json!({"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []});
    let delta = json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm"});
    for events in [
        vec![done(0, open.clone()), text(1, "so"), completed()],
        vec![delta, done(0, open), text(1, "so"), completed()],
    ] {
        let (reply, shown) = assemble(&events);
        let reply = reply.unwrap();
        assert_eq!((reply.reasoning.as_deref(), reply.parts.len()), (Some("hm"), 0));
        assert_eq!(shown, ["reasoning:hm", "text:so"]);
    }
}

#[test]
fn failures_inside_a_stream_are_classified_like_those_of_http() {
    let failed = |error: Value| json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    let stated = |event: Value| Assembly::default().take(&event, &mut |_| {}).unwrap_err();
    for (event, status, passes) in [
        (failed(json!({"code": "server_error", "message": "x"})), 500, true),
        (failed(json!({"code": "rate_limit_exceeded", "message": "Slow down."})), 429, true),
        (failed(json!({"code": "invalid_prompt", "message": "x"})), 400, false),
        (failed(json!({"code": "image_too_large", "message": "x"})), 400, false),
        (failed(Value::Null), 500, true),
        (json!({"type": "response.cancelled", "response": {"status": "cancelled"}}), 500, true),
        (
            json!({"type": "response.completed", "response": {"status": "failed", "error": {"code": "server_error"}}}),
            500,
            true,
        ),
        (json!({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": null}), 429, true),
        (json!({"type": "error"}), 500, true),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "code": null, "message": "no"}}),
            400,
            false,
        ),
        (json!({"error": {"code": 503, "message": "busy"}}), 503, true),
    ] {
        let stated = stated(event.clone());
        assert_eq!((stated.status, stated.passes()), (status, passes), "{event}");
    }
    let long = json!({"type": "invalid_request_error", "code": "context_length_exceeded", "message": "Too long."});
    for event in [failed(long.clone()), json!({"type": "error", "error": long})] {
        let error = stated(event).into_error("host", "url", "model", "key");
        assert!(matches!(error, crate::ModelError::TooLong { .. }), "{error:?}");
    }
    let mut assembly = Assembly::default();
    let reply = json!({"status": "failed", "error": {"code": "server_error", "message": "x"}, "output": []});
    assert!(matches!(assembly.take_whole(&reply, &mut |_| {}), Err(Unread::Stated(_))));
    assert_eq!(assembly.take_whole(&json!({"choices": []}), &mut |_| {}), Err(Unread::Lacks("output")));
}

#[test]
fn a_whole_reply_gives_what_its_stream_gives() {
    let items = [message("Hello"), call("c1", "ls", "{\"p\":1}"), call("c2", "pwd", "")];
    let mut whole = Assembly::default();
    let mut response = completed()["response"].clone();
    response["output"] = json!(items);
    whole.take_whole(&response, &mut |_| {}).unwrap();
    let whole = Box::new(whole).finish("asked", &mut || "made".to_owned());
    let mut events: Vec<Value> = (0..).zip(items).map(|(index, item)| done(index, item)).collect();
    events.push(completed());
    assert_eq!(whole, assemble(&events).0);
}

#[test]
fn hostile_events_make_no_call_and_no_panic() {
    for event in [
        json!(null),
        json!([]),
        json!({"type": 1}),
        json!({"type": "response.output_item.done", "output_index": "x", "item": 7}),
        json!({"type": "response.output_item.added"}),
        json!({"type": "response.output_text.delta", "output_index": u64::MAX, "delta": {}}),
        json!({"type": "response.function_call_arguments.done", "output_index": 3, "arguments": ""}),
        json!({"type": "response.reasoning_summary_text.delta", "delta": 1}),
    ] {
        let reply = assemble(&[event.clone(), completed()]).0.unwrap();
        assert!(reply.tool_calls.is_empty() && reply.text.is_empty(), "{event}");
    }
    let end = json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{}"});
    let reply = assemble(&[text(1, "said"), arguments(0, "{}"), end, completed()]).0.unwrap();
    assert_eq!((&*reply.text, calls(&reply)), ("said", vec![("made", NAMELESS, "{}")]));
}

#[test]
fn calls_at_one_number_are_kept_apart() {
    let item = |id: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "a", "arguments": ""});
    let piece = |id: &str, delta: &str| {
        let id = format!("fc_{id}");
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": id, "delta": delta})
    };
    let events = [
        added(0, item("c1")),
        piece("c1", "{\"n\""),
        added(0, item("c2")),
        piece("c2", "{\"n\":2}"),
        piece("c1", ":1}"),
        done(0, item("c1")),
        done(0, item("c2")),
        completed(),
    ];
    let reply = assemble(&events).0.unwrap();
    assert_eq!(calls(&reply), [("c1", "a", "{\"n\":1}"), ("c2", "a", "{\"n\":2}")]);
    assert_eq!(reply.finish, Finish::ToolCalls);
}

#[test]
fn the_list_at_the_end_has_what_was_not_sent_before() {
    let mut end = completed();
    end["response"]["output"] = json!([message("Hello"), call("c1", "ls", "{\"p\":1}"), call("c2", "pwd", "{}")]);
    for events in [
        vec![end.clone()],
        vec![text(0, "Hel"), end.clone()],
        vec![text(0, "Hello"), added(1, call("c1", "ls", "")), arguments(1, "{\"p\""), end.clone()],
        vec![text(0, "Hello"), done(0, message("Hello")), done(1, call("c1", "ls", "{\"p\":1}")), end.clone()],
    ] {
        let (reply, shown) = assemble(&events);
        let reply = reply.unwrap();
        assert_eq!((&*reply.text, reply.finish), ("Hello", Finish::ToolCalls), "{events:?}");
        assert_eq!(calls(&reply), [("c1", "ls", "{\"p\":1}"), ("c2", "pwd", "{}")]);
        assert_eq!(shown.concat().replace("text:", ""), "Hellocall:lscall:pwd");
    }
}

#[test]
fn items_are_read_in_the_forms_of_other_makers() {
    let odd = json!({"type": "function_call", "id": 1, "call_id": 2, "name": "a", "arguments": {"n": 1}});
    let said = json!({"type": "message", "id": 3, "content": "Hello"});
    let end = json!({"type": "response.done", "response": {"status": "completed"}});
    let reply = assemble(&[done(0, said), done(1, odd), end]).0.unwrap();
    assert_eq!((&*reply.text, calls(&reply)), ("Hello", vec![("2", "a", "{\"n\":1}")]));
    let part = json!({"type": "message", "content": [{"type": "text", "text": "Hello"}]});
    assert_eq!(assemble(&[done(0, part), completed()]).0.unwrap().text, "Hello");
}

#[test]
fn what_comes_only_at_the_end_of_a_part_is_not_lost_and_what_comes_again_is_not_doubled() {
    let event = |kind: &str, members: Value| {
        let mut event = json!({"type": format!("response.{kind}"), "output_index": 0, "content_index": 0});
        event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        event
    };
    let text_done = |text: &str| event("output_text.done", json!({"text": text}));
    let part = |kind: &str, text: &str| event(kind, json!({"part": {"type": "output_text", "text": text}}));
    let second = |mut event: Value| {
        event["content_index"] = json!(1);
        event
    };
    let listed = |text: &str| {
        let mut end = completed();
        end["response"]["output"] = json!([message(text)]);
        end
    };
    for (events, said) in [
        (vec![text_done("Hello")], "Hello"),
        (vec![part("content_part.done", "Hello")], "Hello"),
        (
            vec![text(0, "Hel"), text_done("Hello"), part("content_part.done", "Hello"), done(0, message("Hello"))],
            "Hello",
        ),
        (vec![added(0, message("Hello"))], "Hello"),
        (vec![added(0, message("Hello")), part("content_part.added", "Hello"), text(0, "Hel"), text(0, "lo")], "Hello"),
        (vec![part("content_part.added", "Hel"), text(0, "lo"), text_done("Hello")], "Hello"),
        (vec![added(0, message("Hello")), text(0, "Hel"), done(0, message("Hello"))], "Hello"),
        // Other words count in place of the first ones, and thinking stays out of them.
        (vec![text(0, "HelloHello"), text_done("Hello")], "Hello"),
        (vec![text(0, "Bye"), done(0, message("<think>hm</think>Hello"))], "Hello"),
        // Two parts, and the same words after the end of the item.
        (vec![text(0, "Hel"), text_done("Hel"), second(text(0, "lo")), second(text_done("lo"))], "Hello"),
        (vec![text(0, "Hel"), second(text_done("lo")), text_done("Hel")], "Hello"),
        (vec![done(0, message("Hello")), text_done("Hello"), part("content_part.done", "Hello")], "Hello"),
        // There are two messages, and the list has only the second.
        (vec![text(0, "One."), text(1, "Two."), listed("Two.")], "One.\n\nTwo."),
        (vec![text(0, "Hel"), listed("Hello")], "Hello"),
        (vec![json!({"type": "response.completed", "response": {"output_text": "Hello"}})], "Hello"),
    ] {
        let (reply, shown) = assemble(&[&events[..], &[completed()]].concat());
        let reply = reply.unwrap();
        assert_eq!((&*reply.text, reply.finish), (said, Finish::Stop), "{events:?}");
        let shown = shown.concat().replace("text:", "");
        assert!(shown == said || reply.text != shown && events.len() == 2, "{shown} {events:?}");
    }
}

#[test]
fn a_refusal_reasoning_and_arguments_may_come_only_at_their_end() {
    let refused = json!({"type": "response.refusal.done", "output_index": 0, "refusal": "I cannot."});
    let part = json!({"type": "response.content_part.done", "output_index": 0, "part": {"type": "refusal", "refusal": "I cannot."}});
    for events in [vec![refused.clone()], vec![part.clone()], vec![refused, part]] {
        let reply = assemble(&[&events[..], &[completed()]].concat()).0.unwrap();
        assert_eq!((&*reply.text, reply.finish), ("I cannot.", Finish::Refused), "{events:?}");
    }
    let thought = |kind: &str| json!({"type": kind, "output_index": 0, "summary_index": 0, "text": "hm", "part": {"type": "summary_text", "text": "hm"}});
    let delta =
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "h"});
    for first in [vec![], vec![delta]] {
        let events = [
            first,
            vec![
                thought("response.reasoning_summary_text.done"),
                thought("response.reasoning_summary_part.done"),
                text(1, "so"),
                completed(),
            ],
        ];
        let reply = assemble(&events.concat()).0.unwrap();
        assert_eq!((reply.reasoning.as_deref(), &*reply.text), (Some("hm"), "so"));
    }
    let whole = json!({"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_c", "arguments": "{\"n\":1}"});
    let bare = json!({"type": "function_call", "id": "fc_c", "call_id": "c", "name": "ls"});
    let named = json!({"type": "response.function_call_arguments.done", "item_id": "fc_c", "call_id": "c", "name": "ls", "arguments": "{\"n\":1}"});
    for events in [
        vec![added(0, bare.clone()), whole.clone()],
        vec![added(0, bare.clone()), whole.clone(), done(0, bare.clone())],
        vec![whole.clone(), done(0, bare)],
        vec![named],
        vec![done(0, call("c", "ls", "{\"n\":1}")), whole],
    ] {
        let reply = assemble(&[&events[..], &[completed()]].concat()).0.unwrap();
        assert_eq!((calls(&reply), reply.finish), (vec![("c", "ls", "{\"n\":1}")], Finish::ToolCalls), "{events:?}");
    }
}

#[test]
fn an_item_that_was_cut_is_cut_in_a_completed_response() {
    let mut cut = message("Hel");
    cut["status"] = json!("incomplete");
    let mut end = completed();
    end["response"]["output"] = json!([cut]);
    for events in [
        vec![text(0, "Hel"), done(0, cut.clone()), completed()],
        vec![end.clone()],
        vec![text(0, "Hel"), done(0, message("Hel")), end],
    ] {
        let reply = assemble(&events).0.unwrap();
        assert_eq!((&*reply.text, reply.finish), ("Hel", Finish::Length), "{events:?}");
    }
}

#[test]
fn a_search_that_the_client_carries_out_is_a_call_with_a_name() {
    let search = |execution: &str, arguments: Value| {
        json!({"type": "tool_search_call", "id": "tsc_1", "call_id": "s1", "execution": execution, "arguments": arguments,
            "status": "completed"})
    };
    let events = |execution: &str| {
        [added(0, search(execution, json!({}))), done(0, search(execution, json!({"query": "parcel"}))), completed()]
    };
    let (reply, shown) = assemble(&events("client"));
    assert_eq!(calls(&reply.unwrap()), [("s1", "tool_search", r#"{"query":"parcel"}"#)]);
    assert_eq!(shown, ["call:tool_search"]);
    let (reply, _) = assemble(&events("server"));
    assert_eq!(calls(&reply.unwrap()), [], "the provider has carried it out itself");
    // Only the whole response has it.
    let whole = json!({"type": "response.completed", "response": {"status": "completed", "output": [search("client", json!({"query": "parcel"}))]}});
    let (reply, _) = assemble(&[whole]);
    assert_eq!(calls(&reply.unwrap()), [("s1", "tool_search", r#"{"query":"parcel"}"#)]);
}
