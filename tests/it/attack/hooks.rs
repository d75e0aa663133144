//! Hooks, engines and memory providers that loop, crash, answer nonsense or eat memory: hooks fail closed, and every turn goes on.

use std::time::Duration;

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server};
use hermes_zoo::{LOOP, Shell};
use serde_json::json;

use crate::fixtures::grant_untried;

/// Far more than the limits of the plugins together.
const DEADLINE: Duration = Duration::from_secs(600);

/// Installs a plugin with short limits.
fn keep(home: &Home, component: &[u8]) {
    let manifest = "name: beast\nversion: 0.1.0\ndescription: a beast\npermissions: {hooks: true}\n";
    home.write("plugins/beast/plugin.yaml", manifest);
    home.write("plugins/beast/beast.wasm", component);
    grant_untried(home, "beast");
    let limits =
        json!({ "cpu": "200ms", "start_time": "5s", "turn_time": "1s", "memory": "8MiB", "host_calls": 2_000 });
    home.set("plugins.settings.beast.limits", limits);
}

const FOREVER: &str = "(loop $l (drop (memory.grow (i32.const 1))) (br $l))";
const DEEP: &str = "(func $deep (call $deep) (call $deep))";
/// An answer with a case that the contract does not have.
const NONSENSE: &str = "(i32.store8 (i32.const 16384) (i32.const 77)) (return (i32.const 16384))";

/// A hook with this body, called before every tool.
fn hook(fields: &str, wat: &str) -> Vec<u8> {
    let mut shell = Shell::of("hooks-plugin").pages(64, None);
    let [at, length] = shell.memory().bytes(b"before-tool");
    let list = shell.memory().list(&[at, length], 1);
    shell
        .fields(fields)
        .body("hooks/interests", &format!("(i32.const {list})"))
        .body("hooks/on-event", &format!("{wat} (i32.const 1024)"))
        .build()
}

/// A hook that blocks with this many bytes of reason, and first writes `byte` into all of them.
fn blocking(byte: u8, length: u32) -> Vec<u8> {
    let wat = format!(
        "(memory.fill (i32.const 65536) (i32.const {byte}) (i32.const {length}))
         (i32.store8 (i32.const 16384) (i32.const 1)) (i32.store (i32.const 16388) (i32.const 65536))
         (i32.store (i32.const 16392) (i32.const {length})) (return (i32.const 16384))"
    );
    hook("", &wat)
}

#[test]
fn a_hook_that_fails_in_any_way_blocks_the_call_and_the_session_goes_on() {
    for (name, component) in [
        ("takes memory page by page", hook("", FOREVER)),
        ("takes all memory at once", hook("", "(drop (memory.grow (i32.const 65000))) unreachable")),
        ("calls itself without end", hook(DEEP, "(call $deep)")),
        ("answers nonsense", hook("", NONSENSE)),
        ("answers from behind its memory", hook("", "(return (i32.const -64))")),
        ("answers from between two words", hook("", "(return (i32.const 1025))")),
        ("blocks with bytes that are no text", blocking(0xff, 4)),
        ("blocks with three megabytes", blocking(b'x', 3 << 20)),
        ("blocks with escape sequences", blocking(0x1b, 2_000)),
        ("divides by nothing", hook("", "(drop (i32.div_u (i32.const 1) (i32.const 0)))")),
    ] {
        let write = |number: usize| {
            Reply::calls([Call::new(
                &format!("call_{number}"),
                "write_file",
                &json!({ "path": "new.txt", "content": "x" }),
            )])
        };
        let server = Server::scripted([write(1), Reply::text("First."), Reply::text("Second.")]);
        let home = Home::with(&server);
        keep(&home, &component);
        home.set("plugins.enabled", json!(["beast"]));
        let output = home.hermes(&[]).stdin("one\ntwo\n").timeout(DEADLINE).run().success();
        assert!(output.stdout.contains("First.") && output.stdout.contains("Second."), "{name}: {output}");
        assert!(!home.workspace().join("new.txt").exists(), "{name}: the call ran");
        let turns = server.turns();
        let (_, result) = turns[1].trailing_results()[0];
        assert!(result.contains("beast"), "{name}: {result}");
        assert!(result.len() < 16 << 10, "{name}: a reason of {} bytes", result.len());
        assert!(!output.stdout.contains("\u{1b}\u{1b}") && !output.stderr.contains("\u{1b}\u{1b}"), "{name}: {output}");
        turns.iter().for_each(|request| assert_valid_request(&request.body));
    }
}

/// What a function does in the place of its work.
const DEEDS: [(&str, &str, &str); 5] = [
    ("loops", "", LOOP),
    ("crashes", "", "unreachable"),
    ("takes memory", "", FOREVER),
    ("answers nonsense", "", NONSENSE),
    ("calls itself", DEEP, "(call $deep)"),
];

/// Lets each function of a world misbehave, in a conversation of three turns. Without `HERMES_ATTACK_ALL`, each
/// misbehaves in one way.
fn every_function_of(world: &str, selected: &[(&str, serde_json::Value)]) {
    let functions: Vec<String> = Shell::of(world).exports();
    assert!(!functions.is_empty());
    for (at, function) in functions.iter().enumerate() {
        for (number, (deed, fields, wat)) in DEEDS.iter().enumerate() {
            if !super::all() && number != at % DEEDS.len() {
                continue;
            }
            // The body must fit functions with and without a result.
            let body = format!("{wat} unreachable");
            let component = Shell::of(world).fields(fields).body(function, &body).build();
            let server = Server::answering(|body, number| match number {
                0 if body["tools"].is_array() => {
                    Reply::calls([Call::new("call_1", "read_file", &json!({ "path": "notes.txt" }))])
                }
                _ => Reply::text(format!("Answer {number}.")),
            });
            let home = Home::with(&server);
            home.write_workspace("notes.txt", "still here");
            keep(&home, &component);
            for (key, value) in selected {
                home.set(key, value.clone());
            }
            let chat = home.hermes(&[]).stdin("one\n/rewind\ntwo\nthree\n").timeout(DEADLINE).run().success();
            let turns = server.turns();
            assert!(turns.len() >= 4, "{function} {deed}: {} requests\n{chat}", turns.len());
            turns.iter().for_each(|request| assert_valid_request(&request.body));
            assert!(!chat.stderr.contains("panicked at"), "{function} {deed}: {chat}");
            home.hermes(&["sessions", "check"]).run().success();
        }
    }
}

#[test]
fn no_function_of_an_engine_stops_a_conversation() {
    every_function_of("context-engine-plugin", &[("context.engine", json!("beast"))]);
}

#[test]
fn no_function_of_a_memory_provider_stops_a_conversation() {
    every_function_of("memory-provider-plugin", &[("memory.provider", json!("beast"))]);
}

#[test]
fn no_function_of_hooks_tools_and_skills_stops_a_conversation() {
    for world in ["hooks-plugin", "skills-plugin", "tools-plugin"] {
        every_function_of(world, &[("plugins.enabled", json!(["beast"]))]);
    }
}
