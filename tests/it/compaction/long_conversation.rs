//! A conversation longer than the window, with a process per turn, loses nothing.

use hermes_tests::oracle::{assert_fits, assert_valid_request, tokens};
use hermes_tests::{Call, Home, Reply, Request, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::fixtures::journal::{long_text, texts};

const WINDOW: usize = 12_000;
const TURNS: usize = 20;

/// Answers at length; turns 4, 9 and 14 read a file first.
fn partner(body: &Value, _: usize) -> Reply {
    if is_auxiliary(body) {
        return Reply::text(
            "The user reports delays of ferries, berth by berth; the assistant keeps count. Nothing is open.",
        );
    }
    let messages = body["messages"].as_array().unwrap();
    let prompt = messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap();
    let number = turn_of(prompt);
    let answered_call = messages.last().unwrap()["role"] == "tool";
    if number % 5 == 4 && !answered_call {
        Reply::calls([Call::new(&format!("call_{number}"), "read_file", &json!({"path": "timetable.txt"}))])
    } else {
        Reply::text(long_text("answer", number)).in_steps_of(200)
    }
}

/// `On turn 7, line 0: …`
fn turn_of(prompt: &str) -> usize {
    let digits =
        prompt.strip_prefix("On turn ").and_then(|rest| rest.split(',').next()).and_then(|digits| digits.parse().ok());
    digits.unwrap_or_else(|| panic!("no turn of this test: {prompt}"))
}

fn converse(home: &Home) {
    for number in 0..TURNS {
        let text = long_text("turn", number);
        let arguments = ["-z", text.as_str(), "--continue"];
        let arguments = if number == 0 { &arguments[..2] } else { &arguments[..] };
        let output = home.hermes(arguments).run().success();
        assert_eq!(output.stdout.trim_end(), long_text("answer", number), "turn {number}");
    }
}

fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.set("model.context_length", json!(WINDOW));
    home.write_workspace("timetable.txt", long_text("the timetable", 0));
    home
}

fn compactions(turns: &[Request]) -> usize {
    turns.windows(2).filter(|pair| pair[1].messages().len() < pair[0].messages().len()).count()
}

#[test]
fn twenty_long_turns_stay_in_a_small_window_and_in_the_log() {
    let server = Server::answering(partner);
    let home = home(&server);
    converse(&home);

    for request in &server.requests() {
        if !request.is_auxiliary() {
            assert_valid_request(&request.body);
        }
        assert_fits(&request.body, WINDOW);
    }
    let turns = server.turns();
    let said: usize = (0..TURNS).map(|n| long_text("turn", n).len() + long_text("answer", n).len()).sum();
    assert!(said / 4 > WINDOW, "the test says too little to need a compaction");
    assert!(
        compactions(&turns) > 0,
        "nothing was compacted; the last request has {} tokens",
        tokens(&turns.last().unwrap().body)
    );
    for (number, request) in
        turns.iter().filter(|request| request.messages().last().unwrap()["role"] == "user").enumerate()
    {
        assert!(
            request.last_user_text().starts_with(&long_text("turn", number)),
            "turn {number} was not sent verbatim"
        );
    }
    assert!(turns.iter().all(|request| request.messages()[0] == turns[0].messages()[0]), "the system prompt changed");

    let log = home.messages();
    assert_eq!(texts(&log, "user"), (0..TURNS).map(|n| long_text("turn", n)).collect::<Vec<_>>());
    let answers: Vec<&str> = texts(&log, "assistant").into_iter().filter(|text| !text.is_empty()).collect();
    assert_eq!(answers, (0..TURNS).map(|n| long_text("answer", n)).collect::<Vec<_>>());
    assert_eq!(texts(&log, "tool").len(), TURNS / 5);
    assert_eq!(home.sessions_json().len(), 1);
}

#[test]
fn a_failing_summary_model_does_not_end_the_conversation() {
    let server = Server::answering(|body, number| {
        if is_auxiliary(body) { Reply::error(400, "no summaries today") } else { partner(body, number) }
    });
    let home = home(&server);
    converse(&home);
    let turns = server.turns();
    for request in &turns {
        assert_valid_request(&request.body);
        assert_fits(&request.body, WINDOW);
    }
    assert!(compactions(&turns) > 0);
    assert_eq!(texts(&home.messages(), "user").len(), TURNS);
}

#[test]
fn a_compacted_conversation_can_be_resumed_by_id() {
    let server = Server::answering(partner);
    let home = home(&server);
    converse(&home);
    let text = long_text("turn", TURNS);
    home.hermes(&["-z", &text, "--resume", &home.newest_session()]).run().success();
    let last = server.last_turn();
    assert_valid_request(&last.body);
    assert_fits(&last.body, WINDOW);
    assert_eq!(texts(&home.messages(), "user").len(), TURNS + 1);
}
