//! Real projects of `plugins new` in every language: built, tested, installed, used in sessions, and changed under `plugins dev`.
//!
//! These tests need the tools of each language and download packages, so they are not part of `cargo xtask test`. `cargo xtask languages` runs
//! them and prints the times.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::journal::long_text;
use crate::kinds;

/// Two projects that are built at once would measure each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How long `new`, build and test should take on a warm machine. A busy one takes longer, so the table marks it and no test fails.
const GREEN: Duration = Duration::from_secs(60);
const GREEN_IN_PYTHON: Duration = Duration::from_secs(120);

struct Language {
    name: &'static str,
    kinds: &'static [&'static str],
    /// Commands that install tools and packages, test the rules, and build the component.
    install: &'static [&'static str],
    test: &'static str,
    build: &'static str,
    /// A source file, a text in it, and what to replace it with.
    edit: (&'static str, &'static str, &'static str),
}

const ALL: &[&str] = &["tools", "context-engine", "memory-provider", "skills", "hooks", "embedder"];

fn run(folder: &Path, command: &str) -> Duration {
    let begun = Instant::now();
    let words: Vec<&str> = command.split(' ').collect();
    let mut child = Command::new(words[0]);
    child.args(&words[1..]).current_dir(folder).env("HERMES", hermes_tests::binary());
    // The tests' own cargo has set variables for its packages.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO")) {
        if name != "CARGO_HOME" {
            child.env_remove(name);
        }
    }
    let output = child.output().unwrap_or_else(|error| panic!("cannot run {command}: {error}"));
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{command} in {}\n{text}", folder.display());
    begun.elapsed()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn in_every_kind(language: &Language) {
    println!("\n| language | kind | install | unit tests | build | host | green | size | memory | turn |");
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for kind in language.kinds {
        let home = Home::new();
        let name = format!("my-{kind}");
        let begun = Instant::now();
        home.hermes(&["plugins", "new", &name, "--kind", kind, "--lang", language.name]).run().success();
        let folder = home.workspace().join(&name);
        let install: Duration = language.install.iter().map(|command| run(&folder, command)).sum();
        let tested = run(&folder, language.test);
        let built = run(&folder, language.build);
        let checking = Instant::now();
        let checked = home.hermes(&["plugins", "test", &name, "--json", "--conversations", "40"]).run();
        let report: Value = serde_json::from_str(&checked.stdout).unwrap_or_else(|error| panic!("{error}\n{checked}"));
        assert!(checked.status.success(), "{kind} in {}\n{report:#}", language.name);
        let (checking, green) = (checking.elapsed(), begun.elapsed());
        let limit = if language.name == "python" { GREEN_IN_PYTHON } else { GREEN };
        let late = if green > limit { format!(" (over {})", seconds(limit)) } else { String::new() };

        let archive = home.hermes(&["plugins", "pack", &name]).run().success();
        assert!(archive.stdout.contains(&format!("{name}-0.1.0.tar.gz")), "{archive}");
        let (turn, size) = session(kind, &folder, &name);
        println!(
            "| `{}` | `{kind}` | {} | {} | {} | {} | {}{late} | {} KB | {} MiB | {} ms |",
            language.name,
            seconds(install),
            seconds(tested),
            seconds(built),
            seconds(checking),
            seconds(green),
            size >> 10,
            report["memory"]["enough_mib"],
            turn.as_millis(),
        );
        match *kind {
            "tools" => develop(language, &home, &folder),
            "context-engine" => conversations(language.name, &folder, &name),
            _ => {}
        }
    }
}

/// The size of the only component below a folder.
fn component_size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sizes = entries.map(|path| match path.extension() {
        _ if path.is_dir() => component_size(&path),
        Some(ending) if ending == "wasm" => path.metadata().unwrap().len(),
        _ => 0,
    });
    sizes.sum()
}

