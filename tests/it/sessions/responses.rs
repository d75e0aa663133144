//! Sessions over the Responses API: sealed reasoning, pictures in results and calls go back as they came, from every process.

use hermes_tests::oracle::{assert_extends, assert_valid_responses_request};
use hermes_tests::{Call, Home, ImplicitCache, Reply, Request, Server};
use serde_json::{Value, json};

use crate::fixtures::journal::{assert_logged, texts};
use crate::fixtures::ledger::Ledger;
use crate::fixtures::workday;

/// A model that thinks.
const MODEL: &str = "gpt-5.4";
/// The picture of the guest `camera`.
const SNAPSHOT: &str = "data:image/png;base64,iVBORw0KGgo";

fn thought(id: &str, summary: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": summary}],
           "encrypted_content": format!("sealed-{id}")})
}

fn comment() -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
           "content": [{"type": "output_text", "text": "I look at both.", "annotations": []}]})
}

fn home(server: &Server) -> Home {
    let home = Home::with_responses(server);
    home.set("model.default", json!(MODEL));
    home.install_guest("camera", "camera", json!({}));
    home.set("plugins.enabled", json!(["camera"]));
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    home.write_workspace("chart.gif", b"GIF89a\x01\0\x01\0\0\0\0");
    home
}

fn calls() -> [Call; 2] {
    [Call::new("call_snap", "snap", &json!({})), Call::new("call_read", "read_file", &json!({"path": "notes.txt"}))]
}

/// The items of a request up to the point where the next request goes on.
fn open(request: &Request) -> &str {
    request.raw_member("input").strip_suffix(']').unwrap()
}

