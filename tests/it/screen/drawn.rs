//! The chat on a terminal that is drawn: Markdown while it streams, what runs, and an input that is always there.

use std::time::Duration;

use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::json;

const READY: &str = "— scripted-model";

fn begin(home: &Home, columns: u16) -> Terminal {
    let terminal = home.hermes(&[]).at_drawn_terminal(columns, 30);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

fn leave(mut terminal: Terminal) -> Vec<String> {
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.rows()
}

const PAGE: &str = "# Tea\n\nSome **bold** words with `code`, long enough to need more than one row of a narrow \
    terminal.\n\n- one\n- 漢字 two\n\n```rust\nlet tea = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";

/// What is between the greeting and the command that leaves.
fn conversation(rows: &[String]) -> String {
    let at = |text: &str| rows.iter().position(|row| row.contains(text));
    match (at("/help"), at("> /exit")) {
        (Some(begin), Some(end)) => rows[begin + 1..end].join("\n"),
        _ => panic!("no whole chat in {rows:#?}"),
    }
}

#[test]
fn a_reply_is_shown_as_markdown_at_every_width_and_nothing_is_torn() {
    let server = Server::answering(|_, _| Reply::text(PAGE).in_steps_of(3).every(Duration::from_millis(2)));
    for columns in [40, 60, 80, 200] {
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns);
        terminal.press("Tea?\r");
        terminal.wait_until(|rows| shows(rows, "─  ─") && shows(rows, READY) && !shows(rows, "ctrl-c stops"));
        let rows = leave(terminal);
        insta::assert_snapshot!(format!("markdown_{columns}"), conversation(&rows));
    }
}

#[test]
fn calls_show_what_they_did_at_every_width_and_a_key_shows_the_rest() {
    let server = Server::answering(|body, _| {
        let done = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
        let call = |name: &str, arguments| Reply::calls([Call::new(&format!("call{done}"), name, &arguments)]);
        match done {
            0 => call("terminal", json!({"command": "seq 1 20"})),
            1 => call("terminal", json!({"command": "echo 'a test failed: the sum is 12 and should be 13'; exit 3"})),
            2 => call(
                "patch",
                json!({"path": "cart.py", "old_string": "total = 1", "new_string": "total = 2\nmore = 3"}),
            ),
            3 => call("search_files", json!({"pattern": "total"})),
            4 => call("write_file", json!({"path": "other.py", "content": "x"})),
            _ => Reply::text("All of it is done."),
        }
    });
    let times = regex::Regex::new(r"\d+(\.\d)? m?s\b").unwrap();
    for columns in [40, 80, 200] {
        let home = Home::with(&server);
        home.write_workspace("cart.py", "total = 1\nrest = 2\n");
        home.set("approvals.allow", json!(["terminal/process:bash"]));
        home.set("approvals.deny", json!(["files/write_file"]));
        home.set("approvals.mode", json!("accept-edits"));
        let mut terminal = begin(&home, columns);
        terminal.press("Begin.\r");
        terminal.wait_until(|rows| shows(rows, "All of it is done.") && !shows(rows, "ctrl-c stops"));
        // The first command hides the most rows, and the last call that hides some is unfolded.
        terminal.press("\u{f}");
        terminal.wait_until(|rows| rows.iter().any(|row| row.trim() == "7"));
        let shown = conversation(&leave(terminal));
        insta::assert_snapshot!(format!("calls_{columns}"), times.replace_all(&shown, "TIME"));
    }
}

#[test]
fn without_colours_the_chat_is_drawn_all_the_same() {
    let server = Server::answering(|body, _| match body["messages"].as_array().map_or(0, Vec::len) {
        0..=2 => Reply::calls([Call::new("call", "read_file", &json!({"path": "missing.py"}))]),
        _ => Reply::text("Some **bold** words."),
    });
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).env("NO_COLOR", "1").at_drawn_terminal(80, 30);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal.press("Begin.\r");
    terminal.wait_until(|rows| shows(rows, "Some bold words.") && !shows(rows, "ctrl-c stops"));
    let rows = leave(terminal);
    assert!(shows(&rows, "× read_file missing.py"), "{rows:#?}");
}

