//! Results as the model gets them: text, and images beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::one_line_within;
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ResourceContents, Role};

use crate::limits;

/// The most bytes of a name or an address in a line about something that is no text.
const SHOWN: usize = 200;

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
    /// The answer of a tool, or its error as a text.
    pub(crate) fn of(result: CallToolResult) -> Result<Self, String> {
        let mut answer = Self::default();
        result.content.into_iter().for_each(|block| answer.add(block));
        let structured = result.structured_content.map(|value| value.to_string());
        let structured = structured.filter(|json| json.len() <= limits::TEXT);
        match structured {
            Some(json) if answer.text.is_empty() => answer.text = json,
            structured => answer.structured = structured,
        }
        answer.bound();
        if result.is_error.unwrap_or_default() {
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
    pub(crate) fn of_resource(contents: Vec<ResourceContents>) -> Self {
        let mut answer = Self::default();
        contents.into_iter().for_each(|contents| answer.add_contents(contents));
        answer.bound();
        answer
    }

    /// The messages of a prompt.
    pub(crate) fn of_prompt(prompt: GetPromptResult) -> Self {
        let mut answer = Self::default();
        for message in prompt.messages {
            let author = if matches!(message.role, Role::Assistant) { "assistant" } else { "user" };
            answer.line(&format!("[{author}]"));
            answer.add(message.content);
        }
        answer.bound();
        answer
    }

    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.line(&text.text),
            ContentBlock::Image(image) => self.image(&image.data, &image.mime_type),
            ContentBlock::Audio(audio) => {
                let (kind, size) = (shown(&audio.mime_type), audio.data.len() / 4 * 3);
                self.line(&format!("[audio ({kind}, about {size} bytes) is left out]"));
            }
            ContentBlock::Resource(resource) => self.add_contents(resource.resource),
            ContentBlock::ResourceLink(link) => {
                let mut line = format!("[resource {}: {}", shown(&link.name), shown(&link.uri));
                if let Some(kind) = &link.mime_type {
                    line.push_str(&format!(" ({})", shown(kind)));
                }
                if let Some(description) = &link.description {
                    line.push_str(&format!(": {}", shown(description)));
                }
                line.push(']');
                self.line(&line);
            }
            _ => self.line("[content of an unknown kind is left out]"),
        }
    }

    fn add_contents(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.line(&format!("[resource {}]", shown(&uri)));
                self.line(&text);
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.unwrap_or_else(|| "unknown type".to_owned());
                if kind.starts_with("image/") {
                    self.line(&format!("[resource {}]", shown(&uri)));
                    self.image(&blob, &kind);
                } else {
                    let size = blob.len() / 4 * 3;
                    self.line(&format!(
                        "[resource {} ({}, about {size} bytes) is left out]",
                        shown(&uri),
                        shown(&kind)
                    ));
                }
            }
            _ => self.line("[a resource of an unknown kind is left out]"),
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
        // What is beyond is cut at the end. Until then, one more piece of a message is in memory.
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

fn shown(text: &str) -> String {
    one_line_within(text, SHOWN)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(result: Value) -> Result<Answer, String> {
        Answer::of(serde_json::from_value(result).expect("it is a result"))
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
