//! Plugins and files that try to use up time, memory or the window. The guest is `tests/guests/flooder`.
//!
//! Every turn goes on, the cause is named, and Ctrl-C works while the host is at work on a text of a plugin.

use std::time::{Duration, Instant};

use hermes_conversation::{Item, MessageRange, SessionId, Summary, View};
use hermes_store::Store;
use hermes_tests::oracle::{assert_fits, assert_valid_request};
use hermes_tests::{Home, Output, Reply, Server};
use serde_json::{Value, json};

const WINDOW: usize = 32_768;
/// Far more than a bounded input takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

fn server() -> Server {
    Server::answering(|_, number| Reply::text(format!("Answer {number}.")))
}

/// A home whose plugin is a memory provider, with its tools.
fn remembering(server: &Server, config: Value) -> Home {
    let home = Home::with(server);
    home.install_guest("flooder", "flooder", config);
    home.set("memory.provider", json!("flooder"));
    home.set("model.context_length", json!(WINDOW));
    home
}

/// A home whose plugin is the context engine.
fn folding(server: &Server, plan: &str) -> Home {
    let home = Home::with(server);
    home.install_guest("flooder", "flooder", json!({ "plan": plan, "status_bytes": 4 << 20 }));
    home.set("context.engine", json!("flooder"));
    home
}

fn talk(home: &Home, lines: &[&str]) -> Output {
    home.hermes(&[]).stdin(&format!("{}\n", lines.join("\n"))).timeout(DEADLINE).run().success()
}

#[test]
fn tools_that_would_fill_the_window_are_on_the_shelf_and_the_session_goes_on() {
    let server = server();
    let home = remembering(&server, json!({ "tools": 128, "tool_bytes": 10_000 }));
    let first = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run().success();
    assert!(!first.stderr.contains("left out"), "{first}");
    let request = server.last_turn();
    assert!(request.tool_names().iter().all(|name| !name.starts_with("flood_")), "{:?}", request.tool_names());
    assert!(request.tool_names().contains(&"tool_search"), "{:?}", request.tool_names());
    assert!(request.tool_names().contains(&"read_file"), "the bundled tools stay: {:?}", request.tool_names());
    assert_fits(&request.body, WINDOW);
    // Without the shelf, the whole plugin is left out, with a line.
    home.set("tool_search.enabled", json!(false));
    let whole = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run().success();
    whole.says(&[
        "tools, skills and prompt of the plugin `flooder` are left out",
        "choose a model with a larger window",
    ]);
    let request = server.last_turn();
    assert!(request.tool_names().iter().all(|name| !name.starts_with("flood_")), "{:?}", request.tool_names());
    // The decision is part of the stored prompt: nothing changes, and nothing is repeated.
    let second = home.hermes(&["--continue", "-z", "again"]).timeout(DEADLINE).run().success();
    assert!(!second.stderr.contains("left out of this session"), "{second}");
    let later = server.last_turn();
    assert_eq!(request.system_text(), later.system_text());
    assert_eq!(request.tool_names(), later.tool_names());
}

#[test]
fn a_provider_prompt_that_would_fill_the_window_is_left_out_by_name_and_the_session_goes_on() {
    for (bytes, words) in
        [(300_000, "its part of the system prompt has 292 KiB"), (60_000, "are left out of this session")]
    {
        let server = server();
        let home = remembering(&server, json!({ "prompt_bytes": bytes }));
        let output = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run().success();
        output.says(&["flooder", words]);
        assert!(!server.last_turn().system_text().contains("p p p p"), "{bytes}");
    }
}

#[test]
fn a_plugin_that_leaves_room_is_used() {
    let server = server();
    let home = remembering(&server, json!({ "tools": 3, "tool_bytes": 1_000, "prompt_bytes": 1_000 }));
    let output = home.hermes(&["-z", "hello"]).run().success();
    assert!(!output.stderr.contains("left out"), "{output}");
    let request = server.last_turn();
    assert!(request.tool_names().contains(&"flood_2") && request.system_text().contains("p p p p"));
}

