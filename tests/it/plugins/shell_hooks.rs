//! Shell hooks: programs below `hooks` in config.yaml, at the moments of hook plugins.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

/// Generous: the machine may be busy.
const LONG: Duration = Duration::from_secs(600);
/// Shown when an answer counts.
const READY: &str = "[d]eny (enter)? ";
const PROMPT: &str = "> ";

/// A model that writes a file and then says that it is done.
fn model() -> Server {
    Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        let arguments = json!({ "path": "made", "content": "x" });
        match last["role"] == "user" {
            true => Reply::calls([Call::new(&format!("call_{number}"), "write_file", &arguments)]),
            false => Reply::text("Done."),
        }
    })
}

/// A script beside the workspace. Returns its path.
fn script(home: &Home, name: &str, text: &str) -> String {
    let path = home.user().join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("the script is written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the script is a program");
    path.display().to_string()
}

fn result(server: &Server) -> String {
    let request = server.last_turn();
    request.trailing_results().last().expect("there is a result").1.to_owned()
}

fn made(home: &Home) -> bool {
    home.workspace().join("made").exists()
}

#[test]
fn a_hook_blocks_the_calls_that_its_matcher_names_and_the_model_reads_why() {
    for (matcher, blocks) in [("write_file|patch", true), ("read_.*", false)] {
        let server = model();
        let home = Home::with(&server);
        let command = script(&home, "guard", "cat > ~/seen; echo 'not on Friday' >&2; exit 2");
        home.set("hooks", json!({ "before-tool": [{ "matcher": matcher, "command": command }] }));
        let output = home.hermes(&["-z", "Go."]).run().success();
        assert_eq!(output.stdout, "Done.\n");
        assert_eq!(made(&home), !blocks, "{matcher}");
        if blocks {
            assert_eq!(result(&server), "error: blocked by `hooks`: not on Friday");
            let seen: Value = serde_json::from_str(&fs::read_to_string(home.user().join("seen")).unwrap()).unwrap();
            assert_eq!(seen["hook_event_name"], "before-tool");
            assert_eq!((&seen["tool_name"], &seen["plugin"]), (&json!("write_file"), &json!("files")));
            assert_eq!(seen["tool_input"], json!({ "path": "made", "content": "x" }));
            assert_eq!(seen["session_id"], home.newest_session().as_str());
        } else {
            assert!(!home.user().join("seen").exists(), "it ran for a tool that it does not match");
        }
    }
}

#[test]
fn a_hook_that_fails_or_takes_too_long_blocks_the_call_and_the_turn_goes_on() {
    for (text, timeout, why) in
        [("echo broken >&2; exit 1", 60, "ended with exit code 1: broken"), ("sleep 600", 1, "did not end within 1 s")]
    {
        let server = model();
        let home = Home::with(&server);
        let command = script(&home, "guard", text);
        home.set("hooks", json!({ "before-tool": [{ "command": command, "timeout": timeout }] }));
        let output = home.hermes(&["-z", "Go."]).run().success();
        assert_eq!(output.stdout, "Done.\n");
        assert!(output.stderr.contains(why) && output.stderr.contains("the call was not run"), "{output}");
        assert!(!made(&home));
        assert!(result(&server).contains(why), "{}", result(&server));
        assert_eq!(home.programs(), Vec::<String>::new());
    }
}

