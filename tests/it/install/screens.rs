//! Consent, updates and clashes of tools, exactly as the user sees them. The snapshots read like a terminal from top to bottom.

use hermes_tests::{Home, Reply, Server, renamed, staged_guest};
use serde_json::json;

use crate::errors::Screens;

/// A plugin in the workspace: the component of a guest, with another name, version and permissions.
fn source(home: &Home, guest: &str, name: &str, version: &str, permissions: &str) {
    let (manifest, component) = staged_guest(guest);
    let own = renamed(&manifest, name);
    let kept = own.lines().take_while(|line| !line.starts_with("permissions:"));
    let lines: Vec<String> = kept
        .map(|line| if line.starts_with("version:") { format!("version: {version}") } else { line.to_owned() })
        .collect();
    home.write_workspace(&format!("{name}/plugin.yaml"), format!("{}\n{permissions}", lines.join("\n")));
    home.write_workspace(&format!("{name}/{name}.wasm"), component);
}

/// What a terminal shows up to a question, which is then denied.
fn asked(screens: &mut Screens, situation: &str, home: &Home, arguments: &[&str]) {
    let mut terminal = home.hermes(arguments).at_terminal();
    terminal.wait_for("? [y/N] ", 1);
    terminal.press("n\r");
    terminal.wait_for("nothing was", 1);
    assert_eq!(terminal.wait().code(), Some(1), "{}", terminal.shown());
    let shown = terminal.shown().replace('\r', "");
    let shown = shown.trim_end();
    screens.shown(situation, home, &format!("hermes {}", arguments.join(" ")), shown);
}

const EVERYTHING: &str = r#"permissions:
  history: true
  hooks: true
  http: [{url: "${config.base_url}/v1/", methods: [GET, POST]}]
  process: [sh]
  secrets: [{name: token, env: MEMORY_TOKEN, audience: "${config.base_url}", writable: true}]
config:
  type: object
  properties:
    base_url: {type: string}
"#;

#[test]
fn consent_to_hooks_exports_and_addresses() {
    let mut screens = Screens::default();
    let home = Home::new();
    home.config("{}\n");
    source(&home, "runner", "watcher", "1.0.0", EVERYTHING);
    let install = ["plugins", "install", "./watcher"];
    asked(&mut screens, "an installation while the configuration has no address", &home, &install);
    for (situation, address) in [
        ("an address on the internet", "https://memory.example.org/"),
        ("an address on this machine", "http://localhost:8000"),
        ("an address in the user's own network", "http://192.168.1.4:8000/api"),
        ("an unencrypted address on the internet", "http://memory.example.org"),
        ("something that is not an address", "nowhere"),
    ] {
        home.set("plugins.entries.watcher.base_url", json!(address));
        asked(&mut screens, situation, &home, &install);
    }
    source(&home, "runner", "quiet", "1.0.0", "");
    asked(&mut screens, "hooks without the permission", &home, &["plugins", "install", "./quiet"]);
    screens.error("consent without a terminal", &home, home.hermes(&install));
    home.set("plugins.entries.watcher.base_url", json!("http://localhost:8000"));
    screens.success("consent on the command line", &home, home.hermes(&["plugins", "install", "./watcher", "--yes"]));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn updates_that_ask_again() {
    let mut screens = Screens::default();
    let home = Home::new();
    home.config("{}\n");
    let update = ["plugins", "update", "watcher"];
    source(&home, "keeper", "watcher", "1.0.0", "");
    home.hermes(&["plugins", "install", "./watcher", "--yes"]).run().success();
    source(&home, "keeper", "watcher", "1.1.0", "");
    screens.success("an update that adds nothing", &home, home.hermes(&update));
    source(&home, "runner", "watcher", "2.0.0", "");
    asked(&mut screens, "an update that adds exports", &home, &update);
    source(&home, "runner", "watcher", "2.0.0", "permissions:\n  hooks: true\n");
    asked(&mut screens, "an update that adds exports and a permission", &home, &update);
    screens.error("the same without a terminal", &home, home.hermes(&update));
    screens.success("the same, only compared", &home, home.hermes(&["plugins", "update", "--check"]));
    home.hermes(&["plugins", "update", "watcher", "--yes"]).run().success();
    source(&home, "runner", "watcher", "2.1.0", "permissions:\n  hooks: true\n");
    screens.success("an update with the same exports", &home, home.hermes(&update));
    source(&home, "runner", "watcher", "3.0.0", EVERYTHING);
    home.set("plugins.entries.watcher.base_url", json!("http://localhost:8000"));
    home.hermes(&["plugins", "update", "watcher", "--yes"]).run().success();
    home.set("plugins.entries.watcher.base_url", json!("http://localhost:9000"));
    screens.success("a configuration that leads elsewhere", &home, home.hermes(&["plugins", "info", "watcher"]));
    asked(&mut screens, "a grant of the new address", &home, &["plugins", "grant", "watcher"]);
    insta::assert_snapshot!(screens.text());
}

#[test]
fn tools_with_the_same_name() {
    let mut screens = Screens::default();
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    for name in ["first", "second"] {
        home.install_guest("clerk", name, json!({}));
    }
    home.set("plugins.enabled", json!(["first", "second"]));
    screens.notice("two plugins with the same tools", &home, home.hermes(&["-z", "hi"]));
    let offered = || -> Vec<String> { server.last_turn().tool_names().iter().map(ToString::to_string).collect() };
    let withheld = offered();
    let tools: serde_json::Map<String, serde_json::Value> =
        staged_tools().into_iter().map(|tool| (tool, json!("second"))).collect();
    home.set("plugins.tools", json!(tools));
    let chosen = home.hermes(&["-z", "hi"]).run().success();
    assert!(!chosen.stderr.contains("same name") || chosen.stderr.contains("`second` offers"), "{chosen}");
    let more: Vec<String> = offered().into_iter().filter(|tool| !withheld.contains(tool)).collect();
    assert_eq!(more.len(), tools.len(), "{more:?}");
    insta::assert_snapshot!(screens.text());
}

/// The tools of the guest `clerk`.
fn staged_tools() -> Vec<String> {
    let home = Home::new();
    home.config("{}\n");
    home.install_guest("clerk", "clerk", json!({}));
    let info = home.hermes(&["plugins", "info", "clerk", "--json"]).run().success();
    let info: serde_json::Value = serde_json::from_str(&info.stdout).expect("JSON");
    let names = info["tools"].as_array().expect("a list");
    names.iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
}
