//! The bundled memory `honcho`, against a stand-in for its server (`fixtures/honcho.rs`) and in its mode without one.

use std::time::Duration;

use hermes_tests::{Call, Home, Output, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::fixtures::honcho::StandIn;
use crate::fixtures::service::Service;

/// No output, log, message or stored file may ever contain it.
const KEY: &str = "honcho-key-0123456789abcdef";

fn home(server: &Server, settings: Value) -> Home {
    let home = Home::with(server);
    home.set("memory.provider", json!("honcho"));
    home.set("plugins.entries.honcho", settings);
    home
}

fn served(server: &Server, service: &Service) -> Home {
    home(server, json!({"peerName": "ada", "baseUrl": service.url()}))
}

fn answering() -> Server {
    Server::answering(|_, number| Reply::text(format!("Answer {number}.")))
}

fn say(home: &Home, text: &str, options: &[&str]) -> Output {
    home.hermes(&[&["-z", text][..], options].concat()).env("HONCHO_API_KEY", KEY).run().success()
}

/// The conversation and the key are meant for the user's own server.
#[test]
fn a_misspelt_address_sends_nothing_to_the_default_one() {
    let server = answering();
    let home = home(&server, json!({"peerName": "ada", "base_url": "http://127.0.0.1:9"}));
    let output = home.hermes(&["-z", "My boat is the Albatross."]).env("HONCHO_API_KEY", KEY).run();
    assert!(output.stderr.contains("plugins.entries.honcho.base_url: the plugin has no such key"), "{output}");
    assert!(output.stderr.contains("did you mean `baseUrl`?"), "{output}");
    let refused =
        home.hermes(&["config", "set", "plugins.entries.honcho.Base_Url", "http://127.0.0.1:9"]).run().refused();
    refused.says(&["did you mean `baseUrl`?"]);
    // A plugin that takes no address from its section is only warned about.
    let home = Home::with(&server);
    home.set("memory.provider", json!("chronicle"));
    home.set("plugins.entries.chronicle", json!({"result": 3}));
    let output = home.hermes(&["-z", "Hello."]).run().success();
    assert!(output.stderr.contains("plugins.entries.chronicle.result: the plugin has no such key"), "{output}");
    assert!(output.stderr.contains("did you mean `results`?"), "{output}");
}

#[test]
fn a_conversation_reaches_the_server_and_what_it_knows_comes_back() {
    let backend = StandIn::default();
    let service = backend.serve(0);
    backend.state().key = Some(KEY.to_owned());
    let server = answering();
    let home = served(&server, &service);
    say(&home, "My boat is the Albatross.", &[]);
    let expected = [("ada", "My boat is the Albatross."), ("hermes", "Answer 0.")];
    assert_eq!(backend.said(), expected.map(|(peer, text)| (peer.to_owned(), text.to_owned())));

    let pair = ("hermes".to_owned(), "ada".to_owned());
    backend.state().facts.insert(pair.clone(), vec!["[2026-01-01] ada has a boat named Albatross".to_owned()]);
    backend.state().cards.insert(pair, json!(["IDENTITY: Ada"]));
    let frozen = server.last_turn().system_text();
    let output = say(&home, "What is my boat called?", &[]);
    let sent = server.last_turn().last_user_text().to_owned();
    assert!(sent.contains("ada has a boat named Albatross") && sent.contains("IDENTITY: Ada"), "{sent}");
    assert_eq!(server.last_turn().system_text(), frozen);
    // What was recalled is not stored as something that was said.
    let texts = format!("{:?}", backend.said());
    assert!(texts.contains("What is my boat called?") && !texts.contains("memory-context"), "{texts}");

    assert!(!output.to_string().contains(KEY));
    home.lacks(KEY);
}

#[test]
fn a_server_that_was_down_gets_every_turn_in_order_exactly_once() {
    let backend = StandIn::default();
    let service = backend.serve(0);
    let port = service.port();
    let server = answering();
    let home = served(&server, &service);
    drop(service);
    say(&home, "one", &[]).says(&["honcho", "1 turn waits"]);
    say(&home, "two", &["--continue"]).says(&["2 turns wait for the memory `honcho`"]);
    assert!(backend.said().is_empty());
    let _service = backend.serve(port);
    say(&home, "three", &["--continue"]);
    assert_eq!(backend.texts("ada"), ["one", "two", "three"]);
    // All conversations of a folder share a session.
    let sessions: Vec<Value> = backend.state().messages.iter().map(|message| message["session_id"].clone()).collect();
    assert!(sessions.iter().all(|session| *session == "workspace"), "{sessions:?}");
}

#[test]
fn a_turn_whose_answer_was_lost_is_not_stored_twice() {
    let backend = StandIn::default();
    let service = backend.serve(0);
    backend.state().lost_answers = 1;
    let server = answering();
    let home = served(&server, &service);
    let mut running = home.hermes(&[]).talking().spawn();
    running.say("one");
    running.wait_for_stdout("Answer 0.");
    service.wait_for("write of the first turn", |asked| asked.path.ends_with("/messages"));
    // The process does not live to learn what became of it.
    running.kill();
    say(&home, "two", &["--continue"]);
    assert_eq!(backend.texts("ada"), ["one", "two"]);
}

#[test]
fn what_a_server_refuses_for_good_is_set_aside_and_a_wrong_key_costs_no_turn() {
    let backend = StandIn::default();
    let service = backend.serve(0);
    let server = answering();
    let home = served(&server, &service);
    let fault =
        json!({"detail": [{"type": "value_error", "loc": ["body", "messages", 0], "msg": "not for us", "input": {}}]});
    backend.state().refusal = Some((422, ("server", "honcho"), fault));
    say(&home, "rude", &[]).says(&["honcho", "body.messages.0: not for us", "set aside"]);
    backend.state().refusal = Some((429, ("retry-after", "1"), json!({"detail": "slow down"})));
    say(&home, "soon", &["--continue"]).says(&["slow down", "1 turn waits"]);
    backend.state().refusal = None;
    backend.state().key = Some("another-key-0123456789".to_owned());
    say(&home, "locked", &["--continue"]).says(&["HONCHO_API_KEY is not the right key", "2 turns wait"]);
    backend.state().key = None;
    say(&home, "open", &["--continue"]);
    assert_eq!(backend.texts("ada"), ["soon", "locked", "open"]);
}

#[test]
fn a_slow_dialectic_delays_no_turn_and_serves_a_later_one() {
    let backend = StandIn::default();
    let service = backend.serve(0);
    backend.state().thinking = Duration::from_secs(15);
    backend.state().says = Some("Ada prefers trains.".to_owned());
    let server = answering();
    let home = served(&server, &service);
    let mut running = home.hermes(&[]).talking().spawn();
    running.say("Plan a trip to Cork.");
    running.wait_for_stdout("Answer 0.");
    service.wait_for("question", |asked| asked.path.ends_with("/chat"));
    running.say("What about the evening?");
    running.wait_for_stdout("Answer 1.");
    // The turn did not wait for the dialectic: it has ended without its answer.
    assert!(!server.last_turn().last_user_text().contains("trains"));
    // The answer comes about 15 seconds later; on a busy machine it can miss the next turn.
    let is_shown = (2..=20).any(|number| {
        std::thread::sleep(Duration::from_secs(3));
        running.say(&format!("And on day {number}?"));
        running.wait_for_stdout(&format!("Answer {number}."));
        server.last_turn().last_user_text().contains("About ada: Ada prefers trains.")
    });
    assert!(is_shown, "{:?}", server.last_turn());
    let turns = server.turns();
    assert!(turns.iter().all(|turn| turn.system_text() == turns[0].system_text()));
    running.wait().success();
}

#[test]
fn the_tools_reach_the_server() {
    let backend = StandIn::default();
    let service = backend.serve(0);
    let calls = [
        ("honcho_conclude", json!({"conclusion": "Ada rows on Sundays"})),
        ("honcho_conclude", json!({"list": true, "query": "rowing"})),
        ("honcho_profile", json!({"card": ["IDENTITY: Ada"]})),
        ("honcho_profile", json!({})),
        ("honcho_search", json!({"query": "albatross"})),
        ("honcho_context", json!({})),
        ("honcho_reasoning", json!({"query": "When does Ada row?", "reasoning_level": "minimal"})),
        ("honcho_conclude", json!({"delete_id": "conclusion-0"})),
        ("honcho_conclude", json!({"delete_id": "conclusion-0"})),
    ];
    let count = calls.len();
    let server = Server::answering(move |_, number| match calls.get(number) {
        Some((tool, arguments)) => Reply::calls([Call::new(&format!("call_{number}"), tool, arguments)]),
        None => Reply::text("Done."),
    });
    let home = served(&server, &service);
    backend.state().says = Some("On Sundays.".to_owned());
    backend.state().messages.push(json!({"peer_id": "ada", "content": "The Albatross sails.", "id": "m"}));
    say(&home, "Use your memory.", &[]);
    let turns = server.turns();
    assert_eq!(turns.len(), count + 1);
    let results: Vec<String> = turns[1..]
        .iter()
        .map(|turn| turn.trailing_results().last().map(|(_, text)| (*text).to_owned()).unwrap_or_default())
        .collect();
    for (result, words) in results.iter().zip([
        "conclusion-0",
        "Ada rows on Sundays",
        "card replaced",
        "IDENTITY: Ada",
        "The Albatross sails.",
        "recent_messages",
        "On Sundays.",
        "conclusion deleted",
        "404",
    ]) {
        assert!(result.contains(words), "{words:?} is missing in {result}");
    }
    assert!(backend.state().conclusions.is_empty());
}

#[test]
fn the_local_mode_needs_no_server() {
    let facts = json!({"facts": [{"about": "ada", "text": "Ada rows on Sundays."}], "card": []}).to_string();
    let server = Server::answering(move |body, number| {
        if is_auxiliary(body) {
            return Reply::text(if body.to_string().contains("Answer a question") {
                "On Sundays.".to_owned()
            } else {
                facts.clone()
            });
        }
        let call =
            |tool: &str, arguments: Value| Reply::calls([Call::new(&format!("call_{number}"), tool, &arguments)]);
        let said =
            body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default().to_string();
        match () {
            () if said.contains("Find it") => call("honcho_search", json!({"query": "when do the ferries leave?"})),
            () if said.contains("Keep it") => call("honcho_conclude", json!({"conclusion": "Ada takes the ferry"})),
            () if said.contains("Ask it") => call("honcho_reasoning", json!({"query": "How does Ada take the ferry?"})),
            () => Reply::text("Fine."),
        }
    });
    let home = home(&server, json!({"mode": "local", "peerName": "ada"}));
    say(&home, "My ferry leaves at 07:45.", &[]);
    let result = |text: &str| {
        say(&home, text, &[]);
        let last = server.last_turn();
        last.trailing_results().last().map(|(_, text)| (*text).to_owned()).unwrap_or_default()
    };
    assert!(result("Find it").contains("My ferry leaves at 07:45."));
    assert!(result("Keep it").contains("conclusion kept"));
    assert!(result("Ask it").contains("On Sundays."));
    say(&home, "Where is the ferry?", &[]);
    let sent = server.last_turn().last_user_text().to_owned();
    assert!(sent.contains("Ada takes the ferry"), "{sent}");
}
