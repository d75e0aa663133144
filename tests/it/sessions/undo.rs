//! Files that a session changed are shown with `/diff` and restored with `/undo` and `hermes sessions undo`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Output, Reply, Server};
use serde_json::{Value, json};

/// A model that makes these calls one after the other when the message begins with `Go`, and else answers at once.
fn model(calls: Vec<(&'static str, Value)>) -> Server {
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
        let is_task = messages[since]["content"].as_str().is_some_and(|text| text.starts_with("Go"));
        let done = messages[since..].iter().filter(|message| message["role"] == "tool").count();
        match calls.get(done).filter(|_| is_task) {
            Some((name, arguments)) => Reply::calls([Call::new(&format!("call_{done}"), name, arguments)]),
            None => Reply::text("Done."),
        }
    })
}

fn run(command: &str) -> (&'static str, Value) {
    ("terminal", json!({ "command": command }))
}

fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.set("approvals.allow", json!(["terminal/process:bash"]));
    home
}

/// A chat with these lines.
fn chat(home: &Home, lines: &[&str]) -> Output {
    home.hermes(&[]).stdin(&format!("{}\n/exit\n", lines.join("\n"))).run()
}

fn read(home: &Home, path: &str) -> String {
    let content = fs::read(home.workspace().join(path)).unwrap_or_else(|_| b"(absent)".to_vec());
    String::from_utf8_lossy(&content).into_owned()
}

fn mode(home: &Home, path: &str) -> u32 {
    fs::metadata(home.workspace().join(path)).unwrap().permissions().mode() & 0o777
}

/// A turn that changed `a`, `b` and `made` by a command.
fn changed_by_a_command() -> (Home, Server) {
    let server = model(vec![run("echo 2 > a; echo 2 > b; echo 2 > made")]);
    let home = home(&server);
    home.write_workspace("a", "1\n");
    home.write_workspace("b", "1\n");
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!((read(&home, "a"), read(&home, "made")), ("2\n".into(), "2\n".into()));
    (home, server)
}

#[test]
fn undo_restores_what_file_tools_and_commands_changed_and_the_model_learns_of_it() {
    let server = model(vec![
        ("write_file", json!({"path": "new/notes.md", "content": "# Notes\n"})),
        ("read_file", json!({"path": "main.rs"})),
        ("patch", json!({"path": "main.rs", "old_string": "hello", "new_string": "goodbye"})),
        run(
            "chmod +x run.sh; rm data.bin; mkdir -p out/empty; printf 'x\\0y' > out/blob; ln -sfn new link; echo more >> main.rs",
        ),
    ]);
    let home = home(&server);
    home.write_workspace("main.rs", "hello\r\n");
    home.write_workspace("run.sh", "#!/bin/sh\n");
    home.write_workspace("data.bin", [0_u8, 159, 146, 150]);
    symlink("old", home.workspace().join("link")).unwrap();
    let output = chat(&home, &["Go.", "/diff", "/undo", "And now?", "/undo"]);
    let shown = &output.stdout;
    for part in [
        "--- a/main.rs",
        "-hello",
        "+goodbye",
        "+++ b/new/notes.md",
        "old mode 644",
        "new mode 755",
        "-link to old",
        "a binary or large file of 4 bytes -> nothing",
        "restored ",
        "not undone: what these commands did beside changing files of the workspace: `chmod +x run.sh",
    ] {
        assert!(shown.contains(part), "`{part}` is not in\n{output}");
    }
    assert!(output.stderr.contains("[checkpoint.nothing]"), "{output}");
    assert_eq!(read(&home, "main.rs"), "hello\r\n");
    assert_eq!(mode(&home, "run.sh"), 0o644);
    assert_eq!(fs::read(home.workspace().join("data.bin")).unwrap(), [0, 159, 146, 150]);
    assert_eq!(fs::read_link(home.workspace().join("link")).unwrap(), Path::new("old"));
    for gone in ["new", "out"] {
        assert!(!home.workspace().join(gone).exists(), "{gone}");
    }
    let request = server.last_turn();
    assert_valid_request(&request.body);
    let last = request.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(last.starts_with("And now?\n\n[Note by Hermes: the user has undone changes"), "{last}");
    assert!(last.contains("main.rs") && last.contains("new/notes.md"), "{last}");
    // The conversation keeps its words, and the note is not the user's.
    let words: Vec<String> = home
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].to_string())
        .collect();
    assert_eq!(words, ["\"Go.\"", "\"And now?\""]);
}

