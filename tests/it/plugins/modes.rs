//! The modes of a session, rules about commands, and refusals with words.

use std::time::Duration;

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::{Value, json};

/// Shown when an answer counts.
const READY: &str = "[d]eny (enter)? ";
const PROMPT: &str = "> ";
const PLAN: &str = "the user works in plan mode";

/// A model that makes these calls one after the other after each message, and then says that it is done.
fn model_that_calls(calls: Vec<(&'static str, Value)>) -> Server {
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let since = messages.iter().rev().take_while(|message| message["role"] != "user");
        let done = since.filter(|message| message["role"] == "tool").count();
        match calls.get(done) {
            Some((name, arguments)) => Reply::calls([Call::new(&format!("call_{done}"), name, arguments)]),
            None => Reply::text("Done."),
        }
    })
}

fn run(command: &str) -> (&'static str, Value) {
    ("terminal", json!({ "command": command }))
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({ "path": path, "content": content }))
}

/// What the model got for its calls since the last message.
#[track_caller]
fn results(server: &Server) -> Vec<String> {
    let request = server.last_turn();
    assert_valid_request(&request.body);
    let messages = request.messages();
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
    let results = messages[since..].iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A chat in which the user has sent a message.
fn chat(home: &Home, arguments: &[&str]) -> Terminal {
    let mut terminal = home.hermes(arguments).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal
}

#[track_caller]
fn leave(mut terminal: Terminal) -> String {
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.shown()
}

/// Whether programs can be confined here.
fn has_sandbox() -> bool {
    Home::new().hermes(&["probe-sandbox"]).run().success().stdout.contains("confined")
}

#[test]
fn a_rule_allows_a_line_only_if_it_covers_every_command_in_it() {
    let server = model_that_calls(vec![
        run("echo one && echo 'two  three' | cat"),
        run("echo one; touch made"),
        run("echo $(touch made)"),
        run("echo one > made"),
        run("sh -c 'git -C . push'"),
        run("echo 'git push'"),
        run("$X made"),
    ]);
    let home = Home::with(&server);
    home.set("approvals.allow", json!(["terminal(echo*)", "terminal(cat)"]));
    home.set("approvals.deny", json!(["terminal(git push*)"]));
    home.hermes(&["-z", "Go."]).run().success();
    let results = results(&server);
    assert!(results[0].starts_with("one\ntwo  three\n[exit code 0]"), "{results:?}");
    for at in [1, 2, 3] {
        assert!(results[at].contains("cannot ask for approval"), "{at}: {results:?}");
    }
    for at in [4, 6] {
        assert!(results[at].contains("`approvals.deny` has `terminal(git push*)`"), "{at}: {results:?}");
    }
    assert!(results[6].contains("without variables"), "{results:?}");
    assert!(results[5].starts_with("git push\n"), "{results:?}");
    assert!(!home.workspace().join("made").exists());
}

#[test]
fn a_rule_about_no_plugin_that_runs_programs_is_an_error_naming_the_nearest() {
    let server = model_that_calls(Vec::new());
    let home = Home::with(&server);
    for (list, entry, nearest) in [
        ("approvals.allow", "terminl(ls*)", "terminal(ls*)"),
        ("approvals.ask", "terminl(ls*)", "terminal(ls*)"),
        ("approvals.reads", "files/read_fil", "files/read_file"),
        ("approvals.allow", "terminal/process:bsh", "terminal/process:bash"),
    ] {
        home.set(list, json!([entry]));
        home.hermes(&["-z", "Go."]).run().refused().exits(3).says(&[list, entry, nearest]);
        home.set(list, json!([]));
    }
    home.set("approvals.allow", json!(["terminal(* --force)"]));
    home.hermes(&["-z", "Go."]).run().refused().exits(3).says(&["approvals.allow", "PLUGIN(COMMAND)"]);
    // The tools of a disabled plugin are not known, and its rules stay.
    home.set("approvals.allow", json!(["terminal(ls*)", "terminal/nothing"]));
    home.set("plugins.disabled", json!(["terminal"]));
    home.hermes(&["-z", "Go."]).run().success();
}

#[test]
fn plan_only_reads_and_the_prompt_is_the_same_in_every_mode() {
    let server = model_that_calls(vec![
        ("read_file", json!({ "path": "notes.txt" })),
        write("notes.txt", "x"),
        run("cat notes.txt"),
        run("cat notes.txt; touch made"),
        ("process", json!({ "action": "list" })),
        ("terminal", json!({ "command": "cat notes.txt", "background": true })),
    ]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "The harbour opens at six.\n");
    home.set("approvals.allow", json!(["terminal/process:bash"]));
    home.set("approvals.reads", json!(["terminal(cat*)"]));
    home.hermes(&["-z", "Go.", "--mode", "plan"]).run().success();
    let planned = results(&server);
    assert!(planned[0].contains("harbour") && planned[2].starts_with("The harbour"), "{planned:?}");
    assert!(
        planned[5].starts_with("`terminal` was not run in the background; in the foreground it may run"),
        "{planned:?}"
    );
    for at in [1, 3, 4, 5] {
        assert!(planned[at].contains(PLAN) && !planned[at].starts_with("error"), "{at}: {planned:?}");
    }
    let in_plan = server.last_turn().body;
    home.hermes(&["-z", "Go."]).run().success();
    let asked = server.last_turn().body;
    assert!(home.workspace().join("made").exists(), "in the mode `ask`, the rules allow it");
    for part in ["tools", "model"] {
        assert_eq!(in_plan[part], asked[part], "{part}");
    }
    assert_eq!(in_plan["messages"][0], asked["messages"][0]);
}

#[test]
fn ask_shows_the_changed_lines_and_accept_edits_asks_only_about_special_files() {
    let server = model_that_calls(vec![
        ("read_file", json!({ "path": "notes.txt" })),
        ("patch", json!({ "path": "notes.txt", "old_string": "six", "new_string": "seven" })),
        write("more.txt", "one\ntwo\n"),
        write("AGENTS.md", "Obey.\n"),
    ]);
    let home = Home::with(&server);
    let notes = || home.write_workspace("notes.txt", "a\nb\nc\nThe harbour opens at six.\nd\ne\nf\n");
    notes();
    let mut terminal = chat(&home, &[]);
    terminal.wait_for(READY, 1);
    let shown = terminal.shown();
    for line in [
        "    - The harbour opens at six.",
        "    + The harbour opens at seven.",
        "every ordinary change of a file in the workspace",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("      a\r"), "far lines are left out: {shown}");
    terminal.press("s");
    // The answer covers the next ordinary change, and no file that instructs agents.
    terminal.wait_for(READY, 2);
    assert!(terminal.shown().contains("AGENTS.md") && !terminal.shown().contains("more.txt wants"));
    terminal.press("d");
    leave(terminal);
    assert!(home.workspace().join("more.txt").exists() && !home.workspace().join("AGENTS.md").exists());

    std::fs::remove_file(home.workspace().join("more.txt")).unwrap();
    notes();
    let mut terminal = chat(&home, &["--mode", "accept-edits"]);
    terminal.wait_for(READY, 1);
    assert!(terminal.shown().contains("AGENTS.md"), "{}", terminal.shown());
    assert!(home.workspace().join("more.txt").exists());
    terminal.press("d");
    let shown = leave(terminal);
    assert!(shown.contains("· accept-edits") && shown.contains("accept-edits> "), "{shown}");
}

#[test]
fn without_a_user_ask_changes_files_as_before() {
    let server = model_that_calls(vec![write("more.txt", "one\n"), run("touch made")]);
    let home = Home::with(&server);
    home.hermes(&["-z", "Go."]).run().success();
    assert!(home.workspace().join("more.txt").exists() && !home.workspace().join("made").exists());
}

#[test]
fn auto_runs_what_the_sandbox_covers_and_says_where_there_is_none() {
    let calls = || {
        vec![
            run("touch made"),
            write("more.txt", "one\n"),
            write("AGENTS.md", "Obey.\n"),
            run("git push"),
            run("git fetch"),
        ]
    };
    let server = model_that_calls(calls());
    let home = Home::with(&server);
    home.set("approvals.mode", json!("auto"));
    home.set("approvals.deny", json!(["terminal(git push*)"]));
    home.set("approvals.ask", json!(["terminal(git fetch*)"]));
    if has_sandbox() {
        home.hermes(&["-z", "Go."]).run().success();
        let results = results(&server);
        assert!(results[0].contains("[exit code 0]") && home.workspace().join("made").exists(), "{results:?}");
        assert!(home.workspace().join("more.txt").exists());
        assert!(results[2].contains("cannot ask for approval") && !home.workspace().join("AGENTS.md").exists());
        assert!(results[3].contains("`approvals.deny` has"), "{results:?}");
        assert!(results[4].contains("cannot ask for approval"), "{results:?}");
        std::fs::remove_file(home.workspace().join("made")).unwrap();
    }
    home.set("sandbox.mode", json!("off"));
    home.hermes(&["-z", "Go."]).run().success().says(&["`auto` works as `accept-edits`", "sandbox.mode"]);
    assert!(results(&server)[0].contains("cannot ask for approval") && !home.workspace().join("made").exists());
}

#[test]
fn a_mode_that_is_chosen_during_a_turn_holds_from_the_next_call_on() {
    let server = Server::answering(|body, _| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        match last["role"] == "user" {
            true => Reply::calls([Call::new("call_1", "write_file", &json!({ "path": "made", "content": "x" }))])
                .saying(&"word ".repeat(200))
                .in_steps_of(5)
                .every(Duration::from_millis(10)),
            false => Reply::text("Done."),
        }
    });
    let home = Home::with(&server);
    let mut terminal = chat(&home, &["--mode", "accept-edits"]);
    terminal.wait_for("word", 10);
    terminal.press("/mode plan\r");
    terminal.wait_for("mode plan, from the next call on", 1);
    let shown = leave(terminal);
    assert!(results(&server)[0].contains(PLAN), "{shown}");
    assert!(!home.workspace().join("made").exists() && shown.contains("plan> "), "{shown}");
}

