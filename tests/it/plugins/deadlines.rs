//! Misbehaving plugins: each costs a turn at most its deadline and is named, and the next call works.
//!
//! The guest is `tests/guests/hostile`: a context engine and a tool in one component. As an engine it advises to propose
//! now at every `assess`, never to prepare, and `propose` then does what `mode` of its configuration says. Its tool
//! `poke` does what its argument `mode` says. The modes: `ok` (the engine proposes nothing, the tool answers `ok`), `loop`
//! (computes without end), `alloc` (takes memory without end), `panic` (panics with the text `hostile by nature`), `bad-plan`
//! (the engine's plan covers nothing of what it drops), `error` (answers the error `failed` with the text `hostile on
//! purpose`).

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Output, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::grant_untried;
use crate::fixtures::journal::{assert_logged, texts};

const MISBEHAVIOURS: [&str; 4] = ["loop", "alloc", "panic", "error"];

fn home_with_engine(server: &Server, mode: &str) -> Home {
    let home = Home::with(server);
    home.install_guest("hostile", "hostile", json!({"mode": mode}));
    home.set("context.engine", json!("hostile"));
    home
}

/// Its tool is offered while it is the selected engine.
fn home_with_tool(server: &Server) -> Home {
    home_with_engine(server, "ok")
}

/// Two turns in two processes with an engine that misbehaves in each.
fn two_turns(mode: &str) -> [Output; 2] {
    let server = Server::scripted([Reply::text("First answer."), Reply::text("Second answer.")]);
    let home = home_with_engine(&server, mode);
    let first = home.hermes(&["-z", "one"]).run().success();
    let second = home.hermes(&["-z", "two", "--continue"]).run().success();
    assert_eq!((first.stdout.as_str(), second.stdout.as_str()), ("First answer.\n", "Second answer.\n"), "{mode}");
    let last = server.last_turn();
    assert_valid_request(&last.body);
    assert_logged(&home.messages(), &last);
    [first, second]
}

#[test]
fn an_engine_that_behaves_is_not_mentioned() {
    for output in two_turns("ok") {
        assert!(!output.stderr.contains("hostile"), "{output}");
    }
}

#[test]
fn an_engine_that_misbehaves_is_named_and_the_turn_goes_on() {
    for mode in MISBEHAVIOURS {
        for output in two_turns(mode) {
            output.says(&["`hostile`", "the turn continues without it"]);
        }
    }
}

#[test]
fn a_panic_is_reported_with_the_plugins_message() {
    let [first, _] = two_turns("panic");
    first.says(&["hostile by nature"]);
}

#[test]
fn an_invalid_plan_is_reported_and_changes_nothing() {
    for output in two_turns("bad-plan") {
        output.says(&["hostile", "would lose message", "nothing was compacted"]);
    }
}

#[test]
fn an_engine_that_fails_in_a_full_window_does_not_end_the_conversation() {
    let server = Server::answering(|_, number| {
        Reply::text(crate::fixtures::journal::long_text("answer", number)).in_steps_of(200)
    });
    let home = home_with_engine(&server, "panic");
    home.set("model.context_length", json!(12_000));
    for number in 0..12 {
        let text = crate::fixtures::journal::long_text("turn", number);
        let arguments = ["-z", text.as_str(), "--continue"];
        home.hermes(if number == 0 { &arguments[..2] } else { &arguments }).run().success();
    }
    for request in server.turns() {
        assert_valid_request(&request.body);
        hermes_tests::oracle::assert_fits(&request.body, 12_000);
    }
    assert_eq!(texts(&home.messages(), "user").len(), 12);
}

#[test]
fn a_tool_that_misbehaves_answers_with_an_error_and_works_the_next_time() {
    for mode in MISBEHAVIOURS {
        let server = Server::scripted([
            Reply::calls([Call::new("call_bad", "poke", &json!({"mode": mode}))]),
            Reply::calls([Call::new("call_good", "poke", &json!({"mode": "ok"}))]),
            Reply::text("Poked."),
        ]);
        let home = home_with_tool(&server);
        let output = home.hermes(&["-z", "Poke it."]).run().success();
        assert_eq!(output.stdout, "Poked.\n", "{mode}");
        let turns = server.turns();
        turns.iter().for_each(|request| assert_valid_request(&request.body));
        let (bad, good) = (turns[1].trailing_results(), turns[2].trailing_results());
        assert_eq!((bad[0].0, good[0].0), ("call_bad", "call_good"));
        let named = if mode == "error" { "hostile on purpose" } else { "hostile" };
        assert!(bad[0].1.contains(named), "{mode}: {}", bad[0].1);
        assert_eq!(good[0].1, "ok", "{mode}");
    }
}

#[test]
fn a_parallel_call_beside_a_misbehaving_tool_gets_its_result() {
    let server = Server::scripted([
        Reply::calls([
            Call::new("call_bad", "poke", &json!({"mode": "panic"})),
            Call::new("call_read", "read_file", &json!({"path": "notes.txt"})),
        ]),
        Reply::text("One of two."),
    ]);
    let home = home_with_tool(&server);
    home.write_workspace("notes.txt", "still here");
    home.hermes(&["-z", "Do both."]).run().success();
    let request = server.last_turn();
    assert_valid_request(&request.body);
    let results = request.trailing_results();
    assert_eq!(results[0].0, "call_bad");
    assert!(results[1].1.contains("still here"), "{}", results[1].1);
}

#[test]
fn a_tool_of_an_engine_is_offered_while_it_is_selected() {
    let server = Server::answering(|_, _| Reply::text("Yes."));
    let home = home_with_engine(&server, "ok");
    home.hermes(&["-z", "hi"]).run().success();
    assert!(server.last_turn().tool_names().contains(&"poke"));
    home.set("context.engine", json!("compressor"));
    home.hermes(&["-z", "hi"]).run().success();
    assert!(!server.last_turn().tool_names().contains(&"poke"));
}

