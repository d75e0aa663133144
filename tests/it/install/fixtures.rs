//! `hermes plugins test` with fixtures, over the guest `pigeon`, a memory provider whose memories are on a server.

use std::fs;

use hermes_tests::{Home, Output, staged_guest};
use serde_json::Value;

const STAND_IN: &str = "stand-in-for-token";

const LOFT: &str = "\
- request: {method: GET, url: 'https://loft.example.org/v1/search', headers: {authorization: Bearer stand-in-for-token}}
  answer:
  - {status: 429, headers: {retry-after: 1}}
  - {json: {memories: [{id: a, text: The ferry leaves at 07:45; the key is stand-in-for-token.}]}}
- request: {method: POST, url: 'https://loft.example.org/v1/turns', body: Albatross}
  answer: 204
- request: DELETE https://loft.example.org/v1/*
  answer: [204, 404]
";

fn home() -> Home {
    let home = Home::new();
    let (manifest, component) = staged_guest("pigeon");
    home.write_workspace("pigeon/plugin.yaml", manifest);
    home.write_workspace("pigeon/pigeon.wasm", component);
    home.write_workspace("http.yaml", LOFT);
    home.write_workspace("model.yaml", "- {task: memory, reply: The ferry.}\n- {task: vision, reply: A lamp.}\n");
    home
}

/// The report below the checks of memory, without the table of times.
fn shown(output: &Output) -> String {
    let from = output.stdout.find("\nbackend\n").unwrap_or_else(|| panic!("no checks of the backend\n{output}"));
    let is_timed = |line: &str| [" ms ", " µs ", " median "].iter().any(|part| line.contains(part));
    let lines = output.stdout[from..].lines().filter(|line| !is_timed(line));
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn a_plugin_over_http_is_tested_with_fixtures_and_without() {
    let home = home();
    let without = home.hermes(&["plugins", "test", "pigeon"]).run().success();
    for part in ["each answered with 503; `--http FIXTURES`", "its backend is down, and it says so"] {
        assert!(without.stdout.contains(part), "{part}\n{without}");
    }
    let with = home.hermes(&["plugins", "test", "pigeon", "--http", "http.yaml", "--model", "model.yaml"]).run();
    // The turns that do not contain the text have no fixture, so they are answered with 501.
    assert_eq!(with.status.code(), Some(1), "{with}");
    insta::assert_snapshot!(shown(&with));
}

#[test]
fn a_stand_in_for_a_secret_reaches_the_fixtures_and_nothing_else() {
    let home = home();
    home.write_workspace("http.yaml", LOFT.replace(", body: Albatross", ""));
    let output = home.hermes(&["plugins", "test", "pigeon", "--http", "http.yaml", "--json"]).run().success();
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{output}"));
    // The rule requires the stand-in in a header, and it was used.
    assert_eq!(report["http"]["unused"], serde_json::json!(["line 7: DELETE https://loft.example.org/v1/*"]));
    assert_eq!(report["http"]["unmatched"], serde_json::json!([]));
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(!text.contains(STAND_IN), "{output}");
    home.lacks(STAND_IN);
}

#[test]
fn a_mistake_in_fixtures_is_reported_with_its_line() {
    let home = home();
    for (text, parts) in [
        ("- request: GET https://a.org/\n  answer: {status: 42}\n", &["http.yaml: line 2, column", "200 to 599"][..]),
        ("- request: GET https://a.org/\n  anser: 200\n", &["line 2", "anser"]),
        ("", &["no rules"]),
    ] {
        home.write_workspace("http.yaml", text);
        let output = home.hermes(&["plugins", "test", "pigeon", "--http", "http.yaml"]).run().refused().exits(1);
        output.says(parts).says(&["test.fixtures", "docs/plugins/testing.md"]);
    }
    fs::remove_file(home.workspace().join("http.yaml")).unwrap();
    home.hermes(&["plugins", "test", "pigeon", "--http", "http.yaml"])
        .run()
        .refused()
        .says(&["http.yaml cannot be read"]);
}

#[test]
fn hints_fit_the_language_of_the_plugin() {
    let home = home();
    let flawed = |flaw: &str| {
        let config = format!(r#"{{"flaw":"{flaw}"}}"#);
        let arguments = ["plugins", "test", "pigeon", "--http", "http.yaml", "--config", &config];
        home.hermes(&arguments).run().exits(1).stdout
    };
    home.write_workspace("http.yaml", LOFT.replace(", body: Albatross", ""));
    // Without other files, the component says that it was written in Rust.
    assert!(flawed("unwraps-answers").contains("a panic is a crash"));
    home.write_workspace("pigeon/pigeon.py", "");
    let hints = flawed("unwraps-answers");
    assert!(
        hints.contains("an exception that is not an error of the contract is a crash") && !hints.contains("a panic"),
        "{hints}"
    );
    home.write_workspace("pigeon/plugin.yaml", "name: [\n");
    let refused = home.hermes(&["plugins", "test", "pigeon"]).run().refused();
    refused.says(&["plugin.yaml", "line 1"]);
}
