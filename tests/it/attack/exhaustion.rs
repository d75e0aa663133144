//! Plugins that try to exhaust time and memory in one session, all at once, while a user talks: turns keep their deadlines,
//! memory stays under the sum of the plugins' limits and 256 MiB, and Ctrl-C works.

use std::time::{Duration, Instant};

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

use super::processes::{Watched, workers_of};
use crate::fixtures::listener::Listener;

/// Limits of each plugin: small, so that every one is reached.
const MEMORY: u64 = 32;
const SQL_MEMORY: u64 = 32;
const TOOL_TIME: Duration = Duration::from_secs(3);
const FOR_EVER: Duration = Duration::from_secs(36_000);
/// The plugins whose calls end only with their time.
const ENDED_BY_TIME: [&str; 4] = ["sqltime", "reader", "post", "programs"];
const TURNS: usize = 3;

/// A guest, the name of the plugin that is made of it, and the calls that the model makes of it in a turn.
type Glutton = (&'static str, &'static str, Vec<(String, Value)>);

fn plugins(listener: &Listener) -> Vec<Glutton> {
    let clerk = |name: &str, tool: &str, arguments: Value| (format!("{name}_{tool}"), arguments);
    let growing =
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT randomblob(900000) FROM n ORDER BY 1";
    vec![
        (
            "clerk",
            "sqltime",
            vec![
                clerk(
                    "sqltime",
                    "execute",
                    json!({ "sql": [
                        "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text)",
                        "INSERT INTO words VALUES ('w w w')",
                    ]}),
                ),
                clerk(
                    "sqltime",
                    "query",
                    json!({ "sql": ["SELECT trim(?1, ?2)", ["a", 900_000], [["b", 500_000], "a"]] }),
                ),
                clerk(
                    "sqltime",
                    "query",
                    json!({ "sql": ["SELECT count(*) FROM words WHERE words MATCH ?1", [["w OR ", 200_000], "w"]] }),
                ),
            ],
        ),
        (
            "clerk",
            "sqlroom",
            vec![
                clerk("sqlroom", "query", json!({ "sql": growing })),
                clerk("sqlroom", "query", json!({ "sql": growing })),
            ],
        ),
        ("clerk", "papers", vec![clerk("papers", "store", json!({ "count": 10_000, "bytes": 200_000 }))]),
        ("clerk", "talker", vec![clerk("talker", "chatter", json!({ "lines": 100_000 }))]),
        ("clerk", "reader", vec![clerk("reader", "peruse", json!({ "ms": 300_000 }))]),
        (
            "courier",
            "post",
            (0..4)
                .map(|_| ("send".to_owned(), json!({ "url": listener.url("/stalls"), "timeout": 3_600_000 })))
                .collect(),
        ),
        (
            "runner",
            "programs",
            vec![(
                "run".to_owned(),
                json!({ "runs": [{ "program": "sh", "arguments": ["-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"] }] }),
            )],
        ),
        ("hostile", "hostile", ["alloc", "loop"].map(|mode| ("poke".to_owned(), json!({ "mode": mode }))).to_vec()),
    ]
}

/// A home with these plugins, each of which has small limits.
fn home_with(server: &Server, plugins: &[Glutton], listener: &Listener, tool_time: Duration, cpu: Duration) -> Home {
    let home = Home::with(server);
    for (guest, name, _) in plugins {
        let config = if *guest == "clerk" { json!({ "prefix": format!("{name}_") }) } else { json!({ "mode": "ok" }) };
        home.install_guest(guest, name, config);
        if *guest == "courier" {
            let manifest = json!({
                "name": name, "version": "0.1.0", "component": "post.wasm",
                "permissions": { "http": [{ "url": listener.url("/") }] },
            });
            home.write("plugins/post/plugin.yaml", manifest.to_string());
            home.grant(name);
        }
        // The others reach another limit, on a slow machine too.
        let tool_time = if ENDED_BY_TIME.contains(name) { tool_time } else { FOR_EVER };
        home.set(
            &format!("plugins.settings.{name}.limits"),
            json!({
                "memory": format!("{MEMORY}MiB"), "sql_memory": format!("{SQL_MEMORY}MiB"), "document_bytes": "4MiB",
                "cpu": format!("{}ms", cpu.as_millis()), "tool_time": format!("{}s", tool_time.as_secs()),
                "start_time": "600min", "turn_time": "600min",
            }),
        );
    }
    let names: Vec<&str> = plugins.iter().map(|(_, name, _)| *name).filter(|name| *name != "hostile").collect();
    home.set("plugins.enabled", json!(names));
    home.set("context.engine", json!("hostile"));
    home.set("approvals.allow", json!(["programs/process:sh"]));
    home
}

