//! Turns on their way to a memory provider that fails, and recalls that come late. The guest is `tests/guests/scribe`: it writes
//! each turn on a line of a document, and its configuration says how `sync-turn` fails and what `recall` finds.

use hermes_tests::{Home, Output, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::journal::texts;

fn home(server: &Server, config: Value) -> Home {
    let home = Home::with(server);
    home.install_guest("scribe", "scribe", config);
    home.set("memory.provider", json!("scribe"));
    home
}

fn answering() -> Server {
    Server::answering(|_, number| Reply::text(format!("Answer {number}.")))
}

/// The user's messages that the provider has stored, in order.
fn stored(home: &Home) -> Vec<String> {
    let path = home.path().join("data/scribe/documents/turns.md");
    let turns = std::fs::read_to_string(path).unwrap_or_default();
    let user = |line: &str| line.split_once(": ").unwrap().1.split_once(" => ").unwrap().0.to_owned();
    turns.lines().map(user).collect()
}

fn say(home: &Home, text: &str, options: &[&str]) -> Output {
    home.hermes(&[&["-z", text][..], options].concat()).run().success()
}

#[test]
fn a_provider_that_was_down_gets_every_turn_in_order_exactly_once() {
    let server = answering();
    let home = home(&server, json!({"sync": "unavailable"}));
    say(&home, "one", &[]).says(&["scribe", "the archive is closed", "1 turn waits"]);
    say(&home, "two", &["--continue"]).says(&["2 turns wait for the memory `scribe`", "at its next start"]);
    say(&home, "elsewhere", &[]).says(&["3 turns wait"]);
    assert_eq!(stored(&home), Vec::<String>::new());
    let info = home.hermes(&["plugins", "info", "scribe"]).run().success();
    assert!(info.stdout.contains("3 turns since") && info.stdout.contains("the archive is closed"), "{info}");

    home.set("plugins.entries.scribe", json!({}));
    // A new session delivers what waits, also of the earlier sessions.
    let output = say(&home, "three", &[]);
    assert!(!output.stderr.contains("scribe"), "{output}");
    let stored = stored(&home);
    let at = |text: &str| stored.iter().position(|stored| stored == text).unwrap_or_else(|| panic!("{stored:?}"));
    assert!(stored.len() == 4 && at("one") < at("two") && at("elsewhere") < 4 && at("three") < 4, "{stored:?}");
    let info = home.hermes(&["plugins", "info", "scribe"]).run().success();
    assert!(!info.stdout.contains("turns since"), "{info}");
}

#[test]
fn a_killed_process_loses_no_turn() {
    let server = answering();
    let home = home(&server, json!({"sync": "slow"}));
    let mut running = home.hermes(&[]).talking().spawn();
    running.say("one");
    running.wait_for_stdout("Answer 0.");
    // The turn has ended once the next one is answered; the provider still stores the first.
    running.say("two");
    running.wait_for_stdout("Answer 1.");
    running.say("three");
    running.wait_for_stdout("Answer 2.");
    running.kill();
    assert_eq!(stored(&home), Vec::<String>::new());
    home.set("plugins.entries.scribe", json!({}));
    say(&home, "four", &["--continue"]);
    let said = texts(&home.messages(), "user").len();
    let stored = stored(&home);
    // The kill may have come before the third answer was stored.
    assert!(stored.len() >= said - 1 && stored.starts_with(&["one".to_owned(), "two".to_owned()]), "{stored:?}");
    assert_eq!(stored.last().map(String::as_str), Some("four"));
}

#[test]
fn a_crashing_provider_loses_no_turn_either() {
    let server = answering();
    let home = home(&server, json!({"sync": "panic"}));
    say(&home, "one", &[]).says(&["scribe", "the ink is dry", "1 turn waits"]);
    home.set("plugins.entries.scribe", json!({}));
    say(&home, "two", &["--continue"]);
    assert_eq!(stored(&home), ["one", "two"]);
}

#[test]
fn a_rejected_turn_is_set_aside_and_named_and_later_turns_go_on() {
    for (kind, remedy) in [("invalid-input", "plugins logs"), ("failed", "plugins logs"), ("denied", "plugins grant")] {
        let server = answering();
        let home = home(&server, json!({"sync": kind, "only": "rude"}));
        let output = say(&home, "a rude word", &[]).says(&["scribe", "the archive is closed", "set aside", remedy]);
        assert!(!output.stderr.contains("waits"), "{output}");
        let log = home.hermes(&["plugins", "logs", "scribe"]).run().success();
        assert!(log.stdout.contains("the archive is closed"), "{log}");
        say(&home, "a kind word", &["--continue"]);
        assert_eq!(stored(&home), ["a kind word"]);
        let info = home.hermes(&["plugins", "info", "scribe", "--json"]).run().success();
        let info: Value = serde_json::from_str(&info.stdout).unwrap();
        assert_eq!(info["undelivered"]["set_aside"]["count"], 1, "{info:#}");
        assert_eq!(info["undelivered"]["waiting"], Value::Null, "{info:#}");
        let doctor = home.hermes(&["plugins", "doctor"]).run();
        assert!(doctor.stdout.contains("set aside") && doctor.stdout.contains("1 turn since"), "{doctor}");
        // Once the cause is put right, the turn is sent again, and once.
        home.set("plugins.entries.scribe", json!({}));
        let status = home.hermes(&["memory", "status"]).run().success();
        assert!(status.stdout.contains("hermes memory retry"), "{status}");
        let retried = home.hermes(&["memory", "retry"]).run().success();
        assert_eq!(
            retried.stdout,
            "1 turn for `scribe`: a session that runs sends them again after its next turn, else the next one that starts\n"
        );
        say(&home, "later", &["--continue"]);
        assert_eq!(stored(&home), ["a kind word", "a rude word", "later"]);
        home.hermes(&["memory", "retry", "scribe"]).run().success().says(&["no turn waits for `scribe`"]);
    }
}

#[test]
fn what_is_recalled_late_serves_the_next_turn() {
    let server = answering();
    let home = home(&server, json!({"recall_ms": 3_000, "memories": ["Ada likes tea."]}));
    let output = home.hermes(&[]).stdin("one\ntwo\n").run().success();
    output.says(&["the memory `scribe` is slow"]);
    let turns = server.turns();
    assert!(!turns[0].last_user_text().contains("tea"), "{}", turns[0].last_user_text());
    let second = turns[1].last_user_text();
    assert!(second.contains("recalled for an earlier message") && second.contains("Ada likes tea."), "{second}");
}

#[test]
fn a_memory_is_sent_once_while_the_model_sees_it() {
    let server = answering();
    let home = home(&server, json!({"memories": ["Ada likes tea."]}));
    for (number, text) in ["one", "two", "three"].into_iter().enumerate() {
        say(&home, text, if number == 0 { &[] } else { &["--continue"] });
        assert_eq!(server.last_turn().body.to_string().matches("Ada likes tea.").count(), 1);
    }
    // A memory that has changed is sent.
    home.set("plugins.entries.scribe", json!({"memories": ["Ada likes green tea."]}));
    say(&home, "four", &["--continue"]);
    assert!(server.last_turn().last_user_text().contains("green tea"));
}

#[test]
fn conversations_from_before_the_provider_was_selected_are_loaded_on_request() {
    let server = answering();
    let home = Home::with(&server);
    home.install_guest("scribe", "scribe", json!({}));
    say(&home, "one", &[]);
    say(&home, "two", &["--continue"]);
    say(&home, "elsewhere", &[]);
    let load = |options: &[&str]| home.hermes(&[&["memory", "load"][..], options].concat()).run();
    let refused = load(&["--yes"]);
    assert!(!refused.status.success() && refused.stderr.contains("hermes memory setup"), "{refused}");

    home.set("memory.provider", json!("scribe"));
    load(&["--dry-run"]).success().says(&["3 turns of 2 sessions", "plugins info scribe"]);
    // Without a terminal and without --yes, nothing is sent.
    assert!(!load(&[]).status.success());
    say(&home, "three", &[]);
    assert_eq!(stored(&home), ["three"]);

    assert!(load(&["--yes"]).success().stdout.contains("4 turns for `scribe`"));
    say(&home, "four", &[]);
    let stored = stored(&home);
    let at = |text: &str| stored.iter().position(|stored| stored == text).unwrap_or_else(|| panic!("{stored:?}"));
    assert!(at("one") < at("two") && at("elsewhere") > 0 && at("four") > 0, "{stored:?}");
}
