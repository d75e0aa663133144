//! What the input of a chat takes beside messages: `!COMMAND`, and `@PATH` in a message.

use std::time::{Duration, Instant};

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::{Home, Reply, Server, Terminal};
use serde_json::json;

const READY: &str = "— scripted-model";
const TOLD: &str = "the model reads this with your next message";
/// Generous: the machine may be busy.
const LONG: Duration = Duration::from_secs(600);

fn begin(home: &Home) -> Terminal {
    let terminal = home.hermes(&[]).at_drawn_terminal(80, 30);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

fn leave(mut terminal: Terminal) {
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
}

/// A message of the log.
fn message(home: &Home, at: usize) -> String {
    home.messages()[at]["content"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_command_of_the_user_runs_at_once_and_the_model_reads_it_with_the_next_message() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = begin(&home);
    terminal.press("!echo \"sum $((40 + 2))\"; echo error >&2; touch made; false\r");
    terminal.wait_until(|rows| shows(rows, "sum 42") && shows(rows, "error") && shows(rows, TOLD));
    assert!(home.workspace().join("made").exists());
    assert!(server.requests().is_empty(), "a command needs no model");
    terminal.press("What was that?\r");
    terminal.wait_until(|rows| shows(rows, "I see.") && shows(rows, READY) && !shows(rows, "ctrl-c stops"));
    terminal.press("And now?\r");
    server.wait_for_finished(2);
    terminal.wait_until(|rows| !shows(rows, "ctrl-c stops"));
    leave(terminal);
    let said = message(&home, 0);
    assert!(said.starts_with("What was that?\n\nBefore this message, the user ran a command"), "{said}");
    let output =
        "```\n$ echo \"sum $((40 + 2))\"; echo error >&2; touch made; false\nsum 42\nerror\n[exit code 1]\n```";
    assert!(said.ends_with(output), "{said}");
    assert_eq!(message(&home, 2), "And now?", "it is told once");
    let turns = server.turns();
    assert_valid_request(&turns[1].body);
    assert_extends(&turns[0].body, &turns[1].body);
}

#[test]
fn ctrl_c_stops_a_command_with_everything_that_it_started_and_the_chat_goes_on() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = begin(&home);
    terminal.press("!echo begun; setsid sleep 600 & sleep 600\r");
    terminal.wait_until(|rows| shows(rows, "begun") && shows(rows, "! echo begun") && shows(rows, "ctrl-c stops"));
    terminal.press("\u{3}");
    terminal.wait_until(|rows| shows(rows, "stopped ·"));
    #[cfg(target_os = "linux")]
    {
        let until = Instant::now() + LONG;
        while !home.programs().is_empty() {
            assert!(Instant::now() < until, "alive: {:?}", home.programs());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    terminal.press("Go on.\r");
    terminal.wait_until(|rows| shows(rows, "I see."));
    leave(terminal);
    assert!(message(&home, 0).contains("begun\n[stopped]"), "{}", message(&home, 0));
}

#[test]
fn a_flood_of_output_can_be_stopped_and_the_input_stays_usable() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = begin(&home);
    terminal.press("!yes | head -n 20000000\r");
    // More than the model reads.
    terminal.wait_for("\ny", 20_000);
    terminal.press("\u{3}");
    terminal.wait_for("stopped", 1);
    terminal.press("Enough.\r");
    terminal.wait_for("I see.", 1);
    leave(terminal);
    let said = message(&home, 0);
    assert!(said.contains("bytes are left out]") && said.len() < 20 << 10, "{} bytes", said.len());
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_ends_with_hermes_at_a_signal() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = begin(&home);
    terminal.press("!trap '' TERM HUP; echo begun; sleep 600\r");
    terminal.wait_until(|rows| shows(rows, "begun") && shows(rows, "ctrl-c stops"));
    assert!(!home.programs().is_empty());
    terminal.terminate();
    let until = Instant::now() + LONG;
    while !home.programs().is_empty() {
        assert!(Instant::now() < until, "alive: {:?}", home.programs());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!terminal.wait().success());
}

#[test]
fn a_command_that_is_typed_during_a_turn_waits_for_its_end() {
    let server =
        Server::answering(|_, _| Reply::text("word ".repeat(100)).in_steps_of(5).every(Duration::from_millis(10)));
    for choice in ["steer", "interrupt"] {
        let home = Home::with(&server);
        home.set("input.while_busy", json!(choice));
        let mut terminal = begin(&home);
        terminal.press("Begin.\r");
        terminal.wait_until(|rows| shows(rows, "word word"));
        terminal.press("!echo later on\r");
        terminal.wait_until(|rows| shows(rows, "waits until the turn has ended: !echo later on"));
        terminal.wait_until(|rows| rows.iter().any(|row| row.trim() == "later on") && shows(rows, TOLD));
        leave(terminal);
        assert_eq!(home.messages().len(), 2, "{choice}");
    }
}

#[test]
fn a_file_is_completed_and_sent_with_the_message() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    home.write_workspace("src/main.rs", "fn main() {}\n");
    home.write_workspace("target/main.rs", "generated\n");
    home.write_workspace(".gitignore", "target\n");
    let mut terminal = begin(&home);
    terminal.press("see @ma");
    let rows = terminal.wait_until(|rows| shows(rows, "  @src/main.rs"));
    assert!(!shows(&rows, "@target/main.rs"), "{rows:#?}");
    terminal.press("\t");
    terminal.wait_until(|rows| shows(rows, "> see @src/main.rs"));
    terminal.press("and @nothing, me@src/main.rs\r");
    terminal.wait_until(|rows| shows(rows, "I see.") && shows(rows, "· attached src/main.rs, 13 bytes"));
    leave(terminal);
    let expected = "see @src/main.rs and @nothing, me@src/main.rs\n\nThe user attached the file `src/main.rs`:\n\
                    ```rs\nfn main() {}\n```";
    assert_eq!(message(&home, 0), expected);
}

/// A text as a terminal sends it that marks pastes.
fn pasted(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

#[test]
fn a_pasted_sign_is_text_also_when_it_is_recalled() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = begin(&home);
    terminal.press(&pasted("!touch made\nsecond"));
    terminal.press("\r");
    server.wait_for_finished(1);
    terminal.wait_until(|rows| shows(rows, "I see.") && !shows(rows, "ctrl-c stops"));
    terminal.press("\u{1b}[A");
    terminal.wait_until(|rows| rows.iter().filter(|row| row.contains("!touch made")).count() > 1);
    terminal.press("\r");
    server.wait_for_finished(2);
    terminal.wait_until(|rows| !shows(rows, "ctrl-c stops"));
    leave(terminal);
    assert!(!home.workspace().join("made").exists());
    assert_eq!(
        (message(&home, 0), message(&home, 2)),
        ("!touch made\nsecond".to_owned(), "!touch made\nsecond".to_owned())
    );
}

#[test]
fn a_pasted_sign_is_text_during_a_turn() {
    let server =
        Server::answering(|_, _| Reply::text("word ".repeat(100)).in_steps_of(5).every(Duration::from_millis(10)));
    for choice in ["queue", "interrupt", "steer"] {
        let home = Home::with(&server);
        home.set("input.while_busy", json!(choice));
        let mut terminal = begin(&home);
        terminal.press("Begin.\r");
        terminal.wait_until(|rows| shows(rows, "word word"));
        terminal.press(&pasted("!touch made"));
        terminal.press("\r");
        let until = Instant::now() + LONG;
        while !server.turns().iter().any(|turn| turn.body.to_string().contains("!touch made")) {
            assert!(Instant::now() < until, "{choice}: it never reaches the model: {}", terminal.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
        terminal.wait_until(|rows| !shows(rows, "ctrl-c stops"));
        leave(terminal);
        assert!(!home.workspace().join("made").exists(), "{choice}");
    }
}

#[test]
fn a_command_with_a_folded_paste_runs_after_it_was_shown() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = begin(&home);
    terminal.press("!");
    terminal.press(&pasted(&format!("echo one\n{}touch made", "true\n".repeat(8))));
    terminal.wait_until(|rows| shows(rows, "![paste 1: 10 lines]"));
    terminal.press("\r");
    terminal.wait_until(|rows| {
        shows(rows, "enter runs all of it") && shows(rows, "  !echo one") && shows(rows, "  touch made")
    });
    assert!(!home.workspace().join("made").exists());
    terminal.press("\r");
    terminal.wait_until(|rows| shows(rows, TOLD));
    assert!(home.workspace().join("made").exists());
    leave(terminal);
}

#[test]
fn a_plain_terminal_knows_pastes_too_and_a_dumb_one_runs_nothing() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for("> ", 1);
    terminal.press(&pasted("!touch made"));
    terminal.press("\r");
    terminal.wait_for("I see.", 1);
    assert!(!home.workspace().join("made").exists());
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    assert_eq!(server.last_turn().last_user_text(), "!touch made");

    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for("> ", 1);
    terminal.press("!");
    terminal.press(&pasted("touch made"));
    terminal.press("\r");
    terminal.wait_for(TOLD, 1);
    assert!(home.workspace().join("made").exists());
    terminal.press("/exit\r");
    assert!(terminal.wait().success());

    let mut terminal = home.hermes(&[]).env("TERM", "dumb").at_terminal();
    terminal.wait_for("> ", 1);
    terminal.press("!touch other\r");
    terminal.wait_for("pasted ones", 1);
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    assert!(!home.workspace().join("other").exists());
}

/// The line editor reads all keys that have come, also those behind the end of a line. It once dropped them.
#[test]
fn a_plain_terminal_loses_no_line_that_came_with_another() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for("> ", 1);
    terminal.press("One.\rTwo.\r/exit\r");
    assert!(terminal.wait().success());
    let said: Vec<String> =
        home.messages().iter().filter(|it| it["role"] == "user").map(|it| it["content"].to_string()).collect();
    assert_eq!(said, ["\"One.\"", "\"Two.\""]);
}

