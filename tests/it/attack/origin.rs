//! Rights, configuration and data belong to a plugin's origin. Another author's plugin of the same name gets none of them,
//! whether it comes after a removal, as a replacement, with a lock from elsewhere, or while a session runs.

use std::fs;

use hermes_tests::{Call, Home, Reply, Server, renamed, staged_guest};
use serde_json::{Value, json};

use crate::errors::Screens;

const USAGE: i32 = 2;
const PLUGIN: i32 = 5;

/// A plugin named `notes` of an author, in a folder of the workspace.
fn notes_of(home: &Home, author: &str, guest: &str, more: &str) {
    let (manifest, component) = staged_guest(guest);
    let own = renamed(&manifest, "notes");
    let (kept, permissions) = own.split_once("permissions:").unwrap_or((&own, ""));
    let permissions =
        if permissions.is_empty() || !more.is_empty() { String::new() } else { format!("permissions:{permissions}") };
    home.write_workspace(&format!("{author}/plugin.yaml"), format!("{kept}{permissions}{more}"));
    home.write_workspace(&format!("{author}/notes.wasm"), component);
}

/// A model that runs a program through the tool of the plugin, and then repeats the result.
fn running_sh() -> Server {
    Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        if last["role"] == "tool" {
            return Reply::text(format!("Result: {}", last["content"].as_str().unwrap_or_default()));
        }
        let runs = json!({ "runs": [{ "program": "sh", "arguments": ["-c", "touch ran; echo it ran"] }] });
        Reply::calls([Call::new(&format!("call_{number}"), "run", &runs)])
    })
}

fn ran(home: &Home) -> bool {
    fs::remove_file(home.workspace().join("ran")).is_ok()
}

fn lock(home: &Home) -> Value {
    let lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    lock["plugins"]["notes"].clone()
}

fn settings(home: &Home) -> String {
    home.read("config.yaml")
}

/// A home with the plugin of Ann, which may run `sh` without a question and has stored a note.
fn home_of_ann(server: &Server) -> Home {
    let home = Home::with(server);
    notes_of(&home, "ann", "runner", "");
    notes_of(&home, "bob", "runner", "");
    home.write_workspace("bob/README.md", "another author");
    home.hermes(&["plugins", "install", "./ann", "--yes"]).run().success();
    trust(&home);
    home.write("data/notes/documents/note", "of Ann");
    home.hermes(&["-z", "Go."]).run().success();
    assert!(ran(&home), "the plugin of Ann runs programs");
    home
}

/// Writes a configuration as people write it, with the model of the test's server.
fn configure(home: &Home, text: &str) {
    let before = fs::read_to_string(home.path().join("config.yaml")).unwrap_or_default();
    let model = match serde_json::from_str::<Value>(&before) {
        Ok(config) => format!("model: {}", config["model"]),
        Err(_) => before.lines().find(|line| line.starts_with("model:")).unwrap_or_default().to_owned(),
    };
    home.config(&format!("{model}\n{text}"));
}

const PROVIDER: &str = "memory: {provider: notes}\n";

fn trust(home: &Home) {
    let lines = "\
plugins:
  entries:
    notes: {key: of Ann}
  tools:
    run: notes
approvals:
  allow:
    - notes/process:sh
    - files/write_file
  deny: [notes/wipe]
";
    configure(home, &format!("{PROVIDER}{lines}"));
}

