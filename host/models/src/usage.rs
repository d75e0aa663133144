//! Token counts in the forms of the providers.

use hermes_conversation::Usage;
use serde_json::Value;

/// Counts from the `usage` object of chat completions and of the Responses API, where the prompt includes cached tokens. None if all are zero,
/// so that no estimate is calibrated by zero.
pub(crate) fn read(usage: &Value) -> Option<Usage> {
    let input = first(usage, &["/prompt_tokens", "/input_tokens"]);
    let output = first(usage, &["/completion_tokens", "/output_tokens"]);
    if input == 0 && output == 0 {
        return None;
    }
    let cache_read = first(
        usage,
        &[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/cache_read_input_tokens",
            "/prompt_cache_hit_tokens",
        ],
    );
    let cache_write = first(
        usage,
        &[
            "/prompt_tokens_details/cache_write_tokens",
            "/input_tokens_details/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_tokens",
            "/cache_creation_input_tokens",
        ],
    );
    let reasoning =
        first(usage, &["/completion_tokens_details/reasoning_tokens", "/output_tokens_details/reasoning_tokens"]);
    Some(Usage { input, output, cache_read, cache_write, reasoning })
}

/// Counts from the `usage` object of Anthropic's messages, whose `input_tokens` exclude cached tokens.
pub(crate) fn read_messages(usage: &Value) -> Option<Usage> {
    let cache_read = first(usage, &["/cache_read_input_tokens"]);
    let by_lifetime = ["/cache_creation/ephemeral_5m_input_tokens", "/cache_creation/ephemeral_1h_input_tokens"];
    let cache_write = match first(usage, &["/cache_creation_input_tokens"]) {
        0 => by_lifetime.iter().map(|place| first(usage, &[place])).fold(0, u32::saturating_add),
        written => written,
    };
    let input = first(usage, &["/input_tokens"]).saturating_add(cache_read).saturating_add(cache_write);
    let output = first(usage, &["/output_tokens"]);
    let reasoning = first(usage, &["/output_tokens_details/reasoning_tokens"]);
    (input > 0 || output > 0).then_some(Usage { input, output, cache_read, cache_write, reasoning })
}

/// The first count above zero.
fn first(usage: &Value, places: &[&str]) -> u32 {
    places.iter().filter_map(|place| usage.pointer(place)).map(count).find(|count| *count > 0).unwrap_or(0)
}

/// Some servers count in floats.
fn count(value: &Value) -> u32 {
    match value.as_u64() {
        Some(count) => u32::try_from(count).unwrap_or(u32::MAX),
        // Saturates; negative values and NaN become zero.
        None => value.as_f64().unwrap_or(0.0) as u32,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_wherever_a_provider_puts_them() {
        let read = |text: &str| read(&serde_json::from_str(text).unwrap());
        let plain = Usage { input: 100, output: 30, ..Usage::default() };
        assert_eq!(read(r#"{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130}"#), Some(plain));
        assert_eq!(read(r#"{"prompt_tokens":100.0,"completion_tokens":30}"#), Some(plain));
        assert_eq!(
            read(
                r#"{"prompt_tokens":100,"completion_tokens":30,"prompt_tokens_details":{"cached_tokens":60},
                    "cache_read_input_tokens":40,"completion_tokens_details":{"reasoning_tokens":25}}"#
            ),
            Some(Usage { cache_read: 60, reasoning: 25, ..plain }),
            "the nested count wins"
        );
        assert_eq!(
            read(
                r#"{"prompt_tokens":100,"completion_tokens":30,"cache_read_input_tokens":40,
                    "cache_creation_input_tokens":20}"#
            ),
            Some(Usage { cache_read: 40, cache_write: 20, ..plain })
        );
        assert_eq!(
            read(r#"{"prompt_tokens":100,"completion_tokens":30,"prompt_cache_hit_tokens":64}"#),
            Some(Usage { cache_read: 64, ..plain })
        );
        assert_eq!(read(r#"{"prompt_tokens":-5,"completion_tokens":"many"}"#), None);
        assert_eq!(read("null"), None);
    }
}
