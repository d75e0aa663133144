//! Plugins are installed, changed and removed from the command line with the real binary, which is killed in between.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hermes_tests::{Home, Reply, Server, renamed, staged_guest};
use serde_json::{Value, json};

const PLUGIN: i32 = 5;
const USAGE: i32 = 2;

/// A test guest as a source in the workspace, with a name and a version.
fn source(home: &Home, guest: &str, name: &str, version: &str, more: &str) -> PathBuf {
    let (manifest, component) = staged_guest(guest);
    let manifest: String = renamed(&manifest, name)
        .lines()
        .map(|line| if line.starts_with("version:") { format!("version: {version}\n") } else { format!("{line}\n") })
        .collect();
    home.write_workspace(&format!("{name}/plugin.yaml"), manifest + more);
    home.write_workspace(&format!("{name}/{name}.wasm"), component);
    home.workspace().join(name)
}

fn findings(home: &Home) -> Vec<(String, String)> {
    let output = home.hermes(&["plugins", "verify", "--json"]).run();
    let found: Vec<Value> = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("no JSON array\n{output}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found.iter().map(|found| (text(&found["name"]), text(&found["state"]))).collect()
}

fn listed(home: &Home, name: &str) -> Option<Value> {
    let output = home.hermes(&["plugins", "list", "--json"]).run().success();
    let plugins: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    plugins.into_iter().find(|plugin| plugin["name"] == name)
}

/// Everything that plugins leave in a home, except logs, conversations, compiled code and statistics.
fn kept(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let passing = |path: &Path| {
        path.starts_with("logs")
            || path.starts_with("locks")
            || path.starts_with("cache")
            || path == Path::new("code.key")
            || path == Path::new("plugins.key")
            || path.to_string_lossy().starts_with("state.db")
            || path.file_stem().is_some_and(|name| name == "record")
    };
    home.snapshot().into_iter().filter(|(path, _)| !passing(path)).collect()
}

#[test]
fn removing_a_plugin_restores_the_home() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    let model: Value = serde_json::from_str(&home.read("config.yaml")).unwrap();
    let plain = format!("# my model\nmodel: {}\n\nplugins:\n  # none yet\n  disabled: [audit]\n", model["model"]);
    home.config(&plain);
    home.hermes(&["-z", "hi"]).run().success();
    let before = kept(&home);

    let folder = source(&home, "clerk", "clerk", "0.1.0", "");
    let output = home.hermes(&["plugins", "install", "./clerk", "--yes"]).run().success();
    output.says(&["clerk", "0.1.0", "not signed", "database", "plugins.enabled", folder.to_str().unwrap()]);
    assert_eq!(findings(&home), [("clerk".to_owned(), "ok".to_owned())]);
    assert_eq!(listed(&home, "clerk").unwrap()["state"], "off");

    home.config(&plain.replace("  disabled", "  enabled: [clerk]\n  entries:\n    clerk: {}\n  disabled"));
    home.hermes(&["-z", "hi"]).run().success();
    let with: Vec<String> = server.last_turn().tool_names().iter().map(ToString::to_string).collect();
    home.hermes(&["plugins", "remove", "clerk", "--purge"]).run().success().says(&["clerk", "config.yaml"]);
    assert_eq!(home.read("config.yaml"), plain);
    assert_eq!(kept(&home), before);
    assert_eq!(findings(&home), []);

    home.hermes(&["-z", "hi"]).run().success();
    let without = server.last_turn().tool_names().len();
    assert!(with.len() > without, "the plugin was never used: {with:?}");
}

