//! A hostile model server: floods of tool calls, bytes and events.

use std::time::{Duration, Instant};

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

/// Far more than a bounded reply takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

fn call(at: usize) -> Value {
    json!({"index": at, "id": "x", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a.txt\"}"}})
}

fn event(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn end() -> String {
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    format!("data: {end}\n\ndata: [DONE]\n\n")
}

fn stream(body: String) -> Reply {
    Reply::raw(200, "text/event-stream", body)
}

#[test]
fn ten_thousand_calls_with_one_id_are_a_clear_error_and_the_session_goes_on() {
    let one_by_one: String = (0..10_000).map(|at| event(&json!({"tool_calls": [call(at)]}))).collect();
    let at_once = event(&json!({"tool_calls": (0..10_000).map(call).collect::<Vec<_>>()}));
    for body in [one_by_one, at_once] {
        let server = Server::scripted([stream(body + &end()), Reply::text("Fine.")]);
        let home = Home::with(&server);
        let output = home.hermes(&["-z", "read"]).timeout(DEADLINE).run().exits(4);
        output.says(&["more than 256 tool calls", "none of them was run", "model.too-many-calls"]);
        assert_eq!(server.turns().len(), 1, "the same reply would come again");
        let again = home.hermes(&["--continue", "-z", "again"]).timeout(DEADLINE).run().success();
        assert_eq!(again.stdout, "Fine.\n");
        assert_valid_request(&server.last_turn().body);
    }
}

#[test]
fn as_many_calls_as_allowed_run_with_ids_of_their_own() {
    let body = event(&json!({"tool_calls": (0..256).map(call).collect::<Vec<_>>()})) + &end();
    let server = Server::scripted([stream(body), Reply::text("All read.")]);
    let home = Home::with(&server);
    home.write_workspace("a.txt", "content");
    let output = home.hermes(&["-z", "read"]).timeout(DEADLINE).run().success();
    assert_eq!(output.stdout, "All read.\n");
    let last = server.last_turn();
    assert_valid_request(&last.body);
    assert_eq!(last.trailing_results().len(), 256);
}

#[test]
fn replies_that_never_end_stop_at_the_limit() {
    let line = format!("data: {}", "x".repeat(17 << 20));
    let comments = ": wait\n\n".repeat((17 << 20) / 8);
    let spaces = " ".repeat(17 << 20);
    for body in [line, comments, spaces] {
        let server = Server::answering(move |_, _| stream(body.clone()));
        let home = Home::with(&server);
        let output = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run().exits(4);
        output.says(&["longer than 16 MiB"]);
        assert_eq!(server.turns().len(), 1);
    }
}

#[test]
fn odd_calls_end_with_an_answer_to_the_model() {
    let function = |id: &str, name: &str, arguments: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]});
    let long = "n".repeat(1 << 20);
    for delta in [
        function("x", &long, "{}"),
        function("x", "", "{}"),
        function(&long, "read_file", "{}"),
        function("x", &"n".repeat(200), "{}"),
        function("x", "no\u{202e}such\u{1b}[2J", "{}"),
        function("x", "read_file", &format!("{{\"path\":\"{long}\"}}")),
        function("x", "read_file", &"[".repeat(100_000)),
        function("x", "read_file", "{\"path\":"),
    ] {
        let server = Server::scripted([stream(event(&delta) + &end()), Reply::text("Well.")]);
        let home = Home::with(&server);
        let output = home.hermes(&["-z", "go"]).timeout(DEADLINE).run();
        assert_eq!(output.stdout, "Well.\n", "{output}");
        assert!(!output.stderr.contains('\u{1b}') && !output.stderr.contains('\u{202e}'), "{output}");
        let last = server.last_turn();
        assert_valid_request(&last.body);
        let results = last.trailing_results();
        assert!(results.iter().all(|(id, _)| id.len() < 600), "the id is the host's");
        assert_eq!(results.len(), 1, "the model is told: {results:?}");
    }
}

/// The first Ctrl-C ends the turn while a large reply is being read.
#[cfg(unix)]
#[test]
fn the_first_ctrl_c_works_while_a_flood_of_events_arrives() {
    // Without the type of a stream, all of it is in memory before its events are taken.
    let small: String = (0..200_000).map(|_| event(&json!({"reasoning": "a"}))).collect();
    let large = event(&json!({"content": "a".repeat(10 << 20)}));
    for (kind, body) in [("text/event-stream", small.clone()), ("application/json", small), ("application/json", large)]
    {
        let body = body + &event(&json!({"content": "done"}));
        let server = Server::answering(move |_, _| Reply::raw(200, kind, body.clone()));
        let home = Home::with(&server);
        let running = home.hermes(&["-z", "hello"]).timeout(DEADLINE).spawn();
        server.wait_for_requests(1);
        std::thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        running.interrupt();
        let output = running.wait();
        assert!(begun.elapsed() < DEADLINE, "{:?}\n{output}", begun.elapsed());
    }
}