#[test]
fn another_author_inherits_nothing_after_a_removal() {
    let server = running_sh();
    let home = home_of_ann(&server);
    let removed = home.hermes(&["plugins", "remove", "notes", "--yes"]).run().success();
    removed.says(&[
        "approvals.allow: notes/process:sh",
        "plugins.tools.run: notes",
        "plugins.entries.notes",
        "kept its data",
    ]);
    let left = settings(&home);
    for gone in ["process:sh", "of Ann", "tools:", "provider: notes"] {
        assert!(!left.contains(gone), "{gone} in {left}");
    }
    assert!(left.contains("files/write_file") && left.contains("notes/wipe"), "{left}");

    let installed = home.hermes(&["plugins", "install", "./bob", "--yes"]).run().success();
    installed.says(&["the data of", "ann", ".origins/notes", "plugins adopt notes"]);
    configure(&home, PROVIDER);
    home.hermes(&["-z", "Go."]).run().success().says(&["approvals.allow: [notes/process:sh]"]);
    assert!(!ran(&home), "the plugin of Bob ran a program that nobody allowed it");
    assert!(!home.path().join("data/notes/documents/note").exists(), "Bob has the data of Ann");

    // The data waits for its owner.
    home.write("data/notes/documents/note", "of Bob");
    home.hermes(&["plugins", "remove", "notes", "--yes"])
        .run()
        .success()
        .says(&["another plugin named `notes`", "ann"]);
    home.hermes(&["plugins", "install", "./ann", "--yes"]).run().success().says(&["earlier data"]);
    assert_eq!(home.read("data/notes/documents/note"), "of Ann");
    home.hermes(&["plugins", "remove", "notes", "--purge"]).run().success();
    home.hermes(&["plugins", "remove", "notes", "--purge"]).run().success().says(&["deleted the data"]);
    assert!(!home.path().join("data/.origins").exists() && !home.path().join("data/notes").exists());
}

#[test]
fn a_replacement_asks_for_everything_anew() {
    let server = running_sh();
    let home = home_of_ann(&server);
    let replace = ["plugins", "install", "./bob", "--replace"];
    home.hermes(&["plugins", "install", "./bob", "--yes"]).run().refused().exits(PLUGIN).says(&["ann", "--replace"]);
    for general in [&[][..], &["--yes"]] {
        let refused = home.hermes(&[&replace[..], general].concat()).run().refused().exits(USAGE);
        refused.says(&["run the program sh", "--grant all", "--grant none"]);
        assert!(lock(&home)["source"].as_str().unwrap().ends_with("/ann"));
    }
    let done = home.hermes(&[&replace[..], &["--grant", "none"]].concat()).run().success();
    done.says(&["taken out of config.yaml", "approvals.allow: notes/process:sh", "memory.provider: notes"]);
    let entry = lock(&home);
    assert!(entry["source"].as_str().unwrap().ends_with("/bob"));
    assert_eq!((&entry["granted"], entry.get("previous")), (&json!({}), None));
    assert!(!settings(&home).contains("process:sh") && !home.path().join("data/notes/documents").exists());
    home.hermes(&["plugins", "rollback", "notes"]).run().refused().says(&["no earlier version"]);

    configure(&home, PROVIDER);
    home.hermes(&["-z", "Go."]).run().success();
    assert!(!ran(&home));
    home.hermes(&["plugins", "install", "./ann", "--replace", "--grant", "all"])
        .run()
        .success()
        .says(&["earlier data"]);
    assert_eq!(home.read("data/notes/documents/note"), "of Ann");
}

#[test]
fn lines_and_data_that_nobody_knows_need_a_word_of_their_own() {
    let server = running_sh();
    // As an older version of Hermes left them.
    let leftovers = || {
        let home = Home::with(&server);
        notes_of(&home, "bob", "runner", "");
        trust(&home);
        home.write("data/notes/documents/note", "of somebody");
        home
    };
    let home = leftovers();
    let installed = home.hermes(&["plugins", "install", "./bob", "--yes"]).run().success();
    installed.says(&["perhaps written for another plugin", "taken out of config.yaml", "memory.provider: notes"]);
    home.hermes(&["-z", "Go."]).run().success();
    assert!(!ran(&home), "`--yes` agreed to an approval that it does not name");
    assert!(settings(&home).contains("files/write_file") && !settings(&home).contains("process:sh"));
    assert!(!home.path().join("data/notes/documents/note").exists());
    home.hermes(&["plugins", "adopt", "notes"]).run().refused().exits(USAGE);
    home.hermes(&["plugins", "adopt", "notes", "--yes"]).run().success();
    assert_eq!(home.read("data/notes/documents/note"), "of somebody");

    let home = leftovers();
    home.hermes(&["plugins", "install", "./bob", "--yes", "--keep-config"]).run().success();
    home.hermes(&["-z", "Go."]).run().success();
    assert!(ran(&home));

    // The same for a folder that was copied by hand.
    let home = leftovers();
    home.put_guest("runner", "plugins/notes", "notes");
    home.hermes(&["plugins", "grant", "notes", "--yes"]).run().success().says(&["taken out of config.yaml"]);
    home.hermes(&["-z", "Go."]).run().success();
    assert!(!ran(&home) && !home.path().join("data/notes/documents/note").exists());
}

