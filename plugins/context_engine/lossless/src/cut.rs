//! Excerpts of the newest group, for when nothing else makes it fit. Calls keep their results.

use hermes_guest_engine::parts;
use hermes_plugin::context_engine::Excerpt;
use hermes_plugin::{Message, Role};
use serde_json::Value;

use crate::clip::{cap, ends, floor};
use crate::source::Source;

/// A text is not cut below this many bytes.
const LEAST: usize = 100;

/// Fits the group into `tokens`: for each message an excerpt, if it needs one, and its tokens. `None` if it cannot fit.
pub(crate) fn group(messages: &[Message], tokens: u32, source: &impl Source) -> Option<Vec<(Option<Excerpt>, u32)>> {
    let sizes: Vec<usize> = messages.iter().map(|message| message.tokens as usize).collect();
    let mut most = cap(&sizes, tokens as usize);
    for _ in 0..6 {
        let shown: Vec<(Option<Excerpt>, u32)> = messages
            .iter()
            .map(|message| {
                if message.tokens as usize <= most || message.role == Role::User {
                    return (None, message.tokens);
                }
                excerpt(message, most, source).unwrap_or((None, message.tokens))
            })
            .collect();
        let sum = shown.iter().map(|(_, tokens)| *tokens).fold(0, u32::saturating_add);
        if sum <= tokens {
            return Some(shown);
        }
        most = most * 2 / 3;
    }
    None
}

fn excerpt(message: &Message, tokens: usize, source: &impl Source) -> Option<(Option<Excerpt>, u32)> {
    // Two bytes per token is a lower bound for any text.
    let bytes = tokens * 2;
    let mut excerpt = Excerpt { id: message.id, content: None, arguments: Vec::new(), keep_images: false };
    let sizes: Vec<usize> = message.tool_calls.iter().map(|call| call.arguments.len()).collect();
    let of_text = message.content.len().min(bytes / 2);
    let most = cap(&sizes, bytes.saturating_sub(of_text)).max(LEAST);
    let mut saved = 0;
    for call in &message.tool_calls {
        if call.arguments.len() > most
            && let Some(shorter) = shorten(&call.arguments, most)
        {
            saved += source.count(&call.arguments).saturating_sub(source.count(&shorter));
            excerpt.arguments.push((call.id.clone(), shorter));
        }
    }
    let taken: usize = sizes.iter().map(|size| (*size).min(most)).sum();
    let most = bytes.saturating_sub(taken).max(LEAST);
    // The view may show less than the full message, but this is all the message can save.
    let calls = || message.tool_calls.iter().map(|call| source.count(&call.arguments)).sum::<u32>();
    // The host names the pictures of an excerpt in its text.
    let parts = source.count(&parts::summary(message)).saturating_add(40);
    if message.content.len() > most {
        let text = ends(&message.content, most, &format!("#{}", message.id));
        let before = message.tokens.saturating_sub(calls());
        saved += before.saturating_sub(source.count(&text).saturating_add(parts));
        excerpt.content = Some(text);
    } else if message.images > 0 {
        let before = message.tokens.saturating_sub(calls());
        saved += before.saturating_sub(source.count(&message.content).saturating_add(parts));
    }
    (saved > 0).then(|| (Some(excerpt), message.tokens - saved.min(message.tokens)))
}

/// The same JSON object with its long strings cut. `None` if it is not an object or does not become shorter.
fn shorten(arguments: &str, bytes: usize) -> Option<String> {
    let mut object: Value = serde_json::from_str(arguments).ok().filter(Value::is_object)?;
    let mut most = bytes.max(LEAST);
    loop {
        cut_strings(&mut object, most);
        let shorter = object.to_string();
        if shorter.len() <= bytes || most <= 40 {
            return (shorter.len() < arguments.len()).then_some(shorter);
        }
        most /= 2;
    }
}

fn cut_strings(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most => {
            let head = floor(text, most.saturating_sub(12));
            *text = format!("{} [… cut]", &text[..head]);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| cut_strings(value, most)),
        Value::Object(values) => values.values_mut().for_each(|value| cut_strings(value, most)),
        _ => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Ruler, calls, result};

    #[test]
    fn large_texts_and_arguments_are_cut_and_small_ones_stay_whole() {
        let arguments = format!(r#"{{"path":"a.rs","lines":[1,2],"content":"{}"}}"#, "word ".repeat(9_000));
        let messages = [
            calls(1, &[("a", "write", &arguments), ("b", "read", r#"{"path":"b"}"#)]),
            result(2, "a", "write", "done"),
            result(3, "b", "read", &"some text. ".repeat(9_000)),
        ];
        let shown = group(&messages, 1_500, &Ruler).unwrap();
        assert!(shown.iter().map(|(_, tokens)| tokens).sum::<u32>() <= 1_500);
        let arguments = &shown[0].0.as_ref().unwrap().arguments;
        assert_eq!(arguments.len(), 1);
        let value: Value = serde_json::from_str(&arguments[0].1).unwrap();
        assert_eq!((value["path"].as_str(), value["lines"][1].as_u64()), (Some("a.rs"), Some(2)));
        assert_eq!(shown[1].0, None);
        assert!(shown[2].0.as_ref().unwrap().content.as_ref().unwrap().contains("whole: #3"));
    }

    #[test]
    fn a_group_that_cannot_fit_gives_none() {
        let messages =
            [calls(1, &[("a", "write", &format!("[{}1]", "1,".repeat(9_000)))]), result(2, "a", "write", "")];
        assert_eq!(group(&messages, 500, &Ruler), None);
    }
}
