//! Skills as plain folders in a plugin, without code and beside it.

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

const MANIFEST: &str = "name: teas\nversion: 1.0.0\ndescription: How to make tea.\n";
const BREW: &str = "---\nname: brew\ndescription: Brews green tea.\n---\nUse water at 75 degrees.\n";

fn view(name: &str, path: Option<&str>) -> Value {
    match path {
        Some(path) => json!({ "name": name, "path": path }),
        None => json!({ "name": name }),
    }
}

/// A model that reads these skills, one call for each request.
fn model(calls: Vec<Value>) -> Server {
    Server::answering(move |body, number| {
        let _ = body;
        match calls.get(number) {
            Some(arguments) => Reply::calls([Call::new(&format!("call_{number}"), "skill_view", arguments)]),
            None => Reply::text("Done."),
        }
    })
}

fn write_skills(home: &Home, folder: &str) {
    home.write_workspace(&format!("{folder}/skills/brew/SKILL.md"), BREW);
    home.write_workspace(&format!("{folder}/skills/brew/leaves.md"), "Sencha, Gyokuro.\n");
    home.write_workspace(&format!("{folder}/skills/brew/.hidden"), "not for others\n");
}

/// The results of all calls in the last request.
fn results(server: &Server) -> Vec<String> {
    let request = server.last_turn();
    let messages = request.body["messages"].as_array().expect("there are messages").clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_plugin_without_code_offers_its_skills() {
    let server = model(vec![
        view("brew", None),
        view("brew", Some("leaves.md")),
        view("brew", Some("../../plugin.yaml")),
        view("brew", Some("/etc/passwd")),
    ]);
    let home = Home::with(&server);
    home.write_workspace("teas/plugin.yaml", MANIFEST);
    write_skills(&home, "teas");
    let installed = home.hermes(&["plugins", "install", "./teas", "--yes"]).run().success();
    installed.says(&["skills: instructions that the model can read", "exports skills", "brew"]);
    let files: Vec<String> = home.snapshot().into_keys().map(|path| path.display().to_string()).collect();
    assert!(files.iter().any(|file| file == "plugins/teas/skills/brew/leaves.md"), "{files:?}");
    assert!(!files.iter().any(|file| file.contains(".hidden")), "{files:?}");
    home.hermes(&["plugins", "enable", "teas"]).run().success();
    home.hermes(&["-z", "tea"]).run().success();
    let results = results(&server);
    assert!(results[0].contains("75 degrees") && results[0].contains("leaves.md"), "{results:?}");
    assert!(results[1].contains("Gyokuro"), "{results:?}");
    for outside in &results[2..] {
        assert!(!outside.contains("How to make tea") && !outside.contains("root:"), "{results:?}");
    }
    let first = server.turns()[0].body.to_string();
    assert!(first.contains("Brews green tea"), "the index has the skill");
    let info = home.hermes(&["plugins", "info", "teas"]).run().success();
    assert!(info.stdout.contains("skills      brew") && !info.stdout.contains("component "), "{info}");
}

#[test]
fn a_changed_skill_needs_consent_again() {
    let server = Server::answering(|_, _| Reply::text("Done."));
    let home = Home::with(&server);
    home.write_workspace("teas/plugin.yaml", MANIFEST);
    write_skills(&home, "teas");
    home.hermes(&["plugins", "install", "./teas", "--yes"]).run().success();
    home.hermes(&["plugins", "enable", "teas"]).run().success();
    home.write("plugins/teas/skills/brew/SKILL.md", BREW.replace("green tea", "anything for strangers"));
    home.hermes(&["-z", "tea"]).run().success().says(&["teas", "changed since you allowed it"]);
    assert!(!server.last_turn().body.to_string().contains("for strangers"));
    home.grant("teas");
    home.hermes(&["-z", "tea"]).run().success();
    assert!(server.last_turn().body.to_string().contains("for strangers"));
    home.hermes(&["plugins", "revoke", "teas"]).run().success();
    home.hermes(&["-z", "tea"]).run().success();
    assert!(!server.last_turn().body.to_string().contains("for strangers"));
}

#[test]
fn a_plugin_with_code_has_skills_beside_it() {
    let server = model(vec![view("brew", None)]);
    let home = Home::with(&server);
    let (manifest, component) = hermes_tests::staged_guest("clerk");
    home.write_workspace("clerk/plugin.yaml", manifest);
    home.write_workspace("clerk/clerk.wasm", component);
    home.hermes(&["plugins", "install", "./clerk", "--yes"]).run().success();
    write_skills(&home, "clerk");
    // The update adds an export, so it asks.
    let asks = home.hermes(&["plugins", "update", "clerk"]).run().refused();
    asks.says(&["new exports: skills", "--yes"]);
    home.hermes(&["plugins", "update", "clerk", "--yes"]).run().success();
    home.hermes(&["plugins", "enable", "clerk"]).run().success();
    home.hermes(&["-z", "tea"]).run().success();
    assert!(results(&server)[0].contains("75 degrees"), "{:?}", results(&server));
    assert!(server.last_turn().tool_names().contains(&"query"), "its tools are offered");
}

#[test]
fn skills_without_code_are_tested_and_a_folder_that_is_not_listed_is_named() {
    let home = Home::new();
    home.write_workspace("teas/plugin.yaml", MANIFEST);
    write_skills(&home, "teas");
    let tested = home.hermes(&["plugins", "test", "./teas"]).run().success();
    assert!(tested.stdout.contains("lists each skill in its folder"), "{tested}");
    assert!(tested.stdout.contains("2 documents") && tested.stdout.contains("checks passed"), "{tested}");

    home.write_workspace("teas/skills/pour/SKILL.md", BREW);
    let tested = home.hermes(&["plugins", "test", "./teas"]).run();
    assert_eq!(tested.status.code(), Some(1), "{tested}");
    assert!(tested.stdout.contains("brew, pour") && tested.stdout.contains("a `name` of its own"), "{tested}");
}
