//! How much a model thinks: the configuration, and `/think` in a chat.

use hermes_tests::oracle::assert_valid_anthropic_request;
use hermes_tests::{Call, Home, Reply, Request, Server};
use serde_json::{Value, json};

/// The members of a request that ask for thinking.
fn wish(request: &Request) -> [Value; 2] {
    ["thinking", "reasoning_effort"].map(|key| request.body[key].clone())
}

#[test]
fn another_effort_changes_the_next_request_and_no_byte_of_the_prompt() {
    let server = Server::scripted(["first", "second", "third", "fourth"].map(Reply::text));
    let home = Home::with(&server);
    home.set("model.provider", json!("deepseek"));
    home.set("model.default", json!("deepseek-v4-pro"));
    let lines =
        "one\n/think high\ntwo\n/think none\nthree\n/model other-model\nfour\n/think show\n/think loud\n/exit\n";
    let output = home.hermes(&[]).stdin(lines).run().success();

    let turns = server.turns();
    let enabled = |kind: &str| json!({"type": kind});
    assert_eq!(wish(&turns[0]), [Value::Null, Value::Null], "the provider's default");
    assert_eq!(wish(&turns[1]), [enabled("enabled"), json!("high")]);
    assert_eq!(wish(&turns[2]), [enabled("disabled"), Value::Null]);
    assert_eq!(wish(&turns[3]), [Value::Null, Value::Null], "a model that does not think");
    for pair in turns[..3].windows(2) {
        let [earlier, later] = pair else { unreachable!() };
        assert_eq!(earlier.raw_member("tools"), later.raw_member("tools"));
        let (earlier, later) = (earlier.raw_member("messages"), later.raw_member("messages"));
        assert!(later.starts_with(earlier.strip_suffix(']').unwrap()), "{earlier}\n{later}");
    }
    for line in ["effort: high · reasoning is hidden", "effort: none · reasoning is shown"] {
        assert!(output.stdout.contains(line), "`{line}` is not in\n{output}");
    }
    assert!(output.stderr.contains("usage: /think [none|minimal|"), "{output}");
}

#[test]
fn a_model_that_does_not_think_gets_no_wish_and_the_user_one_line() {
    let server = Server::scripted(["first", "second"].map(Reply::text));
    let home = Home::with(&server);
    home.set("model.reasoning_effort", json!("high"));
    let output = home.hermes(&[]).stdin("one\ntwo\n/exit\n").run().success();
    let line = "scripted-model is not known to think; the effort `high` is not requested";
    assert_eq!(output.stderr.matches(line).count(), 1, "{output}");
    assert!(server.turns().iter().all(|request| wish(request) == [Value::Null, Value::Null]));
}

#[test]
fn a_budget_is_requested_while_the_conversation_fits_it() {
    let read = |id: &str| Call::new(id, "read_file", &json!({"path": "notes.txt"}));
    let thinking = json!({"type": "thinking", "thinking": "I need the notes.", "signature": "signed"});
    let server = Server::scripted([
        Reply::calls([read("a")]).thinking([thinking]),
        // A model may call again without another thought.
        Reply::calls([read("b")]),
        Reply::text("At five."),
        Reply::text("Yes."),
    ]);
    let home = Home::with_anthropic(&server);
    home.set("model.default", json!("claude-sonnet-4-5"));
    home.set("model.reasoning_effort", json!("none"));
    home.set("model.reasoning_efforts", json!({"anthropic/claude-sonnet-4.5": "high"}));
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    let output = home.hermes(&[]).stdin("When does it close?\nSure?\n/exit\n").run().success();
    assert!(output.stdout.contains("At five."), "{output}");
    let turns = server.turns();
    let budget = json!({"type": "enabled", "budget_tokens": 16_000});
    let asked: Vec<&Value> = turns.iter().map(|request| &request.body["thinking"]).collect();
    assert_eq!(asked, [&budget, &budget, &Value::Null, &budget]);
    for request in &turns {
        assert_valid_anthropic_request(&request.body);
    }
}
