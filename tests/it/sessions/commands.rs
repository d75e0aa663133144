//! Commands of the chat that change the session: rewind, branch, model, engine.

use hermes_tests::{Home, Reply, Server};

#[test]
fn rewind_model_and_engine_take_effect_with_the_next_message() {
    let server = Server::scripted(["first", "second", "third"].map(Reply::text));
    let home = Home::with(&server);
    let lines = "one\ntwo\n/rewind\n/model other-model\n/engine lossless\nthree\n/exit\n";
    let output = home.hermes(&[]).stdin(lines).run().success();
    assert!(output.stdout.contains("removed `two` and everything after it"), "{output}");
    assert!(output.stdout.contains("other-model · lossless"), "{output}");

    let request = server.last_turn();
    assert_eq!(request.body["model"], "other-model");
    let sent = request.body["messages"].to_string();
    assert!(sent.contains("one") && sent.contains("three") && !sent.contains("two"), "{sent}");
    assert_eq!(home.sessions_json()[0]["message_count"], 4);
}

#[test]
fn a_branch_continues_and_the_other_session_stays_as_it_is() {
    let server = Server::scripted(["first", "second"].map(Reply::text));
    let home = Home::with(&server);
    let output = home.hermes(&[]).stdin("one\n/branch\ntwo\n/exit\n").run().success();
    assert!(output.stdout.contains("continuing in a copy, session"), "{output}");
    assert_eq!(home.sessions_json().len(), 2, "{output}");
    let sent = server.last_turn().body["messages"].to_string();
    assert!(sent.contains("one") && sent.contains("first") && sent.contains("two"), "{sent}");
}

#[test]
fn a_command_that_cannot_be_carried_out_changes_nothing_and_says_why() {
    let server = Server::scripted(["first", "second"].map(Reply::text));
    let home = Home::with(&server);
    let lines = "/rewind\none\n/rewind 5\n/rewind all\n/engine no-such-engine\n/branch off\ntwo\n/exit\n";
    let output = home.hermes(&[]).stdin(lines).run().success();
    for text in [
        "the conversation is empty, so there is nothing to rewind",
        "the conversation has only 1 turn, so nothing was rewound",
        "usage: /rewind [TURNS]",
        "no-such-engine",
        "usage: /branch",
    ] {
        assert!(output.stderr.contains(text), "`{text}` is not in\n{output}");
    }
    let sent = server.last_turn().body["messages"].to_string();
    assert!(sent.contains("one") && sent.contains("first") && sent.contains("two"), "{sent}");
}
