//! The archives in `tests/kept`, which name version 1.0.0 of the contract: each is installed as a user would, and used.

use std::path::{Path, PathBuf};

use hermes_tests::Home;

use super::toolchains::session;

fn archive(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kept").join(format!("{name}-0.1.0.tar.gz"))
}

#[test]
fn plugins_in_rust_work() {
    session("context-engine", &archive("rust-engine"), "rust-engine");
    session("memory-provider", &archive("rust-memory"), "rust-memory");
    session("skills", &archive("rust-skills"), "rust-skills");
    session("tools", &archive("rust-tools"), "rust-tools");
    session("hooks", &archive("rust-hooks"), "rust-hooks");
}

#[test]
fn plugins_in_javascript_work() {
    session("tools", &archive("js-tools"), "js-tools");
    session("memory-provider", &archive("js-memory"), "js-memory");
}

#[test]
fn plugins_in_c_work() {
    session("tools", &archive("c-tools"), "c-tools");
    session("context-engine", &archive("c-engine"), "c-engine");
}

#[test]
fn an_embedder_works() {
    let home = Home::new();
    home.hermes(&["plugins", "install", archive("rust-embedder").to_str().unwrap(), "--yes"]).run().success();
    let installed = home.path().join("plugins/rust-embedder");
    let tested = home.hermes(&["plugins", "test", installed.to_str().unwrap()]).run().success();
    assert!(tested.stdout.contains("checks passed"), "{tested}");
}
