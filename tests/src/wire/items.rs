//! The items of the Responses API, read as messages.

use serde_json::Value;

use super::{SentMessage, text, texts};

/// The type of the item with a result.
pub(super) const RESULT: &str = "function_call_output";

/// Neighbouring items of the model are one message. Its reasoning has no part in it.
pub(super) fn conversation(items: &[Value]) -> Vec<SentMessage> {
    let mut sent = Vec::new();
    for item in items {
        match text(&item["type"]) {
            RESULT => sent.push(SentMessage::result(item)),
            "function_call" => reply(&mut sent).calls.push(text(&item["call_id"]).to_owned()),
            "reasoning" => {}
            _ => say(&mut sent, text(&item["role"]), texts(&item["content"]).join("\n")),
        }
    }
    sent
}

fn say(sent: &mut Vec<SentMessage>, role: &str, words: String) {
    if role != "assistant" {
        sent.push(SentMessage { role: role.to_owned(), text: words, calls: Vec::new(), answers: None });
        return;
    }
    let reply = reply(sent);
    if !reply.text.is_empty() {
        reply.text.push('\n');
    }
    reply.text.push_str(&words);
}

/// The reply at the end; a new one if somebody else spoke last.
fn reply(sent: &mut Vec<SentMessage>) -> &mut SentMessage {
    if sent.last().is_none_or(|last| last.role != "assistant") {
        let role = "assistant".to_owned();
        sent.push(SentMessage { role, text: String::new(), calls: Vec::new(), answers: None });
    }
    sent.last_mut().expect("pushed above")
}
