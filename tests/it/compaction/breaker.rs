//! An engine whose plans are refused is called three times, and then only when the user asks.

use hermes_tests::oracle::assert_valid_request;
use serde_json::json;

use crate::fixtures::planner::{self, chat, chat_with, context, is_compacted, long_turn, outcomes};

const OPEN: &str = "is no longer called in this session";

#[test]
fn three_refusals_open_the_breaker_and_a_compaction_that_works_closes_it() {
    let server = planner::server();
    let home = planner::home(&server, json!({"timing": "now", "bad": 4}));
    let texts: Vec<String> = (0..6).map(long_turn).collect();
    // The first turn has nothing to fold. In each of the next three, one plan is refused, however many requests the turn makes.
    let lines: Vec<&str> = texts[..6].iter().map(String::as_str).collect();
    let first = chat(&home, &lines).success();
    assert_eq!(planner::lines(&first, OPEN).len(), 1, "{first}");
    assert!(planner::lines(&first, OPEN)[0].contains("/compress"), "{first}");
    assert_eq!(outcomes(&home), ["refused"; 3]);
    let open = context(&home);
    assert_eq!((&open["faults"][0]["in_a_row"], &open["faults"][0]["open"]), (&json!(3), &json!(true)));
    assert!(open["faults"][0]["engine"].as_str().unwrap().starts_with("planner@"), "{open}");
    assert!(open["faults"][0]["cause"].as_str().unwrap().contains("neither shown nor covered"), "{open}");
    let shown = home.hermes(&["context"]).run().success();
    assert!(shown.stdout.contains("breaker   open: planner@0.1.0, 3 failures in a row"), "{shown}");

    // In the next process the breaker is still open, and reported once.
    let second = chat_with(&home, &["--continue"], &["still there?", "and now?"]).success();
    assert_eq!(planner::lines(&second, OPEN).len(), 1, "{second}");
    assert_eq!(outcomes(&home).len(), 3);

    // `/compress` overrides the breaker. The fourth plan is as bad as the others; the fifth is good.
    let third = chat_with(&home, &["--continue"], &["/compress", "/compress", "thanks"]).success();
    assert!(third.stdout.contains("the conversation is unchanged"), "{third}");
    assert_eq!(outcomes(&home)[3..5], ["refused", "adopted"]);
    assert_eq!(context(&home)["faults"], json!([]));
    assert!(is_compacted(&server.last_turn()));
    // The breaker is closed: the engine is called automatically again.
    chat_with(&home, &["--continue"], &["one more"]).success();
    assert_eq!(outcomes(&home).last().unwrap(), "adopted");
    assert!(outcomes(&home).len() > 5, "{:?}", outcomes(&home));
    server.turns().iter().for_each(|request| assert_valid_request(&request.body));
}

#[test]
fn a_breaker_belongs_to_one_engine() {
    let server = planner::server();
    let home = planner::home(&server, json!({"timing": "now", "bad": 3}));
    planner::install(&home, "other", json!({"timing": "now"}));
    let texts: Vec<String> = (0..4).map(long_turn).collect();
    chat(&home, &texts.iter().map(String::as_str).collect::<Vec<_>>()).success();
    assert_eq!(outcomes(&home), ["refused"; 3]);
    let output = chat_with(&home, &["--continue", "--engine", "other"], &["go on"]).success();
    assert_eq!(planner::lines(&output, "compacted by `other`").len(), 1, "{output}");
    assert_eq!(context(&home)["faults"][0]["open"], true);
}
