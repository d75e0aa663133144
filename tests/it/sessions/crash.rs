//! After a kill, a disconnect or an interrupt, acknowledged messages survive and the conversation can continue.
//!
//! A message counts as acknowledged when a request with it has reached the server.

use std::time::Duration;

use hermes_tests::oracle::{assert_fits, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Server, is_auxiliary};
use serde_json::json;

use crate::fixtures::journal::{assert_logged, long_text, texts};

/// A turn in the folder's conversation; the first turn starts it.
fn turn(text: &str, first: bool) -> Vec<&str> {
    if first { vec!["-z", text] } else { vec!["-z", text, "--continue"] }
}

#[test]
fn after_a_kill_the_conversation_continues_without_the_partial_reply() {
    const ROUNDS: usize = 7;
    let half = "This reply is never told to its end.";
    // In each round one reply stops after so many frames, and the next is complete.
    let replies = (0..ROUNDS).flat_map(|round| {
        [Reply::text(format!("{half} {round}")).hang_after(round), Reply::text(format!("Answer {round}."))]
    });
    let server = Server::scripted(replies);
    let home = Home::with(&server);
    for round in 0..ROUNDS {
        let question = format!("Question {round}?");
        let running = home.hermes(&[&turn(&question, round == 0)[..], &["--stream-json"]].concat()).spawn();
        server.wait_for_faults(round + 1);
        // The first frame has no text.
        if let Some(piece) = round.checked_sub(2).and_then(|piece| half.get(8 * piece..8 * (piece + 1))) {
            running.wait_for_stdout(piece);
        }
        running.kill();
        let before = server.last_turn();
        assert_logged(&home.messages(), &before);

        home.hermes(&["-z", &format!("Again {round}."), "--continue"]).run().success();
        let after = server.last_turn();
        assert_valid_request(&after.body);
        let log = home.messages();
        assert_logged(&log, &after);
        assert_eq!(texts(&log, "user").len(), 2 * (round + 1));
        assert!(!texts(&log, "assistant").contains(&format!("{half} {round}").as_str()));
    }
}

#[test]
fn killed_while_tools_run_every_call_has_a_result_when_it_goes_on() {
    const ROUNDS: usize = 12;
    let server = Server::answering(|body, number| {
        let messages = body["messages"].as_array().unwrap();
        if messages.last().unwrap()["content"].as_str().is_some_and(|text| text.starts_with("Work")) {
            let id = |name: &str| format!("call_{name}_{number}");
            Reply::calls([
                Call::new(
                    &id("write"),
                    "write_file",
                    &json!({"path": format!("{number}.txt"), "content": "x".repeat(5_000)}),
                ),
                Call::new(
                    &id("keep"),
                    "memory",
                    &json!({"action": "add", "target": "memory", "content": format!("Note {number}.")}),
                ),
                Call::new(&id("find"), "search_files", &json!({"pattern": "x+"})),
            ])
        } else {
            Reply::text("Done.")
        }
    });
    let home = Home::with(&server);
    for round in 0..ROUNDS {
        let seen = server.requests().len();
        let question = format!("Work {round}.");
        let running = home.hermes(&turn(&question, round == 0)).spawn();
        server.wait_for_requests(seen + 1);
        // Spread the kills over the duration of three calls and beyond.
        std::thread::sleep(Duration::from_millis(round as u64 * 9));
        running.kill();
        let before = server.last_turn();
        assert_logged(&home.messages(), &before);

        home.hermes(&["-z", &format!("Go on {round}."), "--continue"]).run().success();
        let after = server.last_turn();
        assert_valid_request(&after.body);
        let log = home.messages();
        assert_logged(&log, &after);
        assert_eq!(texts(&log, "user").len(), 2 * (round + 1));
    }
}

#[test]
fn killed_while_a_tool_computes_its_call_is_closed_by_appending() {
    let server = Server::scripted([
        Reply::calls([
            Call::new("call_read", "read_file", &json!({"path": "notes.txt"})),
            Call::new("call_spin", "poke", &json!({"mode": "loop"})),
        ]),
        Reply::text("Going on."),
    ]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "a note");
    home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
    home.set("context.engine", json!("hostile"));
    // Only the interrupt ends it.
    home.set("plugins.settings.hostile.limits", json!({ "tool_time": "600min", "cpu": "600min" }));
    let running = home.hermes(&["-z", "Poke it."]).spawn();
    server.wait_for_finished(1);
    std::thread::sleep(Duration::from_secs(1));
    running.kill();
    let stored = home.messages();
    home.hermes(&["-z", "And now?", "--continue"]).run().success();
    let request = server.last_turn();
    assert_valid_request(&request.body);
    let log = home.messages();
    assert_logged(&log, &request);
    assert_eq!(log[..stored.len()], stored, "what was stored has changed");
    let spun = log.iter().find(|message| message["tool_call_id"] == "call_spin").unwrap();
    assert!(spun["content"].as_str().unwrap().contains("interrupted"), "{spun}");
}

