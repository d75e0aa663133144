//! A plugin that is replaced by something hostile while a session runs: every turn is answered by the running version.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Running, Server};
use hermes_zoo::{LOOP, Offered, Shell};
use serde_json::json;

const MANIFEST: &str = "name: beast\nversion: 0.1.0\ndescription: a beast\n";

/// A plugin whose tool answers this.
fn answering(text: &str) -> Shell {
    let mut shell = Shell::of("tools-plugin");
    let catalog = shell.memory().catalog(&[Offered::new("good")]);
    let answer = shell.memory().output(text);
    shell.body("tools/catalog", &format!("(i32.const {catalog})")).body("tools/call", &format!("(i32.const {answer})"))
}

struct Chat {
    home: Home,
    server: Server,
    running: Running,
    turns: usize,
}

impl Chat {
    fn begin() -> Self {
        let server = Server::answering(|body, number| {
            let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
            match last["role"] == "tool" {
                true => Reply::text("Done."),
                false => Reply::calls([Call::new(&format!("call_{number}"), "good", &json!({}))]),
            }
        });
        let home = Home::with(&server);
        home.write("plugins/beast/plugin.yaml", MANIFEST);
        home.write("plugins/beast/beast.wasm", answering("sound").build());
        home.grant("beast");
        home.set("plugins.enabled", json!(["beast"]));
        home.set("plugins.settings.beast.limits", json!({ "cpu": "300ms", "start_time": "3s", "memory": "8MiB" }));
        let running = home.hermes(&["-v"]).talking().spawn();
        Self { home, server, running, turns: 0 }
    }

    /// Takes a turn, and returns the tool's answer in it.
    fn turn(&mut self) -> String {
        self.turns += 1;
        self.running.say("go");
        self.server.wait_for_finished(2 * self.turns);
        let request = self.server.last_turn();
        assert_valid_request(&request.body);
        request.trailing_results()[0].1.to_owned()
    }

    fn folder(&self) -> std::path::PathBuf {
        self.home.path().join("plugins/beast")
    }

    /// Replaces the component as a whole, as an installation does.
    fn put(&self, component: &[u8]) {
        let aside = self.folder().join("part");
        fs::write(&aside, component).unwrap();
        let to = self.folder().join("beast.wasm");
        if to.is_dir() {
            fs::remove_dir_all(&to).unwrap();
        }
        fs::rename(aside, to).unwrap();
    }
}

/// A component that the user allows, and that cannot take over.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let on = |function: &str, wat: &str| answering("hostile").body(function, wat).build();
    let forever = "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) unreachable";
    let mut flood = Shell::of("tools-plugin").pages(16, None);
    let tools: Vec<Offered> = (0..2_000).map(|at| Offered::new(&format!("tool_{at}"))).collect();
    let catalog = flood.memory().catalog(&tools);
    vec![
        ("configure hangs", on("lifecycle/configure", LOOP)),
        ("session-start hangs", on("lifecycle/session-start", LOOP)),
        ("the catalog hangs", on("tools/catalog", LOOP)),
        ("configure crashes", on("lifecycle/configure", "unreachable")),
        ("the catalog crashes", on("tools/catalog", "unreachable")),
        ("configure takes memory", on("lifecycle/configure", forever)),
        ("the start function hangs", answering("hostile").fields("(func $s (loop $l (br $l))) (start $s)").build()),
        ("it begins with too much memory", answering("hostile").pages(1_000, None).build()),
        ("thousands of tools", flood.body("tools/catalog", &format!("(i32.const {catalog})")).build()),
        ("hooks in the place of tools", Shell::of("hooks-plugin").build()),
        ("a later contract", answering("hostile").version("2.0.0").build()),
        ("a foreign import", hermes_zoo::importing_more("wasi:http/outgoing-handler@0.2.0")),
    ]
}

