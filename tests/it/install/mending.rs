//! What a user meets who changes an installed plugin by hand, copies half of one, or configures one wrongly: everything is kept,
//! what cannot work is refused with the way out, and the advice works.

use std::fs;
use std::path::Path;

use hermes_tests::{Home, Reply, Server, renamed, staged_guest};
use serde_json::{Value, json};

const GENERAL: i32 = 1;
const USAGE: i32 = 2;
const CONFIGURATION: i32 = 3;
const PLUGIN: i32 = 5;

/// The guest `runner` as a source in the workspace.
fn source(home: &Home, name: &str, version: &str) -> Vec<u8> {
    let (manifest, component) = staged_guest("runner");
    let manifest = renamed(&manifest, name).replace("version: 0.1.0", &format!("version: {version}"));
    home.write_workspace(&format!("{name}/plugin.yaml"), manifest);
    home.write_workspace(&format!("{name}/{name}.wasm"), &component);
    component
}

fn lock(home: &Home, name: &str) -> Value {
    let lock: Value = serde_json::from_str(&home.read("plugins.lock")).unwrap();
    lock["plugins"][name].clone()
}

fn digest(entry: &Value) -> String {
    entry["digest"].as_str().unwrap().to_owned()
}

fn add_a_comment(home: &Home, name: &str, comment: &str) {
    let path = format!("plugins/{name}/plugin.yaml");
    home.write(&path, format!("{}# {comment}\n", home.read(&path)));
}

#[test]
fn a_component_that_is_cut_short_or_none_is_refused_everywhere() {
    let server = Server::answering(|_, _| Reply::text("Here I am."));
    let home = Home::with(&server);
    let whole = source(&home, "mine", "0.1.0");
    home.set("plugins.enabled", json!(["mine"]));
    let cuts = [0, 1, 8, 100, whole.len() / 2, whole.len() - 1].map(|length| whole[..length].to_vec());
    let others = [
        b"garbage\n".to_vec(),
        b"\0asm\x01\0\0\0".to_vec(),
        fs::read(hermes_tests::binary()).unwrap()[..4_096].to_vec(),
    ];
    for bytes in cuts.iter().chain(&others) {
        home.write_workspace("mine/mine.wasm", bytes);
        home.hermes(&["plugins", "install", "./mine", "--yes"])
            .run()
            .refused()
            .exits(PLUGIN)
            .says(&["nothing was changed"]);
        assert!(!home.path().join("plugins.lock").exists());
    }
    home.write_workspace("mine/mine.wasm", &whole);
    home.hermes(&["plugins", "install", "./mine", "--yes"]).run().success();
    let before = lock(&home, "mine");
    for bytes in cuts.iter().chain(&others) {
        home.write("plugins/mine/mine.wasm", bytes);
        let refused = home.hermes(&["plugins", "grant", "mine", "--yes"]).run().refused().exits(PLUGIN);
        refused.says(&["nothing was changed", "hermes plugins update mine"]);
        assert_eq!(lock(&home, "mine"), before, "a refused grant changes nothing");
        // A session works without it, and says so.
        home.hermes(&["-z", "hi"]).run().success().says(&["`mine`", "hermes plugins update mine"]);
    }
    // The way out works.
    let updated = home.hermes(&["plugins", "update", "mine", "--yes"]).run().success();
    updated.says(&["same version", "changed by hand"]);
    assert_eq!(fs::read(home.path().join("plugins/mine/mine.wasm")).unwrap(), whole);
    home.hermes(&["plugins", "verify"]).run().success();
}

