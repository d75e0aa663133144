//! The optional functions of memory providers. The guest is `tests/guests/scribe`, which writes down what it learns.

use std::time::{Duration, Instant};

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

fn home(server: &Server, config: Value) -> Home {
    let home = Home::with(server);
    home.install_guest("scribe", "scribe", config);
    home.set("memory.provider", json!("scribe"));
    home
}

fn document(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join("data/scribe/documents").join(name)).unwrap_or_default()
}

/// The document once it contains a text.
fn awaited(home: &Home, name: &str, text: &str) -> String {
    let begun = Instant::now();
    loop {
        let found = document(home, name);
        if found.contains(text) {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "{text:?} is missing in {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_recalled_ahead_serves_the_next_turn() {
    let server = Server::answering(|_, number| Reply::text(format!("Answer {number}.")));
    let home = home(&server, json!({"ahead": "tides"}));
    let mut running = home.hermes(&[]).talking().spawn();
    running.say("one");
    running.wait_for_stdout("Answer 0.");
    awaited(&home, "turns.md", "one => Answer 0.");
    // The recall begins when the turn is stored. On a busy machine it can miss the next turn.
    let is_shown = (1..=5).any(|number| {
        std::thread::sleep(Duration::from_millis(500));
        running.say("go on");
        running.wait_for_stdout(&format!("Answer {number}."));
        server.last_turn().last_user_text().contains("tides after one")
    });
    assert!(is_shown, "{:?}", server.last_turn());
    running.wait().success();

    // A single turn has no next one.
    home.hermes(&["-z", "three"]).run().success();
    assert!(!server.last_turn().last_user_text().contains("tides"));
}

#[test]
fn a_provider_learns_what_the_notes_of_another_one_say() {
    let server = Server::answering(|_, number| {
        let note = |arguments: Value| Reply::calls([Call::new(&format!("call_{number}"), "memory", &arguments)]);
        match number {
            0 | 1 => note(json!({"action": "add", "target": "user", "content": "likes tea"})),
            2 => note(json!({"action": "replace", "target": "user", "old_text": "tea", "content": "likes mate"})),
            3 => note(json!({"action": "remove", "target": "user", "old_text": "mate"})),
            _ => Reply::text("Noted."),
        }
    });
    let home = home(&server, json!({}));
    home.hermes(&["-z", "Remember what I drink."]).run().success();
    // What exists already is no write. A process that ends passes on what is left.
    let expected = "builtin Action::Added user: likes tea (was None)\n\
                    builtin Action::Replaced user: likes mate (was Some(\"likes tea\"))\n\
                    builtin Action::Removed user:  (was Some(\"likes mate\"))\n";
    assert_eq!(document(&home, "writes.md"), expected);
}

#[test]
fn a_provider_learns_what_the_user_takes_back() {
    let server = Server::answering(|_, number| Reply::text(format!("Answer {number}.")));
    let home = home(&server, json!({}));
    let mut running = home.hermes(&[]).talking().spawn();
    for (number, text) in ["one", "two"].into_iter().enumerate() {
        running.say(text);
        running.wait_for_stdout(&format!("Answer {number}."));
    }
    awaited(&home, "turns.md", "two => Answer 1.");
    let second = home.messages()[2]["id"].to_string();
    running.say("/rewind");
    let rewinds = awaited(&home, "rewinds.md", "\n");
    assert!(rewinds.trim_end().ends_with(&format!(" {second}")), "{rewinds}, not {second}");
    running.say("three");
    running.wait_for_stdout("Answer 2.");
    awaited(&home, "turns.md", "three => Answer 2.");
    running.wait().success();
    assert_eq!(document(&home, "rewinds.md"), rewinds);
}
