//! The window that a refusal names.

/// Smaller numbers are no windows, and larger ones no sizes of requests.
const PLAUSIBLE: std::ops::RangeInclusive<u32> = 1_024..=10_000_000;

/// Words directly before the size of a window, in lower case.
const BEFORE: &[&str] = &[
    // `208310 tokens > 200000 maximum`
    " > ",
    "context length is",
    "context length of",
    "context length:",
    "context window is",
    "context window of",
    "context window:",
    "context size is",
    "context size of",
    "context size (",
    "maximum model length is",
    "maximum number of tokens allowed (",
    "maximum number of tokens allowed is",
    "maximum allowed input length is",
    "maximum prompt length is",
    "maximum input length is",
    "maximum length of",
    "range of input length should be [1,",
    "max_model_len is",
    "max_model_len=",
    "at most",
    "limit of",
    "limit is",
    "最大长度为",
    "最大长度是",
    "上下文长度为",
    "上下文长度是",
];

/// Words directly behind the size of a window.
const BEHIND: &[&str] = &[" maximum", " token limit", " token maximum", " token context", " tokens maximum"];

/// The size of the window, if a refusal of a request that is too long names it.
pub(crate) fn stated(message: &str) -> Option<u32> {
    let text = message.to_lowercase();
    let before = BEFORE.iter().filter_map(|words| leading(text.split_once(words)?.1));
    let behind = BEHIND.iter().filter_map(|words| trailing(text.split_once(words)?.0));
    before.chain(behind).find(|limit| is_plausible(*limit))
}

/// Whether a number may be the size of a window.
pub(crate) fn is_plausible(limit: u32) -> bool {
    PLAUSIBLE.contains(&limit)
}

/// The number at the start of a text.
fn leading(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|character| !is_of_number(character)).unwrap_or(text.len());
    parsed(&text[..end])
}

/// The number at the end of a text.
fn trailing(text: &str) -> Option<u32> {
    let start = text
        .rfind(|character| !is_of_number(character))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    parsed(&text[start..])
}

/// Digits, and the commas between thousands.
fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || character == ','
}

fn parsed(digits: &str) -> Option<u32> {
    digits.trim_end_matches(',').replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_named_in_several_ways() {
        for (message, limit) in [
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
                Some(8_192),
            ),
            ("prompt is too long: 208310 tokens > 200000 maximum", Some(200_000)),
            ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease it", Some(200_000)),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("This model's maximum prompt length is 131072 but the request contains 200000 tokens.", Some(131_072)),
            ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", Some(32_768)),
            ("Range of input length should be [1, 129024]", Some(129_024)),
            ("the prompt exceeds the 200,000 token limit", Some(200_000)),
            ("Your input exceeds the context window of this model.", None),
            ("上下文长度为 32768", Some(32_768)),
            ("context length is 512", None),
            ("context length is 99999999999", None),
            ("request 123456 failed", None),
            ("", None),
        ] {
            assert_eq!(stated(message), limit, "{message}");
        }
    }
}
