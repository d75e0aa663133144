//! Pictures and files as the wire formats carry them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::Media;
use hermes_conversation::media::Source;

/// The bytes in base64; none where they are not at hand.
pub(super) fn base64(media: &Media) -> Option<String> {
    media.bytes().map(|bytes| STANDARD.encode(bytes))
}

/// An address that the provider reads: one on the web as it is, and bytes as a `data:` URL. None where neither is at hand.
pub(super) fn address(media: &Media) -> Option<String> {
    match &media.source {
        Source::Url(url) => Some(url.clone()),
        Source::Blob(_) => base64(media).map(|data| format!("data:{};base64,{data}", media.media_type)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::part::Reader;
    use hermes_conversation::{Part, ProviderPayload, Role, Shown, ToolCall, ToolResult};
    use serde_json::{Value, json};

    use super::*;
    use crate::{ApiMode, Breakpoints, Dialect, Marks, Place, Prefix, Request, Style, System, body};

    const NATIVE: Style = Style { mode: ApiMode::AnthropicMessages, marks: Marks::Native };
    const MARKED: Style = Style { mode: ApiMode::ChatCompletions, marks: Marks::Envelope };

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
        };
        let body = String::from_utf8(body(&request, &Dialect::PLAIN).unwrap()).unwrap();
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
        assert_eq!((&block["type"], &block["is_error"]), (&json!("tool_result"), &json!(true)));
        assert_eq!(block["content"][0], json!({"type": "text", "text": "a shot"}));
        assert_eq!(block["content"][1]["source"]["media_type"], "image/gif");
        assert_eq!(native[2]["content"].as_array().unwrap().len(), 1);
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
        let hidden = of(Role::Assistant, "", vec![Part::Reasoning { text: String::new(), payload: Some(payload) }]);
        let said = of(Role::User, "look", vec![Part::text("look"), Part::Image(gif())]);
        for (style, messages, place) in [
            (NATIVE, vec![Shown::words(Role::User, "a"), hidden], Place::Message(0)),
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
    fn lost_bytes_are_named_in_words() {
        let mut lost = gif();
        lost.set_bytes(None);
        let said = [of(Role::User, "", vec![Part::Image(lost)])];
        assert_eq!(messages(NATIVE, &said)[0]["content"][0]["text"], "[image: dot.gif, image/gif]");
        assert_eq!(messages(Style::PLAIN, &said)[0]["content"][0]["text"], "[image: dot.gif, image/gif]");
    }
}