#[test]
fn a_file_that_is_not_a_component_is_reported_and_skipped() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    home.write("plugins/junk/plugin.yaml", "name: junk\nversion: 0.1.0\ndescription: no component\n");
    home.write("plugins/junk/junk.wasm", "this is not WebAssembly");
    grant_untried(&home, "junk");
    home.set("plugins.enabled", json!(["junk"]));
    let output = home.hermes(&["-z", "hi"]).run().success();
    assert_eq!(output.stdout, "Fine.\n");
    output.says(&["junk"]);

    home.set("plugins.enabled", json!([]));
    home.set("context.engine", json!("junk"));
    home.hermes(&["-z", "hi"]).run().refused().exits(5).says(&["junk"]);
}

#[test]
fn first_party_plugins_are_bundled_and_listed_with_their_kinds() {
    let home = Home::new();
    let listed = home.hermes(&["plugins", "list", "--json"]).run().success();
    let plugins: Vec<Value> =
        serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("no JSON array\n{listed}"));
    for (bundled, kinds) in [
        ("audit", &["hooks"][..]),
        ("builtin", &["memory-provider", "memory-events", "memory-upkeep", "tools"]),
        ("compressor", &["context-engine"]),
        ("files", &["tools"]),
        ("local", &["skills"]),
        ("mem0", &["memory-provider", "memory-rewind", "memory-upkeep", "tools"]),
    ] {
        let plugin = plugins.iter().find(|plugin| plugin["name"] == bundled);
        let listed = plugin.unwrap_or_else(|| panic!("{bundled} is not listed\n{listed}"))["kinds"].clone();
        assert_eq!(listed, json!(kinds), "{bundled}");
    }
}

#[test]
fn a_plugin_in_the_working_folder_is_never_loaded() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
    home.set("plugins.enabled", json!(["hostile"]));
    let installed = home.path().join("plugins");
    std::fs::rename(installed, home.workspace().join("plugins")).unwrap();
    home.hermes(&["-z", "hi"]).run().success();
    assert!(!server.last_turn().tool_names().contains(&"poke"));
}

#[test]
fn the_audit_hook_logs_a_line_for_every_call() {
    let server = Server::scripted([
        Reply::calls([
            Call::new("call_1", "read_file", &json!({"path": "notes.txt"})),
            Call::new("call_2", "search_files", &json!({"pattern": "note"})),
        ]),
        Reply::text("Done."),
    ]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "a note");
    home.set("plugins.enabled", json!(["audit"]));
    home.hermes(&["-z", "Look."]).run().success();
    let audit = home.read("logs/audit.jsonl");
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for tool in ["read_file", "search_files"] {
        assert!(lines.iter().any(|line| line.to_string().contains(tool)), "{tool} is not in {audit}");
    }
}

#[test]
fn a_full_log_is_rotated_and_still_shown() {
    let server = Server::scripted([
        Reply::calls([Call::new("call_1", "read_file", &json!({"path": "notes.txt"}))]),
        Reply::text("Done."),
    ]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "a note");
    home.set("plugins.enabled", json!(["audit"]));
    let before = r#"{"level":"info","text":"long ago"}"#.to_owned() + "\n";
    let before = before.repeat((8 << 20) / before.len());
    home.write("logs/audit.jsonl", &before);
    home.hermes(&["-z", "Look."]).run().success();
    assert_eq!(home.read("logs/audit.jsonl.1"), before);
    let now = home.read("logs/audit.jsonl").lines().count();
    assert!(now > 0);
    let lines = (now + 2).to_string();
    let shown = home.hermes(&["plugins", "logs", "audit", "-n", &lines]).run().success().stdout;
    assert_eq!((shown.lines().count(), shown.matches("long ago").count()), (now + 2, 2), "{shown}");
    assert!(shown.contains("read_file"), "{shown}");
}

#[test]
fn a_skill_is_in_the_index_and_can_be_read() {
    let server = Server::scripted([
        Reply::calls([Call::new("call_1", "skill_view", &json!({"name": "knots"}))]),
        Reply::text("Tied."),
    ]);
    let home = Home::with(&server);
    let skill = "---\nname: knots\ndescription: How to tie a bowline.\n---\nThe rabbit comes out of its hole.\n";
    home.write("skills/knots/SKILL.md", skill);
    home.hermes(&["-z", "Tie a bowline."]).run().success();
    let turns = server.turns();
    let prompt = turns[0].messages()[0]["content"].as_str().unwrap();
    assert!(prompt.contains("knots") && prompt.contains("How to tie a bowline."), "{prompt}");
    assert!(turns[1].trailing_results()[0].1.contains("The rabbit comes out of its hole."));
}

#[test]
fn a_component_with_a_forbidden_import_is_refused_by_name() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    home.write("plugins/sneaky/plugin.yaml", "name: sneaky\ncomponent: sneaky.wasm\n");
    home.write("plugins/sneaky/sneaky.wasm", hermes_zoo::importing_more("wasi:http/outgoing-handler@0.2.0"));
    grant_untried(&home, "sneaky");
    home.set("plugins.enabled", json!(["sneaky"]));
    home.hermes(&["-z", "hi"]).run().success().says(&["sneaky", "wasi:http/outgoing-handler"]);
    home.set("plugins.enabled", json!([]));
    home.set("context.engine", json!("sneaky"));
    home.hermes(&["-z", "hi"]).run().refused().exits(5).says(&["sneaky", "wasi:http/outgoing-handler"]);
}
