//! Plugins that change while a session runs: the next turn uses the new one, and no sent byte changes.
//!
//! The plugin is `tests/guests/hostile`, whose tool `poke` answers `hostile on purpose`. A new generation is made by replacing words in
//! the component with others of the same length.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Request, Running, Server};
use serde_json::{Value, json};

const WORDS: &str = "hostile on purpose";
const OTHER_WORDS: &str = "hostile on perhaps";
/// The description of one of its tools.
const SCHEMA: &str = "Computes without end.";
const OTHER_SCHEMA: &str = "Computes without any.";

fn staged() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-guests/hostile/hostile.wasm");
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask test`", path.display()))
}

/// The component with replaced words.
fn with(component: &[u8], words: &str, others: &str) -> Vec<u8> {
    assert_eq!(words.len(), others.len());
    let at = component.windows(words.len()).position(|window| window == words.as_bytes()).expect("the words are there");
    let mut changed = component.to_vec();
    changed[at..at + others.len()].copy_from_slice(others.as_bytes());
    changed
}

/// A model that calls the tool once per turn, and then repeats its answer.
fn poking() -> Server {
    Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        if last["role"] == "tool" {
            let result = last["content"].as_str().unwrap_or_default().to_owned();
            return Reply::text(format!("It said: {result}."));
        }
        let prompt = last["content"].as_str().unwrap_or_default().to_owned();
        let mode = if prompt.contains("panic") { "panic" } else { "error" };
        Reply::calls([Call::new(&format!("call_{number}"), "poke", &json!({ "mode": mode }))])
    })
}

struct Chat {
    home: Home,
    server: Server,
    running: Running,
    turns: usize,
}

impl Chat {
    fn begin() -> Self {
        let server = poking();
        let home = Home::with(&server);
        home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
        home.set("context.engine", json!("hostile"));
        let running = home.hermes(&["-v"]).talking().spawn();
        Self { home, server, running, turns: 0 }
    }

    /// Sends a message and waits for the end of the answer. Returns the tool's answer.
    fn turn(&mut self, text: &str) -> String {
        self.turns += 1;
        self.running.say(text);
        self.server.wait_for_finished(2 * self.turns);
        let request = self.server.last_turn();
        assert_valid_request(&request.body);
        request.trailing_results()[0].1.to_owned()
    }

    fn component(&self) -> PathBuf {
        self.home.path().join("plugins/hostile/hostile.wasm")
    }

    /// Replaces the component atomically, without a grant.
    fn put(&self, component: &[u8]) {
        let aside = self.component().with_extension("part");
        fs::write(&aside, component).unwrap();
        fs::rename(aside, self.component()).unwrap();
    }

    /// The same, with a grant.
    fn replace(&self, component: &[u8]) {
        self.put(component);
        self.home.grant("hostile");
    }

    /// Waits until this number of changes was handled with this outcome.
    fn wait_for_changes(&self, outcome: &str, changes: usize) {
        self.running.wait_for_stderr_times(&format!("change=\"{outcome}\""), changes);
    }

    /// Panics unless every request extends the previous one on the wire, with the same tools and prompt.
    fn assert_prefix_unbroken(&self) {
        let open = |request: &Request| request.raw_member("messages").trim_end_matches(']').to_owned();
        for pair in self.server.turns().windows(2) {
            assert_eq!(pair[0].raw_member("tools"), pair[1].raw_member("tools"), "the tools changed");
            assert!(open(&pair[1]).starts_with(&open(&pair[0])), "what was sent changed");
        }
    }

    fn end(self) -> hermes_tests::Output {
        self.assert_prefix_unbroken();
        self.running.wait().success()
    }
}

#[test]
fn a_changed_component_serves_from_the_next_turn_and_keeps_the_prefix() {
    let mut chat = Chat::begin();
    assert!(chat.turn("one").contains(WORDS));
    chat.replace(&with(&staged(), WORDS, OTHER_WORDS));
    chat.wait_for_changes("ready", 1);
    assert!(chat.turn("two").contains(OTHER_WORDS));
    assert!(chat.turn("three").contains(OTHER_WORDS));
    let output = chat.end().says(&["hostile", "generation 2"]);
    assert_eq!(output.stderr.matches("generation 2").count(), 1, "{output}");
}

#[test]
fn a_granted_change_by_hand_keeps_everything_and_serves_from_the_next_turn() {
    let server = poking();
    let home = Home::with(&server);
    let (manifest, component) = hermes_tests::staged_guest("hostile");
    home.write_workspace("hostile/plugin.yaml", manifest);
    home.write_workspace("hostile/hostile.wasm", component);
    home.hermes(&["plugins", "install", "./hostile", "--yes"]).run().success();
    home.set("plugins.entries.hostile", json!({"mode": "ok"}));
    home.set("context.engine", json!("hostile"));
    home.write("data/hostile/documents/note", "kept");
    let running = home.hermes(&["-v"]).talking().spawn();
    let mut chat = Chat { home, server, running, turns: 0 };
    assert!(chat.turn("one").contains(WORDS));
    chat.put(&with(&staged(), WORDS, OTHER_WORDS));
    chat.wait_for_changes("broken", 1);
    assert!(chat.turn("two").contains(WORDS), "the old one stays until the grant");
    chat.home.grant("hostile");
    chat.wait_for_changes("ready", 1);
    assert!(chat.turn("three").contains(OTHER_WORDS));
    // Half a file changes nothing, and is not granted.
    chat.put(&staged()[..1_000]);
    chat.wait_for_changes("broken", 2);
    chat.home.hermes(&["plugins", "grant", "hostile", "--yes"]).run().refused();
    assert!(chat.turn("four").contains(OTHER_WORDS));
    assert_eq!(chat.home.read("data/hostile/documents/note"), "kept");
    let lock: Value = serde_json::from_str(&chat.home.read("plugins.lock")).unwrap();
    let entry = &lock["plugins"]["hostile"];
    assert!(entry["source"].as_str().unwrap().ends_with("/hostile") && entry["edited"] == json!(true), "{entry}");
    let output = chat.end().says(&["hermes plugins update hostile", "generation 2"]);
    assert!(!output.stderr.contains("revoked") && !output.stderr.contains("another source"), "{output}");
}

#[test]
fn a_changed_tool_waits_for_the_next_session_and_is_announced_once() {
    let mut chat = Chat::begin();
    chat.turn("one");
    let changed = with(&with(&staged(), WORDS, OTHER_WORDS), SCHEMA, OTHER_SCHEMA);
    chat.replace(&changed);
    chat.wait_for_changes("ready", 1);
    assert!(chat.turn("two").contains(WORDS), "the old one goes with the old tools");
    chat.turn("three");
    let before = chat.server.last_turn();
    assert!(before.raw_member("tools").contains(SCHEMA));
    chat.assert_prefix_unbroken();
    chat.running.say("/new");
    assert!(chat.turn("four").contains(OTHER_WORDS));
    let after = chat.server.last_turn();
    assert!(after.raw_member("tools").contains(OTHER_SCHEMA) && !after.raw_member("tools").contains(SCHEMA));
    let output = chat.running.wait().success().says(&["`spin`", "next session"]);
    assert_eq!(output.stderr.matches("until the next session begins").count(), 1, "{output}");
}

#[test]
fn an_ungranted_change_is_reported_and_the_running_version_stays() {
    let mut chat = Chat::begin();
    chat.turn("one");
    chat.put(&with(&staged(), WORDS, OTHER_WORDS));
    chat.wait_for_changes("broken", 1);
    assert!(chat.turn("two").contains(WORDS));
    fs::write(chat.home.path().join("plugins/hostile/plugin.yaml"), "name: [").unwrap();
    chat.wait_for_changes("broken", 2);
    assert!(chat.turn("three").contains(WORDS));
    let output = chat.end().says(&["hostile", "changed since you allowed it", "`hermes plugins grant hostile`"]);
    assert_eq!(output.stderr.matches("keeps the running version").count(), 2, "{output}");
}

#[test]
fn a_generation_that_does_not_start_does_not_replace_the_running_one() {
    let mut chat = Chat::begin();
    chat.turn("one");
    // A valid component with limits too low to start.
    let manifest = chat.home.path().join("plugins/hostile/plugin.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}config: {{type: object, required: [never-set]}}\n")).unwrap();
    chat.home.grant("hostile");
    chat.wait_for_changes("broken", 1);
    assert!(chat.turn("two").contains(WORDS));
    chat.end().says(&["cannot be used", "never-set", "keeps the running version"]);
}

#[test]
fn a_revoked_grant_ends_in_the_running_session_and_can_be_restored() {
    let mut chat = Chat::begin();
    chat.turn("one");
    chat.home.hermes(&["plugins", "revoke", "hostile"]).run().success();
    chat.wait_for_changes("revoked", 1);
    assert!(chat.turn("two").contains(WORDS), "its code stays, its permissions do not");
    chat.home.grant("hostile");
    chat.wait_for_changes("ready", 1);
    chat.turn("three");
    chat.end().says(&[
        "was revoked, for this session and later ones",
        "you revoked its permission to run",
        "generation 3",
    ]);
}

#[test]
fn a_removed_plugin_stays_until_the_session_ends() {
    let mut chat = Chat::begin();
    chat.turn("one");
    fs::remove_dir_all(chat.home.path().join("plugins/hostile")).unwrap();
    chat.wait_for_changes("removed", 1);
    assert!(chat.turn("two").contains(WORDS));
    assert!(chat.turn("three").contains(WORDS));
    chat.end().says(&["`hostile` was removed"]);
}

#[test]
fn after_many_writes_the_last_one_counts() {
    let mut chat = Chat::begin();
    chat.turn("one");
    let (old, new) = (staged(), with(&staged(), WORDS, OTHER_WORDS));
    for length in [10, old.len() / 3, old.len() - 1] {
        fs::write(chat.component(), &new[..length]).unwrap();
        chat.put(&old);
    }
    chat.replace(&new);
    chat.wait_for_changes("ready", 1);
    assert!(chat.turn("two").contains(OTHER_WORDS));
    let output = chat.end();
    assert!(!output.stderr.contains("cannot be used"), "{output}");
}

#[test]
fn a_generation_that_crashes_at_its_first_call_is_rolled_back() {
    let mut chat = Chat::begin();
    chat.turn("one");
    chat.replace(&with(&staged(), WORDS, OTHER_WORDS));
    chat.wait_for_changes("ready", 1);
    let crashed = chat.turn("panic");
    assert!(crashed.contains("crashed and gave no answer"), "{crashed}");
    assert!(chat.turn("three").contains(WORDS));
    chat.end().says(&["generation 2 failed at its first `call`", "generation 1"]);
}

fn resident_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

#[test]
fn fifty_reloads_in_a_row_leave_nothing_behind() {
    let mut chat = Chat::begin();
    let generations = [staged(), with(&staged(), WORDS, OTHER_WORDS)];
    chat.turn("one");
    let mut settled = 0;
    for number in 1..=50 {
        chat.replace(&generations[number % 2]);
        chat.wait_for_changes("ready", number);
        let expected = [WORDS, OTHER_WORDS][number % 2];
        assert!(chat.turn("again").contains(expected), "{number}");
        if number == 10 {
            settled = resident_kib(chat.running.id());
        }
    }
    let grown = resident_kib(chat.running.id()).saturating_sub(settled);
    assert!(grown < 64 << 10, "it grew by {grown} KiB over forty reloads");
    let maps = fs::read_to_string(format!("/proc/{}/maps", chat.running.id())).unwrap();
    let mapped: std::collections::BTreeSet<&str> =
        maps.lines().filter(|line| line.contains(".cwasm")).filter_map(|line| line.split_whitespace().last()).collect();
    assert!(mapped.len() <= 12, "{mapped:?}");
    chat.end().says(&["generation 51"]);
}

#[test]
fn plugins_dev_builds_and_serves_a_plugin_until_it_exits() {
    let mut chat = Chat::begin();
    chat.turn("one");
    // The project's build command copies an existing component.
    let project = chat.home.workspace().join("project");
    fs::create_dir_all(project.join("ready")).unwrap();
    fs::copy(chat.home.path().join("plugins/hostile/plugin.yaml"), project.join("plugin.yaml")).unwrap();
    fs::write(project.join("ready/component"), with(&staged(), WORDS, OTHER_WORDS)).unwrap();
    let path = project.display().to_string();
    let arguments = ["plugins", "dev", &path, "--build", "cp ready/component hostile.wasm"];
    let developer = chat.home.hermes(&arguments).spawn();
    developer.wait_for_stdout("built `hostile`");
    chat.wait_for_changes("ready", 1);
    assert!(chat.turn("two").contains(OTHER_WORDS));

    fs::write(project.join("ready/component"), "broken").unwrap();
    developer.wait_for_stderr("cannot be used");
    assert!(chat.turn("three").contains(OTHER_WORDS));
    fs::write(project.join("ready/component"), with(&staged(), WORDS, "hostile on parades")).unwrap();
    chat.wait_for_changes("ready", 2);
    assert!(chat.turn("four").contains("hostile on parades"));

    developer.interrupt();
    developer.wait().success();
    assert!(!chat.home.path().join("plugins/.dev/hostile").exists());
    chat.wait_for_changes("ready", 3);
    assert!(chat.turn("five").contains(WORDS), "what is installed serves again");
    chat.end();
}

#[test]
fn plugins_dev_shows_what_the_plugin_logs() {
    let calls = [Call::new("call_1", "grab", &json!({"what": "print", "of": "hello from a session"}))];
    let server = Server::scripted([Reply::calls(calls), Reply::text("Done.")]);
    let home = Home::with(&server);
    home.install_guest("greedy", "greedy", json!({}));
    home.set("plugins.enabled", json!(["greedy"]));
    let project = home.workspace().join("project");
    fs::create_dir_all(&project).unwrap();
    for file in ["plugin.yaml", "greedy.wasm"] {
        fs::copy(home.path().join("plugins/greedy").join(file), project.join(file)).unwrap();
    }
    let path = project.display().to_string();
    let developer = home.hermes(&["plugins", "dev", &path, "--build", "true"]).spawn();
    developer.wait_for_stdout("built `greedy`");
    home.hermes(&["-z", "Print something."]).run().success();
    developer.wait_for_stdout("info to stdout: hello from a session");
    developer.interrupt();
    developer.wait().success();
}

#[test]
fn leftovers_of_a_killed_plugins_dev_do_not_run() {
    let server = poking();
    let home = Home::with(&server);
    home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
    let slot = home.path().join("plugins/.dev/hostile");
    fs::create_dir_all(&slot).unwrap();
    fs::rename(home.path().join("plugins/hostile/plugin.yaml"), slot.join("plugin.yaml")).unwrap();
    fs::rename(home.path().join("plugins/hostile/hostile.wasm"), slot.join("hostile.wasm")).unwrap();
    fs::write(slot.join("held"), "").unwrap();
    let listed = home.hermes(&["plugins", "list", "--json"]).run().success();
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert!(listed.iter().all(|plugin| plugin["name"] != "hostile"), "{listed:?}");
}
