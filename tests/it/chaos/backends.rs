//! `kill -9` at random moments of deliveries to memory services, which fail before and after they store a turn: each finished turn is
//! stored once and in order.
//!
//! `HERMES_KILLED_DELIVERIES` sets the number of kills, spread over the services. The seed is fixed, so a run is repeatable as far as
//! the clock allows.

use std::time::Duration;

use hermes_tests::wire::last_user_text;
use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

use super::random_kills::Dice;
use crate::fixtures::backend::{ALL, Backend, Kind, is_turn};
use crate::fixtures::service::Answer;

/// Default number of kills.
const KILLS: usize = 36;
/// Kills in a session: enough for turns to pile up, without requests growing for ever.
const TO_A_SESSION: usize = 25;
const SEED: u64 = 0x6d65_6d6f_7279;
/// After the answer, a process lives up to so many milliseconds.
const LIVES: usize = 400;

fn answer(prompt: &str) -> String {
    format!("This is the whole answer to `{prompt}`.")
}

fn partner() -> Server {
    Server::answering(|body, _| Reply::text(answer(last_user_text(body).lines().next().unwrap_or_default())))
}

/// What the service does with turns in a round.
fn misbehave(backend: &Backend, dice: &mut Dice) {
    match dice.below(6) {
        0 => backend.heal(),
        // Not there at all.
        1 => backend.switch(|_, _| Answer::Broken),
        2 => backend.switch(|asked, own| if is_turn(asked) { Answer::Broken } else { own() }),
        3 => backend.switch(|asked, own| match is_turn(asked) {
            true => Answer::Json(503, json!({ "detail": "busy" })),
            false => own(),
        }),
        4 => backend.switch(|asked, own| {
            let answer = own();
            if is_turn(asked) { Answer::Broken } else { answer }
        }),
        _ => backend.switch(|asked, own| match (is_turn(asked), own()) {
            (true, Answer::Json(status, body)) => Answer::Late(Duration::from_secs(2), status, body),
            (_, answer) => answer,
        }),
    }
}

/// The user's messages, and those whose turn has ended.
fn said(home: &Home) -> (Vec<String>, Vec<String>) {
    let messages = home.messages();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let is_user = |message: &Value| message["role"] == "user";
    let said: Vec<String> = messages.iter().filter(|message| is_user(message)).map(text).collect();
    let ended = messages.windows(2).filter(|pair| is_user(&pair[0]) && text(&pair[1]) == answer(&text(&pair[0])));
    let ended = ended.map(|pair| text(&pair[0])).collect();
    (said, ended)
}

/// Kills a session so many times, and checks what its service has in the end. Returns how many turns it has, and how often one was sent.
fn kill_a_session(kind: Kind, kills: usize, dice: &mut Dice) -> (usize, usize) {
    let backend = Backend::new(kind);
    let (server, service) = (partner(), backend.serve(0));
    let home = backend.home(&server, &service);
    for round in 0..kills {
        misbehave(&backend, dice);
        // An hour passes between two processes, so no attempt of the earlier one can still be under way.
        let moment = format!("2026-11-{:02}T{:02}:00:00Z", 1 + round / 24, round % 24);
        let prompt = format!("Turn {round}");
        let options: &[&str] = if round == 0 { &[] } else { &["--continue"] };
        let mut running = home.hermes(options).at(&moment).talking().spawn();
        running.say(&prompt);
        running.wait_for_stdout(&answer(&prompt));
        std::thread::sleep(Duration::from_millis(dice.below(LIVES) as u64));
        let output = running.kill();
        assert_eq!(output.status.code(), None, "it ended by itself\n{output}");
    }
    backend.heal();
    let output = home.hermes(&["-z", "The last turn", "--continue"]).at("2026-12-24T09:00:00Z").run().success();
    let ((said, ended), stored) = (said(&home), backend.turns());
    let mut expected = said.iter();
    let is_in_order = stored.iter().all(|turn| expected.any(|said| said == turn));
    assert!(is_in_order, "{kind:?} stored a turn twice or not in order: {stored:?} of {said:?}\n{output}");
    let lost: Vec<&String> = ended.iter().filter(|turn| !stored.contains(turn)).collect();
    assert!(lost.is_empty(), "{kind:?} lost {lost:?} of {said:?}\n{output}");
    // Most processes live long enough to end their turn.
    assert!(ended.len() * 2 > said.len(), "{ended:?} of {said:?}");
    (stored.len(), service.asked().iter().filter(|asked| is_turn(asked)).count())
}

#[test]
fn killed_at_random_points_hermes_delivers_each_turn_once_and_in_order() {
    let kills =
        std::env::var("HERMES_KILLED_DELIVERIES").map_or(KILLS, |count| count.parse().expect("a count of kills"));
    let mut dice = Dice(SEED);
    let (mut stored, mut sent) = (0, 0);
    for (number, kind) in ALL.into_iter().enumerate() {
        let mut left = (kills + number) / ALL.len();
        while left > 0 {
            let session = left.min(TO_A_SESSION);
            let (turns, attempts) = kill_a_session(kind, session, &mut dice);
            (stored, sent) = (stored + turns, sent + attempts);
            left -= session;
        }
    }
    println!("{kills} kills: {stored} turns stored, each once and in order, in {sent} attempts");
    // Without attempts that were repeated, nothing could be stored twice.
    assert!(sent > stored, "{sent} attempts for {stored} turns are no test");
}
