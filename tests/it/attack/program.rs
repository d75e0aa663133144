//! Programs as attackers: they keep variables, change after they were approved, and try to outlive Hermes.
//!
//! The guest is `tests/guests/runner`.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hermes_tests::{Home, Server};
use serde_json::{Value, json};

use super::chat::{PROMPT, chat, leave, model_that_calls};

/// Shown when an answer counts.
const READY: &str = "[d]eny (enter)? ";
/// Generous: the machine may be busy.
const LONG: Duration = Duration::from_secs(600);

/// A model that makes this call after every message of the user, and then finishes.
fn model_that_runs(program: &str, arguments: &[&str]) -> Server {
    model_that_calls("run", json!({ "runs": [{ "program": program, "arguments": arguments }] }))
}

/// A home with the runner, whose manifest has these lines below `permissions`.
fn home_with_runner(server: &Server, permissions: &str) -> Home {
    let home = Home::with(server);
    home.put_guest("runner", "plugins/runner", "runner");
    let manifest = home.read("plugins/runner/plugin.yaml");
    let manifest = manifest.replace("process: [", &format!("{permissions}\n  process: ["));
    home.write("plugins/runner/plugin.yaml", manifest);
    home.grant("runner");
    home.set("plugins.entries.runner", json!({}));
    home.set("memory.provider", json!("runner"));
    // These rules hold without a sandbox. `attack/sandbox.rs` has the attacks on the sandbox.
    home.set("sandbox.mode", json!("off"));
    home
}

/// A home whose runner may run this program too, given by its path.
fn home_with_program(server: &Server, home: Home, program: &Path) -> Home {
    home.use_endpoint(&server.url());
    home.put_guest("runner", "plugins/runner", "runner");
    let manifest = home.read("plugins/runner/plugin.yaml");
    home.write(
        "plugins/runner/plugin.yaml",
        manifest.replace("process: [", &format!("process: [{}, ", program.display())),
    );
    home.grant("runner");
    home.set("plugins.entries.runner", json!({}));
    home.set("memory.provider", json!("runner"));
    home
}

