//! The contents of chat completions: a text, or a list of parts.

use serde_json::{Map, Value};

use super::media::{check_address, check_document, check_picture, of_data_url};
use super::{object, only, text};

/// Checks what a user says. The result tells whether it has a picture or a document.
pub(super) fn check_user_content(content: &Value, place: &str) -> Result<bool, String> {
    let parts = match content {
        Value::String(text) if !text.trim().is_empty() => return Ok(false),
        Value::Array(parts) if !parts.is_empty() => parts,
        _ => return Err(format!("{place}: the content is empty, or neither a text nor a list of parts")),
    };
    let mut has_media = false;
    for (number, part) in parts.iter().enumerate() {
        let place = format!("{place}, part {number}");
        let part = object(part, &place)?;
        match text(part, "type", &place)? {
            "text" => check_words(part, "text", &place)?,
            "image_url" => {
                check_image(part, &place)?;
                has_media = true;
            }
            "file" => {
                check_file(part, &place)?;
                has_media = true;
            }
            other => return Err(format!("{place}: a part of the type `{other}` in a message of the user")),
        }
    }
    Ok(has_media)
}

/// Checks what the assistant said. The result tells whether there are words.
pub(super) fn check_assistant_content(content: Option<&Value>, place: &str) -> Result<bool, String> {
    match content {
        None | Some(Value::Null) => Ok(false),
        Some(Value::String(text)) => Ok(!text.is_empty()),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            for (number, part) in parts.iter().enumerate() {
                let place = format!("{place}, part {number}");
                let part = object(part, &place)?;
                let kind = text(part, "type", &place)?;
                match kind {
                    "text" => check_words(part, "text", &place)?,
                    // The SDK allows a refusal only in place of everything else.
                    "refusal" if parts.len() == 1 => check_words(part, "refusal", &place)?,
                    other => {
                        return Err(format!("{place}: a part of the type `{other}` in a message of the assistant"));
                    }
                }
            }
            Ok(true)
        }
        Some(_) => Err(format!("{place}: the content is no text")),
    }
}

pub(super) fn check_words(part: &Map<String, Value>, key: &str, place: &str) -> Result<(), String> {
    only(part, &["type", key], place)?;
    match text(part, key, place)?.trim() {
        "" => Err(format!("{place}: the text is empty")),
        _ => Ok(()),
    }
}

fn check_image(part: &Map<String, Value>, place: &str) -> Result<(), String> {
    only(part, &["type", "image_url"], place)?;
    let image = object(part.get("image_url").unwrap_or(&Value::Null), place)?;
    only(image, &["url", "detail"], place)?;
    let url = text(image, "url", place)?;
    if image.get("detail").is_some_and(|detail| !is_detail(detail)) {
        return Err(format!("{place}: `detail` is neither auto, low nor high"));
    }
    if !url.starts_with("data:") {
        return check_address(url, place);
    }
    let (media_type, data) = of_data_url(url, place)?;
    check_picture(media_type, data, place)
}

/// Whether it says how closely the model looks at a picture.
pub(super) fn is_detail(detail: &Value) -> bool {
    ["auto", "low", "high"].iter().any(|known| detail == known)
}

