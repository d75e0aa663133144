//! Replies as servers really stream them: what the answer, both JSON forms and the log say of each. The whole table of streams is beside
//! the rules, in `host/models`.

use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

/// A stream and what becomes of it.
struct Row {
    name: &'static str,
    /// Whether the server speaks Anthropic's format.
    is_messages: bool,
    stream: String,
    expected: Result<Whole, Failed>,
}

/// A whole reply.
struct Whole {
    answer: &'static str,
    reasoning: Option<&'static str>,
    /// Files that its calls wrote.
    written: &'static [(&'static str, &'static str)],
    /// A part of what the model is told of a call that did not run.
    told: Option<&'static str>,
}

/// A reply that is an error.
struct Failed {
    code: &'static str,
    says: &'static str,
}

const SAID: Whole = Whole { answer: "", reasoning: None, written: &[], told: None };

fn chunk(delta: &Value, reason: &Value) -> String {
    format!("data: {}\n\n", json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))
}

fn text(text: &str) -> String {
    chunk(&json!({ "content": text }), &Value::Null)
}

fn ended(reason: &str) -> String {
    chunk(&json!({}), &json!(reason)) + "data: [DONE]\n\n"
}

fn write(index: u64, name: Option<&str>, file: &str) -> String {
    let arguments = json!({"path": file, "content": file}).to_string();
    chunk(
        &json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": arguments}}]}),
        &Value::Null,
    )
}

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// A block at the number 0, as gateways write each block.
fn block(block: &Value, delta: &Value) -> String {
    [
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
    ]
    .iter()
    .map(event)
    .collect()
}

fn begun() -> String {
    event(
        &json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "m", "content": [], "usage": {}}}),
    )
}

fn said(text: &str) -> String {
    block(&json!({"type": "text", "text": ""}), &json!({"type": "text_delta", "text": text}))
}

fn called(id: &str, file: &str) -> String {
    let arguments = json!({"path": file, "content": file}).to_string();
    block(
        &json!({"type": "tool_use", "id": id, "name": "write_file", "input": {}}),
        &json!({"type": "input_json_delta", "partial_json": arguments}),
    )
}

fn reason(reason: &str) -> String {
    event(&json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}))
}

fn rows() -> Vec<Row> {
    let row = |name, is_messages, stream, expected| Row { name, is_messages, stream, expected };
    let broke = |code, says| Err(Failed { code, says });
    vec![
        row(
            "a reason with every piece",
            false,
            chunk(&json!({"content": "one "}), &json!("stop")) + &chunk(&json!({"content": "two"}), &json!("stop")) + "data: [DONE]\n\n",
            Ok(Whole { answer: "one two", ..SAID }),
        ),
        row("a detail in place of the rest", false, text("half") + "data: {\"detail\":\"template failed\"}\n\ndata: [DONE]\n\n", broke("model.server", "template failed")),
        row("plain words in place of the rest", false, text("half") + "event: error\ndata: template failed\n\ndata: [DONE]\n\n", broke("model.server", "template failed")),
        row("a reply that was given up", false, text("half") + &ended("abort"), broke("model.server", "`abort`")),
        row("a reason, and more behind it", false, text("one ") + &chunk(&json!({}), &json!("stop")) + &text("two"), broke("model.cut", "broke off")),
        row(
            "thinking in the text",
            false,
            text("<thi") + &text("nk>\nI weigh it.\n</think>\n\nThe ") + &text("answer.") + &ended("stop"),
            Ok(Whole { answer: "The answer.", reasoning: Some("I weigh it."), ..SAID }),
        ),
        row(
            "thinking in a part of its own",
            false,
            chunk(&json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "I weigh it."}]}]}), &Value::Null)
                + &chunk(&json!({"content": [{"type": "text", "text": "The answer."}]}), &Value::Null)
                + &ended("stop"),
            Ok(Whole { answer: "The answer.", reasoning: Some("I weigh it."), ..SAID }),
        ),
        row(
            "a character in two halves",
            false,
            "data: {\"choices\":[{\"delta\":{\"content\":\"go \\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ude80 now\"}}]}\n\n".to_owned() + &ended("stop"),
            Ok(Whole { answer: "go 🚀 now", ..SAID }),
        ),
        row(
            "a call without a name",
            false,
            text("I write.") + &write(0, None, "lost.txt") + &write(1, Some("write_file"), "kept.txt") + &ended("tool_calls"),
            Ok(Whole { answer: "done", written: &[("kept.txt", "kept.txt")], told: Some("there is no tool `call_without_a_name`"), ..SAID }),
        ),
        row(
            "all blocks at one number, and no message_stop",
            true,
            begun() + &said("I write.") + &called("t1", "a.txt") + &called("t2", "b.txt") + &reason("tool_use"),
            Ok(Whole { answer: "done", written: &[("a.txt", "a.txt"), ("b.txt", "b.txt")], ..SAID }),
        ),
        row("no reason and no message_stop", true, begun() + &said("half"), broke("model.cut", "broke off")),
    ]
}

