//! Windows that providers name when they refuse a request as too long.

use hermes_tests::{Home, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

/// The window of the scripted model in tokens of four bytes.
const WINDOW: usize = 24_000;

/// A model that refuses longer requests and names its window.
fn narrow() -> Server {
    Server::answering(|body, _| {
        if is_auxiliary(body) {
            return Reply::text("The user repeated a sentence.");
        }
        let tokens = body.to_string().len() / 4;
        if tokens <= WINDOW {
            return Reply::text("Read.");
        }
        let message = format!(
            "This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {tokens} tokens."
        );
        Reply::json(400, &json!({"error": {"message": message, "code": "context_length_exceeded"}}))
    })
}

/// About eight thousand tokens.
fn long() -> String {
    "All of this is one message. ".repeat(1_150)
}

/// How many requests the model refused.
fn refused(server: &Server) -> usize {
    server.turns().iter().filter(|request| request.body.to_string().len() / 4 > WINDOW).count()
}

#[test]
fn a_window_that_the_provider_names_is_kept_for_later_sessions() {
    let server = narrow();
    let home = Home::with(&server);
    home.set("model.context_length", Value::Null);
    let lines = [long(), long(), long(), "/context".to_owned()].join("\n");
    let output = home.hermes(&["chat"]).stdin(&lines).run().success();
    assert_eq!(output.stdout.matches("Read.").count(), 3, "{output}");
    let output = output.says(&["Hermes keeps to 24000 tokens for `scripted-model`, compacting and trying again"]);
    let shown = format!("{}{}", output.stdout, output.stderr);
    assert!(shown.contains("of 24,000 tokens") && shown.contains("the window is as the provider said"), "{shown}");
    let before = refused(&server);
    assert!(before > 0);

    // Other sessions know it from the start.
    let output = home.hermes(&["chat"]).stdin(&[long(), long(), long()].join("\n")).run().success();
    assert_eq!(output.stdout.matches("Read.").count(), 3, "{output}");
    assert_eq!(refused(&server), before, "{output}");
    let doctor = home.hermes(&["doctor"]).run().success();
    assert!(doctor.stdout.contains("window of 24,000 tokens, as the provider said"), "{doctor}");

    // The configuration decides, and the difference is told.
    home.set("model.context_length", json!(100_000));
    let output = home.hermes(&["-z", "hello"]).run().success();
    let told = "`model.context_length` is 100000, but the provider of `scripted-model` said on 20";
    output.says(&[told, "that it takes 24000 tokens", "set `model.context_length` to 24000, or remove it"]);
    let doctor = home.hermes(&["doctor"]).run().success();
    assert!(
        doctor.stdout.contains("window of 100,000 tokens, as configured") && doctor.stdout.contains(told),
        "{doctor}"
    );

    // Another address has a window of its own.
    let other = Server::answering(|_, _| Reply::text("Read."));
    home.set("model.context_length", Value::Null);
    home.set("model.base_url", json!(other.url()));
    let doctor = home.hermes(&["doctor"]).run().success();
    assert!(doctor.stdout.contains("window of 128,000 tokens, assumed"), "{doctor}");
}

/// A provider with two models whose windows only its list names.
fn listing() -> Server {
    let models = json!({ "object": "list", "data": [
        { "id": "gpt-daily", "context_length": 128_000 },
        { "id": "gpt-mini", "context_length": 12_000 },
    ] });
    Server::answering(|_, _| Reply::text("Read.")).with_models(models)
}

/// The window of a session with this model, as `hermes context` shows it.
#[track_caller]
fn window(home: &Home, model: &[&str], tokens: &str) {
    home.hermes(&[model, &["-z", "hello"]].concat()).run().success();
    let shown = home.hermes(&["context"]).run().success();
    assert!(shown.stdout.contains(&format!("of {tokens} tokens")), "{shown}");
}

#[test]
fn a_window_belongs_to_the_model_that_it_was_told_for() {
    let server = listing();
    let home = Home::with(&server);
    home.hermes(&["model", "use", "gpt-daily"]).run().success();
    window(&home, &[], "128,000");
    window(&home, &["-m", "gpt-mini"], "12,000");
    // Nothing is known of a model in no list.
    home.hermes(&["config", "set", "model.context_length", "50000"]).run().success();
    window(&home, &[], "50,000");
    window(&home, &["-m", "gpt-mini"], "12,000");
}

#[test]
fn a_new_conversation_keeps_the_model_the_engine_and_the_effort_of_the_chat() {
    let server = listing();
    let home = Home::with(&server);
    let lines = [
        "/model gpt-min",
        "/model gpt-mini",
        "/engine lossless",
        "/think high",
        "hello",
        "/new",
        "hello again",
        "/think",
    ]
    .join("\n");
    let output = home.hermes(&["chat"]).stdin(&lines).run().success();
    let last = server.last_turn();
    let output = output.says(&["does not list a model `gpt-min`; did you mean `gpt-mini`?"]);
    assert_eq!(last.body["model"], "gpt-mini", "{output}");
    assert_eq!(output.stdout.matches("effort: high").count(), 2, "{output}");
    let sessions = home.hermes(&["sessions", "list", "--json"]).run().success();
    let sessions: Vec<Value> = serde_json::from_str(&sessions.stdout).unwrap();
    let shown = home.hermes(&["sessions", "show", sessions[0]["id"].as_str().unwrap(), "--json"]).run().success();
    assert!(shown.stdout.contains("\"lossless\""), "{shown}");
}
