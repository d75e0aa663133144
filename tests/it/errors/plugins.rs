use std::fs;

use hermes_tests::{Call, Home, Reply, Server, renamed, staged_guest};
use serde_json::json;

use super::Screens;
use crate::fixtures::grant_untried;

fn model() -> Server {
    Server::answering(|_, _| Reply::text("Hello."))
}

/// A home whose context engine is a test guest that was not granted yet.
fn home_with_engine(server: &Server) -> Home {
    let home = Home::with(server);
    home.put_guest("hostile", "plugins/hostile", "hostile");
    home.set("context.engine", json!("hostile"));
    home.set("plugins.entries.hostile", json!({"mode": "ok"}));
    home
}

#[test]
fn plugins_that_a_session_needs() {
    let mut screens = Screens::default();
    let server = model();
    let home = Home::with(&server);
    let hello = |home: &Home| home.hermes(&["-z", "hello"]);
    home.set("context.engine", json!("compresor"));
    screens.error("an engine that does not exist", &home, hello(&home));
    home.set("context.engine", json!("files"));
    screens.error("a plugin that is not an engine", &home, hello(&home));
    home.set("context.engine", json!("compressor"));
    home.set("memory.provider", json!("nobody"));
    screens.error("a memory provider that does not exist", &home, hello(&home));

    let home = home_with_engine(&server);
    screens.error("an engine that was not granted", &home, hello(&home));
    home.grant("hostile");
    home.write("plugins/hostile/more.txt", "added");
    screens.error("an engine that was changed since it was granted", &home, hello(&home));
    fs::remove_file(home.path().join("plugins/hostile/more.txt")).unwrap();
    home.hermes(&["plugins", "revoke", "hostile"]).run().success();
    screens.error("an engine whose grant was revoked", &home, hello(&home));
    home.grant("hostile");
    fs::rename(home.path().join("plugins/hostile"), home.path().join("plugins/moved")).unwrap();
    screens.error("an engine that was granted in another folder", &home, hello(&home));
    fs::rename(home.path().join("plugins/moved"), home.path().join("plugins/hostile")).unwrap();
    home.write("plugins.lock", "{");
    screens.error("a damaged plugins.lock", &home, hello(&home));
    home.write("plugins.lock", r#"{"form": 99, "plugins": {}}"#);
    screens.error("plugins.lock of a newer version", &home, hello(&home));

    for (situation, manifest) in [
        ("a manifest that is not YAML", "name: [\n"),
        ("a manifest with a bad version", "name: hostile\nversion: one\n"),
        ("a manifest without a name", "version: 1.0.0\n"),
        ("a plugin for another contract", "name: hostile\nversion: 1.0.0\napi: ^9\n"),
        ("a manifest that names a missing component", "name: hostile\nversion: 1.0.0\ncomponent: other.wasm\n"),
    ] {
        let home = home_with_engine(&server);
        home.write("plugins/hostile/plugin.yaml", manifest);
        screens.error(situation, &home, hello(&home));
    }
    let home = home_with_engine(&server);
    home.write("plugins/hostile/hostile.wasm", "no component");
    grant_untried(&home, "hostile");
    screens.error("a component that is not WebAssembly", &home, hello(&home));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn plugins_that_are_left_out() {
    let mut screens = Screens::default();
    let server = model();
    let home = Home::with(&server);
    let hello = |home: &Home| home.hermes(&["-z", "hello"]);
    home.set("plugins.enabled", json!(["nobody"]));
    screens.notice("a plugin that does not exist", &home, hello(&home));
    home.set("plugins.enabled", json!(["clerk"]));
    home.put_guest("clerk", "plugins/clerk", "clerk");
    screens.notice("a plugin that was not granted", &home, hello(&home));
    home.grant("clerk");
    home.hermes(&["plugins", "revoke", "clerk", "sql"]).run().success();
    home.put_guest("clerk", "plugins/files", "files");
    screens.notice("a plugin with the name of a bundled one", &home, hello(&home));
    fs::remove_dir_all(home.path().join("plugins/files")).unwrap();
    home.write("plugins/stray/notes.txt", "no plugin");
    screens.notice("a folder without a manifest", &home, hello(&home));
    fs::remove_dir_all(home.path().join("plugins/stray")).unwrap();
    home.set("plugins.settings.files.source", json!("installed"));
    screens.notice("a source without a plugin", &home, hello(&home));

    let home = Home::with(&server);
    let (manifest, component) = staged_guest("courier");
    home.write("plugins/courier/plugin.yaml", renamed(&manifest, "courier"));
    home.write("plugins/courier/courier.wasm", component);
    home.grant("courier");
    home.set("plugins.enabled", json!(["courier"]));
    home.set("plugins.entries.courier", json!({"region": "${COURIER_REGION}"}));
    screens.notice("a variable of a plugin that is not set", &home, hello(&home));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn plugins_that_fail() {
    let mut screens = Screens::default();
    for mode in ["panic", "error", "bad-plan"] {
        let server = model();
        let home = home_with_engine(&server);
        home.grant("hostile");
        home.set("plugins.entries.hostile", json!({"mode": mode}));
        screens.notice(&format!("an engine that fails with `{mode}`"), &home, home.hermes(&["-z", "hello"]));
    }
    let calls = |count: usize| {
        let call = |number| Reply::calls([Call::new(&format!("call_{number}"), "bad", &json!({}))]);
        Server::scripted((0..count).map(call).chain([Reply::text("Done.")]).collect::<Vec<_>>())
    };
    let server = calls(3);
    let home = Home::with(&server);
    home.write("plugins/beast/plugin.yaml", "name: beast\nversion: 0.1.0\ndescription: a beast\n");
    home.write("plugins/beast/beast.wasm", hermes_zoo::crashing_tool());
    home.grant("beast");
    home.set("plugins.enabled", json!(["beast"]));
    screens.notice("a tool that fails three times in a row", &home, home.hermes(&["-z", "Go."]));
    home.set("plugins.settings.beast.on_failure", json!("stop"));
    let server = calls(3);
    home.use_endpoint(&server.url());
    screens.error("a tool whose failures end the turn", &home, home.hermes(&["-z", "Go."]));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn memory_providers_that_fail() {
    let mut screens = Screens::default();
    for (situation, sync) in [
        ("a memory provider whose service is away", "unavailable"),
        ("a memory provider that rejects a turn", "invalid-input"),
        ("a memory provider without a permission", "denied"),
    ] {
        let server = model();
        let home = Home::with(&server);
        home.install_guest("scribe", "scribe", json!({ "sync": sync }));
        home.set("memory.provider", json!("scribe"));
        screens.notice(situation, &home, home.hermes(&["-z", "hello"]));
    }
    let server = model();
    let home = Home::with(&server);
    home.install_guest("scribe", "scribe", json!({"recall_ms": 5_000}));
    home.set("memory.provider", json!("scribe"));
    screens.notice("a slow memory provider", &home, home.hermes(&["-z", "hello"]));
    insta::assert_snapshot!(screens.text());
}
