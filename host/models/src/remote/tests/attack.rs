//! A hostile server: floods of calls, bytes and events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::*;

/// Far more than the work takes in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

fn calls(count: usize) -> Vec<Value> {
    let call = |at: usize| json!({"index": at, "id": "x", "function": {"name": "ls", "arguments": "{}"}});
    (0..count).map(call).collect()
}

fn event(calls: &[Value]) -> String {
    format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": calls}}]}))
}

/// Answers with these bytes and counts the requests.
async fn asked(kind: &str, body: String) -> (Result<Reply, ModelError>, usize) {
    let server = Server::start(vec![vec![head("200 OK", kind), body.into_bytes()]]).await;
    let begun = Instant::now();
    let (reply, _) = ask(&server.provider()).await;
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    (reply, server.requests().len())
}

#[tokio::test]
async fn a_reply_with_more_calls_than_a_turn_can_run_is_refused_with_the_limit() {
    let one_by_one: String = calls(10_000).iter().map(|call| event(std::slice::from_ref(call))).collect();
    let at_once = event(&calls(10_000));
    let whole = json!({"choices": [{"message": {"tool_calls": calls(10_000)}, "finish_reason": "tool_calls"}]});
    for (kind, body) in [
        ("text/event-stream", one_by_one.clone()),
        ("text/event-stream", at_once),
        ("application/json", one_by_one),
        ("application/json", whole.to_string()),
    ] {
        let (reply, requests) = asked(kind, body).await;
        let error = reply.unwrap_err();
        assert_eq!(error, ModelError::TooManyCalls { host: "127.0.0.1".to_owned(), most: 256 });
        assert_eq!(requests, 1, "the same reply would come again");
        assert!(error.to_string().contains("more than 256 tool calls; none of them was run"), "{error}");
    }
}

#[tokio::test]
async fn as_many_calls_as_a_turn_can_run_are_accepted() {
    let body = event(&calls(256)) + &format!("data: {STOP}\n\ndata: [DONE]\n\n");
    let (reply, _) = asked("text/event-stream", body).await;
    assert_eq!(reply.unwrap().tool_calls.len(), 256);
}

#[tokio::test]
async fn an_endless_reply_ends_at_the_limit_and_is_not_asked_for_again() {
    let endless_line = format!("data: {}", "x".repeat(17 << 20));
    let comments = ": keep waiting\n\n".repeat((17 << 20) / 16);
    let whole = format!("{{\"choices\":[{}]}}", "0,".repeat(9 << 20));
    for (kind, body) in
        [("text/event-stream", endless_line), ("text/event-stream", comments), ("application/json", whole)]
    {
        let (reply, requests) = asked(kind, body).await;
        let Err(ModelError::Cut { why, .. }) = reply else { panic!("{reply:?}") };
        assert_eq!((why.as_str(), requests), ("it is longer than 16 MiB", 1));
    }
}

/// A reply that is in memory at once, one large value or many small ones, must not keep a thread from its other tasks:
/// a front end that runs beside it reads Ctrl-C.
#[tokio::test]
async fn other_tasks_run_while_a_large_reply_is_read() {
    let small: String = (0..50_000).map(|_| format!("data: {}\n\n", text("a"))).collect();
    let large = format!("data: {}\n\n", text(&"a".repeat(12 << 20)));
    for body in [small, large] {
        // Without the type of a stream, the whole body is read before its events.
        let body = body + &format!("data: {STOP}\n\n");
        let server = Server::start(vec![answer("200 OK", "", &body)]).await;
        let provider = server.provider();
        let asking = tokio::spawn(async move { ask(&provider).await.0.map(|reply| reply.text.len()) });
        let ticks = AtomicUsize::new(0);
        let longest = async {
            let mut longest = Duration::ZERO;
            while !asking.is_finished() {
                let begun = Instant::now();
                tokio::time::sleep(Duration::from_millis(1)).await;
                longest = longest.max(begun.elapsed());
                ticks.fetch_add(1, Ordering::Relaxed);
            }
            longest
        };
        let longest = longest.await;
        assert!(asking.await.unwrap().unwrap() >= 50_000);
        assert!(ticks.load(Ordering::Relaxed) > 5, "the other task ran {ticks:?} times");
        assert!(longest < Duration::from_secs(10), "the other task waited for {longest:?}");
    }
}
