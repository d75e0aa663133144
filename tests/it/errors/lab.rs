use hermes_tests::{Home, Reply, Server};

use super::Screens;

const RECORDING: &str =
    "{\"role\": \"user\", \"content\": \"hello\"}\n{\"role\": \"assistant\", \"content\": \"Hello.\"}\n";

#[test]
fn lab() {
    let mut screens = Screens::default();
    let home = Home::with(&Server::answering(|_, _| Reply::text("Nobody asks.")));
    home.write_workspace("recording.jsonl", RECORDING);
    home.write_workspace("notes.txt", "These are words.");
    home.write_workspace("question.jsonl", RECORDING.lines().next().unwrap());
    home.write_workspace("prices.json", "{\"input\": -1}");
    for (situation, arguments) in [
        ("a recording that does not exist", &["replay", "missing.jsonl"][..]),
        ("a file that is not a recording", &["replay", "notes.txt"]),
        ("a recording without a reply", &["replay", "question.jsonl"]),
        ("a window that is too small", &["replay", "recording.jsonl", "--window", "100"]),
        ("prices that are none", &["replay", "recording.jsonl", "--prices", "prices.json"]),
        ("an engine that does not exist", &["replay", "recording.jsonl", "--engine", "compresor"]),
        ("an engine that is named twice", &["replay", "recording.jsonl", "--engine", "none", "--engine", "none"]),
        ("an engine with settings that are not JSON", &["replay", "recording.jsonl", "--engine", "lossless={keep:5}"]),
        ("a path without an engine", &["replay", "recording.jsonl", "--engine", "./nowhere"]),
        ("a command without a name", &["replay", "recording.jsonl", "--external", "peer"]),
        ("a command with an open quote", &["replay", "recording.jsonl", "--external", "peer='python"]),
        ("no engine to verify", &["verify", "none"]),
        ("words in place of dialogues", &["recall", "notes.txt"]),
        ("an object in no known format of dialogues", &["recall", "prices.json"]),
        ("dialogues that are chosen by no number", &["recall", "notes.txt", "--only", "9-5"]),
        ("a memory provider that is named twice", &["recall", "notes.txt", "--provider", "a", "--provider", "a"]),
        ("a memory provider with settings that are a list", &["recall", "notes.txt", "--provider", "a=[]"]),
    ] {
        let arguments = [&["lab"], arguments].concat();
        screens.error(situation, &home, home.hermes(&arguments));
    }
    insta::assert_snapshot!(screens.text());
}
