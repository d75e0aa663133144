//! Replies that the model's output limit cuts: everyone who reads them can tell.

use hermes_tests::wire::Wire;
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

const HALF: &str = "The three steps are: first stop the";
const MARK: &str = "[The reply reached the model's output limit here, so it is not complete.]";
const WIRES: [Wire; 3] = [Wire::ChatCompletions, Wire::AnthropicMessages, Wire::Responses];

fn home(wire: Wire, server: &Server) -> Home {
    match wire {
        Wire::ChatCompletions => Home::with(server),
        Wire::AnthropicMessages => Home::with_anthropic(server),
        Wire::Responses => Home::with_responses(server),
    }
}

#[test]
fn an_answer_that_is_cut_says_so_in_every_form_and_in_the_log() {
    for wire in WIRES {
        let server = Server::answering(|_, _| Reply::text(HALF).cut());
        let home = home(wire, &server);
        let output = home.hermes(&["-z", "How?"]).run().exits(9);
        assert_eq!(output.stdout, format!("{HALF}\n"), "{wire:?}: standard output has the answer alone");
        let output =
            output.says(&["the answer is not complete", "the reply reached the model's output limit", "go on"]);
        assert!(!output.stderr.contains(HALF), "{output}");
        let log = home.messages();
        assert_eq!(log[1]["content"], format!("{HALF}\n\n{MARK}"), "{wire:?}");

        let output = home.hermes(&["-z", "How?", "--json"]).run().exits(9);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&report["answer"], &report["end"]), (&json!(HALF), &json!("cut")), "{wire:?}");
        assert_eq!(report["error"]["code"], "cli.cut", "{wire:?}");

        let output = home.hermes(&["-z", "How?", "--stream-json"]).run().exits(9);
        let events = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let ended = events.into_iter().find(|event| event["kind"]["event"] == "turn-ended").unwrap();
        assert_eq!(ended["kind"]["end"], json!({"end": "cut", "text": HALF}), "{wire:?}");

        let output = home.hermes(&["chat"]).stdin("How?").run().exits(9);
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert!(shown.contains(MARK) && shown.contains("the answer is not complete"), "{wire:?}: {output}");
        home.hermes(&["chat", "-q", "How?"]).run().exits(9).says(&["the answer is not complete"]);
    }
}

#[test]
fn the_model_knows_that_its_last_reply_was_cut() {
    let server = Server::scripted([Reply::text(HALF).cut(), Reply::text("pump.")]);
    let home = Home::with(&server);
    home.hermes(&["-z", "How?"]).run().exits(9);
    assert_eq!(home.hermes(&["-z", "go on", "--continue"]).run().success().stdout, "pump.\n");
    assert_eq!(server.last_turn().messages()[2]["content"], format!("{HALF}\n\n{MARK}"));
}

#[test]
fn a_limit_that_went_into_reasoning_is_named_as_the_cause_and_not_used_up_twice() {
    for wire in WIRES {
        let thought = match wire {
            Wire::ChatCompletions => json!("Long thoughts."),
            Wire::AnthropicMessages => json!({"type": "thinking", "thinking": "Long thoughts.", "signature": "s"}),
            Wire::Responses => json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed",
                "summary": [{"type": "summary_text", "text": "Long thoughts."}]}),
        };
        let server = Server::answering(move |_, _| Reply::text("").thinking([thought.clone()]).cut());
        let home = home(wire, &server);
        let output = home.hermes(&["-z", "How?"]).run().exits(9);
        output.says(&["used up its output limit for reasoning", "lower model.reasoning_effort"]);
        assert_eq!(server.turns().len(), 1, "{wire:?}");
        let output = home.hermes(&["-z", "How?", "--json"]).run().exits(9);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&report["end"], &report["error"]["code"]), (&json!("failed"), &json!("session.cut")), "{wire:?}");
    }
    let server = Server::answering(|_, _| Reply::text("").cut());
    let output = Home::with(&server).hermes(&["-z", "How?"]).run().exits(9);
    output.says(&["reached its output limit before it wrote anything"]);
}

#[test]
fn a_fallback_that_is_cut_and_a_message_that_is_sent_again_say_so_too() {
    let down = Server::answering(|_, _| Reply::error(401, "wrong key"));
    let cut = Server::answering(|_, _| Reply::text(HALF).cut());
    let home = Home::with(&down);
    let entry = json!({"provider": "custom", "model": "stand-in", "base_url": cut.url(), "api_key": hermes_tests::KEY});
    home.set("fallback_providers", json!([entry]));
    home.hermes(&["-z", "How?"]).run().exits(9).says(&["the answer is not complete"]);
    let output = home.hermes(&["chat"]).stdin("How?\n/retry").run().exits(9);
    let shown = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(shown.matches("the answer is not complete").count(), 2, "{output}");
}

#[test]
fn a_parent_is_told_that_the_report_of_its_subagent_is_cut() {
    for background in [false, true] {
        let server = Server::answering(move |body, number| {
            let messages = body["messages"].as_array().cloned().unwrap_or_default();
            let said = messages.iter().find(|message| message["role"] == "user").cloned().unwrap_or_default();
            if said["content"].as_str().unwrap_or_default().contains("[You are a subagent") {
                return Reply::text(HALF).cut();
            }
            match messages.iter().any(|message| message["role"] == "tool") {
                true => Reply::text("Done."),
                false => {
                    let arguments = json!({"goal": "Find the steps.", "background": background});
                    Reply::calls([Call::new(&format!("call_{number}"), "delegate_task", &arguments)])
                }
            }
        });
        let home = Home::with(&server);
        home.set("delegation.background", json!(true));
        let script = if background { "Go.\nAnd now?\nAnd now?" } else { "Go." };
        home.hermes(&["chat"]).stdin(script).run().success();
        let told = server.turns().iter().rev().find_map(|request| {
            let texts = request.messages().iter().filter_map(|message| message["content"].as_str());
            texts.map(str::to_owned).find(|text| text.contains(r#""status":"cut""#))
        });
        if background && told.is_none() {
            // The task may end behind the last message; the next one has its result.
            continue;
        }
        let told = told.expect("the parent gets the result");
        assert!(told.contains(HALF) && told.contains("reached the model's output limit and is not complete"), "{told}");
    }
}
