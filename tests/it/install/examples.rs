//! The engines of `sdk/examples`, written in C and Python.
//!
//! They need compilers that a checkout does not bring, so these tests are not part of `cargo xtask test`. `cargo xtask
//! examples` builds the engines and runs these tests; each `build.sh` names the tools that it needs.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

use crate::fixtures::journal::long_text;

/// The folder of a built example.
fn built(language: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/examples").join(language).join("build");
    if !folder.join("engine.wasm").is_file() {
        hermes_test_data::missing(&format!("sdk/examples/{language} is not built; run `cargo xtask examples`"));
        return None;
    }
    Some(folder)
}

/// Tests the engine against its contract, and folds a session with long replies.
fn engine_at_work(language: &str, name: &str) {
    let Some(folder) = built(language) else { return };
    let home = Home::new();
    let tested = home.hermes(&["plugins", "test", folder.to_str().unwrap(), "--conversations", "40"]).run();
    assert!(tested.status.success(), "{tested}");

    let server = Server::answering(|_, number| Reply::text(long_text("answer", number)).in_steps_of(200));
    let home = Home::with(&server);
    for file in ["plugin.yaml", "engine.wasm"] {
        home.write(&format!("plugins/{name}/{file}"), fs::read(folder.join(file)).unwrap());
    }
    home.grant(name);
    home.set("context.engine", json!(name));
    home.set("model.context_length", json!(12_000));
    for number in 0..10 {
        let text = long_text("turn", number);
        let output = home.hermes(&["-z", text.as_str(), "--continue"]).run().success();
        assert!(!output.stderr.contains("refused"), "{output}");
    }
    let last = server.last_turn().body.to_string();
    assert!(last.contains(": turn") || last.contains("user: "), "the digest stands in the last request");
}

#[test]
fn an_engine_in_c_keeps_the_contract_and_folds_a_session() {
    engine_at_work("c", "c-engine");
}

#[test]
fn an_engine_in_python_keeps_the_contract_and_folds_a_session() {
    engine_at_work("python", "python-engine");
}
