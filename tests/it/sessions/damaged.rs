//! Sessions whose log lacks results or holds results without a call go on, over both wire formats.

use std::fs;

use hermes_tests::oracle::{assert_valid_anthropic_request, assert_valid_request};
use hermes_tests::{Home, Output, Reply, Server};
use serde_json::{Value, json};

/// Whether the user learns that the log is damaged or incomplete.
fn says_so(output: &Output) -> bool {
    ["no stored result", "log of this session is damaged"].iter().any(|words| output.stderr.contains(words))
}

const INTERRUPTED: &str = "interrupted; it may have run";

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(ids: &[&str]) -> Value {
    let calls: Vec<Value> =
        ids.iter().map(|id| json!({"id": id, "name": "read_file", "arguments": "{\"path\":\"notes.txt\"}"})).collect();
    json!({"role": "assistant", "content": "", "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "content": format!("output of {id}"), "tool_call_id": id, "tool_name": "read_file"})
}

/// Ten logs that no provider accepts as they are.
fn damaged() -> [Vec<Value>; 10] {
    [
        vec![user("a"), calls(&["1"]), said("done")],
        vec![user("a"), calls(&["1"])],
        vec![user("a"), calls(&["1", "2"]), result("2"), said("done")],
        vec![user("a"), calls(&["1", "2", "3"]), result("3"), user("b"), said("done")],
        vec![user("a"), result("1"), said("done")],
        vec![result("1"), user("a"), said("done")],
        vec![user("a"), calls(&["1"]), result("1"), result("1"), said("done")],
        vec![user("a"), calls(&["1"]), result("2"), said("done"), result("1")],
        vec![user("a"), calls(&["1", "1"]), result("1"), result("1"), said("done")],
        vec![said("hello"), calls(&["1"]), user("a"), result("1"), calls(&["2"]), user("b")],
    ]
}

/// An export of one session with these messages, from an export that the program wrote.
fn export_of(export: &str, messages: &[Value]) -> String {
    let mut lines: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let message = lines.iter().find(|line| line["type"] == "message").unwrap().clone();
    lines.retain(|line| line["type"] == "header" || line["type"] == "session");
    lines[1]["id"] = json!("20260101_000000_abcdef");
    for (at, given) in (1..).zip(messages) {
        let mut line = message.clone();
        for key in ["sent", "reasoning", "tool_call_id", "tool_name"] {
            line[key] = Value::Null;
        }
        line["tool_calls"] = json!([]);
        line["id"] = json!(at);
        for (key, value) in given.as_object().unwrap() {
            line[key] = value.clone();
        }
        lines.push(line);
    }
    lines.push(json!({"type": "end", "sessions": 1, "messages": messages.len()}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn goes_on(home: fn(&Server) -> Home, check: fn(&Value)) {
    let first = Server::scripted([Reply::text("Well.")]);
    let model = home(&first);
    model.hermes(&["-z", "hello"]).run().success();
    let export = model.hermes(&["sessions", "export", &model.newest_session()]).run().success().stdout;
    for (at, messages) in damaged().iter().enumerate() {
        let server = Server::scripted([Reply::text("First."), Reply::text("Second.")]);
        let home = home(&server);
        let mut given = export_of(&export, messages);
        given = given.replace(model.workspace().to_str().unwrap(), home.workspace().to_str().unwrap());
        fs::write(home.workspace().join("damaged.jsonl"), given).unwrap();
        home.hermes(&["sessions", "import", "damaged.jsonl"]).run().success();
        let resume = |text: &str| home.hermes(&["-z", text, "--resume", "20260101_000000_abcdef"]).run().success();
        let output = resume("go on");
        // The log of file 1 only ends early: the host closes it by appending a result, as after any interrupted turn.
        assert_eq!(says_so(&output), at != 1, "file {at}: {output}");
        // It is said once: by the next process the provider has accepted the repaired messages already.
        let output = resume("and on");
        assert!(!says_so(&output), "file {at}: {output}");
        let turns = server.turns();
        assert_eq!(turns.len(), 2, "file {at}");
        for turn in &turns {
            check(&turn.body);
        }
        hermes_tests::oracle::assert_extends(&turns[0].body, &turns[1].body);
        let sent = turns[0].body.to_string();
        let lost = [0, 2, 3, 7, 9].contains(&at);
        assert!(!lost || sent.contains(INTERRUPTED), "file {at}: {sent}");
    }
}

#[test]
fn damaged_sessions_go_on_over_chat_completions() {
    goes_on(Home::with, assert_valid_request);
}

#[test]
fn damaged_sessions_go_on_over_anthropic_messages() {
    goes_on(Home::with_anthropic, assert_valid_anthropic_request);
}
