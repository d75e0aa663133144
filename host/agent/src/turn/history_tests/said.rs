//! Replies of every odd kind, as the events of a stream in each wire format.

use hermes_models::ApiMode;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::Place;

/// One reply, and what surrounds it in the log.
#[derive(Debug, Clone)]
pub(super) struct Round {
    /// What the user says before it, if it is the user's turn.
    pub(super) user: String,
    pub(super) events: Vec<Value>,
    /// What each call in it gives.
    pub(super) result: String,
    pub(super) damage: Damage,
}

impl Round {
    /// A usual reply.
    pub(super) fn plain(mode: ApiMode) -> Self {
        let content = Content { text: json!("done"), ..Content::default() };
        let events = content.events(mode, "stop");
        Self { user: "go on".to_owned(), events, result: String::new(), damage: Damage(0) }
    }
}

/// What happened to the results of a reply: a crash lost some, a bug wrote some twice or for no call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Damage(u8);

impl Damage {
    pub(super) fn any(self) -> bool {
        self.0 & 0b0111 != 0
    }

    pub(super) fn loses(self, at: usize) -> bool {
        self.0 & 0b0001 != 0 && at.is_multiple_of(2)
    }

    pub(super) fn repeats(self, at: usize) -> bool {
        self.0 & 0b0010 != 0 && at == 0
    }

    pub(super) fn stray(self) -> Option<&'static str> {
        (self.0 & 0b0100 != 0).then_some("call_0")
    }

    /// Whether the host closed the turn before it went on.
    pub(super) fn is_closed(self) -> bool {
        self.0 & 0b1000 != 0
    }
}

/// A conversation with one of the places: its position, and the replies.
pub(super) fn conversation(places: &[Place], replies: usize) -> impl Strategy<Value = (usize, Vec<Round>)> {
    let modes: Vec<ApiMode> = places.iter().map(|place| place.mode).collect();
    (0..places.len()).prop_flat_map(move |writer| (Just(writer), prop::collection::vec(round(modes[writer]), replies)))
}

fn round(mode: ApiMode) -> impl Strategy<Value = Round> {
    let finish = select(vec!["stop", "stop", "tool_calls", "tool_calls", "length", "content_filter", "later"]);
    let damage = prop_oneof![3 => Just(0_u8), 2 => 0_u8..16];
    (text(), content(), finish, text(), damage).prop_map(move |(user, content, finish, result, damage)| Round {
        user,
        events: content.events(mode, finish),
        result,
        damage: Damage(damage),
    })
}

fn text() -> impl Strategy<Value = String> {
    let long = "lorem ipsum ".repeat(300);
    let odd = [
        "",
        "",
        " ",
        "\n\n",
        "\0",
        "a\0b",
        "\u{feff}",
        "\u{200b}",
        "\u{2028}",
        "\u{fffd}",
        "🦀 é 漢",
        "<|channel|>final",
        "</think>",
        "{}",
        "null",
        "\u{1b}[31m",
        "\r",
        &long,
    ];
    prop_oneof![3 => select(odd.map(str::to_owned).to_vec()), 2 => "[a-z ]{1,20}", 1 => "\\PC{0,30}"]
}

fn name() -> impl Strategy<Value = Value> {
    let long = "x".repeat(100);
    let odd = [
        "write_file",
        "write_file",
        "functions.write_file",
        "multi_tool_use.parallel",
        "write_file<|channel|>json",
        "write file",
        " write_file\n",
        "schreibe_grüße",
        "写文件",
        "7zip",
        "-",
        "_",
        ".",
        "a/b:c",
        "mcp__x.y",
        "a\0b",
        "\u{202e}x",
        "",
        &long,
    ];
    prop_oneof![
        9 => select(odd.map(Value::from).to_vec()),
        2 => "\\PC{0,70}".prop_map(Value::from),
        1 => select(vec![json!(null), json!(7), json!({"a": 1})]),
    ]
}

fn id() -> impl Strategy<Value = Value> {
    let (long, longer, vllm) = ("y".repeat(100), "z".repeat(600), format!("chatcmpl-tool-{}", "a".repeat(32)));
    let odd = [
        "call_0",
        "call_0",
        "call_1",
        "a.b",
        "a:b",
        "a_b",
        "functions.write_file:0",
        "call|with|bars",
        "call_1|fc_1",
        "call_1|fc_2",
        "|",
        "|fc_9",
        "toolu_01 space",
        "ünïcode-1",
        "\n",
        "\0",
        " ",
        "",
        "1697377797897",
        "abc123DEF",
        &long,
        &longer,
        &vllm,
    ];
    prop_oneof![9 => select(odd.map(Value::from).to_vec()), 1 => select(vec![json!(null), json!(42), json!(["x"])])]
}

