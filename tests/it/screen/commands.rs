//! Slash commands of a chat, line by line and on a terminal that is drawn.

use hermes_tests::{Home, Output, Reply, Server};
use serde_json::json;

const READY: &str = "— scripted-model";

/// A chat with these lines.
fn chat(home: &Home, arguments: &[&str], lines: &[&str]) -> Output {
    home.hermes(arguments).stdin(&format!("{}\n/exit\n", lines.join("\n"))).run()
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

/// A model that answers with what was said.
fn parrot() -> Server {
    Server::answering(|body, _| {
        let said = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        Reply::text(format!("You said {}.", said["content"].as_str().unwrap_or_default()))
    })
}

/// The roles and texts of the newest conversation.
fn log(home: &Home) -> Vec<String> {
    let messages = home.messages();
    messages.iter().map(|message| format!("{}: {}", message["role"], message["content"]).replace('"', "")).collect()
}

#[test]
fn retry_replaces_the_last_turn_also_one_that_failed() {
    let server = Server::answering(|_, number| match number {
        0 => Reply::text("First."),
        1 => Reply::error(400, "this is no good"),
        2 => Reply::text("Second."),
        _ => Reply::text("Better."),
    });
    let home = Home::with(&server);
    chat(&home, &[], &["one", "two", "/retry", "/retry"]).success();
    assert_eq!(log(&home), ["user: one", "assistant: First.", "user: two", "assistant: Better."]);
    // The model never sees the reply that was removed, or the message twice.
    let sent = server.last_turn().body["messages"].to_string();
    assert!(!sent.contains("Second.") && sent.matches("two").count() == 1, "{sent}");
}

#[test]
fn retry_sends_a_message_that_was_never_stored_and_keeps_the_turn_before() {
    let server = parrot();
    let home = Home::with(&server);
    // Longer than the window, so it is refused before it is stored.
    let long = "word ".repeat(300_000);
    let shown = chat(&home, &[], &["one", &long, "/retry"]);
    assert_eq!(shown.stderr.matches("session.message-too-long").count(), 2, "{}", shown.stderr);
    assert_eq!(log(&home), ["user: one", "assistant: You said one."]);
}

#[test]
fn a_conversation_is_named_left_and_continued_by_its_name_in_one_chat() {
    let server = parrot();
    let home = Home::with(&server);
    let lines = [
        "the harbour",
        "/title Harbour",
        "/title",
        "/new",
        "tea",
        "/resume harbor",
        "/resume Harbour",
        "and the boats",
    ];
    let shown = chat(&home, &[], &lines).success();
    assert!(
        shown.stdout.contains("has the title `Harbour` now") && shown.stdout.contains("title: Harbour"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.contains("did you mean `Harbour`?"), "{}", shown.stderr);
    assert_eq!(
        log(&home),
        [
            "user: the harbour",
            "assistant: You said the harbour.",
            "user: and the boats",
            "assistant: You said and the boats."
        ]
    );
    // The end of the conversation is shown again, and how to get back.
    assert_eq!(shown.stdout.matches("You said the harbour.").count(), 2, "{}", shown.stdout);
    assert!(shown.stdout.contains("· Harbour · 2 messages; `/resume ") && shown.stdout.contains(" leads back"));
    assert_eq!(home.sessions_json().len(), 2);
}

#[test]
fn a_conversation_that_cannot_be_opened_leaves_the_present_one_open() {
    let server = parrot();
    let home = Home::with(&server);
    home.hermes(&["-z", "tea"]).run().success();
    let held = home.newest_session();
    let mut other = home.hermes(&["--resume", &held]).talking().spawn();
    other.say("more tea");
    other.wait_for_stdout("more tea");
    let shown = chat(&home, &[], &["one", &format!("/resume {held}"), "two"]);
    assert!(shown.stderr.contains("[store.in-use]"), "{}", shown.stderr);
    assert!(shown.stdout.contains("You said two."), "{}", shown.stdout);
}

#[test]
fn an_export_is_a_new_file_that_can_be_imported() {
    let server = parrot();
    let home = Home::with(&server);
    home.write_workspace("taken.jsonl", "mine");
    let shown = chat(&home, &[], &["/export", "tea", "/export", "/export tea.jsonl", "/export taken.jsonl"]);
    assert!(shown.stderr.contains("nothing to export") && shown.stderr.contains("taken.jsonl exists already"));
    let id = home.newest_session();
    let read = |name: &str| std::fs::read_to_string(home.workspace().join(name)).unwrap();
    assert!(read(&format!("hermes-{id}.jsonl")).contains("You said tea."));
    assert_eq!(read("taken.jsonl"), "mine");
    let other = Home::new();
    let file = home.workspace().join("tea.jsonl");
    other.hermes(&["sessions", "import", file.to_str().unwrap()]).run().success();
    assert_eq!(other.sessions_json()[0]["id"], id.as_str());
}

#[test]
fn lists_are_shown_without_a_session() {
    let server = parrot();
    let home = Home::with(&server);
    let shown = chat(&home, &[], &["/plugins", "/memory", "/copy"]).success();
    for part in ["compressor", "engine", "lossless", "MEMORY.md", "provider"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert!(shown.stderr.contains("nothing was copied: only a terminal"), "{}", shown.stderr);
}

#[cfg(unix)]
#[test]
fn the_list_of_commands_fits_a_narrow_terminal_and_is_grouped() {
    let home = Home::with(&parrot());
    let mut terminal = home.hermes(&[]).at_drawn_terminal(60, 100);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal.press("/help\r");
    terminal.wait_until(|rows| shows(rows, "a backslash"));
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    let rows = terminal.rows();
    let begin = rows.iter().position(|row| row.contains("> /help")).unwrap();
    let end = rows.iter().position(|row| row.contains("> /exit")).unwrap();
    insta::assert_snapshot!(rows[begin..end].join("\n"));
}

#[cfg(unix)]
#[test]
fn the_last_reply_is_copied_and_retried_on_a_drawn_terminal() {
    let server = parrot();
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_drawn_terminal(60, 30);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal.press("tea\r");
    terminal.wait_until(|rows| shows(rows, "You said tea.") && !shows(rows, "ctrl-c stops"));
    terminal.press("/copy\r");
    terminal.wait_until(|rows| shows(rows, "copied the last reply, 13 characters"));
    // `You said tea.` in base64.
    assert!(terminal.shown().contains("\u{1b}]52;c;WW91IHNhaWQgdGVhLg==\u{7}"));
    terminal.press("/retry\r");
    terminal.wait_until(|rows| rows.iter().filter(|row| row.contains("You said tea.")).count() == 2);
    terminal.press("/memory\r");
    terminal.wait_until(|rows| shows(rows, "MEMORY.md"));
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    assert_eq!(log(&home), ["user: tea", "assistant: You said tea."]);
}

#[test]
fn tools_skills_and_servers_are_shown_before_the_first_message_and_after_it() {
    let server = parrot();
    let home = Home::with(&server);
    home.write(
        "skills/knots/SKILL.md",
        "---\nname: knots\ndescription: Ties bowlines and hitches.\n---\n\n# Knots\n\nLoop, then pull.\n",
    );
    home.set("mcp_servers.gone", json!({"command": "no-such-program"}));
    home.set("mcp_servers.resting", json!({"command": "no-such-program", "enabled": false}));
    home.set("approvals.deny", json!(["files/write_file"]));
    let lists = ["/tools", "/skills", "/mcp"];
    for lines in [&lists[..], &["tea", "/tools", "/skills", "/mcp"]] {
        let shown = chat(&home, &[], lines);
        let row = |begin: &str| {
            let row = shown.stdout.lines().find(|line| line.starts_with(begin));
            row.unwrap_or_else(|| panic!("{begin}: {}", shown.stdout)).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("read_file "), "read_file files reads");
        assert_eq!(row("patch "), "patch files changes");
        assert_eq!(row("write_file "), "write_file files is refused: `approvals.deny` has `files/write_file`");
        assert_eq!(row("skills_list "), "skills_list hermes reads");
        assert_eq!(row("skill_manage "), "skill_manage hermes asks you");
        assert_eq!(row("delegate_task "), "delegate_task hermes starts subagents");
        assert!(row("knots ").ends_with("Ties bowlines and hitches."));
        assert!(row("gone ").starts_with("gone - - failed: ") && row("gone ").contains("no-such-program"));
        assert_eq!(row("resting "), "resting - - off");
        assert!(shown.stdout.contains("mode ask: Hermes asks"), "{}", shown.stdout);
    }
    // Plan mode refuses what changes something. Nothing of this reached the model.
    let planned = |tool: &str| {
        let shown = chat(&home, &["--mode", "plan"], &["/tools"]).success();
        let row = shown.stdout.lines().find(|line| line.starts_with(&format!("{tool} ")));
        row.unwrap_or_else(|| panic!("{tool}: {}", shown.stdout))
            .split_whitespace()
            .skip(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(planned("patch"), "is refused: the mode is plan");
    assert_eq!(planned("skill_manage"), "is refused: the mode is plan");
    assert_eq!(planned("delegate_task"), "starts subagents", "which can only read in this mode");
    home.set("approvals.allow", json!(["hermes/files:skills"]));
    let shown = chat(&home, &[], &["/tools"]).success();
    assert!(shown.stdout.lines().any(|line| line.starts_with("skill_manage ") && line.ends_with("changes")), "{shown}");
    assert_eq!(server.turns().len(), 1);
}
