//! The causes that the ledger reports if the bytes of a request stayed the same: the provider lost them, or unknown.

use std::time::Duration;

use hermes_tests::{BreakpointCache, Home, ImplicitCache, Reply, Server};
use serde_json::json;

use crate::fixtures::ledger::Ledger;
use crate::fixtures::workday;

const FIRST: Option<&str> = Some("first-request");
const EXPIRED: Option<&str> = Some("expired");
const MODEL: Option<&str> = Some("model-change");

/// A turn of one request: its minute, the model, the reply.
type Turn = (usize, &'static str, Reply);

fn turn(minute: usize, reply: Reply) -> Turn {
    (minute, "scripted-model", reply)
}

/// A reply that reports usage: tokens of the prompt, tokens read, tokens written.
fn counted(prompt: u64, read: u64, written: u64) -> Reply {
    Reply::text("Yes.").usage(prompt, 2).cached(read, written)
}

fn uncounted(prompt: u64) -> Reply {
    Reply::text("Yes.").usage(prompt, 2).without_cache_counters()
}

#[track_caller]
fn assert_causes(what: &str, home: fn(&Server) -> Home, turns: Vec<Turn>, causes: &[Option<&str>]) {
    let (moments, replies): (Vec<_>, Vec<_>) =
        turns.into_iter().map(|(minute, model, reply)| ((minute, model), reply)).unzip();
    let server = Server::scripted(replies);
    let home = home(&server);
    for (at, (minute, model)) in moments.into_iter().enumerate() {
        let arguments = ["-z", "Go on.", "--model", model, "--continue"];
        let arguments = if at == 0 { &arguments[..4] } else { &arguments };
        home.hermes(arguments).at(&workday::moment(minute)).run().success();
    }
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.causes(), causes, "{what}: {:?}", ledger.requests);
}

#[test]
fn only_a_cached_prefix_can_expire() {
    let small = |minute, prompt| turn(minute, counted(prompt, 0, 0));
    let messages = Home::with_anthropic;
    assert_causes("below every minimum", messages, vec![small(0, 900), small(10, 950)], &[FIRST, None]);
    assert_causes("below this model's minimum", messages, vec![small(0, 3_000), small(10, 3_050)], &[FIRST, None]);
    let large = vec![turn(0, counted(10_000, 0, 9_900)), turn(10, counted(10_050, 0, 9_950))];
    assert_causes("written and not read", messages, large, &[FIRST, EXPIRED]);

    let written = vec![turn(0, counted(1_200, 0, 1_200)), turn(10, counted(1_250, 0, 1_250))];
    assert_causes("little, but written", messages, written, &[FIRST, EXPIRED]);

    let small = vec![small(0, 900), small(1, 950), small(20, 990)];
    assert_causes("below the minimum of an implicit cache", Home::with, small, &[FIRST, None, None]);
    let large =
        vec![turn(0, counted(10_000, 0, 0)), turn(1, counted(10_050, 9_984, 0)), turn(20, counted(10_100, 0, 0))];
    assert_causes("read and then not read", Home::with, large, &[FIRST, None, EXPIRED]);
}

#[test]
fn no_loss_is_reported_for_a_provider_without_cache_counters() {
    let silent = |minute| turn(minute, uncounted(10_000 + minute as u64 * 50));
    assert_causes("messages", Home::with_anthropic, vec![silent(0), silent(1), silent(20)], &[FIRST, None, None]);

    let other = |minute| (minute, "other-model", uncounted(10_000 + minute as u64 * 50));
    let reported = [turn(0, counted(10_000, 0, 0)), turn(1, counted(10_050, 9_984, 0))];
    let turns = reported.into_iter().chain([other(2), other(3), other(20)]).collect();
    assert_causes("what another model reported", Home::with, turns, &[FIRST, None, MODEL, None, None]);
}