#[test]
fn an_update_asks_only_about_new_permissions_and_can_be_rolled_back() {
    let home = Home::new();
    source(&home, "keeper", "keeper", "1.0.0", "");
    home.hermes(&["plugins", "install", "./keeper"]).run().refused().exits(USAGE).says(&["--yes"]);
    assert_eq!(findings(&home), []);
    home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().success();

    source(&home, "keeper", "keeper", "1.1.0", "");
    let checked = home.hermes(&["plugins", "update", "--check", "--json"]).run().success();
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!((&checked[0]["version"]["to"], &checked[0]["changed"]), (&json!("1.1.0"), &json!(true)));
    assert_eq!(checked[0]["wider"]["permissions"], json!({}));
    home.hermes(&["plugins", "update"]).run().success().says(&["1.0.0 -> 1.1.0"]);

    source(&home, "keeper", "keeper", "2.0.0", "permissions: {history: true}\nlimits: {memory: 512MiB}\n");
    let output = home.hermes(&["plugins", "update", "keeper"]).run().refused().exits(USAGE);
    output.says(&["new permissions: read and search your conversations", "512MiB", "--yes"]);
    assert_eq!(listed(&home, "keeper").unwrap()["version"], "1.1.0");
    home.hermes(&["plugins", "update", "keeper", "--yes"]).run().success();
    let lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    assert_eq!(lock["plugins"]["keeper"]["granted"], json!({"history": true}));

    for version in ["1.1.0", "2.0.0", "1.1.0"] {
        home.hermes(&["plugins", "rollback", "keeper"]).run().success().says(&[version]);
        assert_eq!(listed(&home, "keeper").unwrap()["version"], version);
        assert_eq!(findings(&home), [("keeper".to_owned(), "ok".to_owned())]);
    }
    home.hermes(&["plugins", "update", "keeper", "--yes"]).run().success();
    home.hermes(&["plugins", "install", "./keeper"]).run().success().says(&["already"]);

    source(&home, "keeper", "keeper", "0.9.0", "");
    let checked = home.hermes(&["plugins", "update", "--check"]).run().success();
    assert!(checked.stdout.contains("2.0.0 -> 0.9.0 (an older version)"), "{checked}");
    home.hermes(&["plugins", "update", "--yes"]).run().success().says(&["an older version"]);
}

#[test]
fn a_copied_folder_runs_only_as_it_was_granted() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    home.put_guest("hostile", "plugins/tools/hostile", "hostile");
    home.set("plugins.entries.hostile", json!({"mode": "ok"}));
    home.set("plugins.enabled", json!(["hostile"]));
    let offered = || server.last_turn().tool_names().contains(&"poke");
    home.set("context.engine", json!("hostile"));
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["hostile", "plugins grant hostile"]);
    assert_eq!(listed(&home, "hostile").unwrap()["state"], "ungranted");
    assert_eq!(findings(&home), [("hostile".to_owned(), "ungranted".to_owned())]);

    home.hermes(&["plugins", "grant", "hostile"]).run().refused().exits(USAGE);
    home.hermes(&["plugins", "grant", "hostile", "sql"]).run().refused().says(&["sql", "history"]);
    home.grant("hostile");
    home.hermes(&["-z", "hi"]).run().success();
    assert!(offered());
    assert_eq!(findings(&home), [("hostile".to_owned(), "ok".to_owned())]);

    home.write("plugins/tools/hostile/more.txt", "added");
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["changed since you allowed it"]);
    home.hermes(&["plugins", "verify"]).run().exits(1);
    assert_eq!(findings(&home), [("hostile".to_owned(), "altered".to_owned())]);
    fs::remove_file(home.path().join("plugins/tools/hostile/more.txt")).unwrap();
    home.hermes(&["-z", "hi"]).run().success();

    home.hermes(&["plugins", "revoke", "hostile", "files"]).run().success();
    home.hermes(&["-z", "hi"]).run().success();
    home.hermes(&["plugins", "revoke", "hostile"]).run().success();
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["revoked", "plugins grant hostile"]);
    assert_eq!(findings(&home), [("hostile".to_owned(), "revoked".to_owned())]);
}

