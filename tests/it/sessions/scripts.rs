//! `hermes -z` for scripts: the answer alone, as JSON, or as events; and a chat that begins with a message.

use hermes_tests::{Call, Home, Reply, Server, binary};
use serde_json::{Value, json};

/// A model that says what it will do, calls a tool, and answers.
fn server() -> Server {
    Server::answering(|body, _| {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        match messages.last().is_some_and(|message| message["role"] == "tool") {
            true => Reply::text("It is done."),
            false => Reply::calls([Call::new("c1", "read_file", &json!({"path": "a.txt"}))]).saying("I will look."),
        }
    })
}

#[test]
fn the_answer_is_alone_on_standard_output() {
    let server = server();
    let home = Home::with(&server);
    assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, "It is done.\n");
    let failing = Server::answering(|_, _| Reply::error(401, "wrong key"));
    let home = Home::with(&failing);
    assert_eq!(home.hermes(&["-z", "hello"]).run().refused().stdout, "");
}

#[test]
fn a_report_has_the_answer_its_tokens_and_the_session() {
    let server = server();
    let home = Home::with(&server);
    let report: Value = serde_json::from_str(&home.hermes(&["-z", "hello", "--json"]).run().success().stdout).unwrap();
    assert_eq!((&report["answer"], &report["end"]), (&json!("It is done."), &json!("answered")));
    assert_eq!(report["error"], Value::Null);
    let session = report["session"].as_str().unwrap();
    home.hermes(&["sessions", "show", session]).run().success();

    let failing = Server::answering(|_, _| Reply::error(401, "wrong key"));
    let home = Home::with(&failing);
    let output = home.hermes(&["-z", "hello", "--json"]).run().exits(4);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&report["answer"], &report["end"]), (&Value::Null, &json!("failed")));
    assert_eq!(report["error"]["code"], "model.auth", "{output}");
}

/// A session without a message would be in the lists, and there would be nothing to continue.
#[test]
fn a_message_that_is_refused_before_it_is_stored_leaves_no_session() {
    let server = server();
    let home = Home::with(&server);
    let refused = |home: &Home, text: &str| {
        let output = home.hermes(&["-z", "-", "--json"]).stdin(text).run().refused();
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        (report["error"]["code"].as_str().unwrap().to_owned(), report["session"].clone(), home.sessions_json().len())
    };
    let (code, session, sessions) = refused(&home, &"word ".repeat(500_000));
    assert_eq!((code.as_str(), session, sessions), ("session.message-too-long", Value::Null, 0));
    home.set("approvals.deny", json!(["files/write_fil"]));
    home.hermes(&["-z", "hello"]).run().refused().says(&["files/write_file"]);
    assert_eq!(home.sessions_json(), Vec::<Value>::new());
    assert_eq!(server.turns().len(), 0);

    // This message was stored, so the user can send it again.
    let failing = Server::answering(|_, _| Reply::error(401, "wrong key"));
    let home = Home::with(&failing);
    let (code, session, sessions) = refused(&home, "hello");
    assert_eq!((code.as_str(), session.is_string(), sessions), ("model.auth", true, 1));
    assert_eq!(home.messages()[0]["content"], "hello");
}

#[test]
fn events_are_lines_of_json() {
    let server = server();
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "hello", "--stream-json"]).run().success();
    let events: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"]["event"].as_str().unwrap()).collect();
    for kind in ["turn-started", "text", "tool-started", "tool-finished", "reply-done", "turn-ended", "ended"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let ended = events.iter().find(|event| event["kind"]["event"] == "turn-ended").unwrap();
    assert_eq!(ended["kind"]["end"]["text"], "It is done.", "{ended}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let server = server();
    let home = Home::with(&server);
    for form in [&[][..], &["--json"], &["--stream-json"]] {
        let arguments = [&["-z", "hello"][..], form].concat();
        let output = std::process::Command::new(binary())
            .args(&arguments)
            .current_dir(home.workspace())
            .env("HERMES_HOME", home.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("the output cannot be written") && said.contains("No space left"), "{said}");
    }
}

#[test]
fn a_chat_can_begin_with_a_message() {
    let server = Server::answering(|_, _| Reply::text("Good morning."));
    let home = Home::with(&server);
    let output = home.hermes(&["say good morning"]).run().success();
    assert!(output.stdout.contains("Good morning."), "{output}");
    assert_eq!(server.last_turn().body["messages"].as_array().unwrap().last().unwrap()["content"], "say good morning");
    home.hermes(&["chat", "hello"]).run().success();
    home.hermes(&["sesions"]).run().exits(2).says(&["did you mean `sessions`?"]);
    assert_eq!(server.turns().len(), 2);
}