#[test]
fn the_model_learns_of_an_undo_again_when_the_message_that_said_it_is_taken_back() {
    let server = model(vec![("write_file", json!({"path": "notes.md", "content": "# Notes\n"}))]);
    let home = home(&server);
    let output = chat(&home, &["Go.", "/undo", "And now?", "/rewind", "And then?", "/retry"]);
    let last = server.last_turn().messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(last.starts_with("And then?\n\n[Note by Hermes: the user has undone changes"), "{last}\n{output}");
}

#[test]
fn a_file_that_the_user_changed_since_is_named_and_nothing_is_restored_unless_the_user_says_so() {
    let (home, _server) = changed_by_a_command();
    home.write_workspace("b", "mine\n");
    let refused = home.hermes(&["sessions", "undo"]).run().refused();
    refused.says(&["nothing was undone [checkpoint.changed]\n  why: b (changed since)", "--skip-changed"]);
    assert_eq!(
        (read(&home, "a"), read(&home, "b"), read(&home, "made")),
        ("2\n".into(), "mine\n".into(), "2\n".into())
    );
    let done = home.hermes(&["sessions", "undo", "--skip-changed"]).run().success();
    assert!(done.stdout.contains("left as they are: b (changed since)"), "{done}");
    assert_eq!(
        (read(&home, "a"), read(&home, "b"), read(&home, "made")),
        ("1\n".into(), "mine\n".into(), "(absent)".into())
    );
}

/// A program may replace a folder by a link or a file: that is its change, and no reason to refuse.
#[test]
fn a_folder_that_a_command_replaced_by_a_link_is_restored() {
    for command in ["rm -rf d; ln -s other d", "rm -rf d; echo file > d"] {
        let server = model(vec![run(command)]);
        let home = home(&server);
        home.write_workspace("d/f", "inside\n");
        home.write_workspace("d/e/g", "deep\n");
        home.write_workspace("other/f", "other\n");
        home.hermes(&["-z", "Go."]).run().success();
        home.hermes(&["sessions", "undo"]).run().success();
        assert!(!home.workspace().join("d").is_symlink());
        assert_eq!((read(&home, "d/f"), read(&home, "d/e/g")), ("inside\n".into(), "deep\n".into()));
        assert_eq!(read(&home, "other/f"), "other\n");
    }
}

