//! Behind an alias such as `openrouter/auto`, the ledger names the model that answered and counts its price.

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

use crate::fixtures::ledger::Ledger;

fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.set("model.provider", json!("openrouter"));
    home.set("model.default", json!("openrouter/auto"));
    home
}

#[test]
fn the_model_behind_an_alias_is_recorded_and_its_price_counts() {
    let said = |model: &str| Reply::text("Yes.").served_by(model).usage(10_000, 100).without_cache_counters();
    let server = Server::scripted([
        said("anthropic/claude-sonnet-4.5"),
        said("openai/gpt-4.1-mini"),
        said("openrouter/auto"),
        said("someone/unheard-of"),
    ]);
    let home = home(&server);
    home.hermes(&["-z", "One."]).run().success();
    for text in ["Two.", "Three.", "Four."] {
        home.hermes(&["-z", text, "--continue"]).run().success();
    }
    assert!(server.turns().iter().all(|turn| turn.body["model"] == "openrouter/auto"));
    let ledger = Ledger::of(&home);
    let column = |name: &str| ledger.requests.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("model"), ["openrouter/auto"; 4]);
    assert_eq!(
        column("answered_by"),
        [json!("anthropic/claude-sonnet-4.5"), json!("openai/gpt-4.1-mini"), json!(null), json!("someone/unheard-of")]
    );
    // Ten thousand tokens of prompt and a hundred of reply, at the list prices of each model.
    for (cost, expected) in column("cost").iter().zip([0.0315, 0.004_16]) {
        assert!((cost.as_f64().unwrap() - expected).abs() < 1e-9, "{cost} {expected}");
    }
    assert_eq!(column("cost")[2..], [json!(null), json!(null)]);

    let shown = home.hermes(&["cache"]).run().success();
    for words in [
        "answered by anthropic/claude-sonnet-4.5 (1 request), openai/gpt-4.1-mini (1 request), someone/unheard-of",
        "cost $0.0357;",
        "not included: 2 requests without a known price",
    ] {
        assert!(shown.stdout.contains(words), "{words}\n{shown}");
    }
    let stats = home.hermes(&["sessions", "stats"]).run().success();
    assert!(stats.stdout.contains("$0.04 for the requests with a known price"), "{stats}");
}

#[test]
fn another_model_behind_the_alias_explains_what_the_cache_did_not_have() {
    let said = |model: &str, read| Reply::text("Yes.").served_by(model).usage(10_000, 100).cached(read, 0);
    let server = Server::scripted([
        said("anthropic/claude-sonnet-4.5", 4_000),
        said("anthropic/claude-sonnet-4.5", 9_000),
        said("openai/gpt-4.1", 0),
    ]);
    let home = home(&server);
    home.hermes(&["-z", "One."]).run().success();
    for text in ["Two.", "Three."] {
        home.hermes(&["-z", text, "--continue"]).run().success();
    }
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.causes(), [Some("first-request"), None, Some("model-change")]);
    assert_eq!(ledger.requests[2]["culprit"], "openai/gpt-4.1 answered after anthropic/claude-sonnet-4.5");
}
