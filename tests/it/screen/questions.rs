//! Questions on a terminal that is drawn: they stand in place of the input, and one line stays of each.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::{Value, json};

const READY: &str = "— scripted-model";
const KEYS: &str = "[d]eny (enter)?";

/// A model that makes one call for the first message and says what came of it.
fn model_that_calls(name: &'static str, arguments: Value) -> Server {
    Server::answering(move |body, _| reply(body, name, &arguments))
}

fn reply(body: &Value, name: &str, arguments: &Value) -> Reply {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last = messages.last().cloned().unwrap_or_default();
    match last["role"].as_str() {
        Some("tool") => Reply::text("It is done."),
        _ if last["content"].as_str().is_some_and(|text| text.starts_with("Go")) => {
            Reply::calls(vec![Call::new("c1", name, arguments)])
        }
        _ => Reply::text("Read."),
    }
}

fn runs(command: &str) -> Server {
    model_that_calls("terminal", json!({ "command": command }))
}

fn begin(home: &Home, columns: u16, rows: u16) -> Terminal {
    let mut terminal = home.hermes(&[]).at_drawn_terminal(columns, rows);
    terminal.wait_until(|rows| shows(rows, READY));
    terminal.press("Go.\r");
    terminal
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

/// Presses a key when it counts: until then, and after each other key, the prompt is faint.
fn answer(terminal: &mut Terminal, key: &str) {
    terminal.wait_until_faint(KEYS, false);
    terminal.press(key);
}

/// The line below a long question that says which rows are shown.
fn place(rows: &[String]) -> Option<String> {
    rows.iter().rfind(|row| row.starts_with("rows ")).cloned()
}

fn leave(mut terminal: Terminal) -> Vec<String> {
    terminal.wait_until(|rows| !shows(rows, "ctrl-c stops"));
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.rows()
}

/// The result of the only call.
fn result(server: &Server) -> String {
    let results = server.last_turn();
    let results = results.trailing_results();
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].1.to_owned()
}

/// Whether a row says what runs.
fn is_live(row: &str) -> bool {
    row.starts_with(|character| ('\u{2800}'..='\u{28ff}').contains(&character))
}

/// What is between the live line and the status.
fn region(rows: &[String]) -> String {
    let at = rows.iter().rposition(|row| is_live(row));
    let rows = &rows[at.unwrap_or_else(|| panic!("no live line in {rows:#?}")) + 1..];
    let status = rows.iter().rposition(|row| row.contains(READY)).unwrap_or(rows.len());
    rows[..status].join("\n")
}

const COMMAND: &str = "echo 'one  two' three four five; echo six seven eight nine ten eleven twelve";

#[test]
fn a_question_is_drawn_below_the_live_line_at_every_width_and_one_line_stays() {
    let server = runs(COMMAND);
    for columns in [40, 80, 200] {
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns, 40);
        // The folder of the test has another length each time, so only the command is compared.
        let rows = terminal.wait_until(|rows| shows(rows, "twelve") && shows(rows, KEYS));
        assert!(rows.iter().all(|row| row.chars().count() < usize::from(columns)), "{rows:#?}");
        let shown = region(&rows);
        let end = shown.find("\n  program").unwrap_or_else(|| panic!("{shown}"));
        let keys = shown.rfind("[o]nce").unwrap_or_else(|| panic!("{shown}"));
        insta::assert_snapshot!(format!("question_{columns}"), format!("{}\n  …\n{}", &shown[..end], &shown[keys..]));
        answer(&mut terminal, "o");
        terminal.wait_until(|rows| shows(rows, "It is done."));
        let rows = leave(terminal);
        assert!(!shows(&rows, "[o]nce") && !shows(&rows, "wants to run"), "{rows:#?}");
        let text = rows.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("approval: allowed once · run bash -c \"echo 'one two' three"), "{rows:#?}");
        assert!(result(&server).contains("one  two three"), "{}", result(&server));
    }
}