#[test]
fn a_forced_undo_that_leaves_something_says_so_and_the_rest_can_be_undone_later() {
    let server = model(vec![run("echo 2 > a; echo 2 > d/f")]);
    let home = home(&server);
    home.write_workspace("a", "1\n");
    home.write_workspace("d/f", "1\n");
    home.hermes(&["-z", "Go."]).run().success();
    let (folder, away) = (home.workspace().join("d"), home.workspace().join("away"));
    fs::rename(&folder, &away).unwrap();
    symlink("away", &folder).unwrap();
    home.hermes(&["sessions", "undo"]).run().refused().says(&["d/f (something else is in its place)", "move away"]);
    let forced = home.hermes(&["sessions", "undo", "--force"]).run().success();
    assert!(forced.stdout.contains("the undo is not complete: move away"), "{forced}");
    let listed = home.hermes(&["sessions", "undo", "--list"]).run().success();
    assert!(listed.stdout.contains("partly"), "{listed}");
    fs::remove_file(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    home.hermes(&["sessions", "undo"]).run().success();
    assert_eq!((read(&home, "a"), read(&home, "d/f")), ("1\n".into(), "1\n".into()));
    home.hermes(&["sessions", "undo"]).run().refused().says(&["[checkpoint.nothing]"]);
}

#[test]
fn a_commit_is_named_and_the_repository_stays_as_it_is() {
    let server = model(vec![run("echo 2 > a && git add -A && git -c user.name=x -c user.email=x@y commit -qm second")]);
    let home = home(&server);
    home.write_workspace("a", "1\n");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(home.workspace()).args(["-c", "user.name=x", "-c", "user.email=x@y"]).args(arguments);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    home.hermes(&["-z", "Go."]).run().success();
    let log = git(&["log", "--format=%s"]);
    assert_eq!(log, "second\nfirst\n");
    let done = home.hermes(&["sessions", "undo"]).run().success();
    assert!(done.stdout.contains("not undone: git moved from ") && done.stdout.contains("(main)"), "{done}");
    assert_eq!((read(&home, "a"), git(&["log", "--format=%s"])), ("1\n".into(), log));
    assert_eq!(git(&["status", "--porcelain"]), " M a\n");
}

#[test]
fn turns_are_listed_and_undone_from_outside_of_the_session() {
    let server = model(vec![run("echo \"$RANDOM $RANDOM\" > a")]);
    let home = home(&server);
    home.write_workspace("a", "1\n");
    chat(&home, &["Go on with one.", "Go on with two.", "Only words."]).success();
    let listed = home.hermes(&["sessions", "undo", "--list", "--json"]).run().success();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!((&listed[1]["number"], &listed[1]["words"]), (&json!(2), &json!("Go on with two.")));
    let id = home.newest_session();
    home.hermes(&["sessions", "undo", &id, "--to", "7"]).run().refused().says(&["no change 7"]);
    let done = home.hermes(&["sessions", "undo", &id, "--to", "1"]).run().success();
    assert!(done.stdout.starts_with("restored 1 path of 2 turns, from `Go on with one.` on: a\n"), "{done}");
    assert_eq!(read(&home, "a"), "1\n");
    // A session that is open does so itself.
    let mut open = home.hermes(&["--continue"]).talking().spawn();
    open.say("Hi.");
    open.wait_for_stdout("Done.");
    home.hermes(&["sessions", "undo", &id]).run().refused();
    open.kill();
    let gone = home.hermes(&["sessions", "delete", &id, "--yes"]).run();
    gone.success();
    assert!(!home.path().join("checkpoints/sessions").join(&id).exists());
}

#[test]
fn an_undo_that_is_killed_is_completed_by_the_next_start() {
    let server = model(vec![run("mkdir made; for i in $(seq 400); do echo 2 > f$i; echo x > made/m$i; done; rm g*")]);
    let home = home(&server);
    for number in 1..=400 {
        home.write_workspace(&format!("f{number}"), "1\n");
        home.write_workspace(&format!("g{number}"), "1\n");
    }
    home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(read(&home, "f400"), "2\n");
    let id = home.newest_session();
    let journal = home.path().join(format!("checkpoints/undo/{id}.json"));
    let undo = home.hermes(&["sessions", "undo"]).spawn();
    let until = std::time::Instant::now() + Duration::from_secs(600);
    while !journal.exists() {
        assert!(std::time::Instant::now() < until, "there is no journal");
        std::thread::sleep(Duration::from_millis(1));
    }
    // The files restored so far are some of all.
    while read(&home, "g1") == "(absent)" && read(&home, "made/m1") == "x\n" && journal.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    undo.kill();
    assert!(journal.exists(), "the undo was complete before the kill");
    let next = home.hermes(&["-z", "Hi."]).run().success();
    assert!(next.stderr.contains(&format!("an interrupted undo of session {id} is completed")), "{next}");
    for number in 1..=400 {
        assert_eq!(
            (read(&home, &format!("f{number}")), read(&home, &format!("g{number}"))),
            ("1\n".into(), "1\n".into())
        );
    }
    assert!(!home.workspace().join("made").exists() && !journal.exists());
    let left = fs::read_dir(home.workspace()).unwrap().count();
    assert_eq!(left, 800, "the undo left files");
}

#[test]
fn an_undo_writes_through_no_link_that_leads_out_of_the_workspace() {
    let server = model(vec![run("echo 2 > dir/a; rm dir/gone")]);
    let home = home(&server);
    home.write_workspace("dir/a", "1\n");
    home.write_workspace("dir/gone", "1\n");
    home.hermes(&["-z", "Go."]).run().success();
    let outside = home.workspace().parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "2\n").unwrap();
    fs::rename(home.workspace().join("dir"), home.workspace().join("moved")).unwrap();
    symlink(&outside, home.workspace().join("dir")).unwrap();
    let refused = home.hermes(&["sessions", "undo"]).run().refused();
    refused.says(&["dir/a (something else is in its place)", "dir/gone (something else is in its place)"]);
    home.hermes(&["sessions", "undo", "--force"]).run().success();
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "2\n");
    assert!(!outside.join("gone").exists());
}

