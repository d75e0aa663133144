//! Text of models, files and imports on a terminal: nothing controls it, reorders a line or is hidden.

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

/// Copies to the clipboard, sets the title, clears the screen, and reorders and hides text.
const HOSTILE: &str = "before \u{1b}]52;c;eA==\u{7}\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}3J\u{9d}0;owned\u{9c} \u{202e}gnp.exe\u{202c} \
                       \u{2066}x\u{2069} \u{200f}\u{61c} h\u{e0069}\u{e0064}den\u{8}\u{7f} after";
/// Ordinary text with joiners, selectors and a flag.
const ORDINARY: &str = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} می\u{200c}خواهم क्\u{200d}ष \u{2764}\u{fe0f} \
                        \u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}";

/// The screen has nothing of [`HOSTILE`] that a terminal would obey or hide. Hermes itself writes colours, and the sequences that
/// erase its temporary line.
#[track_caller]
fn assert_clean(shown: &str) {
    let odd = |character: &char| {
        matches!(character, '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{7}' | '\u{8}' | '\u{7f}')
    };
    let found: Vec<char> = shown.chars().filter(odd).collect();
    assert!(found.is_empty(), "{found:?} in {shown:?}");
    assert!(!shown.contains("\u{1b}]") && !shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}P"), "{shown:?}");
    let without_flags = shown.replace("\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}", "");
    assert!(!without_flags.contains(|character| matches!(character, '\u{e0000}'..='\u{e007f}')), "{shown:?}");
}

/// Runs a command on a terminal.
#[track_caller]
fn on_terminal(home: &Home, arguments: &[&str]) -> String {
    let mut terminal = home.hermes(arguments).at_terminal();
    terminal.wait();
    terminal.close();
    terminal.shown()
}

fn is_visible(shown: &str) {
    assert!(shown.contains(r"\u{202e}gnp.exe\u{202c}") && shown.contains(r"h\u{e0069}\u{e0064}den"), "{shown:?}");
    assert!(shown.contains(r"\u{9b}3J") && shown.contains("before") && shown.contains("after"), "{shown:?}");
}

#[test]
fn the_text_of_a_prompt_is_cleaned_on_a_terminal() {
    let server = Server::scripted([]);
    let home = Home::with(&server);
    home.write(
        "SOUL.md",
        format!("You are Hermes. {}", HOSTILE.replace('\u{202e}', "").replace("\u{e0069}\u{e0064}", "")),
    );
    home.write_workspace("AGENTS.md", "Use tabs. \u{1b}]52;c;eA==\u{7}\u{1b}]0;owned\u{7}\u{9b}2J\u{200f}\n");
    let skill = "---\nname: knots\ndescription: Ties\u{1b}]0;owned\u{7}\u{9b}2J\u{200f} knots.\n---\nText.\n";
    home.write("skills/knots/SKILL.md", skill);
    let shown = on_terminal(&home, &["prompt", "--text"]);
    assert_clean(&shown);
    assert!(shown.contains("Use tabs.") && shown.contains(r"\u{9b}2J\u{200f}"), "{shown:?}");
    // A script gets the exact text.
    let exact = home.hermes(&["prompt", "--text"]).run().success().stdout;
    assert!(exact.contains("\u{1b}]52;c;eA==\u{7}"), "{exact:?}");
    // Names and descriptions are in JSON too.
    let json = home.hermes(&["prompt", "--json"]).run().success().stdout;
    assert!(json.is_ascii() || !json.contains(|c: char| c.is_control() && c != '\n'), "{json:?}");
    assert_clean(&json);
    let text = serde_json::from_str::<Value>(&json).unwrap()["text"].as_str().unwrap().to_owned();
    assert_eq!(text.trim_end(), exact.trim_end());
}

#[test]
fn a_reply_is_cleaned_whatever_its_pieces() {
    for step in [1, 3, 1_000] {
        let server = Server::scripted([Reply::text(format!("{HOSTILE} {ORDINARY}")).in_steps_of(step)]);
        let home = Home::with(&server);
        let shown = on_terminal(&home, &["chat", "-q", "hello"]);
        assert_clean(&shown);
        is_visible(&shown);
        assert!(shown.contains(ORDINARY), "{shown:?}");
    }
}

