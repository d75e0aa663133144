//! Writes earlier replies of models in a form that every provider takes.
//!
//! A provider checks the whole conversation with each request, so one made-up name would make every later request fail. The log
//! keeps what the model wrote. Every function here depends on its arguments alone, so a message has the same bytes in every
//! request. Text that all providers take is sent unchanged.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Replaces the name of a call in which nothing can be kept.
const NO_NAME: &str = "unknown_tool";
/// The longest name of a tool that every provider takes.
const LONGEST_NAME: usize = 64;
/// Replaces arguments that are no JSON object.
pub(super) const NO_ARGUMENTS: &str = "{}";
/// The deepest nesting of arguments. Some parsers give up at 100.
const DEEPEST: usize = 90;
/// The longest number. Some parsers refuse longer ones.
const LONGEST_NUMBER: usize = 300;
/// Gateways of LiteLLM keep a provider's seal in the id of a call, and want it back.
const SEALED_ID: &str = "__thought__";
/// The longest id of a call that chat completions take, apart from those with a seal.
const LONGEST_ID: usize = 64;

/// Which ids of calls a provider takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallIds {
    /// Any id that models and servers make up.
    #[default]
    Any,
    /// At most 40 characters, as OpenAI's chat completions.
    Short,
    /// Nine letters and digits, as Mistral.
    Nine,
}

impl CallIds {
    /// Every kind.
    pub(crate) const ALL: [CallIds; 3] = [Self::Any, Self::Short, Self::Nine];

    /// An id of chat completions. Servers want their own ids back, so only those that would be refused are replaced.
    pub(crate) fn written(self, id: &str) -> Cow<'_, str> {
        let fits = match self {
            Self::Any => id.len() <= LONGEST_ID || id.contains(SEALED_ID),
            Self::Short => id.len() <= 40,
            Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        match self {
            _ if fits && !id.trim().is_empty() && !id.contains(char::is_control) => Cow::Borrowed(id),
            Self::Any | Self::Short => Cow::Owned(format!("call_{}", digest(&[id.as_bytes()]))),
            Self::Nine => Cow::Owned(digest(&[id.as_bytes()])[..9].to_owned()),
        }
    }
}

/// The first 24 hexadecimal digits of a SHA-256 digest.
pub(super) fn digest(pieces: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    pieces.iter().for_each(|piece| digest.update(piece));
    digest.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a call. Names outside of `[a-zA-Z_][a-zA-Z0-9_-]{0,63}` are cleaned.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let begins = |name: &str| name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if begins(name) && name.len() <= LONGEST_NAME && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mut cleaned = String::new();
    for piece in name.split(|character| !fits(character)).filter(|piece| !piece.is_empty()) {
        if !cleaned.is_empty() {
            cleaned.push('_');
        }
        cleaned.push_str(piece);
    }
    if cleaned.is_empty() {
        return Cow::Borrowed(NO_NAME);
    }
    if !begins(&cleaned) {
        cleaned.insert(0, '_');
    }
    cleaned.truncate(LONGEST_NAME);
    Cow::Owned(cleaned)
}

/// The arguments of a call as the text of a JSON object, without what some parsers refuse: halves of characters, U+0000, and
/// numbers beyond all bounds. An empty object replaces everything else.
pub(crate) fn arguments(written: &str) -> Cow<'_, str> {
    object(written).unwrap_or(Cow::Borrowed(NO_ARGUMENTS))
}

/// The text of a JSON object that every parser reads, otherwise unchanged; none if it is something else.
pub(super) fn object(text: &str) -> Option<Cow<'_, str>> {
    let is_object = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    mended(text).filter(|text| text.trim_start().starts_with('{') && is_object(text))
}

/// The text of a JSON value that every parser reads, otherwise unchanged; none if it is something else.
pub(super) fn value(text: &str) -> Option<Cow<'_, str>> {
    mended(text).filter(|text| serde_json::from_str::<Value>(text).is_ok())
}

/// Replaces the pieces of JSON about which parsers disagree. None if the text is nested too deeply.
fn mended(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    // Everything before `kept` is in `out`, if anything was replaced.
    let (mut kept, mut at, mut depth) = (0, 0_usize, 0_usize);
    let mut replace = |from: usize, to: usize, by: &str| {
        out.push_str(&text[kept..from]);
        out.push_str(by);
        kept = to;
    };
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string(text, at + 1, &mut replace),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let is_of_number =
                    |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
                let end = bytes[at..].iter().position(|byte| !is_of_number(byte)).map_or(bytes.len(), |end| at + end);
                let number = &text[at..end];
                if number.len() > LONGEST_NUMBER || number.parse::<f64>().is_ok_and(f64::is_infinite) {
                    replace(at, end, &format!("\"{number}\""));
                }
                at = end;
            }
            _ => at += 1,
        }
        if depth > DEEPEST {
            return None;
        }
    }
    if kept == 0 {
        return Some(Cow::Borrowed(text));
    }
    out.push_str(&text[kept..]);
    Some(Cow::Owned(out))
}