#[test]
fn a_plain_terminal_has_both_and_a_pipe_runs_nothing() {
    let server = Server::answering(|_, _| Reply::text("I see."));
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "The harbour opens at six.\n");
    std::fs::write(home.user().join("key"), "secret").expect("a file outside");
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for("> ", 1);
    terminal.press("!cat notes.txt\r");
    terminal.wait_for(TOLD, 1);
    assert!(terminal.shown().contains("\nThe harbour opens at six.\r"), "{}", terminal.shown());
    let outside = home.user().join("key").display().to_string();
    terminal.press(&format!("Read @notes.txt and @{outside}\r"));
    terminal.wait_for("I see.", 1);
    terminal.wait_for("> ", 3);
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    assert!(
        terminal.shown().contains("not attached: ") && terminal.shown().contains("is outside of the session's folder")
    );
    let said = message(&home, 0);
    assert!(said.contains("$ cat notes.txt\nThe harbour") && said.contains("attached the file `notes.txt`"), "{said}");
    assert!(!said.contains("secret"), "{said}");

    home.hermes(&[]).stdin("!touch made\nRead @notes.txt\n").run().success();
    assert!(!home.workspace().join("made").exists());
    let asked = server.last_turn();
    assert_eq!(asked.last_user_text(), "Read @notes.txt");

    let mut terminal = home.hermes(&["!touch made"]).at_terminal();
    terminal.wait_for("I see.", 1);
    terminal.wait_for("> ", 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    assert!(!home.workspace().join("made").exists(), "an argument is a message");
}
