//! Messages that are typed while a turn runs: they wait, they stop the turn, or the model reads them during the turn.

use std::time::Duration;

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::{Value, json};

const PROMPT: &str = "> ";
const WAITS: &str = "this waits until the turn has ended";
/// How a reply is marked that the user stopped.
const MARK: &str = "[The user stopped the reply here.]";

/// The last message of a request, and its role.
fn last(body: &Value) -> (String, String) {
    let message = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let text = |member: &str| message[member].as_str().unwrap_or_default().to_owned();
    (text("role"), text("content"))
}

/// A model that does something else for "Begin.", and answers other messages with their text.
fn model(first: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Server::answering(move |body, _| match last(body) {
        (role, said) if role == "user" && said == "Begin." => first(),
        (role, said) => Reply::text(format!("After {role}: {}.", said.lines().next().unwrap_or_default())),
    })
}

/// Two seconds of text, then perhaps a call.
fn long(calls: Vec<Call>) -> Reply {
    Reply::calls(calls).saying(&"word ".repeat(200)).in_steps_of(5).every(Duration::from_millis(10))
}

fn home(server: &Server, while_busy: Option<&str>) -> Home {
    let home = Home::with(server);
    if let Some(choice) = while_busy {
        home.set("input.while_busy", json!(choice));
    }
    home.write_workspace("notes.txt", "The harbour opens at six.\n");
    home
}

/// Begins a turn, and types these keys while the reply streams.
fn begin(home: &Home, keys: &str) -> Terminal {
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Begin.\r");
    terminal.wait_for("word", 10);
    terminal.press(keys);
    terminal
}

/// Leaves after so many turns. What is typed before the end of the last one would wait.
fn leave(mut terminal: Terminal, turns: usize) -> String {
    terminal.wait_for("— scripted-model", turns);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.shown()
}

/// The roles and texts of the log.
fn log(home: &Home) -> Vec<(String, String)> {
    let text = |message: &Value, member: &str| message[member].as_str().unwrap_or_default().to_owned();
    home.messages().iter().map(|message| (text(message, "role"), text(message, "content"))).collect()
}

fn said(log: &[(String, String)]) -> Vec<&str> {
    log.iter().filter(|(role, _)| role == "user").map(|(_, text)| text.as_str()).collect()
}

#[test]
fn messages_wait_by_default_and_none_of_them_is_lost() {
    let server = model(|| long(Vec::new()));
    let home = home(&server, None);
    // Several lines at once, as when they are pasted. The last one is to be continued.
    let mut terminal = begin(&home, "one\rtwo\r/context\rthree\\\r");
    terminal.wait_for("After user: two.", 1);
    terminal.wait_for("three", 1);
    terminal.press("four\r");
    terminal.wait_for("After user: three.", 1);
    let shown = leave(terminal, 4);
    assert_eq!(shown.matches(WAITS).count(), 3, "{shown}");
    let log = log(&home);
    assert_eq!(said(&log), ["Begin.", "one", "two", "three\nfour"]);
    assert_eq!(log[1].1.trim(), "word ".repeat(200).trim(), "what is typed is no part of the answer");
    assert_valid_request(&server.last_turn().body);
}