/// Hooks that people bring from other agents and from Windows.
#[test]
fn a_hook_blocks_unless_its_consent_is_understood() {
    for (text, blocks, told) in [
        ("", false, ""),
        ("echo '{\"continue\": true, \"suppressOutput\": true}'", false, ""),
        ("echo checked", true, "wrote `checked`, which is no answer; to agree, end with exit code 0 and write nothing"),
        ("echo You may not do this", true, "wrote `You may not do this`"),
        ("echo '[]'", true, "wrote `[]`"),
        ("echo checked >&2", false, ""),
        ("echo profile; printf '\\357\\273\\277{\"decision\": \"allow\"}\\r\\n'", false, "wrote `profile`"),
        ("echo '{\"hookSpecificOutput\": {\"permissionDecision\": \"deny\"}}'", true, ""),
        ("echo profile; echo '{\"continue\": false, \"stopReason\": \"not here\"}'", true, ""),
        ("echo '{\"allowed\": false}'", true, "and its member `allowed` is not understood; to agree,"),
        ("echo 'BLOCKED by policy'", true, "wrote `BLOCKED by policy`"),
    ] {
        let server = model();
        let home = Home::with(&server);
        let command = script(&home, "guard", &format!("cat > /dev/null\n{text}"));
        home.set("hooks", json!({ "before-tool": [{ "command": command }] }));
        let output = home.hermes(&["-z", "Go."]).run().success();
        assert_eq!(made(&home), !blocks, "{text}: {output}");
        assert!(output.stderr.contains(told), "{text}: {output}");
    }
}

#[test]
fn a_script_with_line_ends_of_windows_blocks_and_the_cause_is_named() {
    for first in ["#!/bin/sh", "#!/usr/bin/env bash"] {
        let server = model();
        let home = Home::with(&server);
        let command = script(&home, "guard", "");
        fs::write(&command, format!("{first}\r\nexit 0\r\n")).expect("the script is written");
        home.set("hooks", json!({ "before-tool": [{ "command": command }] }));
        let output = home.hermes(&["-z", "Go."]).run().success();
        assert!(!made(&home) && output.stderr.contains("ends with a carriage return (CR"), "{first}: {output}");
    }
}

#[test]
fn a_hook_after_the_fact_that_objects_is_told() {
    let server = model();
    let home = Home::with(&server);
    let command =
        script(&home, "lint", "cat > /dev/null; echo '{\"decision\": \"block\", \"reason\": \"it does not parse\"}'");
    home.set("hooks", json!({ "after-tool": [{ "command": command }] }));
    let output = home.hermes(&["-z", "Go."]).run().success();
    assert!(
        made(&home) && output.stderr.contains("a hook at `after-tool` decides nothing: it does not parse"),
        "{output}"
    );
}

