//! `hermes config set` and `unset`: a change holds from the next start on, and a mistake changes nothing.

use std::fs;

use hermes_tests::{Home, Reply, Server};

const USAGE: i32 = 2;
const CONFIGURATION: i32 = 3;

#[test]
fn a_setting_is_changed_and_returned_to_its_default_and_comments_stay() {
    let home = Home::new();
    home.config("model: small\n# how long it may take\nagent:\n  max_turns: 5 # enough\n");
    let set = |key: &str, value: &str| home.hermes(&["config", "set", key, value]).run().success();
    set("agent.max_turns", "7").says(&["agent.max_turns: 7 (was 5)", "config.yaml"]);
    set("model.context_length", "64000").says(&["64000 (was not set)"]);
    set("model", "large").says(&["model.default: large"]);
    let file = home.read("config.yaml");
    assert!(file.contains("# how long it may take") && file.contains("max_turns: 7 # enough"), "{file}");
    for (key, value) in [("agent.max_turns", "7"), ("model.context_length", "64000"), ("model.default", "large")] {
        assert_eq!(home.hermes(&["config", "get", key]).run().success().stdout.trim(), value, "{key}");
    }
    home.hermes(&["config", "unset", "agent.max_turns"]).run().success().says(&["agent.max_turns: 90 (was 7)"]);
    home.hermes(&["config", "unset", "agent.max_turns"]).run().refused().says(&["agent.max_turns", "not set"]);
}

#[test]
fn a_mistake_changes_nothing_and_names_what_was_meant() {
    let home = Home::new();
    home.config("model: small\n");
    for (key, value, says) in [
        ("agent.max_turns", "many", &["agent.max_turns", "whole number"][..]),
        ("agent.max_turn", "5", &["agent.max_turn", "agent.max_turns"]),
        ("agent", "5", &["not one value", "agent."]),
        ("model.default", "", &["empty", "config unset model.default"]),
        ("approvals.allow", "[terminl]", &["terminl", "terminal"]),
        ("plugins.entries.web.backend", "googel", &["plugins.entries.web.backend", "searxng"]),
    ] {
        home.hermes(&["config", "set", key, value]).run().refused().exits(CONFIGURATION).says(says);
        assert_eq!(home.read("config.yaml"), "model: small\n", "{key}={value}");
    }
    home.hermes(&["config", "set", "OPENAI_API_KEY", ""]).run().refused().exits(USAGE).says(&["empty"]);
    assert!(!home.path().join(".env").exists());
}

#[test]
fn a_stored_key_is_removed() {
    let home = Home::new();
    home.hermes(&["config", "set", "OPENROUTER_API_KEY", "-"]).stdin("sk-first\n").run().success();
    home.hermes(&["config", "unset", "OPENROUTER_API_KEY"]).run().success().says(&["removed from", ".env"]);
    assert_eq!(home.read(".env"), "");
    let again = home.hermes(&["config", "unset", "OPENROUTER_API_KEY"]).run().refused();
    again.says(&["nothing was changed", ".env does not set OPENROUTER_API_KEY", "hermes doctor"]);
}

#[test]
fn a_key_is_stored_in_a_private_file_and_used() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::new();
    home.hermes(&["config", "set", "HERMES_T_SECRET", "-"]).stdin("sk-first-and-old\n").run().success();
    home.hermes(&["config", "set", "HERMES_T_SECRET", "-"])
        .stdin("sk-second-and-new\n")
        .run()
        .success()
        .says(&[".env"]);
    for (key, value) in [
        ("model.provider", "custom"),
        ("model.default", "m"),
        ("model.base_url", &server.url()),
        ("model.api_key", "${HERMES_T_SECRET}"),
    ] {
        let output = home.hermes(&["config", "set", key, value]).run().success();
        assert!(!output.stderr.contains("sk-second") && !output.stdout.contains("sk-second"), "{output}");
    }
    home.hermes(&["-z", "hi"]).run().success();
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-second-and-new"));
    let dotenv = home.read(".env");
    assert!(!dotenv.contains("sk-first"), "the old key is still there");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(home.path().join(".env")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}
