//! Messages of the peer as messages of this program. Each row becomes at most one message, and a row that is added later
//! changes no earlier message: only so can a session that continued be recognised.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::{Draft, Media, Part, Role, ToolCall};
use serde_json::{Value, json};

use crate::database::MessageRow;
use crate::folding::Entry;

/// Precedes content that is not a plain text.
const JSON: &str = "\0json:";
/// Around memories that the peer recalled. It shows messages without them.
const RECALLED: (&str, &str) = ("<memory-context>", "</memory-context>");
/// In place of a picture or file that cannot be taken.
const NO_PICTURE: &str = "[a picture or file that was not imported]";

/// What could not be translated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Messages that the user took back.
    pub(crate) rewound: u64,
    /// Messages without any content, and those of other roles, such as `system`.
    pub(crate) empty: u64,
    /// Pictures and files that are missing or of an unknown type.
    pub(crate) media: u64,
    /// Calls whose arguments are not a JSON object.
    pub(crate) arguments: u64,
}

/// The messages that the peer still has, in order.
pub(crate) fn entries(rows: &[MessageRow], started_at: f64, losses: &mut Losses) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        if !row.is_active && !row.is_compacted {
            losses.rewound += 1;
            continue;
        }
        match draft(row, started_at, losses) {
            Some(draft) => entries.push(Entry::of(draft)),
            None => losses.empty += 1,
        }
    }
    entries
}

fn draft(row: &MessageRow, started_at: f64, losses: &mut Losses) -> Option<Draft> {
    let role = Role::parse(&row.role).filter(|role| *role != Role::System)?;
    let at = milliseconds(if row.timestamp > 0.0 { row.timestamp } else { started_at });
    let parts = content(row.content.as_deref().unwrap_or_default(), role, losses);
    if role == Role::Tool {
        let call = ToolCall {
            id: row.tool_call_id.clone().filter(|id| !id.is_empty())?,
            name: row.tool_name.clone().unwrap_or_default(),
            arguments: String::new(),
        };
        let texts: Vec<String> = parts.into_iter().map(shown).collect();
        let mut result = Draft::result(&call, texts.join("\n\n"), at);
        result.tool_name = row.tool_name.clone().filter(|name| !name.is_empty());
        return Some(result);
    }
    let calls = if role == Role::Assistant { calls(row, losses) } else { Vec::new() };
    let reasoning = row.reasoning.clone().filter(|_| role == Role::Assistant);
    if parts.is_empty() && calls.is_empty() && reasoning.is_none() {
        return None;
    }
    let thoughts = reasoning.map(|text| Part::Reasoning { text, payload: None });
    let parts = thoughts.into_iter().chain(parts).chain(calls.into_iter().map(Part::ToolCall)).collect();
    Some(Draft::of_parts(role, parts, at))
}

/// A part of a result as text: results here have no pictures of strangers.
fn shown(part: Part) -> String {
    match part {
        Part::Text { text } => text,
        other => other.mention().unwrap_or_default(),
    }
}

/// Unix milliseconds from Unix seconds.
pub(crate) fn milliseconds(seconds: f64) -> u64 {
    /// The year 5138. A later time is not one.
    const LAST: f64 = 1e11;
    let seconds = if seconds.is_finite() { seconds.clamp(0.0, LAST) } else { 0.0 };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
    let milliseconds = (seconds * 1000.0).round() as u64;
    milliseconds
}

fn content(stored: &str, role: Role, losses: &mut Losses) -> Vec<Part> {
    let parts = match stored.strip_prefix(JSON).map(serde_json::from_str::<Value>) {
        Some(Ok(Value::Array(items))) => items.iter().filter_map(|item| part(item, losses)).collect(),
        Some(Ok(Value::String(text))) => vec![Part::text(text)],
        Some(Ok(other)) => vec![Part::text(other.to_string())],
        Some(Err(_)) | None => vec![Part::text(stored)],
    };
    let clean = |part| match part {
        Part::Text { text } if role != Role::Tool => Part::text(without_recalled(&text)),
        other => other,
    };
    let has_words = |part: &Part| !matches!(part, Part::Text { text } if text.is_empty());
    let parts: Vec<Part> = parts.into_iter().map(clean).collect();
    parts.into_iter().filter(has_words).collect()
}

/// A part in the form of the chat completions API, or of the responses API.
fn part(item: &Value, losses: &mut Losses) -> Option<Part> {
    if let Some(text) = item.as_str().or_else(|| item["text"].as_str()) {
        return Some(Part::text(text));
    }
    let image = &item["image_url"];
    let address = image.as_str().or_else(|| image["url"].as_str());
    let picture = address.and_then(|address| match address.strip_prefix("data:") {
        Some(data) => {
            let bytes = STANDARD.decode(data.split_once(";base64,")?.1.trim()).ok()?;
            Media::image(bytes, None).ok()
        }
        None => Media::image_at(address).ok(),
    });
    Some(picture.map_or_else(
        || {
            losses.media += 1;
            Part::text(NO_PICTURE)
        },
        Part::Image,
    ))
}

