//! Sent bytes never change, as an implicit cache sees them in a long session.

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Home, ImplicitCache, Request, Server};
use serde_json::json;

use crate::fixtures::ledger::Ledger;
use crate::fixtures::workday;

/// The requests whose wire bytes do not extend the previous request.
fn breaks(turns: &[Request]) -> Vec<usize> {
    let open = |request: &Request| request.raw_member("messages").trim_end_matches(']').to_owned();
    let extends = |at: &usize| {
        let (before, after) = (&turns[at - 1], &turns[*at]);
        before.raw_member("tools") == after.raw_member("tools") && open(after).starts_with(&open(before))
    };
    (1..turns.len()).filter(|at| !extends(at)).collect()
}

#[test]
fn twenty_processes_of_a_session_never_change_a_sent_byte() {
    let server = Server::answering(workday::partner).with_cache(ImplicitCache::new());
    let home = workday::home(Home::with(&server));
    workday::spend(&home, &server);

    let turns = server.turns();
    assert_eq!(turns.len(), 2 * workday::TURNS);
    turns.iter().for_each(|request| assert_valid_request(&request.body));
    for request in &turns {
        assert_eq!(request.raw_member("tools"), turns[0].raw_member("tools"), "the tools changed");
    }
    assert_eq!(breaks(&turns), [0; 0], "requests that do not begin with the one before them");
    for pair in turns.windows(2) {
        assert_eq!(pair[1].billed().read, pair[0].billed().prompt);
    }

    let ledger = Ledger::of(&home);
    assert_eq!(ledger.breaks(), [0; 0]);
    ledger.assert_measured_as_by_the_server(&turns);
    ledger.assert_used_as_reported(&turns);
}

#[test]
fn exactly_the_compactions_break_the_prefix() {
    let server = Server::answering(workday::talkative).with_cache(ImplicitCache::new());
    let home = workday::home(Home::with(&server));
    home.set("model.context_length", json!(13_000));
    // Without memory, which changes the prompt of a compacted session and is tested elsewhere.
    home.set("plugins.disabled", json!(["builtin"]));
    for number in 0..workday::TURNS {
        workday::long_turn(&home, number).run().success();
    }

    let turns = server.turns();
    let broken = breaks(&turns);
    assert!(!broken.is_empty(), "nothing was compacted");
    for at in &broken {
        let (before, after) = (&turns[at - 1], &turns[*at]);
        assert_eq!(before.raw_member("tools"), after.raw_member("tools"), "request {at}: the tools changed");
        assert_eq!(before.messages()[0], after.messages()[0], "request {at}: the system prompt changed");
        assert!(after.raw.len() < before.raw.len(), "request {at} breaks the prefix and is no shorter");
    }

    let ledger = Ledger::of(&home);
    assert_eq!(ledger.breaks(), broken);
    for at in &broken {
        assert_eq!(ledger.causes()[*at], Some("compaction"), "request {at}");
    }
    ledger.assert_measured_as_by_the_server(&turns);
}

/// A session of two turns with an action in between; returns the causes of its requests.
fn causes_after(between: impl FnOnce(&Home), more: &[&str]) -> Vec<Option<String>> {
    let server = Server::answering(workday::partner).with_cache(ImplicitCache::new());
    let home = workday::home(Home::with(&server));
    workday::turn(&home, 0, &[]).run().success();
    between(&home);
    workday::turn(&home, 2, more).run().success();
    let turns = server.turns();
    assert_eq!(turns.len(), 4);
    let ledger = Ledger::of(&home);
    ledger.assert_measured_as_by_the_server(&turns);
    assert_eq!(breaks(&turns), ledger.breaks());
    let culprits: Vec<bool> = ledger.requests.iter().map(|request| request["culprit"].is_string()).collect();
    assert!(ledger.breaks().iter().all(|at| culprits[*at]), "a break without a culprit: {:?}", ledger.requests);
    ledger.causes().into_iter().map(|cause| cause.map(str::to_owned)).collect()
}

fn first_then(cause: &str) -> Vec<Option<String>> {
    vec![Some("first-request".to_owned()), None, Some(cause.to_owned()), None]
}

fn rebuild(home: &Home) {
    home.hermes(&["prompt", "--rebuild", &home.newest_session()]).run().success();
}

#[test]
fn another_model_is_reported_as_the_cause() {
    assert_eq!(causes_after(|_| {}, &["--model", "other-model"]), first_then("model-change"));
}

#[test]
fn changed_tools_are_reported_as_the_cause() {
    let change = |home: &Home| {
        home.install_guest("hostile", "hostile", json!({"mode": "ok"}));
        home.set("context.engine", json!("hostile"));
        rebuild(home);
    };
    assert_eq!(causes_after(change, &[]), first_then("tools-changed"));
}

#[test]
fn a_rebuilt_prompt_is_reported_as_the_cause() {
    let change = |home: &Home| {
        workday::add_skill(home);
        rebuild(home);
    };
    assert_eq!(causes_after(change, &[]), first_then("prompt-rebuilt"));
}

#[test]
fn an_ephemeral_layer_is_reported_as_the_cause() {
    let change = |home: &Home| home.set("prompt.ephemeral_system_prompt", json!("Answer in one line today."));
    assert_eq!(causes_after(change, &[]), first_then("ephemeral-layer"));
}