/// What a terminal gets is the same but for the codes of colours.
#[test]
fn without_colours_no_code_of_a_colour_reaches_the_terminal() {
    let server = Server::answering(|_, _| Reply::text(PAGE));
    let colours = regex::Regex::new("\u{1b}\\[([0-9;]*;)?(3[1-6]|90)m").unwrap();
    let written = [("NO_COLOR", "1"), ("NO_COLOR", "")].map(|(name, value)| {
        let home = Home::with(&server);
        let mut terminal = home.hermes(&[]).env(name, value).at_drawn_terminal(80, 30);
        terminal.wait_until(|rows| shows(rows, READY));
        terminal.press("Tea?\r");
        terminal.wait_until(|rows| shows(rows, "─  ─") && !shows(rows, "ctrl-c stops"));
        terminal.press("/exit\r");
        assert!(terminal.wait().success());
        colours.is_match(&terminal.shown())
    });
    assert_eq!(written, [false, true]);
}

#[test]
fn what_is_typed_during_a_turn_stays_in_the_input_and_waits() {
    let slow = || Reply::text("word ".repeat(100)).in_steps_of(5).every(Duration::from_millis(10));
    let server = Server::answering(move |body, _| match body["messages"].as_array().map_or(0, Vec::len) {
        0..=2 => slow(),
        _ => Reply::text("Second answer."),
    });
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Begin.\r");
    terminal.wait_until(|rows| shows(rows, "word word"));
    terminal.press("one more");
    terminal.wait_until(|rows| shows(rows, "> one more"));
    terminal.press(" thing\r");
    let rows = terminal.wait_until(|rows| shows(rows, "Second answer."));
    let text: String = rows.iter().filter(|row| row.starts_with("word")).cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(text.split_whitespace().filter(|word| *word == "word").count(), 100, "{rows:#?}");
    leave(terminal);
    assert_eq!(home.messages()[2]["content"], "one more thing");
}

#[test]
fn a_line_that_waits_tears_no_reply() {
    let code: String = (0..30).map(|number| format!("let number_{number} = {number};\n")).collect();
    let page = format!("```rust\n{code}```\n{}", "one-long-word ".repeat(60));
    let server = Server::answering(move |body, _| match body["messages"].as_array().map_or(0, Vec::len) {
        0..=2 => Reply::text(page.clone()).in_steps_of(5).every(Duration::from_millis(30)),
        _ => Reply::text("Second answer."),
    });
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Begin.\r");
    for (shown, typed) in [("number_5", "first"), ("number_20", "second"), ("one-long-word one-", "third")] {
        terminal.wait_until(|rows| shows(rows, shown));
        terminal.press(&format!("{typed}\r"));
        terminal.wait_until(|rows| shows(rows, &format!("waits until the turn has ended: {typed}")));
    }
    let rows = terminal.wait_until(|rows| shows(rows, "> third") && !shows(rows, "ctrl-c stops"));
    leave(terminal);
    for number in 0..30 {
        assert!(rows.contains(&format!("  let number_{number} = {number};")), "{number} in {rows:#?}");
    }
    let words = rows.iter().flat_map(|row| row.split_whitespace()).filter(|word| *word == "one-long-word").count();
    assert_eq!(words, 60, "{rows:#?}");
}

