//! What a model once made up goes back in a form that providers take, while the log keeps it; and refusals that no list knows.

use hermes_tests::wire::Wire;
use hermes_tests::{Home, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

/// Calls that models made up: a name and arguments.
const MADE_UP: [(&str, &str); 6] = [
    ("functions.write_file", r#"{"path":"n.txt","content":"x"}"#),
    ("multi_tool_use.parallel", r#"{"tool_uses":["\ud83d"]}"#),
    ("write file<|channel|>json", "[1]"),
    ("schreibe_grüße", "{'path': 1}"),
    ("写文件", r#"{"n":1e999,"z":"\u0000"}"#),
    ("7zip", ""),
];

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// Refuses what providers refuse of the calls in a request.
fn check(wire: Wire, body: &Value) -> Result<(), String> {
    let lists = [&body["messages"], &body["input"]];
    let messages = lists.into_iter().filter_map(Value::as_array).flatten();
    let mut calls = Vec::new();
    for message in messages {
        let inner = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]);
        calls.extend(inner);
        calls.extend(message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "tool_use"));
        calls.extend(Some(message).filter(|item| item["type"] == "function_call"));
    }
    for call in calls {
        let name = call["name"].as_str().unwrap_or_default();
        if !is_name(name) {
            return Err(format!("{wire:?}: the name `{name}` does not match ^[a-zA-Z0-9_-]{{1,64}}$"));
        }
        let arguments = match &call["arguments"] {
            Value::String(text) => serde_json::from_str::<Value>(text).map_err(|error| error.to_string())?,
            _ => call["input"].clone(),
        };
        if !arguments.is_object() || arguments.to_string().contains("\\u0000") {
            return Err(format!("{wire:?}: the arguments {arguments}"));
        }
    }
    Ok(())
}

/// A stream of chat completions with all of the calls. A test of the assemblies has the other formats.
fn made_up() -> Reply {
    let calls: Vec<Value> = MADE_UP
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            json!({"index": index, "id": format!("call {index}"), "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let events = [
        json!({"choices": [{"index": 0, "delta": {"content": "\n", "tool_calls": calls}, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Reply::raw(200, "text/event-stream", format!("{stream}data: [DONE]\n\n"))
}

#[test]
fn a_session_with_made_up_calls_goes_on_in_every_wire_format_and_its_log_keeps_them() {
    let server = Server::scripted([made_up(), Reply::text("I see."), Reply::text("Still here.")]).checking(check);
    let home = Home::with(&server);
    home.hermes(&["-z", "Write."]).run().success();
    home.hermes(&["-z", "Again.", "--continue"]).run().success();
    let log = home.messages();
    let names: Vec<&str> =
        log[1]["tool_calls"].as_array().unwrap().iter().map(|call| call["name"].as_str().unwrap()).collect();
    assert_eq!(names, MADE_UP.map(|(name, _)| name), "the log keeps what the model wrote");
    let sent = server.last_turn();
    let before = &server.turns()[1];
    hermes_tests::oracle::assert_extends(&before.body, &sent.body);

    // Another provider gets the same conversation.
    for wire in [Wire::AnthropicMessages, Wire::Responses] {
        let other = Server::scripted([Reply::text("Hello.")]).checking(check);
        let url = if wire == Wire::AnthropicMessages { other.anthropic_url() } else { other.url() };
        home.set("model.base_url", json!(url));
        home.set("model.api_mode", json!(wire.name()));
        let output = home.hermes(&["-z", "And you?", "--continue"]).run().success();
        assert_eq!(output.stdout, "Hello.\n", "{wire:?}");
    }
}

/// About four thousand tokens.
fn long() -> String {
    "All of this is one message. ".repeat(600)
}

/// A model that refuses long requests in these words.
fn refusing(status: u16, body: Value) -> Server {
    Server::answering(move |request, _| {
        if is_auxiliary(request) {
            return Reply::text("## Goal\nThe user repeated a sentence.");
        }
        match request["messages"].to_string().len() > 40_000 {
            true => Reply::json(status, &body),
            false => Reply::text("Read."),
        }
    })
}

fn refusals(server: &Server) -> usize {
    server.turns().iter().filter(|request| request.body["messages"].to_string().len() > 40_000).count()
}

#[test]
fn a_request_that_is_too_long_is_compacted_in_whatever_words_it_is_refused() {
    for (status, body) in [
        (
            413,
            json!({"error": {"message": "Request too large for model `x`", "type": "tokens", "code": "rate_limit_exceeded"}}),
        ),
        (400, json!({"error": {"message": "The dialogue you handed over goes beyond the prompt we can take in"}})),
        (422, json!({"detail": "La requête est trop longue"})),
        (500, json!({"error": {"message": "context shift is disabled", "code": 500}})),
        // Not even the language is known, but a number is near what was sent.
        (400, json!({"error": {"message": "ei mahdu: 12000"}})),
    ] {
        let server = refusing(status, body.clone());
        let home = Home::with(&server);
        let output = home.hermes(&["chat"]).stdin(&[long(), long(), long(), long()].join("\n")).run().success();
        assert_eq!(output.stdout.matches("Read.").count(), 4, "{body}: {output}");
        assert!(refusals(&server) > 0, "{body}: {output}");
    }
}

#[test]
fn other_refusals_are_no_reason_to_compact() {
    for message in ["Unknown parameter: 'top_k'", "max_tokens must be at most 4096", "tools.0.name: string too long"] {
        let server = refusing(400, json!({"error": {"message": message}}));
        let home = Home::with(&server);
        let output = home.hermes(&["chat"]).stdin(&[long(), long(), long()].join("\n")).run();
        assert!(!format!("{output}").contains("compacted by"), "{message}: {output}");
        let output = output.exits(4);
        assert!(refusals(&server) <= 2, "{message}: {output}");
    }
}
