//! Errors among the events of a reply, in any of the forms in which servers write them.
//!
//! Servers and gateways put an error into a stream as their framework writes it: under `error`, as `detail`, as a message with a code, as
//! plain text. No list of them can be complete. So the rule is: an event is an error if it does not belong to a reply and says that it is
//! an error. An event with words alone is not an error, because servers also send notices. But if the stream ends with such an
//! event before the reply is whole, its words are the cause.

use serde_json::Value;

use super::{Stated, one_line};

/// What an event is in its wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A part of a reply: only what is named an error is one.
    Part,
    /// It has a name that the format does not know, as events of later versions do: only what is named an error is one.
    Named,
    /// Nothing of the format: what looks like an error is one.
    Stray,
}

impl Place {
    /// The place of an event outside of a reply, in a format whose events need no names.
    pub(crate) fn beside(event: &Value) -> Self {
        let is_named = event.get("type").and_then(Value::as_str).is_some_and(|name| !name.trim().is_empty());
        if is_named { Self::Named } else { Self::Stray }
    }
}

/// Parts of the names of members that hold the words of an error.
const ERRORS: &[&str] = &["error", "exception", "fault", "detail"];
/// Parts of the names of members that hold words for people.
const WORDS: &[&str] = &["message", "msg", "error", "exception", "fault", "detail"];
/// Members with a number or a word for how a request ended.
const CODES: &[&str] = &["code", "status", "status_code", "statusCode", "error_code"];
/// Codes of what went well, in lower case.
const WELL: &[&str] = &["", "0", "ok", "success", "succeeded", "none", "null"];

/// The error that an event is; none for everything else.
pub(crate) fn complaint(event: &Value, place: Place) -> Option<Stated> {
    // Some gateways wrap the object in a list.
    let event = event.get(0).unwrap_or(event);
    if let Some(stated) = super::base(event) {
        return Some(stated);
    }
    let is_given = |error: &&Value| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) if WELL.contains(&text.trim().to_lowercase().as_str()) => false,
        // Some servers have the member in every event.
        Value::String(_) | Value::Array(_) => place != Place::Part || !is_blank(error),
        Value::Object(members) => !is_well(error) && (members.is_empty() && place != Place::Part || !is_blank(error)),
        _ => error.as_u64() != Some(0),
    };
    if event.get("error").filter(is_given).is_some() {
        return Some(stated(event));
    }
    let names_error = ["type", "object", "status"]
        .iter()
        .any(|key| event.get(key).and_then(Value::as_str).is_some_and(is_error_name));
    if place == Place::Part {
        return None;
    }
    let has_code = || CODES.iter().any(|key| event.get(key).is_some_and(|code| is_bad(key, code)));
    let says = words_of(event, ERRORS).is_some() && !is_well(event);
    let complains = says && (place == Place::Stray || event.get("errors").is_some())
        || has_failed(event)
        || place == Place::Stray && has_code() && !is_other(event) && words(event).is_some();
    (names_error || complains).then(|| stated(event))
}

/// The words of an event that is not a part of a reply and may be an error. They count only if nothing follows the event.
pub(crate) fn last_words(event: &Value) -> Option<Stated> {
    let event = event.get(0).unwrap_or(event);
    // In some format, an event with one of these members is a part of a reply.
    let is_part =
        ["choices", "delta", "response", "content_block", "item", "usage"].iter().any(|key| event.get(key).is_some());
    let is_said = !is_part && !is_well(event) && !is_other(event);
    let says = || event.is_object() && words(event).is_some();
    (is_said && says()).then(|| stated(event))
}

/// Whether a name of an event says that it is an error.
pub(crate) fn is_error_name(name: &str) -> bool {
    // In the Responses API, tools that the provider runs fail by themselves: `response.mcp_call.failed`.
    let is_of_format = name.starts_with("response.");
    name.split(|each: char| !each.is_alphanumeric()).any(|word| {
        let word = word.to_ascii_lowercase();
        let has_failed = word.starts_with("fail") || word.starts_with("abort");
        word.contains("error") && !word.starts_with("noerror") || has_failed && !is_of_format
    })
}

