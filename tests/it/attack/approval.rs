//! Commands that hide what they do from the user who is asked.

use hermes_tests::{Home, Server, Terminal};
use serde_json::{Value, json};

use super::chat::{chat, model_that_calls};

const READY: &str = "[n]o, but …  [d]eny (enter)? ";
const TO_VIEW: &str = "[v]iew all of it to allow it  [d]eny (enter)? ";

fn home_with_runner(server: &Server) -> Home {
    let home = Home::with(server);
    home.install_guest("runner", "runner", json!({}));
    home.set("memory.provider", json!("runner"));
    home
}

fn harmless(count: usize) -> String {
    "true; ".repeat(count)
}

/// `touch ran`, hidden from a reader of the short form.
fn hidden_command() -> Value {
    json!({"runs": [{"program": "sh", "arguments": ["-c", format!("{}touch ran; {}", harmless(400), harmless(400))]}]})
}

/// A conversation in which the user is asked about [`hidden_command`].
fn asked_to_view() -> (Server, Home, Terminal) {
    let server = model_that_calls("run", hidden_command());
    let home = home_with_runner(&server);
    let terminal = chat(&home);
    terminal.wait_for(TO_VIEW, 1);
    (server, home, terminal)
}

#[test]
fn no_yes_counts_while_a_part_of_the_command_is_hidden() {
    let (_server, home, mut terminal) = asked_to_view();
    assert!(!terminal.shown().contains("touch ran"));
    for (number, key) in ["o", "s", "a", "O"].into_iter().enumerate() {
        terminal.press(key);
        terminal.wait_for("view all of it first", number + 1);
        terminal.wait_for(TO_VIEW, number + 2);
    }
    terminal.press("\r");
    terminal.wait_for("Done.", 1);
    assert!(!home.workspace().join("ran").exists());
}

#[test]
fn after_all_pages_a_yes_counts() {
    let (_server, home, mut terminal) = asked_to_view();
    terminal.press("v");
    // 4,800 characters on a screen of 80 columns and 24 rows.
    for page in 1..3 {
        terminal.wait_for(&format!("page {page} of 3: "), 1);
        // A yes does not count between two pages.
        terminal.press("o");
        terminal.press_later(" ");
    }
    terminal.wait_for(READY, 1);
    let shown: String = terminal.shown().split_whitespace().collect();
    assert!(shown.contains("touchran") && !home.workspace().join("ran").exists());
    terminal.press("o");
    terminal.wait_for("Done.", 1);
    assert!(home.workspace().join("ran").exists());
}

#[test]
fn leaving_the_pages_is_a_no() {
    for key in ["d", "q", "\u{1b}", "\u{4}"] {
        let (_server, home, mut terminal) = asked_to_view();
        terminal.press("v");
        terminal.wait_for("page 1 of 3: ", 1);
        terminal.press(key);
        terminal.wait_for("denied", 1);
        terminal.wait_for("Done.", 1);
        assert!(!home.workspace().join("ran").exists(), "{key:?}");
    }
}

#[test]
fn ctrl_c_between_the_pages_stops_the_turn() {
    let (_server, home, mut terminal) = asked_to_view();
    terminal.press("v");
    terminal.wait_for("page 1 of 3: ", 1);
    terminal.press("\u{3}");
    terminal.wait_for("stopped", 1);
    assert!(!home.workspace().join("ran").exists());
}

#[test]
fn pasted_keys_neither_view_nor_allow() {
    let (_server, home, mut terminal) = asked_to_view();
    terminal.press("v    o");
    terminal.press("vvvvvvo\r");
    terminal.press_later("d");
    terminal.wait_for("denied", 1);
    terminal.wait_for("Done.", 1);
    assert!(!terminal.shown().contains("page 1 of") && !home.workspace().join("ran").exists());
}

