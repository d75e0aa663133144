//! `kill -9` at random moments: acknowledged messages survive, and the conversation can continue.
//!
//! A message counts as acknowledged when a request with it has reached the server, and an answer when the process that printed it
//! has exited successfully. `HERMES_KILLED_TURNS` sets the number of turns. The seed is fixed, so a run is repeatable as far as
//! the clock allows.

use std::time::Instant;

use hermes_test_data::at_length;
use hermes_tests::oracle::assert_valid_request;
use hermes_tests::wire::{last_user_text, trailing_results};
use hermes_tests::{Call, Home, Reply, Server};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fixtures::journal::{assert_logged, texts};

/// Default number of turns.
const TURNS: (usize, usize) = (60, 200);

/// Turns per session: enough to be resumed many times, without requests growing for ever.
const TO_A_SESSION: usize = 40;

/// Requests per turn.
const REQUESTS: usize = 3;

const SEED: u64 = 0x6865_726d_6573;

/// A pseudo-random sequence that is equal in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// The splitmix64 generator.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Calls two tools, then one, then answers, all in small frames.
fn partner(body: &Value, number: usize) -> Reply {
    let prompt = last_user_text(body);
    let call = |name: &str, arguments: Value| Call::new(&format!("call_{name}_{number}"), name, &arguments);
    let reply = match trailing_results(body).len() {
        0 => Reply::calls([
            call("write_file", json!({"path": "log.txt", "content": format!("{prompt} {}", "x".repeat(200))})),
            call("read_file", json!({"path": "log.txt"})),
        ]),
        2 => Reply::calls([call("memory", json!({"action": "read", "target": "memory"}))]).saying("One moment."),
        _ => Reply::text(answer(prompt)),
    };
    reply.in_steps_of(4)
}

fn answer(prompt: &str) -> String {
    format!("This is the whole answer to `{prompt}`.")
}

/// A process that runs so many turns, starting with this number.
fn process(home: &Home, first: usize, turns: usize) -> hermes_tests::Running {
    let lines: String = (first..first + turns).map(|number| format!("Turn {number}\n")).collect();
    home.hermes(&["--continue"]).stdin(&lines).spawn()
}

#[test]
fn killed_at_random_points_a_conversation_stays_whole() {
    let turns = std::env::var("HERMES_KILLED_TURNS")
        .map_or(at_length(TURNS.0, TURNS.1), |count| count.parse().expect("a count of turns"));
    let mut dice = Dice(SEED);
    let kills: usize = (0..turns.div_ceil(TO_A_SESSION)).map(|_| kill_a_session(&mut dice)).sum();
    // A process runs at most four turns, and one in three is not killed.
    assert!(kills * 6 >= turns, "{kills} kills in {turns} turns are no test");
}

/// Kills a session again and again. Returns how often.
fn kill_a_session(dice: &mut Dice) -> usize {
    let server = Server::answering(partner);
    let home = Home::with(&server);
    home.hermes(&["-z", "Turn 0"]).run().success();
    // Measure a request first, to spread the kills over its duration.
    let begun = Instant::now();
    process(&home, 1, 3).wait().success();
    let a_request = begun.elapsed() / (3 * REQUESTS as u32);

    let mut answered: Vec<String> = (0..4).map(|number| answer(&format!("Turn {number}"))).collect();
    let (mut next, mut kills) = (4, 0);
    while next < TO_A_SESSION {
        let count = (1 + dice.below(4)).min(TO_A_SESSION - next);
        let seen = server.requests().len();
        let running = process(&home, next, count);
        // From before the first request until after the last reply.
        server.wait_for_requests(seen + dice.below(REQUESTS * count + 1));
        std::thread::sleep(a_request.mul_f64(dice.below(1_500) as f64 / 1_000.0));
        let output = running.kill();
        if output.status.success() {
            answered.extend((next..next + count).map(|number| answer(&format!("Turn {number}"))));
        } else {
            assert_eq!(output.status.code(), None, "it ended by itself\n{output}");
            kills += 1;
        }
        next += count;
    }
    home.hermes(&["-z", "The last turn", "--continue"]).run().success();

    let log = home.messages();
    for request in &server.turns() {
        assert_valid_request(&request.body);
        assert_logged(&log, request);
    }
    let replies = texts(&log, "assistant");
    for answer in &answered {
        assert!(replies.contains(&answer.as_str()), "`{answer}` was printed and is gone");
    }
    assert_eq!(home.sessions_json().len(), 1);
    let store = Connection::open(home.state_db()).unwrap();
    let sound: String = store.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    kills
}

#[test]
fn the_dice_fall_the_same_way_in_every_run() {
    let mut dice = Dice(SEED);
    let falls: Vec<usize> = (0..1_000).map(|_| dice.below(10)).collect();
    assert!((0..10).all(|face| falls.iter().filter(|fall| **fall == face).count() > 50), "{falls:?}");
    let mut again = Dice(SEED);
    assert!(falls.iter().all(|fall| *fall == again.below(10)));
}
