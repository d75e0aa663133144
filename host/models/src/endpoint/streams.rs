//! A table of streams in the three wire formats: as they should be, as imitators write them, cut, failed and silent. The same steps are
//! written in each format and read as an endpoint reads them.

#![allow(clippy::unwrap_used)]

use futures_util::stream;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Finish, Wanted, resolve};

const MODES: [ApiMode; 3] = [ApiMode::ChatCompletions, ApiMode::AnthropicMessages, ApiMode::Responses];

/// One step of a stream.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A text in two pieces.
    Text(&'static str),
    Think(&'static str),
    /// A call with its id, name and arguments, in two pieces.
    Call(&'static str, &'static str, &'static str),
    /// A call that is not complete.
    HalfCall(&'static str, &'static str, &'static str),
    /// Why it ends. The Responses API has it in its last event.
    Reason(&'static str),
    /// What ends a stream of the format.
    End,
    Done,
    /// A line of a stream, as it is.
    Raw(&'static str),
    /// Lines of the three formats.
    Each([&'static str; 3]),
    /// So many seconds without a byte.
    Pause(u64),
    /// Silence until the connection is given up.
    Silence,
}

use Step::{Call, Done, Each, End, HalfCall, Pause, Raw, Reason, Silence, Text, Think};

/// Writes steps in one format.
struct Writer {
    mode: ApiMode,
    number: u64,
    reason: &'static str,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Bytes(Vec<u8>),
    Pause(u64),
    Silence,
}

fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second]
}

impl Writer {
    fn write(mode: ApiMode, steps: &[Step]) -> Vec<Piece> {
        let mut writer = Self { mode, number: 0, reason: "stop", pieces: Vec::new() };
        match mode {
            ApiMode::ChatCompletions => writer.delta(json!({"role": "assistant", "content": ""})),
            ApiMode::AnthropicMessages => {
                writer.event(
                    &json!({"type": "message_start", "message": {"model": "served", "content": [], "usage": {}}}),
                );
            }
            ApiMode::Responses => {
                writer.event(&json!({"type": "response.created", "response": {"status": "in_progress"}}))
            }
        }
        steps.iter().for_each(|step| writer.step(*step));
        writer.pieces
    }

    fn line(&mut self, line: &str) {
        self.pieces.push(Piece::Bytes(format!("{line}\n\n").into_bytes()));
    }

    fn event(&mut self, event: &Value) {
        self.line(&format!("event: {}\ndata: {event}", event["type"].as_str().unwrap()));
    }

    fn delta(&mut self, delta: Value) {
        self.line(&format!(
            "data: {}",
            json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
        ));
    }

    fn block(&mut self, block: Value, deltas: &[Value], closed: bool) {
        let index = self.number;
        self.event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in deltas {
            self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        if closed {
            self.event(&json!({"type": "content_block_stop", "index": index}));
        }
    }

    fn item(&mut self, begun: Value, kind: &str, deltas: &[&str], done: Option<Value>) {
        let index = self.number;
        self.event(&json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        for delta in deltas {
            self.event(&json!({"type": kind, "output_index": index, "item_id": begun["id"], "delta": delta}));
        }
        if let Some(done) = done {
            self.event(&json!({"type": "response.output_item.done", "output_index": index, "item": done}));
        }
    }

    fn call(&mut self, id: &str, name: &str, arguments: &str, is_whole: bool) {
        let pieces = halves(arguments);
        match self.mode {
            ApiMode::ChatCompletions => {
                let index = self.number;
                self.delta(
                    json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": ""}}]}),
                );
                for piece in pieces {
                    self.delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
                }
            }
            ApiMode::AnthropicMessages => {
                let deltas = pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
                self.block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}), &deltas, is_whole);
            }
            ApiMode::Responses => {
                let item = |arguments: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments});
                let done = is_whole.then(|| item(arguments));
                self.item(item(""), "response.function_call_arguments.delta", &pieces, done);
            }
        }
    }

    fn step(&mut self, step: Step) {
        self.number += 1;
        match (step, self.mode) {
            (Text(text), ApiMode::ChatCompletions) => {
                halves(text).iter().for_each(|piece| self.delta(json!({"content": piece})))
            }
            (Text(text), ApiMode::AnthropicMessages) => {
                let deltas = halves(text).map(|piece| json!({"type": "text_delta", "text": piece}));
                self.block(json!({"type": "text", "text": ""}), &deltas, true);
            }
            (Text(text), ApiMode::Responses) => {
                let begun = json!({"type": "message", "id": format!("m{}", self.number), "content": []});
                let mut done = begun.clone();
                done["content"] = json!([{"type": "output_text", "text": text}]);
                self.item(begun, "response.output_text.delta", &halves(text), Some(done));
            }
            (Think(text), ApiMode::ChatCompletions) => self.delta(json!({"reasoning_content": text})),
            (Think(text), ApiMode::AnthropicMessages) => {
                self.block(
                    json!({"type": "thinking", "thinking": ""}),
                    &[json!({"type": "thinking_delta", "thinking": text})],
                    true,
                );
            }
            (Think(text), ApiMode::Responses) => {
                let begun = json!({"type": "reasoning", "id": format!("r{}", self.number), "summary": []});
                self.item(begun.clone(), "response.reasoning_summary_text.delta", &[text], Some(begun));
            }
            (Call(id, name, arguments), _) => self.call(id, name, arguments, true),
            (HalfCall(id, name, arguments), _) => self.call(id, name, arguments, false),
            (Reason(reason), ApiMode::ChatCompletions) => {
                self.line(&format!(
                    "data: {}",
                    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
                ));
            }
            (Reason(reason), ApiMode::AnthropicMessages) => {
                let reason = match reason {
                    "stop" => "end_turn",
                    "length" => "max_tokens",
                    "tool_calls" => "tool_use",
                    "content_filter" => "guardrail_intervened",
                    other => other,
                };
                self.event(
                    &json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}),
                );
            }
            (Reason(reason), ApiMode::Responses) => self.reason = reason,
            (End, ApiMode::ChatCompletions) => {
                self.line(r#"data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#);
                self.line("data: [DONE]");
            }
            (End, ApiMode::AnthropicMessages) => self.event(&json!({"type": "message_stop"})),
            (End, ApiMode::Responses) => {
                let response = match self.reason {
                    "stop" | "tool_calls" => json!({"type": "response.completed", "response": {"status": "completed"}}),
                    "length" => {
                        json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}})
                    }
                    "content_filter" => {
                        json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}})
                    }
                    other => {
                        json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": other, "message": format!("ended: {other}")}}})
                    }
                };
                self.event(&response);
            }
            (Done, _) => self.line("data: [DONE]"),
            (Raw(line), _) => self.line(line),
            (Each(lines), mode) => self.line(lines[MODES.iter().position(|known| *known == mode).unwrap()]),
            (Pause(seconds), _) => self.pieces.push(Piece::Pause(seconds)),
            (Silence, _) => self.pieces.push(Piece::Silence),
        }
    }
}

