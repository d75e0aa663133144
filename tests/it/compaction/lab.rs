//! The laboratory on the real engines: reports are reproducible, and nothing is lost.

use std::fs;
use std::time::{Duration, SystemTime};

use hermes_tests::{Home, staged_guest};
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

/// A test engine in the folder `mine`, with a schema for its settings. It is not installed.
fn uninstalled(home: &Home) {
    let (manifest, component) = staged_guest("planner");
    let schema = "config:\n  type: object\n  properties:\n    timing: {enum: [never, boundary, now]}\n    keep_turns: \
                  {type: integer}\n    bad: {type: integer}\n  additionalProperties: false\n";
    home.write_workspace("mine/plugin.yaml", format!("{manifest}\n{schema}"));
    home.write_workspace("mine/planner.wasm", component);
}

/// Compares the sums over a column's part of the trace with its figures in the report.
fn assert_sums(rows: &[&Value], figures: &Value) {
    let requests: Vec<&Value> = rows.iter().filter(|row| row["type"] == "request").copied().collect();
    let tokens = |key: &str| requests.iter().map(|row| row[key].as_f64().unwrap()).sum::<f64>();
    let largest = requests.iter().map(|row| row["tokens"].as_f64().unwrap()).fold(0.0, f64::max);
    let summaries: Vec<&Value> = rows.iter().flat_map(|row| row["summaries"].as_array().unwrap()).collect();
    let of_summaries = |key: &str| summaries.iter().map(|summary| summary[key].as_f64().unwrap()).sum::<f64>();
    for (figure, sum) in [
        ("mean_context", tokens("tokens") / requests.len() as f64),
        ("max_context", largest),
        ("read", tokens("read")),
        ("written", tokens("written")),
        ("fresh", tokens("fresh")),
        ("request_cost", tokens("cost")),
        ("fault_tax", tokens("fault_tax")),
        ("summary_input", of_summaries("input")),
        ("summary_output", of_summaries("output")),
        ("summary_cost", of_summaries("cost")),
    ] {
        assert_eq!(figures[figure], json!(sum.round() as u64), "{figure}");
    }
    let count = |is: &dyn Fn(&Value) -> bool| requests.iter().filter(|row| is(row)).count();
    let lines = |key: &str| requests.iter().map(|row| row[key].as_array().unwrap().len()).sum::<usize>();
    let references: u64 = requests.iter().map(|row| row["references"].as_u64().unwrap()).sum();
    for (figure, sum) in [
        ("requests", requests.len()),
        ("references", references as usize),
        ("faults", lines("lacking")),
        ("faulting_requests", count(&|row| row["lacking"] != json!([]))),
        ("breaks", count(&|row| !row["prefix_break"].is_null())),
        ("avoidable_breaks", count(&|row| row["prefix_break"] == "avoidable")),
        ("invalid_requests", count(&|row| !row["invalid"].is_null())),
        ("publications", count(&|row| !row["publication"].is_null())),
        ("prepared", count(&|row| row["publication"]["prepared"] == true)),
        ("by_rule", count(&|row| row["publication"]["by_rule"] == true)),
        ("free", count(&|row| row["publication"]["cold"] == true)),
        ("summaries", summaries.len()),
    ] {
        assert_eq!(figures[figure], json!(sum), "{figure}");
    }
    if figures["plans_asked"].is_null() {
        assert!(rows.iter().all(|row| row["plans"].is_null()));
        return;
    }
    let plans: Vec<&Value> = rows.iter().map(|row| &row["plans"]).collect();
    let numbers = |key: &str| plans.iter().map(|plans| plans[key].as_u64().unwrap()).sum::<u64>();
    let listed = |key: &str| plans.iter().map(|plans| plans[key].as_array().unwrap().len() as u64).sum::<u64>();
    for (figure, sum) in [
        ("plans_asked", numbers("asked")),
        ("failures", numbers("failures")),
        ("plans_deferred", listed("deferred")),
        ("plans_refused", listed("refused")),
    ] {
        assert_eq!(figures[figure], sum, "{figure}");
    }
}

