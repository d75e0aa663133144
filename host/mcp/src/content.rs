//! Results as the model gets them: text, and images beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::one_line_within;
use serde_json::Value;

use crate::limits;
use crate::mended::words;

/// The most bytes of a name or an address in a line about something that is no text.
const SHOWN: usize = 200;
/// In place of a type that is missing.
const UNKNOWN: &str = "unknown type";

/// A result of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its texts, and a line for everything else.
    pub text: String,
    /// Its images.
    pub images: Vec<Vec<u8>>,
    /// The result as JSON, if there is text beside it.
    pub structured: Option<String>,
}

impl Answer {
    /// The answer of a tool, or its error as a text. A part that cannot be read is left out and named.
    pub(crate) fn of(result: Value) -> Result<Self, String> {
        let mut answer = Self::default();
        let Value::Object(mut result) = result else {
            return match result {
                Value::Null => Err("the tool answered with nothing".to_owned()),
                other => Ok(Self::of_text(words(&other))),
            };
        };
        let kind = result.remove("resultType");
        if kind.as_ref().is_some_and(|kind| kind == "task") {
            return Err("the server made a task of the call, although Hermes follows none".to_owned());
        }
        let has_failed = result.get("isError").is_some_and(is_true);
        let is_of_protocol = ["content", "structuredContent", "isError"].iter().any(|name| result.contains_key(*name));
        let structured = result.remove("structuredContent");
        if is_of_protocol {
            answer.add_all(result.remove("content").unwrap_or_default(), Self::add);
        } else if result.keys().any(|name| name != "_meta") {
            // The result is in another form, such as that of an early version.
            answer.text = Value::Object(result).to_string();
        }
        let structured = structured.filter(|value| !value.is_null()).map(|value| value.to_string());
        let structured = structured.filter(|json| json.len() <= limits::TEXT);
        match structured {
            Some(json) if answer.text.is_empty() => answer.text = json,
            structured => answer.structured = structured,
        }
        answer.bound();
        if has_failed {
            let said =
                if answer.text.trim().is_empty() { "the tool failed without a reason".to_owned() } else { answer.text };
            return Err(said);
        }
        Ok(answer)
    }

    /// A text as it is.
    pub(crate) fn of_text(text: String) -> Self {
        let mut answer = Self { text, ..Self::default() };
        answer.bound();
        answer
    }

    /// The contents of a resource.
    pub(crate) fn of_resource(mut result: Value) -> Self {
        let mut answer = Self::default();
        answer.add_all(taken(&mut result, "contents"), |answer, contents| answer.add_contents(&contents));
        answer.bound();
        answer
    }

    /// The messages of a prompt.
    pub(crate) fn of_prompt(mut prompt: Value) -> Self {
        let mut answer = Self::default();
        answer.add_all(taken(&mut prompt, "messages"), |answer, mut message| {
            let author = if text(&message, "role") == Some("assistant") { "assistant" } else { "user" };
            answer.line(&format!("[{author}]"));
            answer.add_all(taken(&mut message, "content"), Self::add);
        });
        answer.bound();
        answer
    }

    /// The parts of a list. A server may give one part without a list around it.
    fn add_all(&mut self, parts: Value, add: impl Fn(&mut Self, Value)) {
        match parts {
            Value::Null => {}
            Value::Array(parts) => parts.into_iter().for_each(|part| add(self, part)),
            part => add(self, part),
        }
    }