#[test]
fn ctrl_c_clears_the_input_stops_a_turn_and_leaves_only_twice_at_an_empty_input() {
    let server =
        Server::answering(|_, _| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    for _ in 0..3 {
        terminal.press("a long text");
        terminal.wait_until(|rows| shows(rows, "> a long text"));
        terminal.press("\u{3}");
        terminal.wait_until(|rows| !shows(rows, "> a long text"));
    }
    // The cleared text can be had back.
    terminal.press("\u{1b}[A");
    terminal.wait_until(|rows| shows(rows, "> a long text"));
    terminal.press("\u{3}Begin.\r");
    terminal.wait_until(|rows| shows(rows, "word word"));
    terminal.press("kept");
    terminal.wait_until(|rows| shows(rows, "> kept"));
    terminal.press("\u{3}");
    terminal.wait_until(|rows| shows(rows, "stopped") && shows(rows, "> kept"));
    terminal.press("\u{3}");
    terminal.wait_until(|rows| !shows(rows, "> kept"));
    terminal.press("\u{3}");
    terminal.wait_until(|rows| shows(rows, "press ctrl-c again to leave"));
    terminal.press("\u{3}");
    let status = terminal.wait();
    assert!(status.success(), "{status}");
}

#[test]
fn a_paste_is_one_word_and_is_sent_whole() {
    let server = Server::answering(|_, _| Reply::text("Read."));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    let pasted = (1..=200).map(|line| format!("line {line}\r")).collect::<String>();
    terminal.press(&format!("\u{1b}[200~{pasted}\u{1b}[201~"));
    terminal.wait_until(|rows| shows(rows, "> [paste 1: 201 lines]"));
    terminal.press("\r");
    let rows = terminal.wait_until(|rows| shows(rows, "Read."));
    // Of a long message the begin is shown.
    assert!(shows(&rows, "  line 12") && shows(&rows, "… (188 lines more)") && !shows(&rows, "line 13"), "{rows:#?}");
    leave(terminal);
    let expected: String = (1..=200).map(|line| format!("line {line}\n")).collect();
    assert_eq!(home.messages()[0]["content"], expected.as_str());
}

#[test]
fn a_question_takes_the_keys_and_the_input_comes_back() {
    let server = Server::answering(|body, _| match body["messages"].as_array().map_or(0, Vec::len) {
        0..=2 => Reply::calls(vec![Call::new("c1", "terminal", &json!({ "command": "echo from-the-program" }))]),
        _ => Reply::text("It ran."),
    });
    for columns in [60, 80] {
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns);
        terminal.press("Run it.\r");
        terminal.wait_until(|rows| shows(rows, "[o]nce"));
        terminal.press_later("o");
        terminal.wait_until(|rows| shows(rows, "It ran.") && shows(rows, READY));
        let rows = leave(terminal);
        assert!(shows(&rows, "terminal echo from-the-program"), "{rows:#?}");
        // What was decided is not torn at the edge.
        assert!(shows(&rows, "allowed once"), "{rows:#?}");
    }
}

#[test]
fn nothing_of_a_reply_reaches_the_terminal_as_a_sequence() {
    let hostile = "a\u{1b}]0;owned\u{7}b &#27;[31mc\n\n```\n\u{1b}[2J\u{202e}d\n```\n[x](http://e\u{9b}31m)";
    let server = Server::answering(move |_, _| Reply::text(hostile).in_steps_of(1));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Go.\r");
    terminal.wait_until(|rows| shows(rows, "http://e") && !shows(rows, "ctrl-c stops"));
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
    let shown = terminal.shown();
    for sequence in ["\u{1b}]0", "\u{7}", "\u{1b}[31mc", "\u{1b}[2J", "\u{202e}", "\u{9b}"] {
        assert!(!shown.contains(sequence), "{sequence:?} in {shown:?}");
    }
}

#[test]
fn a_narrower_window_repeats_nothing_of_a_reply_that_has_not_ended() {
    let words: String = (0..400).map(|number| format!("word{number} ")).collect();
    let frames = words.len().div_ceil(40);
    let server = Server::answering(move |_, _| Reply::text(words.clone()).in_steps_of(40).hang_after(frames));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 120);
    terminal.press("Go.\r");
    terminal.wait_until(|rows| shows(rows, "word380"));
    terminal.resize(20, 30);
    // The line of what runs is drawn again and again.
    let before = terminal.shown().len();
    let until = std::time::Instant::now() + Duration::from_secs(600);
    while terminal.shown()[before..].matches("answering").count() < 10 {
        assert!(std::time::Instant::now() < until, "{}", terminal.shown());
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = terminal.shown()[before..].to_owned();
    assert_eq!(after.matches("word380").count(), 1, "{after:?}");
    // It fits the window: 29 rows of at most two words.
    assert!(after.matches("word").count() <= 58, "{after:?}");
    terminal.press("\u{3}");
    terminal.wait_for("stopped", 1);
    terminal.press("/exit\r");
    assert!(terminal.wait().success());
}

