//! A user's answers on a terminal: whether to install a plugin, and which ones to enable.

use std::path::Path;

use hermes_tests::{Home, Reply, Server, Terminal, staged_guest};
use serde_json::{Value, json};

const QUESTION: &str = "install the plugin and grant these permissions? [y/N] ";

fn installing(home: &Home) -> Terminal {
    let (manifest, component) = staged_guest("clerk");
    home.write_workspace("clerk/plugin.yaml", manifest);
    home.write_workspace("clerk/clerk.wasm", component);
    home.hermes(&["plugins", "install", "./clerk"]).at_terminal()
}

fn is_installed(home: &Home) -> bool {
    let lock = std::fs::read_to_string(home.path().join("plugins.lock")).unwrap_or_default();
    let is_locked = serde_json::from_str::<Value>(&lock).is_ok_and(|lock| lock["plugins"].get("clerk").is_some());
    assert_eq!(is_locked, home.path().join("plugins/clerk/clerk.wasm").exists());
    is_locked
}

#[test]
fn a_plugin_is_installed_after_consent_to_its_permissions() {
    for yes in ["y", "Yes"] {
        let home = Home::new();
        let mut terminal = installing(&home);
        terminal.wait_for(QUESTION, 1);
        let shown = terminal.shown();
        for part in [
            "clerk 0.1.0",
            "signed by nobody",
            "permissions requested by the plugin:",
            "keep a database of its own",
            "read and search your conversations",
        ] {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}");
        }
        assert!(!is_installed(&home));
        terminal.press(&format!("{yes}\r"));
        assert!(terminal.wait().success(), "{}", terminal.shown());
        assert!(is_installed(&home), "{}", terminal.shown());
    }
}

#[test]
fn any_other_key_denies() {
    for no in ["n\r", "\r", "sure\r", "\u{4}"] {
        let home = Home::new();
        let mut terminal = installing(&home);
        terminal.wait_for(QUESTION, 1);
        terminal.press(no);
        terminal.wait_for("nothing was changed", 1);
        assert_eq!(terminal.wait().code(), Some(1), "{no:?}: {}", terminal.shown());
        assert!(!is_installed(&home), "{no:?}");
    }
}

#[test]
fn a_yes_typed_before_the_question_does_not_count() {
    let home = Home::new();
    let mut terminal = installing(&home);
    // At this time the process has not looked at the plugin yet.
    terminal.press("y\ry\r");
    terminal.wait_for(QUESTION, 1);
    terminal.press("n\r");
    assert_eq!(terminal.wait().code(), Some(1), "{}", terminal.shown());
    assert!(!is_installed(&home), "{}", terminal.shown());
}

#[test]
fn enabling_a_plugin_names_what_it_lacks() {
    let home = Home::new();
    let (manifest, component) = staged_guest("clerk");
    let more = "requires_env: [CLERK_LEDGER]\nconfig: {type: object, required: [region]}\n";
    home.write_workspace("clerk/plugin.yaml", format!("{manifest}{more}"));
    home.write_workspace("clerk/clerk.wasm", component);
    home.hermes(&["plugins", "install", "./clerk", "--grant", "none"]).run().success();
    let lacks = home.hermes(&["plugins", "enable", "clerk"]).run().success();
    lacks.says(&["was not granted", "keep a database of its own", "plugins grant clerk"]);
    let lacks = home.hermes(&["plugins", "enable", "clerk"]).run().success();
    lacks.says(&["CLERK_LEDGER", "plugins.entries.clerk", "region"]);
    home.grant("clerk");
    home.config("plugins:\n  enabled: [clerk]\n  entries:\n    clerk: {region: north}\n");
    let complete = home.hermes(&["plugins", "enable", "clerk"]).env("CLERK_LEDGER", "a").run().success();
    assert!(!complete.stderr.contains("warning"), "{complete}");
}

#[test]
fn the_picker_changes_only_the_selection() {
    let home = Home::with(&Server::answering(|_, _| Reply::text("Nobody asks.")));
    home.config("# mine\nagent: {max_turns: 7}\n");
    let mut terminal = home.hermes(&["plugins"]).at_drawn_terminal(80, 30);
    let shows = |rows: &[String], text: &str| rows.iter().any(|row| row.contains(text));
    for (name, done) in
        [("lossless", "lossless (was compressor)"), ("audit", "`audit` is enabled"), ("files", "`files` is disabled")]
    {
        terminal.wait_until(|rows| shows(rows, "type to search"));
        // Words search the list, and the first thing to do with a plugin is its switch.
        terminal.press(&format!("{name}\r"));
        terminal.wait_until(|rows| shows(rows, "to the list"));
        terminal.press("\r");
        terminal.wait_until(|rows| shows(rows, done));
    }
    terminal.wait_until(|rows| shows(rows, "type to search"));
    terminal.press("\u{1b}");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    let listed = home.hermes(&["plugins", "list", "--json"]).run().success();
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    for (name, state) in [("lossless", "engine"), ("audit", "enabled"), ("files", "off"), ("local", "enabled")] {
        let plugin = listed.iter().find(|plugin| plugin["name"] == name).unwrap();
        assert_eq!(plugin["state"], json!(state), "{name}: {}", terminal.shown());
    }
    assert!(home.read("config.yaml").starts_with("# mine\nagent: {max_turns: 7}\n"), "{}", home.read("config.yaml"));
}

#[test]
fn escape_leaves_everything_as_it_is() {
    let home = Home::with(&Server::answering(|_, _| Reply::text("Nobody asks.")));
    home.config("# mine\n");
    let mut terminal = home.hermes(&["plugins"]).at_drawn_terminal(80, 30);
    terminal.wait_for("Which plugin?", 1);
    terminal.press("\u{1b}");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert_eq!(home.snapshot()[Path::new("config.yaml")], b"# mine\n");
}

/// Without `TERM`, Hermes cannot draw.
#[test]
fn a_plain_terminal_has_numbers_to_type() {
    let home = Home::with(&Server::answering(|_, _| Reply::text("Nobody asks.")));
    let mut terminal = home.hermes(&["memory", "setup", "--no-test"]).at_terminal();
    terminal.wait_for("Which memory provider?", 1);
    terminal.press("nothing has these words\r");
    terminal.wait_for("no row has", 1);
    terminal.press("chronicle\r");
    terminal.wait_for("Which memory provider?", 3);
    terminal.press("\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert!(home.read("config.yaml").contains("provider: chronicle"), "{}", home.read("config.yaml"));
}