#[test]
fn what_is_typed_when_a_question_appears_stays_in_the_input_and_answers_nothing() {
    let server = Server::answering(|body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let last = messages.last().cloned().unwrap_or_default();
        match (last["role"].as_str(), last["content"].as_str()) {
            (Some("user"), Some("Go.")) => {
                Reply::calls(vec![Call::new("c1", "terminal", &json!({ "command": "echo it-ran" }))])
                    .saying(&"word ".repeat(30))
                    .in_steps_of(5)
                    .every(Duration::from_millis(20))
            }
            (Some("tool"), _) => Reply::text("It is done."),
            _ => Reply::text("Read."),
        }
    });
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60, 30);
    terminal.wait_until(|rows| shows(rows, "word word"));
    // All of these letters answer, and so does Enter. A person types without a pause.
    let words = terminal.press_until("so ", |rows| shows(rows, "[o]nce"));
    let mut typed = "so ".repeat(words);
    terminal.press("and on\rsoap");
    typed.push_str("and on");
    terminal.wait_until(|rows| shows(rows, "soap"));
    // The question is asked still, nothing was sent, and the input is there below it.
    terminal.wait_until_faint(KEYS, false);
    assert!(!shows(&terminal.rows(), "this waits"), "{:#?}", terminal.rows());
    // A paste is no answer either, also if it is a single letter.
    terminal.press("\u{1b}[200~o\u{1b}[201~");
    terminal.wait_until(|rows| shows(rows, "soapo"));
    answer(&mut terminal, "o");
    terminal.wait_until(|rows| shows(rows, "It is done.") && shows(rows, "soapo"));
    // Sent as it was typed.
    terminal.press("\r");
    terminal.wait_until(|rows| shows(rows, "Read."));
    leave(terminal);
    let sent = home.messages().iter().rev().find(|message| message["role"] == "user").cloned().unwrap_or_default();
    assert_eq!(sent["content"], format!("{typed}\nsoapo").as_str());
}

#[test]
fn a_long_change_is_read_page_by_page_before_it_can_be_allowed() {
    let text: String = (1..=60).map(|line| format!("line {line} of it\n")).collect();
    for columns in [40, 80, 200] {
        let server = model_that_calls("write_file", json!({ "path": "long.txt", "content": text }));
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns, 20);
        terminal.wait_until(|rows| shows(rows, "line 1 of it") && shows(rows, "space for more"));
        answer(&mut terminal, "o");
        let mut shown = terminal.wait_until(|rows| shows(rows, "first view all of it"));
        let mut pages = 1;
        while !shows(&shown, "[o]nce") {
            pages += 1;
            assert!(pages < 20, "{shown:#?}");
            terminal.press(" ");
            let before = place(&shown);
            shown = terminal.wait_until(|rows| place(rows) != before);
        }
        assert!(pages > 3, "{pages} pages for 60 lines on 20 rows");
        assert!(shows(&shown, "+ line 60 of it") && !shows(&shown, "+ line 1 of it"), "{shown:#?}");
        // Upwards again, which changes nothing.
        terminal.press("\u{1b}[H");
        terminal.wait_until(|rows| shows(rows, "+ line 1 of it"));
        answer(&mut terminal, "o");
        terminal.wait_until(|rows| shows(rows, "It is done."));
        let rows = leave(terminal);
        assert_eq!(std::fs::read_to_string(home.workspace().join("long.txt")).unwrap(), text);
        assert!(shows(&rows, "approval: allowed once") && !shows(&rows, "line 37 of it"), "{rows:#?}");
    }
}