#[test]
fn a_list_that_streams_is_counted() {
    let text = "1. one\n1. two\n   - inner\n1. three\n";
    let server = Server::answering(move |_, _| Reply::text(text).in_steps_of(2).every(Duration::from_millis(5)));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Go.\r");
    terminal.wait_until(|rows| shows(rows, "three") && !shows(rows, "ctrl-c stops"));
    let rows = leave(terminal);
    assert!(["1. one", "2. two", "3. three"].iter().all(|item| shows(&rows, item)), "{rows:#?}");
}

#[test]
fn a_second_ctrl_c_in_haste_does_not_leave_the_chat() {
    let server =
        Server::answering(|_, _| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Begin.\r");
    terminal.wait_until(|rows| shows(rows, "word word"));
    terminal.press("\u{3}\u{3}");
    terminal.wait_until(|rows| shows(rows, "stopped"));
    terminal.press("still here");
    terminal.wait_until(|rows| shows(rows, "> still here"));
    terminal.press("\u{3}");
    leave(terminal);
}

#[test]
fn a_call_that_is_stopped_leaves_its_line() {
    let server = Server::answering(|_, _| {
        Reply::calls(vec![Call::new("c1", "terminal", &json!({ "command": "echo begun; sleep 600" }))])
    });
    let home = Home::with(&server);
    home.set("approvals.allow", json!(["terminal(echo *)", "terminal(sleep *)"]));
    let mut terminal = begin(&home, 80);
    terminal.press("Run it.\r");
    terminal.wait_until(|rows| shows(rows, "terminal echo begun"));
    terminal.press("\u{3}");
    terminal.wait_until(|rows| shows(rows, "■ terminal echo begun; sleep 600 … stopped"));
    leave(terminal);
}

#[test]
fn the_last_line_of_a_command_is_shown_while_it_runs_and_a_failed_turn_says_how_it_goes_on() {
    let command = "echo first-line; sleep 1; echo second-line; sleep 2";
    let server = Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        match messages.iter().any(|message| message["role"] == "tool") {
            true => Reply::error(401, "no"),
            false => Reply::calls(vec![Call::new("c1", "terminal", &json!({ "command": command }))]),
        }
    });
    let home = Home::with(&server);
    home.set("approvals.allow", json!(["terminal(echo *)", "terminal(sleep *)"]));
    let mut terminal = begin(&home, 80);
    terminal.press("Run it.\r");
    for line in ["first-line", "second-line"] {
        terminal.wait_until(|rows| shows(rows, &format!("terminal: {line} · ")));
    }
    terminal.wait_until(|rows| shows(rows, "\"continue\" goes on from here"));
    leave(terminal);
}

#[test]
fn the_code_of_an_error_is_not_torn_at_the_edge() {
    let server = Server::answering(|_, _| Reply::text(""));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Go.\r");
    let rows = terminal.wait_until(|rows| shows(rows, "fix: try again"));
    let at = rows.iter().position(|row| row.starts_with("error: the turn ended without an answer")).unwrap();
    assert_eq!(rows[at + 1], "       [session.empty-reply]");
    leave(terminal);
}

