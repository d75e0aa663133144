//! Actions of plugins that need approval: asked on a terminal, refused without a user.
//!
//! The guest is `tests/guests/runner`. Its tool `run` runs programs, `wipe` is marked dangerous, `look` is harmless. Its hook asks
//! before the tools in `ask` of its configuration, and its memory provider runs a script after each turn.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::{Value, json};

/// Shown when an answer counts.
const READY: &str = "[d]eny (enter)? ";
const PROMPT: &str = "> ";

fn home_with_runner(server: &Server, config: Value) -> Home {
    let home = Home::with(server);
    home.install_guest("runner", "runner", config);
    // A provider's tools are offered while it is the selected one.
    home.set("memory.provider", json!("runner"));
    home
}

fn shell(script: &str) -> Value {
    json!({ "program": "sh", "arguments": ["-c", script] })
}

fn run(runs: &[Value]) -> (&'static str, Value) {
    ("run", json!({ "runs": runs }))
}

/// A model that calls these tools after every user message, and then finishes.
fn model_that_calls(calls: Vec<(&'static str, Value)>) -> Server {
    Server::answering(move |body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        if last["role"] != "user" {
            return Reply::text("Done.");
        }
        let calls = calls.iter().enumerate();
        Reply::calls(calls.map(|(at, (name, arguments))| Call::new(&format!("call_{number}_{at}"), name, arguments)))
    })
}

/// The results of the last turn, in the order of the calls.
#[track_caller]
fn results(server: &Server) -> Vec<String> {
    let request = server.last_turn();
    assert_valid_request(&request.body);
    request.trailing_results().into_iter().map(|(_, result)| result.to_owned()).collect()
}

/// The results of the programs of one call.
#[track_caller]
fn answers(result: &str) -> Vec<Value> {
    let result: Value = serde_json::from_str(result).unwrap_or_else(|_| panic!("no JSON: {result}"));
    result["answers"].as_array().unwrap().clone()
}

/// A chat in which the user has sent a message.
fn chat(home: &Home) -> Terminal {
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal
}

#[track_caller]
fn leave(mut terminal: Terminal, turns: usize) -> String {
    terminal.wait_for("Done.", turns);
    terminal.wait_for(PROMPT, turns + 1);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.shown()
}

#[test]
fn without_a_terminal_a_program_is_refused_with_a_hint_for_the_user_and_the_model() {
    let server = model_that_calls(vec![("wipe", json!({})), run(&[shell("touch ran")]), ("look", json!({}))]);
    let home = home_with_runner(&server, json!({}));
    for output in [
        home.hermes(&["-z", "Go."]).run().success(),
        home.hermes(&["chat", "-q", "Go."]).run().success(),
        home.hermes(&[]).stdin("Go.\n").run().success(),
    ] {
        let parts =
            ["approvals.allow: [runner/wipe]", "approvals.allow: [runner/process:sh]", "cannot ask for approval"];
        output.says(&parts);
        let results = results(&server);
        assert!(
            results[0].contains("approvals.allow: [runner/wipe]") && results[0].contains("another way"),
            "{results:?}"
        );
        assert_eq!(answers(&results[1])[0]["code"], "unattended");
        assert_eq!(results[2], "seen");
    }
    assert!(!home.workspace().join("ran").exists());
}

#[test]
fn the_configuration_allows_and_denies_and_deny_wins() {
    let server = model_that_calls(vec![
        ("wipe", json!({})),
        run(&[shell("echo hi"), json!({ "program": "env" })]),
        ("look", json!({})),
    ]);
    let home = home_with_runner(&server, json!({}));
    home.set("approvals.allow", json!(["runner"]));
    home.set("approvals.deny", json!(["runner/look", "runner/process:env"]));
    home.hermes(&["-z", "Go."]).run().success();
    let results = results(&server);
    assert_eq!(results[0], "wiped");
    let answers = answers(&results[1]);
    assert_eq!((answers[0]["end"].clone(), answers[0]["output"].clone()), (json!(0), json!("hi\n")));
    assert_eq!(answers[1]["code"], "forbidden");
    assert!(results[2].contains("`approvals.deny` has `runner/look`"), "{results:?}");

    home.set("approvals.deny", json!(["runner/*"]));
    home.hermes(&["-z", "Go."]).run().refused().exits(3).says(&["approvals.deny", "runner/*", "PLUGIN/TOOL"]);
}