#[test]
fn a_new_size_of_the_terminal_draws_the_question_again_and_a_hidden_part_must_be_read() {
    let server = runs(COMMAND);
    let home = Home::with(&server);
    let mut terminal = begin(&home, 80, 30);
    terminal.wait_until(|rows| shows(rows, "[o]nce"));
    terminal.press("half");
    terminal.wait_until(|rows| shows(rows, "> half"));
    terminal.wait_until_faint(KEYS, false);
    terminal.resize(50, 9);
    terminal.wait_for("[v]iew all of it", 1);
    // On nine rows a part is hidden, so this is no yes.
    terminal.press_later("o");
    terminal.wait_for("first view all of it", 1);
    let asked = terminal.shown().matches("[o]nce").count();
    terminal.resize(80, 30);
    terminal.wait_for("[o]nce", asked + 1);
    terminal.press_later("s");
    terminal.wait_for("allowed for this session", 1);
    terminal.wait_for("It is done.", 1);
    terminal.press("\u{15}/exit\r");
    assert!(terminal.wait().success());
    assert!(result(&server).contains("one  two three"));
}

#[test]
fn no_but_takes_a_line_and_escape_leads_back_to_the_keys() {
    let server = runs("echo it-ran");
    let home = Home::with(&server);
    let mut terminal = begin(&home, 80, 30);
    terminal.wait_until(|rows| shows(rows, "[o]nce"));
    answer(&mut terminal, "n");
    terminal.wait_until(|rows| shows(rows, "no, do this instead:"));
    terminal.press("\u{1b}");
    terminal.wait_until(|rows| shows(rows, "[o]nce"));
    answer(&mut terminal, "n");
    terminal.wait_until(|rows| shows(rows, "no, do this instead:"));
    terminal.press("use make, so");
    terminal.wait_until(|rows| shows(rows, "> use make, so"));
    terminal.press("\r");
    terminal.wait_until(|rows| shows(rows, "It is done."));
    let rows = leave(terminal);
    assert!(shows(&rows, "approval: denied · run ") && shows(&rows, "· the model reads: use make, so"), "{rows:#?}");
    assert!(!shows(&rows, "no, do this instead"), "{rows:#?}");
    assert!(result(&server).contains("use make, so"), "{}", result(&server));
}

#[test]
fn ctrl_c_in_a_question_stops_the_turn_and_the_input_stays() {
    let server = runs("echo it-ran > made.txt");
    for columns in [40, 80] {
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns, 30);
        terminal.wait_until(|rows| shows(rows, "[o]nce"));
        terminal.press("kept");
        terminal.wait_until(|rows| shows(rows, "> kept"));
        terminal.press("\u{3}");
        terminal.wait_until(|rows| rows.iter().any(|row| row == "stopped"));
        let rows = terminal.rows();
        assert!(!shows(&rows, "[o]nce") && shows(&rows, "> kept"), "{rows:#?}");
        terminal.press("\u{3}");
        let rows = leave(terminal);
        assert!(shows(&rows, "approval: not answered"), "{rows:#?}");
        assert!(!home.workspace().join("made.txt").exists());
    }
}

#[test]
fn a_signal_in_a_question_restores_the_terminal() {
    let server = runs("echo it-ran");
    let home = Home::with(&server);
    let mut terminal = begin(&home, 60, 30);
    terminal.wait_until(|rows| shows(rows, "[o]nce"));
    terminal.terminate();
    assert_eq!(terminal.wait().code(), Some(143));
    let shown = terminal.shown();
    let end = shown.rfind("\u{1b}[?2004l").unwrap_or_else(|| panic!("{shown:?}"));
    assert!(shown[end..].contains("\u{1b}[?25h"), "{shown:?}");
}

#[test]
fn every_key_but_a_yes_denies() {
    for key in ["d", "\r", "\u{1b}", "\u{4}"] {
        let server = runs("echo it-ran > made.txt");
        let home = Home::with(&server);
        let mut terminal = begin(&home, 60, 30);
        terminal.wait_until(|rows| shows(rows, "[o]nce"));
        answer(&mut terminal, key);
        terminal.wait_until(|rows| shows(rows, "It is done."));
        let rows = leave(terminal);
        assert!(shows(&rows, "approval: denied · "), "{key:?}: {rows:#?}");
        assert!(!home.workspace().join("made.txt").exists(), "{key:?}");
    }
}

