//! When a stored prompt is rebuilt: what is adopted, and what is kept.

use std::fs;

use hermes_tests::{Home, Output, Reply, Request, Server, is_auxiliary};
use serde_json::json;

use crate::fixtures::journal::long_text;
use crate::fixtures::workday;

const WINDOW: usize = 12_000;
const MEMORY: &str = "The user sails on Sundays.";

/// Answers so long that a small window fills quickly.
fn talkative() -> Server {
    Server::answering(|body, number| reply(is_auxiliary(body), number))
}

fn reply(auxiliary: bool, number: usize) -> Reply {
    match auxiliary {
        true => Reply::text("The user reports delays; the assistant counts them."),
        false => Reply::text(long_text("answer", number)).in_steps_of(400),
    }
}

/// Runs so many long turns in one process.
#[track_caller]
fn talk(home: &Home, turns: usize, more: &[&str]) -> Output {
    let lines: String = (0..turns).map(|number| format!("{}\n", long_text("turn", number))).collect();
    home.hermes(more).stdin(&lines).run().success()
}

/// The requests that are shorter than the previous one.
fn compactions(turns: &[Request]) -> Vec<usize> {
    (1..turns.len()).filter(|at| turns[*at].messages().len() < turns[at - 1].messages().len()).collect()
}

fn of_drift(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.contains("hermes prompt --rebuild")).collect()
}

/// A home with a memory, after one turn of a session.
fn remembering(server: &Server) -> Home {
    let home = Home::with(server);
    home.set("model.context_length", json!(WINDOW));
    home.write("memories/MEMORY.md", MEMORY);
    home.hermes(&["-z", "Begin."]).run().success();
    assert!(server.last_turn().system_text().contains(MEMORY));
    home
}

/// Makes the memory unreadable.
fn break_memory(home: &Home) {
    let file = home.path().join("memories/MEMORY.md");
    fs::remove_file(&file).and_then(|()| fs::create_dir(&file)).unwrap();
}

fn repair_memory(home: &Home) {
    fs::remove_dir(home.path().join("memories/MEMORY.md")).unwrap();
    home.write("memories/MEMORY.md", MEMORY);
}

#[test]
fn a_temporarily_unreadable_memory_stays_in_the_prompt() {
    let server = talkative();
    let home = remembering(&server);
    let first = server.last_turn();
    for (what, change) in [("while it cannot be read", break_memory as fn(&Home)), ("repaired", repair_memory)] {
        change(&home);
        let sent = server.turns().len();
        let output = talk(&home, 14, &["--continue"]);
        assert_eq!(of_drift(&output), [""; 0], "{what}: no drift\n{output}");
        let turns = server.turns().split_off(sent);
        let compacted = compactions(&turns);
        assert!(!compacted.is_empty(), "{what}: nothing was compacted");
        for request in &turns {
            assert_eq!(request.system_text(), first.system_text(), "{what}, compacted in {compacted:?}");
        }
    }
}

#[test]
fn a_rebuild_keeps_unreadable_layers_and_says_so() {
    let server = talkative();
    let home = remembering(&server);
    let id = home.newest_session();
    break_memory(&home);
    workday::add_skill(&home);
    let output = home.hermes(&["prompt", "--rebuild", &id]).run().success();
    let (changed, other): (Vec<&str>, Vec<&str>) = output.stderr.lines().partition(|line| line.contains("changed:"));
    assert!(changed.len() == 1 && changed[0].contains("skills") && !changed[0].contains("memory"), "{output}");
    assert!(other.iter().any(|line| line.contains("MEMORY.md") || line.contains("builtin")), "not reported\n{output}");
    home.hermes(&["-z", "Go on.", "--continue"]).run().success();
    let prompt = server.last_turn().system_text();
    assert!(prompt.contains(MEMORY) && prompt.contains("How to tie a bowline."), "{prompt}");

    // A readable but empty memory is dropped.
    repair_memory(&home);
    home.write("memories/MEMORY.md", "");
    home.hermes(&["prompt", "--rebuild", &id]).run().success();
    home.hermes(&["-z", "Go on.", "--continue"]).run().success();
    assert!(!server.last_turn().system_text().contains(MEMORY));
}

/// Runs so many long turns in a small window in one process. A project file of so many characters appears after the session has
/// begun.
fn talk_while_a_file_appears(characters: usize) -> (Vec<Request>, Output) {
    let rule = "Count every ferry that comes in, and name its berth.\n";
    let home = Home::new();
    let file = home.workspace().join("AGENTS.md");
    let server = Server::answering(move |body, number| {
        if number == 2 {
            fs::write(&file, rule.repeat(characters / rule.len())).unwrap();
        }
        reply(is_auxiliary(body), number)
    });
    home.use_endpoint(&server.url());
    home.set("model.context_length", json!(WINDOW));
    home.set("context_file_max_chars", json!(characters));
    let output = talk(&home, 16, &[]);
    (server.turns(), output)
}

#[test]
fn a_compaction_does_not_adopt_a_prompt_that_would_not_fit() {
    let (turns, output) = talk_while_a_file_appears(30_000);
    let compacted = compactions(&turns);
    assert!(!compacted.is_empty() && compacted[0] > 2, "compacted in {compacted:?}");
    assert!(turns.iter().all(|request| request.system_text() == turns[0].system_text()), "the prompt was rebuilt");
    assert!(compacted.windows(2).all(|pair| pair[1] - pair[0] > 2), "one after the other: {compacted:?}\n{output}");
    let reported: Vec<&str> = output.stderr.lines().filter(|line| line.contains("AGENTS.md")).collect();
    assert!(
        !reported.is_empty() && reported.len() <= compacted.len(),
        "reported in {} lines\n{output}",
        reported.len()
    );
    assert!(reported[0].contains("would not fit"), "it does not say why: {}", reported[0]);
}

#[test]
fn a_prompt_that_barely_fits_does_not_cause_another_compaction() {
    // The prompt also holds the workspace's path, whose length differs from machine to machine.
    let (turns, output) = talk_while_a_file_appears(1_000);
    let compacted = compactions(&turns);
    assert!(output.stderr.contains("the system prompt was rebuilt"), "it did not fit\n{output}");
    assert!(!compacted.is_empty() && compacted[0] > 2, "compacted in {compacted:?}");
    assert!(compacted.windows(2).all(|pair| pair[1] - pair[0] > 2), "one after the other: {compacted:?}\n{output}");
}

#[test]
fn a_rebuild_on_another_day_updates_the_date() {
    let server = Server::answering(workday::partner);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    workday::turn(&home, 0, &[]).run().success();
    let id = home.newest_session();
    let rebuild = |moment: &str| {
        let output = home.hermes(&["prompt", "--rebuild", &id]).at(moment).run().success();
        assert!(!output.stderr.contains("is older than your files"), "{output}");
    };
    rebuild("2026-11-23T10:00:00Z");
    home.hermes(&["-z", "Turn 2: go on.", "--continue"]).at("2026-11-23T10:01:00Z").run().success();
    let prompts: Vec<String> = server.turns().iter().map(Request::system_text).collect();
    assert!(prompts[0].contains("21 November 2026"), "{}", prompts[0]);
    assert_eq!(prompts[2], prompts[0].replace("21 November 2026", "23 November 2026").replace("Saturday", "Monday"));

    // Adopted changes are not reported either.
    workday::add_skill(&home);
    rebuild("2026-11-23T10:02:00Z");
}