fn endpoint(mode: ApiMode) -> Endpoint {
    let wanted = Wanted {
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        model: Some("m".to_owned()),
        api_mode: Some(mode.as_str().to_owned()),
        ..Wanted::default()
    };
    let route = resolve(&Wanted::default(), &|_| None, &wanted).unwrap();
    Endpoint::new(
        &route,
        &Logins::new(
            "/nonexistent/auth.json".into(),
            hermes_private_files::FileDocuments::below("/nonexistent".as_ref()),
        ),
        Patience::for_route(&route),
    )
    .unwrap()
}

fn assembly(mode: ApiMode) -> Box<dyn Assemble> {
    use crate::assembly::{chat, messages, responses};
    match mode {
        ApiMode::ChatCompletions => Box::new(chat::Assembly::new(crate::Echo::RETURNED)),
        ApiMode::AnthropicMessages => Box::new(messages::Assembly::new(false)),
        ApiMode::Responses => Box::new(responses::Assembly::default()),
    }
}

/// Longer than anything that is waited for but the next byte.
const SILENCE: Duration = Duration::from_secs(10_000);

async fn read(mode: ApiMode, pieces: Vec<Piece>) -> (Result<Reply, ModelError>, String) {
    let bytes = stream::iter(pieces).then(|piece| async move {
        match piece {
            Piece::Bytes(bytes) => Ok(Bytes::from(bytes)),
            Piece::Pause(seconds) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(Bytes::new())
            }
            Piece::Silence => {
                tokio::time::sleep(SILENCE).await;
                Err(std::io::Error::from(std::io::ErrorKind::TimedOut))
            }
        }
    });
    let mut shown = String::new();
    let mut on_delta = |delta: Delta<'_>| {
        if let Delta::Text(text) = delta {
            shown.push_str(text);
        }
    };
    let read = endpoint(mode).read_events(Box::pin(bytes), "m", assembly(mode), &mut on_delta).await;
    (read.map_err(|failed| failed.error), shown)
}

