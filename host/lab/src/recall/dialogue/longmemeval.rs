//! LongMemEval: questions, each with its own sessions with an assistant.

use std::collections::BTreeSet;

use hermes_conversation::Role;
use serde_json::Value;

use super::{BROKEN_MESSAGE, BROKEN_TIME, Collection, Dialogue, EMPTY_MESSAGE, UNKNOWN_MESSAGE, Utterance, time};

/// Whether this is a question with its sessions.
pub(super) fn recognises(value: &Value) -> bool {
    value.get("haystack_sessions").is_some_and(Value::is_array) && value.get("question").is_some()
}

pub(super) fn read(value: &Value, number: usize) -> Result<Dialogue, String> {
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    let id = field("question_id").map_or_else(|| format!("question {number}"), str::to_owned);
    let words = field("question").ok_or("its `question` is not a text")?;
    let kind = field("question_type").unwrap_or("other");
    let mut dialogue = Dialogue::new(id.clone(), Collection::LongMemEval);
    let list = |key: &str| value.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (sessions, ids, dates) = (list("haystack_sessions"), list("haystack_session_ids"), list("haystack_dates"));
    let mut times = time::Timeline::new();
    let mut evidence = BTreeSet::new();
    let mut labelled: BTreeSet<&str> = BTreeSet::new();
    for (at, session) in sessions.iter().enumerate() {
        match dates.get(at).and_then(Value::as_str).and_then(time::longmemeval) {
            Some(time) => times.at(time),
            None => dialogue.note(BROKEN_TIME, 1),
        }
        // A session without messages does not count.
        let number = dialogue.sessions();
        for message in session.as_array().into_iter().flatten() {
            let (role, content) = (message.get("role"), message.get("content").and_then(Value::as_str));
            let role = match role.and_then(Value::as_str) {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                _ => {
                    dialogue.note(BROKEN_MESSAGE, 1);
                    continue;
                }
            };
            let Some(content) = content else {
                dialogue.note(BROKEN_MESSAGE, 1);
                continue;
            };
            dialogue.note(EMPTY_MESSAGE, u64::from(content.trim().is_empty()));
            if message.get("has_answer").and_then(Value::as_bool) == Some(true) {
                evidence.insert(dialogue.messages.len());
                labelled.extend(ids.get(at).and_then(Value::as_str));
            }
            let said_at = times.tick();
            dialogue.messages.push(Utterance { role, text: content.to_owned(), said_at, session: number });
        }
    }
    let mut by_session = 0;
    for answer in list("answer_session_ids") {
        if !ids.contains(answer) {
            dialogue.note(UNKNOWN_MESSAGE, 1);
        } else if !answer.as_str().is_some_and(|answer| labelled.contains(answer)) {
            by_session += 1;
        }
    }
    dialogue.note("sessions named as evidence without a message that is marked in them", by_session);
    dialogue.ask(id, kind, words, evidence, 0);
    Ok(dialogue)
}
