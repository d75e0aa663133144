//! A provider with explicit cache marks (Anthropic's messages) never bills a prefix of a long session twice.

use std::time::Duration;

use hermes_tests::oracle::{assert_valid_anthropic_request, assert_valid_marked_request, marks};
use hermes_tests::wire::Wire;
use hermes_tests::{BreakpointCache, Home, KEY, Request, Server, unmarked};
use serde_json::json;

use crate::fixtures::journal::assert_logged;
use crate::fixtures::ledger::Ledger;
use crate::fixtures::workday;

fn server() -> Server {
    Server::answering(workday::partner).with_cache(BreakpointCache::new())
}

fn home(server: &Server) -> Home {
    workday::home(Home::with_anthropic(server))
}

/// Panics unless the later request contains the bytes of the earlier one, ignoring marks.
#[track_caller]
fn assert_extends_on_the_wire(earlier: &Request, later: &Request) {
    for member in ["tools", "system"] {
        let [earlier, later] = [earlier, later].map(|request| unmarked(request.raw_member(member)));
        assert_eq!(earlier, later, "`{member}` changed");
    }
    let [earlier, later] = [earlier, later].map(|request| unmarked(request.raw_member("messages")));
    let earlier = earlier.strip_suffix(']').unwrap();
    assert!(later.starts_with(earlier), "messages changed:\n{earlier}\nbecame\n{later}");
}

/// Tokens of tools and stable tier, slightly fewer than the server counts.
fn stable_tokens(request: &Request) -> u64 {
    let stable = request.body["system"][0]["text"].as_str().expect("the system prompt is a list of texts");
    (unmarked(request.raw_member("tools")).len() + stable.len()) as u64 / 4 - 16
}

#[test]
fn every_request_reads_the_whole_previous_one_from_the_cache() {
    let server = server();
    let home = home(&server);
    workday::spend(&home, &server);

    let turns = server.turns();
    assert_eq!(turns.len(), 2 * workday::TURNS);
    for request in &turns {
        assert_eq!(request.wire, Wire::AnthropicMessages);
        assert_valid_anthropic_request(&request.body);
        assert!(request.header("anthropic-version").is_some());
        assert_eq!(request.header("x-api-key"), Some(KEY));
    }
    assert_eq!(turns[2 * workday::BURST + 1].trailing_results().len(), 40);
    for (at, pair) in turns.windows(2).enumerate() {
        assert_extends_on_the_wire(&pair[0], &pair[1]);
        let (before, after) = (pair[0].billed(), pair[1].billed());
        assert!(
            after.read >= before.prompt - before.last,
            "request {}: {after:?} after {before:?}, marks at {:?}",
            at + 1,
            marks(&pair[1].body)
        );
    }
    assert_logged(&home.messages(), turns.last().unwrap());

    let ledger = Ledger::of(&home);
    assert_eq!(ledger.breaks(), [0; 0]);
    ledger.assert_used_as_reported(&turns);
    for pair in ledger.requests.windows(2) {
        assert_eq!(pair[1]["prefix_bytes"], pair[0]["bytes"]);
    }
}

#[test]
fn a_gateway_that_takes_marks_gets_them_by_chat_completions() {
    let server = server();
    let home = workday::home(Home::with(&server));
    home.set("model.provider", json!("openrouter"));
    // Around the burst.
    for number in [0, workday::BURST - 1, workday::BURST, workday::BURST + 1] {
        workday::turn(&home, number, &[]).run().success();
    }
    let turns = server.turns();
    assert_eq!(turns.len(), 8);
    for request in &turns {
        assert_eq!(request.wire, Wire::ChatCompletions);
        assert_valid_marked_request(&request.body);
    }
    for pair in turns.windows(2) {
        assert_extends_on_the_wire(&pair[0], &pair[1]);
        let (before, after) = (pair[0].billed(), pair[1].billed());
        assert!(after.read >= before.prompt - before.last, "{after:?} after {before:?}");
    }
}

#[test]
fn a_second_session_of_the_same_day_reads_the_stable_tier() {
    let server = server();
    let home = home(&server);
    // The first session's memory is in the second one's prompt, after the stable tier.
    home.hermes(&["-z", "Turn 1: remember."]).at(&workday::moment(0)).run().success();
    home.hermes(&["-z", "Turn 2: another session."]).at(&workday::moment(1)).run().success();
    let turns = server.turns();
    let (first, second) = (&turns[0], &turns[2]);
    assert_ne!(first.system_text(), second.system_text());
    assert!(second.system_text().contains(&workday::entry(1)), "{}", second.system_text());
    let bill = second.billed();
    assert!(bill.read >= stable_tokens(second), "{bill:?}, marks at {:?}", marks(&second.body));
}