#[test]
fn reasoning_calls_and_pictures_go_back_with_the_same_bytes_from_every_process() {
    let server = Server::scripted([
        Reply::calls(calls()).thinking([thought("rs_1", "Two things to look at."), comment()]),
        Reply::text("The office closes at five.").thinking([thought("rs_2", "")]),
        Reply::refusal("I cannot tell who that is."),
        Reply::text("It would name a person."),
    ]);
    let server = server.with_cache(ImplicitCache::new());
    let home = home(&server);
    let say = |text: &str, more: &[&str]| home.hermes(&[&["-z", text], more].concat()).run().success().stdout;
    assert_eq!(say("What is this?", &["--image", "chart.gif"]), "The office closes at five.\n");
    let id = home.newest_session();
    assert_eq!(say("Who is that?", &["--resume", &id]), "I cannot tell who that is.\n");
    assert_eq!(say("Why not?", &["--resume", &id]), "It would name a person.\n");

    let turns = server.turns();
    assert_eq!(turns.len(), 4);
    for request in &turns {
        assert_valid_responses_request(&request.body);
        assert_eq!(request.body["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(request.body["prompt_cache_key"], turns[0].body["prompt_cache_key"]);
    }
    for pair in turns.windows(2) {
        assert_extends(&pair[0].body, &pair[1].body);
        assert!(open(&pair[1]).starts_with(open(&pair[0])), "{}\n{}", open(&pair[0]), open(&pair[1]));
        assert_eq!(pair[1].billed().read, pair[0].billed().prompt);
    }

    // The reply in the order in which its items came, then the results.
    let sent = turns[1].messages();
    assert_eq!(sent[0]["content"][1]["type"], "input_image", "{}", sent[0]);
    assert_eq!(sent[1], thought("rs_1", "Two things to look at."));
    assert_eq!((&sent[2]["content"], &sent[2]["phase"]), (&json!("I look at both."), &json!("commentary")));
    assert_eq!((&sent[3]["name"], &sent[4]["name"]), (&json!("snap"), &json!("read_file")));
    let picture = sent[5]["output"][1]["image_url"].as_str().unwrap_or_default();
    assert!(picture.starts_with(SNAPSHOT), "{}", sent[5]);
    assert!(turns[1].trailing_results()[1].1.contains("closes at five"));
    assert_eq!(turns[2].messages()[7], thought("rs_2", ""));

    let log = home.messages();
    assert_logged(&log, &turns[3]);
    assert_eq!(texts(&log, "user"), ["What is this?", "Who is that?", "Why not?"]);
    Ledger::of(&home).assert_used_as_reported(&turns);
}

#[test]
fn sealed_reasoning_does_not_go_to_another_model() {
    let server = Server::scripted([
        Reply::calls(calls()).thinking([thought("rs_1", "Two things to look at.")]),
        Reply::text("Five."),
        Reply::text("Still five."),
        Reply::text("Five again."),
    ]);
    let home = home(&server);
    home.hermes(&["-z", "When does it close?"]).run().success();
    home.hermes(&["-z", "And now?", "--continue", "--model", "gpt-5-mini"]).run().success();
    home.hermes(&["-z", "And you?", "--continue"]).run().success();

    let turns = server.turns();
    turns.iter().for_each(|request| assert_valid_responses_request(&request.body));
    let sealed: Vec<usize> =
        turns.iter().map(|request| request.raw_member("input").matches("encrypted_content").count()).collect();
    assert_eq!(sealed, [0, 1, 0, 1]);
    assert_eq!((&turns[2].body["model"], &turns[3].body["model"]), (&json!("gpt-5-mini"), &json!(MODEL)));
    assert!(open(&turns[3]).starts_with(open(&turns[1])));
}

#[test]
fn a_conversation_of_chat_completions_goes_on_over_the_responses_api() {
    let server = Server::scripted([Reply::calls(calls()), Reply::text("Five."), Reply::text("Still five.")]);
    let home = home(&server);
    home.set("model.api_mode", json!("chat_completions"));
    home.hermes(&["-z", "When does it close?"]).run().success();
    home.set("model.api_mode", json!("codex_responses"));
    home.hermes(&["-z", "And now?", "--continue"]).run().success();
    let request = server.last_turn();
    assert_valid_responses_request(&request.body);
    assert!(request.system_text().len() > 100, "{}", request.system_text());
    let log = home.messages();
    assert_logged(&log, &request);
    assert_eq!(request.messages().len(), 7);
}

#[test]
fn an_unstreamed_response_is_accepted() {
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Five.", "annotations": []}]});
    let response =
        json!({"id": "resp_1", "object": "response", "status": "completed", "model": MODEL, "output": [said]});
    let server = Server::scripted([Reply::json(200, &response)]);
    let home = home(&server);
    let output = home.hermes(&["-z", "When does it close?"]).run().success();
    assert_eq!(output.stdout, "Five.\n");
    assert_eq!(texts(&home.messages(), "assistant"), ["Five."]);
}

#[test]
fn a_long_conversation_is_compacted_and_only_that_breaks_the_prefix() {
    let server = Server::answering(workday::talkative).with_cache(ImplicitCache::new());
    let home = workday::home(Home::with_responses(&server));
    home.set("model.context_length", json!(12_000));
    home.set("plugins.disabled", json!(["builtin"]));
    for number in 0..8 {
        workday::long_turn(&home, number).run().success();
    }

    // Summaries too are requests of the Responses API.
    let requests = server.requests();
    requests.iter().for_each(|request| assert_valid_responses_request(&request.body));
    let turns = server.turns();
    let is_shorter = |at: &usize| turns[*at].messages().len() < turns[*at - 1].messages().len();
    let compacted: Vec<usize> = (1..turns.len()).filter(is_shorter).collect();
    assert!(!compacted.is_empty(), "nothing was compacted");
    let ledger = Ledger::of(&home);
    assert_eq!(ledger.breaks(), compacted);
    for at in compacted {
        assert_eq!(ledger.causes()[at], Some("compaction"), "request {at}");
        for member in ["tools", "instructions"] {
            assert_eq!(turns[at].raw_member(member), turns[at - 1].raw_member(member), "request {at}: {member}");
        }
    }
    ledger.assert_measured_as_by_the_server(&turns);
    ledger.assert_used_as_reported(&turns);
}