#[test]
fn the_answer_of_a_script_is_cleaned_on_a_terminal_and_exact_in_a_pipe() {
    let server = Server::scripted([Reply::text(HOSTILE), Reply::text(HOSTILE)]);
    let home = Home::with(&server);
    let shown = on_terminal(&home, &["-z", "hello"]);
    assert_clean(&shown);
    is_visible(&shown);
    assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, format!("{HOSTILE}\n"));
}

#[test]
fn names_and_arguments_of_calls_are_cleaned() {
    let call = Call::new("call_1", &format!("read{HOSTILE}"), &json!({"path": HOSTILE}));
    let server = Server::scripted([Reply::calls([call]), Reply::text("Done.")]);
    let home = Home::with(&server);
    assert_clean(&on_terminal(&home, &["chat", "-q", "hello"]));
    assert_clean(&on_terminal(&home, &["sessions", "show", &home.newest_session()]));
}

#[test]
fn the_reasoning_is_cleaned() {
    let detail = json!({"type": "reasoning.text", "text": HOSTILE});
    let server = Server::scripted([Reply::text("Done.").thinking([detail])]);
    let home = Home::with(&server);
    home.set("display.show_reasoning", json!(true));
    assert_clean(&on_terminal(&home, &["chat", "-q", "hello"]));
}

#[test]
fn stored_messages_and_titles_are_cleaned_in_every_listing() {
    let server = Server::scripted([Reply::text(format!("{HOSTILE} {ORDINARY}"))]);
    let home = Home::with(&server);
    home.hermes(&["-z", &format!("lighthouse {HOSTILE}")]).run().success();
    let id = home.newest_session();
    home.hermes(&["sessions", "rename", &id, HOSTILE]).run().success();
    for arguments in [
        &["sessions", "list"][..],
        &["sessions", "show", &id],
        &["sessions", "search", "lighthouse"],
        &["sessions", "stats"],
        &["sessions", "delete", &id, "--dry-run"],
        &["context", &id],
        &["cache", &id],
        &["prompt", &id],
    ] {
        assert_clean(&on_terminal(&home, arguments));
    }
    let shown = on_terminal(&home, &["sessions", "show", &id]);
    is_visible(&shown);
    assert!(shown.contains(ORDINARY), "{shown:?}");
}