#[test]
fn a_prefix_unused_for_five_minutes_is_reported_as_expired() {
    for (lifetime, read) in [(None, false), (Some("1h"), true)] {
        let server = server();
        let home = home(&server);
        if let Some(lifetime) = lifetime {
            home.set("prompt_caching.cache_ttl", json!(lifetime));
        }
        workday::turn(&home, 0, &[]).run().success();
        server.advance(Duration::from_secs(6 * 60));
        workday::turn(&home, 6, &[]).run().success();
        let turns = server.turns();
        turns.iter().for_each(|request| assert_valid_anthropic_request(&request.body));
        assert_eq!(turns[2].billed().read > 0, read, "{lifetime:?}");
        assert_eq!(turns[0].billed().written_for_an_hour > 0, read, "{lifetime:?}");
        let cause = if read { None } else { Some("expired") };
        assert_eq!(Ledger::of(&home).causes(), [Some("first-request"), None, cause, None], "{lifetime:?}");
    }
}

#[test]
fn a_compaction_still_reads_tools_and_system_prompt() {
    let server = Server::answering(workday::talkative).with_cache(BreakpointCache::new());
    let home = home(&server);
    home.set("model.context_length", json!(12_000));
    home.set("plugins.disabled", json!(["builtin"]));
    let mut number = 0;
    let compacted = loop {
        assert!(number < workday::TURNS, "nothing was compacted");
        workday::long_turn(&home, number).run().success();
        server.advance(Duration::from_secs(60));
        number += 1;
        let turns = server.turns();
        if let Some(at) = (1..turns.len()).find(|at| turns[*at].raw.len() < turns[at - 1].raw.len()) {
            break at;
        }
    };
    let turns = server.turns();
    turns.iter().for_each(|request| assert_valid_anthropic_request(&request.body));
    let bill = turns[compacted].billed();
    assert!(bill.read >= stable_tokens(&turns[compacted]), "{bill:?}");
    assert_eq!(turns[compacted].body["tools"], turns[0].body["tools"]);
    assert_eq!(Ledger::of(&home).causes()[compacted], Some("compaction"));
}

#[test]
fn the_lifetime_follows_the_pauses_and_every_process_continues_the_choice() {
    let server = server();
    let home = home(&server);
    let row = r#"{"vendor": "custom", "model": "scripted-model", "input": 4, "output": 20, "cache_read": 0.4, "cache_write": 5, "cache_write_1h": 8}"#;
    home.write_workspace("prices.json", format!(r#"{{"as_of": "2026-11-20", "models": [{row}]}}"#));
    home.hermes(&["usage", "prices", "prices.json"]).run().success();
    let mut minute = 0;
    // Each turn is a process of its own and sends two requests.
    for pause in [0, 2, 20, 2, 40] {
        minute += pause;
        server.advance(Duration::from_secs(60 * pause as u64));
        workday::turn(&home, minute, &[]).run().success();
    }
    let turns = server.turns();
    assert_eq!(turns.len(), 10);
    turns.iter().for_each(|request| assert_valid_anthropic_request(&request.body));
    let hour: Vec<bool> = turns.iter().map(|request| request.body.to_string().contains(r#""ttl":"1h""#)).collect();
    // The pause of 20 minutes leads to an hour, so that of 40 minutes finds the prefix.
    assert_eq!(hour, [false, false, false, false, true, true, true, true, true, true]);
    assert!(turns[4].billed().written_for_an_hour > turns[4].billed().read, "{:?}", turns[4].billed());
    assert!(turns[8].billed().read > 0, "{:?}", turns[8].billed());
    assert_eq!(
        Ledger::of(&home).causes(),
        [Some("first-request"), None, None, None, Some("expired"), None, None, None, None, None]
    );
    let recorded: Vec<bool> = Ledger::of(&home).requests.iter().map(|request| request["cache_ttl"] == "1h").collect();
    assert_eq!(recorded, hour);
    let cost = Ledger::of(&home).requests[4]["cost"].as_f64().unwrap();
    let usage = &Ledger::of(&home).requests[4]["usage"];
    assert!(cost > usage["cache_write"].as_f64().unwrap() * 8.0 / 1e6, "charged for an hour: {cost} {usage}");
}