#[test]
fn an_engine_that_is_not_installed_is_compared_under_several_settings_with_a_trace() {
    let home = Home::new();
    home.write_workspace("recording.jsonl", recording());
    uninstalled(&home);
    let names = [
        "none",
        r#"./mine={"timing":"boundary","keep_turns":3}"#,
        r#"./mine={"timing":"now","keep_turns":1,"bad":2}"#,
        "./mine",
        "compressor",
    ];
    let engines = names.iter().flat_map(|name| ["--engine", name]);
    let arguments: Vec<&str> = ["lab", "replay", "recording.jsonl", "--json", "--window", "30000"]
        .into_iter()
        .chain(["--trace", "trace.jsonl"])
        .chain(engines)
        .collect();
    let report: Value = serde_json::from_str(&home.hermes(&arguments).run().success().stdout).unwrap();
    let trace = || fs::read_to_string(home.workspace().join("trace.jsonl")).unwrap();
    let first = trace();
    home.hermes(&arguments).run().success();
    assert_eq!(first, trace(), "the trace is reproducible");
    assert!(!home.path().join("plugins").exists(), "nothing was installed");

    let rows: Vec<Value> = first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| rows.iter().filter(|row| row["column"] == name).collect::<Vec<_>>();
    for name in names {
        assert_eq!(of(name).len(), 61, "a row for each of 60 requests, and one for the end");
        assert_sums(&of(name), &column(&report, name)["figures"]);
    }
    let figure = |at: usize, figure: &str| column(&report, names[at])["figures"][figure].as_u64().unwrap();
    assert!(figure(1, "publications") > figure(3, "publications"), "{report:#}");
    assert_ne!(figure(1, "mean_context"), figure(2, "mean_context"), "{report:#}");

    let boundary = of(names[1]);
    let deferred: Vec<&Value> = boundary.iter().flat_map(|row| row["plans"]["deferred"].as_array().unwrap()).collect();
    assert!(!deferred.is_empty());
    for plan in deferred {
        assert!(plan["saved"].as_f64() <= plan["surcharge"].as_f64(), "{plan}");
        let number = |key: &str| plan[key].as_f64().unwrap();
        let saved = number("requests") * 0.1 * (number("before") - number("after"));
        assert!((number("saved") - saved).abs() < 0.01 && plan["reason"] == "as it was configured", "{plan}");
    }
    let published = boundary.iter().find(|row| !row["publication"].is_null()).unwrap();
    let compaction = &published["publication"]["compactions"][0];
    assert_eq!((&compaction["by"], &compaction["reason"]), (&json!("planner"), &json!("as it was configured")));
    assert!(compaction["after"].as_u64() < compaction["before"].as_u64(), "{compaction}");
    let refused: Vec<&str> = of(names[2])
        .into_iter()
        .flat_map(|row| row["plans"]["refused"].as_array().unwrap())
        .map(|refusal| refusal.as_str().unwrap())
        .collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    let lacking = of("compressor").into_iter().flat_map(|row| row["lacking"].as_array().unwrap()).next();
    assert!(lacking.is_none_or(|line| line.as_str().unwrap().contains("compute_something")));
}