fn home(row: &Row) -> (Home, Server) {
    let (stream, is_messages) = (row.stream.clone(), row.is_messages);
    let server = Server::answering(move |body, _| {
        let is_told = body["messages"].as_array().is_some_and(|messages| {
            messages.iter().any(|message| message["role"] == "tool" || message["content"][0]["type"] == "tool_result")
        });
        match (is_told, is_messages) {
            (false, _) => Reply::raw(200, "text/event-stream", stream.clone()),
            (true, _) => Reply::text("done"),
        }
    });
    let home = if row.is_messages { Home::with_anthropic(&server) } else { Home::with(&server) };
    (home, server)
}

#[test]
fn an_answer_its_json_its_events_and_the_log_agree() {
    for row in rows() {
        let name = row.name;
        match &row.expected {
            Ok(whole) => {
                let (home, _server) = home(&row);
                assert_eq!(home.hermes(&["-z", "hi"]).run().success().stdout, format!("{}\n", whole.answer), "{name}");
                for (file, content) in whole.written {
                    assert_eq!(std::fs::read_to_string(home.workspace().join(file)).unwrap(), *content, "{name}");
                }
                let log = home.messages();
                assert_eq!(log.last().unwrap()["content"], whole.answer, "{name}");
                if let Some(reasoning) = whole.reasoning {
                    assert_eq!(log[1]["reasoning"], reasoning, "{name}");
                }
                if let Some(told) = whole.told {
                    assert!(
                        log.iter()
                            .any(|message| message["role"] == "tool" && message["content"].to_string().contains(told)),
                        "{name}: {log:?}"
                    );
                }
                let report = home.hermes(&["-z", "hi", "--json"]).run().success();
                let report: Value = serde_json::from_str(&report.stdout).unwrap();
                assert_eq!((&report["answer"], &report["end"]), (&json!(whole.answer), &json!("answered")), "{name}");
                let events = home.hermes(&["-z", "hi", "--stream-json"]).run().success();
                assert_eq!(turn_ended(&events.stdout)["end"]["text"], whole.answer, "{name}");
            }
            Err(failed) => {
                let (home, server) = home(&row);
                let output = home.hermes(&["-z", "hi"]).run().exits(4).says(&[failed.says]);
                assert_eq!(output.stdout, "", "{name}");
                assert_eq!(server.turns().len(), 1, "{name}: half of it was shown, so it is not asked for again");
                let log = home.messages();
                assert!(log.iter().all(|message| !message["content"].to_string().contains("half")), "{name}: {log:?}");
                let report = home.hermes(&["-z", "hi", "--json"]).run().exits(4);
                let report: Value = serde_json::from_str(&report.stdout).unwrap();
                assert_eq!((&report["answer"], &report["end"]), (&Value::Null, &json!("failed")), "{name}");
                assert_eq!(report["error"]["code"], failed.code, "{name}: {report}");
                let events = home.hermes(&["-z", "hi", "--stream-json"]).run().exits(4);
                let ended = turn_ended(&events.stdout);
                assert!(ended.to_string().contains(failed.says), "{name}: {ended}");
            }
        }
    }
}

fn turn_ended(events: &str) -> Value {
    let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.find(|event| event["kind"]["event"] == "turn-ended").unwrap()["kind"].clone()
}

/// A window that nothing names may be wrong: too long a request is refused, or cut without a word.
#[test]
fn setup_says_where_the_window_is_a_guess() {
    let models = |row: Value| json!({"object": "list", "data": [row]});
    for (row, window, is_guess) in [
        (json!({"id": "mine", "context_length": "40960"}), "40,960", false),
        (json!({"id": "mine", "max_model_len": 40960.0}), "40,960", false),
        (json!({"id": "mine", "meta": {"n_ctx_train": 131_072, "n_ctx": 40_960}}), "40,960", false),
        (json!({"id": "mine"}), "128,000", true),
    ] {
        let server = Server::answering(|_, _| Reply::text("OK")).without_key().with_models(models(row.clone()));
        let home = Home::new();
        let output = home.hermes(&["setup", "--base-url", &server.url(), "--yes"]).run().success();
        let said = output.to_string();
        assert!(said.contains(&format!("window of {window} tokens")), "{row}: {said}");
        assert_eq!(said.contains("a guess"), is_guess, "{row}: {said}");
    }
}
