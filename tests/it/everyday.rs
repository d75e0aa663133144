//! A piece of work as a user gives it every day, from the first file to the commit, with every byte that the model saw and every
//! byte that was written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

const PRICE: &str = "# The price of a basket, without tax.\nprice() { echo $(($1 * 3)); }\n";
const TAX: &str = "# The tax on a price, in percent.\nrate=19\ntax() { echo $(($1 * rate / 100)); }\n";
const TEST: &str = "set -e\n. ./price.sh\n. ./tax.sh\n[ \"$(price 100)\" = 300 ]\n[ \"$(tax 300)\" = 57 ] || { echo \"tax of 300: $(tax 300)\" >&2; exit 1; }\necho passed\n";

/// One patch of three files, in which the new name is missing in one place.
const RENAMED: &str = "*** Begin Patch
*** Update File: price.sh
@@
-# The price of a basket, without tax.
+# The price of a basket, without tax. The tax is in tax.sh.
*** Update File: tax.sh
@@
-rate=19
+percent=19
*** Update File: test.sh
@@
-echo passed
+echo \"passed at $percent %\"
*** End Patch
";

/// What the model does, reply by reply.
fn work() -> Vec<Vec<(&'static str, Value)>> {
    let write = |path: &str, content: &str| ("write_file", json!({ "path": path, "content": content }));
    let run = |command: &str| ("terminal", json!({ "command": command }));
    vec![
        vec![write("price.sh", PRICE), write("tax.sh", TAX), write("test.sh", TEST)],
        vec![run("sh test.sh")],
        vec![("read_file", json!({"path": "tax.sh"})), ("search_files", json!({"pattern": "rate"}))],
        vec![("patch", json!({"mode": "patch", "patch": RENAMED}))],
        vec![run("sh test.sh")],
        vec![("patch", json!({"path": "tax.sh", "old_string": "* rate /", "new_string": "* percent /"}))],
        vec![run("sh test.sh")],
        vec![run("git add . && git commit --quiet -m 'Say percent' && git status --short && git log --format=%s")],
    ]
}

fn model() -> Server {
    Server::answering(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let asked = messages.iter().rposition(|message| message["role"] == "user").unwrap();
        let replies = messages[asked..].iter().filter(|message| message["role"] == "assistant").count();
        match work().into_iter().nth(replies) {
            Some(calls) if messages[asked]["content"] == "Rename the rate, and commit." => {
                let id = |at: usize| format!("call_{replies}_{at}");
                Reply::calls(
                    calls.iter().enumerate().map(|(at, (name, arguments))| Call::new(&id(at), name, arguments)),
                )
            }
            _ => Reply::text("It is renamed."),
        }
    })
}

fn git(home: &Home, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(home.workspace()).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The files of a folder without git's own.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .filter(|entry| entry.file_name() != ".git")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect()
}

/// A conversation as a text, with the place of the workspace replaced.
fn shown(messages: &[Value], workspace: &str) -> String {
    let mut text = String::new();
    for message in messages.iter().filter(|message| message["role"] != "system") {
        text += &format!("--- {}\n", message["role"].as_str().unwrap());
        if let Some(content) = message["content"].as_str() {
            text += &format!("{content}\n");
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            text += &format!("{} {}\n", function["name"].as_str().unwrap(), function["arguments"].as_str().unwrap());
        }
    }
    text.replace(workspace, "~/work")
}

#[test]
fn a_change_is_made_tested_mended_and_committed_and_every_byte_is_known() {
    let server = model();
    let home = Home::with(&server);
    home.set("approvals.allow", json!(["terminal/process:bash"]));
    git(&home, &["init", "--quiet", "--initial-branch=main"]);
    git(&home, &["config", "user.name", "A User"]);
    git(&home, &["config", "user.email", "user@example.org"]);

    let output = home.hermes(&["-z", "Rename the rate, and commit."]).run().success();
    assert_eq!(output.stdout, "It is renamed.\n");

    // Each request to the model extends the one before, and the last one is valid.
    let turns = server.turns();
    assert_eq!(turns.len(), work().len() + 1);
    for pair in turns.windows(2) {
        assert_extends(&pair[0].body, &pair[1].body);
        for member in ["tools", "model"] {
            assert_eq!(pair[0].raw_member(member), pair[1].raw_member(member));
        }
        assert_eq!(pair[0].system_text(), pair[1].system_text());
    }
    let last = turns.last().unwrap();
    assert_valid_request(&last.body);
    let workspace = home.workspace().canonicalize().unwrap();
    insta::assert_snapshot!(shown(last.messages(), workspace.to_str().unwrap()));

    // What was written: three files, the same in the commit, and the conversation as it was sent.
    let expected = [
        ("price.sh", PRICE.replace("without tax.", "without tax. The tax is in tax.sh.")),
        ("tax.sh", TAX.replace("rate=19", "percent=19").replace("* rate /", "* percent /")),
        ("test.sh", TEST.replace("echo passed", "echo \"passed at $percent %\"")),
    ];
    let expected: BTreeMap<String, String> = expected.map(|(name, text)| (name.to_owned(), text)).into();
    assert_eq!(files(&home.workspace()), expected);
    assert_eq!(git(&home, &["ls-files"]), "price.sh\ntax.sh\ntest.sh\n");
    for (name, text) in &expected {
        assert_eq!(git(&home, &["show", &format!("HEAD:{name}")]), *text);
    }
    assert_eq!(git(&home, &["log", "--format=%an: %s"]), "A User: Say percent\n");
    let stored: Vec<Value> = home.messages().into_iter().filter(|message| message["role"] == "tool").collect();
    let sent: Vec<&Value> = last.messages().iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(stored.len(), sent.len());
    for (stored, sent) in stored.iter().zip(sent) {
        assert_eq!(stored["content"], sent["content"]);
    }

    // The way back: the files go, the commit stays and is named.
    let undone = home.hermes(&["--continue"]).stdin("/undo\n/exit\n").run();
    assert_eq!(files(&home.workspace()), BTreeMap::new(), "{undone}");
    assert_eq!(git(&home, &["log", "--format=%s"]), "Say percent\n");
    assert!(undone.stdout.contains("restored 3 "), "{undone}");
    assert!(undone.stdout.contains("commit"), "{undone}");
}
