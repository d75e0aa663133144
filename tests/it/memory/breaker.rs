//! A memory provider that hangs, and what a model repeats of what was recalled.

use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

fn status(home: &Home) -> Value {
    let shown = home.hermes(&["memory", "status", "--json"]).run().success();
    serde_json::from_str(&shown.stdout).unwrap()
}

#[test]
fn a_provider_that_hangs_is_left_alone_until_it_answers_again() {
    let server = Server::answering(|_, number| Reply::text(format!("Answer {number}.")));
    let home = Home::with(&server);
    home.install_guest("scribe", "scribe", json!({"recall_ms": 60_000, "memories": ["Ada likes tea."]}));
    home.set("memory.provider", json!("scribe"));
    home.set("plugins.settings.scribe.limits.recall_time", json!("100ms"));
    let output = home.hermes(&[]).stdin("one\ntwo\nthree\nfour\n").run().success();
    assert_eq!(output.stderr.matches("the memory `scribe` failed 3 times in a row").count(), 1, "{output}");
    let shown = home.hermes(&["memory", "status"]).run().success().stdout;
    assert!(shown.contains("open since") && shown.contains("did not answer within 100 ms"), "{shown}");
    assert_eq!(status(&home)["providers"][0]["breaker"]["failures"], 3);

    // After the pause, one turn asks again, also in another process.
    home.set("plugins.entries.scribe", json!({"memories": ["Ada likes tea."]}));
    home.set("plugins.settings.scribe.limits.recall_time", json!("30s"));
    let later = home.hermes(&["-z", "five"]).at("2100-01-01T00:00:00Z").run().success();
    later.says(&["the memory `scribe` answers again"]);
    assert!(server.last_turn().last_user_text().contains("Ada likes tea."), "{}", server.last_turn().last_user_text());
    assert_eq!(status(&home)["providers"][0]["breaker"], Value::Null);
    assert!(home.hermes(&["memory", "status"]).run().success().stdout.contains("closed"));
}

#[test]
fn recalled_text_that_the_model_repeats_is_not_shown_or_stored() {
    let repeated = "<memory-context>\n[Recalled by the memory]\n\nAda likes tea.\n</memory-context>Tea, of course.";
    let server = Server::answering(move |_, _| Reply::text(repeated).in_steps_of(3));
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "What does Ada drink?"]).run().success();
    assert_eq!(output.stdout, "Tea, of course.\n");
    let talked = home.hermes(&[]).stdin("What does Ada drink?\n").run().success();
    assert!(talked.stdout.contains("Tea, of course.") && !talked.stdout.contains("memory-context"), "{talked}");
    assert_eq!(home.messages()[1]["content"], "Tea, of course.");
}

#[test]
fn a_second_memory_beside_the_selected_one_is_left_out_with_a_line() {
    let server = Server::answering(|_, _| Reply::text("Noted."));
    let home = Home::with(&server);
    home.set("memory.provider", json!("chronicle"));
    home.set("plugins.enabled", json!(["mem0"]));
    home.set("plugins.entries.mem0.mode", json!("local"));
    let output = home.hermes(&["-z", "Hi"]).run().success();
    assert!(output.stderr.contains("the memory `mem0` is left out"), "{output}");
    assert!(output.stderr.contains("`memory.provider` names `chronicle`"), "{output}");
    assert!(!server.last_turn().tool_names().contains(&"mem0_search"));
}