#[test]
fn long_arguments_of_a_dangerous_tool_must_be_viewed_too() {
    let filler = "harmless ".repeat(300);
    let server = model_that_calls("wipe", json!({"note": format!("{filler}wipe everything {filler}")}));
    let home = home_with_runner(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(TO_VIEW, 1);
    assert!(!terminal.shown().contains("wipe everything"));
    terminal.press("o");
    terminal.wait_for("view all of it first", 1);
    terminal.press("d");
    terminal.wait_for("Done.", 1);
    let answered = server.last_turn();
    assert!(answered.trailing_results()[0].1.contains("the user refused it"));
}

#[test]
fn a_question_that_is_higher_than_the_screen_must_be_viewed() {
    // Nothing is left out, but the beginning would scroll away.
    let arguments: Vec<String> = (0..4).map(|at| format!("{at}{}", "x".repeat(1_000))).collect();
    let server = model_that_calls("run", json!({"runs": [{"program": "printf", "arguments": arguments}]}));
    let home = home_with_runner(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(TO_VIEW, 1);
    terminal.press("v");
    terminal.wait_for("page 1 of 3: ", 1);
    terminal.press(" ");
    terminal.wait_for("page 2 of 3: ", 1);
    terminal.press(" ");
    terminal.wait_for(READY, 1);
    terminal.press("d");
    terminal.wait_for("Done.", 1);
}

#[test]
fn after_a_change_of_the_terminals_size_the_question_is_asked_again() {
    let command = format!("touch ran; {}", "echo harmless text here; ".repeat(4));
    for (columns, rows) in [(40, 6), (10, 9)] {
        let arguments = json!({"runs": [{"program": "sh", "arguments": ["-c", command]}]});
        let server = model_that_calls("run", arguments);
        let home = home_with_runner(&server);
        let mut terminal = chat(&home);
        terminal.wait_for(READY, 1);
        terminal.resize(columns, rows);
        terminal.press("o");
        terminal.wait_for("the size of the terminal changed", 1);
        terminal.wait_for(TO_VIEW, 1);
        assert!(!home.workspace().join("ran").exists());
        terminal.press_later("v");
        terminal.wait_for("page 1 of ", 1);
        // A change between the pages counts too.
        terminal.resize(200, 50);
        while terminal.shown().matches(READY).count() < 2 {
            terminal.press_later(" ");
        }
        terminal.wait_for(READY, 2);
        terminal.press_later("o");
        terminal.wait_for("the size of the terminal changed", 2);
        terminal.wait_for(READY, 3);
        assert!(!home.workspace().join("ran").exists());
        terminal.press_later("o");
        terminal.wait_for("Done.", 1);
        assert!(home.workspace().join("ran").exists());
    }
}

#[test]
fn on_a_terminal_that_is_too_small_for_a_page_no_yes_counts() {
    let server = model_that_calls("run", json!({"runs": [{"program": "sh", "arguments": ["-c", "touch ran"]}]}));
    let home = home_with_runner(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    terminal.resize(80, 1);
    terminal.press("o");
    let too_small = "the terminal is too small to show all of it";
    terminal.wait_for(too_small, 1);
    for (number, key) in ["v", "o", "a"].into_iter().enumerate() {
        terminal.press_later(key);
        terminal.wait_for(too_small, number + 2);
    }
    terminal.press_later("d");
    terminal.wait_for("Done.", 1);
    assert!(!home.workspace().join("ran").exists());
}

#[test]
fn a_short_question_is_answered_at_once() {
    let server = model_that_calls("run", json!({"runs": [{"program": "sh", "arguments": ["-c", "touch ran"]}]}));
    let home = home_with_runner(&server);
    let mut terminal = chat(&home);
    terminal.wait_for(READY, 1);
    assert!(!terminal.shown().contains(TO_VIEW));
    terminal.press("o");
    terminal.wait_for("Done.", 1);
    assert!(home.workspace().join("ran").exists());
}

#[test]
fn unattended_a_hidden_command_is_refused() {
    let server = model_that_calls("run", hidden_command());
    let home = home_with_runner(&server);
    for output in [home.hermes(&["-z", "Go."]).run().success(), home.hermes(&[]).stdin("Go.\n").run().success()] {
        output.says(&["needs approval"]);
    }
    assert!(!home.workspace().join("ran").exists());
}
