//! Single turns: streaming, tools, memory, resuming.

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::json;

use crate::fixtures::journal::{assert_logged, texts};

const ANSWER: &str = "The harbour office closes at five.";

#[test]
fn an_answer_is_shown_while_it_streams() {
    let server = Server::scripted([Reply::text(ANSWER).hang_after(3)]);
    let home = Home::with(&server);
    let running = home.hermes(&["chat", "-q", "When does the office close?"]).spawn();
    // The server holds back the rest, so this output was streamed.
    running.wait_for_stdout("The harb");
    running.kill();
    assert_eq!(server.last_turn().body["stream"], true);
}

#[test]
fn a_one_shot_turn_prints_only_the_answer_and_stores_the_conversation() {
    let server = Server::scripted([Reply::text(ANSWER)]);
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "When does the office close?"]).run().success();
    assert_eq!(output.stdout, format!("{ANSWER}\n"));

    let request = server.last_turn();
    assert_valid_request(&request.body);
    assert_eq!(request.body["model"], "scripted-model");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {}", hermes_tests::KEY).as_str()));
    let log = home.messages();
    assert_eq!(texts(&log, "user"), ["When does the office close?"]);
    assert_eq!(texts(&log, "assistant"), [ANSWER]);
    let sessions = home.sessions_json();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["message_count"], 2);
    for key in ["id", "title", "source", "started_at"] {
        assert!(sessions[0].get(key).is_some(), "`{key}` is missing in {}", sessions[0]);
    }
}

#[test]
fn piped_input_is_appended_to_what_is_asked() {
    let server = Server::scripted([Reply::text(ANSWER)]);
    let home = Home::with(&server);
    home.hermes(&["-z", "Sum this up:"]).stdin("berth one\nberth two\n").run().success();
    let request = server.last_turn();
    let prompt = request.last_user_text();
    assert!(prompt.starts_with("Sum this up:") && prompt.contains("berth one\nberth two"), "{prompt}");
}

#[test]
fn chat_with_a_question_answers_it() {
    let server = Server::scripted([Reply::text(ANSWER)]);
    let home = Home::with(&server);
    let output = home.hermes(&["chat", "-q", "When does the office close?"]).run().success();
    assert!(output.stdout.contains(ANSWER), "{output}");
}

#[test]
fn a_conversation_can_be_piped_in_line_by_line() {
    let server = Server::scripted([Reply::text("First answer."), Reply::text("Second answer.")]);
    let home = Home::with(&server);
    let output = home.hermes(&[]).stdin("one\n/context\ntwo\n/exit\n").run().success();
    assert!(output.stdout.contains("First answer.") && output.stdout.contains("Second answer."), "{output}");
    assert_extends(&server.turns()[0].body, &server.turns()[1].body);
    assert_eq!(texts(&home.messages(), "user"), ["one", "two"]);
}

#[test]
fn calls_of_one_reply_run_in_their_components_and_answer_in_order() {
    let entry = "The harbour office closes at five.";
    let server = Server::scripted([
        Reply::calls([
            Call::new("call_read", "read_file", &json!({"path": "notes.txt"})),
            Call::new("call_keep", "memory", &json!({"action": "add", "target": "memory", "content": entry})),
        ]),
        Reply::text("Kept."),
    ]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "office hours: nine to five\n");
    let output = home.hermes(&["-z", "Read notes.txt and remember when the office closes."]).run().success();
    assert_eq!(output.stdout, "Kept.\n");

    let turns = server.turns();
    assert_eq!(turns.len(), 2);
    turns.iter().for_each(|request| assert_valid_request(&request.body));
    assert_extends(&turns[0].body, &turns[1].body);
    let results = turns[1].trailing_results();
    assert_eq!(results.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["call_read", "call_keep"]);
    assert!(results[0].1.contains("office hours: nine to five"), "{}", results[0].1);
    assert!(home.read("memories/MEMORY.md").contains(entry));
    let log = home.messages();
    assert_logged(&log, &turns[1]);
    assert_eq!(log.len(), 5);
}

#[test]
fn a_call_that_cannot_run_gets_an_error_result() {
    let server = Server::scripted([
        Reply::calls([
            Call::new("call_unknown", "no_such_tool", &json!({})),
            Call::new("call_missing", "read_file", &json!({"path": "missing.txt"})),
            Call::new("call_outside", "read_file", &json!({"path": "../home/config.yaml"})),
            Call::new("call_empty", "read_file", &json!({})),
        ]),
        Reply::text("None of these worked."),
    ]);
    let home = Home::with(&server);
    home.hermes(&["-z", "Try these."]).run().success();
    let request = server.last_turn();
    assert_valid_request(&request.body);
    let results = request.trailing_results();
    assert_eq!(results.len(), 4);
    assert!(results[0].1.contains("no_such_tool"), "{}", results[0].1);
    assert!(results[1].1.contains("missing.txt"), "{}", results[1].1);
    assert!(!results[2].1.contains("scripted-model"), "a file outside the workspace was read: {}", results[2].1);
    assert!(results.iter().all(|(_, content)| !content.is_empty()));
}

#[test]
fn a_continued_conversation_begins_with_the_sent_bytes() {
    let server = Server::scripted([
        Reply::calls([Call::new("call_1", "read_file", &json!({"path": "notes.txt"}))]),
        Reply::text("It says hello."),
        Reply::text("Still hello."),
        Reply::text("And again."),
    ]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "hello");
    home.hermes(&["-z", "Read notes.txt."]).run().success();
    home.hermes(&["-z", "And now?", "--continue"]).run().success();
    let id = home.newest_session();
    home.hermes(&["-z", "Once more.", "--resume", &id]).run().success();

    let turns = server.turns();
    assert_eq!(turns.len(), 4);
    for pair in turns.windows(2) {
        assert_valid_request(&pair[1].body);
        assert_extends(&pair[0].body, &pair[1].body);
    }
    assert_eq!(home.sessions_json().len(), 1);
    assert_eq!(texts(&home.messages(), "user"), ["Read notes.txt.", "And now?", "Once more."]);
}