#[test]
fn killed_during_compaction_nothing_that_was_sent_is_lost() {
    const WINDOW: usize = 12_000;
    const ROUNDS: usize = 14;
    // Every other summary never arrives, so that a kill hits the work on it.
    let server = Server::answering(|body, number| match (is_auxiliary(body), number % 2) {
        (true, 0) => Reply::text("A summary that stops").hang_after(2),
        (true, _) => Reply::text("The user reports delays; the assistant counts them."),
        (false, _) => Reply::text(long_text("answer", number)).in_steps_of(100),
    });
    let home = Home::with(&server);
    home.set("model.context_length", json!(WINDOW));
    for round in 0..ROUNDS {
        let seen = server.requests().len();
        let question = long_text("turn", round);
        let running = home.hermes(&turn(&question, round == 0)).spawn();
        server.wait_for_requests(seen + 1);
        std::thread::sleep(Duration::from_millis(round as u64 % 7 * 15));
        running.kill();
        home.hermes(&["-z", &long_text("again", round), "--continue"]).run().success();
        let last = server.last_turn();
        assert_valid_request(&last.body);
        assert_fits(&last.body, WINDOW);
    }

    let log = home.messages();
    let users = texts(&log, "user");
    for request in server.turns() {
        let prompt = request.last_user_text();
        assert!(users.iter().any(|logged| prompt.starts_with(logged)), "sent, but not in the log: {prompt}");
    }
    for round in 0..ROUNDS {
        assert!(users.contains(&long_text("again", round).as_str()), "`again {round}` was answered and is gone");
    }
    assert!(
        server.turns().windows(2).any(|pair| pair[1].messages().len() < pair[0].messages().len()),
        "nothing was compacted"
    );
}

#[test]
fn a_truncated_reply_is_not_stored_as_complete() {
    let half = "The first half and the second half.";
    let server = Server::answering(move |body, _| {
        let prompt = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        if prompt == "Tell me." { Reply::text(half).disconnect_after(3) } else { Reply::text("Whole again.") }
    });
    let home = Home::with(&server);
    home.hermes(&["-z", "Tell me."]).run().refused();
    home.hermes(&["-z", "And now?", "--continue"]).run().success();
    let request = server.last_turn();
    assert_valid_request(&request.body);
    let log = home.messages();
    assert_logged(&log, &request);
    assert_eq!(texts(&log, "user"), ["Tell me.", "And now?"]);
    assert!(!texts(&log, "assistant").contains(&half));
}

#[test]
fn calls_of_a_reply_that_breaks_off_do_not_run() {
    let server = Server::answering(|body, _| {
        let prompt = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        let call = Call::new("call_1", "write_file", &json!({"path": "made.txt", "content": "made"}));
        if prompt == "Write." {
            // One call is complete, the reply is not.
            Reply::calls([call, Call::new("call_2", "read_file", &json!({"path": "made.txt"}))]).disconnect_after(10)
        } else {
            Reply::text("Nothing was written.")
        }
    });
    let home = Home::with(&server);
    home.hermes(&["-z", "Write."]).run().refused();
    assert!(!home.workspace().join("made.txt").exists(), "a call of half a reply was run");
    home.hermes(&["-z", "And now?", "--continue"]).run().success();
    assert_valid_request(&server.last_turn().body);
}

#[test]
fn an_interrupt_stops_the_reply_at_once_and_leaves_a_valid_conversation() {
    let server = Server::scripted([Reply::text("An answer without end").hang_after(2), Reply::text("Here again.")]);
    let home = Home::with(&server);
    let running = home.hermes(&["-z", "Go on for ever.", "--stream-json"]).spawn();
    running.wait_for_stdout("An answe");
    running.interrupt();
    running.wait().exits(130);
    home.hermes(&["-z", "Are you there?", "--continue"]).run().success();
    let request = server.last_turn();
    assert_valid_request(&request.body);
    assert_logged(&home.messages(), &request);
    assert_eq!(texts(&home.messages(), "user"), ["Go on for ever.", "Are you there?"]);
}

#[test]
fn an_interrupt_stops_a_tool_at_once() {
    let server = Server::scripted([
        Reply::calls([Call::new("call_spin", "poke", &json!({"mode": "loop"}))]),
        Reply::text("Here again."),
    ]);
    let home = Home::with(&server);
    home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
    home.set("context.engine", json!("hostile"));
    // Only the interrupt ends it.
    home.set("plugins.settings.hostile.limits", json!({ "tool_time": "600min", "cpu": "600min" }));
    let running = home.hermes(&["-z", "Poke it."]).spawn();
    server.wait_for_finished(1);
    std::thread::sleep(Duration::from_secs(1));
    running.interrupt();
    running.wait();
    home.hermes(&["-z", "Are you there?", "--continue"]).run().success();
    let request = server.last_turn();
    assert_valid_request(&request.body);
    assert_logged(&home.messages(), &request);
}

#[test]
fn a_session_in_use_is_not_continued_by_another_process() {
    let server = Server::answering(|body, _| {
        let prompt = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        if prompt == "Wait here." { Reply::text("Waiting").hang_after(2) } else { Reply::text("Yes.") }
    });
    let home = Home::with(&server);
    home.hermes(&["-z", "Begin."]).run().success();
    let first = home.hermes(&["-z", "Wait here.", "--continue"]).spawn();
    server.wait_for_faults(1);
    home.hermes(&["-z", "Me too.", "--continue"]).run().refused().exits(7).says(&["in use"]);
    first.kill();
    // The lease ends with its process.
    home.hermes(&["-z", "Now me.", "--continue"]).run().success();
    let request = server.last_turn();
    assert_valid_request(&request.body);
    assert_eq!(texts(&home.messages(), "user"), ["Begin.", "Wait here.", "Now me."]);
}