/// Installs the plugin from a folder or an archive in a new home, and uses it with a scripted model. Returns the time of a later turn, and the size of the component.
pub(super) fn session(kind: &str, folder: &Path, name: &str) -> (Duration, u64) {
    let server = Server::answering(move |body, number| {
        let last = &body["messages"].as_array().unwrap().last().unwrap()["role"];
        let offered = |name: &str| body["tools"].to_string().contains(&format!("\"{name}\""));
        if last == "user" && offered("count") {
            return Reply::calls([Call::new("call_1", "count", &json!({"text": "two lamps"}))]);
        }
        if last == "user" && body["messages"].to_string().contains("delete it") && offered("read_file") {
            return Reply::calls([Call::new("call_1", "read_file", &json!({"path": "rm -rf x"}))]);
        }
        Reply::text(long_text("answer", number)).in_steps_of(200)
    });
    let home = Home::with(&server);
    home.hermes(&["plugins", "install", folder.to_str().unwrap(), "--yes"]).run().success();
    match kind {
        "context-engine" => {
            home.set("context.engine", json!(name));
            home.set("model.context_length", json!(12_000));
        }
        "memory-provider" => home.set("memory.provider", json!(name)),
        "embedder" => home.set("auxiliary.embeddings.plugin", json!(name)),
        _ => home.set("plugins.enabled", json!([name])),
    }
    let say = |text: &str, more: &[&str]| {
        let begun = Instant::now();
        let said = home.hermes(&[&["-z", text], more].concat()).run().success();
        assert!(!said.stderr.contains("invalid compaction"), "{said}");
        begun.elapsed()
    };
    match kind {
        "tools" => {
            say("Count the words.", &[]);
            assert!(server.last_turn().body.to_string().contains("2 words"), "{}", server.last_turn().body);
        }
        "context-engine" => {
            for number in 0..10 {
                say(&long_text("turn", number), if number == 0 { &[] } else { &["--continue"] });
            }
            let last = server.last_turn().body.to_string();
            assert!(last.contains(": turn") || last.contains("user: "), "the digest is part of the last request");
        }
        "memory-provider" => {
            say("Remember: the ferry leaves at 07:45", &[]);
            say("When does the ferry leave?", &[]);
            assert!(server.last_turn().body.to_string().contains("<memory-context "), "{}", server.last_turn().body);
        }
        // No bundled plugin asks for vectors: the session loads the component.
        "embedder" => drop(say("Hello.", &[])),
        "skills" => {
            say("Hello.", &[]);
            assert!(server.last_turn().body.to_string().contains("Brewing tea"), "{}", server.last_turn().body);
        }
        _ => {
            say("Now delete it.", &[]);
            let answers = server.last_turn().body["messages"].to_string();
            assert!(answers.contains(&format!("approvals.allow: [{name}/read_file]")), "{answers}");
        }
    }
    (say("Once more.", &[]), component_size(&home.path().join("plugins")))
}

/// Ten conversations of 40 turns, short and long, some with calls, in two windows with the engine of a template. The host must adopt its plans,
/// and never refuse one or switch it off.
fn conversations(language: &str, folder: &Path, name: &str) {
    // The turns of a conversation fill the window about three times.
    for window in [12_000, 128_000] {
        let words = window / 35;
        let said = move |number: usize| {
            let most = words * (1 + number * 7 % 13) / 7;
            format!("Turn {number}: {}", "the ferry leaves berth nine late ".repeat(most / 6))
        };
        let server = Server::answering(move |body, number| {
            let last = &body["messages"].as_array().unwrap().last().unwrap()["role"];
            match number % 5 {
                3 if last == "user" && body["tools"].to_string().contains("\"read_file\"") => {
                    Reply::calls([Call::new("call_1", "read_file", &json!({"path": "ferries.txt"}))])
                }
                _ => Reply::text(said(number)).in_steps_of(2_000),
            }
        });
        let home = Home::with(&server);
        home.hermes(&["plugins", "install", folder.to_str().unwrap(), "--yes"]).run().success();
        home.set("context.engine", json!(name));
        home.set("model.context_length", json!(window));
        fs::write(home.workspace().join("ferries.txt"), said(11)).unwrap();
        let begun = Instant::now();
        for conversation in 0..10 {
            let lines: Vec<String> = (0..40).map(|turn| said(turn + conversation)).collect();
            let output = home.hermes(&["chat"]).stdin(&lines.join("\n")).run().success();
            assert!(!output.stderr.contains("the context engine"), "{language}, {window} tokens\n{output}");
            let last = server.last_turn();
            let users = last.messages().iter().filter(|message| message["role"] == "user").count();
            assert!((1..40).contains(&users), "{language}, {window} tokens: {users} turns are in the last view");
        }
        println!("| `{language}` | ten conversations in {window} tokens | {} |", seconds(begun.elapsed()));
    }
}

