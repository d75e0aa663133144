//! The prompt of a session is written once. Changes of its inputs are reported, and adopted when the user asks.

use hermes_tests::{Call, Home, Output, Reply, Server, is_auxiliary};
use serde_json::json;

use crate::fixtures::journal::long_text;
use crate::fixtures::workday;

const REBUILD: &str = "hermes prompt --rebuild ";

/// A session of one turn.
fn begun(server: &Server) -> Home {
    let home = workday::home(Home::with(server));
    workday::turn(&home, 0, &[]).run().success();
    home
}

/// The lines that report a drift.
fn reported(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.contains(REBUILD)).collect()
}

#[test]
fn changed_inputs_do_not_change_a_sent_prompt() {
    type Change = (&'static str, fn(&Home));
    let changes: [Change; 6] = [
        ("skills", workday::add_skill),
        ("memory", |home| drop(workday::turn(home, 1, &[]).run().success())),
        ("SOUL.md", |home| home.write("SOUL.md", "You are a harbour pilot.")),
        ("system message", |home| home.set("prompt.system_message", json!("Answer in French."))),
        ("AGENTS.md", |home| home.write_workspace("AGENTS.md", "Count every ferry.\n")),
        ("tools", |home| home.set("plugins.disabled", json!(["files"]))),
    ];
    for (layer, change) in changes {
        let server = Server::answering(workday::partner);
        let home = begun(&server);
        change(&home);
        // The next day, which is not reported.
        let output = workday::turn(&home, 30, &[]).run().success();
        let turns = server.turns();
        for request in &turns {
            assert_eq!(request.raw_member("tools"), turns[0].raw_member("tools"), "{layer}: the tools changed");
            assert_eq!(request.messages()[0], turns[0].messages()[0], "{layer}: the prompt changed");
        }
        let reported = reported(&output);
        assert_eq!(reported.len(), 1, "{layer}: a drift is reported in one line\n{output}");
        assert!(reported[0].to_lowercase().contains(&layer.to_lowercase()), "{layer} is not named in: {}", reported[0]);
        let (_, id) = reported[0].split_once(REBUILD).unwrap();
        let id = id.split(|character: char| !character.is_alphanumeric() && !"-_".contains(character)).next().unwrap();
        assert!(!id.is_empty() && home.newest_session().starts_with(id), "no session is `{id}` in: {}", reported[0]);
    }
}

#[test]
fn a_changed_date_alone_is_not_reported() {
    let server = Server::answering(workday::partner);
    let home = begun(&server);
    let output = workday::turn(&home, 30, &[]).run().success();
    assert_eq!(reported(&output), [""; 0], "{output}");
    let turns = server.turns();
    assert_eq!(turns.last().unwrap().messages()[0], turns[0].messages()[0]);
    assert!(turns[0].system_text().contains("21 November 2026"), "{}", turns[0].system_text());
}

#[test]
fn a_rebuild_adopts_changes_and_ends_the_drift() {
    let server = Server::answering(workday::partner);
    let home = begun(&server);
    workday::add_skill(&home);
    let id = home.newest_session();
    let shown = home.hermes(&["prompt", "--diff", &id]).run().success();
    assert!(shown.stdout.contains("skills") && shown.stdout.contains("How to tie a bowline."), "{shown}");
    home.hermes(&["prompt", "--rebuild", &id]).run().success();
    let output = workday::turn(&home, 2, &[]).run().success();
    assert_eq!(reported(&output), [""; 0], "{output}");
    let turns = server.turns();
    assert!(!turns[0].system_text().contains("How to tie a bowline."));
    assert!(turns[2].system_text().contains("How to tie a bowline."), "{}", turns[2].system_text());
    assert_eq!(turns[3].messages()[0], turns[2].messages()[0]);
    // The log is independent of prompts.
    assert_eq!(turns[2].messages()[1..=4], turns[3].messages()[1..=4]);
}

#[test]
fn another_model_changes_only_the_last_line_of_the_prompt() {
    let server = Server::answering(workday::partner);
    let home = begun(&server);
    // An additional drift is not adopted either.
    workday::add_skill(&home);
    workday::turn(&home, 2, &["--model", "other-model"]).run().success();
    let turns = server.turns();
    let [before, after] = [&turns[0], &turns[2]].map(|request| request.system_text());
    let (before, first) = before.rsplit_once('\n').unwrap();
    let (after, second) = after.rsplit_once('\n').unwrap();
    assert_eq!(before, after);
    assert!(first.contains("scripted-model") && second.contains("other-model"), "{first}\n{second}");
    assert_eq!(turns[0].raw_member("tools"), turns[2].raw_member("tools"));
}

#[test]
fn only_a_compaction_adopts_changed_inputs() {
    let entry = "The user sails on Sundays.";
    let server = Server::answering(move |body, number| match (is_auxiliary(body), number) {
        (true, _) => Reply::text("The user reports delays; the assistant counts them."),
        (_, 0) => {
            Reply::calls([Call::new("call", "memory", &json!({"action": "add", "target": "user", "content": entry}))])
        }
        _ => Reply::text(long_text("answer", number)).in_steps_of(200),
    });
    let home = Home::with(&server);
    home.set("model.context_length", json!(12_000));
    for number in 0..workday::TURNS {
        workday::long_turn(&home, number).run().success();
    }
    let turns = server.turns();
    let compactions: Vec<usize> =
        (1..turns.len()).filter(|at| turns[*at].messages().len() < turns[at - 1].messages().len()).collect();
    let first = *compactions.first().expect("something was compacted");
    for (at, request) in turns.iter().enumerate() {
        assert_eq!(
            request.system_text().contains(entry),
            at >= first,
            "request {at}, the first compaction is in {first}"
        );
        let last = if at < first { 0 } else { first };
        assert_eq!(request.messages()[0], turns[last].messages()[0], "request {at}: the prompt changed");
    }
}
