//! What families of models accept in Anthropic's messages, as data, by a part of the name.

use std::borrow::Cow;

use crate::reasoning::dial::{Dial, Ladder, Member};

/// A family of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Family {
    /// Part of the names of its models.
    part: &'static str,
    /// Most tokens of a reply.
    pub(crate) output: u32,
    /// Whether sampling parameters are taken; otherwise they are refused.
    pub(crate) sampling: bool,
    /// Whether a call can be demanded; models that always think refuse that.
    pub(crate) forced_calls: bool,
    /// How its thinking is switched; none for models that do not think.
    pub(crate) dial: Option<Dial>,
}

/// Thinks within a budget of tokens, which has to be less than the cap on output.
const BUDGETED: Dial = Dial {
    on: &[("thinking", r#"{"type":"enabled","budget_tokens":$}"#)],
    off: LEFT_OUT,
    ladder: Ladder(["2000", "4000", "8000", "16000", "32000", "32000"]),
};
/// Decides itself when to think, with an effort.
const ADAPTIVE: Dial = Dial {
    on: &[("thinking", r#"{"type":"adaptive","display":"summarized"}"#), ("output_config", r#"{"effort":"$"}"#)],
    off: LEFT_OUT,
    ladder: Ladder(["low", "low", "medium", "high", "xhigh", "max"]),
};
/// Adaptive thinking of models without the effort `xhigh`.
const ADAPTIVE_TO_MAX: Dial = Dial { ladder: Ladder(["low", "low", "medium", "high", "max", "max"]), ..ADAPTIVE };
/// Adaptive thinking of models that think by default, so switching it off has to be requested.
const ADAPTIVE_BY_DEFAULT: Dial = Dial { off: DISABLED, ..ADAPTIVE };
const SWITCHED: Dial = Dial {
    on: &[("thinking", r#"{"type":"enabled"}"#), ("output_config", r#"{"effort":"$"}"#)],
    off: DISABLED,
    ladder: Ladder(["low", "low", "high", "high", "max", "max"]),
};
/// Without the member, these models do not think.
const LEFT_OUT: Option<&[Member]> = Some(&[]);
const DISABLED: Option<&[Member]> = Some(&[("thinking", r#"{"type":"disabled"}"#)]);

const fn older(part: &'static str, output: u32) -> Family {
    Family { part, output, sampling: true, forced_calls: true, dial: Some(BUDGETED) }
}

const fn without_thinking(part: &'static str, output: u32) -> Family {
    Family { dial: None, ..older(part, output) }
}

const fn adaptive(part: &'static str, output: u32) -> Family {
    Family { dial: Some(ADAPTIVE_TO_MAX), ..older(part, output) }
}

const fn without_sampling(part: &'static str, output: u32) -> Family {
    Family { sampling: false, dial: Some(ADAPTIVE), ..older(part, output) }
}

/// The longest part that fits counts. An unknown new model gets the strictest rules. Without a beta header, which is not sent,
/// 3.7 writes 64,000.
const FAMILIES: &[Family] = &[
    Family {
        part: "claude",
        output: 128_000,
        sampling: false,
        forced_calls: false,
        dial: Some(Dial { off: None, ..ADAPTIVE }),
    },
    without_thinking("claude-3", 4_096),
    without_thinking("claude-3-5", 8_192),
    older("claude-3-7", 64_000),
    older("claude-haiku-4", 64_000),
    older("claude-opus-4", 32_000),
    older("claude-opus-4-5", 64_000),
    adaptive("claude-opus-4-6", 128_000),
    without_sampling("claude-opus-4-7", 128_000),
    without_sampling("claude-opus-4-8", 128_000),
    Family { forced_calls: false, dial: Some(ADAPTIVE_BY_DEFAULT), ..without_sampling("claude-opus-5", 128_000) },
    older("claude-sonnet-4", 64_000),
    adaptive("claude-sonnet-4-6", 64_000),
    Family { dial: Some(SWITCHED), ..older("deepseek", 128_000) },
    Family { dial: Some(Dial { off: DISABLED, ..ADAPTIVE_TO_MAX }), ..older("kimi", 128_000) },
    Family { dial: Some(Dial { off: DISABLED, ..BUDGETED }), ..older("glm", 128_000) },
    older("minimax", 131_072),
    older("qwen3", 65_536),
];

const UNKNOWN: Family = older("", 128_000);

impl Family {
    /// Whether it thinks within a budget of tokens.
    pub(crate) fn is_budgeted(&self) -> bool {
        self.dial.is_some_and(|dial| dial.on == BUDGETED.on)
    }
}

/// The family of a model, for any spelling of versions.
pub(crate) fn of(model: &str) -> Family {
    let name = model.to_ascii_lowercase().replace('.', "-");
    FAMILIES
        .iter()
        .filter(|family| name.contains(family.part))
        .max_by_key(|family| family.part.len())
        .copied()
        .unwrap_or(UNKNOWN)
}

/// A model as the vendor itself calls it: no vendor before a slash, hyphens in versions. Names with another
/// namespace are unchanged.
pub(crate) fn vendor_name(model: &str) -> Cow<'_, str> {
    let name = match model.split_once('/') {
        Some((vendor, name)) if vendor.eq_ignore_ascii_case("anthropic") => name,
        _ => model,
    };
    let own = name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("claude-"));
    if own && name.contains('.') { Cow::Owned(name.replace('.', "-")) } else { Cow::Borrowed(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_of_a_name_decides_what_a_model_takes() {
        for (model, output, sampling) in [
            ("claude-3-haiku-20240307", 4_096, true),
            ("claude-3-5-sonnet-20241022", 8_192, true),
            ("claude-opus-4-20250514", 32_000, true),
            ("claude-opus-4-1-20250805", 32_000, true),
            ("anthropic/claude-sonnet-4.5", 64_000, true),
            ("claude-haiku-4-5", 64_000, true),
            ("claude-opus-4.6", 128_000, true),
            ("claude-opus-4-7", 128_000, false),
            ("claude-sonnet-5", 128_000, false),
            ("claude-unreleased-9", 128_000, false),
            ("MiniMax-M2.5", 131_072, true),
            ("kimi-k2.5", 128_000, true),
        ] {
            let family = of(model);
            assert_eq!((family.output, family.sampling), (output, sampling), "{model}");
        }
    }

    #[test]
    fn names_are_written_as_the_vendor_writes_them() {
        for (given, sent) in [
            ("Anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
            ("claude-opus-4-1-20250805", "claude-opus-4-1-20250805"),
            ("us.anthropic.claude-sonnet-4-5-v1:0", "us.anthropic.claude-sonnet-4-5-v1:0"),
            ("gpt-5.4", "gpt-5.4"),
            ("other/claude-sonnet-4.5", "other/claude-sonnet-4.5"),
            ("clä", "clä"),
        ] {
            assert_eq!(vendor_name(given), sent);
        }
    }
}