/// Changes the tool's description under `plugins dev`, and prints how long the reload took.
fn develop(language: &Language, home: &Home, folder: &Path) {
    let (file, from, to) = language.edit;
    let mut developer = home.hermes(&["plugins", "dev", folder.to_str().unwrap(), "--yes"]);
    // The home of the test is empty, and rustup looks for its toolchains there.
    if let Some(own) = std::env::home_dir() {
        for (name, place) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            let set = std::env::var(name).unwrap_or_else(|_| own.join(place).display().to_string());
            developer = developer.env(name, &set);
        }
    }
    let developer = developer.spawn();
    developer.wait_for_stdout("running sessions use it from their next turn");
    let path = folder.join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    let begun = Instant::now();
    fs::write(&path, text.replace(from, to).replace("version: 0.1.0", "version: 0.1.1")).unwrap();
    let manifest = folder.join("plugin.yaml");
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap().replace("version: 0.1.0", "version: 0.1.1")).unwrap();
    developer.wait_for_stdout("0.1.1 (tools");
    println!("| `{}` | reload under `plugins dev` | {} |", language.name, seconds(begun.elapsed()));
    developer.interrupt();
    developer.wait().success();
}

#[test]
fn rust() {
    in_every_kind(&Language {
        name: "rust",
        // The test of `authors` builds the other kinds.
        kinds: &["tools", "context-engine"],
        install: &[],
        test: "cargo test --quiet",
        build: "cargo build --quiet --release --target wasm32-wasip2",
        edit: ("src/lib.rs", "instead of counting yourself", "and never count yourself"),
    });
}

#[test]
fn python() {
    in_every_kind(&Language {
        name: "python",
        kinds: ALL,
        install: &[],
        test: "python3 build.py test",
        build: "python3 build.py",
        edit: ("src/plugin.py", "instead of counting yourself", "and never count yourself"),
    });
}

#[test]
fn javascript() {
    in_every_kind(&Language {
        name: "javascript",
        kinds: ALL,
        // What is built for editors has to be TypeScript.
        install: &[
            "npm install --no-audit --no-fund",
            "node build.mjs --generate",
            "npx --yes --package typescript@5.9.3 tsc -p jsconfig.json",
        ],
        test: "npm test",
        build: "npm run build",
        edit: ("src/plugin.js", "instead of counting yourself", "and never count yourself"),
    });
}

const EDIT_IN_C: (&str, &str, &str) = ("src/plugin.c", "instead of counting yourself", "and never count yourself");

