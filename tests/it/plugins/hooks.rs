//! Hooks are a permission of their own.
//!
//! The guest is `tests/guests/runner`, whose hook asks before the tools in `ask` of its configuration.

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

fn model() -> Server {
    Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        match last["role"] == "user" {
            true => Reply::calls([Call::new(&format!("call_{number}"), "look", &json!({}))]),
            false => Reply::text("Done."),
        }
    })
}

fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.install_guest("runner", "runner", json!({ "ask": ["look"] }));
    home.set("memory.provider", json!("runner"));
    home
}

/// Whether the hook of the guest was asked about a call. Without a user, its question denies the call.
fn hook_is_asked(home: &Home, server: &Server) -> bool {
    home.hermes(&["-z", "go"]).run().success();
    let request = server.last_turn();
    let result = request.trailing_results().last().expect("there is a result").1.to_owned();
    assert_ne!(result == "seen", result.contains("needs the user's approval"), "{result}");
    result != "seen"
}

fn change_lock(home: &Home, change: impl Fn(&mut Value)) {
    let mut lock: Value = serde_json::from_str(&home.read("plugins.lock")).expect("the lock is JSON");
    change(&mut lock["plugins"]["runner"]);
    home.write("plugins.lock", lock.to_string());
}

#[test]
fn hooks_run_only_with_their_permission() {
    let server = model();
    let home = home(&server);
    assert!(hook_is_asked(&home, &server));
    home.hermes(&["plugins", "revoke", "runner", "hooks"]).run().success();
    assert!(!hook_is_asked(&home, &server), "the tool works, and the hook is silent");
    home.hermes(&["plugins", "grant", "runner", "hooks", "--yes"]).run().success();
    assert!(hook_is_asked(&home, &server));
}

#[test]
fn a_plugin_that_was_granted_before_keeps_its_hooks_until_it_is_granted_again() {
    let server = model();
    let home = home(&server);
    // As an earlier version of Hermes wrote it: without exports, without a seal, and without this permission.
    std::fs::remove_file(home.path().join("plugins.key")).expect("the key of the home");
    change_lock(&home, |entry| {
        let entry = entry.as_object_mut().expect("an entry");
        assert!(entry.remove("exports").is_some() && entry.remove("seal").is_some());
        entry["granted"].as_object_mut().expect("permissions").remove("hooks");
    });
    assert!(hook_is_asked(&home, &server));
    home.hermes(&["plugins", "grant", "runner", "process", "--yes"]).run().success();
    assert!(!hook_is_asked(&home, &server), "the user granted only another permission");
}

#[test]
fn hooks_that_the_manifest_does_not_request_are_reported() {
    let server = model();
    let home = home(&server);
    let manifest = home.read("plugins/runner/plugin.yaml").replace("  hooks: true\n", "");
    home.write("plugins/runner/plugin.yaml", manifest);
    home.hermes(&["plugins", "grant", "runner", "--yes"]).run().success().says(&["its hooks will not run"]);
    home.hermes(&["-z", "go"]).run().success().says(&["hooks of the plugin `runner` do not run", "hooks: true"]);
    assert!(!hook_is_asked(&home, &server));
}

#[test]
fn hooks_hear_the_end_of_a_call_of_an_unknown_tool() {
    let server =
        Server::scripted([Reply::calls([Call::new("call_1", "no_such_tool", &json!({}))]), Reply::text("Done.")]);
    let home = Home::with(&server);
    home.set("plugins.enabled", json!(["audit"]));
    home.hermes(&["-z", "go"]).run().success();
    let log = home.hermes(&["plugins", "logs", "audit"]).run().success();
    assert!(log.stdout.contains("no_such_tool"), "{log}");
}
