//! `hermes plugins dev` of a project that is not installed: sessions use it while the command runs, and everything is as before when
//! it ends.

use std::fs;
use std::path::PathBuf;

use hermes_tests::{Call, Home, Reply, Running, Server, renamed, staged_guest};
use serde_json::{Value, json};

const BUILD: &str = "cp ready/component hostile.wasm";

/// A model that calls `poke` if it is offered, and then repeats its answer.
fn poking() -> Server {
    Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        if last["role"] == "tool" {
            Reply::text(format!("It said: {}.", last["content"].as_str().unwrap_or_default()))
        } else if tools.iter().any(|tool| tool["function"]["name"] == "poke") {
            Reply::calls([Call::new(&format!("call_{number}"), "poke", &json!({"mode": "error"}))])
        } else {
            Reply::text("There is no tool.")
        }
    })
}

/// The project of the guest `hostile`, whose build copies a component.
fn project(home: &Home) -> PathBuf {
    let (manifest, component) = staged_guest("hostile");
    home.write_workspace("project/plugin.yaml", manifest);
    home.write_workspace("project/ready/component", component);
    home.workspace().join("project")
}

fn develop(home: &Home, more: &[&str]) -> Running {
    let running = home.hermes(&[&["plugins", "dev", "project", "--build", BUILD], more].concat()).spawn();
    running.wait_for_stdout("built `hostile`");
    running
}

fn ask(home: &Home) -> String {
    home.hermes(&["-z", "Go."]).run().success().stdout
}

fn plugins(home: &Home) -> Vec<Value> {
    let listed = home.hermes(&["plugins", "list", "--json"]).run().success();
    serde_json::from_str(&listed.stdout).unwrap()
}

/// What the configuration and the folder of plugins hold.
fn state(home: &Home) -> (String, Vec<String>, bool) {
    let names = fs::read_dir(home.path().join("plugins")).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    (home.read("config.yaml"), names, home.path().join("plugins.lock").exists())
}

#[test]
fn sessions_use_a_project_that_is_not_installed_until_the_command_ends() {
    let server = poking();
    let home = Home::with(&server);
    project(&home);
    assert_eq!(ask(&home), "There is no tool.\n");
    let before = state(&home);
    let developer = develop(&home, &["--yes"]);
    developer.wait_for_stdout("new sessions use it as their context engine");
    let engine = plugins(&home).into_iter().find(|plugin| plugin["state"] == "engine").unwrap();
    assert_eq!(engine["name"], "hostile");
    let session = home.hermes(&["-z", "Go."]).run().success();
    assert!(session.stdout.contains("hostile on purpose"), "{session}");
    assert!(session.stderr.contains("`hostile` is under development"), "{session}");
    // A name on the command line has precedence.
    let named = home.hermes(&["--engine", "compressor", "-z", "Go."]).run().success();
    assert_eq!(named.stdout, "There is no tool.\n");
    assert_eq!(home.read("config.yaml"), before.0);

    developer.interrupt();
    let ended = developer.wait().success();
    for shown in ["hostile 0.1.0", "what the plugin adds", "context-engine", "read and change files"] {
        assert!(ended.stderr.contains(shown), "{shown}\n{ended}");
    }
    assert_eq!(state(&home), before);
    assert!(plugins(&home).iter().all(|plugin| plugin["name"] != "hostile"));
    assert_eq!(ask(&home), "There is no tool.\n");
}

#[test]
fn a_killed_command_leaves_nothing_that_runs() {
    let server = poking();
    let home = Home::with(&server);
    project(&home);
    ask(&home);
    let before = state(&home);
    let developer = develop(&home, &["--yes"]);
    assert!(ask(&home).contains("hostile on purpose"));
    developer.kill();
    assert!(plugins(&home).iter().all(|plugin| plugin["name"] != "hostile"));
    assert_eq!(ask(&home), "There is no tool.\n");
    assert_eq!(home.read("config.yaml"), before.0);
    // The next one begins anew.
    let developer = develop(&home, &["--yes"]);
    assert!(ask(&home).contains("hostile on purpose"));
    developer.interrupt();
    developer.wait().success();
    assert_eq!(state(&home), before);
}

