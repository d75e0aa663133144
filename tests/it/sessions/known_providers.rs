//! Providers by name: rows of the user, aliases, keys that several providers take, and those that cannot be used.

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

#[test]
fn a_provider_of_ones_own_is_asked_at_its_address_with_its_key_and_format() {
    let server = Server::scripted([Reply::text("At work."), Reply::text("Still at work.")]);
    let home = Home::new();
    home.set(
        "custom_providers",
        json!([
            {"name": "Work Server", "base_url": server.anthropic_url(), "key_env": "WORK_KEY",
             "api_mode": "anthropic_messages", "models": {"big": {"context_length": 50_000}}},
            {"name": "other", "base_url": "http://127.0.0.1:9/v1", "api_key": "not-this-one"},
        ]),
    );
    let ask = |arguments: &[&str]| home.hermes(arguments).env("WORK_KEY", "work-key-0123").run().success();
    assert_eq!(ask(&["-z", "Where?", "--provider", "work server"]).stdout, "At work.\n");
    home.set("model.provider", json!("custom:work-server"));
    assert_eq!(ask(&["-z", "And now?"]).stdout, "Still at work.\n");
    for turn in server.turns() {
        assert_eq!(turn.wire.name(), "anthropic_messages");
        assert_eq!(turn.body["model"], "big");
        assert_eq!(turn.header("x-api-key"), Some("work-key-0123"));
        assert!(turn.headers.iter().all(|(_, value)| !value.contains("not-this-one")));
    }
    let doctor = home.hermes(&["doctor"]).env("WORK_KEY", "work-key-0123").run();
    assert!(doctor.stdout.contains("big of work-server at"), "{doctor}");
    assert!(doctor.stdout.contains("window of 50,000 tokens") && !doctor.stdout.contains("work-key-0123"), "{doctor}");
}

#[test]
fn a_row_that_cannot_be_used_is_named_with_its_remedy() {
    let home = Home::new();
    home.set("custom_providers", json!([{"name": "work", "base_url": "work.example.com"}]));
    home.hermes(&["-z", "hi"]).run().refused().exits(3).says(&[
        "`custom_providers[0]` (`work`) has a base_url that is not a URL",
        "write it like http://127.0.0.1:8000/v1",
    ]);
}

#[test]
fn one_key_for_several_plans_is_no_error_and_doctor_names_the_others() {
    let home = Home::new();
    let doctor = home.hermes(&["doctor"]).env("KIMI_API_KEY", "kimi-key-0123").run();
    for words in [
        "kimi-k2.5 of kimi-coding at https://api.moonshot.ai/v1",
        "KIMI_API_KEY is also the key of kimi-code",
        "set model.provider",
    ] {
        assert!(doctor.stdout.contains(words), "{words}\n{doctor}");
    }
    let two = home.hermes(&["doctor"]).env("KIMI_API_KEY", "a").env("GROQ_API_KEY", "b").run().exits(1);
    assert!(two.stdout.contains("there are keys for several providers (KIMI_API_KEY, GROQ_API_KEY)"), "{two}");
}

#[test]
fn a_provider_that_cannot_be_used_says_why_and_what_to_do() {
    let home = Home::new();
    for (provider, why, fix) in [
        ("openai-codex", "it needs a login with ChatGPT", "use `openai` with a key"),
        ("azure", "needs your own address", "https://RESOURCE.openai.azure.com/openai/v1"),
    ] {
        let output = home.hermes(&["-z", "hi", "--provider", provider]).run().refused().exits(3);
        output.says(&[provider, why, fix]);
    }
}
