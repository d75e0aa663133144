//! Reads requests independently of their API.
//!
//! Chat completions, Anthropic's messages and the Responses API have the same content in three forms. Scripts and assertions use
//! these functions.

mod items;

use serde_json::Value;

/// The API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// `/v1/chat/completions`
    ChatCompletions,
    /// `/v1/messages`
    AnthropicMessages,
    /// `/v1/responses`
    Responses,
}

impl Wire {
    /// The name of the wire format in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::AnthropicMessages => "anthropic_messages",
            Self::Responses => "codex_responses",
        }
    }

    /// The API for a request path. `None` for an unknown path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::ChatCompletions),
            "/v1/messages" => Some(Self::AnthropicMessages),
            "/v1/responses" => Some(Self::Responses),
            _ => None,
        }
    }
}

/// A message in a form common to all APIs. A tool result is a message of its own.
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

impl SentMessage {
    fn result(sent: &Value) -> Self {
        let (id, words) = result(sent);
        Self { role: "tool".into(), text: words.into(), calls: Vec::new(), answers: Some(id.into()) }
    }
}

/// Whether the request is not part of the conversation, such as a plugin's request for a summary. Such requests have no tools.
pub fn is_auxiliary(body: &Value) -> bool {
    list(&body["tools"]).is_empty()
}

/// The messages as they were sent: those of chat completions with the system prompt, or the items of the Responses API.
pub fn messages(body: &Value) -> &[Value] {
    list(if body["input"].is_null() { &body["messages"] } else { &body["input"] })
}

/// The system prompt, with its blocks joined.
pub fn system_text(body: &Value) -> String {
    if let Some(apart) = ["system", "instructions"].iter().map(|key| &body[*key]).find(|prompt| !prompt.is_null()) {
        return texts(apart).concat();
    }
    let content = messages(body).iter().find(|message| message["role"] == "system");
    content.map_or_else(String::new, |message| texts(&message["content"]).concat())
}

/// The text of the last user message.
pub fn last_user_text(body: &Value) -> &str {
    let users = messages(body).iter().rev().filter(|message| message["role"] == "user");
    users.filter_map(|message| texts(&message["content"]).pop()).next().unwrap_or_default()
}

/// The results at the end of the request, as id and content, in order. Empty if the user spoke last. Of text of strangers, what is
/// in its fence.
pub fn trailing_results(body: &Value) -> Vec<(&str, &str)> {
    trailing_results_as_sent(body).into_iter().map(|(id, text)| (id, without_fence(text).unwrap_or(text))).collect()
}

/// What is in the fence that is a whole text, behind the host's note.
pub fn without_fence(text: &str) -> Option<&str> {
    let (tag, inside) = text.strip_prefix("<untrusted-text ")?.split_once(">\n")?;
    let inside = inside.strip_suffix('>')?.strip_suffix(tag)?.strip_suffix("\n</untrusted-text ")?;
    inside.split_once("\n\n").map(|(_, text)| text)
}

/// The same with the fences of the host.
pub fn trailing_results_as_sent(body: &Value) -> Vec<(&str, &str)> {
    let messages = messages(body);
    let is_result = |message: &Value| message["role"] == "tool" || message["type"] == items::RESULT;
    let first = messages.iter().rposition(|message| !is_result(message)).map_or(0, |last| last + 1);
    if first < messages.len() {
        return messages[first..].iter().map(result).collect();
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
    if !body["input"].is_null() {
        return items::conversation(messages(body));
    }
    let mut sent = Vec::new();
    for message in list(&body["messages"]).iter().filter(|message| message["role"] != "system") {
        let content = &message["content"];
        for block in list(content).iter().filter(|block| block["type"] == "tool_result") {
            sent.push(SentMessage::result(block));
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
            let is_text =
                |block: &&Value| ["text", "input_text", "output_text"].iter().any(|kind| block["type"] == *kind);
            list(blocks).iter().filter(is_text).map(|block| text(&block["text"])).collect()
        }
    }
}

/// The id of the call that a result answers, and its text.
fn result(sent: &Value) -> (&str, &str) {
    let id = ["tool_call_id", "tool_use_id", "call_id"].iter().find_map(|key| sent[*key].as_str());
    let content = if sent["type"] == items::RESULT { &sent["output"] } else { &sent["content"] };
    (id.unwrap_or_default(), texts(content).pop().unwrap_or_default())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod examples {
    use serde_json::{Value, json};

    /// The same conversation in each form.
    pub(crate) fn all() -> [Value; 3] {
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
        let responses = json!({
            "model": "m", "stream": true, "store": false,
            "tools": [{"type": "function", "name": "read_file", "strict": false,
                       "parameters": {"type": "object", "properties": {}}}],
            "instructions": "You help.",
            "input": [
                {"role": "user", "content": "Read both."},
                {"role": "assistant", "content": "A moment."},
                {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{\"path\":\"a\"}"},
                {"type": "function_call", "call_id": "b", "name": "read_file", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "one"},
                {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "two"}]},
            ],
        });
        [chat, anthropic, responses]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_forms_are_read_alike() {
        let [chat, anthropic, responses] = examples::all();
        for body in [&chat, &anthropic, &responses] {
            assert!(!is_auxiliary(body));
            assert_eq!(system_text(body), "You help.");
            assert_eq!(last_user_text(body), "Read both.");
            assert_eq!(trailing_results(body), [("a", "one"), ("b", "two")]);
            assert_eq!(tool_names(body), ["read_file"]);
        }
        let sent = conversation(&chat);
        assert_eq!(sent, conversation(&anthropic));
        assert_eq!(sent, conversation(&responses));
        assert_eq!(sent.iter().map(|one| one.role.as_str()).collect::<Vec<_>>(), ["user", "assistant", "tool", "tool"]);
        assert_eq!((sent[1].text.as_str(), sent[1].calls.join(" ")), ("A moment.", "a b".to_owned()));
        assert_eq!((sent[3].text.as_str(), sent[3].answers.as_deref()), ("two", Some("b")));
    }

    #[test]
    fn results_followed_by_text_do_not_count_as_trailing() {
        let [mut chat, mut anthropic, mut responses] = examples::all();
        for list in [&mut chat["messages"], &mut responses["input"]] {
            list.as_array_mut().unwrap().push(json!({"role": "user", "content": "Stop."}));
        }
        let last = anthropic["messages"][2]["content"].as_array_mut().unwrap();
        last.push(json!({"type": "text", "text": "Stop."}));
        for body in [&chat, &anthropic, &responses] {
            assert!(trailing_results(body).is_empty());
            assert_eq!(last_user_text(body), "Stop.");
            assert_eq!(conversation(body).len(), 5);
        }
    }
}