#[test]
fn a_moved_plugin_keeps_everything_after_its_adoption() {
    let server = running_sh();
    let home = home_of_ann(&server);
    fs::rename(home.workspace().join("ann"), home.workspace().join("ann-moved")).unwrap();
    home.hermes(&["plugins", "update", "notes"]).run().refused();
    let adopt = ["plugins", "adopt", "notes", "./ann-moved"];
    home.hermes(&adopt).run().refused().exits(USAGE).says(&["until now", "from now on", "ann-moved", "--yes"]);
    home.hermes(&["plugins", "adopt", "notes", "./nowhere", "--yes"]).run().refused();
    let (manifest, _) = staged_guest("runner");
    home.write_workspace("ann-moved/plugin.yaml", renamed(&manifest, "notes").replace("0.1.0", "0.2.0"));
    home.hermes(&[&adopt[..], &["--yes"]].concat()).run().success().says(&["plugins update notes"]);
    home.hermes(&["plugins", "update", "notes"]).run().success().says(&["0.1.0 -> 0.2.0"]);
    assert_eq!(home.read("data/notes/documents/note"), "of Ann");
    home.hermes(&["-z", "Go."]).run().success();
    assert!(ran(&home), "the approval still applies");
}

#[test]
fn the_data_of_an_older_home_belongs_to_its_plugin() {
    let server = running_sh();
    let home = home_of_ann(&server);
    // An older version did not record the origin.
    fs::remove_file(home.path().join("data/notes/origin.json")).unwrap();
    home.hermes(&["-z", "Go."]).run().success();
    assert!(home.read("data/notes/origin.json").contains("/ann"));
    // A lock from elsewhere names another source, for a plugin that is not there.
    let foreign = home.read("plugins.lock").replace("/ann\"", "/bob\"");
    home.write("plugins.lock", &foreign);
    fs::remove_dir_all(home.path().join("plugins/notes")).unwrap();
    fs::remove_file(home.workspace().join("bob/README.md")).unwrap();
    let installed = home.hermes(&["plugins", "install", "--locked", "--yes"]).run().success();
    installed.says(&["taken out of config.yaml", "the data of"]);
    assert!(!home.path().join("data/notes/documents/note").exists());
    assert!(!settings(&home).contains("process:sh"));
}

#[test]
fn a_session_does_not_follow_a_name_to_another_author() {
    let server = running_sh();
    let home = home_of_ann(&server);
    let mut running = home.hermes(&["-v"]).talking().spawn();
    running.say("Go.");
    server.wait_for_finished(4);
    assert!(ran(&home));
    home.hermes(&["plugins", "install", "./bob", "--replace", "--grant", "all"]).run().success();
    running.wait_for_stderr("change=\"revoked\"");
    running.say("Go on.");
    running.wait_for_stderr("another source");
    let output = running.wait();
    assert!(!ran(&home), "the approval for Ann's plugin let Bob's run a program\n{output}");
}

#[test]
fn a_lock_from_elsewhere_grants_nothing_that_was_not_shown() {
    let home = Home::new();
    notes_of(&home, "bob", "runner", "permissions:\n  history: true\n");
    home.hermes(&["plugins", "install", "./bob", "--yes"]).run().success();
    let mut shared: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    let entry = &mut shared["plugins"]["notes"];
    // More than the plugin requests, so that a later version finds it; and no exports, as before hooks were a permission.
    entry["granted"] = json!({"history": true, "hooks": true, "process": ["sh"]});
    entry["limits"] = json!({"memory": "1GiB"});
    entry.as_object_mut().unwrap().remove("exports");
    let other = Home::new();
    other.write("plugins.lock", shared.to_string());
    other.hermes(&["plugins", "install", "--locked", "--yes"]).run().success();
    let entry = lock(&other);
    assert_eq!((&entry["granted"], entry.get("limits")), (&json!({"history": true}), None));
    assert!(entry["exports"].as_array().unwrap().contains(&json!("hooks")), "{entry}");
    let info = other.hermes(&["plugins", "info", "notes"]).run().success();
    assert!(!info.stdout.contains("hooks run"), "{info}");
}

