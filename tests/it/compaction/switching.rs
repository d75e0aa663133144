//! One conversation under several engines in turn: nothing is lost, and each continues from the previous one's view.

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::{Home, Request, Server};
use serde_json::json;

use crate::fixtures::journal::texts;
use crate::fixtures::planner::{self, chat_with, context, long_turn};

fn home(server: &Server) -> Home {
    let home = Home::with(server);
    planner::install(&home, "alpha", json!({"tool": "alpha_tool"}));
    planner::install(&home, "beta", json!({"tool": "beta_tool"}));
    home
}

fn engine(home: &Home) -> String {
    let shown = home.session_json(&home.newest_session());
    shown["session"]["engine"].as_str().unwrap().to_owned()
}

fn all_text(request: &Request) -> String {
    request.conversation().into_iter().map(|message| message.text + "\n").collect()
}

#[test]
fn each_engine_takes_over_the_view_with_what_its_summaries_cover() {
    let server = planner::server();
    let home = home(&server);
    let texts_said: Vec<String> = (0..8).map(long_turn).collect();
    let [a, b, c, d, e, f, g, h] = texts_said.iter().map(String::as_str).collect::<Vec<_>>()[..] else { panic!() };

    // First the configured engine, which is the compressor, then two others by flag.
    let first = chat_with(&home, &[], &[a, b, c, "/compress"]).success();
    assert_eq!(planner::lines(&first, "compacted by `compressor`").len(), 1, "{first}");
    let by_compressor = context(&home);
    let begun = server.turns().len();

    let second = chat_with(&home, &["--continue", "--engine", "alpha"], &[d, e, "/compress", f]).success();
    let reported = planner::lines(&second, "conversation used the context engine");
    assert_eq!(reported.len(), 1, "{second}");
    assert!(
        reported[0].contains("`compressor`") && reported[0].contains("`alpha` continues from here"),
        "{}",
        reported[0]
    );
    assert!(reported[0].contains("--rebuild"), "{}", reported[0]);
    assert_eq!(engine(&home), "alpha");

    // Its tool arrives with the prompt of the next compaction, not earlier.
    let turns = server.turns();
    let offered: Vec<bool> =
        turns[begun..].iter().map(|request| request.tool_names().contains(&"alpha_tool")).collect();
    assert_eq!(offered, [false, false, true]);
    // The compressor's summary was handed over with its text.
    let summary = by_compressor["stretches"].as_array().unwrap().iter().find(|stretch| stretch["kind"] == "summarised");
    let key = summary.unwrap()["key"].as_str().unwrap();
    assert!(all_text(turns.last().unwrap()).contains(&format!("from {key}: ")), "{}", all_text(turns.last().unwrap()));

    home.set("context.engine", json!("beta"));
    let third = chat_with(&home, &["--continue"], &[g, "/compress", h]).success();
    assert_eq!(planner::lines(&third, "`beta` continues from here").len(), 1, "{third}");
    let turns = server.turns();
    assert!(all_text(turns.last().unwrap()).contains("from alpha:"), "{}", all_text(turns.last().unwrap()));
    let tools = turns.last().unwrap().tool_names();
    assert!(tools.contains(&"beta_tool") && !tools.contains(&"alpha_tool"), "{tools:?}");

    // Switch back. Without a change there is no notice.
    let back = chat_with(&home, &["--continue", "--engine", "compressor"], &["Are you there?"]).success();
    assert_eq!(planner::lines(&back, "`compressor` continues from here").len(), 1, "{back}");
    let same = chat_with(&home, &["--continue", "--engine", "compressor"], &["Still?"]).success();
    assert_eq!(planner::lines(&same, "continues from here").len(), 0, "{same}");
    assert_eq!(engine(&home), "compressor");

    server.turns().iter().for_each(|request| assert_valid_request(&request.body));
    assert_eq!(texts(&home.messages(), "user")[..8], texts_said);
    assert_eq!(home.sessions_json().len(), 1);
    let by: Vec<String> = context(&home)["views"]
        .as_array()
        .unwrap()
        .iter()
        .map(|view| view["by"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(by, ["compressor", "alpha", "beta"]);
    let shown = home.hermes(&["sessions", "show", &home.newest_session()]).run().success();
    assert!(shown.stdout.contains("compressor (before: alpha, beta)"), "{shown}");
}

#[test]
fn a_switch_changes_no_sent_byte() {
    let server = planner::server();
    let home = home(&server);
    chat_with(&home, &["--engine", "alpha"], &["one", "two"]).success();
    chat_with(&home, &["--continue", "--engine", "beta"], &["three"]).success();
    let turns = server.turns();
    assert_eq!(turns[1].raw_member("tools"), turns[2].raw_member("tools"));
    assert_extends(&turns[1].body, &turns[2].body);
}

#[test]
fn a_rebuilt_prompt_includes_the_new_engines_tools() {
    let server = planner::server();
    let home = home(&server);
    chat_with(&home, &["--engine", "alpha"], &["one"]).success();
    home.set("context.engine", json!("beta"));
    let rebuilt = home.hermes(&["prompt", "--rebuild", &home.newest_session()]).run().success();
    assert_eq!(planner::lines(&rebuilt, "`beta` continues from here").len(), 1, "{rebuilt}");
    let output = chat_with(&home, &["--continue"], &["two"]).success();
    assert_eq!(planner::lines(&output, "continues from here").len(), 0, "{output}");
    let tools = server.last_turn();
    let tools = tools.tool_names();
    assert!(tools.contains(&"beta_tool") && !tools.contains(&"alpha_tool"), "{tools:?}");
}

#[test]
fn a_missing_engine_is_refused_and_changes_nothing() {
    let server = planner::server();
    let home = home(&server);
    chat_with(&home, &["--engine", "alpha"], &["one"]).success();
    chat_with(&home, &["--continue", "--engine", "gamma"], &["two"]).refused().exits(5).says(&["gamma", "alpha"]);
    assert_eq!(engine(&home), "alpha");
    assert_eq!(server.turns().len(), 1);
}
