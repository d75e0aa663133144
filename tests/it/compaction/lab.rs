//! The laboratory on the real engines: reports are reproducible, and nothing is lost.

use std::time::Duration;

use hermes_tests::Home;
use serde_json::{Value, json};

/// A conversation that outgrows a small window: files read, edited and asked about again.
fn recording() -> String {
    let mut lines = Vec::new();
    for turn in 0..30 {
        let file: String =
            (0..60).map(|line| format!("    let value_{turn}_{line} = compute_something({line}, {turn});\n")).collect();
        let time = 1_700_000_000_000_u64 + turn * 60_000;
        let call = json!({"id": format!("c{turn}"), "function": {"name": "read", "arguments": format!("{{\"path\":\"f{turn}.rs\"}}")}});
        lines.push(
            json!({"role": "user", "content": format!("please look at f{turn}.rs, case {turn}"), "timestamp": time}),
        );
        lines.push(json!({"role": "assistant", "content": "", "tool_calls": [call], "timestamp": time + 1_000}));
        lines.push(
            json!({"role": "tool", "tool_call_id": format!("c{turn}"), "content": file, "timestamp": time + 2_000}),
        );
        // Every reply repeats a line that was read two turns earlier.
        let old = u64::saturating_sub(turn, 2);
        let reused = format!("    let value_{old}_7 = compute_something(7, {old});");
        lines.push(json!({"role": "assistant", "content": format!("It says:\n{reused}"), "timestamp": time + 3_000}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn column<'a>(report: &'a Value, name: &str) -> &'a Value {
    let columns = report["recordings"][0]["columns"].as_array().unwrap();
    columns.iter().find(|column| column["name"] == name).unwrap()
}

#[test]
fn the_comparison_of_engines_is_reproducible_byte_for_byte() {
    let home = Home::new();
    home.write_workspace("recording.jsonl", recording());
    let arguments =
        ["lab", "replay", "recording.jsonl", "--engine", "none", "--engine", "compressor", "--window", "30000"];
    let run = |more: &[&str]| home.hermes(&[&arguments, more].concat()).run().success().stdout;
    let first = run(&["--json", "--plot", "plot.svg"]);
    assert_eq!(first, run(&["--json"]));
    assert_eq!(run(&[]), run(&[]));
    let report: Value = serde_json::from_str(&first).unwrap();
    let (none, compressor) = (column(&report, "none"), column(&report, "compressor"));
    for column in [none, compressor] {
        let figures = &column["figures"];
        assert_eq!((&figures["requests"], &figures["invalid_requests"]), (&json!(60), &json!(0)), "{column}");
        assert_eq!(figures["avoidable_breaks"], 0, "{column}");
    }
    assert_eq!(none["figures"]["faults"], 0);
    assert!(compressor["figures"]["publications"].as_u64().unwrap() > 0, "{compressor}");
    assert_eq!(compressor["figures"]["over_window"], 0, "{compressor}");
    assert!(compressor["derived"]["ratio"].as_f64().unwrap() < 1.0, "{compressor}");
    let plot = std::fs::read_to_string(home.workspace().join("plot.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("<circle"), "{plot}");
}

#[test]
fn a_column_that_ends_early_keeps_the_others_and_sets_the_exit_code() {
    let home = Home::new();
    home.write_workspace("recording.jsonl", recording());
    let external = "dying=sh -c 'echo out of order >&2; exit 4'";
    let output = home
        .hermes(&["lab", "replay", "recording.jsonl", "--engine", "none", "--external", external, "--json"])
        .run()
        .exits(1);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(column(&report, "none")["figures"]["requests"], 60);
    let error = column(&report, "dying")["error"].as_str().unwrap();
    assert!(error.contains("exit status: 4") && error.contains("out of order"), "{error}");
}

#[test]
fn an_invalid_recording_is_reported_with_file_and_line() {
    let home = Home::new();
    home.write_workspace("broken.jsonl", "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\n");
    let output = home.hermes(&["lab", "replay", "broken.jsonl"]).run().exits(1);
    assert!(output.stderr.contains("broken.jsonl, line 2"), "{}", output.stderr);
}

#[test]
fn generated_conversations_lose_nothing_through_the_bundled_engine() {
    let home = Home::new();
    let run = |jobs: &str| {
        let arguments = ["lab", "verify", "compressor", "--conversations", "40", "--jobs", jobs, "--json"];
        home.hermes(&arguments).run().success().stdout
    };
    let proof = run("1");
    assert_eq!(proof, run("2"), "how many threads there are changes nothing");
    let proof: Value = serde_json::from_str(&proof).unwrap();
    assert_eq!(proof["failed"], 0, "{proof}");
    assert!(proof["counts"]["publications"].as_u64().unwrap() > 20, "{proof}");
}

/// A small part of what `cargo xtask verify` runs.
const GENERATED: u64 = 1_000;

fn assert_nothing_is_lost(engine: &str) {
    let home = Home::new();
    let count = GENERATED.to_string();
    let arguments = ["lab", "verify", engine, "--conversations", &count, "--jobs", "1", "--json"];
    let proof = home.hermes(&arguments).timeout(Duration::from_secs(1_100)).run().success().stdout;
    let proof: Value = serde_json::from_str(&proof).unwrap();
    assert_eq!(proof["failed"], 0, "{proof}");
    let counts = |what: &str| proof["counts"][what].as_u64().unwrap_or_else(|| panic!("no {what} in {proof}"));
    assert_eq!(counts("conversations"), GENERATED);
    assert!(counts("publications") > GENERATED, "{proof}");
}

#[test]
fn a_thousand_conversations_lose_nothing_through_the_compressor() {
    assert_nothing_is_lost("compressor");
}

#[test]
fn a_thousand_conversations_lose_nothing_through_lossless() {
    assert_nothing_is_lost("lossless");
}
