//! A request as chat completions want it: only keys that the official SDK's types have, in a fixed order.
//!
//! Messages stand last, so that of two requests of one conversation the longer one begins with the shorter one,
//! byte for byte, up to the end of its messages.

use std::collections::BTreeMap;

use hermes_conversation::{Role, Shown, ToolCall, ToolSchema};
use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::value::RawValue;

use crate::Request;

/// Prefixes of models that take the newer name of the cap on output, and refuse the older one.
const NEWER_CAP: &[&str] = &["gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4"];

/// What is particular to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Whether `stream_options` is accepted.
    pub(crate) stream_options: bool,
    /// Whether the cap on output has its newer name whatever the model.
    pub(crate) newer_cap: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    messages: Messages<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a RawValue,
}

struct Messages<'a> {
    system: &'a str,
    shown: &'a [Shown],
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        if !self.system.is_empty() {
            list.serialize_element(&WireMessage {
                role: Role::System.as_str(),
                content: Some(self.system),
                tool_calls: Vec::new(),
                tool_call_id: None,
            })?;
        }
        for message in self.shown {
            list.serialize_element(&WireMessage::from(message))?;
        }
        list.end()
    }
}

impl<'a> From<&'a Shown> for WireMessage<'a> {
    fn from(message: &'a Shown) -> Self {
        let only_calls = message.content.is_empty() && !message.tool_calls.is_empty();
        Self {
            role: message.role.as_str(),
            content: (!only_calls).then_some(&message.content),
            tool_calls: message.tool_calls.iter().map(WireCall::from).collect(),
            tool_call_id: message.tool_call_id.as_deref(),
        }
    }
}

impl<'a> From<&'a ToolCall> for WireCall<'a> {
    fn from(call: &'a ToolCall) -> Self {
        // Providers parse the arguments, and refuse the whole conversation over one that a model garbled.
        let arguments = if is_object(&call.arguments) { &call.arguments } else { "{}" };
        Self { id: &call.id, r#type: "function", function: WireFunction { name: &call.name, arguments } }
    }
}

/// Whether a text is one JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The body of a request; or why tools or schema cannot be sent.
pub(crate) fn body(request: &Request<'_>, dialect: Dialect) -> Result<Vec<u8>, String> {
    let raw = |what: &str, text| {
        serde_json::from_str::<&RawValue>(text).map_err(|error| format!("the {what} is no JSON: {error}"))
    };
    let tools = match request.tools.trim() {
        "" | "[]" => None,
        tools => Some(raw("tool list", tools)?),
    };
    let response_format = match request.schema {
        None => None,
        Some(schema) => Some(ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "reply", schema: raw("schema of the reply", schema)? },
        }),
    };
    let newer_cap = dialect.newer_cap || takes_newer_cap(request.model);
    let body = Body {
        model: request.model,
        stream: true,
        stream_options: dialect.stream_options.then_some(StreamOptions { include_usage: true }),
        max_tokens: request.max_tokens.filter(|_| !newer_cap),
        max_completion_tokens: request.max_tokens.filter(|_| newer_cap),
        temperature: request.temperature.filter(|temperature| temperature.is_finite()),
        response_format,
        tools,
        messages: Messages { system: request.system, shown: request.messages },
    };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

/// By the model's own name: a vendor before the last slash does not count.
fn takes_newer_cap(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    NEWER_CAP.iter().any(|prefix| name.starts_with(prefix))
}

/// The tool list of a session as it is frozen, stored and sent: sorted by name, in the form of chat completions.
///
/// Parameters stand as they are written; where they are no JSON object, a tool takes none.
pub fn tools_json(schemas: &[ToolSchema]) -> String {
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a RawValue,
    }
    const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

    let sorted: BTreeMap<&str, &ToolSchema> = schemas.iter().map(|schema| (schema.name.as_str(), schema)).collect();
    let tools: Vec<Tool<'_>> = sorted
        .into_values()
        .filter_map(|schema| {
            let parameters = if is_object(&schema.parameters) { schema.parameters.trim() } else { NO_PARAMETERS };
            let parameters = serde_json::from_str(parameters).ok()?;
            let function = Function { name: &schema.name, description: &schema.description, parameters };
            Some(Tool { r#type: "function", function })
        })
        .collect();
    serde_json::to_string(&tools).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::MessageId;

    use super::*;

    const PLAIN: Dialect = Dialect { stream_options: true, newer_cap: false };

    fn shown(role: Role, content: &str) -> Shown {
        Shown {
            role,
            content: content.to_owned(),
            reasoning: Some("not to be sent".to_owned()),
            tool_calls: Vec::new(),
            tool_call_id: None,
            id: Some(MessageId(7)),
        }
    }

    fn call(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.to_owned(), name: "read_file".to_owned(), arguments: arguments.to_owned() }
    }

    fn turn() -> Vec<Shown> {
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

    fn request(messages: &[Shown]) -> Request<'_> {
        Request {
            model: "m",
            system: "be brief",
            tools: r#"[{"type":"function","function":{"name":"z","parameters":{"b":1,"a":1.0}}}]"#,
            messages,
            max_tokens: Some(100),
            temperature: Some(0.7),
            schema: Some(r#"{"type":"object"}"#),
        }
    }

    #[test]
    fn a_body_has_the_sdks_keys_in_a_fixed_order_and_nothing_else() {
        let body = String::from_utf8(body(&request(&turn()), PLAIN).unwrap()).unwrap();
        assert_eq!(
            body,
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
    fn a_longer_conversation_begins_with_the_bytes_of_a_shorter_one() {
        let turn = turn();
        let longer = body(&request(&turn), PLAIN).unwrap();
        for length in 1..turn.len() {
            let shorter = body(&request(&turn[..length]), PLAIN).unwrap();
            let open = shorter.strip_suffix(b"]}").unwrap();
            assert!(longer.starts_with(open), "{length}");
        }
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let messages = [shown(Role::User, "hi")];
        let request = Request {
            model: "m",
            system: "",
            tools: "[]",
            messages: &messages,
            max_tokens: None,
            temperature: None,
            schema: None,
        };
        let body = body(&request, Dialect { stream_options: false, newer_cap: false }).unwrap();
        assert_eq!(body, br#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#);
    }

    #[test]
    fn a_tool_list_that_is_no_json_is_not_sent() {
        let messages = [shown(Role::User, "hi")];
        let broken = Request { tools: "[{", ..request(&messages) };
        assert!(body(&broken, PLAIN).unwrap_err().contains("tool list"));
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
        let tools = [schema("b", r#"{"type":"object", "z":1, "a":2}"#), schema("a", "nonsense")];
        let expected = concat!(
            r#"[{"type":"function","function":{"name":"a","description":"does a","#,
            r#""parameters":{"type":"object","properties":{}}}},"#,
            r#"{"type":"function","function":{"name":"b","description":"does b","#,
            r#""parameters":{"type":"object", "z":1, "a":2}}}]"#,
        );
        assert_eq!(tools_json(&tools), expected);
        let reversed: Vec<_> = tools.iter().rev().cloned().collect();
        assert_eq!(tools_json(&reversed), expected);
        assert_eq!(tools_json(&[]), "[]");
    }
}
