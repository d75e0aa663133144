//! Errors among the events of a reply, in any of the forms in which servers write them.
//!
//! Servers and gateways put an error into a stream as their framework writes it: under `error`, as `detail`, as a message with a code, as
//! plain text. No list of them can be complete, so the rule is: what is no part of a reply and has words for people is an error with
//! these words.

use serde_json::Value;

use super::{Stated, one_line};

/// What an event is in its wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A part of a reply: only what is named an error is one.
    Part,
    /// It has a name that the format does not know, as events of later versions do: only what is named an error is one.
    Named,
    /// Nothing of the format: words are an error.
    Stray,
}

/// Parts of the names of members that hold the words of an error.
const ERRORS: &[&str] = &["error", "exception", "fault"];
/// Parts of the names of members that hold words for people.
const WORDS: &[&str] = &["message", "msg", "error", "exception", "fault", "detail"];

/// The error that an event is; none for everything else.
pub(crate) fn complaint(event: &Value, place: Place) -> Option<Stated> {
    // Some gateways wrap the object in a list.
    let event = event.get(0).unwrap_or(event);
    let error = event.get("error").filter(|error| match error {
        Value::Null | Value::Bool(false) => false,
        // Some servers have the member in every event.
        Value::String(_) | Value::Object(_) | Value::Array(_) => place != Place::Part || !is_blank(error),
        _ => true,
    });
    let names_error = ["type", "object", "status"]
        .iter()
        .any(|key| event.get(key).and_then(Value::as_str).is_some_and(is_error_name));
    if error.is_some() || names_error && place != Place::Part {
        return Some(stated(event));
    }
    let complains = words_of(event, ERRORS).is_some() || !is_other(event) && words(event).is_some();
    (place == Place::Stray && complains).then(|| stated(event))
}

/// Whether a name of an event says that it is an error.
pub(crate) fn is_error_name(name: &str) -> bool {
    name.split(|each: char| !each.is_alphanumeric()).any(|word| {
        let word = word.to_ascii_lowercase();
        word == "error" || word.ends_with("error") && word != "noerror"
    })
}

/// An error of which the server says nothing but that it is one: its words, or else its data as they are.
pub(crate) fn plain(event: &Value) -> Stated {
    match event.as_str() {
        Some(text) => Stated { status: 500, code: String::new(), message: one_line(text), window: None },
        None => stated(event),
    }
}

fn stated(event: &Value) -> Stated {
    let mut stated = Stated::from_value(200, event);
    if stated.message.is_empty() {
        let shown = || match event {
            Value::Object(members) if !members.is_empty() => event.to_string(),
            _ => String::new(),
        };
        stated.message = one_line(&words(event).unwrap_or_else(shown));
    }
    stated
}

/// Something else that has words: counts, or the state of a request that goes on.
fn is_other(event: &Value) -> bool {
    let failed = ["code", "status", "status_code", "statusCode", "error_code"].iter().any(|key| {
        let code = event.get(key).and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        code.is_some_and(|code| code >= 400)
    });
    let has = |key: &str| event.get(key).is_some_and(|value| !is_blank(value) && !value.is_null());
    !failed && (has("id") || has("usage"))
}

/// The words for people in an event.
fn words(event: &Value) -> Option<String> {
    words_of(event, WORDS)
}

/// The words in members whose names have one of these parts.
fn words_of(event: &Value, parts: &[&str]) -> Option<String> {
    match event {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(items) => items.iter().find_map(words),
        Value::Object(members) => parts.iter().find_map(|part| {
            let is_named = |key: &str| key.contains(part) || *part == "error" && key == "err";
            members.iter().filter(|(key, _)| is_named(&key.to_ascii_lowercase())).find_map(|(_, value)| words(value))
        }),
        _ => None,
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Object(members) => members.values().all(|value| value.is_null() || is_blank(value)),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_found_in_every_form_and_keep_their_words() {
        for event in [
            json!({"error": {"message": "it broke"}}),
            json!({"error": "it broke"}),
            json!([{"error": {"message": "it broke"}}]),
            json!({"object": "error", "message": "it broke", "code": 400}),
            json!({"object": "error", "id": "x", "message": "it broke"}),
            json!({"type": "overloaded_error", "message": "it broke"}),
            json!({"detail": "it broke"}),
            json!({"detail": [{"loc": ["body"], "msg": "it broke"}]}),
            json!({"message": "it broke"}),
            json!({"Message": "it broke"}),
            json!({"code": 1301, "msg": "it broke"}),
            json!({"error_code": 18, "error_msg": "it broke", "id": "x"}),
            json!({"errors": [{"message": "it broke"}]}),
            json!({"fault": {"faultstring": "it broke", "detail": {"errorcode": "x"}}}),
            json!({"id": "r", "status": 503, "message": "it broke"}),
            json!({"err": "it broke"}),
            json!("it broke"),
        ] {
            let stated = complaint(&event, Place::Stray);
            assert!(stated.as_ref().is_some_and(|stated| stated.message.contains("it broke")), "{event}: {stated:?}");
        }
        let wordless = complaint(&json!({"error": {"code": 7}}), Place::Stray);
        assert!(wordless.is_some_and(|stated| stated.message.contains('7')));
        assert!(complaint(&json!({"error": {}}), Place::Stray).is_some());
        assert!(complaint(&json!({"error": {"message": "x"}, "choices": [1]}), Place::Part).is_some());
        assert_eq!(
            complaint(&json!({"status": 429, "title": "t", "detail": "slow"}), Place::Stray)
                .map(|stated| stated.status),
            Some(429)
        );
    }

    #[test]
    fn what_is_no_error_is_none() {
        for (event, place) in [
            (json!({"error": null, "choices": []}), Place::Stray),
            (json!({"error": false, "ok": 1}), Place::Stray),
            (json!({"error": "", "choices": [1]}), Place::Part),
            (json!({"error": {"code": null, "message": ""}, "choices": [1]}), Place::Part),
            (json!({"choices": [1], "message": "hi"}), Place::Part),
            (json!({"type": "later", "message": "hi"}), Place::Named),
            (json!({"type": "ping"}), Place::Stray),
            (json!({"id": "q", "message": "position 3 in the queue"}), Place::Stray),
            (json!({"usage": {"prompt_tokens": 1}, "message": "counts"}), Place::Stray),
            (json!({"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}), Place::Stray),
            (json!({"choices": null}), Place::Stray),
            (json!({"message": ""}), Place::Stray),
            (json!({"message": {"role": "assistant", "content": "hi"}, "done": false}), Place::Stray),
            (json!(7), Place::Stray),
            (json!(null), Place::Stray),
            (json!([]), Place::Stray),
        ] {
            assert_eq!(complaint(&event, place), None, "{event}");
        }
    }
}