/// What became of a stream, in one line.
fn told(read: &Result<Reply, ModelError>) -> String {
    match read {
        Ok(reply) => {
            let end = match reply.finish {
                Finish::Stop | Finish::ToolCalls => "",
                Finish::Length => " (cut by the limit)",
                Finish::Refused => " (declined)",
            };
            let thought = reply.reasoning.as_ref().map_or_else(String::new, |reasoning| format!(" [{reasoning}]"));
            let calls: Vec<String> =
                reply.tool_calls.iter().map(|call| format!(" {}:{}{}", call.id, call.name, call.arguments)).collect();
            format!("{}{thought}{}{end}", reply.text, calls.concat())
        }
        Err(ModelError::Cut { partial, .. }) => format!("CUT {partial}"),
        Err(ModelError::Server { message, .. }) => format!("ERROR {message}"),
        Err(ModelError::Refused { message, .. }) => format!("STOPPED {message}"),
        Err(ModelError::Malformed { .. }) => "MALFORMED".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

/// What every format makes of a stream, or each of them.
enum Expected {
    All(&'static str),
    Of([&'static str; 3]),
}

use Expected::{All, Of};

const A: &str = "{\"n\":1}";
const B: &str = "{\"n\":2}";

fn table() -> Vec<(&'static str, Vec<Step>, Expected)> {
    vec![
        // As they should be.
        ("text", vec![Text("Hello"), Reason("stop"), End], All("Hello")),
        ("reasoning and text", vec![Think("hm"), Text("Hello"), Reason("stop"), End], All("Hello [hm]")),
        ("a call", vec![Call("a", "ls", A), Reason("tool_calls"), End], All(" a:ls{\"n\":1}")),
        (
            "text and two calls",
            vec![Text("Look"), Call("a", "ls", A), Call("b", "ls", B), Reason("tool_calls"), End],
            All("Look a:ls{\"n\":1} b:ls{\"n\":2}"),
        ),
        ("a call under another reason", vec![Call("a", "ls", A), Reason("stop"), End], All(" a:ls{\"n\":1}")),
        (
            "comments, pings and other events between",
            vec![
                Raw(": c"),
                Text("Hello"),
                Raw("event: ping\ndata: {\"type\":\"ping\"}"),
                Raw("event: ping"),
                Raw("data: : C"),
                Raw("data: {\"type\":\"later\",\"id\":\"x\",\"note\":\"hi\"}"),
                Reason("stop"),
                End,
            ],
            All("Hello"),
        ),
        // What a limit or a filter cut.
        ("the limit amid a text", vec![Text("Hello"), Reason("length"), End], All("Hello (cut by the limit)")),
        ("the limit amid reasoning", vec![Think("hm"), Reason("length"), End], All(" [hm] (cut by the limit)")),
        (
            "the limit amid a call",
            vec![Text("Look"), HalfCall("a", "ls", "{\"n\":"), Reason("length"), End],
            All("Look a:ls{\"n\": (cut by the limit)"),
        ),
        (
            "a filter",
            vec![Text("He"), Reason("content_filter"), End],
            Of([
                "STOPPED the provider stopped the reply with the reason `content_filter`; it is not whole",
                "STOPPED the provider stopped the reply with the reason `guardrail_intervened`; it is not whole",
                "STOPPED the provider stopped the reply with the reason `content_filter`; it is not whole",
            ]),
        ),
        ("a filter before all", vec![Reason("content_filter"), End], All(" (declined)")),
        (
            "a notice amid a reply",
            vec![
                Text("He"),
                Raw("event: warning\ndata: {\"message\":\"x\"}"),
                Raw("data: {\"message\":\"x\"}"),
                Reason("stop"),
                End,
            ],
            All("He"),
        ),
        ("words at the end", vec![Text("He"), Raw("data: {\"message\":\"it broke\"}")], All("ERROR it broke")),
        // Broken off.
        ("a text and no end", vec![Text("Hello")], All("CUT Hello")),
        ("a call and no end", vec![Text("Look"), Call("a", "ls", A)], All("CUT Look")),
        ("nothing", vec![], All("CUT ")),
        ("half an event", vec![Text("Hello"), Raw("data: {\"choices\":[{\"del")], All("CUT Hello")),
        ("[DONE] without a reason", vec![Text("Hello"), Done], Of(["Hello", "CUT Hello", "CUT Hello"])),
        ("a reason, and the stream ends", vec![Text("Hello"), Reason("stop")], Of(["Hello", "Hello", "CUT Hello"])),
        ("a reason and [DONE]", vec![Text("Hello"), Reason("stop"), Done], Of(["Hello", "Hello", "CUT Hello"])),
        (
            "a reason, more text, and the stream ends",
            vec![Text("one "), Reason("stop"), Text("two")],
            Of(["CUT one two", "CUT one \ntwo", "CUT one \n\ntwo"]),
        ),
        // Silence.
        ("silence before all", vec![Silence], All("CUT ")),
        ("silence behind a text", vec![Text("Hello"), Silence], All("CUT Hello")),
        ("silence behind a reason", vec![Text("Hello"), Reason("stop"), Silence], Of(["Hello", "Hello", "CUT Hello"])),
        (
            "pings behind a reason",
            vec![
                Text("Hello"),
                Reason("stop"),
                Pause(2),
                Raw("event: ping\ndata: {\"type\":\"ping\"}"),
                Pause(2),
                Raw(": c"),
                Pause(2),
                Raw(": c"),
                Silence,
            ],
            Of(["Hello", "Hello", "CUT Hello"]),
        ),
        (
            "silence behind a reason and more text",
            vec![Text("one "), Reason("stop"), Text("two"), Silence],
            Of(["CUT one two", "CUT one \ntwo", "CUT one \n\ntwo"]),
        ),
        (
            "a pause, and it goes on",
            vec![Text("one"), Pause(100), Call("a", "ls", A), Reason("stop"), End],
            All("one a:ls{\"n\":1}"),
        ),
        (
            "a reason, more, and the end",
            vec![Think("hm"), Reason("stop"), Text("one"), Reason("stop"), Call("a", "ls", A), Reason("stop"), End],
            All("one [hm] a:ls{\"n\":1}"),
        ),
        (
            "the limit, and a plain stop behind it",
            vec![Text("Hello"), Reason("length"), Reason("stop")],
            Of(["Hello (cut by the limit)", "Hello (cut by the limit)", "CUT Hello"]),
        ),
        // Errors.
        (
            "an error",
            vec![Text("half"), Raw("data: {\"error\":{\"message\":\"it broke\"}}"), End],
            All("ERROR it broke"),
        ),
        ("an error as text", vec![Text("half"), Raw("data: {\"error\":\"it broke\"}"), End], All("ERROR it broke")),
        (
            "a named error with a message",
            vec![Text("half"), Raw("event: error\ndata: {\"message\":\"it broke\"}"), End],
            All("ERROR it broke"),
        ),
        ("a named error in words", vec![Text("half"), Raw("event: error\ndata: it broke"), End], All("ERROR it broke")),
        ("a detail", vec![Text("half"), Raw("data: {\"detail\":\"it broke\"}"), End], All("ERROR it broke")),
        (
            "an object that is an error",
            vec![Text("half"), Raw("data: {\"object\":\"error\",\"message\":\"it broke\",\"code\":500}"), End],
            All("ERROR it broke"),
        ),
        ("plain words", vec![Text("half"), Raw("data: it broke"), End], All("ERROR it broke")),
        ("an error without words", vec![Text("half"), Raw("event: error"), End], All("ERROR an error of the server")),
        (
            "a bad reason",
            vec![Text("half"), Reason("abort"), End],
            Of([
                "ERROR the reply ended with the reason `abort`",
                "ERROR the reply ended with the reason `abort`",
                "ERROR ended: abort",
            ]),
        ),
        ("an event that is no JSON", vec![Text("half"), Raw("data: {\"a\":"), Reason("stop"), End], All("MALFORMED")),
        // Imitators.
        (
            "halves of a character in two events",
            vec![
                Each([
                    "data: {\"choices\":[{\"delta\":{\"content\":\"go \\ud83d\"}}]}",
                    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"go \\ud83d\"}}",
                    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"go \\ud83d\"}",
                ]),
                Each([
                    "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude80 now\"}}]}",
                    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ude80 now\"}}",
                    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\\ude80 now\"}",
                ]),
                Reason("stop"),
                End,
            ],
            All("go 🚀 now"),
        ),
        (
            "half a character in what nobody reads",
            vec![Text("Hello"), Raw("data: {\"type\":\"later\",\"id\":\"\\ud83d\"}"), Reason("stop"), End],
            All("Hello"),
        ),
        (
            "half a character in arguments",
            vec![Call("a", "ls", "{\"p\":\"x\\ud83dy\"}"), Reason("stop"), End],
            All(" a:ls{\"p\":\"x\\ufffdy\"}"),
        ),
        (
            "several events in one list",
            vec![
                Each([
                    r#"data: [{"choices":[{"delta":{"content":"Hel"}},{"delta":{"content":"l"}}]},{"choices":[{"delta":{"content":"o"}}]}]"#,
                    r#"data: [{"type":"content_block_delta","index":0,"delta":{"text":"Hel"}},{"type":"content_block_delta","index":0,"delta":{"text":"lo"}}]"#,
                    r#"data: [{"type":"response.output_text.delta","delta":"Hel"},{"type":"response.output_text.delta","delta":{"text":"lo"}}]"#,
                ]),
                Reason("stop"),
                End,
            ],
            All("Hello"),
        ),
        (
            "the whole reply as one event",
            vec![Each([
                r#"data: {"object":"chat.completion","choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#,
                r#"data: {"type":"message","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}"#,
                r#"data: {"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}"#,
            ])],
            All("Hello"),
        ),
        (
            "thinking in the text with attributes and tags in it",
            vec![Text("<think a=\"1\">h <think>m</think> m</think >\n\nHello `</think>`"), Reason("stop"), End],
            All("Hello `</think>` [h <think>m</think> m]"),
        ),
        (
            "the marks of harmony",
            vec![
                Text(
                    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>",
                ),
                Reason("stop"),
                End,
            ],
            All("Hello [hm]"),
        ),
        (
            "a closing tag amid a text",
            vec![Text("Write this:\n</think>\nand go on."), Reason("stop"), End],
            All("Write this:\n</think>\nand go on."),
        ),
        ("thinking in the text", vec![Text("<think>hm</think>\n\nHello"), Reason("stop"), End], All("Hello [hm]")),
        (
            "thinking in the text, cut by the limit",
            vec![Text("<think>hm"), Reason("length"), End],
            All(" [hm] (cut by the limit)"),
        ),
        ("thinking without its first tag", vec![Text("hm\n</think>\n\nHello"), Reason("stop"), End], All("Hello [hm]")),
        (
            "thinking without its first tag, and a call",
            vec![Text("hm</think>"), Call("a", "ls", A), Reason("stop"), End],
            All(" [hm] a:ls{\"n\":1}"),
        ),
        (
            "a tag amid a text",
            vec![Text("Write `<think>` and `</think>`."), Reason("stop"), End],
            All("Write `<think>` and `</think>`."),
        ),
        ("thinking that is never closed", vec![Text("<think>so it is"), Reason("stop"), End], All("<think>so it is")),
        ("thinking that is never closed, cut", vec![Text("<think>so it is")], All("CUT ")),
        (
            "a call without a name",
            vec![Text("Look"), Call("a", "", A), Call("b", "ls", B), Reason("tool_calls"), End],
            All("Look a:call_without_a_name{\"n\":1} b:ls{\"n\":2}"),
        ),
        ("a call of nothing", vec![Text("Look"), Call("", "", ""), Reason("stop"), End], All("Look")),
        (
            "one id for two calls",
            vec![Call("a", "ls", A), Call("a", "ls", B), Reason("stop"), End],
            All(" a:ls{\"n\":1} a_2:ls{\"n\":2}"),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn streams_are_whole_cut_or_failed_as_their_server_meant_them() {
    let mut wrong = Vec::new();
    for (name, steps, expected) in table() {
        for (at, mode) in MODES.into_iter().enumerate() {
            let expected = match expected {
                All(expected) => expected,
                Of(expected) => expected[at],
            };
            let (read, _) = read(mode, Writer::write(mode, &steps)).await;
            let told = told(&read);
            if told != expected {
                wrong.push(format!("{name} ({}): {told:?}, not {expected:?}", mode.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Gateways that set a reason, or send counts, with every piece, and pause longer than a complete reply is waited for.
#[tokio::test(start_paused = true)]
async fn a_reason_or_counts_amid_a_reply_are_no_end() {
    let chunk = |delta: Value, reason: Value| {
        format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": reason}]}))
    };
    let text = |text: &str, reason: Value| chunk(json!({"content": text}), reason);
    let counts = || "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n".to_owned();
    let call =
        chunk(json!({"tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{}"}}]}), json!("stop"));
    let (stop, done) = (|| json!("stop"), || "data: [DONE]\n\n".to_owned());
    for (first, rest, whole) in [
        (vec![text("one ", stop())], vec![text("two", stop()), done()], "one two"),
        (vec![chunk(json!({"reasoning_content": "hm"}), stop())], vec![text("one", stop()), done()], "one [hm]"),
        (vec![text("one", stop())], vec![call, done()], "one a:ls{}"),
        (vec![counts()], vec![text("one", stop()), done()], "one"),
        (vec![chunk(json!({"role": "assistant", "content": ""}), stop())], vec![text("one", stop()), done()], "one"),
        (vec![text("one ", Value::Null), counts()], vec![text("two", stop()), done()], "one two"),
        // It once gave its reason too early.
        (
            vec![
                text("one ", Value::Null),
                chunk(json!({}), stop()),
                text("two ", Value::Null),
                chunk(json!({}), stop()),
            ],
            vec![text("three", stop()), done()],
            "one two three",
        ),
        // A reason with the last piece, and counts behind it, end a reply.
        (vec![text("one", stop()), counts()], vec![], "one"),
    ] {
        let bytes =
            |lines: Vec<String>| lines.into_iter().map(|line| Piece::Bytes(line.into_bytes())).collect::<Vec<_>>();
        let pieces = [bytes(first), vec![Piece::Pause(60)], bytes(rest)].concat();
        assert_eq!(told(&read(ApiMode::ChatCompletions, pieces).await.0), whole);
    }
    for lines in [vec![text("one ", stop()), text("two", stop())], vec![text("one ", Value::Null), counts()]] {
        let mut pieces: Vec<Piece> = lines.into_iter().map(|line| Piece::Bytes(line.into_bytes())).collect();
        pieces.push(Piece::Silence);
        assert!(read(ApiMode::ChatCompletions, pieces).await.0.is_err());
    }
}

/// Replies with everything in them, and what ends them.
fn valid(mode: ApiMode, texts: &[&'static str], reason: &'static str) -> Vec<u8> {
    let mut steps =
        vec![Think("grüße"), Text(texts[0]), Call("a", "ls", "{\"p\":\"ä\\\"}{\"}"), Call("b", "pwd", "{}")];
    steps.extend(texts[1..].iter().map(|text| Text(text)));
    steps.extend([Reason(reason), End]);
    let pieces = Writer::write(mode, &steps);
    pieces.into_iter().flat_map(|piece| if let Piece::Bytes(bytes) = piece { bytes } else { Vec::new() }).collect()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(work)
}

const TEXTS: &[&str] = &["Hello, wörld 🚀", "<think>a</think>b", " </think> ", "{\"a\":1}", "x"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_reply_that_is_cut_is_never_called_whole(
        mode in 0..MODES.len(), texts in prop::collection::vec(prop::sample::select(TEXTS), 1..3), at in 0.0..1.0f64,
        reason in prop::sample::select(vec!["stop", "length", "tool_calls"]), silent in any::<bool>(),
    ) {
        let mode = MODES[mode];
        let bytes = valid(mode, &texts, reason);
        let whole = run(read(mode, vec![Piece::Bytes(bytes.clone())])).0.unwrap();
        let cut = (bytes.len() as f64 * at) as usize;
        let mut pieces = vec![Piece::Bytes(bytes[..cut].to_vec())];
        if silent {
            pieces.push(Piece::Silence);
        }
        // Behind the reason to end, only counts and the end itself are missing.
        if let Ok(reply) = run(read(mode, pieces)).0 {
            prop_assert_eq!((reply.text, reply.tool_calls, reply.finish), (whole.text, whole.tool_calls, whole.finish));
        }
    }

    #[test]
    fn a_reply_is_the_same_however_its_bytes_are_split(
        mode in 0..MODES.len(), texts in prop::collection::vec(prop::sample::select(TEXTS), 1..3),
        cuts in prop::collection::vec(0.0..1.0f64, 0..12),
    ) {
        let mode = MODES[mode];
        let bytes = valid(mode, &texts, "tool_calls");
        let (whole, shown) = run(read(mode, vec![Piece::Bytes(bytes.clone())]));
        let mut at: Vec<usize> = cuts.iter().map(|cut| (bytes.len() as f64 * cut) as usize).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces = at.windows(2).map(|pair| Piece::Bytes(bytes[pair[0]..pair[1]].to_vec())).collect();
        let (split, split_shown) = run(read(mode, pieces));
        prop_assert_eq!(whole.unwrap(), split.unwrap());
        prop_assert_eq!(shown, split_shown);
    }

    #[test]
    fn a_text_is_the_same_however_its_deltas_are_split(
        // A blank text is no reply.
        mode in 0..MODES.len(), text in "a[<>/think\n a🚀ä\\\\\"]{0,40}", cuts in prop::collection::vec(0usize..80, 0..8),
    ) {
        // Also amid a character, as the escapes of its two halves.
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut at: Vec<usize> = cuts.into_iter().map(|cut| cut.min(units.len())).collect();
        at.extend([0, units.len()]);
        at.sort_unstable();
        let escaped = |units: &[u16]| units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
        let mode = MODES[mode];
        let stream = |pieces: Vec<String>| {
            let mut lines: Vec<String> = pieces.iter().map(|piece| match mode {
                ApiMode::ChatCompletions => format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{piece}\"}}}}]}}\n\n"),
                ApiMode::AnthropicMessages => format!("data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{piece}\"}}}}\n\n"),
                ApiMode::Responses => format!("data: {{\"type\":\"response.output_text.delta\",\"delta\":\"{piece}\"}}\n\n"),
            }).collect();
            lines.push(match mode {
                ApiMode::ChatCompletions => "data: [DONE]\n\n".to_owned(),
                ApiMode::AnthropicMessages => "data: {\"type\":\"message_stop\"}\n\n".to_owned(),
                ApiMode::Responses => "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n".to_owned(),
            });
            lines.into_iter().map(|line| Piece::Bytes(line.into_bytes())).collect::<Vec<_>>()
        };
        let whole = run(read(mode, stream(vec![escaped(&units)]))).0.unwrap();
        let pieces = at.windows(2).filter(|pair| pair[0] < pair[1]).map(|pair| escaped(&units[pair[0]..pair[1]]));
        let (split, shown) = run(read(mode, stream(pieces.collect())));
        let split = split.unwrap();
        prop_assert_eq!((&split.text, &split.reasoning), (&whole.text, &whole.reasoning));
        if whole.reasoning.is_none() {
            prop_assert_eq!(&split.text, &text);
            prop_assert_eq!(shown, text);
        }
    }
}
