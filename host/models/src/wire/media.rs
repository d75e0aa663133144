//! Pictures and files as the wire formats carry them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::Part;
use hermes_conversation::media::Source;

/// The types of pictures that both APIs take.
const PICTURES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The one type of document that both APIs take as bytes.
const DOCUMENT: &str = "application/pdf";

/// A picture or file in the form in which an API takes it.
pub(super) enum Content<'a> {
    /// An address on the web that the provider reads.
    Url(&'a str),
    /// Bytes in base64.
    Bytes(String),
    /// A file that is text.
    Words(&'a str),
}

/// What to send of a picture or file. None where the bytes are lost, and for types and addresses that the APIs refuse: they
/// are mentioned in words, since one of them would make every later request fail.
pub(super) fn content(part: &Part) -> Option<Content<'_>> {
    let media = part.media()?;
    if let Source::Url(url) = &media.source {
        return url.starts_with("https://").then_some(Content::Url(url));
    }
    let bytes = media.bytes()?;
    let media_type = media.media_type.as_str();
    let is_document = matches!(part, Part::File(_));
    if is_document && media_type.starts_with("text/") {
        return std::str::from_utf8(bytes).ok().filter(|text| !text.trim().is_empty()).map(Content::Words);
    }
    let is_known = if is_document { media_type == DOCUMENT } else { PICTURES.contains(&media_type) };
    is_known.then(|| Content::Bytes(STANDARD.encode(bytes)))
}