#[test]
fn a_generation_that_hangs_crashes_or_does_not_fit_never_takes_over() {
    let mut chat = Chat::begin();
    assert_eq!(chat.turn(), "sound");
    for (name, component) in hostile() {
        chat.put(&component);
        // The user's consent, where it can be given at all.
        let granted = chat.home.hermes(&["plugins", "grant", "beast", "--yes"]).run();
        assert!(granted.status.code().is_some_and(|code| code != 101), "{name}: {granted}");
        for _ in 0..2 {
            assert_eq!(chat.turn(), "sound", "{name}");
        }
    }
    chat.put(&answering("better").build());
    chat.home.grant("beast");
    chat.running.wait_for_stderr("change=\"ready\"");
    let mut answer = chat.turn();
    // The watcher may still be at work on what came before.
    for _ in 0..1_200 {
        if answer == "better" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
        answer = chat.turn();
    }
    assert_eq!(answer, "better");
    let output = chat.running.wait().success();
    assert!(!output.stderr.contains("panicked at"), "{output}");
}

/// Puts something into the folder of the plugin.
type Put = fn(&Path);

fn away(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path).unwrap();
    } else if path.symlink_metadata().is_ok() {
        fs::remove_file(path).unwrap();
    }
}

fn pipe(path: &Path) {
    away(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn sparse(path: &Path) {
    away(path);
    fs::File::create(path).unwrap().set_len(20 << 30).unwrap();
}

fn linked(path: &Path, to: &str) {
    away(path);
    symlink(to, path).unwrap();
}

const PUTS: &[(&str, Put)] = &[
    ("a pipe for the component", |folder| pipe(&folder.join("beast.wasm"))),
    ("a pipe for the manifest", |folder| pipe(&folder.join("plugin.yaml"))),
    ("twenty gigabytes for the component", |folder| sparse(&folder.join("beast.wasm"))),
    ("twenty gigabytes for the manifest", |folder| sparse(&folder.join("plugin.yaml"))),
    ("a device for the component", |folder| linked(&folder.join("beast.wasm"), "/dev/zero")),
    ("a device for the manifest", |folder| linked(&folder.join("plugin.yaml"), "/dev/zero")),
    ("a link to itself", |folder| linked(&folder.join("beast.wasm"), "beast.wasm")),
    ("a link to the parent folder", |folder| linked(&folder.join("more"), "..")),
    ("folders for both", |folder| {
        for name in ["beast.wasm", "plugin.yaml"] {
            away(&folder.join(name));
            fs::create_dir(folder.join(name)).unwrap();
        }
    }),
    ("half a component", |folder| {
        away(&folder.join("beast.wasm"));
        fs::write(folder.join("beast.wasm"), &answering("hostile").build()[..100]).unwrap();
    }),
    ("a component that nobody allowed", |folder| {
        away(&folder.join("beast.wasm"));
        fs::write(folder.join("beast.wasm"), answering("hostile").build()).unwrap();
    }),
    ("another name in the manifest", |folder| {
        fs::write(folder.join("plugin.yaml"), MANIFEST.replace("beast", "files")).unwrap();
    }),
    ("a manifest with more permissions", |folder| {
        fs::write(folder.join("plugin.yaml"), format!("{MANIFEST}permissions: {{history: true, hooks: true}}\n"))
            .unwrap();
    }),
    ("ten thousand files", |folder| {
        fs::create_dir(folder.join("many")).unwrap();
        (0..10_000).for_each(|at| drop(fs::File::create(folder.join(format!("many/{at}"))).unwrap()));
    }),
    ("nothing", |folder| fs::remove_dir_all(folder).unwrap()),
];

#[test]
fn whatever_is_in_the_folder_of_a_running_plugin_the_next_turn_is_answered() {
    let mut chat = Chat::begin();
    assert_eq!(chat.turn(), "sound");
    for (name, put) in PUTS {
        put(&chat.folder());
        for _ in 0..2 {
            assert_eq!(chat.turn(), "sound", "{name}");
        }
        away(&chat.folder());
        chat.home.write("plugins/beast/plugin.yaml", MANIFEST);
        chat.home.write("plugins/beast/beast.wasm", answering("sound").build());
    }
    let output = chat.running.wait().success();
    assert!(!output.stderr.contains("panicked at"), "{output}");
}