/// The text without memories that the peer had added.
fn without_recalled(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, behind)) = rest.split_once(RECALLED.0) {
        let Some((_, after)) = behind.split_once(RECALLED.1) else { break };
        kept.push_str(before);
        rest = after;
    }
    if kept.is_empty() && rest.len() == text.len() {
        return text.to_owned();
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

/// The calls of an assistant's message. A call without an id or a name cannot be answered, and is left out.
fn calls(row: &MessageRow, losses: &mut Losses) -> Vec<ToolCall> {
    let Some(stored) = row.tool_calls.as_deref() else { return Vec::new() };
    let Ok(Value::Array(items)) = serde_json::from_str(stored) else { return Vec::new() };
    let mut calls: Vec<ToolCall> = Vec::new();
    for item in &items {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let id = text(&item["id"]).or_else(|| text(&item["call_id"]));
        let (Some(id), Some(name)) = (id, text(&item["function"]["name"])) else { continue };
        let arguments = match &item["function"]["arguments"] {
            Value::String(text) if text.trim().is_empty() => "{}".to_owned(),
            Value::String(text) if serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok() => text.clone(),
            Value::Null => "{}".to_owned(),
            object @ Value::Object(_) => object.to_string(),
            other => {
                losses.arguments += 1;
                let written = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                json!({ "not_an_object": written }).to_string()
            }
        };
        calls.push(ToolCall { id, name, arguments });
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(role: &str, content: &str) -> MessageRow {
        MessageRow {
            role: role.into(),
            content: Some(content.into()),
            timestamp: 1_700_000_000.25,
            is_active: true,
            ..MessageRow::default()
        }
    }

    fn drafts(rows: &[MessageRow]) -> (Vec<Draft>, Losses) {
        let mut losses = Losses::default();
        let entries = entries(rows, 0.0, &mut losses);
        (entries.into_iter().map(Entry::into_draft).collect(), losses)
    }

    #[test]
    fn a_turn_with_tools_keeps_calls_results_reasoning_and_times() {
        let calls = r#"[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]"#;
        let rows = [
            row("user", "<memory-context>likes tea</memory-context>\nread it"),
            MessageRow {
                content: None,
                reasoning: Some("hm".into()),
                tool_calls: Some(calls.into()),
                ..row("assistant", "")
            },
            MessageRow {
                tool_call_id: Some("c1".into()),
                tool_name: Some("read_file".into()),
                ..row("tool", "<memory-context>stays</memory-context>")
            },
            row("assistant", "done"),
        ];
        let at = 1_700_000_000_250;
        let call = ToolCall { id: "c1".into(), name: "read_file".into(), arguments: r#"{"path":"a"}"#.into() };
        let thought = Draft { reasoning: Some("hm".into()), ..Draft::assistant("", vec![call.clone()], at) };
        let (drafts, losses) = drafts(&rows);
        assert_eq!(
            drafts,
            [
                Draft::user("read it", at),
                thought,
                Draft::result(&call, "<memory-context>stays</memory-context>", at),
                Draft::assistant("done", Vec::new(), at),
            ]
        );
        assert_eq!(losses, Losses::default());
    }

    #[test]
    fn messages_of_several_parts_keep_their_pictures() {
        let gif = STANDARD.encode(b"GIF89a\x01\0\x01\0");
        let content = format!(
            "\0json:[{{\"type\":\"text\",\"text\":\"look\"}},{{\"type\":\"image_url\",\"image_url\":{{\"url\":\
             \"data:image/gif;base64,{gif}\"}}}},{{\"type\":\"image_url\",\"image_url\":{{\"url\":\"file:///etc/passwd\"}}}}]"
        );
        let (drafts, losses) = drafts(&[row("user", &content)]);
        assert_eq!(
            (drafts[0].images(), drafts[0].content.as_str()),
            (1, "look\n\n[a picture or file that was not imported]")
        );
        assert_eq!(losses.media, 1);
    }

    #[test]
    fn what_was_taken_back_or_says_nothing_is_left_out_and_counted() {
        let rows = [
            row("system", "You are"),
            row("user", ""),
            MessageRow { is_active: false, ..row("user", "oops") },
            MessageRow { is_active: false, is_compacted: true, ..row("user", "old") },
            row("tool", "a result without a call id"),
        ];
        let (drafts, losses) = drafts(&rows);
        assert_eq!(drafts.len(), 1);
        assert_eq!(losses, Losses { rewound: 1, empty: 3, ..Losses::default() });
    }

    mod attack {
        use super::*;

        #[test]
        fn broken_rows_become_sound_messages() {
            let rows = [
                MessageRow { tool_calls: Some("{not json".into()), ..row("assistant", "a") },
                MessageRow {
                    tool_calls: Some(r#"[{"id":"x","function":{"name":"f","arguments":"rm -rf"}},{"id":""},7]"#.into()),
                    ..row("assistant", "b")
                },
                MessageRow { timestamp: f64::INFINITY, ..row("user", "\0json:[1,null]") },
                MessageRow { timestamp: -5.0, ..row("user", "\0json:{") },
            ];
            let (drafts, losses) = drafts(&rows);
            assert_eq!(drafts.len(), 4);
            assert_eq!(drafts[1].tool_calls[0].arguments, r#"{"not_an_object":"rm -rf"}"#);
            assert_eq!((drafts[2].created_at, drafts[3].created_at), (0, 0));
            assert_eq!((losses.arguments, losses.media), (1, 2));
            assert!(drafts.iter().all(|draft| draft.check_parts().is_ok()));
        }
    }
}
