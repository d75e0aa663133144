//! The notes of the built-in memory, which models, commands and editors write at the same time.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hermes_tests::{Call, Home, Reply, Running, Server};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

/// Entries that each process adds.
const ENTRIES: usize = 4;

/// A model that adds the entries which a message names, one call for each.
fn model() -> Server {
    Server::answering(|body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).unwrap();
        if last["role"] != "user" {
            return Reply::text("Noted.");
        }
        let writer = last["content"].as_str().unwrap().split_whitespace().last().unwrap().to_owned();
        Reply::calls((0..ENTRIES).map(|entry| {
            let arguments =
                json!({"action": "add", "target": "memory", "content": format!("chat {writer} entry {entry}")});
            Call::new(&format!("call_{number}_{entry}"), "memory", &arguments)
        }))
    })
}

/// Saves like an editor, without a lock: writes the text that it read and one more line. If the save replaced a newer text, it
/// saves again, as its user would.
fn save(file: &Path, entry: &str) {
    let draft = file.with_extension("draft");
    let mut missing = vec![entry.to_owned()];
    while !missing.is_empty() {
        let read = fs::read_to_string(file).unwrap();
        let text = format!("{read}\n§\n{}\n", missing.join("\n§\n"));
        fs::write(&draft, &text).unwrap();
        renameat_with(CWD, &draft, CWD, file, RenameFlags::EXCHANGE).unwrap();
        let replaced = fs::read_to_string(&draft).unwrap();
        let is_lost = |entry: &&str| !entries(&text).contains(entry);
        missing = entries(&replaced).into_iter().filter(is_lost).map(str::to_owned).collect();
    }
    fs::remove_file(&draft).unwrap();
}

fn entries(text: &str) -> Vec<&str> {
    text.split("\n§\n").map(str::trim).filter(|entry| !entry.is_empty()).collect()
}

#[test]
fn sixteen_processes_and_an_editor_lose_no_entry() {
    let server = model();
    let home = Home::with(&server);
    home.set("memory.memory_char_limit", json!(100_000));
    home.write("memories/MEMORY.md", "written by hand");
    let file = home.path().join("memories/MEMORY.md");
    let is_done = AtomicBool::new(false);
    let mut saves = 0;
    thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut saves = 0;
            while !is_done.load(Ordering::Relaxed) && saves < 200 {
                save(&file, &format!("editor save {saves}"));
                saves += 1;
                thread::sleep(Duration::from_millis(50));
            }
            saves
        });
        // Half of the processes are sessions, whose model writes through the component; the others are commands.
        let mut processes: Vec<Running> = Vec::new();
        for writer in 0..8 {
            processes.push(home.hermes(&["-z", &format!("Remember {writer}")]).spawn());
            let name = format!("import-{writer}.md");
            let text: Vec<String> = (0..ENTRIES).map(|entry| format!("command {writer} entry {entry}")).collect();
            home.write_workspace(&name, text.join("\n§\n"));
            let import = ["memory", "import", &name, "--target", "memory"];
            processes.push(home.hermes(&import).spawn());
        }
        for process in processes {
            process.wait().success();
        }
        is_done.store(true, Ordering::Relaxed);
        saves = editor.join().unwrap();
    });
    let text = home.read("memories/MEMORY.md");
    let mut found = entries(&text);
    found.sort_unstable();
    let mut expected = vec!["written by hand".to_owned()];
    for writer in 0..8 {
        for entry in 0..ENTRIES {
            expected.push(format!("chat {writer} entry {entry}"));
            expected.push(format!("command {writer} entry {entry}"));
        }
    }
    expected.extend((0..saves).map(|save| format!("editor save {save}")));
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(saves > 0, "the editor did not save");
}

#[test]
fn a_fact_is_recalled_in_a_later_conversation_and_is_not_in_the_prompt() {
    let server = Server::answering(|_, number| match number {
        0 => Reply::calls([Call::new(
            "call_1",
            "memory",
            &json!({"action": "add", "target": "facts", "content": "Ada sold the boat to Nils."}),
        )]),
        _ => Reply::text("Noted."),
    });
    let home = Home::with(&server);
    home.hermes(&["-z", "Ada sold her boat."]).run().success();
    home.hermes(&["-z", "Who has the boat now?"]).run().success();
    let asked = server.last_turn();
    assert!(asked.last_user_text().contains("Ada sold the boat to Nils."), "{}", asked.last_user_text());
    assert!(!asked.body["messages"][0].to_string().contains("Nils"), "a fact is in the prompt");
    home.hermes(&["-z", "What is the weather?"]).run().success();
    assert_eq!(server.last_turn().last_user_text(), "What is the weather?");
}

#[test]
fn the_working_state_is_recalled_in_its_conversation_only() {
    let server = Server::answering(|_, number| match number {
        0 => Reply::calls([Call::new(
            "call_1",
            "memory",
            &json!({"action": "add", "target": "session", "content": "step 2 of 5 is done"}),
        )]),
        _ => Reply::text("Noted."),
    });
    let home = Home::with(&server);
    home.hermes(&["-z", "Begin."]).run().success();
    home.hermes(&["-z", "Go on.", "--continue"]).run().success();
    let text = server.last_turn().last_user_text().to_owned();
    assert!(text.contains("Working state of this conversation:\nstep 2 of 5 is done"), "{text}");
    home.hermes(&["-z", "Go on."]).run().success();
    assert_eq!(server.last_turn().last_user_text(), "Go on.");
    assert_eq!(home.read("data/builtin/documents/working.json").matches("step 2").count(), 1);
}

#[test]
fn a_write_waits_for_approval_from_any_process() {
    let write = |content: &str| json!({"action": "add", "target": "user", "content": content});
    let server = Server::answering(move |_, number| match number {
        0 => Reply::calls([
            Call::new("call_1", "memory", &write("likes tea")),
            Call::new("call_2", "memory", &write("likes mate")),
        ]),
        _ => Reply::text("Noted."),
    });
    let home = Home::with(&server);
    home.set("memory.write_approval", json!(true));
    home.hermes(&["-z", "I like tea and mate."]).run().success();
    let results = server.last_turn().trailing_results().iter().map(|(_, text)| (*text).to_owned()).collect::<String>();
    assert!(results.contains("waits for the user's approval"), "{results}");
    assert!(!home.path().join("memories/USER.md").exists());

    let pending = home.hermes(&["memory", "pending"]).run().success().stdout;
    assert!(pending.contains("+ likes tea") && pending.contains("+ likes mate"), "{pending}");
    let listed = home.hermes(&["memory", "pending", "--json"]).run().success().stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[1]["diff"], json!([{"sign": "+", "text": "likes mate"}]));
    home.hermes(&["memory", "approve", "1"]).run().success();
    home.hermes(&["memory", "reject", "2"]).run().success();
    assert_eq!(home.read("memories/USER.md"), "likes tea");
    home.hermes(&["memory", "approve", "2"]).run().refused().says(&["no write with the number 2 waits"]);
    assert_eq!(home.read("memories/USER.md"), "likes tea");
}
