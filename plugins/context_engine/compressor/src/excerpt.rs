//! Excerpts of a text, of a call's arguments, and of a whole group of calls and results.

use hermes_guest_engine::{budget, parts};
use hermes_plugin::context_engine::Excerpt;
use hermes_plugin::{Message, MessageId, Role};
use serde_json::Value;

use crate::source::Source;

/// Tokens of a message besides its texts, and of a call besides name and arguments.
const LINKAGE: u32 = 13;
const CALL: u32 = 12;
/// A text is not cut below this many tokens.
const LEAST: u32 = 40;

/// The beginning and end of a text within a token budget, with a mark between them; the whole text if it fits.
pub(crate) fn shorten(text: &str, budget: u32, source: &impl Source) -> String {
    // A token rarely exceeds eight characters, so text beyond that need not be counted.
    let most = (budget as usize).saturating_mul(8);
    let length = text.chars().count();
    if length <= most && source.count(text) <= budget {
        return text.to_owned();
    }
    let mut keep = length.min(most);
    loop {
        keep = keep * 4 / 5;
        let (head, tail) = (keep * 2 / 3, keep / 3);
        let head_ends = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
        let tail_begins = match tail.checked_sub(1) {
            Some(last) => text.char_indices().nth_back(last).map_or(0, |(at, _)| at),
            None => text.len(),
        };
        let left_out = length - head - tail;
        let short = format!("{}\n[… {left_out} characters left out …]\n{}", &text[..head_ends], &text[tail_begins..]);
        let short = short.trim().to_owned();
        if keep == 0 || source.count(&short) <= budget {
            return short;
        }
    }
}

/// The largest cap such that the sizes, each limited to it, sum to at most `budget`; the maximum if all fit.
pub(crate) fn cap(sizes: &[u32], budget: u32) -> u32 {
    let cap = budget::cap(sizes.iter().map(|size| u64::from(*size)), u64::from(budget));
    cap.and_then(|cap| u32::try_from(cap).ok()).unwrap_or(u32::MAX)
}

/// Fits a group into a token budget and returns the tokens of each message. `costs` holds their current tokens.
///
/// `None` if the group cannot fit. Calls keep their results.
pub(crate) fn group(
    messages: &[Message],
    costs: &[u32],
    budget: u32,
    source: &impl Source,
) -> Option<Vec<(Option<Excerpt>, u32)>> {
    let most = cap(costs, budget);
    let mut shown: Vec<(Option<Excerpt>, u32)> = Vec::new();
    for (message, &cost) in messages.iter().zip(costs) {
        // An excerpt is always made from the full message, even if the view shows an excerpt now.
        let excerpt = if cost <= most { None } else { of_message(message, message.tokens, most, source) };
        shown.push(match excerpt {
            Some((excerpt, shorter)) if shorter < cost => (Some(excerpt), shorter),
            _ => (None, cost),
        });
    }
    let sum = shown.iter().map(|(_, tokens)| *tokens).fold(0, u32::saturating_add);
    (sum <= budget).then_some(shown)
}

/// The line that starts every excerpt.
pub(crate) fn mark(id: MessageId) -> String {
    format!("[shortened; the whole is message {id} of the log]\n")
}

/// An excerpt within a token budget. `None` if it would not be shorter.
fn of_message(message: &Message, tokens: u32, budget: u32, source: &impl Source) -> Option<(Excerpt, u32)> {
    if message.role == Role::User {
        return None;
    }
    let mut excerpt = Excerpt { id: message.id, content: None, arguments: Vec::new(), keep_images: false };
    let mut shorter = tokens;
    let sizes: Vec<u32> = message.tool_calls.iter().map(|call| source.count(&call.arguments)).collect();
    let of_calls: u32 = sizes.iter().sum();
    let of_names: u32 = message.tool_calls.iter().map(|call| source.count(&call.name) + CALL).sum();
    let of_text = tokens.saturating_sub(of_calls).saturating_sub(of_names).saturating_sub(LINKAGE);
    // The host names the pictures and files of an excerpt in its text.
    let of_parts = source.count(&parts::summary(message));
    if of_calls > 0 {
        let share = budget.saturating_sub(of_names + LINKAGE).saturating_sub(of_text.min(budget / 2)).max(LEAST);
        let most = cap(&sizes, share);
        for (call, size) in message.tool_calls.iter().zip(sizes) {
            if size > most
                && let Some(arguments) = shorten_arguments(&call.arguments, most, source)
            {
                shorter = shorter.saturating_sub(size).saturating_add(source.count(&arguments));
                excerpt.arguments.push((call.id.clone(), arguments));
            }
        }
    }
    if shorter > budget && of_text > LEAST {
        let room = budget.saturating_sub(shorter.saturating_sub(of_text)).saturating_sub(of_parts).max(LEAST / 2);
        let mark = mark(message.id);
        let content = mark.clone() + &shorten(&message.content, room.saturating_sub(source.count(&mark)), source);
        shorter = shorter.saturating_sub(of_text).saturating_add(source.count(&content)).saturating_add(of_parts);
        excerpt.content = Some(content);
    }
    (shorter < tokens && (excerpt.content.is_some() || !excerpt.arguments.is_empty())).then_some((excerpt, shorter))
}

/// The same JSON object with its long strings cut. `None` if it is not an object or the gain is too small.
pub(crate) fn shorten_arguments(arguments: &str, budget: u32, source: &impl Source) -> Option<String> {
    let mut object: Value = serde_json::from_str(arguments).ok().filter(Value::is_object)?;
    let mut most = 2_000;
    loop {
        cut_strings(&mut object, most);
        let shorter = object.to_string();
        let fits = source.count(&shorter) <= budget;
        if fits || most <= 60 {
            return (shorter.len() < arguments.len()).then_some(shorter);
        }
        most /= 2;
    }
}

fn cut_strings(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.chars().count() > most => {
            let head: String = text.chars().take(most.saturating_sub(20)).collect();
            *text = format!("{head} [… cut]");
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
    use crate::testing::Ruler;

    #[test]
    fn a_text_that_fits_stays_whole_and_a_long_one_keeps_both_ends() {
        assert_eq!(shorten("short enough", 10, &Ruler), "short enough");
        let text = format!("begin {} end", "word ".repeat(4_000));
        let short = shorten(&text, 100, &Ruler);
        assert!(Ruler.count(&short) <= 100 && Ruler.count(&short) > 50, "{short}");
        assert!(
            short.starts_with("begin word") && short.ends_with("word  end") && short.contains("characters left out")
        );
    }

    #[test]
    fn shortened_arguments_stay_an_object_and_keep_other_values() {
        let arguments = format!(r#"{{"path":"a.rs","lines":[1,2],"content":"{}"}}"#, "x ".repeat(9_000));
        let shorter = shorten_arguments(&arguments, 100, &Ruler).unwrap();
        let value: Value = serde_json::from_str(&shorter).unwrap();
        assert_eq!((value["path"].as_str(), value["lines"][1].as_u64()), (Some("a.rs"), Some(2)));
        assert!(Ruler.count(&shorter) <= 100);
        assert_eq!(shorten_arguments("[1]", 1, &Ruler), None);
        assert_eq!(shorten_arguments("{", 1, &Ruler), None);
        assert_eq!(shorten_arguments(r#"{"n":1}"#, 1, &Ruler), None);
    }
}
