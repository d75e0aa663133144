//! Marks: where they stand and what they look like.

use serde_json::{Value, json};

use super::{
    differs,
    messages::{compared, history, written},
    run,
};
use crate::{ApiMode, Breakpoints, Marks, Place, Prefix, Style, System, Ttl};

/// The objects under `cache_control`, anywhere, in order.
fn marks_in(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(object) => {
            let own = object.get("cache_control");
            own.into_iter().chain(object.values().flat_map(marks_in)).collect()
        }
        Value::Array(list) => list.iter().flat_map(marks_in).collect(),
        _ => Vec::new(),
    }
}

const BREAKPOINTS: &str = "marked are the system prompt, the end of the previous request and the last message, so \
     that a long burst between two requests is bridged; not the last three messages";
const ONE_SYSTEM: &str = "there is one system prompt, in front";
const PAIRED_BEFORE: &str =
    "the host renders a valid conversation for every wire: a call without a result gets one that says so";

fn style(native: bool) -> Style {
    match native {
        true => Style::new(ApiMode::AnthropicMessages, Marks::Native),
        false => Style::new(ApiMode::ChatCompletions, Marks::Envelope),
    }
}

fn prefix(style: Style, messages: &Value) -> (Prefix, bool) {
    let (system, messages) = history(messages);
    let mut prefix = Prefix::new(style, "", System::plain(&system)).unwrap();
    for message in &messages {
        prefix.push(&style.render(message));
    }
    (prefix, !system.is_empty())
}

#[test]
fn cache_control() {
    let marked = |marked: &[usize], ttl: Ttl| {
        let mark = match ttl {
            Ttl::FiveMinutes => json!({"type": "ephemeral"}),
            Ttl::OneHour => json!({"type": "ephemeral", "ttl": "1h"}),
        };
        json!({"marked": marked, "mark": mark})
    };
    let turn = |ttl| marked(&[0, 3, 5], ttl);
    run(
        "cache_control",
        &[
            differs("envelope/chat", BREAKPOINTS, turn(Ttl::FiveMinutes)),
            differs("envelope/tool-loop-1h", BREAKPOINTS, turn(Ttl::OneHour)),
            differs("envelope/two-systems", ONE_SYSTEM, marked(&[0, 1], Ttl::FiveMinutes)),
            differs("native/chat", BREAKPOINTS, turn(Ttl::FiveMinutes)),
            differs("native/tool-loop-1h", BREAKPOINTS, turn(Ttl::OneHour)),
            differs("native/two-systems", ONE_SYSTEM, marked(&[0, 1], Ttl::FiveMinutes)),
            differs("odd-ttl", BREAKPOINTS, turn(Ttl::FiveMinutes)),
        ],
        |input| {
            let ttl = input["ttl"].as_str().unwrap().parse().unwrap_or_default();
            let (prefix, has_system) = prefix(style(input["native"] == true), &input["messages"]);
            // A reply and what followed it came since the previous request.
            let previous = prefix.messages().checked_sub(3);
            let breakpoints = Breakpoints { ttl, previous, summaries: None };
            let mut marked: Vec<usize> = prefix
                .marks(breakpoints)
                .into_iter()
                .map(|mark| match prefix.place(mark).unwrap() {
                    Place::Message(index) => index + usize::from(has_system),
                    _ => 0,
                })
                .collect();
            marked.dedup();
            let body = written(&prefix, breakpoints);
            json!({"marked": marked, "mark": marks_in(&body).first()})
        },
        |expected| json!({"marked": expected["marked"], "mark": marks_in(&expected["messages"]).first()}),
    );
}

#[test]
fn cache_control_wire() {
    fn reduced(body: &Value) -> Value {
        let body = compared(body);
        let text = json!({"system": body["system"], "messages": body["messages"]}).to_string();
        let unmarked: Value = serde_json::from_str(&text.replace(Ttl::FiveMinutes.mark(), "")).unwrap();
        json!({"unmarked": unmarked, "markers": marks_in(&body).len()})
    }
    fn block(kind: &str, key: &str, text: &str) -> Value {
        json!([{"type": kind, key: text}])
    }
    let said = |role: &str, text: &str| json!({"role": role, "content": block("text", "text", text)});
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "o1"}]});
    let wire = |messages: Value, markers: usize| json!({"unmarked": {"system": block("text", "text", "sys"), "messages": messages}, "markers": markers});
    let chat = json!([
        said("user", "1"),
        said("assistant", "2"),
        said("user", "3"),
        said("assistant", "4"),
        said("user", "5")
    ]);
    let tail = json!([said("user", "q"), call, result, said("assistant", "done"), said("user", "next")]);
    run(
        "cache_control_wire",
        &[
            differs("chat", BREAKPOINTS, wire(chat, 3)),
            differs("tail-is-user", BREAKPOINTS, wire(tail, 3)),
            differs("orphaned-tail", PAIRED_BEFORE, wire(json!([said("user", "q"), call]), 2)),
        ],
        |input| {
            let (prefix, _) = prefix(style(true), &input["messages"]);
            let previous = prefix.messages().checked_sub(3);
            reduced(&written(&prefix, Breakpoints { previous, ..Breakpoints::default() }))
        },
        |expected| {
            let body = json!({"system": expected["system"], "messages": expected["messages"]});
            reduced(&body)
        },
    );
}
