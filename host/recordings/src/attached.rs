//! Pictures and refusals of recorded messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::{Draft, Media, Part, Role};
use serde_json::Value;

use super::Recording;

/// Replaces a picture whose bytes the recording does not have.
const MARK: &str = "[image]";

/// The content of a recorded message.
#[derive(Debug, Default)]
pub(super) struct Content {
    texts: Vec<String>,
    more: Vec<Part>,
}

impl Content {
    pub(super) fn of_text(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], more: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.more.is_empty()
    }

    pub(super) fn append(&mut self, more: Self) {
        self.texts.extend(more.texts);
        self.more.extend(more.more);
    }

    pub(super) fn push_text(&mut self, text: Option<&str>) {
        self.texts.extend(text.map(str::to_owned));
    }

    pub(super) fn push_refusal(&mut self, text: Option<&str>) {
        self.more.extend(text.map(|text| Part::Refusal { text: text.to_owned() }));
    }

    /// Adds a picture, or a mark in the text if its bytes are missing.
    pub(super) fn push_picture(&mut self, part: &Value, recording: &mut Recording) {
        match picture(part) {
            Some(picture) => self.more.push(Part::Image(picture)),
            None => {
                recording.images += 1;
                self.texts.push(MARK.to_owned());
            }
        }
    }

    /// The text, without pictures and refusals.
    pub(super) fn text(&self) -> String {
        self.texts.join("\n")
    }

    /// The message with its pictures and refusals. Its content must be [`Content::text`].
    pub(super) fn complete(self, draft: Draft) -> Draft {
        if self.more.is_empty() {
            return draft;
        }
        let mut parts = draft.all_parts();
        match parts.first_mut() {
            Some(Part::ToolResult(result)) if draft.role == Role::Tool => result.parts.extend(self.more),
            _ => parts.extend(self.more),
        }
        draft.with_parts(parts)
    }
}

/// A picture in any of the recorded forms: an address, a `data:` address, or base64 beside its type.
fn picture(part: &Value) -> Option<Media> {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    let of_base64 = |data: &str| {
        let mut picture = Media::image(STANDARD.decode(data).ok()?, None).ok()?;
        // A replay never sends a picture, so its bytes need not be kept.
        picture.set_bytes(None);
        Some(picture)
    };
    let addresses = ["/image_url/url", "/image_url", "/imageUrl/url", "/source/url", "/url"];
    if let Some(url) = addresses.into_iter().find_map(text) {
        return match url.strip_prefix("data:") {
            Some(rest) => of_base64(rest.split_once(";base64,")?.1),
            None => Media::image_at(url).ok(),
        };
    }
    of_base64(text("/source/data").or_else(|| text("/inlineData/data")).or_else(|| text("/data"))?)
}