#[test]
fn megabytes_of_recalled_tags_cost_nothing_and_the_small_memory_is_used() {
    for times in [65_536, 1_000_000] {
        let server = server();
        let home = remembering(&server, json!({ "recall": "<memory-context>", "recall_times": times }));
        let output = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run().success();
        let request = server.last_turn();
        assert_valid_request(&request.body);
        assert!(request.last_user_text().contains("The user likes tea."), "{output}");
        assert_eq!(request.last_user_text().matches("<memory-context").count(), 1);
        assert!(request.raw_member("messages").len() < 100_000);
    }
}

#[test]
fn hostile_plans_are_refused_with_a_short_reason_and_the_turn_goes_on() {
    for (plan, words) in [
        ("keep", "20000 segments or covered ranges"),
        ("covers", "1000000 segments or covered ranges"),
        ("key", "no summary has the key `kkk"),
    ] {
        let server = server();
        let home = folding(&server, plan);
        let output = talk(&home, &["one", "two", "three"]);
        assert_eq!(server.turns().len(), 3, "{plan}: {output}");
        assert_valid_request(&server.last_turn().body);
        assert!(output.stderr.len() < 20_000, "{plan}: {} bytes are shown", output.stderr.len());
        output.says(&["flooder", words, "nothing was compacted"]);
    }
}

#[test]
fn what_an_adopted_plan_leaves_in_the_store_is_small() {
    for plan in ["ranges", "reason"] {
        let server = server();
        let home = folding(&server, plan);
        // Long enough that a summary saves something.
        let long = "please go on with the work ".repeat(200);
        let output = talk(&home, &[&long, &long, &long, "/context"]);
        assert_eq!(server.turns().len(), 3, "{plan}: {output}");
        assert!(server.last_turn().raw_member("messages").contains("All was said."), "{plan}: {output}");
        let shown = output.stdout.len() + output.stderr.len();
        assert!(shown < 20_000, "{plan}: {shown} bytes are shown");
        assert!(!output.stderr.contains('\u{1b}'), "{plan}: {output}");
        let size = std::fs::metadata(home.state_db()).unwrap().len();
        assert!(size < 4 << 20, "{plan}: the store has {size} bytes");
        let context = home.hermes(&["context", "--json"]).run().success().stdout;
        assert!(context.len() < 100_000, "{plan}: {} bytes", context.len());
        // Another engine continues.
        home.set("context.engine", json!("compressor"));
        home.hermes(&["--continue", "-z", "four"]).run().success();
        assert_valid_request(&server.last_turn().body);
    }
}

#[test]
fn a_heavy_summary_in_the_store_of_an_earlier_version_still_opens() {
    let server = server();
    let home = Home::with(&server);
    home.hermes(&["-z", "one"]).run().success();
    home.hermes(&["--continue", "-z", "two"]).run().success();
    let session = SessionId(home.newest_session());
    {
        let store = Store::open(&home.path()).unwrap();
        let ids: Vec<_> = store.conversation(&session).unwrap().iter().map(|message| message.id).collect();
        let covers = vec![MessageRange::new(ids[0], ids[1]); 200_000];
        let summary = Summary { key: "old".to_owned(), content: "All was said.".to_owned(), covers };
        let rest = MessageRange::new(ids[2], ids[3]);
        let view = View { items: vec![Item::Summary(summary), Item::Messages(rest)], through: Some(ids[3]) };
        store.put_view(&session, &view, &"because ".repeat(1 << 17), "old 0.1.0").unwrap();
    }
    let output = home.hermes(&["--continue", "-z", "three"]).timeout(DEADLINE).run().success();
    assert!(output.stdout.starts_with("Answer "), "{output}");
    let last = server.last_turn();
    assert_valid_request(&last.body);
    assert!(last.raw_member("messages").contains("All was said."));
    let context = home.hermes(&["context", "--json"]).timeout(DEADLINE).run().success().stdout;
    assert!(context.len() < 4 << 20, "{} bytes", context.len());
}