#[test]
fn a_granted_change_by_hand_keeps_source_data_rollback_and_configuration() {
    let home = Home::new();
    source(&home, "mine", "0.1.0");
    home.hermes(&["plugins", "install", "./mine", "--yes"]).run().success();
    source(&home, "mine", "0.2.0");
    home.hermes(&["plugins", "update", "mine", "--yes"]).run().success();
    home.hermes(&["plugins", "enable", "mine"]).run().success();
    home.write("data/mine/documents/note", "kept");
    let installed = lock(&home, "mine");

    add_a_comment(&home, "mine", "by hand");
    let verified = home.hermes(&["plugins", "verify"]).run().exits(GENERAL);
    let (update, grant) = ("hermes plugins update mine", "hermes plugins grant mine");
    let at = |text: &str| verified.stdout.find(text).unwrap_or_else(|| panic!("no `{text}`\n{verified}"));
    assert!(at(update) < at(grant), "the way back comes first\n{verified}");
    // The disk is compared, and not the lock.
    let check = home.hermes(&["plugins", "update", "mine", "--check"]).run().success();
    let line = check.stdout.trim_end();
    assert!(
        line.contains("changed by hand") && !line.contains(&format!("{0} -> {0}", &digest(&installed)[..12])),
        "{line}"
    );
    let json = home.hermes(&["plugins", "update", "mine", "--check", "--json"]).run().success();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json[0]["edited"], &json[0]["changed"]), (&json!(true), &json!(true)));
    assert_ne!(json[0]["digest"]["from"], json[0]["digest"]["to"]);

    // Before the question, the user learns what the grant gives to the changed files.
    let asked = home.hermes(&["plugins", "grant", "mine"]).run().refused().exits(USAGE);
    asked.says(&["changed by hand since they came from this source", update, "its data", "signed by nobody"]);
    home.hermes(&["plugins", "grant", "mine", "--yes"]).run().success();
    let edited = lock(&home, "mine");
    assert_eq!((&edited["source"], &edited["edited"]), (&installed["source"], &json!(true)));
    assert_eq!(edited["previous"], installed["previous"]);
    assert_ne!(edited["digest"], installed["digest"]);
    assert_eq!(home.read("data/mine/documents/note"), "kept");
    assert!(home.read("config.yaml").contains("mine"), "it stays enabled");
    let info = home.hermes(&["plugins", "info", "mine"]).run().success();
    assert!(info.stdout.contains("changed by hand since"), "{info}");

    // A second change, and a permission more, keep it too.
    add_a_comment(&home, "mine", "again");
    home.hermes(&["plugins", "grant", "mine", "--yes"]).run().success();
    home.hermes(&["plugins", "revoke", "mine"]).run().success();
    home.hermes(&["plugins", "grant", "mine", "--yes"]).run().success();
    assert_eq!(lock(&home, "mine")["edited"], json!(true));
    home.hermes(&["plugins", "rollback", "mine"]).run().success().says(&["to 0.1.0", "returns to 0.2.0"]);
    assert_eq!((lock(&home, "mine").get("edited"), &lock(&home, "mine")["version"]), (None, &json!("0.1.0")));
    home.hermes(&["plugins", "rollback", "mine"]).run().success();
    assert!(home.read("plugins/mine/plugin.yaml").contains("# again"));
    assert_eq!(lock(&home, "mine")["edited"], json!(true));

    // The source wins at the next update, and the change is what a rollback restores.
    let updated = home.hermes(&["plugins", "update", "mine", "--yes"]).run().success();
    updated.says(&["changed by hand", "update replaces them", "(digest"]);
    assert_eq!((lock(&home, "mine").get("edited"), &lock(&home, "mine")["digest"]), (None, &installed["digest"]));
    let back = home.hermes(&["plugins", "rollback", "mine"]).run().success();
    assert_eq!(back.stderr.matches("(digest").count(), 2, "two builds of one version\n{back}");
    assert_eq!(home.read("data/mine/documents/note"), "kept");
}

#[test]
fn files_that_were_changed_back_are_those_of_the_source_again() {
    let home = Home::new();
    source(&home, "mine", "0.1.0");
    home.hermes(&["plugins", "install", "./mine", "--yes"]).run().success();
    let (genuine, installed) = (home.read("plugins/mine/plugin.yaml"), lock(&home, "mine"));
    add_a_comment(&home, "mine", "by hand");
    home.hermes(&["plugins", "grant", "mine", "--yes"]).run().success();
    home.write("plugins/mine/plugin.yaml", genuine);
    home.hermes(&["plugins", "update", "mine", "--yes"]).run().success().says(&["have already"]);
    assert_eq!((lock(&home, "mine").get("edited"), &lock(&home, "mine")["digest"]), (None, &installed["digest"]));
    home.hermes(&["plugins", "update", "mine", "--yes"]).run().success().says(&["up to date"]);
}