/// A formatter, a linter and tests report their success, also in words that a guard refuses with.
#[test]
fn what_a_hook_reports_after_the_fact_stops_and_tells_nothing() {
    for report in
        ["a.ts 31ms (unchanged)", "0 blocked, 2 denied", "{broken", r#"{"level":"info","msg":"checked"}"#, "[]"]
    {
        let server = model();
        let home = Home::with(&server);
        let command = script(&home, "format", &format!("cat > /dev/null; echo '{report}'"));
        home.set("hooks", json!({ "after-tool": [{ "command": command }] }));
        let output = home.hermes(&["-z", "Go."]).run().success();
        assert!(made(&home) && !output.stderr.contains("hook"), "{report}: {output}");
    }
}

#[test]
fn a_hook_asks_the_user_and_without_one_a_rule_answers() {
    let server = model();
    let home = Home::with(&server);
    let command = script(&home, "guard", r#"echo '{"decision": "ask", "reason": "is it backed up?"}'"#);
    home.set("hooks", json!({ "before-tool": [{ "matcher": "write_file", "command": command }] }));
    home.hermes(&["-z", "Go."]).run().success();
    assert!(!made(&home) && result(&server).contains("`approvals.allow: [hooks/write_file]`"), "{}", result(&server));

    let mut terminal = home.hermes(&["--mode", "accept-edits"]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal.wait_for(READY, 1);
    assert!(terminal.shown().contains("the hook `hooks` asks: is it backed up?"), "{}", terminal.shown());
    terminal.press("o");
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    assert!(made(&home));

    fs::remove_file(home.workspace().join("made")).unwrap();
    home.set("approvals.allow", json!(["hooks/write_file"]));
    home.hermes(&["-z", "Go."]).run().success();
    assert!(made(&home));
}

#[test]
fn the_other_moments_are_told_in_order_and_a_failure_there_is_a_line() {
    let server = model();
    let home = Home::with(&server);
    let told = script(&home, "tell", "cat >> ~/told; echo >> ~/told");
    let broken = script(&home, "broken", "exit 3");
    home.set(
        "hooks",
        json!({
            "before-model": [{ "command": told }],
            "after-model": [{ "command": told }],
            "after-tool": [{ "command": told, "matcher": "write_file" }, { "command": broken }],
        }),
    );
    let output = home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(output.stdout, "Done.\n");
    assert!(output.stderr.contains("ended with exit code 3"), "{output}");
    assert!(made(&home));
    let lines: Vec<Value> = fs::read_to_string(home.user().join("told"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = lines.iter().filter_map(|line| line["hook_event_name"].as_str()).collect();
    assert_eq!(names, ["before-model", "after-model", "after-tool", "before-model", "after-model"]);
    assert_eq!((&lines[2]["failed"], &lines[2]["tool_name"]), (&json!(false), &json!("write_file")));
    assert!(lines[1]["usage"]["input"].as_u64().is_some_and(|tokens| tokens > 0), "{}", lines[1]);
}

#[test]
fn a_hook_ends_with_hermes_when_it_is_killed() {
    let server = model();
    let home = Home::with(&server);
    let command = script(&home, "guard", "trap '' TERM; setsid sleep 600 & sleep 600 & echo x > ~/started; sleep 600");
    home.set("hooks", json!({ "before-tool": [{ "command": command }] }));
    let running = home.hermes(&["-z", "Go."]).spawn();
    let until = Instant::now() + LONG;
    while !home.user().join("started").exists() || home.programs().len() < 4 {
        assert!(Instant::now() < until, "the hook did not start: {:?}", home.programs());
        std::thread::sleep(Duration::from_millis(10));
    }
    running.kill();
    while !home.programs().is_empty() {
        assert!(Instant::now() < until, "alive: {:?}", home.programs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_program_of_the_workspace_is_no_hook() {
    let server = model();
    let home = Home::with(&server);
    home.write_workspace("guard", "#!/bin/sh\ntouch ran\n");
    fs::set_permissions(home.workspace().join("guard"), fs::Permissions::from_mode(0o755)).unwrap();
    home.set("hooks", json!({ "before-tool": [{ "command": home.workspace().join("guard") }] }));
    home.hermes(&["-z", "Go."]).run().success().says(&["is in the workspace, where the model may change it"]);
    assert!(!made(&home) && !home.workspace().join("ran").exists());
}

#[test]
fn mistakes_are_named_by_the_session_and_by_doctor() {
    let server = model();
    let home = Home::with(&server);
    home.set("hooks", json!({ "pre_tool_call": [{ "command": "true" }] }));
    home.hermes(&["-z", "Go."])
        .run()
        .exits(3)
        .says(&["`hooks.pre_tool_call` is no moment at which hooks run", "write `before-tool`"]);
    let doctor = home.hermes(&["doctor"]).run();
    assert!(doctor.stdout.contains("`hooks.pre_tool_call` is no moment"), "{doctor}");

    home.set("hooks", Value::Null);
    home.set(
        "hooks",
        json!({ "before-tool": [{ "matcher": "wirte_file", "command": "true" }, { "command": "no-such-program" }] }),
    );
    let doctor = home.hermes(&["doctor"]).run();
    for text in [
        "has the matcher `wirte_file`, and no tool has such a name",
        "correct it to `write_file`",
        "no program `no-such-program`",
    ] {
        assert!(doctor.stdout.contains(text), "`{text}` is not in\n{doctor}");
    }
    assert!(!doctor.status.success(), "{doctor}");
    home.hermes(&["-z", "Go."]).run().success().says(&["no tool has such a name", "correct it to `write_file`"]);
}
