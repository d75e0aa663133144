//! A `plugins.lock` from elsewhere, over the files of plugins that are installed: it grants nothing, and opens no library,
//! until the user agreed to what it says.

use std::fs;

use hermes_tests::{Call, Home, Reply, Server, renamed, staged_guest};
use serde_json::{Value, json};

const USAGE: i32 = 2;
const PLUGIN: i32 = 5;

/// A model that runs a program through the tool of the plugin.
fn running_sh() -> Server {
    Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        if last["role"] == "tool" {
            return Reply::text("Done.");
        }
        let runs = json!({ "runs": [{ "program": "sh", "arguments": ["-c", "touch ran"] }] });
        Reply::calls([Call::new(&format!("call_{number}"), "run", &runs)])
    })
}

/// Runs a turn. Returns whether the plugin ran its program.
fn runs(home: &Home, server: &Server) -> bool {
    home.use_endpoint(&server.url());
    home.hermes(&["-z", "Go."]).run();
    fs::remove_file(home.workspace().join("ran")).is_ok()
}

/// A home where the guest `runner` is installed from a folder with this grant.
fn home(server: &Server, grant: &str, folder: &str) -> Home {
    let home = Home::with(server);
    let (manifest, component) = staged_guest("runner");
    fs::create_dir_all(folder).unwrap();
    fs::write(format!("{folder}/plugin.yaml"), renamed(&manifest, "mine")).unwrap();
    fs::write(format!("{folder}/mine.wasm"), component).unwrap();
    home.hermes(&["plugins", "install", folder, "--grant", grant]).run().success();
    home.set("memory.provider", json!("mine"));
    home.set("approvals.allow", json!(["mine/process:sh"]));
    home
}

fn entry(home: &Home) -> Value {
    let lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    lock["plugins"]["mine"].clone()
}

fn state(home: &Home) -> String {
    let output = home.hermes(&["plugins", "verify", "--json"]).run();
    let found: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("no JSON\n{output}"));
    let mine = found.as_array().unwrap().iter().find(|found| found["name"] == "mine").unwrap();
    mine["state"].as_str().unwrap().to_owned()
}

fn granted(home: &Home) -> Value {
    let info = home.hermes(&["plugins", "info", "mine", "--json"]).run().success();
    let info: Value = serde_json::from_str(&info.stdout).unwrap();
    info["permissions"]["granted"].clone()
}

#[test]
fn a_foreign_lock_over_installed_files_grants_nothing_until_the_user_agreed() {
    let server = running_sh();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mine").to_str().unwrap().to_owned();
    let (mine, other) = (home(&server, "none", &folder), home(&server, "all", &folder));
    assert!(!runs(&mine, &server) && runs(&other, &server));

    // A lock of a colleague, the same with a seal of nobody, and one without any.
    let foreign = other.read("plugins.lock");
    let with_seal = |seal: Option<&str>| {
        let mut lock: Value = serde_json::from_str(&foreign).unwrap();
        let entry = lock["plugins"]["mine"].as_object_mut().unwrap();
        assert!(entry.remove("seal").is_some());
        entry.extend(seal.map(|seal| ("seal".to_owned(), json!(seal))));
        lock.to_string()
    };
    let own_seal = entry(&mine)["seal"].as_str().unwrap().to_owned();
    for lock in [foreign.clone(), with_seal(Some(&"0".repeat(64))), with_seal(Some(&own_seal)), with_seal(None)] {
        mine.write("plugins.lock", &lock);
        assert!(!runs(&mine, &server), "{lock}");
        assert_eq!((state(&mine), granted(&mine)), ("foreign".to_owned(), json!({})), "{lock}");
        for command in ["verify", "list", "doctor"] {
            let shown = mine.hermes(&["plugins", command]).run();
            assert!(shown.stdout.contains("comes from elsewhere or was changed"), "{shown}");
            assert!(shown.stdout.contains("plugins install --locked"), "{shown}");
        }
        for command in ["update", "rollback"] {
            let refused = mine.hermes(&["plugins", command, "mine"]).run().refused().exits(PLUGIN);
            refused.says(&["comes from elsewhere", "install --locked"]);
        }
        let refused = mine.hermes(&["plugins", "install", "--locked"]).run().refused();
        refused.says(&["run the program sh", "--yes"]);
        assert_eq!(mine.read("plugins.lock"), lock, "nothing was changed");
        assert!(!runs(&mine, &server));
    }

    // Other commands do not give it a seal either.
    mine.put_guest("keeper", "plugins/keeper", "keeper");
    mine.grant("keeper");
    assert!(!runs(&mine, &server));
    // An installation from the source asks as for the first time.
    let refused = mine.hermes(&["plugins", "install", &folder]).run().refused().exits(USAGE);
    refused.says(&["run the program sh", "--yes"]);

    let agreed = ["plugins", "install", "--locked", "--yes", "--keep-config"];
    mine.hermes(&agreed).run().success().says(&["run the program sh"]);
    assert_eq!(state(&mine), "ok");
    assert_eq!(granted(&mine), granted(&other));
    assert!(runs(&mine, &server));
}

