//! Requests that only keep a conversation in the provider's cache while its user is away.

use std::time::Duration;

use hermes_tests::oracle::assert_valid_anthropic_request;
use hermes_tests::{BreakpointCache, Home, Output, Request, Running, Server};
use serde_json::json;

use crate::fixtures::ledger::Ledger;
use crate::fixtures::workday;

/// Turns before, each eight minutes after the one before.
const TURNS: usize = 4;
/// The requests of these turns.
const SENT: usize = 2 * TURNS;
const PAUSE: Duration = Duration::from_secs(8 * 60);
/// The time after the last turn at which a chat begins: a warming is due after four and a half minutes.
const SOON: Duration = Duration::from_secs(4 * 60 + 28);

fn server() -> Server {
    Server::answering(workday::partner).with_cache(BreakpointCache::new())
}

/// A home whose user always returns after eight minutes.
fn home(server: &Server, dollars: f64) -> Home {
    let home = workday::home(Home::with_anthropic(server));
    home.set("prompt_caching", json!({"cache_ttl": "5m", "warming": dollars}));
    let row = json!({
        "vendor": "custom", "model": "scripted-model",
        "input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75, "cache_write_1h": 6,
    });
    home.write_workspace("prices.json", json!({"as_of": "2026-11-20", "models": [row]}).to_string());
    home.hermes(&["usage", "prices", "prices.json"]).run().success();
    for number in 0..TURNS {
        if number > 0 {
            server.advance(PAUSE);
        }
        say(&home, number).success();
    }
    assert_eq!(server.turns().len(), SENT);
    home
}

/// A turn, eight minutes after the one before.
fn say(home: &Home, number: usize) -> Output {
    let text = format!("Turn {number}: go on.");
    let arguments = ["-z", &text, "--continue"];
    let arguments = if number == 0 { &arguments[..2] } else { &arguments };
    home.hermes(arguments).at(&workday::moment(8 * number)).run()
}

/// A chat that continues, opened shortly before the prefix of the last turn expires.
fn returned(home: &Home, server: &Server) -> Running {
    server.advance(SOON);
    let last = 8 * (TURNS - 1);
    // The moment of a minute ends in `:00Z`.
    let moment = workday::moment(last + 4).replace(":00Z", ":28Z");
    home.hermes(&["chat", "--continue"]).at(&moment).talking().spawn()
}

/// The bytes of a request without marks that the next one must repeat.
fn said(request: &Request) -> String {
    ["tools", "system", "messages"].map(|member| hermes_tests::unmarked(request.raw_member(member))).concat()
}

#[test]
fn a_pause_is_bridged_where_the_pauses_before_say_that_it_pays() {
    let server = server();
    let home = home(&server, 1.0);
    let chat = returned(&home, &server);
    server.wait_for_requests(SENT + 1);
    server.wait_for_finished(SENT + 1);
    let warming = server.last_turn();
    assert_valid_anthropic_request(&warming.body);
    let before = &server.turns()[SENT - 1];
    assert_eq!(warming.body["max_tokens"], 1);
    assert_eq!(said(&warming), said(before), "it repeats the last request");
    let bill = warming.billed();
    assert_eq!((bill.read, bill.written), (bill.prompt, 0));
    // The answer is in the ledger before the chat ends, and none of it in the conversation.
    let messages = home.messages();
    chat.kill();
    assert_eq!(home.messages(), messages);

    // Eight minutes after the last turn, and three and a half after the warming.
    server.advance(PAUSE - SOON);
    let output = say(&home, TURNS).success();
    assert!(output.stderr.contains("1 request kept"), "{output}");
    assert!(output.stderr.contains("in the provider's cache during the pause: cost $0.0"), "{output}");
    let after = &server.turns()[SENT + 1];
    assert!(after.billed().read >= bill.prompt, "{:?}", after.billed());
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.requests.len(), SENT + 2, "a warming is no request of the conversation");
    assert_eq!(ledger.causes()[SENT], None);
    let expired = ledger.causes().into_iter().filter(|cause| *cause == Some("expired")).count();
    assert_eq!(expired, TURNS - 1);

    let shown = home.cache_json(&home.newest_session())["warming"].clone();
    assert_eq!(shown["requests"], 1);
    let [cost, saved] = ["cost", "saved"].map(|key| shown[key].as_f64().unwrap());
    let expected = after.billed().read as f64 * (3.75 - 0.3) / 1e6;
    assert!((saved - expected).abs() < 1e-9 && saved > 5.0 * cost && cost > 0.0, "{shown}");
    let shown = home.hermes(&["cache"]).run().success();
    assert!(shown.stdout.contains("\nkept warm during pauses by 1 request: cost $0.0"), "{shown}");
    let usage = home.hermes(&["usage", "--by", "plugin", "--days", "0", "--json"]).run().success();
    let usage: serde_json::Value = serde_json::from_str(&usage.stdout).unwrap();
    let rows = usage["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["plugin"] == "hermes" && row["requests"] == 1), "{usage}");
}

#[test]
fn nothing_is_sent_without_the_users_wish_or_beyond_the_limit() {
    // Half a cent is more than one warming costs; a thousandth of one is less.
    for dollars in [0.0, 0.00001] {
        let server = server();
        let home = home(&server, dollars);
        let mut chat = returned(&home, &server);
        // A warming would be sent within two seconds.
        std::thread::sleep(Duration::from_secs(4));
        chat.say(&format!("Turn {TURNS}: go on."));
        server.wait_for_requests(SENT + 2);
        chat.kill();
        assert!(server.turns().iter().all(|request| request.body["max_tokens"] != 1), "with {dollars}");
    }
}
