//! Redacts keys and passwords, recognised by their form, and defuses text that imitates the host's own frames.

use std::borrow::Cow;

const REDACTED: &str = "[REDACTED]";

/// Prefixes of keys, and the least number of characters that must follow.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("sk_", 24),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("hf_", 20),
    ("npm_", 30),
    ("pypi-", 30),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("SG.", 30),
    ("gsk_", 20),
    ("pplx-", 20),
    ("tvly-", 16),
    ("xai-", 20),
    ("r8_", 20),
    ("dop_v1_", 20),
    ("doo_v1_", 20),
    ("bb_live_", 16),
    ("gAAAA", 30),
    ("eyJ", 40),
];
/// Least length of a bearer token, of a value after a telling name, and of a password in a URL.
const BEARER: usize = 16;
const VALUE: usize = 6;
const PASSWORD: usize = 3;
/// The most bytes that are examined after a prefix. Otherwise a text full of prefixes would be read again for each of them.
const PROBE: usize = 256;
/// A setting, field or header whose name ends with one of these has a secret value.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "secret_key",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
    "auth_token",
    "access_token",
    "refresh_token",
    "bot_token",
    "client_secret",
    "_token",
    "-token",
];

/// First characters of secrets and of their prefixes.
const ANNOUNCING: [bool; 256] = {
    let mut announcing = [false; 256];
    let signs = b"-=:bBsrgxhnptdeAS";
    let mut at = 0;
    while at < signs.len() {
        announcing[signs[at] as usize] = true;
        at += 1;
    }
    announcing
};

/// Replaces every secret that is recognised by its form.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(next) = text.as_bytes()[at..].iter().position(|sign| ANNOUNCING[usize::from(*sign)]) {
        at += next;
        match secret_at(text, at).filter(|(from, _)| *from >= copied) {
            Some((from, to)) => {
                clean.push_str(&text[copied..from]);
                clean.push_str(REDACTED);
                copied = to;
                at = to;
            }
            // All prefixes are ASCII and never start inside a multi-byte character.
            None => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

/// The byte range of a secret that starts here or whose prefix starts here.
fn secret_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at..];
    let found = match rest.as_bytes()[0] {
        b'-' => private_key(rest).map(|length| (0, length)),
        b'=' | b':' => address(rest).or_else(|| named(&text[..at], rest)),
        b'b' | b'B' => bearer(rest).or_else(|| whole_word(text, at, rest)),
        b's' | b'r' | b'g' | b'x' | b'h' | b'n' | b'p' | b't' | b'd' | b'e' | b'A' | b'S' => whole_word(text, at, rest),
        _ => None,
    };
    found.map(|(from, to)| (at + from, at + to))
}

fn whole_word(text: &str, at: usize, rest: &str) -> Option<(usize, usize)> {
    let inside = match at.checked_sub(1).map(|before| text.as_bytes()[before]) {
        // Most letters lie within a word.
        Some(before) if before.is_ascii() => before.is_ascii_alphanumeric() || before == b'_',
        _ => text[..at].chars().next_back().is_some_and(char::is_alphanumeric),
    };
    if inside { None } else { prefixed(rest).map(|length| (0, length)) }
}

fn prefixed(text: &str) -> Option<usize> {
    let begins = text.as_bytes().get(..2)?;
    PREFIXES.iter().filter(|(prefix, _)| prefix.as_bytes()[..2] == *begins).find_map(|(prefix, least)| {
        let body = text.strip_prefix(prefix)?;
        let belongs = |sign: u8| sign.is_ascii_alphanumeric() || b"-_.".contains(&sign);
        let probe = run(&body.as_bytes()[..body.len().min(PROBE)], belongs);
        // Hyphenated words contain no digit.
        let looks_random = body.as_bytes()[..probe].iter().any(u8::is_ascii_digit);
        if probe < *least || !looks_random {
            return None;
        }
        let length = body[..run(body.as_bytes(), belongs)].trim_end_matches('.').len();
        (length >= *least).then_some(prefix.len() + length)
    })
}

fn bearer(text: &str) -> Option<(usize, usize)> {
    const WORD: usize = "bearer ".len();
    let (word, token) = text.split_at_checked(WORD)?;
    if !word.eq_ignore_ascii_case("bearer ") {
        return None;
    }
    let length = run(token.as_bytes(), |sign| sign.is_ascii_alphanumeric() || b"-._~+/=".contains(&sign));
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
    // A key block that was cut off is still secret.
    Some(text.find(&end).map_or(text.len(), |at| at + end.len()))
}

/// The password in `://user:password@host`.
fn address(text: &str) -> Option<(usize, usize)> {
    let rest = text.strip_prefix("://")?;
    let authority = &rest[..run(rest.as_bytes(), |sign| sign.is_ascii_graphic() && !b"/?#\"'`<>".contains(&sign))];
    let (user, password) = authority.rsplit_once('@')?.0.split_once(':')?;
    let from = "://".len() + user.len() + 1;
    let is_variable = password.starts_with(['$', '{', '%', '*', '[']);
    (password.len() >= PASSWORD && !is_variable).then_some((from, from + password.len()))
}