/// A memory provider becomes a plugin of two kinds with an optional interface, as the page says: by their names in the project's file.
fn in_two_kinds(language: &str, project: &str, source: &str, more: &str, commands: &[&str]) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let home = Home::new();
    home.hermes(&["plugins", "new", "two", "--kind", "memory-provider", "--lang", language]).run().success();
    let folder = home.workspace().join("two");
    let project = folder.join(project);
    let text = fs::read_to_string(&project).unwrap();
    let worlds = r#""memory-provider-plugin", "tools-plugin", "memory-prefetch""#;
    fs::write(&project, text.replace(r#""memory-provider-plugin""#, worlds)).unwrap();
    let source = folder.join(source);
    fs::write(&source, fs::read_to_string(&source).unwrap() + more).unwrap();
    for command in commands {
        run(&folder, command);
    }
    let tested = home.hermes(&["plugins", "test", "two"]).run().success();
    for export in ["memory-provider", "tools", "memory-prefetch"] {
        assert!(tested.stdout.lines().next().is_some_and(|line| line.contains(export)), "{tested}");
    }
}

#[test]
fn python_of_two_kinds() {
    let more = r#"

from hermes_plugin.tools import Toolbox
from wit_world.exports.memory_prefetch import Prefetched


class MemoryPrefetch(exports.MemoryPrefetch):
    def prefetch(self, outlook):
        return [record(Prefetched, key="tea", text="tea at four")] if outlook.budget >= 3 else []


toolbox = Toolbox("notes")


@toolbox.tool()
async def forget(day: str) -> str:
    """Says which day is forgotten."""
    import difflib
    from datetime import datetime

    return f"{datetime.strptime('2026-12-24', '%Y-%m-%d')}{difflib.get_close_matches(day[:100], ['monday'])}"


Tools = toolbox.exports()
"#;
    in_two_kinds("python", "pyproject.toml", "src/plugin.py", more, &["python3 build.py test", "python3 build.py"]);
}

#[test]
fn javascript_of_two_kinds() {
    let more = r#"
import { Toolbox } from "hermes-plugin";

console.log("during the build");

export const memoryPrefetch = guarded({ prefetch: ({ budget }) => (budget < 3 ? [] : [{ key: "tea", text: "tea at four", extra: [] }]) });

export const tools = new Toolbox("notes").tool({
  name: "forget",
  description: "Says how many bytes are forgotten.",
  parameters: { day: { type: "string" } },
  required: ["day"],
  run({ day }) {
    const short = day.slice(0, 1000);
    console.log("forgets", { short });
    return structuredClone({ bytes: new TextEncoder().encode(short).length, text: new TextDecoder().decode(new Uint8Array([0xe2, 0x41])) });
  },
}).exports();
"#;
    let commands = ["npm install --no-audit --no-fund", "npm test", "npm run build"];
    in_two_kinds("javascript", "package.json", "src/plugin.js", more, &commands);
}

#[test]
fn c() {
    in_every_kind(&Language {
        name: "c",
        kinds: ALL,
        install: &[],
        // The second tests a component whose memory is checked.
        test: "make test check",
        build: "make",
        edit: EDIT_IN_C,
    });
}

#[test]
fn c_with_the_compiler_of_zig() {
    in_every_kind(&Language {
        name: "c",
        // The others are built in the same way.
        kinds: &["tools", "skills"],
        install: &["python3 -m venv build/zig", "build/zig/bin/pip install --quiet ziglang"],
        test: "make test check CLANG= ZIG=build/zig/bin/python-zig",
        build: "make CLANG= ZIG=build/zig/bin/python-zig",
        edit: EDIT_IN_C,
    });
}

/// Functions of libc that need its start, or the system below it. Files cannot be opened, which is an answer and no crash.
const LIBC: &str = r#"
#include <errno.h>
#include <locale.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hermes.h"

static int started;
__attribute__((constructor)) static void start(void) { started++; }
static void at_end(void) {}
static int order(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

void libc(hermes_text_t *text) {
    char line[200];
    int numbers[] = { 3, 1, 2 };
    regex_t expression;
    errno = 0;
    FILE *read = fopen("/etc/passwd", "r"), *written = fopen("notes.txt", "w");
    bool refused = !read && !written && errno != 0 && getenv("HOME") == NULL;
    qsort(numbers, 3, sizeof *numbers, order);
    bool found = regcomp(&expression, "^a+b$", REG_EXTENDED) == 0 && regexec(&expression, "aab", 0, NULL, 0) == 0;
    regfree(&expression);
    time_t now = time(NULL);
    bool works = setlocale(LC_ALL, "") && atexit(at_end) == 0 && gmtime(&now)->tm_year > 100 && rand() >= 0;
    printf("to the log\n");
    snprintf(line, sizeof line, "started %d refused %d sorted %d%d%d found %d works %d number %.1f ", started, refused, numbers[0],
             numbers[1], numbers[2], found, works, strtod("1.5", NULL));
    hermes_say(text, line);
    // A part of a character, as a text that is cut at a number of bytes ends.
    hermes_say(text, "\xe2\x82 ");
}
"#;

/// Uses the tool of the template in a session after an edit and with one more file. Returns the last request and the log.
fn edited(language: &str, more: (&str, &str), edit: (&str, &str, &str), commands: &[&str]) -> (String, String) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let server = Server::answering(|body, _| {
        let asked = body["messages"].as_array().unwrap().last().unwrap()["role"] == "user";
        if asked {
            Reply::calls([Call::new("call_1", "count", &json!({"text": "two lamps"}))])
        } else {
            Reply::text("Good.")
        }
    });
    let home = Home::with(&server);
    home.hermes(&["plugins", "new", "mine", "--kind", "tools", "--lang", language]).run().success();
    let folder = home.workspace().join("mine");
    fs::write(folder.join(more.0), more.1).unwrap();
    let (file, from, to) = edit;
    let text = fs::read_to_string(folder.join(file)).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    fs::write(folder.join(file), text.replacen(from, to, 1)).unwrap();
    for command in commands {
        run(&folder, command);
    }
    home.hermes(&["plugins", "test", "mine"]).run().success();
    home.hermes(&["plugins", "install", folder.to_str().unwrap(), "--yes"]).run().success();
    home.set("plugins.enabled", json!(["mine"]));
    home.hermes(&["-z", "Count the words."]).run().success();
    let log = fs::read_to_string(home.path().join("logs/mine.jsonl")).unwrap_or_default();
    (server.last_turn().body.to_string(), log)
}

#[test]
fn libc_is_started_before_the_first_call_in_c() {
    let calls = "    if (counted) {\n        extern void libc(hermes_text_t *);\n        libc(answer);\n";
    let edit = ("src/plugin.c", "    if (counted) {\n", calls);
    let (last, _) = edited("c", ("src/libc.c", LIBC), edit, &["make"]);
    assert!(
        last.contains("started 1 refused 1 sorted 123 found 1 works 1 number 1.5 \u{fffd}\u{fffd} 2 words"),
        "{last}"
    );
}

#[test]
fn go() {
    in_every_kind(&Language {
        name: "go",
        kinds: ALL,
        // Authors and their editors run it.
        install: &["go vet ./..."],
        test: "go test ./...",
        build: "go run build.go",
        edit: ("plugin/plugin.go", "instead of counting yourself", "and never count yourself"),
    });
}

const DECODE: &str = r#"package sdk

import "testing"

func TestDecodeTakesOneObjectOnly(t *testing.T) {
	for text, fits := range map[string]bool{
		"": true, " {}\n": true, `{"a": 1}`: true, `{"b": 1}`: false, "[]": false, "{}}": false, `{"a": 1}]`: false, "{}{}": false, "{} x": false,
	} {
		var value struct{ A int }
		if err := Decode(text, &value); (err == nil) != fits {
			t.Errorf("%q: %v", text, err)
		}
	}
}
"#;

#[test]
fn the_sdk_of_go_makes_texts_well_formed_and_runs_goroutines_before_a_call_ends() {
    let edit = (
        "plugin/plugin.go",
        "	answer := fmt.Sprintf(\"",
        "	go sdk.Log(\"it ran\")\n	go func() { select {} }()\n	answer := fmt.Sprintf(\"\\xff\\xfe",
    );
    let commands = ["go test hermes/sdk", "go run build.go"];
    let (last, log) = edited("go", ("sdk/hermes_test.go", DECODE), edit, &commands);
    assert!(last.contains("\u{fffd}2 words"), "{last}");
    assert!(log.contains("it ran") && log.contains("goroutine of this call still waits"), "{log}");
}

/// Builds the plugins in JavaScript that `docs/plugins/kinds` shows, uses each in a session, and keeps them for the tests that have no compiler.
#[test]
fn kept() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for kind in kinds::KINDS {
        let home = Home::new();
        home.hermes(&["plugins", "new", "kept", "--kind", "tools", "--lang", "javascript"]).run().success();
        let folder = home.workspace().join("kept");
        let package = fs::read_to_string(folder.join("package.json")).unwrap();
        fs::write(folder.join("package.json"), package.replace("tools-plugin", &format!("{kind}-plugin"))).unwrap();
        fs::copy(kinds::pages().join(kind).join("javascript/plugin.js"), folder.join("src/plugin.js")).unwrap();
        run(&folder, "npm install --no-audit --no-fund");
        run(&folder, "npm run build");
        let component = fs::read(folder.join("build/kept.wasm")).unwrap();
        kinds::run(kind, &component);
        kinds::kept::keep(kind, &component);
        println!("kept the {kind} in JavaScript, {} KB", component.len() >> 10);
    }
}

/// Builds the ports that the pages for authors from other worlds show, and tests each against the contract.
#[test]
fn ports() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut built = 0;
    for page in ["from-mcp", "from-pi", "from-opencode"] {
        for (place, code) in super::ports::of(page) {
            let [language, kind, file] = place.split(' ').collect::<Vec<_>>()[..] else { panic!("{page}: {place}") };
            let home = Home::new();
            home.hermes(&["plugins", "new", "port", "--kind", kind, "--lang", language]).run().success();
            let folder = home.workspace().join("port");
            fs::write(folder.join(file), code).unwrap();
            let commands: &[&str] = match language {
                "python" => &["python3 build.py"],
                _ => &["npm install --no-audit --no-fund", "npm run build"],
            };
            for command in commands {
                run(&folder, command);
            }
            home.hermes(&["plugins", "test", "port"]).run().success();
            built += 1;
            println!("built the {kind} of {page} in {language}");
        }
    }
    assert_eq!(built, 3);
}
