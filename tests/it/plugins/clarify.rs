//! The host's tool `clarify`: a question of the model to the user.

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::{Value, json};
use std::time::Duration;

const PROMPT: &str = "> ";
const HOW: &str = "and enter; ctrl-c stops the turn";

/// A model that makes these calls in one reply, and then says that it is done.
fn model_that_calls(calls: Vec<(&'static str, Value)>) -> Server {
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let since = messages.iter().rev().take_while(|message| message["role"] != "user");
        if since.filter(|message| message["role"] == "tool").count() > 0 {
            return Reply::text("Done.");
        }
        let calls = calls.iter().enumerate();
        Reply::calls(
            calls.map(|(at, (name, arguments))| Call::new(&format!("call_{}_{at}", messages.len()), name, arguments)),
        )
    })
}

fn question() -> (&'static str, Value) {
    ("clarify", json!({ "question": "Where does it go?", "choices": ["staging", { "label": "production" }, " "] }))
}

/// What the model got for its calls, in their order.
#[track_caller]
fn results(server: &Server) -> Vec<String> {
    let request = server.last_turn();
    assert_valid_request(&request.body);
    request.trailing_results().into_iter().map(|(_, content)| content.to_owned()).collect()
}

fn chat(home: &Home) -> Terminal {
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal
}

#[track_caller]
fn leave(mut terminal: Terminal) -> String {
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.shown()
}

#[test]
fn the_user_answers_with_a_number_or_in_other_words() {
    for (typed, response) in [("2\r", "production"), ("Staging\r", "staging"), ("\rneither, wait\r", "neither, wait")] {
        let server = model_that_calls(vec![question()]);
        let home = Home::with(&server);
        let mut terminal = chat(&home);
        terminal.wait_for(HOW, 1);
        for line in ["the model asks:", "Where does it go?", "  1) staging", "  2) production"] {
            assert!(terminal.shown().contains(line), "`{line}` is not in\n{}", terminal.shown());
        }
        terminal.press(typed);
        leave(terminal);
        let answer: Value = serde_json::from_str(&results(&server)[0]).unwrap();
        let offered = json!(["staging", "production"]);
        let expected =
            json!({ "question": "Where does it go?", "choices_offered": offered, "user_response": response });
        assert_eq!(answer, expected);
    }
}

#[test]
fn an_open_question_runs_beside_no_other_call() {
    let open = ("clarify", json!({ "question": "What is\nit called?" }));
    let again = ("clarify", json!({ "question": "And its colour?" }));
    let read = ("read_file", json!({ "path": "notes.txt" }));
    let server = model_that_calls(vec![read.clone(), open, read, again]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "a note\n");
    let mut terminal = chat(&home);
    terminal.wait_for(HOW, 1);
    assert!(!terminal.shown().contains("And its colour?"), "{}", terminal.shown());
    terminal.press("1\r");
    terminal.wait_for(HOW, 2);
    terminal.press("red\r");
    leave(terminal);
    let results = results(&server);
    assert!(results[0].contains("a note") && results[2].contains("a note"), "{results:?}");
    assert!(
        results[1].contains("\"user_response\":\"1\"") && results[1].contains("\"choices_offered\":null"),
        "{results:?}"
    );
    assert!(results[3].contains("\"user_response\":\"red\""), "{results:?}");
}

#[test]
fn without_a_user_the_model_is_told_at_once_to_decide() {
    let server = model_that_calls(vec![question(), ("clarify", json!({ "question": " " }))]);
    let home = Home::with(&server);
    for hermes in [home.hermes(&["-z", "Go."]), home.hermes(&["chat", "-q", "Go."]), home.hermes(&[]).stdin("Go.\n")] {
        // It does not wait for an answer, which nobody gives.
        hermes.run().success();
        let results = results(&server);
        let answer: Value = serde_json::from_str(&results[0]).unwrap();
        assert_eq!(
            (&answer["user_response"], &answer["choices_offered"]),
            (&json!(null), &json!(["staging", "production"]))
        );
        assert!(answer["note"].as_str().unwrap().contains("Nobody can answer"), "{answer}");
        assert!(results[1].contains("nothing was asked"), "{results:?}");
    }
}

#[test]
fn at_a_terminal_a_single_message_is_answered_too() {
    let server = model_that_calls(vec![question()]);
    let home = Home::with(&server);
    let mut terminal = home.hermes(&["chat", "-q", "Go."]).at_terminal();
    terminal.wait_for(HOW, 1);
    terminal.press("1\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert!(results(&server)[0].contains("\"user_response\":\"staging\""), "{:?}", results(&server));
}

#[test]
fn ctrl_c_at_the_question_stops_the_turn_and_the_next_one_goes_on() {
    let server = model_that_calls(vec![question()]);
    let home = Home::with(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(HOW, 1);
    terminal.interrupt();
    terminal.wait_for("stopped", 1);
    terminal.wait_for(PROMPT, 2);
    // Nothing answers a question that was withdrawn.
    terminal.press("1\r");
    terminal.wait_for(HOW, 2);
    terminal.press("2\r");
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 3);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert!(results(&server)[0].contains("\"user_response\":\"production\""), "{:?}", results(&server));
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let server = Server::answering(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        match (last["role"].as_str(), last["content"].as_str()) {
            (Some("user"), Some(text)) if text.starts_with("Go.") => {
                let text = "I wonder where it should go. ".repeat(12);
                let (name, arguments) = question();
                Reply::calls([Call::new("call_0", name, &arguments)])
                    .saying(&text)
                    .in_steps_of(20)
                    .every(Duration::from_millis(100))
            }
            _ => Reply::text("Done."),
        }
    });
    let home = Home::with(&server);
    let mut terminal = chat(&home);
    terminal.wait_for("I wonder", 1);
    terminal.press("a begun line");
    terminal.wait_for(HOW, 1);
    terminal.press("1\r");
    leave(terminal);
    assert!(results(&server)[0].contains("\"user_response\":\"staging\""), "{:?}", results(&server));
}
