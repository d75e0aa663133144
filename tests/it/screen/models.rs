//! `hermes model`, `hermes setup` and the doctor's request: what a provider offers is shown, a choice is tried before it is
//! stored, and a mistake changes nothing.

use hermes_tests::{Home, Output, Reply, Server, dead_endpoint};
use serde_json::{Value, json};

const GENERAL: i32 = 1;
const USAGE: i32 = 2;
const MODEL: i32 = 4;
const SECRET: &str = "sk-a-key-that-nobody-may-see";

fn server() -> Server {
    let models = json!({ "object": "list", "data": [
        { "id": "vendor/large", "context_length": 1_000_000,
          "pricing": { "prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003" } },
        { "id": "vendor/small", "context_length": 64_000 },
        { "id": "scripted-model" },
    ] });
    Server::answering(|_, _| Reply::text("OK")).with_models(models)
}

/// Panics unless standard output contains each of the texts.
#[track_caller]
fn shows(output: &Output, texts: &[&str]) {
    for text in texts {
        assert!(output.stdout.contains(text), "`{text}` is not shown\n{output}");
    }
}

#[test]
fn the_models_of_a_provider_are_listed_with_windows_and_prices() {
    let server = server();
    let home = Home::with(&server);
    let table = home.hermes(&["model", "list"]).run().success();
    shows(&table, &["vendor/large", "1,000,000", "$3.00", "$15.00", "$0.30", "*  scripted-model"]);
    let json = home.hermes(&["model", "list", "VENDOR", "small", "--json"]).run().success();
    let rows: Vec<Value> = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(rows.len(), 1, "{json}");
    assert_eq!((&rows[0]["model"], &rows[0]["window"]), (&json!("vendor/small"), &json!(64_000)));
    home.hermes(&["model", "list", "absent"]).run().exits(GENERAL).says(&["absent", "3 models"]);
    // Without a terminal, the command alone lists too.
    shows(&home.hermes(&["model"]).run().success(), &["vendor/small"]);
    assert!(server.requests().is_empty(), "a list costs no request to the model");
}

#[test]
fn a_switch_applies_to_new_sessions_and_drops_what_was_for_the_former_model() {
    let server = server();
    let home = Home::with(&server);
    home.hermes(&["model", "use", "other"]).run().success().says(&[
        "does not list a model `other`",
        "other of custom (was scripted-model)",
        "model.context_length",
        "new sessions",
    ]);
    home.hermes(&["model", "use", "vendor/smal"]).run().success().says(&["did you mean `vendor/small`?"]);
    // No table knows the window; the provider's list does.
    let chosen = home.hermes(&["model", "use", "vendor/small"]).run().success();
    chosen.says(&["vendor/small of custom (was vendor/smal)", "window of 64,000 tokens"]);
    home.hermes(&["-z", "hi"]).run().success();
    assert_eq!(server.last_turn().body["model"], "vendor/small");
    let before = home.read("config.yaml");
    home.hermes(&["model", "use", "m", "--provider", "nowhere"]).run().refused().says(&["nowhere"]);
    home.hermes(&["model", "use", "gpt-5", "--provider", "openai"]).run().refused().says(&["OPENAI_API_KEY"]);
    assert_eq!(home.read("config.yaml"), before);
}

#[test]
fn a_provider_without_a_list_is_named() {
    let server = Server::answering(|_, _| Reply::text("OK"));
    let home = Home::with(&server);
    home.hermes(&["model", "list"])
        .run()
        .refused()
        .exits(MODEL)
        .says(&["/v1/models has no list of models", "model use"]);
    let home = Home::new();
    home.hermes(&["model", "list"]).run().refused().exits(MODEL).says(&["offline", "hermes setup"]);
}