#[test]
fn settings_that_the_schema_refuses_and_builds_that_cannot_be_used_are_explained() {
    let home = Home::new();
    home.write_workspace("recording.jsonl", recording());
    uninstalled(&home);
    let (manifest, component) = staged_guest("keeper");
    home.write_workspace("memory/plugin.yaml", manifest);
    home.write_workspace("memory/keeper.wasm", component);
    let (manifest, component) = staged_guest("planner");
    let cargo = "[package]\nname = \"planner\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    home.write_workspace("project/plugin.yaml", manifest);
    home.write_workspace("project/Cargo.toml", cargo);
    home.write_workspace("project/src/lib.rs", "");
    let replayed = |engine: &str| home.hermes(&["lab", "replay", "recording.jsonl", "--engine", engine]).run();
    replayed("./project").exits(1).says(&["was not built", "cargo build"]);
    let built = "project/target/wasm32-wasip2/release/planner.wasm";
    home.write_workspace(built, component);
    let of_project = |arguments: &[&str]| {
        home.hermes(arguments).env("CARGO_TARGET_DIR", home.workspace().join("project/target").to_str().unwrap()).run()
    };
    let arguments = ["lab", "replay", "recording.jsonl", "--engine", "./project", "--no-recall"];
    of_project(&arguments).success();
    let hour = SystemTime::now() - Duration::from_secs(3_600);
    fs::File::options().append(true).open(home.workspace().join(built)).unwrap().set_modified(hour).unwrap();
    of_project(&arguments).exits(1).says(&["is older than", "Cargo.toml", "cargo build"]);
    let verified = ["lab", "verify", "--engine", "./project"];
    of_project(&verified).exits(1).says(&["is older than", "Cargo.toml"]);

    replayed(r#"./mine={"keep_turns":"three"}"#).exits(2).says(&["settings of `planner` are invalid", "keep_turns"]);
    replayed(r#"./mine={"keep":3}"#).exits(2).says(&["settings of `planner` are invalid", "keep"]);
    replayed(r#"./mine={"keep_turns":3"#).exits(2).says(&["not a JSON object", "NAME={"]);
    replayed("./memory").exits(5).says(&["not a context engine", "memory-provider"]);
    replayed("./nowhere").exits(1).says(&["does not exist"]);
    let engine = ["--engine", "./mine", "--trace", "nowhere/trace.jsonl"];
    home.hermes(&[&["lab", "replay", "recording.jsonl"], &engine[..]].concat()).run().exits(1).says(&["trace"]);
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

#[test]
fn an_engine_that_is_not_installed_is_verified() {
    let home = Home::new();
    let Some(folder) = hermes_test_data::staged("bundled/context_engine/compressor") else { return };
    let arguments = ["lab", "verify", "--conversations", "10", "--jobs", "1", "--json"];
    let run = |engine: &[&str]| home.hermes(&[&arguments, engine].concat()).run().success().stdout;
    let by_path = run(&["--engine", folder.to_str().unwrap(), "--trace", "trace.jsonl"]);
    assert_eq!(by_path, run(&["compressor"]), "it is the bundled engine");

    let proof: Value = serde_json::from_str(&by_path).unwrap();
    let trace = fs::read_to_string(home.workspace().join("trace.jsonl")).unwrap();
    let rows: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |is: &dyn Fn(&Value) -> usize| rows.iter().map(is).sum::<usize>();
    for (what, sum) in [
        ("requests", count(&|row| usize::from(row["tokens"].is_u64()))),
        ("messages", count(&|row| usize::from(row["kind"] == "message"))),
        ("kills", count(&|row| usize::from(row["kind"] == "kill"))),
        ("publications", count(&|row| row["compactions"].as_array().unwrap().len())),
    ] {
        assert_eq!(proof["counts"][what], json!(sum), "{what}");
    }
    assert!(rows.is_sorted_by_key(|row| (row["seed"].as_u64(), row["event"].as_u64())));
}

/// A small part of what `cargo xtask verify` runs: in the usual run, and in the long one.
const GENERATED: (u64, u64) = (200, 1_000);

fn assert_nothing_is_lost(engine: &str) {
    let home = Home::new();
    let generated = hermes_test_data::at_length(GENERATED.0, GENERATED.1);
    let count = generated.to_string();
    let arguments = ["lab", "verify", engine, "--conversations", &count, "--jobs", "1", "--json"];
    let proof = home.hermes(&arguments).timeout(Duration::from_secs(1_100)).run().success().stdout;
    let proof: Value = serde_json::from_str(&proof).unwrap();
    assert_eq!(proof["failed"], 0, "{proof}");
    let counts = |what: &str| proof["counts"][what].as_u64().unwrap_or_else(|| panic!("no {what} in {proof}"));
    assert_eq!(counts("conversations"), generated);
    assert!(counts("publications") > generated, "{proof}");
}

#[test]
fn generated_conversations_lose_nothing_through_the_compressor() {
    assert_nothing_is_lost("compressor");
}

#[test]
fn generated_conversations_lose_nothing_through_lossless() {
    assert_nothing_is_lost("lossless");
}
