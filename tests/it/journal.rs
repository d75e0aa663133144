//! Comparing what was said with what the log has.

use hermes_tests::Request;
use serde_json::Value;

/// The texts of one role, in order.
pub(crate) fn texts<'a>(messages: &'a [Value], role: &str) -> Vec<&'a str> {
    let of_role = messages.iter().filter(|message| message["role"] == role);
    of_role.map(|message| message["content"].as_str().unwrap_or_default()).collect()
}

/// Panics unless the log begins with every message of the request: whatever a provider was sent had been stored.
/// Only for requests that nothing was compacted in.
#[track_caller]
pub(crate) fn assert_logged(log: &[Value], request: &Request) {
    let sent = request.conversation();
    assert!(log.len() >= sent.len(), "{} messages were sent, {} are in the log", sent.len(), log.len());
    for (at, (sent, logged)) in sent.iter().zip(log).enumerate() {
        assert_eq!(sent.role, logged["role"].as_str().unwrap(), "message {at} has another role in the log");
        let text = logged["content"].as_str().unwrap_or_default();
        // What was recalled for a message stands behind it in the request only.
        assert!(sent.text.starts_with(text), "message {at}: `{text}` is logged, `{}` was sent", sent.text);
        assert_eq!(sent.calls, call_ids(logged), "message {at} makes other calls in the log");
        assert_eq!(sent.answers.as_deref(), logged["tool_call_id"].as_str(), "message {at} answers another call");
    }
}

fn call_ids(message: &Value) -> Vec<&str> {
    let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    calls.iter().filter_map(|call| call["id"].as_str()).collect()
}

/// Words enough to fill a window with, none of them twice in the same order.
pub(crate) fn long_text(topic: &str, number: usize) -> String {
    let sentences = (0..28).map(|line| {
        format!("On {topic} {number}, line {line}: the ferry {} left berth {} late. ", number * 31 + line * 7, line + 1)
    });
    sentences.collect::<String>().trim_end().to_owned()
}
