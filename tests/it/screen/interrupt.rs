//! Ctrl-C and `/stop` in a chat at a terminal: the prompt returns, what was shown is kept, and the conversation goes on.
//!
//! `--no-capture` shows how long the prompt took. `tests/evidence/measurements.md` has figures of a quiet machine.

use std::time::{Duration, Instant};

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::{Value, json};

const PROMPT: &str = "> ";
/// How a reply is marked that the user stopped.
const MARK: &str = "[The user stopped the reply here.]";

/// How the user stops a turn.
#[derive(Debug, Clone, Copy)]
enum By {
    CtrlC,
    Line,
}

/// A model that does something else for the first message, and then says that it is there.
fn model(first: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.iter().rev().find(|message| message["role"] == "user").cloned().unwrap_or_default();
        if said["content"].as_str().is_some_and(|said| said.contains("Begin.")) {
            first()
        } else {
            Reply::text("Still here.")
        }
    })
}

/// Begins a turn, stops it when `is_reached` returns, and says something else. Returns the log.
fn stopped(home: &Home, server: &Server, what: &str, by: By, is_reached: impl FnOnce(&Terminal)) -> Vec<Value> {
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Begin.\r");
    is_reached(&terminal);
    let prompts = terminal.shown().matches(PROMPT).count();
    let pressed = Instant::now();
    match by {
        By::CtrlC => terminal.interrupt(),
        By::Line => terminal.press("/stop\r"),
    }
    terminal.wait_for(PROMPT, prompts + 1);
    let took = pressed.elapsed();
    println!("{what}, {by:?}: {:.1} ms", took.as_secs_f64() * 1e3);
    terminal.press("And now?\r");
    terminal.wait_for("Still here.", 1);
    terminal.wait_for(PROMPT, prompts + 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert!(terminal.shown().contains("stopped"), "{}", terminal.shown());
    assert_valid_request(&server.last_turn().body);
    home.messages()
}

#[test]
fn the_prompt_returns_while_the_server_is_silent() {
    for by in [By::CtrlC, By::Line] {
        let server = model(|| Reply::text("Never.").hang_after(0));
        let home = Home::with(&server);
        let log = stopped(&home, &server, "a silent server", by, |_| server.wait_for_requests(1));
        assert_eq!(log[1]["content"], MARK, "{log:?}");
    }
}

#[test]
fn the_prompt_returns_while_a_reply_streams_and_its_part_is_kept() {
    for by in [By::CtrlC, By::Line] {
        let server = model(|| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
        let home = Home::with(&server);
        let log = stopped(&home, &server, "a streaming server", by, |terminal| terminal.wait_for("word", 20));
        let kept = log[1]["content"].as_str().unwrap();
        assert!(kept.starts_with("word word word") && kept.ends_with(MARK), "{kept}");
        assert!(kept.len() < 50_000, "{} bytes", kept.len());
    }
}

#[test]
fn the_prompt_returns_while_a_tool_plugin_loops() {
    for by in [By::CtrlC, By::Line] {
        let server = model(|| Reply::calls([Call::new("call_1", "poke", &json!({ "mode": "loop" }))]));
        let home = Home::with(&server);
        home.install_guest("hostile", "hostile", json!({ "mode": "ok" }));
        home.set("context.engine", json!("hostile"));
        let log = stopped(&home, &server, "a tool that loops", by, |terminal| {
            terminal.wait_for("poke", 1);
            // It computes by now.
            std::thread::sleep(Duration::from_millis(500));
        });
        assert!(log.iter().any(|message| message["role"] == "tool"), "the call has a result: {log:?}");
    }
}

#[test]
fn the_prompt_returns_while_a_program_ignores_signals() {
    for by in [By::CtrlC, By::Line] {
        let script = "trap '' INT TERM HUP; : > started; while :; do sleep 0.1; done";
        let run = json!({ "runs": [{ "program": "sh", "arguments": ["-c", script] }] });
        let server = model(move || Reply::calls([Call::new("call_1", "run", &run)]));
        let home = Home::with(&server);
        home.put_guest("runner", "plugins/runner", "runner");
        home.grant("runner");
        home.set("plugins.entries.runner", json!({}));
        home.set("memory.provider", json!("runner"));
        home.set("approvals.allow", json!(["runner/process:sh"]));
        let log = stopped(&home, &server, "a program that ignores signals", by, |_| {
            let until = Instant::now() + Duration::from_secs(600);
            while !home.workspace().join("started").exists() {
                assert!(Instant::now() < until, "the program did not start");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        assert!(log.iter().any(|message| message["role"] == "tool"), "the call has a result: {log:?}");
    }
}