#[test]
fn a_broken_plugin_is_not_installed_and_says_why() {
    let home = Home::new();
    home.write_workspace("sneaky/plugin.yaml", "name: sneaky\n");
    home.write_workspace("sneaky/sneaky.wasm", hermes_zoo::importing_more("wasi:http/outgoing-handler@0.2.0"));
    source(&home, "keeper", "liar", "1.0.0", "provides: [tools]\n");
    source(&home, "keeper", "newer", "1.0.0", "");
    home.write_workspace("newer/plugin.yaml", "name: newer\napi: ^9\n");
    home.write_workspace("junk/plugin.yaml", "name: junk\n");
    home.write_workspace("junk/junk.wasm", "this is not WebAssembly");
    source(&home, "keeper", "files", "1.0.0", "");
    for (name, words) in [
        ("sneaky", &["wasi:http/outgoing-handler"][..]),
        ("liar", &["provides tools"]),
        ("newer", &["^9", "line 2"]),
        ("junk", &["not a WebAssembly component"]),
        ("files", &["name of a bundled plugin"]),
        ("nothing", &["does not exist"]),
    ] {
        let before = kept(&home);
        home.hermes(&["plugins", "install", &format!("./{name}"), "--yes"]).run().refused().says(words);
        let after: Vec<_> = kept(&home).into_iter().filter(|(path, _)| path != Path::new("plugins/.lock")).collect();
        assert_eq!(
            after.len(),
            before.len(),
            "{name} leaves something: {:?}",
            after.iter().map(|(path, _)| path).collect::<Vec<_>>()
        );
        assert_eq!(findings(&home), []);
    }
}

#[test]
fn a_lock_installs_the_same_plugins_on_another_machine() {
    let home = Home::new();
    let folder = source(&home, "keeper", "keeper", "1.0.0", "");
    home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().success();
    let other = Home::new();
    other.write("plugins.lock", home.read("plugins.lock"));
    assert_eq!(findings(&other), [("keeper".to_owned(), "missing".to_owned())]);
    other.hermes(&["plugins", "install", "--locked", "--yes"]).run().success();
    assert_eq!(findings(&other), [("keeper".to_owned(), "ok".to_owned())]);
    let unsealed = |home: &Home| {
        let mut lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
        assert!(lock["plugins"]["keeper"].as_object_mut().unwrap().remove("seal").is_some());
        lock
    };
    assert_eq!(unsealed(&other), unsealed(&home));

    let third = Home::new();
    third.write("plugins.lock", home.read("plugins.lock"));
    fs::write(folder.join("README.md"), "changed").unwrap();
    third.hermes(&["plugins", "install", "--locked", "--yes"]).run().refused().exits(PLUGIN).says(&["pins"]);
    assert_eq!(findings(&third), [("keeper".to_owned(), "missing".to_owned())]);
}

#[test]
fn data_that_a_removal_kept_can_be_deleted_later() {
    let home = Home::new();
    source(&home, "keeper", "keeper", "1.0.0", "");
    home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().success();
    home.write("data/keeper/documents/note", "kept");
    home.write("data/other/note", "of another plugin");
    home.hermes(&["plugins", "remove", "keeper", "--yes"]).run().success().says(&["kept its data in"]);
    home.hermes(&["plugins", "remove", "keeper", "--keep-data"]).run().success().says(&["not installed", "data"]);
    assert!(home.path().join("data/keeper/documents/note").is_file());
    for name in ["../data/other", "nobody", ".."] {
        home.hermes(&["plugins", "remove", name, "--purge"]).run().refused();
    }
    home.hermes(&["plugins", "remove", "keeper", "--purge"]).run().success().says(&["deleted the data"]);
    assert!(!home.path().join("data/keeper").exists() && home.path().join("data/other/note").is_file());
    home.hermes(&["plugins", "remove", "keeper", "--purge"]).run().refused();
}

#[test]
fn a_build_is_found_where_cargo_put_it_and_an_outdated_one_is_refused() {
    let home = Home::new();
    source(&home, "keeper", "keeper", "1.0.0", "");
    let project = home.workspace().join("keeper");
    let cargo = "[package]\nname = \"keeper\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    home.write_workspace("keeper/Cargo.toml", cargo);
    home.write_workspace("keeper/src/lib.rs", "");
    let built = home.workspace().join("elsewhere/wasm32-wasip2/release");
    fs::create_dir_all(&built).unwrap();
    fs::rename(project.join("keeper.wasm"), built.join("keeper.wasm")).unwrap();
    let of_cargo = |arguments: &[&str]| {
        home.hermes(arguments).env("CARGO_TARGET_DIR", home.workspace().join("elsewhere").to_str().unwrap()).run()
    };
    home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().refused().says(&["was not built", "cargo build"]);
    let built = fs::File::options().append(true).open(built.join("keeper.wasm")).unwrap();
    // A clock with coarse ticks can give files that were written one after the other the same time.
    built.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    for arguments in [&["plugins", "install", "./keeper", "--yes"][..], &["plugins", "test", "./keeper"]] {
        of_cargo(arguments).refused().says(&["is older than", "Cargo.toml", "cargo build"]);
    }
    built.set_modified(SystemTime::now()).unwrap();
    of_cargo(&["plugins", "test", "./keeper"]).success();
    of_cargo(&["plugins", "install", "./keeper", "--yes"]).success();
    assert_eq!(findings(&home), [("keeper".to_owned(), "ok".to_owned())]);
}

