//! Pictures, files and refusals as short texts, for digests and search results.
//!
//! [`described`] adds the texts to messages right after they were read, so that everything made from a message can name its
//! parts without asking the host again.

use std::borrow::Cow;

use hermes_plugin::history::{self, MessageParts};
use hermes_plugin::{Error, Media, MediaSource, Message, MessageRange, Part, ResultPart};

/// The key in [`Message::extra`] of a text that describes a part.
const DESCRIPTION: &str = "part-description";
/// Digits of a hash, and characters of a name or an address.
const HASH: usize = 12;
const NAME: usize = 120;

/// Adds descriptions to the messages that have parts.
pub fn described(mut messages: Vec<Message>) -> Result<Vec<Message>, Error> {
    let with_parts = || messages.iter().filter(|message| message.has_parts()).map(|message| message.id);
    if let (Some(first), Some(last)) = (with_parts().next(), with_parts().next_back()) {
        describe(&mut messages, &history::all_parts(MessageRange::new(first, last))?);
    }
    Ok(messages)
}

/// Adds descriptions of these parts.
pub fn describe(messages: &mut [Message], parts: &[MessageParts]) {
    for of_message in parts {
        let Some(message) = messages.iter_mut().find(|message| message.id == of_message.id) else { continue };
        for part in &of_message.parts {
            let texts = match part {
                Part::Image(media) => vec![of_media("image", media)],
                Part::File(media) => vec![of_media("file", media)],
                Part::Refusal(_) => vec!["[the model declined]".to_owned()],
                Part::ToolResult(result) => result.parts.iter().filter_map(of_result_part).collect(),
                Part::Other(kind) => vec![format!("[{}]", plain(kind))],
                Part::Text(_) | Part::Reasoning(_) | Part::ToolCall(_) | Part::ProviderItem(_) => Vec::new(),
            };
            message.extra.extend(texts.into_iter().map(|text| (DESCRIPTION.to_owned(), text)));
        }
    }
}

/// The descriptions of a message's parts, in order.
pub fn descriptions(message: &Message) -> impl Iterator<Item = &str> {
    message.extra.iter().filter(|(key, _)| key == DESCRIPTION).map(|(_, text)| text.as_str())
}

/// The descriptions of a message's parts on one line; empty for a message of text.
pub fn summary(message: &Message) -> String {
    descriptions(message).collect::<Vec<_>>().join(" ")
}

/// A text with the descriptions of the message's parts behind it.
pub fn with_summary<'a>(text: &'a str, message: &Message, separator: &str) -> Cow<'a, str> {
    let summary = summary(message);
    match (text.is_empty(), summary.is_empty()) {
        (_, true) => text.into(),
        (true, false) => summary.into(),
        (false, false) => format!("{text}{separator}{summary}").into(),
    }
}

fn of_result_part(part: &ResultPart) -> Option<String> {
    match part {
        ResultPart::Text(_) => None,
        ResultPart::Image(media) => Some(of_media("image", media)),
        ResultPart::File(media) => Some(of_media("file", media)),
        ResultPart::Other(kind) => Some(format!("[{}]", plain(kind))),
    }
}

/// Such as `[image chart.png, image/png, 640x480, 34 KB, blake3 ab12cd34ef56…]`.
fn of_media(kind: &str, media: &Media) -> String {
    let mut facts: Vec<String> = media.name.as_deref().map(plain).into_iter().collect();
    if media.media_type != kind {
        facts.push(plain(&media.media_type));
    }
    facts.extend(media.width.zip(media.height).map(|(width, height)| format!("{width}x{height}")));
    match &media.source {
        MediaSource::Blob(blob) => {
            facts.push(size(blob.size));
            facts.push(format!("blake3 {}…", blob.hash.chars().take(HASH).collect::<String>()));
        }
        MediaSource::Url(source) | MediaSource::Other(source) => facts.push(plain(source)),
    }
    format!("[{kind} {}]", facts.join(", "))
}

/// A name without characters that could end the description.
fn plain(text: &str) -> String {
    let mut characters = text.chars().filter(|character| !character.is_control() && !"[]<>".contains(*character));
    let mut plain: String = characters.by_ref().take(NAME).collect();
    if characters.next().is_some() {
        plain.push('…');
    }
    plain
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use hermes_plugin::{Blob, Role, ToolResultPart};

    use super::*;

    fn message(id: u64) -> Message {
        Message {
            id,
            role: Role::User,
            content: "look".to_owned(),
            images: 0,
            author: None,
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            tokens: 1,
            created_at: 0,
            extra: Vec::new(),
        }
    }

    fn blob(name: Option<&str>, media_type: &str, bytes: u64) -> Media {
        Media {
            source: MediaSource::Blob(Blob { hash: "ab12cd34ef56789".to_owned(), size: bytes }),
            media_type: media_type.to_owned(),
            name: name.map(str::to_owned),
            width: None,
            height: None,
            extra: Vec::new(),
        }
    }

    #[test]
    fn every_part_that_is_not_text_gets_a_short_description() {
        let picture = Media { width: Some(640), height: Some(480), ..blob(Some("a [b].png"), "image/png", 33_400) };
        let url = Media { source: MediaSource::Url("https://example.org/c.png".to_owned()), ..blob(None, "image", 0) };
        let result = ToolResultPart {
            call_id: "a".to_owned(),
            parts: vec![ResultPart::Text("x".to_owned()), ResultPart::Image(url)],
            failed: false,
            structured: None,
            extra: Vec::new(),
        };
        let parts = [
            MessageParts { id: 1, parts: vec![Part::Text("look".to_owned()), Part::Image(picture)] },
            MessageParts { id: 2, parts: vec![Part::File(blob(None, "application/pdf", 2_340_000))] },
            MessageParts { id: 3, parts: vec![Part::ToolResult(result)] },
            MessageParts { id: 4, parts: vec![Part::Refusal("No.".to_owned())] },
        ];
        let mut messages: Vec<Message> = (1..=5).map(message).collect();
        describe(&mut messages, &parts);
        let texts: Vec<String> = messages.iter().map(summary).collect();
        assert_eq!(
            texts,
            [
                "[image a b.png, image/png, 640x480, 34 KB, blake3 ab12cd34ef56…]",
                "[file application/pdf, 2.3 MB, blake3 ab12cd34ef56…]",
                "[image https://example.org/c.png]",
                "[the model declined]",
                "",
            ]
        );
        assert_eq!(with_summary("look", &messages[3], " "), "look [the model declined]");
        assert_eq!(with_summary("", &messages[3], " "), "[the model declined]");
        assert_eq!(with_summary("look", &messages[4], " "), "look");
    }
}