/// An event that the server only marks as an error: its words, or else its raw data.
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
    let has = |key: &str| event.get(key).is_some_and(|value| !is_blank(value) && !value.is_null());
    !has_failed(event) && (has("id") || has("usage"))
}

/// Whether an event has the status of a failure, and words.
fn has_failed(event: &Value) -> bool {
    let failed = CODES.iter().any(|key| {
        let code = event.get(key).and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        code.is_some_and(|code| code >= 400)
    });
    failed && words(event).is_some()
}

/// Whether a member with this name is the code of a failure. A status in words tells how far a request is.
fn is_bad(key: &str, code: &Value) -> bool {
    match code {
        Value::Number(code) => code.as_i64() != Some(0) && code.as_i64() != Some(200),
        Value::String(word) => {
            let word = word.trim().to_lowercase();
            !WELL.contains(&word.as_str()) && word != "200" && (key.contains("code") || is_error_name(&word))
        }
        _ => false,
    }
}

/// Whether an object has a code, and it is that of something that went well: `{"code": 0, "message": "success"}`.
fn is_well(event: &Value) -> bool {
    let codes: Vec<&Value> = ["code", "status_code", "error_code"].iter().filter_map(|key| event.get(key)).collect();
    let is_well = |code: &&Value| match code {
        Value::Number(code) => code.as_i64() == Some(0),
        Value::String(word) => !word.trim().is_empty() && WELL.contains(&word.trim().to_lowercase().as_str()),
        _ => false,
    };
    !codes.is_empty() && codes.iter().all(is_well)
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
            json!({"code": 1301, "msg": "it broke"}),
            json!({"error_code": 18, "error_msg": "it broke", "id": "x"}),
            json!({"errors": [{"message": "it broke"}]}),
            json!({"fault": {"faultstring": "it broke", "detail": {"errorcode": "x"}}}),
            json!({"id": "r", "status": 503, "message": "it broke"}),
            json!({"err": "it broke"}),
            json!({"type": "request_failed", "message": "it broke"}),
            json!({"type": "aborted", "message": "it broke"}),
            json!({"type": "status", "status": 503, "message": "it broke"}),
            json!({"code": "E12", "message": "it broke"}),
            json!({"base_resp": {"status_code": 1000, "status_msg": "it broke"}}),
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
    fn words_at_the_end_of_a_stream_may_be_its_error() {
        for event in [
            json!({"message": "it broke"}),
            json!({"Message": "it broke"}),
            json!({"type": "info", "message": "it broke"}),
        ] {
            let stated = last_words(&event);
            assert!(stated.is_some_and(|stated| stated.message.contains("it broke")), "{event}");
        }
        for event in [
            json!({"choices": [], "message": "hi"}),
            json!({"code": 0, "message": "success"}),
            json!({"id": "q", "message": "position 3"}),
            json!({"type": "ping"}),
            json!({"message": {"role": "assistant", "content": "hi"}, "done": false}),
            json!("hi"),
        ] {
            assert_eq!(last_words(&event), None, "{event}");
        }
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
            // Notices.
            (json!({"message": "hi"}), Place::Stray),
            (json!({"type": "info", "message": "hi"}), Place::Named),
            (json!({"type": "status", "status": "in_progress", "message": "hi"}), Place::Named),
            (json!({"code": 0, "message": "success"}), Place::Stray),
            (json!({"code": "0", "message": "success"}), Place::Stray),
            (json!({"code": 200, "msg": "ok"}), Place::Stray),
            (json!({"error": {"code": 0, "message": ""}}), Place::Stray),
            (json!({"error": {"code": 0, "message": ""}, "choices": [1]}), Place::Part),
            (json!({"error": {"code": "0", "message": "success"}, "choices": [1]}), Place::Part),
            (json!({"error": "", "error_code": 0, "error_msg": "success"}), Place::Stray),
            (json!({"base_resp": {"status_code": 0, "status_msg": ""}, "choices": [1]}), Place::Part),
            (json!({"message": {"role": "assistant", "content": "hi"}, "done": false}), Place::Stray),
            (json!(7), Place::Stray),
            (json!(null), Place::Stray),
            (json!([]), Place::Stray),
        ] {
            assert_eq!(complaint(&event, place), None, "{event}");
        }
    }
}
