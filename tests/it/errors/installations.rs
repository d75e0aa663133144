use std::fs;

use hermes_tests::{Home, dead_endpoint, renamed, staged_guest};

use super::Screens;

/// A test guest as a source in the workspace.
fn source(home: &Home, name: &str, more: &str) {
    let (manifest, component) = staged_guest("keeper");
    home.write_workspace(&format!("{name}/plugin.yaml"), renamed(&manifest, name) + more);
    home.write_workspace(&format!("{name}/{name}.wasm"), component);
}

#[test]
fn installations_that_are_refused() {
    let mut screens = Screens::default();
    let home = Home::new();
    for name in ["keeper", "files", "signed", "other"] {
        source(&home, name, "");
    }
    source(&home, "liar", "provides: [tools]\n");
    home.write_workspace("signed/signed.wasm.minisig", "untrusted comment: none\n");
    home.write_workspace("empty/notes.txt", "no plugin");
    home.write_workspace("newer/plugin.yaml", "name: newer\napi: ^9\n");
    home.write_workspace("newer/newer.wasm", "");
    home.write_workspace("junk/plugin.yaml", "name: junk\nversion: 1.0.0\n");
    home.write_workspace("junk/junk.wasm", "this is not WebAssembly");
    home.write_workspace("words.tar.gz", "this is not an archive");
    let address = format!("{}/keeper.tar.gz", dead_endpoint());
    for (situation, arguments) in [
        ("a source that is none", &["install", "ftp://keeper"][..]),
        ("a folder that does not exist", &["install", "./nothing", "--yes"]),
        ("a folder without a plugin", &["install", "./empty", "--yes"]),
        ("an address without encryption", &["install", &address, "--yes"]),
        ("a server that does not answer", &["install", &address, "--yes", "--insecure"]),
        ("an archive that is none", &["install", "./words.tar.gz", "--yes"]),
        ("an installation without consent", &["install", "./keeper"]),
        ("a plugin for another contract", &["install", "./newer", "--yes"]),
        ("a component that is not WebAssembly", &["install", "./junk", "--yes"]),
        ("a plugin that is not what it claims", &["install", "./liar", "--yes"]),
        ("the name of a bundled plugin", &["install", "./files", "--yes"]),
        ("a signature without a key", &["install", "./signed", "--yes"]),
        ("a key without a signature", &["install", "./keeper", "--yes", "--key", "RWQ"]),
        ("native code that the plugin does not have", &["install", "./keeper", "--yes", "--native"]),
    ] {
        let arguments = [&["plugins"], arguments].concat();
        screens.error(situation, &home, home.hermes(&arguments));
    }
    fs::create_dir_all(home.path().join("plugins/other")).unwrap();
    let install = |source: &str| home.hermes(&["plugins", "install", source, "--yes"]);
    screens.error("a folder of this name", &home, install("./other"));
    install("./keeper").run().success();
    fs::rename(home.workspace().join("keeper"), home.workspace().join("moved")).unwrap();
    screens.error("a plugin that is installed from elsewhere", &home, install("./moved"));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn commands_on_plugins_that_are_refused() {
    let mut screens = Screens::default();
    let home = Home::new();
    home.put_guest("keeper", "plugins/handmade", "handmade");
    home.write_workspace("mine/notes.txt", "mine");
    home.write("approvals.json", "damaged");
    for (situation, arguments) in [
        ("the details of a plugin that does not exist", &["info", "nobody"][..]),
        ("a plugin that does not exist", &["enable", "nobody"]),
        ("the log of something that is not a plugin", &["logs", "../secrets"]),
        ("the engine that serves without a choice", &["disable", "compressor"]),
        ("a removal of a plugin that is not installed", &["remove", "nobody"]),
        ("a removal of a bundled plugin", &["remove", "files"]),
        ("an update of a plugin that is not installed", &["update", "nobody"]),
        ("a return to a version that was not kept", &["rollback", "nobody"]),
        ("a permission that the plugin does not request", &["grant", "handmade", "http", "--yes"]),
        ("a grant without consent", &["grant", "handmade"]),
        ("approvals that cannot be read", &["approvals"]),
        ("a project in a folder that exists", &["new", "mine", "--kind", "tools"]),
        ("a project with a bad name", &["new", "My Plugin", "--kind", "tools"]),
        ("a test of nothing", &["test", "./nothing"]),
        ("a test of a folder without a plugin", &["test", "./mine"]),
        ("the development of a folder without a project", &["dev", "./mine"]),
        ("the development of nothing", &["dev", "./nothing"]),
    ] {
        let arguments = [&["plugins"], arguments].concat();
        screens.error(situation, &home, home.hermes(&arguments));
    }
    insta::assert_snapshot!(screens.text());
}
