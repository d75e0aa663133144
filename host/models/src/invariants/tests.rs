use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;

/// A value of a member, sometimes of a wrong type.
fn word() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => select(vec!["x", "x_2", "", "{", "}", "{}", "{\"a\":1}", "ls", "stop", "length", "refusal", "tool_calls"])
            .prop_map(Value::from),
        1 => Just(Value::Null),
        1 => (0_u64..4).prop_map(Value::from),
        1 => Just(json!({"a": [1]})),
        1 => Just(json!(["x", {"text": "y"}])),
    ]
}

fn chat_event() -> impl Strategy<Value = Value> {
    let call = (0_u64..3, word(), word(), word()).prop_map(
        |(index, id, name, arguments)| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}}),
    );
    let details = (select(vec!["reasoning.text", "reasoning.encrypted"]), word(), word())
        .prop_map(|(kind, id, text)| json!({"type": kind, "index": 0, "id": id, "text": text}));
    let key = select(vec!["delta", "message"]);
    let lists = (prop::collection::vec(call, 0..4), prop::collection::vec(details, 0..3));
    (key, word(), word(), lists, word()).prop_map(|(key, content, refusal, (calls, details), finish)| {
        let delta = json!({
            "content": content, "refusal": refusal, "reasoning_details": details, "tool_calls": calls,
        });
        json!({"choices": [{key: delta, "finish_reason": finish}]})
    })
}

fn messages_event() -> impl Strategy<Value = Value> {
    let kind = select(vec![
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    ]);
    let block = select(vec!["text", "thinking", "redacted_thinking", "tool_use", "later"]);
    let delta = select(vec!["text_delta", "thinking_delta", "signature_delta", "input_json_delta"]);
    (kind, 0_u64..4, block, delta, (word(), word(), word())).prop_map(|(kind, index, block, delta, (a, b, c))| {
        json!({
            "type": kind, "index": index,
            "content_block": {"type": block, "text": a, "thinking": b, "id": c, "name": a, "input": {"a": b}},
            "delta": {"type": delta, "text": a, "thinking": b, "signature": c, "partial_json": a, "stop_reason": b},
        })
    })
}

fn response_item() -> impl Strategy<Value = Value> {
    let kind = select(vec!["message", "reasoning", "function_call", "web_search_call"]);
    let status = select(vec!["completed", "in_progress", "incomplete"]);
    (kind, status, (word(), word(), word())).prop_map(|(kind, status, (a, b, c))| {
        json!({
            "type": kind, "status": status, "id": a, "call_id": b, "name": c, "arguments": a, "phase": b,
            "content": [{"type": "output_text", "text": a}, {"type": "refusal", "refusal": b}],
            "summary": [{"type": "summary_text", "text": c}], "encrypted_content": a,
        })
    })
}

fn responses_event() -> impl Strategy<Value = Value> {
    let kind = select(vec![
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.incomplete",
        "response.later",
    ]);
    let index = prop_oneof![3 => (0_u64..4).prop_map(Value::from), 1 => Just(Value::Null), 1 => Just(json!(u64::MAX))];
    let output = prop::collection::vec(response_item(), 0..3);
    (kind, index, response_item(), output, (word(), word())).prop_map(|(kind, index, item, output, (a, b))| {
        json!({
            "type": kind, "output_index": index, "item_id": b, "summary_index": index, "item": item, "delta": a,
            "arguments": a, "response": {"status": b, "model": a, "output": output},
        })
    })
}

/// The events as a stream, each cut short with a small probability.
fn stream_of(events: &[Value], cut: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events {
        bytes.extend_from_slice(format!("data: {event}\n\n").as_bytes());
    }
    bytes.truncate(bytes.len().saturating_sub(cut));
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_stream_gives_a_sound_reply_or_none(
        chat in prop::collection::vec(chat_event(), 0..8),
        messages in prop::collection::vec(messages_event(), 0..12),
        responses in prop::collection::vec(responses_event(), 0..12),
        cut in prop_oneof![3 => Just(0_usize), 1 => 0_usize..200],
    ) {
        reply(&stream_of(&chat, cut));
        reply(&stream_of(&messages, cut));
        reply(&stream_of(&responses, cut));
    }

    #[test]
    fn any_whole_reply_gives_a_sound_reply_or_none(
        chat in chat_event(),
        blocks in prop::collection::vec(messages_event(), 0..6),
        output in prop::collection::vec(response_item(), 0..6),
        status in select(vec!["completed", "incomplete", "in_progress", "failed"]),
    ) {
        reply(json!({"output": output, "status": status}).to_string().as_bytes());
        reply(chat.to_string().as_bytes());
        let blocks: Vec<Value> = blocks.into_iter().map(|event| event["content_block"].clone()).collect();
        reply(json!({"content": blocks, "stop_reason": "end_turn"}).to_string().as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "(data: [ -~]{0,40}\n){0,4}") {
        reply(&bytes);
        reply(text.as_bytes());
    }
}