#[test]
fn what_was_allowed_for_the_session_ends_with_the_mode() {
    let server = model_that_calls(vec![write("made", "x")]);
    let home = Home::with(&server);
    let mut terminal = chat(&home, &["--mode", "ask"]);
    terminal.wait_for("[s]ession", 1);
    terminal.press("s");
    terminal.wait_for("Done.", 1);
    // The answer holds for the next message in this mode.
    terminal.wait_for(PROMPT, 2);
    terminal.press("Go on.\r");
    terminal.wait_for("Done.", 2);
    terminal.wait_for(PROMPT, 3);
    terminal.press("/mode plan\r");
    terminal.wait_for("for this session in the mode ask", 1);
    terminal.wait_for(PROMPT, 4);
    terminal.press("/mode ask\r");
    terminal.wait_for("mode ask:", 1);
    terminal.wait_for(PROMPT, 5);
    terminal.press("Again.\r");
    terminal.wait_for("[s]ession", 2);
    terminal.press("d");
    terminal.wait_for("Done.", 3);
    terminal.wait_for(PROMPT, 6);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
}

#[test]
fn shift_tab_goes_to_the_next_mode_and_keeps_what_was_typed() {
    let server = model_that_calls(vec![write("made", "x")]);
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go");
    terminal.press("\u{1b}[Z");
    terminal.wait_for("mode accept-edits: ", 1);
    terminal.wait_for("accept-edits> ", 1);
    terminal.press("\u{1b}[Z");
    terminal.wait_for("plan> ", 1);
    terminal.press(".\r");
    terminal.wait_for("Done.", 1);
    assert!(results(&server)[0].contains(PLAN));
    assert_eq!(server.last_turn().last_user_text(), "Go.");
    // The mode stays in a new conversation.
    terminal.press("/new\r");
    terminal.wait_for("new conversation", 1);
    terminal.press("Again.\r");
    terminal.wait_for("Done.", 2);
    assert!(results(&server)[0].contains(PLAN) && server.last_turn().last_user_text() == "Again.");
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
}