#[test]
fn large_files_and_secrets_are_named_and_never_in_the_store() {
    let server = model(vec![run("head -c 2000000 /dev/zero > big; echo KEY=new > .env; echo 2 > a")]);
    let home = home(&server);
    home.set("checkpoints.max_file_size", json!(1));
    home.write_workspace("big", vec![b'x'; 1_500_000]);
    home.write_workspace(".env", "KEY=hidden-from-the-store\n");
    home.write_workspace("a", "1\n");
    home.hermes(&["-z", "Go."]).run().success();
    let done = home.hermes(&["sessions", "undo"]).run().success();
    for part in [
        ".env (files with this name hold secrets)",
        "big (it is larger than checkpoints.max_file_size)",
        "restored 1 path",
    ] {
        assert!(done.stdout.contains(part), "`{part}` is not in\n{done}");
    }
    assert_eq!((read(&home, "a"), read(&home, ".env")), ("1\n".into(), "KEY=new\n".into()));
    assert!(!home.files_with("hidden-from").iter().any(|path| path.starts_with("checkpoints")));
    for path in home.snapshot().into_keys().filter(|path| path.starts_with("checkpoints")) {
        assert_eq!(fs::metadata(home.path().join(&path)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_home_folder_is_not_looked_through_and_file_tools_are_undone_nevertheless() {
    let server = model(vec![run("echo 2 > a"), ("write_file", json!({"path": "b", "content": "new\n"}))]);
    let home = home(&server);
    let user = home.workspace().parent().unwrap().join("user");
    fs::write(user.join("a"), "1\n").unwrap();
    let said = home.hermes(&["-z", "Go."]).current_dir(&user).run().success();
    assert!(
        said.stderr.contains("/undo restores only what file tools change, not what commands change: ")
            && said.stderr.contains("is your home folder"),
        "{said}"
    );
    let done = home.hermes(&["sessions", "undo"]).current_dir(&user).run().success();
    assert!(done.stdout.contains("not undone: what commands changed without a checkpoint"), "{done}");
    assert_eq!(fs::read_to_string(user.join("a")).unwrap(), "2\n");
    assert!(!user.join("b").exists());
}

#[test]
fn nothing_is_saved_if_checkpoints_are_off() {
    let server = model(vec![run("echo 2 > a")]);
    let home = home(&server);
    home.set("checkpoints.enabled", json!(false));
    home.hermes(&["-z", "Go."]).run().success();
    assert!(!home.path().join("checkpoints").exists());
    home.hermes(&["sessions", "undo"]).run().refused().says(&["[checkpoint.nothing]"]);
}
