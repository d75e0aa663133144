//! Replies of a hostile model server. None may cost more than its size, and none may become more calls than a turn can run.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::Echo;

/// Far more than the work takes in a debug build on a busy machine, and far less than quadratic work would take.
const DEADLINE: Duration = Duration::from_secs(600);

fn take_all(assembly: &mut dyn Assemble, events: impl IntoIterator<Item = Value>) {
    let begun = Instant::now();
    for event in events {
        assembly.take(&event, &mut |_| {}).unwrap();
    }
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
}

fn chunk(calls: Vec<Value>) -> Value {
    json!({"choices": [{"delta": {"tool_calls": calls}}]})
}

fn finished(mut assembly: Box<dyn Assemble>, end: Value) -> Result<Reply, Broken> {
    take_all(assembly.as_mut(), [end]);
    let begun = Instant::now();
    let mut made = 0;
    let reply = assembly.finish("asked", &mut || {
        made += 1;
        format!("made_{made}")
    });
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    reply
}

fn chat_end() -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
}

fn call(index: usize, id: &str) -> Value {
    json!({"index": index, "id": id, "function": {"name": "ls", "arguments": "{}"}})
}

#[test]
fn calls_beyond_the_limit_are_neither_collected_nor_accepted() {
    // One call an event, and all calls in one event.
    let one_by_one: Vec<Value> = (0..10_000).map(|at| chunk(vec![call(at, "x")])).collect();
    let at_once = vec![chunk((0..100_000).map(|at| call(at, "x")).collect())];
    for events in [one_by_one, at_once] {
        let mut assembly = Box::new(chat::Assembly::new(Echo::RETURNED));
        take_all(assembly.as_mut(), events);
        assert_eq!(assembly.calls(), MOST_CALLS + 1);
        assert_eq!(finished(assembly, chat_end()), Err(Broken::TooManyCalls));
    }
    let block = |at: usize| json!({"type": "tool_use", "id": format!("t{at}"), "name": "ls", "input": {}});
    let begins = (0..10_000).map(|at| json!({"type": "content_block_start", "index": at, "content_block": block(at)}));
    let mut assembly = Box::new(messages::Assembly::new(false));
    take_all(assembly.as_mut(), begins);
    assert_eq!(finished(assembly, json!({"type": "message_stop"})), Err(Broken::TooManyCalls));
    // The input of a block that was never begun counts as a call, too.
    let delta = |at: usize| {
        let delta = json!({"type": "input_json_delta", "partial_json": "{}"});
        json!({"type": "content_block_delta", "index": at, "delta": delta})
    };
    let mut assembly = messages::Assembly::new(false);
    take_all(&mut assembly, (0..1_000).map(delta));
    assert_eq!(assembly.calls(), 1_000);
}

#[test]
fn calls_of_the_responses_api_are_counted_however_they_begin() {
    let item = |at: usize| json!({"type": "function_call", "id": format!("fc{at}"), "call_id": "x", "name": "ls", "arguments": "{}"});
    let event = |kind: &str, at: usize| json!({"type": kind, "output_index": at, "item": item(at), "delta": "{}"});
    for kind in ["response.output_item.added", "response.output_item.done", "response.function_call_arguments.delta"] {
        let mut assembly = Box::new(responses::Assembly::default());
        take_all(assembly.as_mut(), (0..10_000).map(|at| event(kind, at)));
        assert_eq!(assembly.calls(), 10_000, "{kind}");
        let end = json!({"type": "response.completed", "response": {"status": "completed"}});
        assert_eq!(finished(assembly, end), Err(Broken::TooManyCalls), "{kind}");
    }
    let items: Vec<Value> = (0..100_000).map(item).collect();
    let whole = json!({"type": "response.completed", "response": {"status": "completed", "output": items}});
    let mut assembly = responses::Assembly::default();
    assembly.take_whole(&whole["response"], &mut |_| {}).unwrap();
    assert_eq!(assembly.calls(), MOST_CALLS + 1);
    let assembly = Box::new(responses::Assembly::default());
    assert_eq!(finished(assembly, whole), Err(Broken::TooManyCalls));
}

#[test]
fn items_of_the_responses_api_without_numbers_are_read_in_one_pass() {
    let mut assembly = Box::new(responses::Assembly::default());
    let event = |at: usize| match at % 3 {
        0 => json!({"type": "response.output_item.added", "item": {"type": "reasoning"}}),
        1 => json!({"type": "response.output_text.delta", "item_id": format!("m{at}"), "delta": "x"}),
        _ => json!({"type": "response.reasoning_summary_text.delta", "summary_index": at, "delta": "y"}),
    };
    take_all(assembly.as_mut(), (0..60_000).map(event));
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    let reply = finished(assembly, end).unwrap();
    assert_eq!(reply.text.matches('x').count(), 20_000);
}

#[test]
fn a_whole_reply_is_not_read_beyond_the_limit_of_calls() {
    let calls: Vec<Value> = (0..100_000).map(|at| call(at, "x")).collect();
    let mut chat = chat::Assembly::new(Echo::RETURNED);
    let reply = json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]});
    chat.take_whole(&reply, &mut |_| {}).unwrap();
    assert_eq!(chat.calls(), MOST_CALLS + 1);
    let blocks: Vec<Value> =
        (0..100_000).map(|_| json!({"type": "tool_use", "id": "x", "name": "ls", "input": {}})).collect();
    let mut messages = messages::Assembly::new(false);
    messages.take_whole(&json!({"content": blocks, "stop_reason": "tool_use"}), &mut |_| {}).unwrap();
    assert_eq!(messages.calls(), MOST_CALLS + 1);
}

