//! `kill -9` at random moments of deliveries to memory services, which fail before and after they store a turn: each finished turn is
//! stored once and in order. If a service cannot look a turn up, a turn whose fate is open is set aside and shown instead.
//!
//! `HERMES_KILLED_DELIVERIES` sets the number of kills, spread over the services. The seed is fixed, so a run is repeatable as far as
//! the clock allows.

use std::time::{Duration, Instant};

use hermes_tests::wire::last_user_text;
use hermes_tests::{Home, Output, Reply, Server};
use serde_json::{Value, json};

use super::random_kills::Dice;
use crate::fixtures::backend::{ALL, Backend, Kind, is_turn};
use crate::fixtures::service::Answer;

/// The services, in the order of the kills.
const SERVICES: [Kind; 4] = [ALL[0], ALL[1], ALL[2], Kind::Mem0Keyless];
/// Default number of kills.
const KILLS: usize = 36;
/// Kills in a session: enough for turns to pile up, without requests growing for ever.
const TO_A_SESSION: usize = 25;
const SEED: u64 = 0x6d65_6d6f_7279;
/// The most starts until everything is delivered, once the service works.
const MOST_STARTS: usize = 10;
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

/// What became of the turns of some sessions.
#[derive(Default)]
struct Tally {
    kills: usize,
    /// Turns that ended, so that they must be delivered.
    ended: usize,
    /// Turns that the service has.
    stored: usize,
    /// How often a turn was sent.
    sent: usize,
    /// Turns that are set aside and shown to the user, because it is unknown whether the service has them.
    set_aside: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.ended += other.ended;
        self.stored += other.stored;
        self.sent += other.sent;
        self.set_aside += other.set_aside;
    }

    fn line(&self) -> String {
        let Self { kills, ended, stored, sent, set_aside } = self;
        format!(
            "{kills} kills; of {ended} ended turns none was lost; {stored} stored, each once and in order, {set_aside} set aside; \
             {sent} attempts"
        )
    }
}

/// Kills a session so many times, and checks what its service has in the end.
fn kill_a_session(kind: Kind, kills: usize, dice: &mut Dice) -> Tally {
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
    let (output, set_aside) = deliver_the_rest(&home, backend.provider());
    let ((said, ended), stored) = (said(&home), backend.turns());
    let mut expected = said.iter();
    let is_in_order = stored.iter().all(|turn| expected.any(|said| said == turn));
    assert!(is_in_order, "{kind:?} stored a turn twice or not in order: {stored:?} of {said:?}\n{output}");
    let missing: Vec<&String> = ended.iter().filter(|turn| !stored.contains(turn)).collect();
    assert!(missing.len() <= set_aside, "{kind:?} lost {missing:?} of {said:?}, {set_aside} set aside\n{output}");
    // If a service can look up a turn, no turn stays undecided.
    assert!(set_aside == 0 || kind == Kind::Mem0Keyless, "{kind:?}: {set_aside} set aside\n{output}");
    // Most processes live long enough to end their turn.
    assert!(ended.len() * 2 > said.len(), "{ended:?} of {said:?}");
    let sent = service.asked().iter().filter(|asked| is_turn(asked)).count();
    Tally { kills, ended: ended.len(), stored: stored.len(), sent, set_aside }
}

/// Starts processes until nothing waits for the provider. Returns what the last one said, and how many turns are set aside.
fn deliver_the_rest(home: &Home, provider: &str) -> (Output, usize) {
    // A process waits only so long for its deliveries when it ends, and the next one goes on.
    for day in 1..=MOST_STARTS {
        let (prompt, moment) = (format!("Turn of day {day}"), format!("2026-12-{day:02}T09:00:00Z"));
        let output = home.hermes(&["-z", &prompt, "--continue"]).at(&moment).run().success();
        let (waiting, set_aside) = undelivered(home, provider);
        if waiting == 0 {
            return (output, set_aside);
        }
    }
    panic!("after {MOST_STARTS} starts some turns still wait for {provider}");
}

/// How many turns wait, and how many are set aside, as `plugins info` shows them.
fn undelivered(home: &Home, provider: &str) -> (usize, usize) {
    let info = home.hermes(&["plugins", "info", provider, "--json"]).run().success();
    let info: Value = serde_json::from_str(&info.stdout).unwrap();
    let count = |of: &str| info["undelivered"][of]["count"].as_u64().unwrap_or_default() as usize;
    (count("waiting"), count("set_aside"))
}

#[test]
fn killed_at_random_points_hermes_delivers_each_turn_once_and_in_order() {
    let kills =
        std::env::var("HERMES_KILLED_DELIVERIES").map_or(KILLS, |count| count.parse().expect("a count of kills"));
    let begun = Instant::now();
    let mut dice = Dice(SEED);
    let mut all = Tally::default();
    for (number, kind) in SERVICES.into_iter().enumerate() {
        let mut of_kind = Tally::default();
        let mut left = (kills + number) / SERVICES.len();
        while left > 0 {
            let session = left.min(TO_A_SESSION);
            of_kind.add(&kill_a_session(kind, session, &mut dice));
            left -= session;
        }
        println!("{kind:?}: {}", of_kind.line());
        all.add(&of_kind);
    }
    println!("all, in {:.0} s: {}", begun.elapsed().as_secs_f64(), all.line());
    // Without attempts that were repeated, nothing could be stored twice.
    assert!(all.sent > all.stored, "{} attempts for {} turns are no test", all.sent, all.stored);
}
