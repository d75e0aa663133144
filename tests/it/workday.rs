//! A session over a working day that ends after midnight: every turn a process of its own and a minute later.
//!
//! Each turn is two requests, a call and the answer to its result.

use std::time::Duration;

use hermes_tests::wire::{last_user_text, trailing_results};
use hermes_tests::{Call, Hermes, Home, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::journal::long_text;

pub(crate) const TURNS: usize = 20;

/// The turn in which a skill is added.
pub(crate) const SKILL: usize = 9;

/// The turn that makes forty calls at once.
pub(crate) const BURST: usize = 12;

/// The moment so many minutes after ten to midnight.
pub(crate) fn moment(minute: usize) -> String {
    let minutes = 23 * 60 + 50 + minute;
    format!("2026-11-{:02}T{:02}:{:02}:00Z", 21 + minutes / 1440, minutes % 1440 / 60, minutes % 60)
}

/// Calls one tool, and answers when there is a result: `memory` in every third turn, otherwise `read_file`.
pub(crate) fn partner(body: &Value, _: usize) -> Reply {
    reply(body, |number| format!("Answer {number}."))
}

/// The same at such length that a small window is soon full.
pub(crate) fn talkative(body: &Value, _: usize) -> Reply {
    reply(body, |number| long_text("answer", number)).in_steps_of(200)
}

fn reply(body: &Value, answer: impl Fn(usize) -> String) -> Reply {
    if is_auxiliary(body) {
        return Reply::text("The user reports delays, turn by turn; the assistant keeps count. Nothing is open.");
    }
    let number = number_of(last_user_text(body));
    if !trailing_results(body).is_empty() {
        return Reply::text(answer(number));
    }
    let read = |call: usize| Call::new(&format!("call_{number}_{call}"), "read_file", &json!({"path": "notes.txt"}));
    match number {
        BURST => Reply::calls((0..40).map(read)),
        _ if number % 3 == 1 => {
            let entry = json!({"action": "add", "target": "memory", "content": entry(number)});
            Reply::calls([Call::new(&format!("call_{number}"), "memory", &entry)])
        }
        _ => Reply::calls([read(0)]),
    }
}

/// What is remembered in a turn.
pub(crate) fn entry(number: usize) -> String {
    format!("Ferry {number} was late.")
}

/// `Turn 7: …`
fn number_of(asked: &str) -> usize {
    let digits = asked.strip_prefix("Turn ").and_then(|rest| rest.split(':').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no turn of a working day: {asked}"))
}

pub(crate) fn home(home: Home) -> Home {
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    home
}

/// A turn about to be run, at its moment.
pub(crate) fn turn(home: &Home, number: usize, more: &[&str]) -> Hermes {
    command(home, &format!("Turn {number}: go on."), number, more)
}

/// One with many words.
pub(crate) fn long_turn(home: &Home, number: usize) -> Hermes {
    command(home, &format!("Turn {number}: {}", long_text("turn", number)), number, &[])
}

fn command(home: &Home, text: &str, number: usize, more: &[&str]) -> Hermes {
    let arguments = ["-z", text, "--continue"];
    let arguments = if number == 0 { &arguments[..2] } else { &arguments };
    home.hermes(&[arguments, more].concat()).at(&moment(number))
}

/// All turns, with what changes meanwhile: memories, a skill, the date.
pub(crate) fn spend(home: &Home, server: &Server) {
    for number in 0..TURNS {
        if number == SKILL {
            add_skill(home);
        }
        let output = turn(home, number, &[]).run().success();
        assert_eq!(output.stdout, format!("Answer {number}.\n"), "{output}");
        server.advance(Duration::from_secs(60));
    }
    assert!(home.read("memories/MEMORY.md").contains(&entry(1)), "nothing was remembered");
}

pub(crate) fn add_skill(home: &Home) {
    let skill = "---\nname: knots\ndescription: How to tie a bowline.\n---\nThe rabbit comes out of its hole.\n";
    home.write("skills/knots/SKILL.md", skill);
}