#[test]
fn keys_that_wait_for_the_end_of_a_turn_say_so() {
    let server =
        Server::answering(|_, _| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Begin.\r");
    terminal.wait_until(|rows| shows(rows, "word word"));
    terminal.press("\u{7}");
    terminal.wait_until(|rows| shows(rows, "ctrl-g opens the editor when nothing runs"));
    terminal.press("\u{4}");
    terminal.wait_until(|rows| shows(rows, "ctrl-c stops this; ctrl-d leaves when nothing runs"));
    terminal.press("\u{3}");
    terminal.wait_until(|rows| shows(rows, "stopped"));
    leave(terminal);
}

#[test]
fn ctrl_c_in_the_editor_does_not_end_the_chat() {
    let server = Server::answering(|_, _| Reply::text("Read."));
    let home = Home::with(&server);
    home.write_workspace("editor", "kill -INT $PPID; sleep 0.5; echo more >> \"$1\"");
    let editor = format!("sh {}", home.workspace().join("editor").display());
    let mut terminal = home.hermes(&[]).env("VISUAL", &editor).at_drawn_terminal(60, 30);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal.press("draft");
    terminal.wait_until(|rows| shows(rows, "> draft"));
    terminal.press("\u{7}");
    terminal.wait_until(|rows| shows(rows, "> draft") && shows(rows, "  more"));
    terminal.press("\r");
    terminal.wait_until(|rows| shows(rows, "Read."));
    leave(terminal);
    assert_eq!(home.messages()[0]["content"], "draft\nmore");

    for (editor, why) in [("no-such-editor", "no-such-editor cannot be started"), ("false", "false ended with exit")] {
        let mut terminal = home.hermes(&[]).env("VISUAL", editor).at_drawn_terminal(80, 30);
        terminal.wait_until(|rows| shows(rows, READY));
        terminal.press("draft\u{7}");
        terminal.wait_until(|rows| shows(rows, why) && shows(rows, "> draft"));
        terminal.press("\u{3}");
        leave(terminal);
    }
}

#[test]
fn a_signal_during_a_reply_stores_what_has_arrived_and_leaves_a_clean_terminal() {
    let server =
        Server::answering(|_, _| Reply::text("word ".repeat(20_000)).in_steps_of(5).every(Duration::from_millis(5)));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Begin.\r");
    terminal.wait_until(|rows| shows(rows, "word word"));
    terminal.terminate();
    assert_eq!(terminal.wait().code(), Some(143));
    let rows = terminal.rows();
    assert!(shows(&rows, "word word"), "{rows:#?}");
    for gone in [READY, "ctrl-c stops", "> \u{20}"] {
        assert!(!shows(&rows, gone), "{gone} in {rows:#?}");
    }
    assert_ne!(rows.last().map(String::as_str), Some(">"), "{rows:#?}");
    let kept = home.messages()[1]["content"].as_str().unwrap_or_default().to_owned();
    assert!(kept.starts_with("word word") && kept.len() < 50_000, "{kept}");
}

#[test]
fn a_signal_restores_the_terminal() {
    let server = Server::answering(|_, _| Reply::text("Read."));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("half a wo");
    terminal.wait_until(|rows| shows(rows, "> half a wo"));
    terminal.terminate();
    assert_eq!(terminal.wait().code(), Some(143));
    let (shown, rows) = (terminal.shown(), terminal.rows());
    // The prompt of the shell is below the text, not in the middle of what was drawn.
    assert!(!shows(&rows, "> half a wo") && !shows(&rows, READY), "{rows:#?}");
    // Pastes are not marked any more, and the cursor is shown.
    let end = shown.rfind("\u{1b}[?2004l").unwrap_or_else(|| panic!("{shown:?}"));
    assert!(shown[end..].contains("\u{1b}[?25h") && !shown[end..].contains("\u{1b}[?2004h"), "{shown:?}");
}

/// Two conversations: an old one with a title, and a newer one.
fn with_two_conversations() -> (Home, Server) {
    let server = Server::answering(|body, _| {
        let said = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        Reply::text(format!("You said {}.", said["content"].as_str().unwrap_or_default()))
    });
    let home = Home::with(&server);
    home.hermes(&["-z", "the harbour"]).run().success();
    let id = home.newest_session();
    home.hermes(&["sessions", "rename", &id, "Boats"]).run().success();
    home.hermes(&["-z", "green tea"]).run().success();
    (home, server)
}

#[test]
fn a_conversation_is_chosen_from_a_list_that_leaves_nothing_behind() {
    let (home, _server) = with_two_conversations();
    let mut terminal = begin(&home, 60);
    terminal.press("half");
    terminal.wait_until(|rows| shows(rows, "> half"));
    terminal.press("\u{3}/resume\r");
    let rows = terminal.wait_until(|rows| shows(rows, "2 · type to search"));
    let at = rows.iter().position(|row| row.contains("Which conversation?")).unwrap();
    let ages = regex::Regex::new("just now|[0-9]+ min ago").unwrap();
    insta::assert_snapshot!("picker", ages.replace_all(&rows[at..at + 5].join("\n"), "[AGE]"));
    // Escape changes nothing.
    terminal.press("\u{1b}");
    terminal.wait_until(|rows| !shows(rows, "Which conversation?"));
    terminal.press("/resume\r");
    terminal.wait_until(|rows| shows(rows, "Which conversation?"));
    terminal.press("boats har");
    terminal.wait_until(|rows| shows(rows, "1 of 2"));
    terminal.press("\r");
    terminal.wait_until(|rows| shows(rows, "You said the harbour.") && shows(rows, "· Boats · 2 messages"));
    terminal.press("and the quay\r");
    terminal.wait_until(|rows| shows(rows, "You said and the quay.") && !shows(rows, "ctrl-c stops"));
    let rows = leave(terminal);
    for gone in ["Which conversation?", "type to search", "> boats har", "green tea"] {
        assert!(!shows(&rows, gone), "{gone} in {rows:#?}");
    }
    let messages = home.messages();
    assert_eq!(messages.len(), 4, "{messages:#?}");
    assert_eq!((&messages[0]["content"], &messages[2]["content"]), (&json!("the harbour"), &json!("and the quay")));
}

#[test]
fn a_list_of_conversations_begins_with_those_of_this_folder_and_names_the_others_folders() {
    let (home, _server) = with_two_conversations();
    let folder = home.workspace().join("other");
    std::fs::create_dir(&folder).unwrap();
    home.hermes(&["-z", "elsewhere"]).current_dir(&folder).run().success();
    let mut terminal = home.hermes(&["--resume"]).at_drawn_terminal(100, 30);
    terminal.wait_until(|rows| shows(rows, "Which conversation?"));
    let rows = terminal.rows();
    let at = |text: &str| rows.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}: {rows:#?}"));
    assert!(at("this folder") < at("the harbour") && at("the harbour") < at("other folders"), "{rows:#?}");
    assert!(at("other folders") < at("elsewhere") && rows[at("elsewhere")].contains("/other"), "{rows:#?}");
    terminal.press("/other\r");
    terminal.wait_until(|rows| shows(rows, "You said elsewhere.") && shows(rows, "it works in"));
    leave(terminal);
}

#[test]
fn a_chat_begins_with_a_conversation_of_the_list() {
    let (home, _server) = with_two_conversations();
    let mut terminal = home.hermes(&["--resume"]).at_drawn_terminal(60, 30);
    terminal.wait_until(|rows| shows(rows, "Which conversation?"));
    terminal.press("\u{1b}[B\r");
    terminal.wait_until(|rows| shows(rows, "You said the harbour.") && shows(rows, READY));
    leave(terminal);
    let mut terminal = home.hermes(&["--resume"]).at_drawn_terminal(60, 30);
    terminal.wait_until(|rows| shows(rows, "Which conversation?"));
    terminal.press("\u{3}");
    assert_eq!(terminal.wait().code(), Some(1));
    assert!(shows(&terminal.rows(), "no conversation was chosen"));
    let refused = home.hermes(&["--resume"]).stdin("").run().exits(2);
    assert!(refused.stderr.contains("names no session") && refused.stderr.contains("--continue"), "{}", refused.stderr);
    home.hermes(&["-z", "tea", "--resume"]).run().exits(2);
    assert_eq!(home.sessions_json().len(), 2);
}

#[test]
fn a_model_is_chosen_from_the_list_of_the_provider() {
    let models = json!({"data": [{"id": "large-model"}, {"id": "scripted-model"}, {"id": "small-model"}]});
    let server = Server::answering(|_, _| Reply::text("Hello.")).with_models(models);
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("/model\r");
    terminal.wait_until(|rows| shows(rows, "Which model? Now: scripted-model") && shows(rows, "large-model"));
    terminal.press("small\r");
    terminal.wait_until(|rows| shows(rows, "— small-model"));
    terminal.press("hi\r");
    terminal.wait_until(|rows| shows(rows, "Hello.") && !shows(rows, "ctrl-c stops"));
    leave(terminal);
    assert_eq!(server.last_turn().body["model"], "small-model");
}

#[test]
fn the_live_line_tells_the_cost_and_drops_what_matters_least() {
    let slow = || Reply::text("word ".repeat(60)).in_steps_of(5).every(Duration::from_millis(60));
    let usage = |reply: Reply| reply.usage(10_000, 100).without_cache_counters();
    let server = Server::answering(move |body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
        match messages[since..].iter().any(|message| message["role"] == "tool") {
            true => usage(slow()),
            false => usage(Reply::calls([Call::new("c1", "search_files", &json!({ "pattern": "x" }))])),
        }
    });
    for (columns, shown, dropped) in [
        (100, &["100 tokens · $0.0208", "session $0.0", "context ", "ctrl-c stops"][..], &[][..]),
        (60, &["$0.0208", "ctrl-c stops"], &["session"]),
        (40, &["ctrl-c stops"], &["session", "tokens · $"]),
    ] {
        let home = Home::with(&server);
        home.set("model.provider", json!("openai"));
        home.set("model.api_mode", json!("chat_completions"));
        home.set("model.default", json!("gpt-4.1"));
        home.hermes(&["-z", "first"]).run().success();
        let mut terminal = home.hermes(&["--continue"]).at_drawn_terminal(columns, 30);
        terminal.wait_until(|rows| shows(rows, "— gpt-4.1"));
        terminal.press("again\r");
        // The second request of the turn streams: the first one has cost 2 cents.
        let is_second = |row: &String| row.contains("answering") && !row.contains("$0.0000");
        let rows = terminal.wait_until(|rows| rows.iter().any(is_second));
        let row = rows.iter().find(|row| is_second(row)).unwrap();
        assert!(shown.iter().all(|part| row.contains(part)), "{columns}: {row}");
        assert!(!dropped.iter().any(|part| row.contains(part)), "{columns}: {row}");
        terminal.press("\u{3}");
        terminal.wait_until(|rows| shows(rows, "stopped"));
        terminal.press("/usage\r");
        terminal.wait_until(|rows| shows(rows, "tokens in"));
        let rows = leave(terminal);
        assert!(rows.iter().all(|row| row.chars().count() < usize::from(columns)), "{columns}: {rows:#?}");
        assert!(shows(&rows, "openai/gpt-4.1"), "{rows:#?}");
    }
}

