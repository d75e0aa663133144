//! A plugin's SQL and documents: no statement outlives its call, at the first start as in a session, and neither takes more
//! memory, time or disk than the plugin's limits. The guest `tests/guests/clerk` passes on what a test chooses.

use std::time::{Duration, Instant};

use hermes_tests::{Call, Home, Reply, Server, staged_guest};
use serde_json::{Value, json};

use super::processes::{Watched, workers_of};

/// How long a command may take that starts a plugin once. What is attacked took minutes to hours.
const PATIENCE: Duration = Duration::from_secs(600);

/// The statements of a catalog that would ask for hours.
fn endless() -> Vec<(&'static str, Value)> {
    let trim = json!(["SELECT length(trim(?1, ?2))", [["a", 1_000_000], "b"], [["b", 87_000], "a"]]);
    let replace = json!(["SELECT length(replace(?1, ?2, 'x'))", ["a", 1_000_000], [["a", 500_000], "b"]]);
    let words = json!([
        ["CREATE VIRTUAL TABLE words USING fts5 (text)"],
        ["INSERT INTO words VALUES (?1)", ["w ", 100_000]],
        ["SELECT count(*) FROM words WHERE words MATCH ?1", [["w OR ", 200_000], "w"]],
    ]);
    let highlight = json!([
        ["CREATE VIRTUAL TABLE words USING fts5 (text)"],
        ["INSERT INTO words VALUES (?1)", ["w ", 100_000]],
        [
            "SELECT count(rank) FROM words WHERE words MATCH 'w' AND rank MATCH ?1",
            ["highlight(0, '", ["x", 400_000], "', '", ["x", 400_000], "')"]
        ],
    ]);
    vec![("trim", json!([trim])), ("replace", json!([replace])), ("words", words), ("highlight", highlight)]
}

fn home_with(catalog: &Value) -> Home {
    let home = Home::new();
    let (manifest, component) = staged_guest("clerk");
    home.write_workspace("clerk/plugin.yaml", manifest);
    home.write_workspace("clerk/clerk.wasm", component);
    home.set("plugins.entries.clerk", json!({ "catalog": catalog }));
    home
}

#[test]
fn a_first_start_that_asks_for_hours_ends_with_its_limits() {
    for (name, catalog) in endless() {
        let home = home_with(&catalog);
        let install = |grant: &[&str]| {
            let begun = Instant::now();
            let arguments = [&["plugins", "install", "./clerk"], grant].concat();
            let output = home.hermes(&arguments).run().success();
            assert!(begun.elapsed() < PATIENCE, "{name} {grant:?}: {:?}\n{output}", begun.elapsed());
        };
        install(&["--grant", "none"]);
        home.hermes(&["plugins", "remove", "clerk", "--yes"]).run();
        install(&["--yes"]);
        home.set("plugins.enabled", json!(["clerk"]));
        for command in [&["plugins", "info", "clerk"][..], &["plugins", "doctor"]] {
            let begun = Instant::now();
            home.hermes(command).run();
            assert!(begun.elapsed() < PATIENCE, "{name} {command:?}: {:?}", begun.elapsed());
        }
        assert_eq!(workers_of(&home), [0; 0], "{name}");
    }
}

#[test]
fn a_first_start_takes_no_memory_beyond_the_limits() {
    let insert = json!(["WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 350) \
         INSERT INTO kept SELECT zeroblob(1000000) FROM n"]);
    let home = home_with(&json!([["CREATE TABLE kept (x)"], insert, insert, insert]));
    // Compiled before, because the compiler takes more memory than the plugin.
    home.hermes(&["plugins", "install", "./clerk", "--grant", "none"]).run().success();
    home.hermes(&["plugins", "remove", "clerk", "--yes"]).run();
    for (grant, most) in [(&["--grant", "none"][..], 0), (&["--yes"], 128)] {
        let arguments = [&["plugins", "install", "./clerk"], grant].concat();
        let watched = Watched::start(home.hermes(&arguments).spawn());
        let (output, peak) = watched.wait();
        output.success();
        // 64 MiB of the plugin's own, and 256 MiB for Hermes.
        assert!(peak < (64 + 256 + most) << 20, "{grant:?}: {} MiB", peak >> 20);
        home.hermes(&["plugins", "remove", "clerk", "--yes"]).run();
    }
}

/// A session in which the model calls these tools of the clerk, one after the other. Returns the results.
fn called(limits: Value, calls: &[(&str, Value)]) -> (Vec<Value>, Home) {
    let replies = calls
        .iter()
        .enumerate()
        .map(|(at, (tool, arguments))| Reply::calls([Call::new(&format!("call_{at}"), tool, arguments)]));
    let server = Server::scripted(replies.chain([Reply::text("Done.")]).collect::<Vec<_>>());
    let home = Home::with(&server);
    home.install_guest("clerk", "clerk", json!({}));
    home.set("plugins.enabled", json!(["clerk"]));
    home.set("plugins.settings.clerk.limits", limits);
    let output = home.hermes(&["-z", "go"]).run().success();
    assert_eq!(output.stdout, "Done.\n");
    let turns = server.turns();
    let results = turns.iter().skip(1).flat_map(|request| request.trailing_results());
    let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    (results.map(|(_, text)| read(text)).collect(), home)
}

#[test]
fn statements_that_do_not_stop_leave_nothing_behind_in_a_session() {
    let stuck = json!({ "sql": ["SELECT count(*) FROM words WHERE words MATCH ?1", [["w OR ", 200_000], "w"]] });
    let one = json!({ "sql": "SELECT 1" });
    let made = json!({ "sql": ["CREATE VIRTUAL TABLE words USING fts5 (text)", "INSERT INTO words VALUES ('w w w')"] });
    let mut calls = vec![("execute", made)];
    for _ in 0..5 {
        calls.extend([("query", stuck.clone()), ("query", one.clone())]);
    }
    let begun = Instant::now();
    let (results, home) = called(json!({ "tool_time": "4s" }), &calls);
    assert!(begun.elapsed() < PATIENCE * 2, "{:?}", begun.elapsed());
    for pair in results[1..].chunks(2) {
        // On a busy machine the host may give up before it has ended the worker.
        let why = pair[0]["message"].as_str().unwrap_or_default();
        assert!(why.contains("time of the call is up") || why.contains("call's time is up"), "{results:?}");
        assert_eq!(pair[1], json!([[1]]), "{results:?}");
    }
    assert_eq!(workers_of(&home), [0; 0]);
}

#[test]
fn frequent_short_waits_do_not_hide_what_a_plugin_computes() {
    let begun = Instant::now();
    let (results, _) = called(json!({ "cpu": "500ms", "tool_time": "10min" }), &[("peruse", json!({ "ms": 300_000 }))]);
    assert!(begun.elapsed() < PATIENCE * 2, "{:?}", begun.elapsed());
    assert!(results[0].as_str().is_some_and(|text| text.contains("`cpu`")), "{results:?}");
}

#[test]
fn documents_fill_no_disk() {
    let limits = json!({ "document_bytes": "1MiB", "document_count": 50 });
    let (results, home) = called(
        limits,
        &[("store", json!({ "count": 5_000, "bytes": 100_000 })), ("store", json!({ "count": 5_000, "bytes": 10 }))],
    );
    assert_eq!(results[0], json!({ "kept": 10, "code": "quota" }));
    let folder = home.path().join("data/clerk/documents");
    let entries: Vec<_> = folder.read_dir().unwrap().flatten().collect();
    let bytes: u64 = entries.iter().map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(bytes <= 1 << 20 && entries.len() <= 100, "{} files, {bytes} bytes", entries.len());
}