/// Runs `yes | hermes …` with a limit of its memory and returns what it prints.
#[cfg(unix)]
fn flooded(home: &Home, arguments: &str) -> Output {
    let binary = hermes_tests::binary();
    let begun = Instant::now();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("yes | \"$0\" {arguments}"), binary.to_str().unwrap()]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HERMES_HOME", home.path()).env("HOME", home.workspace()).current_dir(home.workspace());
    let output = command.output().unwrap();
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    Output {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[cfg(unix)]
#[test]
fn endless_standard_input_is_an_error_that_states_the_limit() {
    let server = server();
    let home = Home::with(&server);
    flooded(&home, "-z").refused().says(&["standard input is too long for a message", "more than 16 MiB"]);
    assert_eq!(server.requests().len(), 0);
    // The lines of a file are checked as they are read.
    flooded(&home, "sessions import /dev/stdin").refused().says(&["a pipe, not a regular file"]);
}

#[cfg(unix)]
#[test]
fn an_endless_line_of_a_chat_is_an_error_that_states_the_limit() {
    let server = server();
    let home = Home::with(&server);
    let line = "y".repeat((16 << 20) + 10);
    let output = home.hermes(&[]).stdin(&line).timeout(DEADLINE).run().refused();
    output.says(&["more than 16 MiB"]);
    assert_eq!(server.requests().len(), 0);
}

/// Puts a pipe in the place of a file.
#[cfg(unix)]
fn pipe(home: &Home, path: &str) {
    let path = home.path().join(path);
    let _ = std::fs::remove_file(&path);
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success(), "{}", path.display());
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_in_the_place_of_a_file_of_the_home_never_hangs() {
    type Put = fn(&Home, &str);
    let device: Put = |home, path| {
        let path = home.path().join(path);
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    };
    for (put, what) in [(pipe as Put, "a pipe"), (device, "a device")] {
        let home = Home::with(&server());
        put(&home, "config.yaml");
        let output = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run().refused();
        output.says(&["config.yaml", &format!("it is {what}, not a regular file")]);
        // A session works without these, and says so.
        for file in ["plugins.lock", ".env", "SOUL.md"] {
            let server = server();
            let home = Home::with(&server);
            put(&home, file);
            let output = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run().success();
            output.says(&[file, if file == "SOUL.md" { "not a regular file" } else { what }]);
        }
    }
}

#[test]
fn a_huge_sparse_file_in_the_place_of_a_file_of_the_home_is_not_read() {
    for file in ["config.yaml", "plugins.lock", ".env"] {
        let home = Home::with(&server());
        let huge = std::fs::File::create(home.path().join(file)).unwrap();
        huge.set_len(20 << 30).unwrap();
        let begun = Instant::now();
        let output = home.hermes(&["-z", "hello"]).timeout(DEADLINE).run();
        assert!(begun.elapsed() < DEADLINE, "{file}");
        output.says(&[file]);
    }
}

/// Ctrl-C ends a turn while the host is at work on what a plugin hands it.
#[cfg(unix)]
#[test]
fn ctrl_c_works_while_recalled_text_and_plans_are_worked_on() {
    type Scene = fn(&Server) -> Home;
    let recall: Scene =
        |server| remembering(server, json!({ "recall": "<memory-context>", "recall_times": 2_000_000 }));
    let plan: Scene = |server| folding(server, "covers");
    for scene in [recall, plan] {
        let server =
            Server::answering(|_, number| Reply::text(format!("Answer {number}.")).every(Duration::from_millis(1)));
        let home = scene(&server);
        home.hermes(&["-z", "first"]).timeout(DEADLINE).run().success();
        for wait in [50, 400, 900] {
            let running = home.hermes(&["--continue", "-z", "second"]).timeout(DEADLINE).spawn();
            std::thread::sleep(Duration::from_millis(wait));
            let begun = Instant::now();
            running.interrupt();
            let output = running.wait();
            let code = output.status.code();
            assert!(begun.elapsed() < DEADLINE, "{:?}\n{output}", begun.elapsed());
            assert!(code.is_none() || code == Some(130) || code == Some(0), "{output}");
        }
    }
}
