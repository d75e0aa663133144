//! Reasoning that goes back to providers of chat completions, and the effort that is configured.

use hermes_conversation::{Part, ProviderPayload, Role};
use serde_json::{Map, Value, json};
use url::Url;

use super::{differs, messages::history, run};
use crate::{ApiMode, Effort, Style};

/// A provider that demands reasoning in every reply, and one that refuses the member.
fn style(required: bool) -> Style {
    let host = if required { "api.deepseek.com" } else { "api.groq.com" };
    Style::of_route(ApiMode::ChatCompletions, "custom", &Url::parse(&format!("https://{host}/v1")).unwrap(), "")
}

/// The log keeps what a reply had under `reasoning_content` as a payload of its model. The internal `reasoning` is only shown: it
/// may be of another model. A turn that was built for another provider is not corrected but rendered again, so `reapply` is the
/// same question.
#[test]
fn reasoning_echo() {
    run(
        "reasoning_echo",
        &[],
        |input| {
            let (_, mut shown) = history(&json!([input["message"]]));
            let mut message = shown.remove(0);
            assert_eq!(message.role, Role::Assistant);
            let own = input["message"]["reasoning_content"].as_str().filter(|own| !own.is_empty());
            if let Some(own) = own {
                let payload = ProviderPayload::untagged(json!({"reasoning_content": own}).to_string());
                let text = (!message.content.is_empty()).then(|| Part::text(message.content.clone()));
                let calls = message.tool_calls.iter().cloned().map(Part::ToolCall);
                let reasoning = Part::Reasoning { text: own.to_owned(), payload: Some(payload) };
                message.parts = [reasoning].into_iter().chain(text).chain(calls).collect();
            }
            let style = style(input["required"] == true);
            let sent: Map<String, Value> = serde_json::from_slice(style.render(&message).bytes()).unwrap();
            sent.into_iter().filter(|(key, _)| key == "reasoning_content").collect::<Map<_, _>>().into()
        },
        |expected| {
            let mut expected = expected.clone();
            expected.as_object_mut().unwrap().retain(|key, _| key != "changed");
            expected
        },
    );
}

#[test]
fn reasoning_effort() {
    const NAMES: &str = "an effort has one name, and anything else is refused with a list of the names";
    let refused = |case| differs(case, NAMES, json!({"config": null}));
    let named = |value: &Value| value.as_str().and_then(Effort::parse);
    run(
        "reasoning_effort",
        &[refused("parse/'false'"), refused("parse/False")],
        |input| {
            let effort = match input["op"].as_str().unwrap() {
                "parse" => named(&input["value"]),
                _ => {
                    let table = input["overrides"].as_object().unwrap().iter();
                    let table = table.filter_map(|(name, value)| Some((name.as_str(), named(value)?)));
                    Effort::for_model(input["model"].as_str().unwrap(), table)
                }
            };
            let config = effort.map(|effort| match effort {
                Effort::None => json!({"enabled": false}),
                effort => json!({"enabled": true, "effort": effort.as_str()}),
            });
            json!({"config": config})
        },
        Value::clone,
    );
}
