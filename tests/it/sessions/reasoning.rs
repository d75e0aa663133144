//! Providers that refuse a conversation whose replies lack their reasoning.

use std::sync::Mutex;

use hermes_tests::oracle::assert_valid_reasoning_request;
use hermes_tests::{Call, Home, Reply, Request, Server};
use serde_json::{Value, json};

const MISSING: &str = "The `reasoning_content` in the thinking mode must be passed back to the API.";

fn read(id: &str) -> Call {
    Call::new(id, "read_file", &json!({"path": "notes.txt"}))
}

/// A server of models with `thinking` in their names, which refuse a request unless each reply with calls has its reasoning. Other
/// models refuse that member.
fn strict(replies: Vec<Reply>) -> Server {
    let replies = Mutex::new(replies.into_iter());
    Server::answering(move |body, _| {
        if body["tools"].is_null() {
            return Reply::text("A title");
        }
        let demanded = body["model"].as_str().unwrap().contains("thinking");
        let said = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
        for message in said {
            let blocks = message["content"].as_array().into_iter().flatten();
            let is = |kind: &str| blocks.clone().filter(|block| block["type"] == kind).count();
            let has_calls = !message["tool_calls"].is_null() || is("tool_use") > 0;
            let has_reasoning = message["reasoning_content"].as_str().is_some_and(|text| !text.is_empty());
            match demanded {
                true if has_calls && !has_reasoning && is("thinking") == 0 => return Reply::error(400, MISSING),
                false if !message["reasoning_content"].is_null() => {
                    return Reply::error(400, "property 'reasoning_content' is unsupported");
                }
                _ => {}
            }
        }
        replies.lock().unwrap().next().unwrap_or_else(|| Reply::error(500, "the script has no more replies"))
    })
}

/// The reasoning of each reply in a request.
fn echoed(request: &Request) -> Vec<Value> {
    let messages = request.messages();
    let said = messages.iter().filter(|message| message["role"] == "assistant");
    said.map(|message| message["reasoning_content"].clone()).collect()
}

#[test]
fn a_model_that_demands_its_reasoning_gets_it_in_every_process_and_after_another_model() {
    let signed = json!({"type": "reasoning.text", "text": "Notes.", "signature": "beta-signature"});
    let server = strict(vec![
        Reply::calls([read("a1")]).thinking([json!("I need the notes.")]),
        Reply::calls([read("a2")]).saying("Once more."),
        Reply::text("At five.").thinking([json!("Clear.")]),
        // Another process.
        Reply::text("Yes."),
        // Another model.
        Reply::calls([read("b1")]).thinking([signed]),
        Reply::text("Still five."),
        // The first one again.
        Reply::calls([read("a3")]).thinking([json!("Again.")]),
        Reply::text("Five."),
    ]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    let choose = |provider: &str, model: &str| {
        home.set("model.provider", json!(provider));
        home.set("model.default", json!(model));
    };
    let say = |text: &str, more: &[&str]| home.hermes(&[&["-z", text], more].concat()).run().success().stdout;

    choose("deepseek", "thinking-1");
    assert_eq!(say("When does it close?", &[]), "At five.\n");
    assert_eq!(say("Sure?", &["--continue"]), "Yes.\n");
    choose("groq", "other-1");
    assert_eq!(say("Look again.", &["--continue"]), "Still five.\n");
    choose("deepseek", "thinking-1");
    assert_eq!(say("And now?", &["--continue"]), "Five.\n");

    let turns = server.turns();
    let own = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect::<Vec<_>>();
    assert_eq!(echoed(&turns[1]), own(&["I need the notes."]));
    assert_eq!(echoed(&turns[2]), own(&["I need the notes.", " "]));
    assert_eq!(echoed(&turns[3]), own(&["I need the notes.", " ", "Clear."]));
    assert!(echoed(&turns[5]).iter().all(Value::is_null));
    assert_eq!(echoed(&turns[7]), own(&["I need the notes.", " ", "Clear.", " ", " ", " ", "Again."]));
    for request in turns.iter().filter(|request| request.body["model"] == "thinking-1") {
        assert_valid_reasoning_request(&request.body);
        assert!(!request.raw_member("messages").contains("beta-signature"));
    }
    // Each request repeats the bytes of the one before, also in another process.
    for (earlier, later) in [(0, 1), (1, 2), (2, 3), (3, 6), (6, 7)] {
        let (earlier, later) = (turns[earlier].raw_member("messages"), turns[later].raw_member("messages"));
        assert!(later.starts_with(earlier.strip_suffix(']').unwrap()), "{earlier}\n{later}");
    }
}

#[test]
fn unsigned_thinking_goes_back_to_a_provider_of_the_messages_api_that_demands_it() {
    let thinking = |text: &str| json!({"type": "thinking", "thinking": text, "signature": ""});
    let server = strict(vec![
        Reply::calls([read("a1")]).thinking([thinking("I need the notes.")]),
        Reply::calls([read("a2")]),
        Reply::text("At five."),
    ]);
    let home = Home::with_anthropic(&server);
    home.set("model.provider", json!("kimi-coding"));
    home.set("model.default", json!("thinking-1"));
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    assert_eq!(home.hermes(&["-z", "When does it close?"]).run().success().stdout, "At five.\n");
    let last = server.last_turn();
    let said: Vec<Value> = last.messages().iter().filter(|message| message["role"] == "assistant").cloned().collect();
    let firsts: Vec<&Value> = said.iter().map(|message| &message["content"][0]).collect();
    let blank = json!({"type": "thinking", "thinking": " "});
    assert_eq!(firsts, [&json!({"type": "thinking", "thinking": "I need the notes."}), &blank]);
}