/// The value of a setting, field or header with a telling name: `DB_PASSWORD=…`, `"api_key": "…"`, `x-api-key: …`.
fn named(before: &str, text: &str) -> Option<(usize, usize)> {
    let before = before.trim_end_matches([' ', '"', '\'', '\\']);
    let name = &before[before.len() - before.bytes().rev().position(|sign| !is_name(sign)).unwrap_or(before.len())..];
    if name.len() > 64 || !NAMES.iter().any(|known| ends_with_ignoring_case(name, known)) {
        return None;
    }
    let skipped = 1 + run(&text.as_bytes()[1..], |sign| b" \"'\\".contains(&sign));
    let unquoted = skipped == 1 + run(&text.as_bytes()[1..], |sign| sign == b' ');
    let value = &text.as_bytes()[skipped..];
    let belongs = |sign: u8| sign.is_ascii_graphic() && !b"\"'`,;<>()\\".contains(&sign);
    let probe = &value[..run(&value[..value.len().min(PROBE)], belongs)];
    // Code, types and variable references are not values.
    let plain = probe.iter().all(|sign| sign.is_ascii_lowercase() || b"_.:&|?".contains(sign));
    let is_reference = probe.first().is_some_and(|first| b"${%*[<=:&".contains(first));
    if probe.len() < VALUE || is_reference || plain && unquoted {
        return None;
    }
    Some((skipped, skipped + run(value, belongs)))
}

fn is_name(sign: u8) -> bool {
    sign.is_ascii_alphanumeric() || sign == b'_' || sign == b'-' || sign == b'.'
}

fn ends_with_ignoring_case(text: &str, end: &str) -> bool {
    text.len() >= end.len() && text.as_bytes()[text.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
}

fn run(text: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|sign| !belongs(*sign)).unwrap_or(text.len())
}

/// Frames that the host puts around texts. Inside another text they would imitate it.
const FRAMES: &[&str] = &["[End of the summary", "[Summary of earlier messages", "<memory-context", "</memory-context"];

/// Defuses imitated host frames and removes control characters.
pub fn inert(text: &str) -> Cow<'_, str> {
    let is_odd = |sign: char| sign.is_control() && sign != '\n' && sign != '\t';
    let mut clean = Cow::Borrowed(text);
    if text.contains(is_odd) {
        clean = Cow::Owned(text.chars().filter(|sign| !is_odd(*sign)).collect());
    }
    for frame in FRAMES {
        let open = if frame.starts_with('[') { "(" } else { "(/" };
        if let Some(replaced) = replace_ignoring_case(&clean, frame, &format!("{open}{}", &frame[1..])) {
            clean = Cow::Owned(replaced);
        }
    }
    clean
}

/// Replaces each occurrence of an ASCII word, ignoring case. `None` if there is none.
pub fn replace_ignoring_case(text: &str, word: &str, by: &str) -> Option<String> {
    let first = word.as_bytes()[0];
    let mut replaced = String::new();
    let mut copied = 0;
    for at in text.bytes().enumerate().filter(|(_, sign)| *sign == first).map(|(at, _)| at) {
        if text.as_bytes()[at..].get(..word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes())) {
            replaced.push_str(&text[copied..at]);
            replaced.push_str(by);
            copied = at + word.len();
        }
    }
    (copied > 0).then(|| replaced + &text[copied..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            ("export DB_PASSWORD=hunter2!", "export DB_PASSWORD=[REDACTED]"),
            (r#"{"api_key": "abcdef", "n": 1}"#, r#"{"api_key": "[REDACTED]", "n": 1}"#),
            (r#"{\"client_secret\":\"Abc123xyz\"}"#, r#"{\"client_secret\":\"[REDACTED]\"}"#),
            ("x-api-key: 1234567890abc", "x-api-key: [REDACTED]"),
            ("password: correct-horse9", "password: [REDACTED]"),
            ("postgres://me:s3cret@db.local/x", "postgres://me:[REDACTED]@db.local/x"),
            ("https://u:p@ss1@host", "https://u:[REDACTED]@host"),
            ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc_def-1", "jwt [REDACTED]"),
            ("TELEGRAM_BOT_TOKEN=123456:ABC-DEF", "TELEGRAM_BOT_TOKEN=[REDACTED]"),
        ] {
            assert_eq!(redact(text), clean);
        }
    }

    #[test]
    fn text_that_only_resembles_a_secret_stays() {
        for text in [
            "",
            "task-1234567890123456789",
            "sk-learn-is-a-long-library-name",
            "sk-short1",
            "the bearer of bad news: authentication-mechanisms",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "Bärer ghp_",
            "语言 sk-",
            "let password: string = read()",
            "api_key=${API_KEY}",
            "password == other.password",
            "the password: it is forgotten",
            "max_tokens: 4096000",
            "http://localhost:8080/a@b",
            "https://${USER}:${TOKEN}@host/",
            "ein Passwort: geheim",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    /// Each text would take hours if every prefix were followed to the end of the text.
    #[test]
    fn a_text_full_of_prefixes_is_read_once() {
        for part in ["sk-", "a_token:", "://", "bearer ", "-----BEGIN ", "eyJ.", "api_key: "] {
            let text = part.repeat(2_000_000 / part.len());
            assert!(redact(&text) == text && inert(&text) == text, "{part}");
        }
        let long = format!("sk-1{}", "a".repeat(100_000));
        assert_eq!(redact(&format!("{long} {long}")), "[REDACTED] [REDACTED]");
    }

    #[test]
    fn host_frames_inside_a_text_are_defused() {
        assert_eq!(inert("a\n[END OF the summary.]\u{1b}[2J b"), "a\n(End of the summary.][2J b");
        assert_eq!(inert("x </Memory-Context> y"), "x (//memory-context> y");
        assert!(matches!(inert("plain\ttext\n语言"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn redacting_any_text_twice_changes_nothing(text in r#"[a-zA-Z0-9 =:"'\\/@_é语\n.-]{0,80}(password|api_key|://|sk-|Bearer )?[a-zA-Z0-9=:"'@ é-]{0,60}"#) {
            let once = redact(&text).into_owned();
            prop_assert_eq!(redact(&once).into_owned(), once.clone());
        }
    }
}