/// Arguments as a model writes them; sometimes an object in place of its text.
fn arguments() -> impl Strategy<Value = Value> {
    let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    let huge = format!("{{\"n\":{}}}", "9".repeat(5_000));
    let odd = [
        "{}",
        "{\"path\":\"a\"}",
        "{\"path\": \"a\", \"n\": 12345678901234567890}",
        "",
        " ",
        "null",
        "[1]",
        "\"text\"",
        "7",
        "{\"a\":",
        "{'a': 1}",
        "{\"a\":1e999}",
        "{\"a\":-1e999, \"b\":[1e-999]}",
        "{\"a\":\"\\ud83d\"}",
        "{\"a\":\"\\ude80\\ud83d\"}",
        "{\"\\ud83d\\ude80\":\"\\u0000\"}",
        "{\"a\":1,\"a\":2}",
        "{} x",
        "{\"a\":NaN}",
        "{\"a\":Infinity}",
        "{\"a\":01}",
        "{,}",
        "<function=write_file>",
        "{\"a\":\"tab\tin it\"}",
        "\"{\\\"a\\\":1}\"",
        &deep,
        &huge,
    ];
    prop_oneof![
        9 => select(odd.map(Value::from).to_vec()),
        2 => "[{}\\[\\]\",:\\\\ud8-9e+a-]{0,30}".prop_map(Value::from),
        1 => select(vec![json!({"path": "a"}), json!(null), json!([1])]),
    ]
}

/// What a reply consists of.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    text: Value,
    reasoning: Option<String>,
    seal: String,
    calls: Vec<(Value, Value, Value)>,
    refusal: bool,
}

fn content() -> impl Strategy<Value = Content> {
    let calls = prop::collection::vec((id(), name(), arguments()), 0..4);
    let shown = prop_oneof![6 => text().prop_map(Value::from), 1 => Just(Value::Null)];
    let reasoning = prop::option::of(text());
    (shown, reasoning, text(), calls, prop::bool::weighted(0.05))
        .prop_map(|(text, reasoning, seal, calls, refusal)| Content { text, reasoning, seal, calls, refusal })
}

impl Content {
    fn events(&self, mode: ApiMode, finish: &str) -> Vec<Value> {
        match mode {
            ApiMode::ChatCompletions => self.chunks(finish),
            ApiMode::AnthropicMessages => self.blocks(finish),
            ApiMode::Responses => self.items(finish),
        }
    }

    fn chunks(&self, finish: &str) -> Vec<Value> {
        let chunk = |delta: Value, finish: Value| json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        let key = if self.refusal { "refusal" } else { "content" };
        let mut delta = json!({"role": "assistant", key: self.text});
        if let Some(reasoning) = &self.reasoning {
            delta["reasoning_content"] = json!(reasoning);
            delta["reasoning"] = json!(reasoning);
            delta["reasoning_details"] =
                json!([{"type": "reasoning.text", "text": reasoning, "signature": self.seal, "index": 0}]);
        }
        let mut events = vec![chunk(delta, Value::Null)];
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": arguments});
            let mut call = json!({"index": index, "id": id, "type": "function", "function": function});
            if !self.seal.is_empty() {
                call["extra_content"] = json!({"google": {"thought_signature": self.seal}});
            }
            events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
        }
        events.push(chunk(json!({}), json!(finish)));
        events
    }

    fn blocks(&self, finish: &str) -> Vec<Value> {
        let mut events = vec![json!({"type": "message_start", "message": {"model": "m", "content": []}})];
        let mut index = 0;
        let mut block = |begin: Value, deltas: Vec<Value>| {
            let mut all = vec![json!({"type": "content_block_start", "index": index, "content_block": begin})];
            all.extend(
                deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
            );
            all.push(json!({"type": "content_block_stop", "index": index}));
            index += 1;
            all
        };
        if let Some(reasoning) = &self.reasoning {
            events.extend(block(
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": reasoning}),
                    json!({"type": "signature_delta", "signature": self.seal}),
                ],
            ));
            if reasoning.len() % 2 == 1 {
                events.extend(block(json!({"type": "redacted_thinking", "data": self.seal}), Vec::new()));
            }
        }
        events
            .extend(block(json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": self.text})]));
        for (id, name, arguments) in &self.calls {
            let begin = match arguments {
                Value::String(_) => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                input => json!({"type": "tool_use", "id": id, "name": name, "input": input}),
            };
            let written =
                arguments.as_str().map(|written| json!({"type": "input_json_delta", "partial_json": written}));
            events.extend(block(begin, written.into_iter().collect()));
        }
        let reason = match finish {
            _ if self.refusal => "refusal",
            "stop" => "end_turn",
            "tool_calls" => "tool_use",
            "length" => "max_tokens",
            other => other,
        };
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn items(&self, finish: &str) -> Vec<Value> {
        let mut items = Vec::new();
        if let Some(reasoning) = &self.reasoning {
            items.push(json!({"type": "reasoning", "id": "rs_1", "encrypted_content": self.seal,
                "summary": [{"type": "summary_text", "text": reasoning}]}));
        }
        let kind = if self.refusal { "refusal" } else { "output_text" };
        let key = if self.refusal { "refusal" } else { "text" };
        items.push(json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": kind, key: self.text, "annotations": []}]}));
        for (at, (id, name, arguments)) in self.calls.iter().enumerate() {
            items.push(json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": id, "name": name, "arguments": arguments,
                "status": "completed"}));
        }
        let done = items
            .iter()
            .enumerate()
            .map(|(index, item)| json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        let (kind, status) = match finish {
            "length" | "content_filter" => ("response.incomplete", "incomplete"),
            _ => ("response.completed", "completed"),
        };
        let reason = if finish == "length" { "max_output_tokens" } else { "content_filter" };
        let response = json!({"id": "resp_1", "status": status, "model": "m", "output": items,
            "incomplete_details": {"reason": reason}});
        done.chain([json!({"type": kind, "response": response})]).collect()
    }
}