#[test]
fn a_grant_over_a_foreign_entry_takes_nothing_from_it() {
    let server = running_sh();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mine").to_str().unwrap().to_owned();
    let mine = home(&server, "none", &folder);
    let mut lock: Value = serde_json::from_str(&mine.read("plugins.lock")).unwrap();
    let foreign = &mut lock["plugins"]["mine"];
    foreign["granted"] = json!({"process": ["sh"], "hooks": true});
    foreign["source"] = json!("/stranger");
    let mut previous = foreign.clone();
    previous["version"] = json!("0.0.1");
    foreign["previous"] = previous;
    mine.write("plugins.lock", lock.to_string());
    mine.hermes(&["plugins", "grant", "mine", "hooks", "--yes"]).run().success();
    let now = entry(&mine);
    assert_eq!((&now["granted"], now.get("previous")), (&json!({"hooks": true}), None), "{now}");
    assert!(!now["source"].as_str().unwrap().contains("stranger"), "{now}");
    assert_eq!(granted(&mine), json!({"hooks": true}));
}

#[test]
fn a_lock_of_an_earlier_version_works_and_is_sealed_at_the_next_start() {
    let server = running_sh();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mine").to_str().unwrap().to_owned();
    let home = home(&server, "all", &folder);
    fs::remove_file(home.path().join("plugins.key")).unwrap();
    let mut lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    lock["plugins"]["mine"].as_object_mut().unwrap().remove("seal");
    home.write("plugins.lock", lock.to_string());
    assert!(runs(&home, &server));
    assert!(entry(&home)["seal"].is_string() && home.path().join("plugins.key").exists());
    assert_eq!(state(&home), "ok");
    // Now the same lock could come from anywhere.
    home.write("plugins.lock", lock.to_string());
    assert!(!runs(&home, &server));
}

#[test]
fn a_copied_home_works_with_its_key() {
    let server = running_sh();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mine").to_str().unwrap().to_owned();
    let home = home(&server, "all", &folder);
    for with_key in [true, false] {
        let copy = Home::new();
        let all = home.snapshot().into_iter().filter(|(path, _)| with_key || !path.ends_with("plugins.key"));
        all.for_each(|(path, content)| copy.write(path.to_str().unwrap(), content));
        assert_eq!(runs(&copy, &server), with_key);
    }
}

#[test]
fn a_foreign_lock_opens_no_library() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("hostile-native");
    let staged = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-natives/hostile-native");
    fs::create_dir_all(&folder).unwrap();
    for file in fs::read_dir(&staged).unwrap_or_else(|error| panic!("{error}; run `cargo xtask test`")).flatten() {
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let install = ["plugins", "install", folder.to_str().unwrap(), "--native", "--yes"];
    let (mine, other) = (Home::with(&server), Home::with(&server));
    mine.hermes(&install).run().success();
    other.hermes(&install).run().success();
    mine.set("context.engine", json!("hostile-native"));
    mine.hermes(&["plugins", "revoke", "hostile-native"]).run().success();
    mine.write("plugins.lock", other.read("plugins.lock"));
    mine.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["comes from elsewhere"]);
    mine.hermes(&["plugins", "install", "--locked", "--yes"]).run().refused().exits(PLUGIN).says(&["--native"]);
    mine.hermes(&["plugins", "grant", "hostile-native", "--yes"]).run().refused().says(&["--native"]);
    mine.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN);
    mine.hermes(&["plugins", "install", "--locked", "--native", "--yes"]).run().success();
    mine.hermes(&["-z", "hi"]).run().success();
}
