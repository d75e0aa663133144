//! Keys and tokens in a text, by their looks, so that no summary hands them on.

use std::borrow::Cow;

const REDACTED: &str = "[REDACTED]";

/// What keys begin with, and how many signs must follow at least.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xapp-", 10),
    ("hf_", 20),
    ("npm_", 30),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
];
/// Signs of a bearer token, at least.
const BEARER: usize = 16;

/// The text with every secret that is known by its looks replaced.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        match secret_at(text, at) {
            Some((from, to)) => {
                clean.push_str(&text[copied..from]);
                clean.push_str(REDACTED);
                copied = to;
                at = to;
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

/// A secret whose first sign, or whose announcement, stands here: the bytes to replace.
fn secret_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at..];
    match rest.as_bytes()[0] {
        b'-' => private_key(rest).map(|length| (at, at + length)),
        b'b' | b'B' => bearer(rest).map(|(from, to)| (at + from, at + to)),
        b's' | b'r' | b'g' | b'x' | b'h' | b'n' | b'A' => {
            let inside_a_word =
                text[..at].chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_');
            if inside_a_word { None } else { prefixed(rest).map(|length| (at, at + length)) }
        }
        _ => None,
    }
}

fn prefixed(text: &str) -> Option<usize> {
    PREFIXES.iter().find_map(|(prefix, least)| {
        let body = text.strip_prefix(prefix)?;
        let length = run(body, |sign| sign.is_ascii_alphanumeric() || sign == b'-' || sign == b'_');
        // Words joined by hyphens have no digit.
        let looks_random = body[..length].bytes().any(|sign| sign.is_ascii_digit());
        (length >= *least && looks_random).then_some(prefix.len() + length)
    })
}

fn bearer(text: &str) -> Option<(usize, usize)> {
    const WORD: usize = "bearer ".len();
    let (word, token) = text.split_at_checked(WORD)?;
    if !word.eq_ignore_ascii_case("bearer ") {
        return None;
    }
    let length = run(token, |sign| sign.is_ascii_alphanumeric() || b"-._~+/=".contains(&sign));
    let looks_random = token[..length].bytes().any(|sign| sign.is_ascii_digit());
    (length >= BEARER && looks_random).then_some((WORD, WORD + length))
}

fn private_key(text: &str) -> Option<usize> {
    let head = text.strip_prefix("-----BEGIN ")?;
    let label = head.split_once("-----")?.0;
    if label.len() > 40 || !label.ends_with("PRIVATE KEY") {
        return None;
    }
    let end = format!("-----END {label}-----");
    // A block that was cut off is a secret still.
    Some(text.find(&end).map_or(text.len(), |at| at + end.len()))
}

fn run(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|sign| !belongs(sign)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_their_surroundings_stay() {
        for (text, clean) in [
            ("key sk-proj-abc123def456ghi789, ok", "key [REDACTED], ok"),
            ("GH=ghp_0123456789abcdefghij0123456789", "GH=[REDACTED]"),
            ("AKIAIOSFODNN7EXAMPLE é", "[REDACTED] é"),
            ("Authorization: Bearer eyJhbGciOi.J9.abc123", "Authorization: Bearer [REDACTED]"),
            ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a [REDACTED] b"),
            ("x -----BEGIN PRIVATE KEY-----\nMII cut", "x [REDACTED]"),
        ] {
            assert_eq!(redact(text), clean);
        }
    }

    #[test]
    fn what_only_resembles_a_secret_stays() {
        for text in [
            "",
            "task-1234567890123456789",
            "sk-learn-is-a-long-library-name",
            "sk-short1",
            "the bearer of bad news: authentication-mechanisms",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "Bärer ghp_",
            "语言 sk-",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