#[test]
fn json_escapes_everything_that_a_terminal_would_obey_or_hide() {
    let server = Server::scripted([Reply::text(HOSTILE)]);
    let home = Home::with(&server);
    home.hermes(&["-z", &format!("lighthouse {HOSTILE}")]).run().success();
    let id = home.newest_session();
    for arguments in [
        &["sessions", "list", "--json"][..],
        &["sessions", "show", &id, "--json"],
        &["sessions", "search", "lighthouse", "--json"],
        &["sessions", "delete", &id, "--dry-run", "--json"],
        &["sessions", "export", &id],
        &["context", &id, "--json"],
        &["cache", &id, "--json"],
        &["config", "show", "--json"],
        &["doctor", "--json"],
        &["plugins", "list", "--json"],
    ] {
        let output = home.hermes(arguments).run();
        assert_clean(&output.stdout);
        assert!(!output.stdout.contains(|c: char| c.is_control() && c != '\n'), "{arguments:?}: {output}");
        for line in output.stdout.lines().filter(|_| arguments[1] == "export") {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
    let shown = home.session_json(&id);
    assert_eq!(shown["messages"][1]["content"], HOSTILE);
}

#[test]
fn the_error_of_a_server_is_cleaned() {
    let server = Server::answering(|_, _| Reply::error(400, HOSTILE));
    let home = Home::with(&server);
    for arguments in [&["-z", "hello"][..], &["chat", "-q", "hello"], &["-z", "hello", "-v"]] {
        assert_clean(&on_terminal(&home, arguments));
    }
    assert_clean(&home.read("logs/hermes.log"));
}

#[test]
fn the_configuration_is_cleaned() {
    let server = Server::scripted([]);
    let home = Home::with(&server);
    home.set("prompt.system_message", json!(HOSTILE));
    for arguments in [
        &["config", "show"][..],
        &["config", "get", "prompt.system_message"],
        &["config", "show", "--json"],
        &["doctor"],
    ] {
        assert_clean(&on_terminal(&home, arguments));
    }
}

#[test]
fn a_chat_of_its_own_commands_shows_nothing_raw() {
    let server = Server::scripted([Reply::text("One."), Reply::text(HOSTILE)]);
    let home = Home::with(&server);
    home.hermes(&["-z", &format!("first {HOSTILE}")]).run().success();
    let id = home.newest_session();
    home.hermes(&["sessions", "rename", &id, HOSTILE]).run().success();
    let mut terminal = home.hermes(&["--resume", &id]).at_terminal();
    terminal.wait_for("> ", 1);
    for (number, line) in ["/context\r", "/model\r", "/rewind\r", "again\r"].into_iter().enumerate() {
        terminal.press(line);
        terminal.wait_for("> ", number + 2);
    }
    terminal.press("/exit\r");
    terminal.wait();
    // The line editor moves the cursor.
    let shown = terminal.shown();
    assert!(!shown.contains("\u{1b}]") && !shown.contains('\u{9b}') && !shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn the_log_of_a_plugin_and_a_damaged_line_in_it_are_cleaned() {
    let server = Server::scripted([]);
    let home = Home::with(&server);
    let line =
        json!({"time": "2026-11-22T10:00:00Z", "level": HOSTILE, "session": "s", "text": HOSTILE, HOSTILE: HOSTILE});
    home.write("logs/mine.jsonl", format!("{line}\n{HOSTILE}\n"));
    for arguments in [&["plugins", "logs", "mine"][..], &["plugins", "logs", "mine", "--json"]] {
        assert_clean(&on_terminal(&home, arguments));
        assert_clean(&home.hermes(arguments).run().success().stdout);
    }
}

#[test]
fn ctrl_c_stops_a_reply_that_arrives_faster_than_it_is_shown() {
    // Below the limit of a reply, with the bytes around each piece.
    const LENGTH: usize = 8 << 20;
    let server = Server::scripted([Reply::text("y".repeat(LENGTH)).in_steps_of(500)]);
    let home = Home::with(&server);
    let running = home.hermes(&["chat", "-q", "Go."]).spawn();
    running.wait_for_stdout("yyyy");
    running.interrupt();
    let output = running.wait();
    let shown = output.stdout.matches('y').count();
    assert!(shown < LENGTH / 2, "{shown} letters were shown");
}

#[test]
fn a_title_begins_no_row_of_a_list() {
    let server = Server::scripted([Reply::text("Hello.")]);
    let home = Home::with(&server);
    home.hermes(&["-z", "hello"]).run().success();
    let id = home.sessions_json()[0]["id"].as_str().unwrap().to_owned();
    for padding in ["x".repeat(20), "\u{2800}".repeat(20), "\u{3164}".repeat(37)] {
        let title = format!("{padding}20261122_101500_4b2854  2026-11-22 10:15  12 messages  Tax");
        home.hermes(&["sessions", "rename", &id, &title]).run().success();
        for columns in [40, 60, 80] {
            let mut terminal = home.hermes(&["sessions", "list"]).at_terminal_of(columns, 24);
            terminal.wait();
            terminal.close();
            let shown = terminal.shown();
            let is_head = |line: &&str| line.starts_with("session  ");
            let rows: Vec<&str> = shown.lines().filter(|line| !line.starts_with(' ') && !is_head(line)).collect();
            assert!(rows.len() == 1 && rows[0].starts_with(&id), "{shown}");
            assert!(shown.lines().all(|line| line.trim_end().chars().count() < columns.into()), "{shown}");
        }
        // A script gets one line.
        assert_eq!(home.hermes(&["sessions", "list"]).run().success().stdout.lines().count(), 1);
    }
}
