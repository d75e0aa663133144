//! The room for a reply that a refusal names.

use super::{limit, size};

/// Less is no room for an answer.
const LEAST: u32 = 1_024;

/// The largest cap on output that the server would accept, if its refusal says so: directly, or as the window and the tokens
/// of the prompt.
pub(crate) fn for_output(message: &str) -> Option<u32> {
    let text = message.to_lowercase();
    let between = |words: &str, end: &str| text.split_once(words)?.1.split_once(end).map(|(between, _)| between);
    let room = if let Some(range) = between("range of max_tokens should be [", "]") {
        number(range.split_once(',')?.1)?
    } else if text.contains("max_tokens is too large") {
        number(text.split_once("supports at most ")?.1)?
    } else if size::is_about_cap(&text) {
        // The larger number is the requested cap, so the smaller one is the limit.
        limit::numbers(&size::without_least(&text)).into_iter().filter(|number| *number >= LEAST).min()?
    } else {
        let window = number(text.split_once("maximum context length is ")?.1)?;
        let requested = text.split_once("you requested ")?.1;
        let prompt = match requested
            .split_once("prompt contains at least ")
            .or_else(|| requested.split_once("prompt contains "))
        {
            Some((_, prompt)) => number(prompt)?,
            // `you requested 9000 tokens (5000 in the messages, 4000 in the completion)`
            None if requested.contains("in the messages") && requested.contains("in the completion") => {
                number(requested.split_once('(')?.1)?
            }
            None => return None,
        };
        window.checked_sub(prompt)?
    };
    (room >= LEAST).then_some(room)
}

/// The number at the start of a text.
fn number(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_for_a_reply_is_named_in_several_ways() {
        for (message, room) in [
            ("Range of max_tokens should be [1, 65536]", Some(65_536)),
            (
                "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
                Some(16_384),
            ),
            (
                "This model's maximum context length is 131072 tokens. However, you requested 65536 output tokens and your prompt \
                 contains at least 65537 input tokens, for a total of at least 131073 tokens.",
                Some(65_535),
            ),
            (
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, \
                 4000 in the completion).",
                Some(3_192),
            ),
            // The prompt itself does not fit.
            (
                "This model's maximum context length is 8192 tokens. However, you requested 12000 tokens (8000 in the messages, \
                 4000 in the completion).",
                None,
            ),
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                None,
            ),
            ("`max_output_tokens` 100000 exceeds the limit of 65,536", Some(65_536)),
            ("max_completion_tokens must be less than or equal to 8192", Some(8_192)),
            ("max_tokens must be positive", None),
            ("thinking.budget_tokens: must be greater than 1024 and less than max_tokens 16000", None),
            ("max_tokens must be greater than 1024", None),
            ("max_tokens must be at least 2048 and at most 8192", Some(8_192)),
            ("max_output_tokens must be between 1,024 and 16,000", Some(16_000)),
            ("max_tokens should be lower; prompt is too long", None),
            ("Range of max_tokens should be [1, 99999999999999]", None),
            ("", None),
        ] {
            assert_eq!(for_output(message), room, "{message}");
        }
    }
}