#[test]
fn painted_tables_are_broken_between_words_on_a_narrow_terminal() {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = Home::with(&server);
    for columns in [40, 60] {
        let mut terminal = begin(&home, columns);
        terminal.press("hi\r");
        terminal.wait_until(|rows| shows(rows, "Hello.") && !shows(rows, "ctrl-c stops"));
        terminal.press("/context\r");
        terminal.wait_until(|rows| shows(rows, "views ") && shows(rows, READY));
        let rows = leave(terminal);
        let text = rows.join("\n");
        // The last column stays free, and no word is in two rows.
        assert!(rows.iter().all(|row| row.chars().count() < usize::from(columns)), "{text}");
        for word in ["scripted-model", "compacts", "messages", "reserved for reply", "views"] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
    }
}

/// One write that the terminal did not take ended all drawing.
#[test]
fn a_terminal_that_takes_nothing_for_a_while_is_drawn_again_and_loses_nothing() {
    let server = Server::answering(|_, _| Reply::text("Read."));
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_impatient_terminal(60, 30);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal.hold(true);
    // More than a terminal keeps for somebody who does not read.
    terminal.press("!seq -f 'number %g of a long list' 2000\r");
    std::thread::sleep(Duration::from_secs(2));
    terminal.hold(false);
    terminal.wait_until(|rows| shows(rows, "exit code 0 · ") && shows(rows, READY));
    terminal.press("hi\r");
    terminal.wait_until(|rows| shows(rows, "Read.") && !shows(rows, "ctrl-c stops"));
    let rows = leave(terminal);
    let numbers: Vec<&str> = rows.iter().filter_map(|row| row.split("number ").nth(1)?.split(' ').next()).collect();
    let expected: Vec<String> = (1..=2_000).map(|number| number.to_string()).collect();
    // The first one is of the command itself.
    assert_eq!(numbers[1..], expected);
}