#[test]
fn native_code_of_a_lock_needs_its_own_flag() {
    let home = Home::new();
    let staged = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-natives/hostile-native");
    for file in fs::read_dir(&staged).unwrap_or_else(|error| panic!("{error}; run `cargo xtask test`")).flatten() {
        let name = file.file_name().into_string().unwrap();
        home.write_workspace(&format!("hostile-native/{name}"), fs::read(file.path()).unwrap());
    }
    home.hermes(&["plugins", "install", "./hostile-native", "--native", "--yes"]).run().success();
    let other = Home::new();
    other.write("plugins.lock", home.read("plugins.lock"));
    let refused = other.hermes(&["plugins", "install", "--locked", "--yes"]).run().refused().exits(PLUGIN);
    refused.says(&["native library", "everything that you can do", "--native"]);
    assert!(!other.path().join("plugins/hostile-native").exists());
    let refused = other.hermes(&["plugins", "install", "--locked", "--native"]).run().refused();
    refused.says(&["--yes"]);
    other.hermes(&["plugins", "install", "--locked", "--native", "--yes"]).run().success();
    assert!(other.path().join("plugins/hostile-native").exists());
}

/// The guest `runner` with another name for its tool `background`, of the same length.
fn with_write_file(mut component: Vec<u8>) -> Vec<u8> {
    let (from, to) = (b"runbackgroundwipe", b"runwrite_filewipe");
    let at = component.windows(from.len()).position(|window| window == from).expect("the names of its tools");
    component[at..at + to.len()].copy_from_slice(to);
    component
}

#[test]
fn no_engine_or_memory_provider_takes_a_tool_over() {
    let server = Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        match last["role"] == "tool" {
            true => Reply::text(last["content"].as_str().unwrap_or_default()),
            false => {
                let arguments = json!({ "path": "b.txt", "content": "x", "action": "add", "target": "memory" });
                let tool = last["content"].as_str().unwrap_or_default().to_owned();
                Reply::calls([Call::new(&format!("call_{number}"), &tool, &arguments)])
            }
        }
    });
    let home = Home::with(&server);
    home.install_guest("planner", "planner", json!({}));
    home.set("context.engine", json!("planner"));
    home.set("approvals.deny", json!(["files/write_file", "files/read_file"]));
    // The engine answers a call of its tool with the tool's name.
    for tool in ["write_file", "read_file", "search_files", "memory"] {
        home.set("plugins.entries.planner", json!({ "tool": tool }));
        let output = home.hermes(&["-z", tool]).run().success();
        output.says(&[&format!("its tool `{tool}` is left out"), "offers a tool with the same name"]);
        let result = server.last_turn().trailing_results()[0].1.to_owned();
        assert_ne!(result, tool, "the engine answered");
        if tool == "write_file" || tool == "read_file" {
            assert!(result.contains(&format!("`approvals.deny` has `files/{tool}`")), "{result}");
        }
    }
    assert!(!home.workspace().join("b.txt").exists());

    let (manifest, component) = staged_guest("runner");
    home.write_workspace("provider/plugin.yaml", renamed(&manifest, "provider"));
    home.write_workspace("provider/provider.wasm", with_write_file(component));
    home.hermes(&["plugins", "install", "./provider", "--yes"]).run().success();
    home.set("context.engine", json!("compressor"));
    home.set("memory.provider", json!("provider"));
    home.hermes(&["-z", "write_file"]).run().success().says(&["its tool `write_file` is left out"]);
    assert!(server.last_turn().trailing_results()[0].1.contains("`approvals.deny` has `files/write_file`"));
    assert!(!home.workspace().join("b.txt").exists());
}

