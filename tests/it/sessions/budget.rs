//! Turns that make as many requests as `agent.max_turns` allows.

use hermes_tests::oracle::{assert_extends, assert_valid_anthropic_request, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Request, Server};
use serde_json::{Value, json};

use crate::fixtures::journal::texts;

const SUMMARY: &str = "Read twice; the second file is still to be read.";

/// A model that reads a file until it is told that no call follows; then it gives this reply.
fn reader(last: Reply) -> Server {
    Server::answering(move |body, number| {
        let told = body["messages"].as_array().and_then(|messages| messages.last()).map(Value::to_string);
        match told.is_some_and(|told| told.contains("calls in that reply are not run")) {
            true => last.clone(),
            false if last_said(body).contains("Thanks") => Reply::text("Gladly."),
            false => Reply::calls([Call::new(&format!("call_{number}"), "read_file", &json!({"path": "notes.txt"}))]),
        }
    })
}

/// The words of the newest message of the user.
fn last_said(body: &Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    messages.last().filter(|message| message["role"] == "user").map(Value::to_string).unwrap_or_default()
}

/// A home, and a check of the requests in its wire format.
type CheckedHome = (Home, fn(&Value));

/// A home whose turns make two requests with tools, in each wire format that the server speaks.
fn homes(server: &Server) -> [CheckedHome; 2] {
    let chat: CheckedHome = (Home::with(server), assert_valid_request);
    let anthropic: CheckedHome = (Home::with_anthropic(server), assert_valid_anthropic_request);
    for (home, _) in [&chat, &anthropic] {
        home.write_workspace("notes.txt", "The office closes at five.");
        home.set("agent.max_turns", json!(2));
    }
    [chat, anthropic]
}

/// The last three requests, which the check accepts, and of which each extends the one before.
fn last_three(server: &Server, check: fn(&Value)) -> Vec<Request> {
    let turns = server.turns();
    let three = turns[turns.len() - 3..].to_vec();
    three.iter().for_each(|request| check(&request.body));
    for pair in three.windows(2) {
        assert_extends(&pair[0].body, &pair[1].body);
        assert!(pair[1].conversation().len() > pair[0].conversation().len());
    }
    three
}

#[test]
fn a_turn_that_has_made_its_requests_ends_with_a_summary_and_can_go_on() {
    let server = reader(Reply::text(SUMMARY));
    for (home, check) in homes(&server) {
        let before = server.turns().len();
        let output = home.hermes(&["-z", "Read both files."]).run().exits(8);
        assert_eq!(output.stdout, format!("{SUMMARY}\n"));
        let line = "the turn has made 2 requests, the limit of agent.max_turns; asking the model for a summary";
        assert_eq!(output.stderr.matches(line).count(), 1, "{output}");
        assert_eq!(server.turns().len(), before + 3);
        let three = last_three(&server, check);
        let choices: Vec<&Value> = three.iter().map(|request| &request.body["tool_choice"]).collect();
        match three[0].body.get("system") {
            // Another choice would cost the provider's cache of all messages.
            Some(_) => assert_eq!(choices, [&json!({"type": "auto"}); 3]),
            None => assert_eq!(choices, [&Value::Null, &Value::Null, &json!("none")]),
        }
        assert_eq!(texts(&home.messages(), "assistant"), ["", "", SUMMARY]);

        let output = home.hermes(&["--continue", "-z", "Thanks."]).run().success();
        assert_eq!(output.stdout, "Gladly.\n");
        check(&server.last_turn().body);
    }
}

#[test]
fn a_call_in_the_summary_is_not_run_and_gets_a_result() {
    let call = Call::new("call_late", "write_file", &json!({"path": "late.txt", "content": "late"}));
    let server = reader(Reply::calls([call]).saying("One more."));
    for (home, check) in homes(&server) {
        let output = home.hermes(&["-z", "Read both files."]).run().exits(8);
        assert_eq!(output.stdout, "One more.\n");
        assert!(!home.workspace().join("late.txt").exists());
        last_three(&server, check);
        let log = home.messages();
        let refused = texts(&log, "tool").pop().unwrap_or_default().to_owned();
        assert_eq!(refused, "not run: this turn has made 2 requests, the limit of agent.max_turns");
        let note = "[Stopped after 2 steps of this turn, the limit of agent.max_turns. Say \"go on\" to continue.]";
        assert_eq!(texts(&log, "assistant"), ["", "", "One more.", note]);

        let output = home.hermes(&["--continue", "-z", "Thanks."]).run().success();
        assert_eq!(output.stdout, "Gladly.\n");
        check(&server.last_turn().body);
    }
}