#[test]
fn a_running_chat_uses_it_from_its_next_session() {
    let server = poking();
    let home = Home::with(&server);
    project(&home);
    let mut chat = home.hermes(&["-v"]).talking().spawn();
    chat.say("one");
    server.wait_for_finished(1);
    let developer = develop(&home, &["--yes"]);
    chat.say("/new");
    chat.say("two");
    server.wait_for_finished(3);
    assert!(server.last_turn().trailing_results()[0].1.contains("hostile on purpose"));
    developer.interrupt();
    developer.wait().success();
    chat.say("/new");
    chat.say("three");
    server.wait_for_finished(4);
    assert!(server.last_turn().trailing_results().is_empty());
    chat.wait().success();
}

#[test]
fn what_a_project_may_do_is_agreed_to_before_sessions_use_it() {
    let server = poking();
    let home = Home::with(&server);
    let project = project(&home);
    let refused = home.hermes(&["plugins", "dev", "project", "--build", BUILD]).run().refused();
    assert!(refused.stderr.contains("--yes") && refused.stderr.contains("no session uses the project"), "{refused}");
    assert!(refused.stderr.contains("the conversation"), "{refused}");
    assert!(!home.path().join("plugins/.dev").exists());

    // What the installed plugin of this name was granted needs no question, and what goes beyond it does.
    home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
    let developer = develop(&home, &[]);
    let manifest = fs::read_to_string(project.join("plugin.yaml")).unwrap();
    fs::write(project.join("plugin.yaml"), format!("{manifest}  sql: true\n")).unwrap();
    developer.wait_for_stderr("no session uses the project");
    developer.wait_for_stdout("sessions keep the last successful build");
    let slot = home.path().join("plugins/.dev/hostile/plugin.yaml");
    assert!(!fs::read_to_string(&slot).unwrap().contains("sql"));
    fs::write(project.join("plugin.yaml"), manifest).unwrap();
    developer.wait_for_stdout_times("built `hostile`", 2);
    developer.interrupt();
    developer.wait().success();
}

#[test]
fn a_prompt_is_tried_in_a_new_session_after_each_build() {
    let server = poking();
    let home = Home::with(&server);
    let project = project(&home);
    let developer = develop(&home, &["--yes", "--try", "Go."]);
    developer.wait_for_stdout("hostile on purpose.");
    developer.wait_for_stdout("the session ended");
    let component = fs::read(project.join("ready/component")).unwrap();
    let words = b"hostile on purpose";
    let at = component.windows(words.len()).position(|window| window == words).unwrap();
    let mut changed = component;
    // Homes of tests share compiled code, so no earlier run may have had the same words.
    let others = format!("hostile on {:07}", std::process::id());
    changed[at..at + words.len()].copy_from_slice(others.as_bytes());
    fs::write(project.join("ready/component"), changed).unwrap();
    developer.wait_for_stdout(&format!("{others}."));
    developer.interrupt();
    developer.wait().success();
    assert_eq!(home.sessions_json().len(), 2);
    // What the builds have in common is compiled once.
    let code = fs::read_dir(home.path().join("cache/code")).unwrap().flatten();
    assert!(code.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().ends_with(".functions")));
}