#[test]
fn a_program_gets_a_minimal_environment_without_keys() {
    let server = model_that_calls(vec![run(&[json!({ "program": "env" }), shell("cat; pwd; ls -d ..")])]);
    let home = home_with_runner(&server, json!({}));
    home.set("approvals.allow", json!(["runner/process:env", "runner/process:sh"]));
    let output =
        home.hermes(&["-z", "Go."]).env("EXAMPLE_API_KEY", "sk-fake-0815").env("HERMES_API_KEY", "sk-fake-0815");
    output.run().success();
    let result = results(&server).remove(0);
    assert!(!result.contains("sk-fake") && !result.contains(hermes_tests::KEY), "{result}");
    let environment = answers(&result)[0]["output"].as_str().unwrap().to_owned();
    let mut names: Vec<&str> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "PATH", "TERM"], "{environment}");
    let reported = answers(&result)[1]["output"].as_str().unwrap().to_owned();
    assert!(reported.starts_with(&home.workspace().canonicalize().unwrap().display().to_string()), "{reported}");
}

#[test]
fn a_program_without_a_grant_is_denied_without_asking() {
    let server = model_that_calls(vec![run(&[
        json!({ "program": "cat", "arguments": ["/etc/passwd"] }),
        json!({ "program": "../../bin/sh" }),
        json!({ "program": "/bin/sh" }),
        json!({ "program": "planted" }),
        json!({ "program": "sh", "folder": "../" }),
        json!({ "program": "sh", "arguments": ["-c", "a\u{0}b"] }),
    ])]);
    let home = home_with_runner(&server, json!({}));
    home.set("approvals.allow", json!(["runner"]));
    home.write_workspace("planted", "#!/bin/sh\necho planted\n");
    home.hermes(&["-z", "Go."]).run().success();
    let codes: Vec<Value> = answers(&results(&server)[0]).iter().map(|answer| answer["code"].clone()).collect();
    assert_eq!(codes, ["not-granted", "not-granted", "not-granted", "not-found", "folder", "nul"]);
}

