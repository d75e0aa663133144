#![allow(clippy::unwrap_used)]

use super::*;
use crate::{
    Breakpoints, Effort, Prefix,
    wire::{
        body,
        tests::{call, shown, turn},
    },
};
use hermes_conversation::{ProviderPayload, Role};

fn prefix(system: &str, tools: &str, messages: &[Shown]) -> Prefix {
    let mut prefix = Prefix::new(Style::PLAIN, tools, System::plain(system)).unwrap();
    for message in messages {
        prefix.push(&Style::PLAIN.render(message));
    }
    prefix
}

#[test]
fn a_body_has_the_sdks_keys_in_a_fixed_order_and_nothing_else() {
    let tools = r#"[{"type":"function","function":{"name":"z","parameters":{"b":1,"a":1.0}}}]"#;
    let request = Request {
        model: "m",
        prefix: &prefix("be brief", tools, &turn()),
        breakpoints: Breakpoints::default(),
        max_tokens: Some(100),
        temperature: Some(0.7),
        schema: Some(r#"{"type":"object"}"#),
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    assert_eq!(
        String::from_utf8(body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap(),
        concat!(
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"#,
            r#""temperature":0.7,"response_format":{"type":"json_schema","json_schema":{"name":"reply","#,
            r#""schema":{"type":"object"}}},"#,
            r#""tools":[{"type":"function","function":{"name":"z","parameters":{"b":1,"a":1.0}}}],"#,
            r#""messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},"#,
            r#"{"role":"assistant","content":null,"tool_calls":["#,
            r#"{"id":"c1","type":"function","function":{"name":"read_file","#,
            r#""arguments":"{\"path\": \"a\", \"n\": 12345678901234567890}"}},"#,
            r#"{"id":"c2","type":"function","function":{"name":"read_file","arguments":"{}"}}]},"#,
            r#"{"role":"tool","content":"A","tool_call_id":"c1"},"#,
            r#"{"role":"tool","content":"B","tool_call_id":"c2"}]}"#,
        )
    );
}

#[test]
fn what_is_absent_is_left_out() {
    let request = Request {
        model: "m",
        prefix: &prefix("", "[]", &[shown(Role::User, "hi")]),
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    let body = body(&request, &Dialect { stream_options: false, ..Dialect::PLAIN }).unwrap().to_vec();
    assert_eq!(body, br#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#);
}

#[test]
fn what_is_no_json_is_not_sent() {
    let error = Prefix::new(Style::PLAIN, "[{", System::default()).unwrap_err();
    assert!(error.to_string().contains("tool list"), "{error}");
    let request = Request {
        model: "m",
        prefix: &prefix("", "", &[]),
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: None,
        schema: Some("{"),
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    assert!(body(&request, &Dialect::PLAIN).unwrap_err().to_string().contains("schema of the reply"));
}

#[test]
fn a_call_keeps_its_arguments_unless_they_are_no_object() {
    let message = Shown { tool_calls: vec![call("c", "[1]"), call("d", " {}")], ..shown(Role::Assistant, "so") };
    let bytes = Style::PLAIN.render(&message).bytes().to_vec();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(r#""content":"so""#) && text.contains(r#""arguments":"{}""#), "{text}");
    assert!(text.contains(r#""arguments":" {}""#), "{text}");
}

#[test]
fn the_cap_on_output_has_the_name_that_the_model_takes() {
    for (model, newer) in [
        ("gpt-5", true),
        ("openai/gpt-5.4", true),
        ("gpt-4.1", true),
        ("gpt-4o-mini", true),
        ("o1-preview", true),
        ("gpt-4-turbo", false),
        ("o5", false),
        ("my-gpt-5", false),
        ("gpt-5/other", false),
        ("deepseek-chat", false),
        ("", false),
    ] {
        assert_eq!(takes_newer_cap(model), newer, "{model}");
    }
}

#[test]
fn tools_are_sorted_and_their_parameters_stay_as_written() {
    let schema = |name: &str, parameters: &str| ToolSchema {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: parameters.to_owned(),
    };
    let tools = [schema("b", r#" {"type":"object", "properties":{}, "z":1, "a":2}"#), schema("a", "nonsense")];
    let expected = concat!(
        r#"[{"type":"function","function":{"name":"a","description":"does a","#,
        r#""parameters":{"type":"object","properties":{}}}},"#,
        r#"{"type":"function","function":{"name":"b","description":"does b","#,
        r#""parameters":{"type":"object", "properties":{}, "z":1, "a":2}}}]"#,
    );
    assert_eq!(tools_json(&tools), expected);
    let reversed: Vec<_> = tools.iter().rev().cloned().collect();
    assert_eq!(tools_json(&reversed), expected);
    assert_eq!(tools_json(&[]), "[]");
}

/// One tool without `properties` made OpenAI refuse every request of a session.
#[test]
fn a_schema_is_complete_before_it_is_frozen_and_every_format_sends_it_unchanged() {
    let frozen = |parameters: &str| {
        let schema = ToolSchema { name: "f".into(), description: String::new(), parameters: parameters.to_owned() };
        tools_json(&[schema])
    };
    for (given, complete) in [
        ("{}", r#"{"type":"object","properties":{}}"#),
        (r#"{"type":"object"}"#, r#"{"type":"object","properties":{}}"#),
        (r#"{"type":"object","properties":null}"#, r#"{"type":"object","properties":{}}"#),
        (r#"{"type":["object","null"],"required":[]}"#, r#"{"type":"object","required":[],"properties":{}}"#),
        (
            r#"{ "additionalProperties" : true, "type":"object", "big":12345678901234567890}"#,
            r#"{"type":"object","additionalProperties":true,"big":12345678901234567890,"properties":{}}"#,
        ),
        (
            r#"{"properties":{"a":{"type":"object"}},"anyOf":[{}]}"#,
            r#"{"type":"object","properties":{"a":{"type":"object"}}}"#,
        ),
    ] {
        let list = frozen(given);
        assert!(list.contains(&format!(r#""parameters":{complete}}}"#)), "{given}: {list}");
        assert_eq!(frozen(complete), list, "a complete schema stays as it is");
        let mut sent = Vec::new();
        tools(&mut sent, Style::PLAIN, &list).unwrap();
        assert_eq!(sent, list.as_bytes());
        for mode in [crate::ApiMode::AnthropicMessages, crate::ApiMode::Responses] {
            let mut sent = Vec::new();
            let schemas = mode.format().schemas(SchemaDialect::OpenAi);
            mode.format().tools(&mut sent, Style { schemas, ..Style::PLAIN }, &list).unwrap();
            assert!(String::from_utf8(sent).unwrap().contains(&format!(":{complete}}}")), "{mode:?} {given}");
        }
    }
}

#[test]
fn a_stored_tool_list_is_sent_as_it_was_frozen() {
    let older = r#"[{"type":"function","function":{"name":"f","description":"","parameters":{}}}]"#;
    let mut sent = Vec::new();
    tools(&mut sent, Style::PLAIN, older).unwrap();
    assert_eq!(sent, older.as_bytes());
}

#[test]
fn a_payload_of_reasoning_follows_the_calls_and_any_other_one_is_left_out() {
    let send_in = |style: Style, payload: &str| {
        let payload = Some(ProviderPayload::untagged(payload.to_owned()));
        let parts = vec![Part::Reasoning { text: "hm".into(), payload }, Part::text("so")];
        let message = Shown { parts, tool_calls: vec![call("c", "{}")], ..shown(Role::Assistant, "so") };
        String::from_utf8(style.render(&message).bytes().to_vec()).unwrap()
    };
    let send = |payload: &str| send_in(Style::PLAIN, payload);
    let items = r#"[{"type":"x","n":1.0,"t":"\u0041"}]"#;
    let both = format!(r#"{{ "reasoning_details": {items}, "reasoning_content":"h\u006d"}}"#);
    let sent = send(&both);
    let (content, details) = (r#","reasoning_content":"h\u006d""#, format!(r#","reasoning_details":{items}"#));
    assert!(sent.ends_with(&format!("}}}}]{content}{details}}}")), "{sent}");
    // A provider that takes one of the members gets that one.
    for (provider, wanted) in [("deepseek", content), ("openrouter", &details), ("groq", ""), ("ollama", "")] {
        let url = url::Url::parse("http://127.0.0.1:1/v1").unwrap();
        let style =
            Style { marks: Marks::None, ..Style::of_route(crate::ApiMode::ChatCompletions, provider, &url, "") };
        let sent = send_in(style, &both);
        assert!(sent.ends_with(&format!("}}}}]{wanted}}}")), "{provider}: {sent}");
    }
    let plain = send("{}");
    for other in ["{}", r#"{"role":"system"}"#, r#"{"reasoning_content":"a","content":"b"}"#, "[1]", "nonsense", ""] {
        assert_eq!(send(other), plain, "{other}");
    }
    assert!(!plain.contains("reasoning"), "{plain}");
}

#[test]
fn a_provider_that_demands_reasoning_gets_some_in_every_reply() {
    let url = url::Url::parse("https://api.deepseek.com/v1").unwrap();
    let style = Style::of_route(crate::ApiMode::ChatCompletions, "custom", &url, "");
    let send = |message: &Shown| String::from_utf8(style.render(message).bytes().to_vec()).unwrap();
    let calls = Shown { tool_calls: vec![call("c", "{}")], ..shown(Role::Assistant, "") };
    assert!(send(&calls).ends_with(r#"}}],"reasoning_content":" "}"#), "{}", send(&calls));
    assert_eq!(
        send(&shown(Role::Assistant, "so")),
        r#"{"role":"assistant","content":"so","reasoning_content":" "}"#,
        "also where the host says it, and where the reasoning that is shown is of another model"
    );
    assert_eq!(send(&shown(Role::User, "hi")), r#"{"role":"user","content":"hi"}"#);
}

#[test]
fn an_effort_adds_members_before_the_tools_and_changes_nothing_behind_them() {
    let tools = r#"[{"type":"function","function":{"name":"z","parameters":{}}}]"#;
    let prefix = prefix("be brief", tools, &turn());
    let url = url::Url::parse("https://api.deepseek.com/v1").unwrap();
    let switch = crate::reasoning::switch::of("deepseek", &url, "deepseek-v4-pro");
    let written = |effort: Option<Effort>, switch| {
        let request = Request {
            model: "m",
            prefix: &prefix,
            breakpoints: Breakpoints::default(),
            max_tokens: None,
            temperature: None,
            schema: None,
            tool_choice: ToolChoice::Auto,
            effort,
        };
        String::from_utf8(body(&request, &Dialect { switch, ..Dialect::PLAIN }).unwrap().to_vec()).unwrap()
    };
    let (unasked, high) = (written(None, switch), written(Some(Effort::High), switch));
    let (head, rest) = unasked.split_once(r#","tools":"#).unwrap();
    let wish = r#","thinking":{"type":"enabled"},"reasoning_effort":"high""#;
    assert_eq!(high, format!(r#"{head}{wish},"tools":{rest}"#));
    assert_eq!(written(Some(Effort::High), None), unasked, "a model that is not known to think");
}

#[test]
fn the_signature_of_a_thought_goes_back_with_its_call() {
    let url = url::Url::parse("https://generativelanguage.googleapis.com/v1beta/openai").unwrap();
    let style = Style::of_route(crate::ApiMode::ChatCompletions, "custom", &url, "");
    let signature = r#"{"google":{"thought_signature":"c2ln\u003d"}}"#;
    let payload = format!(r#"{{"extra_content":{{"c1":{signature},"other":{{}},"c2":7}}}}"#);
    let send = |style: Style, payload: &str| {
        let calls = vec![call("c1", "{}"), call("c2", "{}")];
        let payload = Some(ProviderPayload::untagged(payload.to_owned()));
        let reasoning = Part::Reasoning { text: String::new(), payload };
        let parts = [reasoning].into_iter().chain(calls.iter().cloned().map(Part::ToolCall)).collect();
        let message = Shown { parts, tool_calls: calls, ..shown(Role::Assistant, "") };
        String::from_utf8(style.render(&message).bytes().to_vec()).unwrap()
    };
    let plain = send(Style::PLAIN, &payload);
    assert!(!plain.contains("extra_content"), "{plain}");
    let function = r#""function":{"name":"read_file","arguments":"{}"}"#;
    let wanted = plain.replacen(&format!("{function}}}"), &format!(r#"{function},"extra_content":{signature}}}"#), 1);
    assert_eq!(send(style, &payload), wanted);
    assert_eq!(send(style, r#"{"reasoning_content":"hm"}"#), plain);
}