#[test]
fn a_memory_is_selected_and_a_disabled_name_is_not() {
    let server = poking();
    let home = Home::with(&server);
    let (manifest, component) = staged_guest("keeper");
    home.write_workspace("mine/plugin.yaml", renamed(&manifest, "mine"));
    home.write_workspace("mine/ready/component", component);
    let arguments = ["plugins", "dev", "mine", "--build", "cp ready/component mine.wasm", "--yes"];
    let developer = home.hermes(&arguments).spawn();
    developer.wait_for_stdout("as their memory");
    let state = |home: &Home| {
        plugins(home).into_iter().find(|plugin| plugin["name"] == "mine").unwrap()["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(&home), "memory");
    developer.interrupt();
    developer.wait().success();

    home.set("plugins.disabled", json!(["mine"]));
    let developer = home.hermes(&arguments).spawn();
    developer.wait_for_stdout("`plugins.disabled` in config.yaml names `mine`");
    assert_eq!(state(&home), "off");
    developer.interrupt();
    developer.wait().success();
}

#[test]
fn a_build_that_does_not_start_is_named_at_once() {
    let server = poking();
    let home = Home::with(&server);
    let project = project(&home);
    let manifest = fs::read_to_string(project.join("plugin.yaml")).unwrap();
    let schema = "config: {type: object, required: [base_url], properties: {base_url: {type: string}}}\n";
    fs::write(project.join("plugin.yaml"), manifest + schema).unwrap();
    let developer = develop(&home, &["--yes"]);
    developer.wait_for_stderr("does not start with its current configuration");
    developer.interrupt();
    let ended = developer.wait().success();
    assert!(ended.stderr.contains("base_url") && ended.stderr.contains("plugins.entries.hostile"), "{ended}");
}

#[test]
fn the_skills_beside_the_code_come_along() {
    let server = poking();
    let home = Home::with(&server);
    let project = project(&home);
    home.write_workspace(
        "project/skills/tea/SKILL.md",
        "---\nname: tea\ndescription: Brewing tea.\n---\nBoil water.\n",
    );
    let developer = develop(&home, &["--yes"]);
    ask(&home);
    assert!(server.last_turn().body.to_string().contains("Brewing tea."));
    fs::remove_dir_all(project.join("skills")).unwrap();
    developer.wait_for_stdout_times("built `hostile`", 2);
    ask(&home);
    assert!(!server.last_turn().body.to_string().contains("Brewing tea."));
    developer.interrupt();
    developer.wait().success();
    assert!(!home.path().join("plugins/.dev").exists());
}

#[test]
fn a_folder_of_skills_is_a_project_too() {
    let server = poking();
    let home = Home::with(&server);
    home.write_workspace("lists/plugin.yaml", "name: lists\nversion: 0.1.0\ndescription: Lists.\n");
    let skill = |text: &str| format!("---\nname: release\ndescription: {text}\n---\nRun the tests.\n");
    home.write_workspace("lists/skills/release/SKILL.md", skill("Before a release."));
    let developer = home.hermes(&["plugins", "dev", "lists", "--yes"]).spawn();
    developer.wait_for_stdout("built `lists` 0.1.0 (skills)");
    ask(&home);
    assert!(server.last_turn().body.to_string().contains("Before a release."));
    home.write_workspace("lists/skills/release/SKILL.md", skill("Before each release."));
    developer.wait_for_stdout_times("built `lists`", 2);
    ask(&home);
    assert!(server.last_turn().body.to_string().contains("Before each release."));
    developer.interrupt();
    developer.wait().success();
    ask(&home);
    assert!(!server.last_turn().body.to_string().contains("each release"));
}

#[test]
fn errors_that_a_plugin_returned_are_counted_beside_its_failures() {
    let calls = (0..3).map(|number| Call::new(&format!("call_{number}"), "grab", &json!({"what": "nothing known"})));
    let server = Server::scripted([Reply::calls(calls), Reply::text("Done.")]);
    let home = Home::with(&server);
    home.install_guest("greedy", "greedy", json!({}));
    home.set("plugins.enabled", json!(["greedy"]));
    home.hermes(&["-z", "Go."]).run().success();
    let stats = home.hermes(&["plugins", "stats", "--json"]).run().success();
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    let returned = &stats["greedy"]["returned"];
    assert_eq!((&returned["calls"], &returned["kinds"]), (&json!(3), &json!({"invalid-input": 3})), "{returned:#}");
    assert_eq!(stats["greedy"]["failures"], 0);
    assert!(returned["last"]["cause"].as_str().unwrap().contains("is not known"), "{returned:#}");
    let info = home.hermes(&["plugins", "info", "greedy"]).run().success();
    for shown in ["3 errors, 0 failures", "ended with an error: 3 invalid-input", "last error"] {
        assert!(info.stdout.contains(shown), "{shown}\n{info}");
    }
    let table = home.hermes(&["plugins", "stats"]).run().success();
    assert!(table.stdout.lines().next().unwrap().contains("errors"), "{table}");
}