#[test]
fn every_advice_about_a_missing_folder_works() {
    let home = Home::new();
    // From a source, changed by hand, and put there by hand.
    for name in ["taken", "changed"] {
        source(&home, name, "0.1.0");
        home.hermes(&["plugins", "install", &format!("./{name}"), "--yes"]).run().success();
    }
    add_a_comment(&home, "changed", "by hand");
    home.hermes(&["plugins", "grant", "changed", "--yes"]).run().success();
    home.put_guest("runner", "plugins/own", "own");
    home.grant("own");
    let aside = home.workspace().join("own-aside");
    fs::rename(home.path().join("plugins/own"), &aside).unwrap();
    for name in ["taken", "changed"] {
        fs::remove_dir_all(home.path().join("plugins").join(name)).unwrap();
    }
    let verified = home.hermes(&["plugins", "verify"]).run().exits(GENERAL);
    let shown = format!("{}{}", verified.stdout, verified.stderr);
    for fix in ["hermes plugins install --locked", "hermes plugins update changed", "put the folder back"] {
        assert_eq!(shown.matches(fix).count(), 1, "{fix}: {verified}");
    }
    home.hermes(&["plugins", "update", "changed", "--yes"]).run().success();
    fs::rename(&aside, home.path().join("plugins/own")).unwrap();
    home.hermes(&["plugins", "install", "--locked", "--yes"]).run().success();
    home.hermes(&["plugins", "verify"]).run().success();
    fs::remove_dir_all(home.path().join("plugins/own")).unwrap();
    home.hermes(&["plugins", "install", "--locked", "--yes"]).run().refused().says(&["copied", "by hand"]);
    home.hermes(&["plugins", "remove", "own", "--yes"]).run().success();
    home.hermes(&["plugins", "verify"]).run().success();
}

#[test]
fn the_question_names_the_tools_and_those_that_are_dangerous() {
    let home = Home::new();
    source(&home, "mine", "0.1.0");
    let asked = home.hermes(&["plugins", "install", "./mine"]).run().refused().exits(USAGE);
    asked.says(&["the model can call:", "2 of them dangerous", "wipe (DANGEROUS)", "look (reads)"]);
    assert!(!home.path().join("plugins.lock").exists(), "nothing was installed");
    home.hermes(&["plugins", "install", "./mine", "--yes"]).run().success().says(&["wipe (DANGEROUS)"]);
    source(&home, "mine", "0.2.0");
    home.hermes(&["plugins", "update", "mine", "--yes"]).run().success().says(&["wipe (DANGEROUS)"]);
}

#[test]
fn an_engine_or_memory_that_refuses_its_configuration_ends_the_session() {
    let server = Server::answering(|_, _| Reply::text("Here I am."));
    let refused = |yaml: &[(&str, Value)], says: &[&str]| {
        let home = Home::with(&server);
        yaml.iter().for_each(|(key, value)| home.set(key, value.clone()));
        let output = home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(says);
        assert!(output.stderr.contains("plugin.configuration"), "{output}");
        assert_eq!(output.stdout, "", "{output}");
    };
    let engine = ("context.engine", json!("lossless"));
    refused(&[engine.clone(), ("plugins.entries.lossless.notes", json!("maybe"))], &["plugins.entries.lossless.notes"]);
    refused(
        &[engine.clone(), ("plugins.entries.lossless.threshold", json!(7))],
        &["plugins.entries.lossless.threshold"],
    );
    refused(&[("plugins.entries.compressor.threshold", json!("maybe"))], &["plugins.entries.compressor.threshold"]);
    refused(&[("plugins.entries.builtin.memory_char_limit", json!(0))], &["plugins.entries.builtin"]);
    let chronicle = ("memory.provider", json!("chronicle"));
    refused(&[chronicle, ("plugins.entries.chronicle.results", json!(99))], &["plugins.entries.chronicle.results"]);

    // An installed engine without a schema refuses in its own code.
    let home = Home::with(&server);
    home.install_guest("hostile", "hostile", json!({ "mode": "no-such-mode" }));
    home.set("context.engine", json!("hostile"));
    let output = home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN);
    output.says(&["there is no mode `no-such-mode`", "plugin.configuration", "plugins.entries.hostile"]);
    let failed = home.hermes(&["doctor", "--no-request"]).run().exits(GENERAL);
    assert!(failed.stdout.contains("plugins.entries.hostile"), "{failed}");
}

#[test]
fn every_value_of_the_configuration_page_starts_every_bundled_engine() {
    let server = Server::answering(|_, _| Reply::text("Here I am."));
    for engine in ["lossless", "compressor"] {
        let home = Home::with(&server);
        home.set("context.engine", json!(engine));
        for (key, value) in [
            ("compression.threshold", "0.15"),
            ("compression.threshold", "0.99"),
            ("compression.threshold", "1"),
            ("compression.target_ratio", "0.01"),
            ("compression.protect_last_n", "5000"),
        ] {
            home.hermes(&["config", "set", key, value]).run().success();
            let output = home.hermes(&["-z", "hi"]).run().success();
            // A value that the engine bounds is one note.
            assert!(!output.stderr.contains("does not start"), "{engine}, {key}: {value}\n{output}");
        }
    }
}

