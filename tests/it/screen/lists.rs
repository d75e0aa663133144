//! Lists of a chat to choose from: plugins that are switched, the models of all providers, and completion on a plain terminal.

use std::net::TcpListener;
use std::time::Duration;

use hermes_tests::{Home, KEY, Reply, Server, Terminal, dead_endpoint};
use serde_json::{Value, json};

const READY: &str = "— scripted-model";

fn begin(home: &Home, columns: u16) -> Terminal {
    let terminal = home.hermes(&[]).at_drawn_terminal(columns, 40);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

fn leave(mut terminal: Terminal) -> Vec<String> {
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.rows()
}

fn state_of(home: &Home, name: &str) -> String {
    let listed = home.hermes(&["plugins", "list", "--json"]).run().success();
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let plugin = listed.into_iter().find(|plugin| plugin["name"] == name).unwrap();
    plugin["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_plugin_is_looked_at_and_switched_in_a_list() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    for columns in [40, 60, 100] {
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns);
        terminal.press("/plugins\r");
        let rows = terminal.wait_until(|rows| shows(rows, "Which plugin?") && shows(rows, "type to search"));
        assert!(shows(&rows, "compressor  on · engine · "), "{rows:#?}");
        assert!(columns < 60 || shows(&rows, "audit       off · hooks · 0.1.0 · "), "{rows:#?}");
        terminal.press("audit");
        terminal.wait_until(|rows| shows(rows, "1 of "));
        terminal.press("\r");
        let rows = terminal.wait_until(|rows| shows(rows, "  enable") && shows(rows, "  back"));
        for part in ["disabled · hooks · ", "from: bundled", "permission: "] {
            assert!(shows(&rows, part), "{part} in {rows:#?}");
        }
        terminal.press("\r");
        terminal.wait_until(|rows| shows(rows, "`audit` is enabled") && shows(rows, "Which plugin?"));
        // The list begins at the plugin that was switched.
        terminal.press("\r");
        terminal.wait_until(|rows| shows(rows, "enabled · hooks · ") && shows(rows, "  disable"));
        terminal.press("\u{1b}[B\r");
        terminal.wait_until(|rows| shows(rows, "Which plugin?"));
        // The engine that every home has cannot be disabled, and the list says so instead of failing.
        terminal.press("compressor");
        terminal.wait_until(|rows| shows(rows, "1 of "));
        terminal.press("\r");
        let rows = terminal.wait_until(|rows| shows(rows, "enter chooses") && shows(rows, "  back"));
        assert!(!shows(&rows, "  disable"), "{rows:#?}");
        terminal.press("\u{1b}");
        terminal.wait_until(|rows| !shows(rows, "enter chooses"));
        let rows = leave(terminal);
        assert!(rows.iter().all(|row| row.chars().count() < usize::from(columns)), "{rows:#?}");
        assert!(rows.join(" ").contains("this applies to new sessions"), "{rows:#?}");
        for gone in ["Which plugin?", "enter chooses", "permission: "] {
            assert!(!shows(&rows, gone), "{gone} in {rows:#?}");
        }
        assert_eq!(state_of(&home, "audit"), "enabled");
    }
}

/// A server that offers these models and tells who answers.
fn offering(names: &[&str], who: &'static str) -> Server {
    let models: Vec<Value> = names.iter().map(|name| json!({ "id": name })).collect();
    let reply =
        move |body: &Value, _| Reply::text(format!("I am {who}, as {}.", body["model"].as_str().unwrap_or("-")));
    Server::answering(reply).with_models(json!({ "data": models }))
}

