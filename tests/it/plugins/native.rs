//! Native libraries: granted by digest and by a separate flag, called like components, and isolated when they fail. The libraries are
//! the compressor and the hostile guest, built from the same sources as the components.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

const PLUGIN: i32 = 5;

/// A staged library with its manifest, in a folder of the workspace.
fn source(home: &Home, name: &str) -> PathBuf {
    let staged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-natives").join(name);
    let entries =
        fs::read_dir(&staged).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask test`", staged.display()));
    for entry in entries.flatten() {
        let file = entry.file_name().into_string().unwrap();
        home.write_workspace(&format!("{name}/{file}"), fs::read(entry.path()).unwrap());
    }
    home.workspace().join(name)
}

fn library(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    files.find(|path| path.to_string_lossy().ends_with(std::env::consts::DLL_SUFFIX)).unwrap()
}

fn lock(home: &Home, name: &str) -> Value {
    let lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    lock["plugins"][name].clone()
}

/// A turn with these tool calls, one per reply. Returns the result of each.
fn results(home: &Home, calls: &[Call]) -> Vec<String> {
    let replies = calls.iter().map(|call| Reply::calls([call.clone()])).chain([Reply::text("Done.")]);
    let server = Server::scripted(replies.collect::<Vec<_>>());
    home.use_endpoint(&server.url());
    let output = home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(output.stdout, "Done.\n");
    let turns = server.turns();
    turns.iter().for_each(|request| assert_valid_request(&request.body));
    turns.iter().skip(1).flat_map(|request| request.trailing_results()).map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn native_code_runs_only_with_explicit_consent() {
    let server = Server::scripted([Reply::text("Here I am.")]);
    let home = Home::with(&server);
    source(&home, "hostile-native");
    let refused = home.hermes(&["plugins", "install", "./hostile-native", "--yes"]).run().refused().exits(PLUGIN);
    refused.says(&["native library", "everything that you can do", "--native"]);
    assert!(!home.path().join("plugins/hostile-native").exists());

    let output = home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().success();
    output.says(&["outside the sandbox", "context-engine, tools"]);
    assert_eq!(lock(&home, "hostile-native")["native"], json!(true));
    home.set("context.engine", json!("hostile-native"));
    assert_eq!(results(&home, &[Call::new("call_1", "echo", &json!({"text": "by a library"}))]), ["by a library"]);
    let info = home.hermes(&["plugins", "info", "hostile-native"]).run().success();
    assert!(info.stdout.contains("outside the sandbox"), "{info}");

    // After the revocation neither this nor another library under the same name may run.
    home.hermes(&["plugins", "revoke", "hostile-native", "native"]).run().success();
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["native library", "grant hostile-native --native"]);
    home.hermes(&["plugins", "grant", "hostile-native", "--yes"]).run().refused().says(&["--native"]);
    home.hermes(&["plugins", "grant", "hostile-native", "--native", "--yes"]).run().success();
    home.use_endpoint(&server.url());
    home.hermes(&["-z", "hi"]).run().success();
    let installed = library(&home.path().join("plugins/hostile-native"));
    let mut bytes = fs::read(&installed).unwrap();
    bytes.push(0);
    fs::write(&installed, bytes).unwrap();
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["changed since you allowed it"]);
}

#[test]
fn an_updated_library_needs_consent_again() {
    let home = Home::new();
    let folder = source(&home, "hostile-native");
    home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().success();
    let manifest = fs::read_to_string(folder.join("plugin.yaml")).unwrap().replace("version: 0.1.0", "version: 0.2.0");
    fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    home.hermes(&["plugins", "update", "hostile-native", "--yes"]).run().refused().says(&["--native"]);
    assert_eq!(lock(&home, "hostile-native")["version"], json!("0.1.0"));
    home.hermes(&["plugins", "update", "hostile-native", "--native"]).run().refused().says(&["--yes"]);
    home.hermes(&["plugins", "update", "hostile-native", "--native", "--yes"]).run().success();
    assert_eq!(lock(&home, "hostile-native")["version"], json!("0.2.0"));
    home.hermes(&["plugins", "rollback", "hostile-native"]).run().success();
    let back = lock(&home, "hostile-native");
    assert_eq!((&back["version"], &back["native"]), (&json!("0.1.0"), &json!(true)), "as it was granted then");
}

#[test]
fn a_panic_or_endless_call_harms_neither_the_turn_nor_the_next_call() {
    let home = Home::new();
    source(&home, "hostile-native");
    home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().success();
    home.set("context.engine", json!("hostile-native"));
    home.set("plugins.settings.hostile-native.limits", json!({"tool_time": "500ms"}));
    let echo = |id: &str| Call::new(id, "echo", &json!({"text": "still here"}));
    let calls = [
        Call::new("call_1", "crash", &json!({})),
        echo("call_2"),
        Call::new("call_3", "spin", &json!({})),
        echo("call_4"),
        Call::new("call_5", "poke", &json!({"mode": "error"})),
        Call::new("call_6", "peek", &json!({"path": "../config.yaml"})),
        echo("call_7"),
    ];
    let results = results(&home, &calls);
    assert!(results[0].contains("`crash` of the plugin `hostile-native` crashed"), "{results:?}");
    assert!(home.read("logs/hostile-native.jsonl").contains("it crashed: out of cheese"));
    assert!(results[2].contains("`tool_time`"), "{results:?}");
    assert!(results[4].contains("on purpose"), "{results:?}");
    assert!(!results[5].contains("context"), "an import gives a library no more than a component: {results:?}");
    for at in [1, 3, 6] {
        assert_eq!(results[at], "still here", "{results:?}");
    }
}

#[test]
fn an_incompatible_library_is_not_installed() {
    let home = Home::new();
    let folder = source(&home, "hostile-native");
    fs::write(library(&folder), "this is no library").unwrap();
    let output = home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().refused();
    output.exits(PLUGIN).says(&["it is not a shared library"]);
    let manifest = fs::read_to_string(folder.join("plugin.yaml")).unwrap();
    let target = manifest.lines().last().unwrap().trim().split(':').next().unwrap().to_owned();
    fs::write(folder.join("plugin.yaml"), manifest.replace(&target, "sparc64-unknown-netbsd")).unwrap();
    let output = home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().refused();
    output.says(&["sparc64-unknown-netbsd", "none for this machine"]);
    assert!(!home.path().join("plugins/hostile-native").exists());
}

/// Nothing of a library that could not be opened is left in the folder of code.
fn has_no_copies(home: &Home) {
    let entries = fs::read_dir(home.path().join("cache/code")).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("native-")), "{names:?}");
}

#[test]
fn a_library_that_is_cut_short_or_damaged_ends_no_command_and_no_session() {
    let server = Server::answering(|_, _| Reply::text("Here I am."));
    let home = Home::with(&server);
    let folder = source(&home, "hostile-native");
    let whole = fs::read(library(&folder)).unwrap();
    let cuts = [0, 3, 64, 1_000, whole.len() / 3, whole.len() / 2, whole.len() - 4_096, whole.len() - 1];
    let cut = cuts.map(|length| whole[..length].to_vec());
    // A copy of the right length that stopped in the middle, and one with a piece of nothing.
    let holes = [(whole.len() / 2)..whole.len(), 4_096..8_192].map(|hole| {
        let mut bytes = whole.clone();
        bytes[hole].fill(0);
        bytes
    });
    for bytes in cut.iter().chain(&holes) {
        fs::write(library(&folder), bytes).unwrap();
        let refused = home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().refused();
        refused.exits(PLUGIN).says(&["`hostile-native` 0.1.0 does not work", "its native library cannot be used"]);
        assert!(!home.path().join("plugins/hostile-native").exists());
        let tested = home.hermes(&["plugins", "test", "hostile-native", "--native"]).run();
        assert!(matches!(tested.status.code(), Some(1..=9)), "{tested}");
    }
    has_no_copies(&home);

    fs::write(library(&folder), &whole).unwrap();
    home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().success();
    home.set("context.engine", json!("hostile-native"));
    let before = lock(&home, "hostile-native");
    let installed = library(&home.path().join("plugins/hostile-native"));
    let mut chat = home.hermes(&["-v"]).talking().spawn();
    chat.say("one");
    server.wait_for_finished(1);
    for (number, bytes) in cut.iter().take(5).chain(&holes[..1]).enumerate() {
        fs::write(&installed, bytes).unwrap();
        let grant = home.hermes(&["plugins", "grant", "hostile-native", "--native", "--yes"]).run().refused();
        grant.exits(PLUGIN).says(&["does not work", "hermes plugins update hostile-native"]);
        assert_eq!(lock(&home, "hostile-native"), before, "a refused grant changes nothing");
        let refused = home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN);
        refused.says(&["hermes plugins update hostile-native"]);
        let doctor = home.hermes(&["plugins", "doctor"]).run().exits(1);
        assert!(doctor.stdout.contains("hostile-native"), "{doctor}");
        chat.say("again");
        server.wait_for_finished(2 + number);
    }
    home.hermes(&["plugins", "update", "hostile-native", "--native", "--yes"]).run().success();
    home.hermes(&["-z", "hi"]).run().success();
    chat.say("the last one");
    chat.wait().success();
    has_no_copies(&home);
}

#[test]
fn a_library_that_was_granted_before_and_cannot_be_opened_ends_no_session() {
    let home = Home::new();
    source(&home, "hostile-native");
    home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().success();
    home.set("context.engine", json!("hostile-native"));
    // A version of Hermes that did not open it before its grant pinned these bytes. Its lock has no seals.
    let installed = library(&home.path().join("plugins/hostile-native"));
    let whole = fs::read(&installed).unwrap();
    fs::write(&installed, &whole[..whole.len() / 2]).unwrap();
    let digest = digest_of_installed(&home);
    let mut written: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    let entry = written["plugins"]["hostile-native"].as_object_mut().unwrap();
    entry.insert("digest".to_owned(), json!(digest));
    entry.remove("seal");
    home.write("plugins.lock", written.to_string());
    fs::remove_file(home.path().join("plugins.key")).unwrap();
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["cut short or damaged"]);
    let doctor = home.hermes(&["plugins", "doctor"]).run().exits(1);
    assert!(doctor.stdout.contains("cut short or damaged"), "{doctor}");
    home.hermes(&["plugins", "list"]).run().success();
    has_no_copies(&home);
}

/// The digest of the installed files: `update --check` compares them with the source.
fn digest_of_installed(home: &Home) -> String {
    let check = home.hermes(&["plugins", "update", "hostile-native", "--check", "--json"]).run().success();
    let check: Value = serde_json::from_str(&check.stdout).unwrap();
    check[0]["digest"]["from"].as_str().unwrap().to_owned()
}

#[test]
fn an_engine_that_is_a_library_folds_a_session() {
    let home = Home::new();
    source(&home, "compressor-native");
    home.hermes(&["plugins", "install", "./compressor-native", "--native", "--yes"]).run().success();
    home.set("context.engine", json!("compressor-native"));
    let report = home.hermes(&["lab", "verify", "compressor-native", "--conversations", "20"]).run().success();
    assert!(report.stdout.contains("nothing was lost"), "{report}");
}
