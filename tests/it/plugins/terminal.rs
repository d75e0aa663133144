//! The bundled plugin `terminal`: commands with the user's approval, in the foreground and in the background.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::{Value, json};

/// Shown when an answer counts.
const READY: &str = "[d]eny (enter)? ";
const PROMPT: &str = "> ";
/// Generous: the machine may be busy.
const LONG: Duration = Duration::from_secs(600);
/// The entry that allows every command.
const ALLOWED: &str = "terminal/process:bash";

/// A model that makes these calls one after the other, one in each reply, and then says that it is done; and again after the next
/// message.
fn model_that_calls(calls: Vec<(&'static str, Value)>) -> Server {
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let since = messages.iter().rev().take_while(|message| message["role"] != "user");
        let done = since.filter(|message| message["role"] == "tool").count();
        match calls.get(done) {
            Some((name, arguments)) => Reply::calls([Call::new(&format!("call_{done}"), name, arguments)]),
            None => Reply::text("Done."),
        }
    })
}

fn run(command: &str) -> (&'static str, Value) {
    ("terminal", json!({ "command": command }))
}

/// What the model got for its calls, in their order.
#[track_caller]
fn results(server: &Server) -> Vec<String> {
    let request = server.last_turn();
    assert_valid_request(&request.body);
    let messages = request.messages();
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
    let results = messages[since..].iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The results of an unattended session that may run every command.
#[track_caller]
fn allowed(calls: Vec<(&'static str, Value)>) -> (Home, Vec<String>) {
    let server = model_that_calls(calls);
    let home = Home::with(&server);
    home.set("approvals.allow", json!([ALLOWED]));
    home.hermes(&["-z", "Go."]).run().success();
    let results = results(&server);
    (home, results)
}

/// A chat in which the user has sent a message.
fn chat(home: &Home) -> Terminal {
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal
}

#[track_caller]
fn leave(mut terminal: Terminal) -> String {
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.shown()
}

fn is_alive(pid: &str) -> bool {
    // A zombie process is dead.
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until each process has written its file.
#[track_caller]
fn started(home: &Home) {
    let until = Instant::now() + LONG;
    let has_started =
        |file: &&str| fs::read_to_string(home.workspace().join(file)).is_ok_and(|pid| pid.ends_with('\n'));
    while !DEAF_FILES.iter().all(has_started) {
        assert!(Instant::now() < until, "the commands did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes, as soon as all have started.
#[track_caller]
fn pids(home: &Home) -> Vec<String> {
    started(home);
    home.programs()
}

/// Nothing is left of what was started.
#[track_caller]
fn none_is_left(home: &Home) {
    started(home);
    die(&home.programs());
    assert_eq!(home.programs(), Vec::<String>::new());
}

#[track_caller]
fn die(pids: &[String]) {
    let until = Instant::now() + LONG;
    while pids.iter().any(|pid| is_alive(pid)) {
        assert!(Instant::now() < until, "{pids:?}: a program is alive");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A command whose processes do not end when they are asked to, one of them in a session of its own.
const DEAF: &str = "trap '' TERM HUP; echo $$ > main; sh -c 'trap \"\" TERM HUP; echo $$ > child; sleep 600' & \
                    setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; sleep 600' & sleep 600";
const DEAF_FILES: &[&str] = &["main", "child", "daemon"];

#[test]
fn a_command_runs_in_the_workspace_after_the_user_has_seen_it() {
    let command = "pwd; echo err >&2; echo out > made; false";
    let server = model_that_calls(vec![run(command)]);
    let home = Home::with(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    let shown = terminal.shown();
    let workspace = home.workspace().canonicalize().unwrap().display().to_string();
    for text in [
        "plugin `terminal` 0.1.0 wants to run a program",
        &format!("bash -c \"{command}\""),
        &workspace,
        "exactly this command of bash in this folder",
    ] {
        assert!(shown.contains(text), "`{text}` is not in\n{shown}");
    }
    assert!(!home.workspace().join("made").exists(), "it ran before the answer");
    terminal.press("o");
    leave(terminal);
    assert_eq!(results(&server), [format!("{workspace}\nerr\n[exit code 1]")]);
    assert_eq!(fs::read_to_string(home.workspace().join("made")).unwrap(), "out\n");
}

#[test]
fn a_refused_command_does_not_run_and_the_model_is_told() {
    let server = model_that_calls(vec![run("touch made")]);
    let home = Home::with(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("d");
    leave(terminal);
    let results = results(&server);
    assert!(results[0].contains("the user refused it") && results[0].contains("another way"), "{results:?}");
    assert!(!home.workspace().join("made").exists());
}

#[test]
fn always_allows_exactly_one_command() {
    let server = model_that_calls(vec![run("echo once more")]);
    let home = Home::with(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("a");
    leave(terminal);
    // The same command of another session runs without a question.
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(results(&server), ["once more\n[exit code 0]"]);
    let listed = home.hermes(&["plugins", "approvals"]).run().success();
    assert!(listed.stdout.contains("process:bash") && listed.stdout.contains("echo once more"), "{listed}");

    for other in [
        run("echo once more; touch made"),
        ("terminal", json!({ "command": "echo once more", "workdir": "sub" })),
        ("terminal", json!({ "command": "echo once more", "background": true })),
    ] {
        let server = model_that_calls(vec![other]);
        home.use_endpoint(&server.url());
        home.write_workspace("sub/file", "");
        home.hermes(&["-z", "Go."]).run().success();
        let results = results(&server);
        assert!(results[0].contains("cannot ask for approval"), "{results:?}");
    }
    assert!(!home.workspace().join("made").exists());
}

#[test]
fn without_a_user_a_command_is_refused_with_what_the_user_can_do() {
    let server = model_that_calls(vec![run("touch made")]);
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "Go."]).run().success();
    output.says(&["`approvals.allow: [terminal/process:bash]` in config.yaml allows every command of it"]);
    let results = results(&server);
    assert!(results[0].contains("cannot ask for approval") && results[0].contains(ALLOWED), "{results:?}");
    assert!(!home.workspace().join("made").exists());
}

#[test]
fn ends_are_explained_and_both_outputs_keep_their_order() {
    let (_home, results) = allowed(vec![
        run("echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7"),
        run("no-such-command-0815"),
        run("echo a | grep b"),
        run("kill -KILL $$"),
        run("sh -c 'kill -SEGV $$'; exit $?"),
        run("cat; printf '\\033[31mred\\033[0m\\n'"),
    ]);
    assert_eq!(results[0], "1\n2\n3\n4\n[exit code 7]");
    assert!(results[1].contains("not found\n[exit code 127: command not found"), "{results:?}");
    assert_eq!(results[2], "(no output)\n[exit code 1: for grep, no line matched]");
    assert!(results[3].contains("[ended by SIGKILL (signal 9)"), "{results:?}");
    assert!(results[4].contains("[exit code 139: ended by SIGSEGV (signal 11)"), "{results:?}");
    assert_eq!(results[5], "red\n[exit code 0]", "its input is empty");
}

#[test]
fn a_command_that_times_out_ends_with_everything_that_it_started() {
    let (home, results) =
        allowed(vec![("terminal", json!({ "command": format!("echo begun; {DEAF}"), "timeout": 3 }))]);
    assert!(results[0].starts_with("begun\n[timed out after 3 s: "), "{results:?}");
    none_is_left(&home);
}

#[test]
fn a_command_may_take_longer_than_other_tools() {
    let (_home, results) = allowed(vec![run("sleep 31; echo slept")]);
    assert_eq!(results, ["slept\n[exit code 0]"]);
}

#[test]
fn the_limit_of_the_user_counts_more_than_the_one_that_the_tool_asks_for() {
    let server = model_that_calls(vec![run("sleep 60")]);
    let home = Home::with(&server);
    home.set("approvals.allow", json!([ALLOWED]));
    home.set("plugins.settings.terminal.limits.tool_time", json!("4s"));
    home.hermes(&["-z", "Go."]).run().success();
    let results = results(&server);
    assert!(results[0].contains("[timed out after 3 s: "), "{results:?}");
}

#[test]
fn a_long_output_is_cut_for_the_model_and_whole_in_a_file() {
    let command = "for n in $(seq 20000); do echo line $n; done";
    let (_home, results) = allowed(vec![run(command)]);
    let (head, tail) = results[0].split_once("left out here. The whole text is in ").expect("it is cut");
    assert!(head.starts_with("line 1\nline 2\n") && tail.ends_with("line 20000\n[exit code 0]"), "{head}{tail}");
    let path = tail.split_once(", ").unwrap().0;
    let whole: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
    assert_eq!(fs::read_to_string(Path::new(path)).unwrap(), format!("{whole}[exit code 0]"));
}

#[test]
fn the_last_line_is_shown_while_a_command_runs() {
    let server = model_that_calls(vec![run("echo halfway; while [ ! -e go ]; do sleep 0.1; done")]);
    let home = Home::with(&server);
    home.set("approvals.allow", json!([ALLOWED]));
    let terminal = chat(&home);
    terminal.wait_for("terminal: halfway", 1);
    home.write_workspace("go", "");
    leave(terminal);
}

#[test]
fn a_background_command_is_read_written_to_and_killed() {
    let process = |arguments: Value| ("process", arguments);
    let echo = "while read -r line; do echo \"got $line\"; done; echo end";
    let (home, results) = allowed(vec![
        ("terminal", json!({ "command": echo, "background": true })),
        ("terminal", json!({ "command": DEAF, "background": true })),
        process(json!({ "action": "write", "id": 1, "data": "this\n" })),
        process(json!({ "action": "list" })),
        process(json!({ "action": "close", "id": 1 })),
        process(json!({ "action": "wait", "id": 1, "timeout": 30 })),
        process(json!({ "action": "kill", "id": 2 })),
        process(json!({ "action": "read", "id": 3 })),
        ("terminal", json!({ "command": "no-such-command-0815", "background": true })),
    ]);
    assert!(results[0].starts_with("(no output)\n[still running]\nThis is program 1: "), "{results:?}");
    assert_eq!(results[2], "got this\n[still running]");
    assert!(results[3].contains("1  while read") && results[3].contains("2  trap"), "{results:?}");
    assert!(results[4].starts_with("end\n["), "{results:?}");
    assert!(results[5].ends_with("[exit code 0]"), "{results:?}");
    assert!(results[6].contains("[stopped, with all that it started]"), "{results:?}");
    assert!(results[7].contains("there is no program 3") && results[7].contains("1  while read"), "{results:?}");
    assert!(results[8].contains("[exit code 127: command not found"), "{results:?}");
    none_is_left(&home);
}

#[test]
fn no_command_outlives_hermes_whatever_ends_it() {
    for signal in ["TERM", "KILL", "HUP"] {
        for background in [false, true] {
            let server = model_that_calls(vec![
                ("terminal", json!({ "command": DEAF, "background": background })),
                ("process", json!({ "action": "wait", "id": 1 })),
            ]);
            let home = Home::with(&server);
            home.set("approvals.allow", json!([ALLOWED]));
            let running = home.hermes(&["-z", "Go."]).spawn();
            let pids = pids(&home);
            assert!(pids.len() >= DEAF_FILES.len() && pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
            let hermes = running.id().to_string();
            assert!(std::process::Command::new("kill").args(["-s", signal, &hermes]).status().unwrap().success());
            die(&pids);
            running.wait();
        }
    }
}

#[test]
fn background_commands_end_with_the_session() {
    let (home, _) = allowed(vec![("terminal", json!({ "command": DEAF, "background": true }))]);
    none_is_left(&home);
}

#[test]
fn ctrl_c_ends_a_command_and_the_conversation_goes_on() {
    let server = model_that_calls(vec![run(DEAF)]);
    let home = Home::with(&server);
    home.set("approvals.allow", json!([ALLOWED]));
    let mut terminal = chat(&home);
    let pids = pids(&home);
    terminal.interrupt();
    die(&pids);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
}