/// The answer of the only program of the last turn.
#[track_caller]
fn answer(server: &Server) -> Value {
    let request = server.last_turn();
    let results = request.trailing_results();
    let result: Value = serde_json::from_str(results[0].1).unwrap_or_else(|_| panic!("no JSON: {results:?}"));
    result["answers"][0].clone()
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_variable_reaches_programs_only_by_a_right_of_its_own() {
    let server = model_that_runs("env", &[]);
    let home = home_with_runner(&server, "env: [EXAMPLE_API_KEY]");
    home.set("approvals.allow", json!(["runner"]));
    let run = |home: &Home| {
        let command = home.hermes(&["-z", "Go."]).env("EXAMPLE_API_KEY", "canary-6").env("OPENAI_API_KEY", "canary-7");
        command.run().success();
        answer(&server)["output"].as_str().unwrap().to_owned()
    };
    let output = run(&home);
    assert!(output.contains("PATH=") && !output.contains("canary"), "{output}");

    let home = home_with_runner(&server, "process_env: [EXAMPLE_API_KEY]");
    home.set("approvals.allow", json!(["runner"]));
    let output = run(&home);
    assert!(output.contains("EXAMPLE_API_KEY=canary-6") && !output.contains("canary-7"), "{output}");
    let listed = home.hermes(&["plugins", "info", "runner"]).run().success();
    assert!(listed.stdout.contains("give the value of EXAMPLE_API_KEY to the programs"), "{listed}");

    // The question names the variable, without its value.
    home.set("approvals.allow", json!([]));
    let mut terminal = home.hermes(&[]).env("EXAMPLE_API_KEY", "canary-6").at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal.wait_for(READY, 1);
    terminal.press("d");
    let shown = leave(terminal);
    assert!(shown.contains("your variables EXAMPLE_API_KEY") && !shown.contains("canary"), "{shown}");
}

#[test]
fn a_program_of_the_workspace_that_changed_is_asked_about_again() {
    let home = Home::new();
    let tool = home.workspace().canonicalize().unwrap().join(".venv/bin/tool");
    script(&tool, "#!/bin/sh\necho honest\n");
    let server = model_that_runs(&tool.display().to_string(), &[]);
    let home = home_with_program(&server, home, &tool);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    assert!(terminal.shown().contains("until the file changes"), "{}", terminal.shown());
    terminal.press("a");
    leave(terminal);
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(answer(&server)["output"], "honest\n");

    let asks = |why: &str| {
        home.hermes(&["-z", "Go."]).run().success().says(&["cannot ask for approval"]);
        assert_eq!(answer(&server)["code"], "unattended", "{why}");
    };
    let changed = |text: &str| script(&tool, text);
    changed("#!/bin/sh\necho evil\n");
    asks("another content");
    changed("#!/bin/sh\necho honest\n ");
    asks("one more byte");
    fs::remove_file(&tool).unwrap();
    symlink("/bin/echo", &tool).unwrap();
    asks("a link to another program");
    fs::remove_file(&tool).unwrap();
    changed("#!/bin/sh\necho honest\n");
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(answer(&server)["output"], "honest\n", "the approved content is back");
}

#[test]
fn the_interpreter_of_an_approved_script_is_approved_with_it() {
    let home = Home::new();
    let workspace = home.workspace().canonicalize().unwrap();
    let (tool, interpreter) = (workspace.join(".venv/bin/tool"), workspace.join(".venv/bin/python"));
    symlink_in(&interpreter, "/bin/cat");
    script(&tool, &format!("#!{}\nhonest\n", interpreter.display()));
    let server = model_that_runs(&tool.display().to_string(), &[]);
    let home = home_with_program(&server, home, &tool);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.press("a");
    leave(terminal);
    home.hermes(&["-z", "Go."]).run().success();
    assert!(answer(&server)["output"].as_str().unwrap().contains("honest"));

    fs::remove_file(&interpreter).unwrap();
    script(&interpreter, "#!/bin/sh\ntouch evil\n");
    home.hermes(&["-z", "Go."]).run().success().says(&["cannot ask for approval"]);
    assert!(!workspace.join("evil").exists());
}

#[test]
fn an_approved_script_and_its_interpreter_run_from_copies_that_are_removed() {
    let home = Home::new();
    let workspace = home.workspace().canonicalize().unwrap();
    let tool = workspace.join("bin/tool");
    fs::create_dir_all(workspace.join("lib")).unwrap();
    fs::write(workspace.join("lib/part"), "part").unwrap();
    script(&tool, "#!/usr/bin/env -S WORD=set interpreter -x\n");
    let shows =
        "#!/bin/sh\necho $1 $WORD ${2##*/} $3 $HERMES_PROGRAM $(cat \"$(dirname \"$2\")/../lib/part\") $(pwd)\n";
    script(&workspace.join("bin/interpreter"), shows);
    let server = model_that_runs(&tool.display().to_string(), &["one two"]);
    let home = home_with_program(&server, home, &tool);
    home.set("approvals.allow", json!(["runner"]));
    let path = format!("{}:/usr/bin:/bin", workspace.join("bin").display());
    home.hermes(&["-z", "Go."]).env("PATH", &path).run().success();
    let shown = format!("-x set tool one two {} part {}\n", tool.display(), workspace.display());
    assert_eq!(answer(&server)["output"], shown, "{}", answer(&server));
    let left = fs::read_dir(home.path().join("cache/programs")).unwrap().count();
    assert_eq!(left, 0, "the copies remain");
}

fn symlink_in(link: &Path, target: &str) {
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(target, link).unwrap();
}

#[test]
fn a_program_that_cannot_start_is_reported_with_the_cause() {
    let home = Home::new();
    let tool = home.workspace().canonicalize().unwrap().join("broken");
    script(&tool, "#!/nowhere/at/all\n");
    let server = model_that_runs(&tool.display().to_string(), &[]);
    let home = home_with_program(&server, home, &tool);
    home.set("approvals.allow", json!(["runner"]));
    home.hermes(&["-z", "Go."]).run().success();
    let answer = answer(&server);
    assert_eq!(answer["code"], "not-started", "{answer}");
}

/// Writes its number to a file, ignores every request to end, and goes on.
const DEAF: &str = r#"trap "" TERM HUP INT QUIT; echo $$ > $1.part; mv $1.part $1.pid; while :; do sleep 600; done"#;
/// The processes that [`survivors`] starts.
const NAMES: &[&str] = &["plain", "session", "orphan", "daemon", "nohup", "deep", "main"];

/// A script whose processes try to outlive Hermes, each in another way.
fn survivors() -> String {
    format!(
        "D='{DEAF}'
        sh -c \"$D\" x plain &
        setsid sh -c \"$D\" x session </dev/null >/dev/null 2>&1 &
        sh -c 'sh -c \"$1\" x orphan &' x \"$D\"
        setsid sh -c 'setsid sh -c \"$1\" x daemon </dev/null >/dev/null 2>&1 &' x \"$D\"
        nohup sh -c \"$D\" x nohup >/dev/null 2>&1 &
        sh -c 'sh -c \"setsid sh -c \\\"\\$1\\\" x deep & wait\" x \"$1\"' x \"$D\" &
        sh -c \"$D\" x main"
    )
}

#[track_caller]
fn pids(home: &Home) -> Vec<String> {
    let until = Instant::now() + LONG;
    let read = |name: &&str| fs::read_to_string(home.workspace().join(format!("{name}.pid"))).ok();
    loop {
        if let Some(pids) = NAMES.iter().map(read).collect::<Option<Vec<_>>>() {
            return pids.iter().map(|pid| pid.trim().to_owned()).collect();
        }
        assert!(Instant::now() < until, "the programs did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// State and parent of a living process. A zombie is dead.
fn stat(pid: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
    let (state, parent) = (fields.next()?, fields.next()?);
    (state != "Z").then_some((state, parent))
}

#[track_caller]
fn die(pids: &[String], how: &str) {
    let until = Instant::now() + LONG;
    for (pid, name) in pids.iter().zip(NAMES.iter().chain(["supervisor"].iter())) {
        while stat(pid).is_some() {
            assert!(Instant::now() < until, "`{name}` is alive after {how}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The processes and the one that supervises them.
fn with_supervisor(mut pids: Vec<String>) -> Vec<String> {
    let (_, supervisor) = stat(&pids[NAMES.len() - 1]).expect("the program runs");
    let (_, above) = stat(&supervisor).expect("its parent runs");
    // The script is between them.
    pids.push(above);
    pids
}

fn killed_by(signal: &str, tool: &'static str, arguments: Value) {
    let server = model_that_calls(tool, arguments);
    let home = home_with_runner(&server, "");
    home.set("approvals.allow", json!(["runner/process:sh"]));
    let running = home.hermes(&["-z", "Go."]).spawn();
    let pids = with_supervisor(pids(&home));
    assert!(pids.iter().all(|pid| stat(pid).is_some()));
    let sent = Command::new("kill").args(["-s", signal, &running.id().to_string()]).status().unwrap();
    assert!(sent.success());
    die(&pids, signal);
    running.wait();
}

fn foreground() -> (&'static str, Value) {
    ("run", json!({ "runs": [{ "program": "sh", "arguments": ["-c", survivors()] }] }))
}

fn background() -> (&'static str, Value) {
    let start = json!({ "start": { "program": "sh", "arguments": ["-c", survivors()] } });
    ("background", json!({ "steps": [start, { "await": 1, "wait": 25_000 }] }))
}

#[test]
fn programs_end_with_hermes_when_it_is_killed() {
    for (tool, arguments) in [foreground(), background()] {
        killed_by("KILL", tool, arguments);
    }
}

#[test]
fn programs_end_with_hermes_at_every_signal() {
    for signal in ["TERM", "HUP", "QUIT", "ABRT", "SEGV"] {
        let (tool, arguments) = if signal == "HUP" { background() } else { foreground() };
        killed_by(signal, tool, arguments);
    }
}

#[test]
fn programs_end_when_the_terminal_closes() {
    let (tool, arguments) = background();
    let server = model_that_calls(tool, arguments);
    let home = home_with_runner(&server, "");
    home.set("approvals.allow", json!(["runner/process:sh"]));
    let mut terminal = chat(&home);
    let pids = with_supervisor(pids(&home));
    terminal.close();
    die(&pids, "the terminal closed");
    terminal.wait();
}

#[test]
fn what_a_program_started_ends_with_the_program() {
    let script = survivors()
        .replace("sh -c \"$D\" x main", "while [ ! -e deep.pid ] || [ ! -e daemon.pid ]; do sleep 0.1; done; exit 5");
    let server = model_that_runs("sh", &["-c", &script]);
    let home = home_with_runner(&server, "");
    home.set("approvals.allow", json!(["runner/process:sh"]));
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(answer(&server)["end"], 5);
    for name in NAMES.iter().filter(|name| **name != "main") {
        let pid = fs::read_to_string(home.workspace().join(format!("{name}.pid"))).unwrap_or_default();
        assert!(pid.is_empty() || stat(pid.trim()).is_none(), "`{name}` is alive");
    }
}

#[test]
fn a_process_that_moves_on_all_the_time_is_caught() {
    let hop = r#"echo x >> hops; sleep 0.05; setsid sh -c "$0" "$0" </dev/null >/dev/null 2>&1 & exit"#;
    let server = model_that_runs("sh", &["-c", "sh -c \"$1\" \"$1\"; while :; do sleep 600; done", "x", hop]);
    let home = home_with_runner(&server, "");
    home.set("approvals.allow", json!(["runner/process:sh"]));
    let running = home.hermes(&["-z", "Go."]).spawn();
    let hops = || fs::metadata(home.workspace().join("hops")).map_or(0, |file| file.len());
    let until = Instant::now() + LONG;
    while hops() < 20 {
        assert!(Instant::now() < until, "it does not move");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.kill();
    loop {
        let before = hops();
        std::thread::sleep(Duration::from_secs(1));
        if hops() == before {
            return;
        }
        assert!(Instant::now() < until, "it moves on");
    }
}

#[test]
fn a_killed_supervisor_takes_its_program_along_and_hermes_goes_on() {
    let server = model_that_runs("sh", &["-c", &format!("sh -c '{DEAF}' x main; true")]);
    let home = home_with_runner(&server, "");
    home.set("approvals.allow", json!(["runner/process:sh"]));
    let running = home.hermes(&["-z", "Go."]).spawn();
    let file = home.workspace().join("main.pid");
    let until = Instant::now() + LONG;
    while !file.exists() {
        assert!(Instant::now() < until, "the program did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = fs::read_to_string(file).unwrap().trim().to_owned();
    let (_, shell) = stat(&pid).unwrap();
    let (_, supervisor) = stat(&shell).unwrap();
    assert!(Command::new("kill").args(["-s", "KILL", &supervisor]).status().unwrap().success());
    running.wait().success();
    assert_eq!(answer(&server)["end"]["signal"], 9, "{}", answer(&server));
    while stat(&pid).is_some() {
        assert!(Instant::now() < until, "the program is alive");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_end_of_a_program_is_reported_as_it_was() {
    for (script, end) in [
        ("exit 7", json!(7)),
        ("kill -KILL $$", json!({ "signal": 9 })),
        ("kill -TERM $$", json!({ "signal": 15 })),
        ("kill -USR1 $$", json!({ "signal": 10 })),
    ] {
        let server = model_that_runs("sh", &["-c", script]);
        let home = home_with_runner(&server, "");
        home.set("approvals.allow", json!(["runner/process:sh"]));
        home.hermes(&["-z", "Go."]).run().success();
        assert_eq!(answer(&server)["end"], end, "{script}");
    }
}