/// Bytes as an address.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::part::Reader;
    use hermes_conversation::{Media, ProviderPayload, Role, Shown, ToolCall, ToolResult};
    use serde_json::{Value, json};

    use super::*;
    use crate::{ApiMode, Breakpoints, Dialect, Marks, Place, Prefix, Request, Style, System, ToolChoice, body};

    const NATIVE: Style = Style::new(ApiMode::AnthropicMessages, Marks::Native);
    const MARKED: Style = Style::new(ApiMode::ChatCompletions, Marks::Envelope);

    fn gif() -> Media {
        Media::image(b"GIF89a\x01\0\x01\0".to_vec(), Some("dot.gif")).unwrap()
    }

    fn of(role: Role, content: &str, parts: Vec<Part>) -> Shown {
        Shown { parts, ..Shown::words(role, content) }
    }

    fn messages(style: Style, shown: &[Shown]) -> Value {
        let mut prefix = Prefix::new(style, "", System::default()).unwrap();
        for message in shown.iter().filter(|message| style.takes(message)) {
            prefix.push(&style.render(message));
        }
        let request = Request {
            model: "m",
            prefix: &prefix,
            breakpoints: Breakpoints::default(),
            max_tokens: Some(9),
            temperature: None,
            schema: None,
            tool_choice: ToolChoice::Auto,
            effort: None,
        };
        let body = String::from_utf8(body(&request, &Dialect::PLAIN).unwrap().to_vec()).unwrap();
        let unmarked = body.replace(crate::Ttl::FiveMinutes.mark(), "");
        serde_json::from_str::<Value>(&unmarked).unwrap()["messages"].clone()
    }

    #[test]
    fn a_message_with_pictures_has_words_and_pictures_in_their_order() {
        let parts = vec![
            Part::Image(gif()),
            Part::text("what is this?"),
            Part::Image(Media::image_at("https://example.com/a.png").unwrap()),
        ];
        let said = [of(Role::User, "what is this?", parts)];
        let data = "R0lGODlhAQABAA==";
        let address = format!("data:image/gif;base64,{data}");
        assert_eq!(
            messages(Style::PLAIN, &said),
            json!([{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": address}},
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            ]}])
        );
        assert_eq!(
            messages(NATIVE, &said),
            json!([{"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": data}},
                {"type": "text", "text": "what is this?"},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            ]}])
        );
    }

    #[test]
    fn pictures_of_results_are_in_the_result_or_behind_all_results() {
        let call = ToolCall { id: "c".into(), name: "camera".into(), arguments: "{}".into() };
        let caller = Shown { tool_calls: vec![call], ..Shown::words(Role::Assistant, "") };
        let inner = vec![Part::text("a shot"), Part::Image(gif())];
        let result = Part::ToolResult(ToolResult {
            call_id: "c".into(),
            tool_name: None,
            parts: inner.clone(),
            failed: true,
            structured: None,
            reminder: None,
        });
        let result = Shown { tool_call_id: Some("c".into()), ..of(Role::Tool, "a shot", vec![result]) };
        let repeated = Shown { repeats_pictures: true, ..of(Role::User, "", vec![Part::Image(gif())]) };
        let shown = [Shown::words(Role::User, "go"), caller, result, repeated];
        let chat = messages(Style::PLAIN, &shown);
        assert_eq!(chat[2], json!({"role": "tool", "content": "a shot", "tool_call_id": "c"}));
        assert_eq!((&chat[3]["role"], &chat[3]["content"][0]["type"]), (&json!("user"), &json!("image_url")));
        let native = messages(NATIVE, &shown);
        assert_eq!(native.as_array().unwrap().len(), 3);
        let block = &native[2]["content"][0];
        // An error with a picture would be refused.
        assert_eq!((&block["type"], &block["is_error"]), (&json!("tool_result"), &json!(null)));
        assert_eq!(block["content"][0], json!({"type": "text", "text": "a shot"}));
        assert_eq!(block["content"][1]["source"]["media_type"], "image/gif");
        assert_eq!(native[2]["content"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_model_that_reads_no_pictures_gets_their_names_in_every_format() {
        let call = ToolCall { id: "c".into(), name: "camera".into(), arguments: "{}".into() };
        let result = Part::ToolResult(ToolResult {
            call_id: "c".into(),
            tool_name: None,
            parts: vec![Part::text("a shot"), Part::Image(gif())],
            failed: false,
            structured: None,
            reminder: None,
        });
        let mut shown = vec![
            of(Role::User, "like this", vec![Part::Image(gif()), Part::text("like this")]),
            Shown { tool_calls: vec![call], ..Shown::words(Role::Assistant, "") },
            Shown { tool_call_id: Some("c".into()), ..of(Role::Tool, "a shot", vec![result]) },
            Shown { repeats_pictures: true, ..of(Role::User, "the images:", vec![Part::Image(gif())]) },
        ];
        shown.retain_mut(Shown::without_images);
        for style in [Style::PLAIN, NATIVE] {
            let sent = messages(style, &shown);
            assert_eq!(sent.as_array().map(Vec::len), Some(3), "{sent}");
            for (message, text) in [(&sent[0], "like this"), (&sent[2], "a shot")] {
                let message = message.to_string();
                assert!(message.contains(text) && message.contains("[image: dot.gif, image/gif]"), "{message}");
            }
        }
    }

    #[test]
    fn a_payload_is_sent_back_byte_for_byte_to_its_model_and_to_no_other() {
        let data = r#"{"type": "thinking","thinking":"hm","signature":"c2ln\u002b"}"#;
        let payload = ProviderPayload {
            provider: "anthropic".into(),
            model: "claude".into(),
            api_mode: "anthropic_messages".into(),
            data: data.into(),
        };
        let call = ToolCall { id: "c".into(), name: "f".into(), arguments: "{}".into() };
        let parts = vec![
            Part::Reasoning { text: "hm".into(), payload: Some(payload) },
            Part::text("so"),
            Part::ToolCall(call.clone()),
        ];
        let reply = Shown { tool_calls: vec![call], ..of(Role::Assistant, "so", parts) };
        let mut kept = reply.clone();
        let reader = Reader { provider: "anthropic", model: "claude", api_mode: "anthropic_messages" };
        let counted = kept.keep_payloads_for(&reader);
        assert_eq!((counted.replayed, counted.dropped), (1, 0));
        let bytes = NATIVE.render(&kept);
        assert!(bytes.bytes().starts_with(data.as_bytes()), "{}", String::from_utf8_lossy(bytes.bytes()));
        let mut other = reply.clone();
        let counted = other.keep_payloads_for(&Reader { model: "claude-2", ..reader });
        assert_eq!((counted.replayed, counted.dropped), (0, 1));
        // Without it the message is as plain as one that never had any.
        assert_eq!(other.parts, []);
        let plain = Shown { parts: Vec::new(), ..reply };
        assert_eq!(NATIVE.render(&other).bytes(), NATIVE.render(&plain).bytes());
    }

    #[test]
    fn a_mark_stands_neither_in_reasoning_nor_in_a_picture_of_chat_completions() {
        let payload = ProviderPayload::untagged(r#"{"type":"redacted_thinking","data":"x"}"#.into());
        let hidden = vec![Part::Reasoning { text: String::new(), payload: Some(payload) }, Part::text("so")];
        let hidden = of(Role::Assistant, "so", hidden);
        let said = of(Role::User, "look", vec![Part::text("look"), Part::Image(gif())]);
        for (style, messages, place) in [
            (NATIVE, vec![Shown::words(Role::User, "a"), hidden], Place::Message(1)),
            (MARKED, vec![said], Place::Message(0)),
        ] {
            let mut prefix = Prefix::new(style, "", System::default()).unwrap();
            messages.iter().for_each(|message| prefix.push(&style.render(message)));
            let marks = prefix.marks(Breakpoints::default());
            assert_eq!(marks.len(), 1, "{style:?}");
            assert_eq!(prefix.place(marks[0]), Some(place));
            assert!(prefix.bytes()[..marks[0]].ends_with(b"\""), "behind words");
        }
    }

    #[test]
    fn a_reply_that_ends_with_reasoning_gets_words_behind_it() {
        let data = r#"{"type":"redacted_thinking","data":"x"}"#;
        let payload = Some(ProviderPayload::untagged(data.into()));
        let reply = of(Role::Assistant, "", vec![Part::Reasoning { text: String::new(), payload }]);
        let sent = String::from_utf8(NATIVE.render(&reply).bytes().to_vec()).unwrap();
        assert_eq!(sent, format!(r#"{data},{{"type":"text","text":"(empty)"}}"#));
    }

    #[test]
    fn files_are_sent_where_both_apis_take_their_type() {
        let file = |bytes: &[u8], media_type, name| Part::File(Media::file(bytes.to_vec(), media_type, name).unwrap());
        let odd = Media { media_type: "image/bmp".into(), ..gif() };
        let parts = vec![
            file(b"%PDF-1.7", "application/pdf", Some("a.pdf")),
            file(b"one, two", "text/csv", Some("a.csv")),
            file(b"\xff\xfe", "text/plain", None),
            file(b"PK", "application/zip", Some("a.zip")),
            Part::Image(odd),
        ];
        let said = [of(Role::User, "", parts)];
        let mentions = ["[file: text/plain]", "[file: a.zip, application/zip]", "[image: dot.gif, image/bmp]"];
        let mentioned = mentions.map(|text| json!({"type": "text", "text": text}));
        let mut native = vec![
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="}}),
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "one, two"}}),
        ];
        native.extend(mentioned.clone());
        assert_eq!(messages(NATIVE, &said)[0]["content"], json!(native));
        let mut chat = vec![
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjc="}}),
            json!({"type": "text", "text": "[file: a.csv, text/csv]\none, two"}),
        ];
        chat.extend(mentioned);
        assert_eq!(messages(Style::PLAIN, &said)[0]["content"], json!(chat));
    }

    #[test]
    fn a_payload_that_is_no_reasoning_is_not_sent() {
        let with = |data: &str| {
            let payload = Some(ProviderPayload::untagged(data.into()));
            let reply =
                of(Role::Assistant, "so", vec![Part::Reasoning { text: "hm".into(), payload }, Part::text("so")]);
            String::from_utf8(NATIVE.render(&reply).bytes().to_vec()).unwrap()
        };
        for other in [
            r#"{"type":"tool_use","id":"x","name":"f","input":{}}"#,
            r#"{"type":"thinking","type":"tool_use"}"#,
            r#"{"thinking":"x"}"#,
            r#""thinking""#,
            "nonsense",
        ] {
            assert_eq!(with(other), r#"{"type":"text","text":"so"}"#, "{other}");
        }
        assert!(with(r#"{"type":"redacted_thinking","data":"x"}"#).contains("redacted"));
    }

    #[test]
    fn lost_bytes_are_named_in_words() {
        let mut lost = gif();
        lost.set_bytes(None);
        let said = [of(Role::User, "", vec![Part::Image(lost)])];
        assert_eq!(messages(NATIVE, &said)[0]["content"][0]["text"], "[image: dot.gif, image/gif]");
        assert_eq!(messages(Style::PLAIN, &said)[0]["content"][0]["text"], "[image: dot.gif, image/gif]");
    }
}
