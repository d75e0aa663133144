//! Reads requests independently of their API.
//!
//! Chat completions and Anthropic's messages have the same content in two forms. Scripts and assertions use these functions.

use serde_json::Value;

/// The API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// `/v1/chat/completions`
    ChatCompletions,
    /// `/v1/messages`
    AnthropicMessages,
}

impl Wire {
    /// The name of the wire format in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::AnthropicMessages => "anthropic_messages",
        }
    }

    /// The API for a request path. `None` for an unknown path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::ChatCompletions),
            "/v1/messages" => Some(Self::AnthropicMessages),
            _ => None,
        }
    }
}

/// A message in a form common to both APIs. A tool result is a message of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// The text; that of several blocks is joined with line breaks.
    pub text: String,
    /// The ids of its calls, in order.
    pub calls: Vec<String>,
    /// The id of the call that it answers.
    pub answers: Option<String>,
}

/// Whether the request is not part of the conversation, such as a plugin's request for a summary. Such requests have no tools.
pub fn is_auxiliary(body: &Value) -> bool {
    list(&body["tools"]).is_empty()
}

/// The system prompt, with its blocks joined.
pub fn system_text(body: &Value) -> String {
    let content = match &body["system"] {
        Value::Null => list(&body["messages"]).iter().find(|message| message["role"] == "system"),
        system => return texts(system).concat(),
    };
    content.map_or_else(String::new, |message| texts(&message["content"]).concat())
}

/// The text of the last user message.
pub fn last_user_text(body: &Value) -> &str {
    let users = list(&body["messages"]).iter().rev().filter(|message| message["role"] == "user");
    users.filter_map(|message| texts(&message["content"]).pop()).next().unwrap_or_default()
}

/// The results at the end of the request, as id and content, in order. Empty if the user spoke last.
pub fn trailing_results(body: &Value) -> Vec<(&str, &str)> {
    let messages = list(&body["messages"]);
    let first = messages.iter().rposition(|message| message["role"] != "tool").map_or(0, |last| last + 1);
    if first < messages.len() {
        return messages[first..]
            .iter()
            .map(|message| (text(&message["tool_call_id"]), texts(&message["content"]).pop().unwrap_or_default()))
            .collect();
    }
    let blocks = messages.last().map_or(&[][..], |message| list(&message["content"]));
    let results = blocks.iter().map(|block| (block["type"] == "tool_result").then(|| result(block)));
    results.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The names of the offered tools.
pub fn tool_names(body: &Value) -> Vec<&str> {
    let tools = list(&body["tools"]).iter();
    tools.filter_map(|tool| tool.pointer("/function/name").or_else(|| tool.get("name"))?.as_str()).collect()
}

/// The conversation without the system prompt.
pub fn conversation(body: &Value) -> Vec<SentMessage> {
    let mut sent = Vec::new();
    for message in list(&body["messages"]).iter().filter(|message| message["role"] != "system") {
        let content = &message["content"];
        for block in list(content).iter().filter(|block| block["type"] == "tool_result") {
            let (id, words) = result(block);
            sent.push(SentMessage {
                role: "tool".into(),
                text: words.into(),
                calls: Vec::new(),
                answers: Some(id.into()),
            });
        }
        let words = texts(content);
        let called = list(content).iter().filter(|block| block["type"] == "tool_use");
        let calls: Vec<String> =
            called.chain(list(&message["tool_calls"])).map(|call| text(&call["id"]).to_owned()).collect();
        if words.is_empty() && calls.is_empty() && !list(content).is_empty() {
            // Only results.
            continue;
        }
        sent.push(SentMessage {
            role: text(&message["role"]).to_owned(),
            text: words.join("\n"),
            calls,
            answers: message["tool_call_id"].as_str().map(str::to_owned),
        });
    }
    sent
}

/// A list; empty if the value is none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a content: a plain text, or those of its text blocks.
pub(crate) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        blocks => {
            list(blocks).iter().filter(|block| block["type"] == "text").map(|block| text(&block["text"])).collect()
        }
    }
}

fn result(block: &Value) -> (&str, &str) {
    (text(&block["tool_use_id"]), texts(&block["content"]).pop().unwrap_or_default())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod examples {
    use serde_json::{Value, json};

    /// The same conversation in both forms.
    pub(crate) fn both() -> [Value; 2] {
        let chat = json!({
            "model": "m", "stream": true,
            "tools": [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}],
            "messages": [
                {"role": "system", "content": "You help."},
                {"role": "user", "content": "Read both."},
                {"role": "assistant", "content": "A moment.", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}},
                    {"id": "b", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "one"},
                {"role": "tool", "tool_call_id": "b", "content": "two"},
            ],
        });
        let anthropic = json!({
            "model": "m", "stream": true, "max_tokens": 100,
            "tools": [{"name": "read_file", "description": "reads", "input_schema": {"type": "object"}}],
            "system": [
                {"type": "text", "text": "You ", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "help."},
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Read both."}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "A moment."},
                    {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "b", "name": "read_file", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}]},
                ]},
            ],
        });
        [chat, anthropic]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_are_read_alike() {
        let [chat, anthropic] = examples::both();
        for body in [&chat, &anthropic] {
            assert!(!is_auxiliary(body));
            assert_eq!(system_text(body), "You help.");
            assert_eq!(last_user_text(body), "Read both.");
            assert_eq!(trailing_results(body), [("a", "one"), ("b", "two")]);
            assert_eq!(tool_names(body), ["read_file"]);
        }
        let sent = conversation(&chat);
        assert_eq!(sent, conversation(&anthropic));
        assert_eq!(sent.iter().map(|one| one.role.as_str()).collect::<Vec<_>>(), ["user", "assistant", "tool", "tool"]);
        assert_eq!((sent[1].text.as_str(), sent[1].calls.join(" ")), ("A moment.", "a b".to_owned()));
        assert_eq!((sent[3].text.as_str(), sent[3].answers.as_deref()), ("two", Some("b")));
    }

    #[test]
    fn results_followed_by_text_do_not_count_as_trailing() {
        let [mut chat, mut anthropic] = examples::both();
        chat["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "Stop."}));
        let last = anthropic["messages"][2]["content"].as_array_mut().unwrap();
        last.push(json!({"type": "text", "text": "Stop."}));
        for body in [&chat, &anthropic] {
            assert!(trailing_results(body).is_empty());
            assert_eq!(last_user_text(body), "Stop.");
            assert_eq!(conversation(body).len(), 5);
        }
    }
}
