//! OpenAI's chat format: the name of the cap on output, replies, streams, and thinking in tags.

use serde_json::{Value, json};

use super::{differs, run};
use crate::assembly::{Assemble, chat::Assembly};
use crate::wire::history;
use crate::{
    ApiMode, Breakpoints, Delta, Dialect, Echo, Finish, Marks, Prefix, Reply, Request, Style, System, ToolChoice, body,
};

#[test]
fn completion_param() {
    run(
        "completion_param",
        &[],
        |input| {
            let prefix = Prefix::new(Style::new(ApiMode::ChatCompletions, Marks::None), "", System::plain("")).unwrap();
            let request = Request {
                model: input["model"].as_str().unwrap(),
                prefix: &prefix,
                breakpoints: Breakpoints::default(),
                max_tokens: Some(7),
                temperature: None,
                schema: None,
                tool_choice: ToolChoice::Auto,
                effort: None,
            };
            let body: Value = serde_json::from_slice(&body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap();
            assert!(body.get("max_tokens").is_some() != body.get("max_completion_tokens").is_some());
            json!({"max_completion_tokens": body["max_completion_tokens"] == 7})
        },
        Value::clone,
    );
}

fn told(reply: &Reply) -> Value {
    let calls = reply.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments]));
    let finish = match reply.finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Refused => "content_filter",
    };
    json!({
        "content": reply.text,
        "reasoning": reply.reasoning,
        "calls": calls.collect::<Vec<_>>(),
        "finish_reason": finish,
    })
}

/// What is compared of a recorded reply.
fn recorded(expected: &Value) -> Value {
    let calls = expected["tool_calls"].as_array().into_iter().flatten();
    json!({
        "content": expected["content"].as_str().unwrap_or_default(),
        "reasoning": expected["reasoning"],
        "calls": calls.map(|call| json!([call["id"], call["name"], call["arguments"]])).collect::<Vec<_>>(),
        "finish_reason": expected["finish_reason"],
    })
}

#[test]
fn chat_reply() {
    run(
        "chat_reply",
        &[differs(
            "finish-integer",
            "a reason that no provider documents is a stop",
            json!({"content": "x", "reasoning": null, "calls": [], "finish_reason": "stop"}),
        )],
        |input| {
            let mut assembly = Assembly::new(Echo::RETURNED);
            assembly.take_whole(&json!({"choices": [input]}), &mut |_| {}).unwrap();
            told(&Box::new(assembly).finish("m", &mut || "made".to_owned()).unwrap())
        },
        recorded,
    );
}

#[test]
fn chat_stream() {
    const AS_WRITTEN: &str = "arguments that were cut off are not closed, which the recording calls questionable";
    const NOT_WHOLE: &str = "half a reply is never called whole: without a finish reason and an end, it is cut off";
    let call =
        json!({"content": "", "reasoning": null, "calls": [["c1", "ls", "{\"a\": 1"]], "finish_reason": "tool_calls"});
    run(
        "chat_stream",
        &[
            differs("args-unclosed", AS_WRITTEN, call),
            differs("drop-after-complete-tool", NOT_WHOLE, json!({"error": true})),
        ],
        |input| {
            let mut assembly = Assembly::new(Echo::RETURNED);
            for chunk in input["chunks"].as_array().unwrap() {
                let choices = match chunk.get("delta") {
                    Some(delta) => json!([{"index": 0, "delta": delta, "finish_reason": chunk["finish"]}]),
                    None => json!([]),
                };
                assembly.take(&json!({"choices": choices, "usage": chunk["usage"]}), &mut |_| {}).unwrap();
            }
            match Box::new(assembly).finish("m", &mut || "made".to_owned()) {
                Ok(reply) => told(&reply),
                Err(_) => json!({"error": true}),
            }
        },
        |expected| if expected["error"].is_null() { recorded(expected) } else { json!({"error": true}) },
    );
}

#[test]
fn think_scrub() {
    const AMID: &str = "a tag amid a text belongs to the text: the user may have asked about it";
    run(
        "think_scrub",
        &[
            differs("mid-line-pair-split-kept", AMID, json!({"visible": "before <think>x</think> after"})),
            differs("stray-close", AMID, json!({"visible": "answer</think> more"})),
        ],
        |input| {
            let mut text = String::new();
            let mut assembly = Assembly::new(Echo::RETURNED);
            let mut show = |delta: Delta<'_>| {
                if let Delta::Text(shown) = delta {
                    text.push_str(shown);
                }
            };
            for piece in input["pieces"].as_array().unwrap() {
                if let Some(piece) = piece.as_str() {
                    let event = json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]});
                    assembly.take(&event, &mut show).unwrap();
                } else {
                    assembly.close(&mut show);
                    assembly = Assembly::new(Echo::RETURNED);
                }
            }
            assembly.close(&mut show);
            json!({ "visible": text.trim() })
        },
        |expected| {
            let pieces = expected["visible"].as_array().unwrap().iter().filter_map(Value::as_str);
            let text: String = pieces.collect();
            json!({"visible": (text + expected["flush"].as_str().unwrap_or_default()).trim()})
        },
    );
}

#[test]
fn tool_args_repair() {
    const AGAIN: &str = "arguments that are not JSON are not guessed: the model writes the call again";
    run(
        "tool_args_repair",
        &[differs("trailing-comma", AGAIN, json!({})), differs("control-chars", AGAIN, json!({}))],
        |input| serde_json::from_str(&history::arguments(input["text"].as_str().unwrap())).unwrap(),
        Value::clone,
    );
}
