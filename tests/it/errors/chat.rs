use hermes_tests::{Home, Reply, Server};
use serde_json::json;

use super::Screens;

#[test]
fn commands_of_a_chat() {
    let mut screens = Screens::default();
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = Home::with(&server);
    for (situation, lines) in [
        ("a mistyped command", &["/comress"][..]),
        ("an unknown command", &["/dance"]),
        ("a wrong number of turns", &["/rewind all"]),
        ("words behind a command that takes none", &["/branch off"]),
        ("a rewind of nothing", &["/rewind"]),
        ("a rewind of more turns than there are", &["one", "/rewind 5"]),
        ("a branch of nothing", &["/branch"]),
        ("a compaction of nothing", &["/compress"]),
        ("a compaction of a short conversation", &["one", "/compress"]),
        ("a preview of a compaction of a short conversation", &["one", "/compress --preview"]),
        ("a compaction that would save too little", &["one", "two", "/compress"]),
        ("an engine that does not exist", &["one", "/engine compresor"]),
        ("a plugin that is not an engine", &["one", "/engine files"]),
    ] {
        screens.chat(situation, &home, lines);
    }
    home.set("compression.enabled", json!(false));
    screens.chat("a compaction that is switched off", &home, &["one", "two", "/compress"]);
    insta::assert_snapshot!(screens.text());
}

#[test]
fn a_turn_that_fails_in_a_chat() {
    let mut screens = Screens::default();
    let server = Server::answering(|_, _| Reply::error(401, "incorrect API key provided"));
    let home = Home::with(&server);
    screens.chat("a refused key", &home, &["hello"]);
    screens.chat("an empty message between two others", &home, &["hello", " ", "/rewind"]);
    insta::assert_snapshot!(screens.text());
}