#[test]
fn new_memory_appears_in_new_sessions_but_not_in_running_ones() {
    let entry = "The user sails on Sundays.";
    let server = Server::scripted([
        Reply::calls([Call::new("call_1", "memory", &json!({"action": "add", "target": "user", "content": entry}))]),
        Reply::text("Noted."),
        Reply::text("Same session."),
        Reply::text("New session."),
    ]);
    let home = Home::with(&server);
    home.hermes(&["-z", "I sail on Sundays."]).run().success();
    home.hermes(&["-z", "Go on.", "--continue"]).run().success();
    home.hermes(&["-z", "What do I do on Sundays?"]).run().success();
    let prompts: Vec<String> = server.turns().iter().map(|request| request.messages()[0].to_string()).collect();
    assert!(home.read("memories/USER.md").contains(entry));
    assert_eq!(prompts[0], prompts[2], "the prompt of a running session changed");
    assert!(!prompts[2].contains(entry) && prompts[3].contains(entry), "{}", prompts[3]);
}

#[test]
fn continuing_stays_in_its_folder() {
    let server = Server::answering(|_, _| Reply::text("Yes."));
    let home = Home::with(&server);
    home.hermes(&["-z", "about the harbour"]).run().success();
    home.write_workspace("elsewhere/file.txt", "");
    let elsewhere = home.workspace().join("elsewhere");
    home.hermes(&["-z", "about the station", "--continue"]).current_dir(&elsewhere).run();
    let mixed = server.turns().iter().any(|request| {
        let all = request.body["messages"].to_string();
        all.contains("about the harbour") && all.contains("about the station")
    });
    assert!(!mixed, "a conversation of another folder was continued");
}

#[test]
fn resuming_an_unknown_session_names_it() {
    let server = Server::scripted([]);
    let home = Home::with(&server);
    home.hermes(&["-z", "hi", "--resume", "no-such-session"]).run().refused().says(&["no-such-session"]);
    assert!(server.requests().is_empty());
}

#[test]
fn a_temporarily_failed_request_is_repeated_unchanged() {
    let server = Server::scripted([
        Reply::error(503, "overloaded").header("retry-after", "0"),
        Reply::error(429, "slow down").header("retry-after", "0"),
        Reply::text(ANSWER),
    ]);
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "When does the office close?"]).run().success();
    assert_eq!(output.stdout, format!("{ANSWER}\n"));
    let turns = server.turns();
    assert_eq!(turns.len(), 3);
    assert!(turns.iter().all(|request| request.raw == turns[0].raw), "the request changed between attempts");
    assert_eq!(texts(&home.messages(), "user").len(), 1);
}

#[test]
fn an_unstreamed_answer_to_a_stream_request_is_accepted() {
    let reply = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "scripted-model",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
    });
    let server = Server::scripted([Reply::json(200, &reply)]);
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "When does the office close?"]).run().success();
    assert_eq!(output.stdout, format!("{ANSWER}\n"));
}

#[test]
fn an_endpoint_given_on_the_command_line_wins_over_the_configuration() {
    let configured = Server::scripted([]);
    let given = Server::scripted([Reply::text(ANSWER)]);
    let home = Home::with(&configured);
    home.hermes(&["-z", "hi", "--base-url", &given.url(), "--model", "other-model"]).run().success();
    assert!(configured.requests().is_empty());
    let request = given.last_turn();
    assert_eq!(request.body["model"], "other-model");
    // A key is sent only to its own endpoint.
    assert!(!format!("{:?}", request.headers).contains(hermes_tests::KEY), "the key went to another host");
}

#[test]
fn without_configuration_the_offline_model_answers_and_introduces_itself() {
    let home = Home::new();
    let output = home.hermes(&["-z", "hello"]).run().success();
    assert!(!output.stdout.trim().is_empty(), "{output}");
    assert!(format!("{}{}", output.stdout, output.stderr).to_lowercase().contains("offline"), "{output}");
    assert_eq!(home.messages().len(), 2);
}

#[test]
fn calls_that_are_cut_off_are_neither_completed_nor_run_and_the_user_sees_it() {
    let half = |id: &str, finish: &str| {
        let function = json!({"name": "write_file", "arguments": "{\"path\":\"half.txt\",\"content\":\"begun"});
        let call = json!({"index": 0, "id": id, "type": "function", "function": function});
        let event = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": finish}]});
        Reply::raw(200, "text/event-stream", format!("data: {event}\n\ndata: [DONE]\n\n"))
    };
    let server =
        Server::scripted([half("call_cut", "length"), half("call_wrong", "tool_calls"), Reply::text("Sorry.")]);
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "Write it."]).run().exits(9);
    assert_eq!(output.stdout, "");
    output.says(&["the model's output limit before its tool call was complete; it was not run"]);
    let output = home.hermes(&["--continue", "-z", "Again."]).run().success();
    assert_eq!(output.stdout, "Sorry.\n");
    let log = home.messages();
    let [refused] = texts(&log, "tool")[..] else { panic!("{log:?}") };
    assert!(refused.contains("was not run, because its arguments are not a JSON object"), "{refused}");
    assert!(!home.workspace().join("half.txt").exists());
    server.turns().iter().for_each(|request| assert_valid_request(&request.body));
}