    fn add(&mut self, block: Value) {
        let kind = match &block {
            Value::String(text) => return self.line(text),
            Value::Object(members) => members.get("type").and_then(Value::as_str),
            _ => None,
        };
        match (kind, text(&block, "text"), text(&block, "data")) {
            (Some("text"), Some(text), _) => self.line(text),
            // A text of another type still has a meaning, so it is shown as JSON.
            (Some("text"), None, _) if block.get("text").is_some_and(|text| !text.is_null()) => {
                self.line(&words(&block["text"]));
            }
            (Some("image"), _, Some(data)) => self.image(data, text(&block, "mimeType").unwrap_or(UNKNOWN)),
            (Some("audio"), _, Some(data)) => {
                let (kind, size) = (shown(text(&block, "mimeType").unwrap_or(UNKNOWN)), data.len() / 4 * 3);
                self.line(&format!("[audio ({kind}, about {size} bytes) is left out]"));
            }
            (Some("resource"), ..) if block["resource"].is_object() => self.add_contents(&block["resource"]),
            (Some("resource_link"), ..) if text(&block, "uri").is_some() => {
                let (name, uri) =
                    (text(&block, "name").unwrap_or("without a name"), text(&block, "uri").unwrap_or_default());
                let mut line = format!("[resource {}: {}", shown(name), shown(uri));
                if let Some(kind) = text(&block, "mimeType") {
                    line.push_str(&format!(" ({})", shown(kind)));
                }
                if let Some(description) = text(&block, "description") {
                    line.push_str(&format!(": {}", shown(description)));
                }
                line.push(']');
                self.line(&line);
            }
            (Some(kind @ ("text" | "image" | "audio" | "resource" | "resource_link")), ..) => {
                self.line(&format!("[content of the type `{kind}` is left out: it is incomplete]"));
            }
            (Some(kind), ..) => self.line(&format!("[content of the unknown type `{}` is left out]", shown(kind))),
            (None, Some(text), _) => self.line(text),
            (None, ..) => self.line("[content without a type is left out]"),
        }
    }

    fn add_contents(&mut self, contents: &Value) {
        let uri = shown(text(contents, "uri").unwrap_or("without an address"));
        if let Some(text) = text(contents, "text") {
            self.line(&format!("[resource {uri}]"));
            return self.line(text);
        }
        let kind = text(contents, "mimeType").unwrap_or(UNKNOWN);
        match text(contents, "blob") {
            Some(blob) if kind.starts_with("image/") => {
                self.line(&format!("[resource {uri}]"));
                self.image(blob, kind);
            }
            Some(blob) => {
                let size = blob.len() / 4 * 3;
                self.line(&format!("[resource {uri} ({}, about {size} bytes) is left out]", shown(kind)));
            }
            None => self.line(&format!("[resource {uri} is left out: it has neither text nor bytes]")),
        }
    }

    fn image(&mut self, data: &str, kind: &str) {
        let left_out = match STANDARD.decode(data.trim()) {
            Ok(bytes) if self.images.len() < limits::IMAGES => return self.images.push(bytes),
            Ok(_) => format!("there are more than {}", limits::IMAGES),
            Err(_) => "its bytes are not base64".to_owned(),
        };
        self.line(&format!("[an image ({}) is left out: {left_out}]", shown(kind)));
    }