#[test]
fn the_question_shows_the_command_exactly_and_one_key_answers_it() {
    let script = "printf 'a\u{1b}[2J%s' \"$1\">o";
    let server = model_that_calls(vec![run(&[json!({
        "program": "sh", "arguments": ["-c", script, "x", "two\nlines\u{202e}"], "input": "piped",
    })])]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    let shown = terminal.shown();
    for text in [
        "plugin `runner` 0.1.0 wants to run a program",
        r#"sh -c "printf 'a\u{1b}[2J%s' \"$1\">o" x "two\nlines\u{202e}""#,
        r#"5 bytes: "piped""#,
    ] {
        assert!(shown.contains(text), "`{text}` is not in\n{shown}");
    }
    let workspace = home.workspace().canonicalize().unwrap().display().to_string();
    assert!(shown.contains(&workspace) && !shown.contains('\u{202e}'), "{shown}");
    terminal.press("o");
    terminal.wait_for("allowed once", 1);
    leave(terminal, 1);
    assert_eq!(answers(&results(&server)[0])[0]["end"], 0);
    let written = std::fs::read_to_string(home.workspace().join("o")).unwrap();
    assert_eq!(written, "a\u{1b}[2Jtwo\nlines\u{202e}");
}

#[test]
fn on_a_terminal_chat_q_asks_and_z_does_not() {
    let server = model_that_calls(vec![("wipe", json!({}))]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = home.hermes(&["chat", "-q", "Go."]).at_terminal();
    terminal.wait_for(READY, 1);
    terminal.press("o");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert_eq!(results(&server), ["wiped"]);
    let mut terminal = home.hermes(&["-z", "Go."]).at_terminal();
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert!(results(&server)[0].contains("cannot ask for approval"), "{}", terminal.shown());
}

#[test]
fn enter_escape_and_end_of_input_deny() {
    let server = model_that_calls(vec![("wipe", json!({ "all": true }))]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    for (time, key) in ["\r", "\u{1b}", "\u{4}", "d"].into_iter().enumerate() {
        if time > 0 {
            terminal.wait_for(PROMPT, time + 1);
            terminal.press("Go on.\r");
        }
        terminal.wait_for(READY, time + 1);
        terminal.press(key);
        terminal.wait_for("denied\r\n", time + 1);
        terminal.wait_for("Done.", time + 1);
        let result = results(&server).remove(0);
        assert!(result.contains("the user refused it") && result.contains("another way"), "{result}");
    }
    assert!(leave(terminal, 4).contains(r#"arguments  {"all":true}"#));
    // The terminal disappears during a question.
    let terminal = chat(&home);
    terminal.wait_for(READY, 1);
    let before = server.turns().len();
    let mut terminal = terminal;
    terminal.close();
    terminal.wait();
    assert!(server.turns().len() <= before + 1);
    let log = home.messages();
    let wiped = log.iter().any(|message| message["role"] == "tool" && message["content"] == "wiped");
    assert!(!wiped, "{log:?}");
}

#[test]
fn ctrl_c_denies_and_stops_the_turn() {
    let server = model_that_calls(vec![("wipe", json!({}))]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("\u{3}");
    terminal.wait_for("stopped", 1);
    terminal.wait_for(PROMPT, 2);
    assert_eq!(server.turns().len(), 1, "the model was asked again");
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    let log = home.messages();
    assert!(log.iter().all(|message| message["content"] != "wiped"), "{log:?}");
}

#[test]
fn input_typed_before_the_question_does_not_count() {
    let (release, held) = channel::<()>();
    let held = Mutex::new(held);
    let server = Server::answering(move |_, number| {
        if number > 0 {
            return Reply::text("Done.");
        }
        held.lock().unwrap().recv().unwrap();
        Reply::calls([Call::new("c", "wipe", &json!({}))])
    });
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    server.wait_for_requests(1);
    // Each of these would be a yes, with and without Enter.
    terminal.press("o\rs\ra\ro");
    terminal.press("a");
    release.send(()).unwrap();
    terminal.wait_for(READY, 1);
    terminal.press("d");
    terminal.wait_for("denied\r\n", 1);
    // The whole lines are messages for the turns after this one; the keys without Enter are dropped.
    server.wait_for_finished(5);
    terminal.wait_for(PROMPT, 5);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    let shown = terminal.shown();
    assert!(!shown.contains("allowed"), "{shown}");
    let turns = server.turns();
    assert!(turns[1].trailing_results()[0].1.contains("the user refused it"));
    let said = |at: usize| turns[at].body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!([said(2), said(3), said(4)], ["o", "s", "a"]);
}

#[test]
fn session_holds_until_the_process_ends_and_always_until_it_is_forgotten() {
    let server = model_that_calls(vec![run(&[shell("echo hi")])]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("s");
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("Again.\r");
    assert_eq!(leave(terminal, 2).matches(READY).count(), 1);

    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("a");
    leave(terminal, 1);
    // Now no user is needed.
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(answers(&results(&server)[0])[0]["output"], "hi\n");
    let listed = home.hermes(&["plugins", "approvals"]).run().success();
    assert!(listed.stdout.starts_with("runner 0.1.0 process:sh (/"), "{listed}");
    home.hermes(&["plugins", "approvals", "--forget", "runner"]).run().success();
    home.hermes(&["-z", "Go."]).run().success().says(&["cannot ask for approval"]);
}

#[test]
fn an_update_of_the_plugin_asks_again() {
    let server = model_that_calls(vec![("wipe", json!({}))]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("a");
    leave(terminal, 1);
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(results(&server), ["wiped"]);
    // Append a section: the same plugin, but other bytes.
    let path = home.path().join("plugins/runner/runner.wasm");
    let mut component = std::fs::read(&path).unwrap();
    component.extend([0, 5, 4, b'm', b'o', b'r', b'e']);
    std::fs::write(&path, component).unwrap();
    home.grant("runner");
    home.hermes(&["-z", "Go."]).run().success().says(&["approvals.allow: [runner/wipe]"]);
}

#[test]
fn parallel_calls_ask_in_turn_and_a_denial_covers_the_whole_call() {
    let server = model_that_calls(vec![run(&[shell("echo first"), shell("echo never")]), run(&[shell("echo second")])]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    let first = terminal.shown().contains("echo first");
    terminal.press(if first { "d" } else { "o" });
    terminal.wait_for(READY, 2);
    terminal.press(if first { "o" } else { "d" });
    let shown = leave(terminal, 1);
    assert_eq!(shown.matches(READY).count(), 2, "{shown}");
    let results = results(&server);
    let [refused, never] = &answers(&results[0])[..] else { panic!("{results:?}") };
    assert_eq!((&refused["code"], &never["code"]), (&json!("refused"), &json!("refused")));
    assert!(!shown.contains("echo never"), "{shown}");
    assert_eq!(answers(&results[1])[0]["output"], "second\n");
}

#[test]
fn a_hook_asks_with_its_reason_for_any_tool() {
    let server = model_that_calls(vec![("look", json!({}))]);
    let home = home_with_runner(&server, json!({ "ask": ["look"] }));
    home.hermes(&["-z", "Go."]).run().success().says(&["approvals.allow: [runner/look]"]);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("o");
    let shown = leave(terminal, 1);
    assert!(shown.contains("the hook `runner` asks: it is Friday"), "{shown}");
    assert_eq!(results(&server), ["seen"]);
}

#[test]
fn a_question_waits_until_the_calls_beside_it_have_ended() {
    let server = model_that_calls(vec![run(&[shell("sleep 0.5; touch ended")]), ("look", json!({}))]);
    let home = home_with_runner(&server, json!({ "ask": ["look"] }));
    home.set("approvals.allow", json!(["runner/process:sh"]));
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    assert!(home.workspace().join("ended").exists(), "the program runs while the user is asked");
    terminal.press("o");
    leave(terminal, 1);
    assert_eq!(results(&server)[1], "seen");
}

#[test]
fn of_two_calls_that_ask_the_second_begins_when_the_first_has_ended() {
    let script = |name: &str| shell(&format!("touch {name}; sleep 0.5; touch {name}.ended"));
    let server = model_that_calls(vec![run(&[script("one")]), run(&[script("two")])]);
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    let made = || ["one", "one.ended", "two", "two.ended"].map(|name| home.workspace().join(name).exists());
    terminal.wait_for(READY, 1);
    assert_eq!(made(), [false; 4]);
    terminal.press("o");
    terminal.wait_for(READY, 2);
    let [one, one_ended, two, two_ended] = made();
    assert!((one && one_ended) != (two && two_ended) && one != two, "{:?}", made());
    terminal.press("o");
    leave(terminal, 1);
    assert_eq!(made(), [true; 4]);
}

#[test]
fn of_identical_calls_that_only_read_one_runs_and_each_has_the_result() {
    let read = |path: &str| ("read_file", json!({ "path": path, "limit": 5 }));
    let swapped = ("read_file", json!({ "limit": 5, "path": "a.txt" }));
    let write = ("write_file", json!({ "path": "a.txt", "content": "second\n" }));
    let server =
        model_that_calls(vec![read("a.txt"), read("b.txt"), swapped, write, read("a.txt"), ("look", json!({}))]);
    let home = home_with_runner(&server, json!({ "ask": ["read_file"] }));
    home.set("approvals.mode", json!("accept-edits"));
    home.write_workspace("a.txt", "first\n");
    home.write_workspace("b.txt", "other\n");
    let mut terminal = chat(&home);
    for question in 1..=3 {
        terminal.wait_for(READY, question);
        terminal.press("o");
    }
    let shown = leave(terminal, 1);
    assert_eq!(shown.matches(READY).count(), 3, "{shown}");
    let request = server.last_turn();
    let results = request.trailing_results();
    let ids: Vec<&str> = results.iter().map(|(id, _)| &id[id.len() - 2..]).collect();
    assert_eq!(ids, ["_0", "_1", "_2", "_3", "_4", "_5"]);
    let text = |at: usize| results[at].1;
    assert!(text(0).contains("first") && text(1).contains("other") && text(4).contains("second"), "{results:?}");
    assert_eq!((text(2), text(5)), (text(0), "seen"));
}

#[test]
fn background_work_never_asks() {
    let server = Server::answering(|_, _| Reply::text("Done."));
    let home = home_with_runner(&server, json!({ "sync": "touch synced" }));
    let terminal = chat(&home);
    let shown = leave(terminal, 1);
    assert!(!shown.contains(READY), "{shown}");
    let log = home.read("logs/runner.jsonl");
    assert!(log.contains("\"code\":\"unattended\"") && !home.workspace().join("synced").exists(), "{log}");
    home.set("approvals.allow", json!(["runner/process:sh"]));
    home.hermes(&["-z", "Go."]).run().success();
    assert!(home.workspace().join("synced").exists(), "{}", home.read("logs/runner.jsonl"));
}

#[test]
fn an_interrupt_ends_the_program_with_the_process() {
    let script = "trap '' TERM INT; echo $$ > pid.part; mv pid.part pid; while :; do sleep 600; done";
    let server = model_that_calls(vec![run(&[shell(script)])]);
    let home = home_with_runner(&server, json!({}));
    home.set("approvals.allow", json!(["runner"]));
    // A sandbox would number the process anew.
    home.set("sandbox.mode", json!("off"));
    let running = home.hermes(&["-z", "Go."]).spawn();
    let file = home.workspace().join("pid");
    let pid = loop {
        if let Ok(pid) = std::fs::read_to_string(&file) {
            break pid.trim().to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    running.interrupt();
    running.wait().exits(130);
    let alive = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    // The signal was sent before the process exited; it may arrive a moment later.
    for _ in 0..120_000 {
        if !alive() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{pid} lives on");
}

#[test]
fn a_plugin_says_what_a_call_would_do_and_only_some_calls_ask() {
    let order = |arguments: Value| vec![("order", arguments)];
    // Without a user, what would ask is refused. A plugin that cannot say what a call does makes it a dangerous one.
    for (arguments, runs) in [(json!({"euros": 9}), true), (json!({"euros": 90}), false), (json!({}), false)] {
        let server = model_that_calls(order(arguments));
        let home = home_with_runner(&server, json!({}));
        home.hermes(&["-z", "Go."]).run().success();
        let results = results(&server);
        assert_eq!(results[0] == "ordered", runs, "{results:?}");
    }
    // The mode `plan` goes by what the tool can do.
    let server = model_that_calls(order(json!({"euros": 9})));
    let home = home_with_runner(&server, json!({}));
    home.set("approvals.mode", json!("plan"));
    home.hermes(&["-z", "Go."]).run().success();
    assert_ne!(results(&server)[0], "ordered");

    let server = model_that_calls(order(json!({"euros": 90})));
    let home = home_with_runner(&server, json!({}));
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("o");
    let screen = leave(terminal, 1);
    assert!(screen.contains("it says") && screen.contains("Orders tea for 90 €. Always allow this."), "{screen}");
    assert!(screen.contains(r#"{"euros":90}"#), "{screen}");
    assert_eq!(results(&server), ["ordered"]);
}