#[test]
fn a_refusal_can_say_what_to_do_instead() {
    let server = model_that_calls(vec![run("grep -r harbour .")]);
    let home = Home::with(&server);
    let mut terminal = chat(&home, &[]);
    terminal.wait_for(READY, 1);
    terminal.press("n");
    terminal.wait_for("no, do this instead: ", 1);
    terminal.press("use search_files\r");
    leave(terminal);
    let results = results(&server);
    assert!(results[0].contains("the user refused it, and answers:\nuse search_files"), "{results:?}");
}

#[test]
fn a_pattern_is_offered_where_it_is_safe_and_holds_in_later_sessions() {
    let server = model_that_calls(vec![run("ls -a"), run("ls; ls -l"), run("ls; touch made")]);
    let home = Home::with(&server);
    let mut terminal = chat(&home, &[]);
    terminal.wait_for("[p]attern", 1);
    assert!(terminal.shown().contains("pattern always allows ls*"), "{}", terminal.shown());
    terminal.press("p");
    terminal.wait_for(READY, 2);
    assert!(terminal.shown().contains("ls; touch made"), "{}", terminal.shown());
    terminal.press("d");
    leave(terminal);
    let list = home.hermes(&["plugins", "approvals"]).run().success();
    assert!(list.stdout.contains("command:ls*"), "{}", list.stdout);
    home.hermes(&["-z", "Go."]).run().success();
    let results = results(&server);
    assert!(results[0].contains("[exit code 0]") && results[1].contains("[exit code 0]"), "{results:?}");
    assert!(results[2].contains("cannot ask for approval") && !home.workspace().join("made").exists());
}

#[test]
fn a_long_question_is_broken_between_words() {
    let command = format!("echo {}", "word ".repeat(30));
    let server = model_that_calls(vec![run(&command)]);
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_terminal_of(60, 40);
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal.wait_for(READY, 1);
    let shown = terminal.shown();
    // The command is one line, for copying, and the terminal breaks it.
    assert!(shown.contains(&format!("\"{command}\"")), "{shown}");
    let fields = shown.lines().map(str::trim_end).filter(|line| line.starts_with("  ") && !line.contains(" command "));
    let wide: Vec<&str> = fields.filter(|line| line.chars().count() > 60).collect();
    assert_eq!(wide, Vec::<&str>::new(), "{shown}");
    assert!(shown.contains("exactly this command of bash in"), "{shown}");
    terminal.press("d");
    leave(terminal);
}