#[test]
fn the_models_of_all_configured_providers_are_offered_in_groups() {
    let house = offering(&["large-model", "scripted-model"], "the house");
    let shed = offering(&["large-model", "shed-model"], "the shed");
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::with(&house);
    home.set(
        "custom_providers",
        json!([
            { "name": "shed", "base_url": shed.url(), "api_key": KEY },
            { "name": "silent", "base_url": format!("http://{}/v1", silent.local_addr().unwrap()) },
            { "name": "dead", "base_url": dead_endpoint() },
        ]),
    );
    let mut terminal = begin(&home, 60);
    terminal.press("/model\r");
    let rows = terminal.wait_until(|rows| shows(rows, "Which model? Now: scripted-model") && shows(rows, "shed-model"));
    let at =
        |text: &str| rows.iter().rposition(|row| row.trim_end() == text).unwrap_or_else(|| panic!("{text}: {rows:#?}"));
    assert!(at("custom") < at("shed") && at("shed") < at("  shed-model"), "{rows:#?}");
    assert!(shows(&rows, "no models of silent: no answer within 2 s"), "{rows:#?}");
    assert!(shows(&rows, "no models of dead: "), "{rows:#?}");
    // The name of the provider is searched, too.
    terminal.press("shed large");
    terminal.wait_until(|rows| shows(rows, "1 of 4"));
    terminal.press("\r");
    terminal.wait_until(|rows| shows(rows, "— large-model"));
    terminal.press("who?\r");
    terminal.wait_until(|rows| shows(rows, "I am the shed, as large-model.") && !shows(rows, "ctrl-c stops"));
    // Another model by its name is of the same provider.
    terminal.press("/model shed-model\r");
    terminal.wait_until(|rows| shows(rows, "— shed-model"));
    terminal.press("who now?\r");
    terminal.wait_until(|rows| shows(rows, "I am the shed, as shed-model.") && !shows(rows, "ctrl-c stops"));
    // And back to the place of the configuration, with its address and key.
    terminal.press("/model\r");
    terminal.wait_until(|rows| shows(rows, "Which model? Now: shed-model"));
    terminal.press("scripted\r");
    terminal.wait_until(|rows| shows(rows, READY));
    terminal.press("and now?\r");
    terminal.wait_until(|rows| shows(rows, "I am the house, as scripted-model.") && !shows(rows, "ctrl-c stops"));
    leave(terminal);
    assert_eq!((house.turns().len(), shed.turns().len()), (1, 2));
}

/// Such a server needs no key, so that its models were in no list as soon as the command line chose another provider.
#[test]
fn the_models_of_a_configured_server_without_a_key_are_offered_beside_another_provider() {
    let house = offering(&["house-model"], "the house").without_key();
    let shed = offering(&["shed-model"], "the shed").without_key();
    let home = Home::with(&shed);
    home.config(&format!(
        "{:#}\n",
        json!({
            "model": { "base_url": house.url(), "default": "house-model", "context_length": 64_000 },
            "custom_providers": [{ "name": "shed", "base_url": shed.url() }],
        })
    ));
    let mut terminal = home.hermes(&["--provider", "shed", "--model", "shed-model"]).at_drawn_terminal(60, 30);
    terminal.wait_until(|rows| shows(rows, "— shed-model"));
    terminal.press("/model\r");
    let rows = terminal.wait_until(|rows| shows(rows, "Which model? Now: shed-model") && shows(rows, "house-model"));
    // Of servers that may run on this machine and do not, nothing is said.
    assert!(!rows.iter().any(|row| row.contains("no models of")), "{rows:#?}");
    terminal.press("house\r");
    terminal.wait_until(|rows| shows(rows, "— house-model"));
    terminal.press("who?\r");
    terminal.wait_until(|rows| shows(rows, "I am the house, as house-model.") && !shows(rows, "ctrl-c stops"));
    leave(terminal);
    assert_eq!((house.turns().len(), shed.turns().len()), (1, 0));
}

#[test]
fn a_plain_terminal_completes_files_and_skills_with_the_tab_key() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    home.write_workspace("src/main.rs", "fn main() {}\n");
    home.write("skills/brew/SKILL.md", "---\nname: brew\ndescription: Brews tea.\n---\nUse $1 leaves.\n");
    let mut terminal = home.hermes(&[]).at_terminal_of(80, 30);
    terminal.wait_for("/help", 1);
    terminal.press("see @ma\t");
    terminal.wait_until(|rows| shows(rows, "> see @src/main.rs"));
    terminal.press("please\r");
    terminal.wait_until(|rows| shows(rows, "attached src/main.rs, 13 bytes") && shows(rows, "I see."));
    terminal.press("/bre");
    // The skills are listed in the background.
    for _ in 0..12_000 {
        terminal.press("\t");
        std::thread::sleep(Duration::from_millis(50));
        if shows(&terminal.rows(), "> /brew ") {
            break;
        }
    }
    terminal.press("green\r");
    server.wait_for_finished(2);
    assert!(server.last_turn().last_user_text().contains("Use green leaves."));
    // A key that is typed during a turn is no key of the prompt.
    terminal.wait_for("— scripted-model", 2);
    // Several completions are listed, as far as they are the same they are typed.
    terminal.press("/mo\t\t");
    terminal.wait_until(|rows| rows.iter().any(|row| row.contains("/model") && row.contains("/mode ")));
    terminal.press("\u{3}");
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    assert!(home.messages()[0]["content"].as_str().unwrap().starts_with("see @src/main.rs please\n\n"));
}