#[test]
fn a_resumed_chat_shows_the_first_lines_of_a_long_reply_and_what_prints_all() {
    let server =
        Server::answering(|_, _| Reply::text((1..=60).map(|line| format!("line {line}\n")).collect::<String>()));
    let home = Home::with(&server);
    home.hermes(&["-z", "Count."]).run().success();
    let command = format!("hermes sessions show {}", home.newest_session());
    for is_drawn in [true, false] {
        let chat = home.hermes(&["--continue"]);
        let mut terminal = if is_drawn { chat.at_drawn_terminal(80, 30) } else { chat.at_terminal_of(80, 30) };
        terminal.wait_for("> ", 2);
        terminal.press("/exit\r");
        assert!(terminal.wait().success(), "{}", terminal.shown());
        let rows = terminal.rows();
        assert!(shows(&rows, "line 12") && !shows(&rows, "line 13"), "{rows:#?}");
        assert!(shows(&rows, &format!("… 48 more lines; `{command}` prints all")), "{rows:#?}");
    }
    let all = home.hermes(&command.split(' ').skip(1).collect::<Vec<_>>()).run().success();
    assert!(all.stdout.contains("line 60"), "{all}");
}

#[test]
fn ctrl_r_searches_earlier_messages_also_on_a_narrow_terminal() {
    let server = Server::answering(|body, _| {
        let said = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        Reply::text(format!("Read {}.", said["content"].as_str().unwrap_or_default()))
    });
    for columns in [40, 80] {
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns);
        for text in ["sail to the harbour", "green tea", "walk to the harbour"] {
            terminal.press(&format!("{text}\r"));
            terminal.wait_until(|rows| shows(rows, &format!("Read {text}.")) && !shows(rows, "ctrl-c stops"));
        }
        let found = |rows: &[String], text: &str| {
            let at = rows.iter().position(|row| row.starts_with("search: "));
            at.is_some_and(|at| rows[at + 1] == format!("  {text}"))
        };
        terminal.press("draft\u{12}");
        terminal.wait_until(|rows| found(rows, "walk to the harbour"));
        terminal.press("EEN");
        // Two of the letters find it already.
        let is_typed = |rows: &[String]| rows.iter().position(|row| row == "search: EEN");
        let rows = terminal.wait_until(|rows| found(rows, "green tea") && is_typed(rows).is_some());
        let at = is_typed(&rows).unwrap();
        assert_eq!(rows[at + 2], "enter takes · ctrl-r older · esc leaves");
        assert!(!shows(&rows, "> draft"), "{rows:#?}");
        terminal.press("\u{1b}");
        terminal.wait_until(|rows| shows(rows, "> draft") && !shows(rows, "search: "));
        terminal.press("\u{12}harb\u{12}");
        terminal.wait_until(|rows| found(rows, "sail to the harbour"));
        terminal.press("\u{7}");
        terminal.wait_until(|rows| shows(rows, "> draft") && !shows(rows, "search: "));
        terminal.press("\u{12}harb\u{12}\r");
        terminal.wait_until(|rows| !shows(rows, "search: ") && !shows(rows, "> draft"));
        assert_eq!(home.messages().len(), 6);
        terminal.press(", please\r");
        terminal.wait_until(|rows| shows(rows, "Read sail to the harbour, please."));
        leave(terminal);
    }
}

#[test]
fn a_terminal_that_vanishes_without_a_signal_ends_the_chat() {
    let server = Server::answering(|_, _| Reply::text("Tea."));
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60);
    terminal.press("Tea?\r");
    terminal.wait_until(|rows| shows(rows, "Tea.") && shows(rows, READY));
    // It does not control the process, so closing it sends nothing.
    terminal.close();
    terminal.wait();
    let kept = home.hermes(&["sessions", "show", &home.newest_session()]).run().success();
    assert!(kept.stdout.contains("Tea."), "{kept}");
}