#[test]
fn an_update_that_adds_hooks_is_not_covered_by_an_earlier_consent() {
    let home = Home::new();
    notes_of(&home, "ann", "clerk", "permissions:\n  http: [{url: \"http://127.0.0.1:9/\", methods: [POST]}]\n");
    home.hermes(&["plugins", "install", "./ann", "--yes"]).run().success();
    notes_of(
        &home,
        "ann",
        "runner",
        "permissions:\n  hooks: true\n  http: [{url: \"http://127.0.0.1:9/\", methods: [POST]}]\n",
    );
    let refused = home.hermes(&["plugins", "update", "notes"]).run().refused().exits(USAGE);
    refused.says(&["hooks: it watches the agent", "see every tool call", "--yes"]);
    assert_eq!(lock(&home)["granted"].get("hooks"), None);
}

/// What a terminal shows up to a question, which is then denied.
fn asked(screens: &mut Screens, situation: &str, home: &Home, arguments: &[&str]) {
    let mut terminal = home.hermes(arguments).at_terminal();
    terminal.wait_for("[y/N] ", 1);
    terminal.press("n\r");
    terminal.wait_for("nothing was", 1);
    assert_eq!(terminal.wait().code(), Some(1), "{}", terminal.shown());
    let shown = terminal.shown().replace('\r', "");
    screens.shown(situation, home, &format!("hermes {}", arguments.join(" ")), shown.trim_end());
}

#[test]
fn what_the_user_sees_of_updates_and_of_another_author() {
    let mut screens = Screens::default();
    let home = Home::new();
    home.config("{}\n");
    let update = ["plugins", "update", "notes"];
    let http = |host: &str| format!("permissions:\n  http: [{{url: \"https://{host}/v1/\", methods: [GET]}}]\n");
    notes_of(&home, "ann", "clerk", &http("api.example.org"));
    home.hermes(&["plugins", "install", "./ann", "--yes"]).run().success();
    let more = |host: &str, more: &str| format!("{}{more}", http(host));
    let two = "permissions:\n  http:\n    - {url: \"https://api.example.org/v1/\", methods: [GET]}\n    - {url: \"https://other.example/\", methods: [POST]}\n";
    notes_of(&home, "ann", "clerk", two);
    asked(&mut screens, "an update that adds a host", &home, &update);
    notes_of(&home, "ann", "runner", &more("api.example.org", "  hooks: true\n"));
    asked(&mut screens, "an update that adds hooks and an export", &home, &update);

    home.hermes(&["plugins", "remove", "notes", "--purge"]).run().success();
    notes_of(&home, "ann", "runner", "");
    home.hermes(&["plugins", "install", "./ann", "--yes"]).run().success();
    trust(&home);
    home.write("data/notes/documents/note", "of Ann");
    notes_of(&home, "bob", "runner", "");
    // The first question is about lines of config.yaml, the second one about the plugin.
    let replace = ["plugins", "install", "./bob", "--replace"];
    let mut terminal = home.hermes(&replace).at_terminal();
    terminal.wait_for("[y/N] ", 1);
    terminal.press("n\r");
    terminal.wait_for("[y/N] ", 2);
    terminal.press("n\r");
    assert_eq!(terminal.wait().code(), Some(1), "{}", terminal.shown());
    let shown = terminal.shown().replace('\r', "");
    let line = format!("hermes {}", replace.join(" "));
    screens.shown("a replacement by another author's plugin", &home, &line, shown.trim_end());
    screens.error(
        "the same without a terminal",
        &home,
        home.hermes(&["plugins", "install", "./bob", "--replace", "--yes"]),
    );
    screens.success("a removal", &home, home.hermes(&["plugins", "remove", "notes", "--yes"]));
    screens.success(
        "then another author's plugin of the same name",
        &home,
        home.hermes(&["plugins", "install", "./bob", "--yes"]),
    );
    asked(&mut screens, "the adoption of the data", &home, &["plugins", "adopt", "notes"]);
    screens.success("the removal of both", &home, home.hermes(&["plugins", "remove", "notes", "--yes"]));

    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    notes_of(&home, "ann", "runner", "");
    home.hermes(&["plugins", "install", "./ann", "--yes"]).run().success();
    home.set("memory.provider", json!("notes"));
    home.write_workspace("ann/notes.wasm", with_write_file(staged_guest("runner").1));
    screens.success("an update that adds a tool with the name of another one", &home, home.hermes(&update));
    screens.notice("a session with it", &home, home.hermes(&["-z", "hi"]));
    insta::assert_snapshot!(screens.text());
}