#[test]
fn a_setup_tries_the_model_before_it_stores_anything() {
    let server = server();
    let home = Home::new();
    let dead = dead_endpoint();
    let setup = |url: &str, more: &[&str]| {
        let arguments = [&["setup", "--base-url", url, "--model", "vendor/small", "--key"][..], more].concat();
        home.hermes(&arguments).stdin(&format!("{SECRET}\n")).run()
    };
    let failed = setup(&dead, &[]).refused().exits(MODEL);
    failed.says(&["nothing was changed", "no connection", "check that the server is running", "--no-test"]);
    // No part of a name may be that long.
    let unknown = setup(&format!("http://{}.invalid/v1", "a".repeat(64)), &[]).refused().exits(MODEL);
    let unknown = unknown.says(&["the name of the server was not found", "check that the address is right"]);
    assert!(!unknown.stderr.contains("is running"), "{unknown}");
    assert!(!home.path().join(".env").exists() && !home.path().join("config.yaml").exists());

    let stored = setup(&server.url(), &[]).success();
    assert!(!format!("{stored}").contains(SECRET), "{stored}");
    stored.says(&[
        "answered \"OK\"",
        "vendor/small of custom",
        "HERMES_CUSTOM_API_KEY stored in",
        "hermes memory setup",
    ]);
    assert_eq!(server.requests().len(), 1);
    assert!(!home.read("config.yaml").contains(SECRET) && home.read(".env").contains(SECRET));
    home.hermes(&["-z", "hi"]).run().success();
    assert_eq!(server.last_turn().header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(server.last_turn().body["model"], "vendor/small");
}

#[test]
fn a_setup_that_cannot_ask_says_what_to_name() {
    let server = server();
    let home = Home::new();
    home.hermes(&["setup"]).run().refused().exits(USAGE).says(&["openrouter", "--base-url"]);
    home.hermes(&["setup", "opnai"]).run().refused().exits(USAGE).says(&["did you mean `openai`?"]);
    home.hermes(&["setup", "openai", "--yes"]).run().refused().says(&["OPENAI_API_KEY"]);
    home.hermes(&["setup", "openai", "--key"]).stdin("\n").run().refused().exits(USAGE).says(&["no usable key"]);
    let several = home.hermes(&["setup", "--base-url", &server.url(), "--key"]).stdin("sk-x\n").run();
    several.refused().exits(USAGE).says(&["3 models", "--model", "vendor/small"]);
    assert!(!home.path().join("config.yaml").exists());
}

#[test]
fn a_setup_on_a_terminal_asks_and_hides_the_key() {
    let server = server();
    for is_drawn in [true, false] {
        let home = Home::new();
        let setup = home.hermes(&["setup", "--base-url", &server.url()]);
        let mut terminal = if is_drawn { setup.at_drawn_terminal(80, 30) } else { setup.at_terminal() };
        terminal.wait_for("Enter if it needs none]:", 1);
        terminal.press(&format!("{SECRET}\r"));
        terminal.wait_for("Which model?", 1);
        terminal.press("\r");
        terminal.wait();
        let shown = terminal.shown();
        assert!(shown.contains("scripted-model of custom") && !shown.contains(SECRET), "{shown}");
        home.hermes(&["-z", "hi"]).run().success();
        assert_eq!(server.last_turn().header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    }
}

#[test]
fn the_doctor_asks_the_model_once_and_reports_its_answer() {
    let server = server();
    let home = Home::with(&server);
    shows(&home.hermes(&["doctor"]).run().success(), &["scripted-model answered \"OK\""]);
    assert_eq!(server.requests().len(), 1);
    home.hermes(&["doctor", "--no-request"]).run().success();
    assert_eq!(server.requests().len(), 1);
    home.set("model.base_url", json!(dead_endpoint()));
    shows(&home.hermes(&["doctor"]).run().exits(GENERAL), &["fail answer", "no connection"]);

    let refusing = Server::answering(|_, _| Reply::error(401, "wrong key"));
    let home = Home::with(&refusing);
    shows(&home.hermes(&["doctor"]).run().exits(GENERAL), &["fail answer", "refused the key"]);
}