/// A model that asks when the sender is dropped.
fn clarifies(may_ask: Receiver<()>) -> Server {
    let choices = ["staging", "production, with a backup of the database before anything changes", "nowhere"];
    let arguments = json!({ "question": "Where does it go?\nIt is late.", "choices": choices });
    let may_ask = Mutex::new(may_ask);
    Server::answering(move |body, _| {
        let _ = may_ask.lock().unwrap().recv();
        reply(body, "clarify", &arguments)
    })
}

#[test]
fn a_question_of_the_model_is_answered_with_arrows_a_number_or_other_words() {
    for (columns, keys, answer) in [
        (40, "\u{1b}[B", "staging"),
        (80, "3", "nowhere"),
        (200, "to the \u{6f22}\u{5b57} server", "to the \u{6f22}\u{5b57} server"),
    ] {
        let (asks, may_ask) = channel();
        let server = clarifies(may_ask);
        let home = Home::with(&server);
        let mut terminal = begin(&home, columns, 30);
        terminal.wait_until(|rows| rows.iter().any(|row| is_live(row)));
        terminal.press("1");
        terminal.wait_until(|rows| shows(rows, "> 1"));
        drop(asks);
        terminal.wait_until(|rows| shows(rows, "3) nowhere"));
        // The question has the keys now.
        terminal.wait_until_faint("> 1", true);
        let rows = terminal.rows();
        assert!(rows.iter().all(|row| row.chars().count() < usize::from(columns)), "{rows:#?}");
        insta::assert_snapshot!(format!("clarify_{columns}"), region(&rows));
        // Nothing is chosen yet.
        terminal.press("\r");
        terminal.press_later(keys);
        terminal.press_later("\r");
        terminal.wait_until(|rows| shows(rows, "It is done.") && shows(rows, "> 1"));
        terminal.press("\u{15}");
        let rows = leave(terminal);
        let text = rows.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!("asked: Where does it go? It is late. · {answer}")), "{rows:#?}");
        let result: Value = serde_json::from_str(&result(&server)).unwrap();
        assert_eq!(result["user_response"], answer);
    }
}

/// A model that delegates two tasks at once, whose subagents each run a program.
fn delegates() -> Server {
    Server::answering(|body, _| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let last = messages.last().cloned().unwrap_or_default();
        let said = messages.iter().find(|message| message["role"] == "user").cloned().unwrap_or_default();
        let task = said["content"].as_str().unwrap_or_default().to_owned();
        let is_subagent = task.contains("[You are a subagent");
        match (is_subagent, last["role"].as_str()) {
            (_, Some("tool")) => Reply::text("It is done."),
            (true, _) => {
                let command = format!("echo {}", task.lines().next().unwrap_or_default());
                Reply::calls(vec![Call::new("c1", "terminal", &json!({ "command": command }))])
            }
            (false, _) => {
                let tasks = json!({ "tasks": ["first-task", "second-task"] });
                Reply::calls(vec![Call::new("d1", "delegate_task", &tasks)])
            }
        }
    })
}

#[test]
fn two_subagents_ask_one_after_the_other_and_a_line_stays_of_each() {
    let server = delegates();
    let home = Home::with(&server);
    let mut terminal = begin(&home, 80, 30);
    let mut answered = Vec::new();
    for (time, key) in [(0, "d"), (1, "o")] {
        let rows = terminal.wait_until(|rows| {
            rows.iter().filter(|row| row.starts_with("approval for ")).count() == time && shows(rows, "[o]nce")
        });
        let asked = rows.iter().find(|row| row.contains("  command  ")).cloned().unwrap_or_default();
        assert!(shows(&rows, " asks:") && !answered.contains(&asked), "{rows:#?}");
        answered.push(asked);
        answer(&mut terminal, key);
    }
    terminal.wait_until(|rows| shows(rows, "It is done."));
    let rows = leave(terminal);
    let records: Vec<&String> = rows.iter().filter(|row| row.starts_with("approval for ")).collect();
    assert!(records.len() == 2, "{rows:#?}");
    assert!(records[0].contains(": denied · ") && records[1].contains(": allowed once · "), "{records:?}");
}
