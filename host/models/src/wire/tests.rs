//! Whole bodies, in every style.

#![allow(clippy::unwrap_used)]

use hermes_conversation::{MessageId, Role, Shown, ToolCall};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{ApiMode, Marks, Place, Prefix, Style, System, ToolChoice, Ttl};

pub(crate) const ENVELOPE: Style = Style::new(ApiMode::ChatCompletions, Marks::Envelope);
pub(crate) const NATIVE: Style = Style::new(ApiMode::AnthropicMessages, Marks::Native);
pub(crate) const RESPONSES: Style = Style::new(ApiMode::Responses, Marks::None);
const STYLES: [Style; 4] = [Style::PLAIN, ENVELOPE, NATIVE, RESPONSES];
const TOOLS: &str = r#"[{"type":"function","function":{"name":"z","description":"","parameters":{"type":"object"}}}]"#;

pub(crate) fn shown(role: Role, content: &str) -> Shown {
    Shown { reasoning: Some("not to be sent".to_owned()), id: Some(MessageId(7)), ..Shown::words(role, content) }
}

pub(crate) fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "read_file".to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn turn() -> Vec<Shown> {
    vec![
        shown(Role::User, "hi"),
        Shown {
            tool_calls: vec![call("c1", r#"{"path": "a", "n": 12345678901234567890}"#), call("c2", "garbage (")],
            ..shown(Role::Assistant, "")
        },
        Shown { tool_call_id: Some("c1".to_owned()), ..shown(Role::Tool, "A") },
        Shown { tool_call_id: Some("c2".to_owned()), ..shown(Role::Tool, "B") },
    ]
}

fn prefix(style: Style, tools: &str, system: System<'_>, messages: &[Shown]) -> Prefix {
    let mut prefix = Prefix::new(style, tools, system).unwrap();
    for message in messages {
        prefix.push(&style.render(message));
    }
    prefix
}

fn text(prefix: &Prefix, breakpoints: Breakpoints) -> String {
    let request = Request {
        model: "m",
        prefix,
        breakpoints,
        max_tokens: Some(9),
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    String::from_utf8(body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap()
}

/// The cache is warmed with the beginning of a conversation. Whether that asks for thinking depends on how it ends there.
#[test]
fn a_prefix_that_is_cut_is_the_prefix_of_fewer_messages() {
    let messages = [turn(), vec![shown(Role::Assistant, "done"), shown(Role::User, "more")]].concat();
    for style in STYLES {
        let of = |count: usize| prefix(style, TOOLS, System::plain("be brief"), &messages[..count]);
        let whole = of(messages.len());
        for count in 1..=messages.len() {
            let (cut, fewer) = (whole.until(count), of(count));
            assert_eq!(cut.bytes(), fewer.bytes(), "{style:?} {count}");
            let ends = |prefix: &Prefix| (prefix.messages(), prefix.open(), prefix.is_unreasoned());
            assert_eq!(ends(&cut), ends(&fewer), "{style:?} {count}");
        }
    }
    let native = prefix(NATIVE, "", System::plain("be brief"), &messages);
    assert!(native.until(4).is_unreasoned() && !native.is_unreasoned());
}

#[test]
fn a_request_for_text_alone_keeps_every_byte_that_a_cache_compares() {
    let written = |style, tools, tool_choice| {
        let system = System { text: "stable\n\nrest", stable: 6, ephemeral: "" };
        let prefix = prefix(style, tools, system, &turn());
        let (model, breakpoints) = ("m", Breakpoints::default());
        let request = Request {
            model,
            prefix: &prefix,
            breakpoints,
            max_tokens: None,
            temperature: None,
            schema: None,
            tool_choice,
            effort: None,
        };
        String::from_utf8(body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap()
    };
    let choice_in = |body: &str| serde_json::from_str::<Value>(body).unwrap().get("tool_choice").cloned();
    for (style, choice) in [
        (Style::PLAIN, Value::from("none")),
        (ENVELOPE, Value::from("none")),
        (RESPONSES, Value::from("none")),
        // A cached message is found again only under the same choice.
        (NATIVE, serde_json::json!({"type": "auto"})),
    ] {
        let [free, text_alone] = [ToolChoice::Auto, ToolChoice::None].map(|choice| written(style, TOOLS, choice));
        assert_eq!(choice_in(&text_alone), Some(choice), "{style:?}");
        let compared = |body: &str| body.split_once(r#","tools":["#).unwrap().1.to_owned();
        assert_eq!(compared(&free), compared(&text_alone), "{style:?}");
        // Providers refuse a choice without tools.
        assert_eq!(choice_in(&written(style, "", ToolChoice::None)), None, "{style:?}");
    }
}

/// No text can hold these: its quotes would be escaped.
fn without_marks(body: &str) -> String {
    [Ttl::FiveMinutes, Ttl::OneHour].iter().fold(body.to_owned(), |body, ttl| body.replace(ttl.mark(), ""))
}

/// Every block that is marked, anywhere.
fn marked(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(object) => {
            let own = object.contains_key("cache_control").then_some(value);
            own.into_iter().chain(object.values().flat_map(marked)).collect()
        }
        Value::Array(list) => list.iter().flat_map(marked).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_gateway_that_takes_marks_gets_lists_of_parts() {
    let mut messages = turn();
    messages.push(shown(Role::Assistant, "done"));
    messages.push(shown(Role::User, "  "));
    let system = System { text: "stable\n\nrest", stable: 6, ephemeral: "only now" };
    let prefix = prefix(ENVELOPE, TOOLS, system, &messages);
    let body = text(&prefix, Breakpoints { previous: Some(1), ..Breakpoints::default() });
    insta::assert_snapshot!(body.replace("},{", "},\n{"), @r#"
    {"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"tools":[{"type":"function","function":{"name":"z","description":"","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":[{"type":"text","text":"stable","cache_control":{"type":"ephemeral"}},
    {"type":"text","text":"\n\nrest","cache_control":{"type":"ephemeral"}},
    {"type":"text","text":"\n\nonly now"}]},
    {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"a\", \"n\": 12345678901234567890}"}},
    {"id":"c2","type":"function","function":{"name":"read_file","arguments":"{}"}}]},
    {"role":"tool","content":[{"type":"text","text":"A"}],"tool_call_id":"c1"},
    {"role":"tool","content":[{"type":"text","text":"B"}],"tool_call_id":"c2"},
    {"role":"assistant","content":[{"type":"text","text":"done"}]},
    {"role":"user","content":[{"type":"text","text":"(empty message)","cache_control":{"type":"ephemeral"}}]}]}
    "#);
}

fn places(style: Style, breakpoints: Breakpoints, messages: &[Shown]) -> Vec<Place> {
    let system = System { text: "stable\n\nrest", stable: 6, ephemeral: "" };
    let prefix = prefix(style, TOOLS, system, messages);
    let marks = prefix.marks(breakpoints);
    // The stable tier's part ends behind its text.
    marks.iter().map(|mark| prefix.place(*mark).unwrap()).collect()
}

#[test]
fn four_breakpoints_stand_where_providers_find_them_again() {
    use Place::{Message, System};
    let user = || shown(Role::User, "u");
    let caller = || Shown { tool_calls: vec![call("c", "{}")], ..shown(Role::Assistant, "") };
    let result = || Shown { tool_call_id: Some("c".to_owned()), ..shown(Role::Tool, "out") };
    let messages = [user(), shown(Role::Assistant, "noted"), user(), caller(), result(), caller()];
    let at = |style, summaries, previous| {
        places(style, Breakpoints { summaries, previous, ttl: Ttl::FiveMinutes }, &messages)
    };
    assert_eq!(at(NATIVE, None, None), [System, System, Message(5)]);
    assert_eq!(at(NATIVE, None, Some(2)), [System, System, Message(2), Message(5)]);
    assert_eq!(at(NATIVE, Some(0), Some(2)), [System, Message(0), Message(2), Message(5)]);
    assert_eq!(at(NATIVE, Some(2), Some(2)), [System, Message(2), Message(5)], "two on one block are one");
    assert_eq!(at(NATIVE, None, Some(99)), [System, System, Message(5)]);
    // A message of calls alone has no text to mark: the one before it is marked.
    assert_eq!(at(ENVELOPE, None, Some(3)), [System, System, Message(2), Message(4)]);
    assert_eq!(at(Style::PLAIN, Some(0), Some(2)), []);
    assert_eq!(places(NATIVE, Breakpoints::default(), &[]), [System, System]);
    let once = Prefix::of(NATIVE, crate::System::plain("s"), &messages).unwrap();
    assert_eq!(once.marks(Breakpoints::default()), [0; 0], "what is not asked for again is not kept");
}

#[test]
fn a_blank_tier_is_no_block() {
    for (text, stable, ephemeral, blocks) in [
        ("a\n\nb", 1, "c", vec!["a", "\n\nb", "\n\nc"]),
        ("a\n\nb", 0, "", vec!["a\n\nb"]),
        ("a\n\n", 1, " ", vec!["a\n\n"]),
        ("\n\nb", 2, "", vec!["\n\nb"]),
        (" ", 1, "c", vec!["c"]),
        (" ", 0, "", vec![]),
    ] {
        let system = System { text, stable, ephemeral };
        for style in [ENVELOPE, NATIVE] {
            let prefix = prefix(style, "", system, &[shown(Role::User, "u")]);
            let value: Value = serde_json::from_str(&self::text(&prefix, Breakpoints::default())).unwrap();
            let list = match style.mode {
                ApiMode::ChatCompletions => value.pointer("/messages/0/content").filter(|list| list[0]["text"] != "u"),
                _ => value.get("system"),
            };
            let texts: Vec<&str> = list
                .into_iter()
                .flat_map(|list| list.as_array().unwrap())
                .map(|part| part["text"].as_str().unwrap())
                .collect();
            assert_eq!(texts, blocks, "{text:?} {style:?}");
        }
    }
    let torn = Prefix::new(NATIVE, "", System { text: "ä", stable: 1, ephemeral: "" }).unwrap_err();
    assert!(torn.to_string().contains("does not end within"), "{torn}");
    assert!(Prefix::new(NATIVE, "", System { text: "a", stable: 2, ephemeral: "" }).is_err());
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z \"\\\\\\n{}\\[\\],:é漢🦀\u{0}]{0,20}",
        1 => Just(String::new()),
        1 => Just(r#"x","cache_control":{"type":"ephemeral"}"#.to_owned()),
    ]
}

fn any_message() -> impl Strategy<Value = Shown> {
    let calls =
        proptest::collection::vec(("[a-z:.]{0,4}", prop_oneof![Just("{}"), Just(r#"{"a": [1]}"#), Just("{")]), 0..3);
    (any_text(), calls, 0..3u8).prop_map(|(text, calls, role)| match role {
        0 => shown(Role::User, &text),
        1 => Shown {
            tool_calls: calls.iter().map(|(id, arguments)| call(id, arguments)).collect(),
            ..shown(Role::Assistant, &text)
        },
        _ => Shown { tool_call_id: Some("c".to_owned()), ..shown(Role::Tool, &text) },
    })
}

fn any_breakpoints() -> impl Strategy<Value = Breakpoints> {
    (any::<bool>(), proptest::option::of(0usize..12), proptest::option::of(0usize..12)).prop_map(
        |(long, summaries, previous)| Breakpoints {
            ttl: if long { Ttl::OneHour } else { Ttl::FiveMinutes },
            summaries,
            previous,
        },
    )
}

proptest! {
    #[test]
    fn bytes_only_grow_and_every_one_has_its_place(
        messages in proptest::collection::vec(any_message(), 0..8),
        system in (any_text(), any_text(), any_text()),
    ) {
        let whole = format!("{}{}", system.0, system.1);
        let system = System { text: &whole, stable: system.0.len(), ephemeral: &system.2 };
        for style in STYLES {
            let mut prefix = Prefix::new(style, TOOLS, system).unwrap();
            let mut before = prefix.bytes().to_vec();
            for (index, message) in messages.iter().enumerate() {
                prefix.push(&style.render(message));
                prop_assert!(prefix.bytes().starts_with(&before));
                prop_assert_eq!(prefix.message_end(index), Some(prefix.bytes().len()));
                before = prefix.bytes().to_vec();
            }
            prop_assert_eq!(prefix.messages(), messages.len());
            let body: Value = serde_json::from_str(&text(&prefix, Breakpoints::default())).unwrap();
            let tools: Value = serde_json::from_slice(&prefix.bytes()[..prefix.tools_len()]).unwrap();
            prop_assert_eq!(&body["tools"], &tools);

            let rank = |place| match place {
                Place::Tools => 0,
                Place::Stable => 1,
                Place::System => 2,
                Place::Ephemeral => 3,
                Place::Message(index) => 4 + index,
            };
            let ranks: Vec<usize> = (0..before.len()).map(|at| rank(prefix.place(at).unwrap())).collect();
            prop_assert!(ranks.is_sorted());
            prop_assert_eq!(prefix.place(before.len()), None);
            for index in 0..messages.len() {
                let end = prefix.message_end(index).unwrap();
                prop_assert_eq!(prefix.place(end - 1), Some(Place::Message(index)));
            }
        }
    }

    #[test]
    fn marks_are_insertions_four_at_most_and_found_again(
        messages in proptest::collection::vec(any_message(), 1..10),
        breakpoints in any_breakpoints(),
        system in (any_text(), any_text(), any_text()),
    ) {
        let whole = format!("{}{}", system.0, system.1);
        let system = System { text: &whole, stable: system.0.len(), ephemeral: &system.2 };
        for style in STYLES {
            let once = text(&Prefix::of(style, system, &messages).unwrap(), breakpoints);
            let prefix = prefix(style, "", system, &messages);
            let body = text(&prefix, breakpoints);
            prop_assert_eq!(without_marks(&body), once, "nothing but marks differs");

            let marks = prefix.marks(breakpoints);
            prop_assert!(marks.len() <= 4 && marks.windows(2).all(|pair| pair[0] < pair[1]));
            let value: Value = serde_json::from_str(&body).unwrap();
            let marked = marked(&value);
            prop_assert_eq!(marked.len(), marks.len());
            for block in marked {
                let blank = |key: &str| block.get(key).and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
                prop_assert!(block.get("type").is_some() && !blank("text") && !blank("content"), "{}", block);
            }

            // The next request marks the end that this request stored in the cache.
            let mut next = prefix.clone();
            for _ in 0..40 {
                next.push(&style.render(&shown(Role::Tool, "out")));
            }
            let asks = next.marks(Breakpoints { previous: Some(messages.len() - 1), ..breakpoints });
            if let Some(last) = marks.last().filter(|_| breakpoints.previous.is_none_or(|at| at < messages.len())) {
                prop_assert!(asks.contains(last));
            }
        }
    }
}

#[test]
fn deferred_tools_are_neither_sent_where_there_is_no_form_for_them_nor_counted() {
    let tool = |name: &str| hermes_conversation::ToolSchema {
        name: name.to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
    };
    let shown = [tool("b"), tool("a")];
    let list = crate::deferred_json(&shown, &[tool("d"), tool("c")]);
    let names = crate::ToolNames::of(&list);
    assert_eq!(names.shown.iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(names.deferred.iter().collect::<Vec<_>>(), ["c", "d"]);
    let plain = crate::tools_json(&shown);
    assert_eq!(crate::shown_tools(&list), plain);
    assert_eq!(crate::deferred_json(&shown, &[]), plain);
    for style in [Style::PLAIN, ENVELOPE, RESPONSES, NATIVE] {
        let written = |list: &str| Prefix::new(style, list, System::plain("be brief")).unwrap().bytes().to_vec();
        assert_eq!(written(&list), written(&plain), "{style:?}");
    }
    let deferring = Prefix::new(Style { defers: true, ..NATIVE }, &list, System::plain("be brief")).unwrap();
    let plain = Prefix::new(NATIVE, &plain, System::plain("be brief")).unwrap();
    // A comma is left of each.
    assert_eq!(deferring.tools_len() - deferring.hidden_len(), plain.tools_len());
}