/// Walks over a string that begins before `at`, and returns what is behind it.
fn string(text: &str, mut at: usize, replace: &mut impl FnMut(usize, usize, &str)) -> usize {
    const REPLACEMENT: &str = "\\ufffd";
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let is_escape = bytes.get(at..at + 2) == Some(b"\\u");
        let digits = text.get(at + 2..at + 6).filter(|_| is_escape)?;
        u16::from_str_radix(digits, 16).ok()
    };
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => match unit(at) {
                Some(0xd800..0xdc00) if matches!(unit(at + 6), Some(0xdc00..0xe000)) => at += 12,
                Some(0 | 0xd800..0xe000) => {
                    replace(at, at + 6, REPLACEMENT);
                    at += 6;
                }
                Some(_) => at += 6,
                None => at += 2,
            },
            _ => at += 1,
        }
    }
    at
}

/// A text, or its placeholder if it is blank: many providers refuse a blank text.
pub(super) fn or<'a>(text: &'a str, placeholder: &'a str) -> &'a str {
    if text.trim().is_empty() { placeholder } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_made_up_name_becomes_one_that_providers_take() {
        for (made_up, sent) in [
            ("write_file", "write_file"),
            ("mcp_a-b_C9", "mcp_a-b_C9"),
            ("functions.write_file", "functions_write_file"),
            ("multi_tool_use.parallel", "multi_tool_use_parallel"),
            ("write_file<|channel|>json", "write_file_channel_json"),
            (" write file\n", "write_file"),
            ("schreibe_grüße", "schreibe_gr_e"),
            ("写文件", NO_NAME),
            ("", NO_NAME),
            ("7zip", "_7zip"),
            ("-x", "_-x"),
        ] {
            assert_eq!(name(made_up), sent, "{made_up:?}");
        }
        assert_eq!(name(&"x".repeat(65)).len(), 64);
    }

    #[test]
    fn arguments_are_an_object_that_every_parser_reads() {
        let deep = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let huge = "9".repeat(400);
        for (written, sent) in [
            (" {\"a\": 1} ", " {\"a\": 1} "),
            (r#"{"n":12345678901234567890,"e":1e300}"#, r#"{"n":12345678901234567890,"e":1e300}"#),
            (r#"{"a":"\ud83d\ude80 \u0041 \\u0000"}"#, r#"{"a":"\ud83d\ude80 \u0041 \\u0000"}"#),
            (r#"{"a":"go \ud83d"}"#, r#"{"a":"go \ufffd"}"#),
            (r#"{"a":"\ude80\ud83d\ud83d\ude80"}"#, r#"{"a":"\ufffd\ufffd\ud83d\ude80"}"#),
            (r#"{"\u0000":"\u0000x"}"#, r#"{"\ufffd":"\ufffdx"}"#),
            (r#"{"a":-1e999,"b":[1e999]}"#, r#"{"a":"-1e999","b":["1e999"]}"#),
            (r#"{"1e999":"1e999"}"#, r#"{"1e999":"1e999"}"#),
            (&format!("{{\"a\":{huge}}}"), &format!("{{\"a\":\"{huge}\"}}")),
            (&deep(90), &deep(90)),
            (&deep(91), NO_ARGUMENTS),
            ("[1]", NO_ARGUMENTS),
            ("\"{}\"", NO_ARGUMENTS),
            ("{\"a\":", NO_ARGUMENTS),
            ("{\"a\":\"\\ud8", NO_ARGUMENTS),
            ("{} trailing", NO_ARGUMENTS),
            ("{'a': 1}", NO_ARGUMENTS),
            ("{\"a\":NaN}", NO_ARGUMENTS),
            ("", NO_ARGUMENTS),
            ("null", NO_ARGUMENTS),
        ] {
            assert_eq!(arguments(written), sent, "{written}");
        }
    }

    #[test]
    fn ids_are_replaced_only_where_they_would_be_refused() {
        let long = format!("chatcmpl-tool-{}", "a".repeat(32));
        let sealed = format!("call_1__thought__{}", "A".repeat(200));
        for (ids, id, kept) in [
            (CallIds::Any, "functions.write_file:0", true),
            (CallIds::Any, "ünïcode 1", true),
            (CallIds::Any, &long, true),
            (CallIds::Any, &sealed, true),
            (CallIds::Any, &"x".repeat(65), false),
            (CallIds::Any, "a\nb", false),
            (CallIds::Any, " ", false),
            (CallIds::Short, &long, false),
            (CallIds::Short, "call_1", true),
            (CallIds::Nine, "call_1", false),
            (CallIds::Nine, "D681PevKs", true),
        ] {
            let written = ids.written(id);
            assert_eq!(written == id, kept, "{ids:?} {id:?}: {written}");
            assert_eq!(ids.written(&written), written, "{ids:?} {id:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_was_written_is_sent_as_a_name_and_an_object(
            made_up in "\\PC{0,80}|[a-z_.<|>-]{0,80}",
            written in "(?s).{0,40}|[{}\\[\\]\",:\\\\ud8-9e+.-]{0,40}",
        ) {
            let sent = name(&made_up);
            prop_assert!((1..=LONGEST_NAME).contains(&sent.len()));
            prop_assert!(sent.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{}", sent);
            prop_assert!(!sent.starts_with(|first: char| first.is_ascii_digit() || first == '-'), "{}", sent);
            prop_assert_eq!(name(&sent), sent.clone());
            let sent = arguments(&written);
            let read = serde_json::from_str::<Value>(&sent);
            prop_assert!(read.is_ok_and(|value| value.is_object()), "{}", sent);
            prop_assert_eq!(arguments(&sent), sent.clone());
        }
    }
}