#[test]
fn a_killed_update_leaves_the_old_version_or_the_new_one() {
    let home = Home::new();
    source(&home, "keeper", "keeper", "1.0.0", "");
    home.hermes(&["plugins", "install", "./keeper", "--yes"]).run().success();
    let (mut old, mut new) = (0, 0);
    for round in 0..16u64 {
        let version = format!("2.{round}.0");
        source(&home, "keeper", "keeper", &version, "");
        let before = listed(&home, "keeper").unwrap()["version"].clone();
        let running = home.hermes(&["plugins", "update", "keeper", "--yes"]).spawn();
        std::thread::sleep(Duration::from_millis(round * round * 3));
        running.kill();
        let now = listed(&home, "keeper").unwrap()["version"].clone();
        match () {
            () if now == before => old += 1,
            () if now == json!(version) => new += 1,
            () => panic!("{before} was updated to {version} and is {now}"),
        }
        assert_eq!(findings(&home), [("keeper".to_owned(), "ok".to_owned())], "round {round}");
    }
    assert_eq!(old + new, 16);
    home.hermes(&["plugins", "remove", "keeper"]).run().success();
    // The interrupted operation may leave an empty folder.
    let left = home.snapshot().into_keys().find(|path| path.starts_with("plugins"));
    assert_eq!(left, None, "something is left of it");
}

#[test]
fn a_broken_manifest_is_reported_with_line_and_fix() {
    let home = Home::new();
    home.write("plugins/tools/mine/plugin.yaml", "name: mine\nversion: one\n");
    home.write("plugins/tools/mine/mine.wasm", "x");
    for command in [&["plugins", "grant", "mine", "--yes"][..], &["plugins", "info", "mine"]] {
        let output = home.hermes(command).run().refused().exits(PLUGIN);
        output.says(&["mine", "tools/mine/plugin.yaml", "line 2", "fix: write a version such as 1.2.0"]);
    }
    home.write("plugins/tools/mine/plugin.yaml", "name: mine\ncomponent: other.wasm\n");
    home.hermes(&["plugins", "grant", "mine", "--yes"]).run().refused().says(&["other.wasm", "fix: build it"]);
    home.hermes(&["plugins", "info", "nobody"]).run().refused().exits(1).says(&["there is no plugin `nobody`"]);
}

#[test]
fn the_source_setting_selects_the_bundled_or_the_installed_plugin() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    source(&home, "clerk", "files", "1.0.0", "");
    let refused = home.hermes(&["plugins", "install", "./files", "--yes"]).run().refused();
    refused.says(&["name of a bundled plugin", "plugins.settings.files.source: installed"]);
    let reads = || {
        let output = home.hermes(&["-z", "hi"]).run().success();
        (server.last_turn().tool_names().contains(&"read_file"), output)
    };
    assert!(reads().0);

    home.set("plugins.settings.files.source", json!("installed"));
    let (bundled_serves, output) = reads();
    assert!(!bundled_serves, "what the user did not ask for does not serve");
    output.says(&["plugins.settings.files.source", "install one"]);
    home.hermes(&["plugins", "install", "./files", "--yes"]).run().success();
    let (bundled_serves, output) = reads();
    assert!(!bundled_serves && server.last_turn().tool_names().contains(&"execute"), "{output}");
    assert_eq!(listed(&home, "files").unwrap()["version"], "1.0.0");

    home.set("plugins.settings.files.source", json!("bundled"));
    assert!(reads().0);
    home.set("plugins.settings", json!({}));
    home.hermes(&["plugins", "remove", "files"]).run().success();
    assert!(reads().0);
}