#[test]
fn eight_plugins_that_exhaust_everything_do_not_stop_a_conversation() {
    let listener = Listener::start(|_| {
        std::thread::sleep(FOR_EVER);
        String::new()
    });
    let plugins = plugins(&listener);
    let calls: Vec<(String, Value)> = plugins.iter().flat_map(|(_, _, calls)| calls.clone()).collect();
    let replies = (1..=TURNS).flat_map(|turn| {
        let call = |(at, (name, arguments)): (usize, &(String, Value))| {
            Call::new(&format!("call_{turn}_{at}"), name, arguments)
        };
        [Reply::calls(calls.iter().enumerate().map(call)), Reply::text(format!("Answer {turn}."))]
    });
    let server = Server::scripted(replies.collect::<Vec<_>>());
    let home = home_with(&server, &plugins, &listener, TOOL_TIME, Duration::from_millis(300));

    let mut watched = Watched::start(home.hermes(&[]).talking().spawn());
    for turn in 1..=TURNS {
        watched.running().say(&format!("Turn {turn}."));
        watched.running().wait_for_stdout(&format!("Answer {turn}."));
    }
    let (output, peak) = watched.wait();
    output.success();
    let limits = (MEMORY + SQL_MEMORY) * plugins.len() as u64;
    println!("{} MiB at most, with limits of {limits} MiB", peak >> 20);
    assert!(peak < (limits + 256) << 20, "{} MiB of {}", peak >> 20, limits + 256);
    assert_eq!(workers_of(&home), [0; 0]);
    // Every call has a result, and each attack met its limit.
    let results: Vec<String> =
        server.turns().iter().flat_map(|request| request.trailing_results()).map(|(_, text)| text.to_owned()).collect();
    let with = |part: &str| results.iter().filter(|result| result.contains(part)).count();
    assert_eq!(results.len(), calls.len() * TURNS);
    for part in ["is up", "too much memory", "\"quota\"", "`cpu`"] {
        assert!(with(part) > 0, "`{part}` is not among {results:#?}");
    }
}

/// Ctrl-C ends a turn while all of them burn, and the conversation goes on.
///
/// The aim is 100 ms on a quiet machine: `--no-capture` shows what it took.
#[test]
fn ctrl_c_stops_eight_plugins_that_exhaust_everything() {
    let listener = Listener::start(|_| {
        std::thread::sleep(FOR_EVER);
        String::new()
    });
    let plugins = plugins(&listener);
    // One call of each plugin, so that all of them are at work at once.
    let calls: Vec<(String, Value)> = plugins
        .iter()
        .filter_map(|(_, _, calls)| calls.last())
        .map(|(name, arguments)| (name.clone(), arguments.clone()))
        .collect();
    let server = Server::answering(move |body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        if last["content"].as_str().is_some_and(|text| text.contains("Turn")) {
            let call = |(at, (name, arguments)): (usize, &(String, Value))| {
                Call::new(&format!("call_{number}_{at}"), name, arguments)
            };
            return Reply::calls(calls.iter().enumerate().map(call));
        }
        Reply::text("Still here.")
    });
    let home = home_with(&server, &plugins, &listener, FOR_EVER, FOR_EVER);
    let mut running = home.hermes(&[]).talking().spawn();
    for turn in 1..=TURNS {
        running.say(&format!("Turn {turn}."));
        server.wait_for_finished(turn);
        std::thread::sleep(Duration::from_secs(2));
        let pressed = Instant::now();
        running.interrupt();
        running.wait_for_stdout_times("stopped", turn);
        println!("Ctrl-C stopped turn {turn} after {} ms", pressed.elapsed().as_millis());
    }
    running.say("Are you there?");
    running.wait_for_stdout("Still here.");
    running.wait().success();
    assert_eq!(workers_of(&home), [0; 0]);
}
