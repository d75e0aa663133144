//! Plugins that were built for another version of the contract, and draft interfaces, exactly as the user sees them.

use hermes_tests::Home;
use hermes_zoo::Shell;

use crate::errors::Screens;

/// A plugin in the workspace.
fn source(home: &Home, name: &str, more: &str, component: Vec<u8>) {
    home.write_workspace(&format!("{name}/plugin.yaml"), format!("name: {name}\n{more}"));
    home.write_workspace(&format!("{name}/{name}.wasm"), component);
}

/// A plugin that was built against the draft in `tests/draft-1.2`.
fn draft() -> Shell {
    Shell::with_tool("nop").of_draft()
}

#[test]
fn plugins_for_another_version_of_the_contract() {
    let mut screens = Screens::default();
    let home = Home::new();
    home.config("{}\n");
    let install = |name: &str| home.hermes(&["plugins", "install", &format!("./{name}"), "--yes"]);
    let tool = || Shell::with_tool("nop");
    source(&home, "later", "version: 1.0.0\n", tool().version("1.2.0-rc.1").build());
    screens.error("a plugin for a later candidate", &home, install("later"));
    source(&home, "strict", "version: 1.0.0\napi: ^1.2.0-rc.1\n", tool().version("1.2.0-rc.1").build());
    screens.error("one that accepts only later versions", &home, install("strict"));
    source(&home, "willing", "version: 1.0.0\napi: \">=1.0.0, <2\"\n", tool().version("1.2.0-rc.1").build());
    screens.success("one that accepts this version too", &home, install("willing"));
    source(&home, "released", "version: 1.0.0\n", tool().version("1.2.0").build());
    screens.success("a plugin for a later release", &home, install("released"));
    source(&home, "candidate", "version: 1.0.0\napi: ^1.0.0-rc.1\n", tool().version("1.0.0-rc.1").build());
    screens.error("one for a candidate of this version", &home, install("candidate"));
    source(&home, "older", "version: 1.0.0\n", tool().version("1.0.0-alpha.1").build());
    screens.error("a plugin for an earlier pre-release", &home, install("older"));
    source(&home, "old", "version: 1.0.0\napi: ^0.1\n", tool().version("0.1.0").build());
    screens.error("one that accepts only earlier versions", &home, install("old"));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn draft_interfaces_need_a_flag() {
    const API: &str = "api: ^1.0.0\n";
    let mut screens = Screens::default();
    let home = Home::new();
    home.config("{}\n");
    let plugins = |arguments: &[&str]| home.hermes(&[&["plugins"], arguments].concat());
    source(&home, "early", &format!("version: 1.0.0\n{API}"), draft().build());
    screens.error("an installation", &home, plugins(&["install", "./early", "--yes"]));
    screens.error("a test", &home, plugins(&["test", "./early"]));
    let developer = plugins(&["dev", "./early", "--build", "true"]).spawn();
    developer.wait_for_stderr("uses draft interfaces of the contract");
    developer.interrupt();
    developer.wait().success();
    screens.success("an installation with the flag", &home, plugins(&["install", "./early", "--yes", "--allow-draft"]));
    let info = plugins(&["info", "early"]).run();
    assert!(info.stdout.lines().any(|line| line.starts_with("drafts") && line.contains("1.2.0-draft")), "{info}");
    let tested = plugins(&["test", "./early", "--allow-draft"]).run();
    assert!(tested.stdout.contains("✓ loads, and exports"), "{tested}");

    source(&home, "early", &format!("version: 1.1.0\n{API}"), draft().build());
    screens.success("an update with the same drafts", &home, plugins(&["update", "early"]));
    let call = "(call $notes/show (i32.const 0) (i32.const 0) (i32.const 4096))";
    let more = Shell::with_tool(call).of_draft().import("notes", "show").build();
    source(&home, "early", &format!("version: 1.2.0\n{API}"), more);
    screens.error("an update with another draft", &home, plugins(&["update", "early", "--yes"]));
    screens.success("an update with the flag", &home, plugins(&["update", "early", "--allow-draft"]));
    plugins(&["revoke", "early"]).run().success();
    screens.error("a grant after a revocation", &home, plugins(&["grant", "early", "--yes"]));
    plugins(&["grant", "early", "--yes", "--allow-draft"]).run().success();
    insta::assert_snapshot!(screens.text());
}
