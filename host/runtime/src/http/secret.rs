//! Secrets that the host puts into requests, and what is done about answers that quote them.

use std::fmt;

use regex::bytes::{NoExpand, Regex, RegexBuilder};

use super::site::Site;

/// Shorter values cannot be told from other text, and so could not be kept out of answers.
const SHORTEST: usize = 8;
/// Longer ones fit no server's headers.
const LONGEST: usize = 4 << 10;
/// What stands where a secret was.
pub(crate) const REDACTED: &str = "[REDACTED]";

/// A secret for one audience.
#[derive(Clone)]
pub struct Secret {
    /// What the plugin calls it.
    pub name: String,
    /// The variable that holds it, for messages.
    pub variable: String,
    /// Who gets to see it.
    pub audience: Site,
    value: Result<String, &'static str>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} for {}, {:?})", self.name, self.audience, self.value.as_ref().map(|_| REDACTED))
    }
}

impl Secret {
    /// A secret with what its variable holds.
    pub fn new(name: String, variable: String, audience: Site, value: Option<String>) -> Self {
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let value = match value {
            None => Err("is not set"),
            Some(value) if value.len() < SHORTEST => {
                Err("has fewer than 8 characters, too few to keep it out of answers")
            }
            Some(value) if value.len() > LONGEST => Err("has more than 4096 characters"),
            Some(value) if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => {
                Err("has characters that no header can carry")
            }
            Some(value) => Ok(value),
        };
        Self { name, variable, audience, value }
    }

    /// The value, or why there is none that could be sent.
    pub(super) fn value(&self) -> Result<&str, &'static str> {
        self.value.as_deref().map_err(|why| *why)
    }
}

/// Finds the values of secrets, in the forms in which servers quote what they were sent.
#[derive(Clone, Default)]
pub struct Redaction(Option<Regex>);

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pattern is the secret.
        f.write_str(if self.0.is_some() { "Redaction" } else { "Redaction(nothing)" })
    }
}

impl Redaction {
    /// Of all these secrets.
    pub fn of(secrets: &[Secret]) -> Self {
        let patterns: Vec<String> =
            secrets.iter().filter_map(|secret| secret.value().ok()).flat_map(patterns).collect();
        if patterns.is_empty() {
            return Self(None);
        }
        let regex =
            RegexBuilder::new(&patterns.join("|")).unicode(false).case_insensitive(true).size_limit(64 << 20).build();
        // Escaped byte by byte, and bounded by the length of a value.
        Self(Some(regex.expect("the pattern of a secret is well formed")))
    }

    /// Whether there is anything to find.
    pub fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Whether one of them stands in it.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(bytes))
    }

    /// The bytes with `[REDACTED]` where one of them stood.
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match &self.0 {
            Some(regex) if regex.is_match(&bytes) => {
                regex.replace_all(&bytes, NoExpand(REDACTED.as_bytes())).into_owned()
            }
            _ => bytes,
        }
    }

    /// As [`Redaction::bytes`], for a text.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes().to_vec())).into_owned()
    }
}

/// The value with each byte as it is or escaped as addresses, JSON and HTML do; in hexadecimal digits; and in base64,
/// wherever in the encoded bytes it stands.
fn patterns(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let escaped: String = bytes.iter().map(|byte| escapes(*byte)).collect();
    let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut patterns = vec![escaped, hexadecimal];
    patterns.extend((0..3).map(|before| base64(bytes, before)));
    patterns
}

fn escapes(byte: u8) -> String {
    let plain = format!("\\x{byte:02x}");
    let named = match byte {
        b' ' => "|\\+",
        b'&' => "|&amp;",
        b'<' => "|&lt;",
        b'>' => "|&gt;",
        b'"' => "|&quot;|\\\\\"",
        b'\'' => "|&apos;",
        b'\\' => "|\\\\\\\\",
        b'/' => "|\\\\/",
        _ => "",
    };
    format!(
        "(?:{plain}|%(?:25){{0,3}}{byte:02x}|\\\\u00{byte:02x}|\\\\x{byte:02x}|&#0{{0,5}}{byte};|&#x0{{0,5}}{byte:02x};{named})"
    )
}

/// What base64 makes of the value with so many bytes before it, less the characters that share bits with what stands
/// around it. With lines broken as in mails, and the two last characters of either alphabet.
fn base64(bytes: &[u8], before: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const BREAK: &str = r"(?:\r|\n|\\r|\\n){0,2}";
    let bit = |index: usize| usize::from(bytes[index / 8] >> (7 - index % 8) & 1);
    // The first character that is wholly the value's own.
    let first = (6 - before * 8 % 6) % 6;
    let starts = (first..).step_by(6).take_while(|start| start + 6 <= bytes.len() * 8);
    let characters = starts.map(|start| ALPHABET[(start..start + 6).fold(0, |sum, index| sum << 1 | bit(index))]);
    let patterns: Vec<String> = characters
        .map(|character| match character {
            b'+' => r"(?:[+\-]|%2b|\\u002b)".to_owned(),
            b'/' => r"(?:[/_]|%2f|\\/)".to_owned(),
            other => char::from(other).to_string(),
        })
        .collect();
    patterns.join(BREAK)
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