#[test]
fn with_interrupt_a_message_stops_the_turn_and_a_command_waits() {
    let server = model(|| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
    let home = home(&server, Some("interrupt"));
    let mut terminal = begin(&home, "/context\r");
    terminal.wait_for(WAITS, 1);
    let words = terminal.shown().matches("word").count();
    terminal.wait_for("word", words + 10);
    terminal.press("And now?\r");
    terminal.wait_for("After user: And now?.", 1);
    let shown = leave(terminal, 2);
    assert!(shown.contains("stopped") && !shown.contains("not sent"), "{shown}");
    let log = log(&home);
    assert_eq!(said(&log), ["Begin.", "And now?"]);
    assert!(log[1].1.starts_with("word word") && log[1].1.ends_with(MARK), "{}", log[1].1);
    assert!(log[1].1.len() < 50_000, "{} bytes", log[1].1.len());
    assert!(!log[1].1.contains("And now?") && !log[1].1.contains("/context"), "{}", log[1].1);
    assert_valid_request(&server.last_turn().body);
}

#[test]
fn with_steer_the_next_tool_result_contains_the_message() {
    let read = Call::new("call_1", "read_file", &json!({"path": "notes.txt"}));
    let server = model(move || long(vec![read.clone()]));
    let home = home(&server, Some("steer"));
    let terminal = begin(&home, "/context\rRather tomorrow.\rAt noon.\r");
    terminal.wait_for("> Rather tomorrow.", 1);
    terminal.wait_for("> At noon.", 1);
    terminal.wait_for("After tool: ", 1);
    let shown = leave(terminal, 1);
    assert_eq!(shown.matches(WAITS).count(), 1, "only the command waits: {shown}");
    let turns = server.turns();
    assert_eq!(turns.len(), 2, "{shown}");
    assert_extends(&turns[0].body, &turns[1].body);
    assert_valid_request(&turns[1].body);
    let results = turns[1].trailing_results();
    assert_eq!(results.len(), 1);
    let (before, after) = results[0].1.split_once("\n\n<said-meanwhile mark=").unwrap();
    assert!(before.contains("The harbour opens at six."), "{before}");
    assert!(after.contains("\n\nRather tomorrow.\nAt noon.\n</said-meanwhile mark="), "{after}");
    let log = log(&home);
    assert_eq!(said(&log), ["Begin."]);
    assert!(log[2].1.contains("Rather tomorrow."), "{}", log[2].1);
    // A later process sends the same bytes.
    home.hermes(&["--continue", "-z", "And then?"]).run().success();
    assert_extends(&turns[1].body, &server.last_turn().body);
}

#[test]
fn with_steer_a_message_that_no_result_takes_is_the_next_message() {
    let server = model(|| long(Vec::new()));
    let home = home(&server, Some("steer"));
    let terminal = begin(&home, "Rather tomorrow.\r");
    terminal.wait_for("After user: Rather tomorrow..", 1);
    let shown = leave(terminal, 2);
    assert!(!shown.contains(WAITS) && !shown.contains("not sent"), "{shown}");
    assert_eq!(said(&log(&home)), ["Begin.", "Rather tomorrow."]);
    assert_valid_request(&server.last_turn().body);
}

#[test]
fn a_stop_shows_what_it_does_not_send() {
    for while_busy in ["queue", "steer"] {
        let server = model(|| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
        let home = home(&server, Some(while_busy));
        let terminal = begin(&home, "Rather tomorrow.\r/stop\r");
        terminal.wait_for("not sent: Rather tomorrow.", 1);
        leave(terminal, 1);
        assert_eq!(said(&log(&home)), ["Begin."]);
    }
}

/// The terminal showed it in the middle of the answer, and Ctrl-C dropped it without a word.
#[test]
fn what_is_typed_is_not_in_the_answer_and_a_stop_loses_none_of_it() {
    let server = model(|| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
    let home = home(&server, None);
    let mut terminal = begin(&home, "late tea\runfinished");
    terminal.wait_for(WAITS, 1);
    terminal.wait_for("word", terminal.shown().matches("word").count() + 10);
    let shown = terminal.shown();
    assert!(shown.contains("\n> late tea\r\n") && !shown.contains("unfinished"), "{shown}");
    terminal.interrupt();
    terminal.wait_for("not sent: late tea", 1);
    // The next prompt begins with it.
    terminal.wait_for("unfinished", 1);
    terminal.press("\u{15}/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert_eq!(said(&log(&home)), ["Begin."]);
}

#[test]
fn a_mistyped_command_is_corrected_at_once() {
    let server = model(|| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
    let home = home(&server, None);
    let terminal = begin(&home, "/contxt\r/retry 2\r");
    terminal.wait_for("did you mean /context?", 1);
    terminal.wait_for("wrong arguments; usage: /retry", 1);
    let shown = terminal.shown();
    assert!(!shown.contains("stopped") && shown.matches(WAITS).count() == 1, "{shown}");
    terminal.interrupt();
    leave(terminal, 1);
}
