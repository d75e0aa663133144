//! Which models read pictures, by family, as data.

/// Part of a model's name, and whether the models that carry it read pictures. The longest part that fits counts.
const FAMILIES: &[(&str, bool)] = &[
    ("claude", true),
    ("claude-2", false),
    ("claude-instant", false),
    ("codestral", false),
    ("deepseek", false),
    ("deepseek-vl", true),
    ("gemini", true),
    ("gemma-3", true),
    ("gemma3", true),
    ("gpt-3.5", false),
    ("gpt-4.1", true),
    ("gpt-4o", true),
    ("gpt-5", true),
    ("gpt-oss", false),
    ("llama-3.1", false),
    ("llama-3.2-vision", true),
    ("llama-3.3", false),
    ("llama-4", true),
    ("o1-mini", false),
    ("o3-mini", false),
    ("phi-4-multimodal", true),
    ("pixtral", true),
    ("qwen3-coder", false),
    ("qwen2.5-vl", true),
    ("qwen3-vl", true),
];

/// Whether a model reads pictures; none if unknown, and then it may be tried.
pub fn sees_images(provider: &str, model: &str) -> Option<bool> {
    if provider == "offline" {
        return Some(false);
    }
    let name = model.to_ascii_lowercase();
    let fits = FAMILIES.iter().filter(|(part, _)| name.contains(part));
    fits.max_by_key(|(part, _)| part.len()).map(|(_, sees)| *sees)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_family_counts_and_unknown_models_may_be_tried() {
        for (provider, model, sees) in [
            ("anthropic", "claude-sonnet-4-5", Some(true)),
            ("openrouter", "anthropic/Claude-2.1", Some(false)),
            ("deepseek", "deepseek-chat", Some(false)),
            ("custom", "deepseek-vl2", Some(true)),
            ("openai", "o3-mini", Some(false)),
            ("custom", "my-own-model", None),
            ("offline", "gpt-5", Some(false)),
        ] {
            assert_eq!(sees_images(provider, model), sees, "{provider}/{model}");
        }
    }
}