fn check_file(part: &Map<String, Value>, place: &str) -> Result<(), String> {
    only(part, &["type", "file"], place)?;
    let file = object(part.get("file").unwrap_or(&Value::Null), place)?;
    only(file, &["filename", "file_data"], place)?;
    if text(file, "filename", place)?.is_empty() {
        return Err(format!("{place}: the file has no name"));
    }
    let (media_type, data) = of_data_url(text(file, "file_data", place)?, place)?;
    check_document(media_type, data, place)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use crate::oracle::{check_marked_request, check_reasoning_request, check_request};

    use super::*;

    const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

    fn ask(messages: Value) -> Value {
        json!({"model": "m", "messages": messages})
    }

    fn with_parts(parts: Value) -> Value {
        ask(json!([{"role": "user", "content": parts}]))
    }

    fn system_first(mut body: Value) -> Value {
        body["messages"].as_array_mut().unwrap().insert(0, json!({"role": "system", "content": "You help."}));
        body
    }

    fn image(url: &str) -> Value {
        json!({"type": "image_url", "image_url": {"url": url}})
    }

    #[test]
    fn pictures_and_documents_are_accepted_from_the_user() {
        let pdf = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjc="}});
        let parts = json!([{"type": "text", "text": "look"}, image(PNG), image("https://x.test/a.png"), pdf]);
        assert_eq!(check_request(&system_first(with_parts(parts))), Ok(()));
    }

    #[test]
    fn invalid_parts_are_refused_with_their_position() {
        let file = |file: Value| json!({"type": "file", "file": file});
        let cases = [
            (json!([]), "the content is empty"),
            (json!([{"type": "text", "text": " "}]), "part 0: the text is empty"),
            (json!([{"type": "text", "text": "a", "cache_control": {}}]), "no key `cache_control`"),
            (json!([{"type": "image", "source": {}}]), "of the type `image`"),
            (json!([image("http://x.test/a.png")]), "no `https:` address"),
            (json!([image("data:image/png,abc")]), "no `data:` URL"),
            (json!([image("data:image/png;base64,?")]), "no base64"),
            (json!([image("data:image/png;base64,R0lGODlh")]), "not of the type `image/png`"),
            (json!([image("data:image/bmp;base64,Qk0=")]), "the type `image/bmp`"),
            (json!([{"type": "image_url", "image_url": {"url": PNG, "detail": "most"}}]), "`detail`"),
            (json!([{"type": "image_url", "image_url": PNG}]), "no object"),
            (json!([file(json!({"filename": "", "file_data": "data:application/pdf;base64,JVBERi0="}))]), "no name"),
            (json!([file(json!({"filename": "a", "file_data": PNG}))]), "the type `image/png`"),
            (json!([file(json!({"filename": "a", "file_data": "x", "size": 1}))]), "no key `size`"),
        ];
        for (parts, rule) in cases {
            let refused = check_request(&system_first(with_parts(parts.clone()))).unwrap_err();
            assert!(refused.contains(rule) && refused.starts_with("message 1"), "{refused} for {parts}");
        }
    }

    fn with_result(behind: Value) -> Value {
        let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let mut messages = vec![
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "content": "a shot", "tool_call_id": "a"}),
        ];
        messages.extend(behind.as_array().unwrap().clone());
        system_first(ask(messages.into()))
    }

    #[test]
    fn pictures_of_results_follow_the_results_in_a_message_of_the_user() {
        let pictures = json!({"role": "user", "content": [{"type": "text", "text": "the images"}, image(PNG)]});
        let said = |role: &str, text: &str| json!({"role": role, "content": text});
        assert_eq!(check_request(&with_result(json!([pictures]))), Ok(()));
        let longer = json!([pictures, said("assistant", "a cat"), said("user", "thanks")]);
        assert_eq!(check_request(&with_result(longer)), Ok(()));
        for behind in
            [json!([said("user", "and?")]), json!([pictures, said("user", "and?")]), json!([pictures, pictures])]
        {
            assert!(check_request(&with_result(behind)).unwrap_err().contains("user may not follow"));
        }
    }

    #[test]
    fn a_refusal_is_accepted_from_the_assistant() {
        let declined = |message: Value| {
            let user = json!({"role": "user", "content": "go"});
            check_request(&system_first(ask(json!([user, message, user]))))
        };
        let refusal = json!({"type": "refusal", "refusal": "no"});
        assert_eq!(declined(json!({"role": "assistant", "content": [refusal]})), Ok(()));
        assert_eq!(declined(json!({"role": "assistant", "content": null, "refusal": "no"})), Ok(()));
        for (message, rule) in [
            (
                json!({"role": "assistant", "content": [refusal, {"type": "text", "text": "a"}]}),
                "of the type `refusal`",
            ),
            (json!({"role": "assistant", "content": [{"type": "refusal", "text": "no"}]}), "no key `text`"),
            (json!({"role": "assistant", "content": null, "refusal": ""}), "neither words nor calls"),
            (json!({"role": "assistant", "content": null, "refusal": {}}), "`refusal` is no text"),
            (json!({"role": "assistant", "content": [image(PNG)]}), "of the type `image_url`"),
        ] {
            let refused = declined(message.clone()).unwrap_err();
            assert!(refused.contains(rule), "{refused} for {message}");
        }
    }

    #[test]
    fn reasoning_is_accepted_only_by_a_gateway_that_knows_it() {
        let asked = |key: &str, value: Value| {
            let user = json!({"role": "user", "content": "go"});
            let mut reply = json!({"role": "assistant", "content": "so"});
            reply[key] = value;
            system_first(ask(json!([user, reply, user])))
        };
        let details = json!([{"type": "reasoning.text", "text": "hm", "signature": "s"}]);
        for (key, value) in [("reasoning_content", json!("hm")), ("reasoning_details", details)] {
            assert!(check_request(&asked(key, value.clone())).unwrap_err().contains(key));
            assert_eq!(check_reasoning_request(&asked(key, value)), Ok(()));
        }
        for (key, value) in [
            ("reasoning_content", json!("")),
            ("reasoning_content", json!(["hm"])),
            ("reasoning_details", json!([])),
            ("reasoning_details", json!([{"text": "hm"}])),
            ("reasoning", json!("hm")),
        ] {
            assert!(check_reasoning_request(&asked(key, value.clone())).unwrap_err().contains(key), "{value}");
        }
    }

    #[test]
    fn marks_stand_beside_pictures() {
        let mark = json!({"type": "ephemeral"});
        let parts = json!([{"type": "text", "text": "look", "cache_control": mark}, image(PNG)]);
        let good = system_first(with_parts(parts));
        assert_eq!(check_marked_request(&good), Ok(()));
        assert!(check_request(&good).is_err());
        let mut bad = good;
        bad["messages"][1]["content"][1]["image_url"]["cache_control"] = mark;
        assert!(check_marked_request(&bad).unwrap_err().contains("no key `cache_control`"));
    }
}