#[test]
fn config_set_checks_each_key_of_every_plugin() {
    let home = Home::new();
    home.set("context.engine", json!("lossless"));
    let before = home.read("config.yaml");
    for (key, value) in [
        ("plugins.entries.lossless.notes", "maybe"),
        ("plugins.entries.lossless.threshold", "7"),
        ("plugins.entries.lossless.treshold", "0.5"),
        ("plugins.entries.compressor.threshold", "maybe"),
        ("plugins.entries.builtin.memory_char_limit", "-1"),
        ("plugins.entries.honcho.nosuch", "7"),
        ("plugins.entries.honcho.mode", "7"),
        ("plugins.entries.todo.anything", "1"),
        ("plugins.entries.files.anything", "1"),
    ] {
        let refused = home.hermes(&["config", "set", key, value]).run().refused().exits(CONFIGURATION);
        refused.says(&[key, "was not changed"]);
    }
    assert_eq!(home.read("config.yaml"), before);
    home.hermes(&["config", "set", "plugins.entries.lossless.notes", "false"]).run().success();

    // A value of another section that an installed plugin gets, and does not take.
    let (manifest, component) = staged_guest("hostile");
    let schema = "config: {type: object, properties: {threshold: {type: number, minimum: 0.3}}}\n";
    home.write("plugins/hostile/plugin.yaml", renamed(&manifest, "hostile") + schema);
    home.write("plugins/hostile/hostile.wasm", component);
    home.grant("hostile");
    home.hermes(&["config", "set", "context.engine", "hostile"]).run().success();
    let refused = home.hermes(&["config", "set", "compression.threshold", "0.1"]).run().refused();
    refused.exits(CONFIGURATION).says(&["compression.threshold", "`hostile` gets this value"]);
    home.hermes(&["config", "set", "compression.threshold", "0.4"]).run().success();
    home.hermes(&["config", "set", "compression.threshold", "0.4"])
        .run()
        .success()
        .says(&["as before", "nothing was changed"]);
    // By hand, the error names the key where the value is.
    let changed = home.read("config.yaml").replace("0.4", "0.1");
    home.write("config.yaml", changed);
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["correct", "compression.threshold"]);
}

#[test]
fn a_selected_plugin_that_is_disabled_is_said_once_and_used() {
    let server = Server::answering(|_, _| Reply::text("Here I am."));
    for (key, name) in
        [("context.engine", "lossless"), ("context.engine", "compressor"), ("memory.provider", "chronicle")]
    {
        let home = Home::with(&server);
        home.set(key, json!(name));
        home.set("plugins.disabled", json!([name]));
        let output = home.hermes(&["-z", "hi"]).run().success();
        let line = format!("plugins.disabled names `{name}`");
        assert_eq!(output.stderr.matches(&line).count(), 1, "{output}");
        assert!(output.stderr.contains(key), "{output}");
        let doctor = home.hermes(&["plugins", "doctor"]).run().exits(GENERAL);
        assert!(doctor.stdout.contains(&line), "{doctor}");
    }
    let home = Home::with(&server);
    home.set("plugins.disabled", json!(["builtin", "todo"]));
    assert!(!home.hermes(&["-z", "hi"]).run().success().stderr.contains("plugins.disabled"));
}

#[test]
fn small_words_of_commands_are_true() {
    let server = Server::answering(|_, _| Reply::text("Here I am."));
    let home = Home::with(&server);
    let unknown = home.hermes(&["plugins", "disable", "nosuch"]).run().refused();
    unknown.says(&["nosuch"]);
    for name in ["HERMES_HOME", "HOME"] {
        let refused = home.hermes(&["config", "set", name, "/x"]).run().refused().exits(USAGE);
        refused.says(&["can have no effect there", "in the environment"]);
    }
    assert!(!home.path().join(".env").exists());
    home.install_guest("hostile", "hostile", json!({}));
    home.set("context.engine", json!("hostile"));
    home.hermes(&["plugins", "revoke", "hostile", "history"]).run().success().says(&["it also reads the conversation"]);
    // A signature without a picture behind it.
    home.write_workspace("bad.png", b"\x89PNG\r\n\x1a\n");
    home.hermes(&["-z", "hi", "--image", "bad.png"]).run().refused().exits(USAGE);
    // A server that was not added cannot be tested.
    let failed = home.hermes(&["mcp", "add", "trio", "--", "/bin/false"]).run().refused();
    assert!(!failed.stderr.contains("mcp test trio"), "{failed}");
    failed.says(&["`trio` was not added"]);
    assert!(Path::new("/bin/false").exists());
}
