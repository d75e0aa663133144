//! Windows of models by family, used if the configuration has none.
//!
//! A name that is not here gets a cautious guess: a window that is too small costs an early compaction, one that is
//! too large costs a refused request.

/// The window of an unknown model.
pub(crate) const ASSUMED_WINDOW: u32 = 128_000;
/// The window of the offline partner.
pub(crate) const OFFLINE_WINDOW: u32 = 32_000;
/// Below this, not even prompt and tools would fit.
pub const LEAST_WINDOW: u32 = 2_000;

/// Part of a model's name, and the window of the models that carry it. The longest part that fits counts.
const FAMILIES: &[(&str, u32)] = &[
    ("claude", 200_000),
    ("claude-fable", 1_000_000),
    ("claude-haiku-5", 1_000_000),
    ("claude-opus-4-6", 1_000_000),
    ("claude-opus-4.6", 1_000_000),
    ("claude-opus-4-7", 1_000_000),
    ("claude-opus-4.7", 1_000_000),
    ("claude-opus-5", 1_000_000),
    ("claude-sonnet-4-6", 1_000_000),
    ("claude-sonnet-4.6", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("deepseek", 128_000),
    ("deepseek-chat", 1_000_000),
    ("deepseek-reasoner", 1_000_000),
    ("deepseek-v4", 1_000_000),
    ("gemini", 1_048_576),
    ("gemma", 8_192),
    ("gemma-3", 131_072),
    ("gemma3", 131_072),
    ("gemma-4", 256_000),
    ("gemma4", 256_000),
    ("glm", 202_752),
    ("glm-5.2", 1_048_576),
    ("gpt-3.5", 16_385),
    ("gpt-4", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-5", 400_000),
    ("gpt-5.1-chat", 128_000),
    ("gpt-5.3-codex-spark", 128_000),
    ("gpt-5.4", 1_050_000),
    ("gpt-5.4-mini", 400_000),
    ("gpt-5.4-nano", 400_000),
    ("gpt-5.5", 1_050_000),
    ("gpt-5.5-mini", 400_000),
    ("gpt-5.6", 1_050_000),
    ("gpt-5.6-mini", 400_000),
    ("grok", 131_072),
    ("grok-4", 256_000),
    ("grok-4-fast", 2_000_000),
    ("grok-4.20", 2_000_000),
    ("grok-4.3", 1_000_000),
    ("grok-4.5", 500_000),
    ("kimi", 262_144),
    ("kimi-k3", 1_048_576),
    ("llama", 131_072),
    ("llama-3-8b", 8_192),
    ("llama-3-70b", 8_192),
    ("minimax", 204_800),
    ("minimax-m3", 1_000_000),
    ("mixtral", 32_768),
    ("qwen", 131_072),
    ("qwen3-coder", 262_144),
    ("qwen3-coder-plus", 1_000_000),
];

/// The window of a model by its family; none for a family that is not known.
pub(crate) fn family_window(model: &str) -> Option<u32> {
    let model = model.to_ascii_lowercase();
    FAMILIES
        .iter()
        .filter(|(part, _)| model.contains(part))
        .max_by_key(|(part, _)| part.len())
        .map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_of_a_name_that_is_known_decides() {
        for (model, window) in [
            ("claude-sonnet-4-5-20250929", Some(200_000)),
            ("anthropic/claude-opus-4.6", Some(1_000_000)),
            ("gpt-5.4-mini", Some(400_000)),
            ("openai/GPT-4o", Some(128_000)),
            ("gemma-3-27b", Some(131_072)),
            ("deepseek-v4-pro", Some(1_000_000)),
            ("deepseek-r1-distill-qwen", Some(128_000)),
            ("qwen3-coder-plus", Some(1_000_000)),
            ("grok-4-fast-reasoning", Some(2_000_000)),
            ("my-own-model", None),
            ("", None),
        ] {
            assert_eq!(family_window(model), window, "{model}");
        }
    }
}