    fn line(&mut self, text: &str) {
        // The text is cut at the end. Until then it may exceed the limit by one line.
        if self.text.len() > limits::TEXT {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn bound(&mut self) {
        if self.text.len() > limits::TEXT {
            self.text.truncate(self.text.floor_char_boundary(limits::TEXT));
            self.text.push_str(&format!(
                "\n[the rest is left out: a result has at most {} KiB of text]",
                limits::TEXT >> 10
            ));
        }
    }
}

/// Some servers write flags as words.
pub(crate) fn is_true(flag: &Value) -> bool {
    flag.as_bool().unwrap_or_else(|| flag.as_str().is_some_and(|word| word.eq_ignore_ascii_case("true")))
}

/// A member that is a text.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// A member, taken out.
fn taken(value: &mut Value, name: &str) -> Value {
    value.get_mut(name).map(Value::take).unwrap_or_default()
}

fn shown(text: &str) -> String {
    one_line_within(text, SHOWN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(result: Value) -> Result<Answer, String> {
        Answer::of(result)
    }

    #[test]
    fn one_odd_part_costs_itself() {
        let text = json!({"type": "text", "text": "beside"});
        for (odd, line) in [
            (json!({"type": "video", "url": "x"}), "[content of the unknown type `video` is left out]"),
            (json!({"type": "image", "url": "x"}), "[content of the type `image` is left out: it is incomplete]"),
            (json!({"type": "text", "text": null}), "[content of the type `text` is left out: it is incomplete]"),
            (json!({"type": "text", "text": {"a": 1}}), r#"{"a":1}"#),
            (json!({"text": "no type"}), "no type"),
            (json!("bare"), "bare"),
            (json!(7), "[content without a type is left out]"),
            (
                json!({"type": "resource", "resource": {"uri": 1}}),
                "[resource without an address is left out: it has neither text nor bytes]",
            ),
            (json!({"type": "resource_link", "uri": "a://b", "size": "big"}), "[resource without a name: a://b]"),
        ] {
            let both = answer(json!({"content": [odd.clone(), text]})).map(|answer| answer.text);
            assert_eq!(both, Ok(format!("{line}\nbeside")), "{odd}");
            let alone = answer(json!({"content": odd})).map(|answer| answer.text);
            assert_eq!(alone, Ok(line.to_owned()), "{odd}");
        }
    }

    #[test]
    fn a_result_in_another_form_is_shown_as_it_is() {
        for (odd, read) in [
            (json!("bare"), Ok("bare")),
            (json!({"toolResult": {"answer": 4242}}), Ok(r#"{"toolResult":{"answer":4242}}"#)),
            (json!([1, 2]), Ok("[1,2]")),
            (json!({"structuredContent": null, "content": null}), Ok("")),
            (json!({"_meta": {}}), Ok("")),
            (json!({"content": "it failed", "isError": "true"}), Err("it failed")),
            (json!({"content": "fine", "isError": "no"}), Ok("fine")),
            (json!(null), Err("the tool answered with nothing")),
        ] {
            let answered = answer(odd.clone()).map(|answer| answer.text);
            assert_eq!(answered, read.map(str::to_owned).map_err(str::to_owned), "{odd}");
        }
        assert_eq!(Answer::of_resource(json!({"contents": {"uri": "a", "text": "b"}})).text, "[resource a]\nb");
        let prompt = json!({"messages": [{"role": "assistant", "content": "hi"}, {"content": [{"type": "text", "text": "ho"}]}]});
        assert_eq!(Answer::of_prompt(prompt).text, "[assistant]\nhi\n[user]\nho");
    }

    #[test]
    fn every_kind_of_content_is_text_or_an_image() {
        let answer = answer(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AQID", "mimeType": "image/png"},
            {"type": "image", "data": "%", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "note://1", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "note://2", "mimeType": "image/png", "blob": "AQI="}},
            {"type": "resource", "resource": {"uri": "note://3", "mimeType": "application/zip", "blob": "AAAAAAAA"}},
            {"type": "resource_link", "uri": "file:///a\nb", "name": "a", "mimeType": "text/plain", "description": "A file."},
        ], "structuredContent": {"a": 1}}))
        .expect("it is no error");
        assert_eq!(
            answer.text,
            "one\n[an image (image/png) is left out: its bytes are not base64]\n[audio (audio/wav, about 3 bytes) is left \
             out]\n[resource note://1]\ninside\n[resource note://2]\n[resource note://3 (application/zip, about 6 bytes) is \
             left out]\n[resource a: file:///a b (text/plain): A file.]"
        );
        assert_eq!(answer.images, [vec![1, 2, 3], vec![1, 2]]);
        assert_eq!(answer.structured.as_deref(), Some(r#"{"a":1}"#));
    }

    #[test]
    fn a_result_without_text_is_its_json() {
        let answer = answer(json!({"content": [], "structuredContent": {"b": 1, "a": [2]}})).expect("it is no error");
        assert_eq!((answer.text.as_str(), answer.structured), (r#"{"b":1,"a":[2]}"#, None));
    }

    #[test]
    fn a_failed_tool_is_an_error_with_its_text() {
        assert_eq!(
            answer(json!({"content": [{"type": "text", "text": "no such file"}], "isError": true})),
            Err("no such file".to_owned())
        );
        assert!(answer(json!({"content": [], "isError": true})).is_err_and(|why| why.contains("without a reason")));
    }

    #[test]
    fn a_flood_of_content_is_cut() {
        let text = json!({"type": "text", "text": "é".repeat(400 << 10)});
        let images = vec![json!({"type": "image", "data": "AQID", "mimeType": "image/png"}); 30];
        let content: Vec<Value> = vec![text; 5].into_iter().chain(images).collect();
        let answer = answer(json!({"content": content})).expect("it is no error");
        assert!(answer.text.len() < limits::TEXT + 100 && answer.text.ends_with("at most 1024 KiB of text]"));
        assert_eq!(answer.images.len(), limits::IMAGES);
    }
}
