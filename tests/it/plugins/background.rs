//! Programs in the background, through the binary: they outlive calls, crashes and reloads, and end with the session.
//!
//! The guest is `tests/guests/runner`. Its tool `background` carries out steps with background programs.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

/// A program that writes its number into a file, and cannot be asked to end.
const DEAF: &str = "trap '' TERM; echo $$ > pid.part; mv pid.part pid; while :; do sleep 600; done";

fn steps(steps: Value) -> Value {
    json!({ "steps": steps })
}

fn start(script: &str) -> Value {
    json!({ "start": { "program": "sh", "arguments": ["-c", script] } })
}

/// A model that carries out these steps after one another, one call for each request.
fn model_with(calls: Vec<Value>) -> Server {
    Server::answering(move |_, number| match calls.get(number) {
        Some(arguments) => Reply::calls([Call::new(&format!("call_{number}"), "background", arguments)]),
        None => Reply::text("Done."),
    })
}

fn home_with_runner(server: &Server) -> Home {
    let home = Home::with(server);
    home.install_guest("runner", "runner", json!({}));
    home.set("memory.provider", json!("runner"));
    home.set("approvals.allow", json!(["runner/process:sh"]));
    // A sandbox would number the processes anew, and these tests look for them by their own numbers.
    home.set("sandbox.mode", json!("off"));
    home
}

fn pid_file(home: &Home) -> PathBuf {
    home.workspace().join("pid")
}

#[track_caller]
fn pid(home: &Home) -> String {
    let until = Instant::now() + Duration::from_secs(600);
    loop {
        if let Ok(pid) = fs::read_to_string(pid_file(home)) {
            return pid.trim().to_owned();
        }
        assert!(Instant::now() < until, "the program did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_alive(pid: &str) -> bool {
    // A zombie process is dead.
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[track_caller]
fn dies(pid: &str) {
    let until = Instant::now() + Duration::from_secs(600);
    while is_alive(pid) {
        assert!(Instant::now() < until, "{pid} is still alive");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The answers to the steps of the last call.
#[track_caller]
fn answers(server: &Server) -> Value {
    let request = server.last_turn();
    let results = request.trailing_results();
    serde_json::from_str(results.last().expect("there is a result").1).expect("the result is JSON")
}

#[test]
fn a_program_outlives_a_crash_of_its_plugin_and_ends_with_the_session() {
    let server = model_with(vec![
        steps(json!([start(DEAF), start("while read -r line; do echo \"got $line\"; done")])),
        steps(json!([{ "crash": "on purpose" }])),
        steps(json!([{ "write": 2, "text": "this\n" }, { "read": 2, "wait": 20_000 }, {}])),
    ]);
    let home = home_with_runner(&server);
    home.hermes(&["-z", "go"]).run().success();
    let answers = answers(&server);
    assert_eq!(answers[1]["output"], "got this\n", "{answers}");
    assert_eq!(answers[2].as_array().map(Vec::len), Some(2), "{answers}");
    dies(&pid(&home));
}

#[test]
fn a_program_ends_when_hermes_is_killed() {
    let server = model_with(vec![
        steps(json!([start(DEAF), start("sleep 600 & echo $! > child.part; mv child.part child; wait")])),
        steps(json!([{ "await": 1, "wait": 25_000 }])),
    ]);
    let home = home_with_runner(&server);
    let running = home.hermes(&["-z", "go"]).spawn();
    let pid = pid(&home);
    let child = home.workspace().join("child");
    while !child.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_alive(&pid));
    running.kill();
    dies(&pid);
    dies(fs::read_to_string(child).expect("it was written").trim());
}

#[test]
fn a_program_without_approval_does_not_start() {
    let server = model_with(vec![steps(json!([start(DEAF), {}]))]);
    let home = home_with_runner(&server);
    home.set("approvals.allow", json!([]));
    home.hermes(&["-z", "go"]).run().success().says(&["approvals.allow: [runner/process:sh]"]);
    let answers = answers(&server);
    assert_eq!((&answers[0]["code"], &answers[1]), (&json!("unattended"), &json!([])), "{answers}");
    assert!(!pid_file(&home).exists());
}