#[test]
fn as_many_calls_as_the_limit_get_ids_of_their_own() {
    let mut assembly = Box::new(chat::Assembly::new(Echo::RETURNED));
    // Ids that are already numbered like the repeated one.
    let ids = (0..MOST_CALLS).map(|at| if at % 2 == 0 { "x".to_owned() } else { format!("x_{}", at / 2 + 2) });
    take_all(assembly.as_mut(), ids.enumerate().map(|(at, id)| chunk(vec![call(at, &id)])));
    let reply = finished(assembly, chat_end()).unwrap();
    let ids: HashSet<&str> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!((reply.tool_calls.len(), ids.len()), (MOST_CALLS, MOST_CALLS));
    assert_eq!((reply.tool_calls[0].id.as_str(), reply.tool_calls[1].id.as_str()), ("x", "x_2"));
}

#[test]
fn equal_ids_are_numbered_in_one_pass() {
    let slots = |count: usize| {
        let slot = Slot { id: "x".to_owned(), name: "ls".to_owned(), ..Slot::default() };
        vec![slot; count]
    };
    let calls = settle(slots(MOST_CALLS), Finish::Stop, &mut String::new).unwrap().calls;
    assert_eq!(calls[MOST_CALLS - 1].id, format!("x_{MOST_CALLS}"));
    assert_eq!(settle(slots(MOST_CALLS + 1), Finish::Stop, &mut String::new).unwrap_err(), Broken::TooManyCalls);
}

#[test]
fn a_call_that_repeats_its_name_while_its_arguments_grow_is_read_in_one_pass() {
    let piece =
        |arguments: &str| chunk(vec![json!({"index": 0, "function": {"name": "write", "arguments": arguments}})]);
    // A closing bracket inside of a text looks like the end of the object to a careless reader.
    for filler in ["aaaaaaaa", "}}}}}}}}", "\\\"}\\\"}", "        "] {
        let mut assembly = Box::new(chat::Assembly::new(Echo::RETURNED));
        take_all(assembly.as_mut(), [piece("{\"text\":\"")]);
        take_all(assembly.as_mut(), (0..100_000).map(|_| piece(filler)));
        take_all(assembly.as_mut(), [piece("\"}"), piece("{\"next\":1}")]);
        let reply = finished(assembly, chat_end()).unwrap();
        assert_eq!(reply.tool_calls.len(), 2, "a name behind complete arguments begins another call");
        assert_eq!(reply.tool_calls[0].arguments.len(), "{\"text\":\"\"}".len() + 100_000 * filler.len());
    }
}

#[test]
fn broken_arguments_are_parsed_once_however_they_go_on() {
    let mut assembly = Box::new(chat::Assembly::new(Echo::RETURNED));
    let piece =
        |arguments: &str| chunk(vec![json!({"index": 0, "function": {"name": "write", "arguments": arguments}})]);
    take_all(assembly.as_mut(), [piece(&format!("{{{}}}", "x".repeat(1 << 20)))]);
    take_all(assembly.as_mut(), (0..100_000).map(|at| piece(if at % 2 == 0 { " " } else { "}" })));
    let reply = finished(assembly, chat_end()).unwrap();
    assert_eq!(reply.tool_calls.len(), 1);
}

#[test]
fn items_of_reasoning_with_endless_ids_are_read_in_one_pass() {
    let mut assembly = Box::new(chat::Assembly::new(Echo::RETURNED));
    let item = |at: usize| {
        let item = json!({"type": "reasoning.text", "index": 0, "id": format!("r{at}"), "text": "x"});
        json!({"choices": [{"delta": {"reasoning_details": [item]}}]})
    };
    take_all(assembly.as_mut(), (0..20_000).map(item));
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    assert_eq!(finished(assembly, end).unwrap().reasoning.map(|text| text.len()), Some(20_000));
}

#[test]
fn long_names_are_cut_and_long_ids_replaced() {
    let long = "n".repeat(1 << 20);
    let named = |name: &str, id: &str| chunk(vec![json!({"index": 0, "id": id, "function": {"name": name}})]);
    let mut assembly = Box::new(chat::Assembly::new(Echo::RETURNED));
    take_all(assembly.as_mut(), [named(&long, "x")]);
    assert_eq!(finished(assembly, chat_end()).unwrap().tool_calls[0].name.len(), LONGEST_NAME);
    let mut assembly = Box::new(chat::Assembly::new(Echo::RETURNED));
    take_all(assembly.as_mut(), [named("ls", &long)]);
    assert_eq!(finished(assembly, chat_end()).unwrap().tool_calls[0].id, "made_1");
}

#[test]
fn a_reply_of_many_small_blocks_is_put_together_in_one_pass() {
    let mut assembly = Box::new(messages::Assembly::new(false));
    let begin = |at: usize| {
        let block =
            json!({"type": if at.is_multiple_of(2) { "text" } else { "thinking" }, "text": "x", "thinking": "y"});
        json!({"type": "content_block_start", "index": at, "content_block": block})
    };
    take_all(assembly.as_mut(), (0..100_000).map(begin));
    let reply = finished(assembly, json!({"type": "message_stop"})).unwrap();
    assert_eq!(reply.text.len(), 99_999);
}