#[test]
fn a_route_with_marks_and_one_without_are_two_models() {
    let server = Server::answering(workday::partner);
    let home = workday::home(Home::with(&server));
    for (number, provider) in [(0, "custom"), (2, "openrouter"), (3, "custom")] {
        home.set("model.provider", json!(provider));
        workday::turn(&home, number, &[]).run().success();
    }
    let marked = |at: usize| server.turns()[at].raw_member("messages").contains("cache_control");
    assert_eq!([0, 2, 4].map(marked), [false, true, false]);
    assert_eq!(Ledger::of(&home).causes(), [FIRST, None, MODEL, None, MODEL, None]);
}

#[test]
fn a_request_that_was_interrupted_does_not_hide_that_the_cache_expired() {
    let server = Server::scripted([
        Reply::text("First."),
        Reply::text("Second."),
        Reply::text("An answer without end").hang_after(4),
        Reply::text("Fourth."),
    ]);
    let server = server.with_cache(BreakpointCache::new());
    let home = Home::with_anthropic(&server);
    home.write_workspace("AGENTS.md", "Count every ferry that comes in.\n".repeat(400));
    let say = |minute: usize, text: &str| {
        let arguments = ["--stream-json", "-z", text, "--continue"];
        let arguments = if minute == 0 { &arguments[..3] } else { &arguments };
        home.hermes(arguments).at(&workday::moment(minute))
    };
    say(0, "One.").run().success();
    say(1, "Two.").run().success();
    let running = say(2, "Three.").spawn();
    running.wait_for_stdout("An answe");
    running.interrupt();
    running.wait().exits(130);
    server.advance(Duration::from_secs(4 * 60 * 60));
    say(4 * 60, "Four.").run().success();

    let turns = server.turns();
    assert_eq!((turns.len(), turns[3].billed().read), (4, 0));
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.causes(), [FIRST, None, None, EXPIRED], "{:?}", ledger.requests);
    assert_eq!(ledger.requests[3]["prefix_bytes"], ledger.requests[2]["bytes"]);
}

#[test]
fn a_request_whose_reply_broke_off_has_its_row() {
    let server = Server::answering(|_, number| {
        let reply = Reply::text("This reply is told to its end.");
        if number == 1 { reply.disconnect_after(3) } else { reply }
    });
    let server = server.with_cache(ImplicitCache::new());
    let home = Home::with(&server);
    home.hermes(&["-z", "One."]).run().success();
    home.hermes(&["-z", "Two.", "--continue"]).run().exits(4);
    home.hermes(&["-z", "Three.", "--continue"]).run().success();
    let turns = server.turns();
    assert_eq!(turns.len(), 3);
    let ledger = Ledger::of(&home);
    ledger.assert_measured_as_by_the_server(&turns);
    assert_eq!(ledger.causes(), [FIRST, None, None]);
    let reported: Vec<bool> = ledger.requests.iter().map(|request| request["usage"].is_object()).collect();
    assert_eq!(reported, [true, false, true], "{:?}", ledger.requests);
    assert!(ledger.requests[1]["usage"].is_null() && ledger.requests[1]["cost"].is_null());
}

#[test]
fn a_request_whose_process_died_has_its_row_and_a_refused_one_has_none() {
    let server = Server::scripted([
        Reply::text("This reply is never told to its end.").hang_after(3),
        Reply::error(400, "no such setting"),
        Reply::text("Done."),
    ]);
    let home = Home::with(&server);
    let running = home.hermes(&["-z", "One."]).spawn();
    server.wait_for_faults(1);
    running.kill();
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.causes(), [FIRST]);
    assert!(ledger.requests[0]["usage"].is_null() && ledger.requests[0]["bytes"].as_u64() > Some(0));

    home.hermes(&["-z", "Two.", "--continue"]).run().exits(4);
    assert_eq!(Ledger::of(&home).requests.len(), 1);
    home.hermes(&["-z", "Three.", "--continue"]).run().success();
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.causes(), [FIRST, None], "{:?}", ledger.requests);
    assert_eq!(ledger.requests[1]["prefix_bytes"], ledger.requests[0]["bytes"]);
    assert!(ledger.requests[1]["usage"].is_object());
}
