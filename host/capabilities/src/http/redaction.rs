//! Finds the values of secrets in answers of servers, in the encodings that servers use to quote a request.
//!
//! This protects against honest servers. A malicious server can disguise a secret in unlimited ways.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::secret::{REDACTED, Secret};

/// Most values at a time. Of the values that a plugin stored, the oldest are forgotten first.
const MOST_VALUES: usize = 64;

/// Finds and removes secrets. Clones share the values, so that all learn of a new one.
#[derive(Clone, Default)]
pub struct Redaction {
    known: Arc<RwLock<Arc<Known>>>,
    /// The values that a plugin does not replace.
    fixed: usize,
    /// Whether values can be added.
    grows: bool,
}

/// The values of secrets, in all their forms.
#[derive(Default)]
struct Known {
    values: Vec<String>,
    forms: Vec<Vec<Sign>>,
    /// For each byte, whether an encoded secret can begin with it. This alone skips most bytes of an answer.
    begins: Vec<bool>,
}

/// A unit of an encoded secret. [`Sign::lengths`] matches its spellings.
#[derive(Clone, Copy)]
enum Sign {
    /// A byte: plain, in another case, or escaped as in URLs, JSON or HTML.
    Byte(u8),
    /// A base64 digit, possibly after a line break as in mails.
    Digit(u8),
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The forms contain the secrets.
        write!(f, "Redaction({} values)", self.known().values.len())
    }
}

impl Redaction {
    /// The redaction of these secrets.
    pub fn of(secrets: &[Secret]) -> Self {
        let given: Vec<String> = secrets.iter().filter_map(Secret::given).collect();
        let fixed = given.len();
        let known = Arc::new(RwLock::new(Arc::new(Known::of(given))));
        let redaction = Self { known, fixed, grows: secrets.iter().any(Secret::may_change) };
        secrets.iter().filter_map(|secret| secret.value().ok()).for_each(|value| redaction.add(&value));
        redaction
    }

    /// Adds a value. The values before stay: answers may still quote them.
    pub(super) fn add(&self, value: &str) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.values.iter().any(|own| own == value) {
            return;
        }
        let mut values = known.values.clone();
        if values.len() >= MOST_VALUES.max(self.fixed + 1) {
            values.remove(self.fixed);
        }
        values.push(value.to_owned());
        *known = Arc::new(Known::of(values));
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are no secrets to find, and never will be.
    pub fn is_idle(&self) -> bool {
        !self.grows && self.known().forms.is_empty()
    }

    /// Whether a text contains one of them.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        self.known().finds(bytes)
    }

    /// The bytes with `[REDACTED]` in place of each secret.
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let known = self.known();
        if !known.finds(&bytes) {
            return bytes;
        }
        let mut kept = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            if let Some(length) = known.length(&bytes[at..]) {
                kept.extend_from_slice(REDACTED.as_bytes());
                at += length;
            } else {
                kept.push(bytes[at]);
                at += 1;
            }
        }
        kept
    }

    /// Like [`Redaction::bytes`], for a text.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes().to_vec())).into_owned()
    }
}

impl Known {
    fn of(values: Vec<String>) -> Self {
        let forms: Vec<Vec<Sign>> = values.iter().flat_map(|value| forms(value)).collect();
        let begins = |byte| forms.iter().filter_map(|form| form.first()).any(|sign| sign.begins(byte));
        let begins = (0..=u8::MAX).map(begins).collect();
        Self { values, forms, begins }
    }

    fn finds(&self, bytes: &[u8]) -> bool {
        !self.forms.is_empty() && (0..bytes.len()).any(|at| self.length(&bytes[at..]).is_some())
    }

    /// The length of the longest encoded secret at the beginning of the bytes.
    fn length(&self, bytes: &[u8]) -> Option<usize> {
        let first = usize::from(*bytes.first()?);
        if !self.begins[first] {
            return None;
        }
        self.forms.iter().filter_map(|form| length(form, bytes)).max()
    }
}

/// A match of this many bytes at the beginning of a secret counts as the secret. So a comparison that fails has read little, even
/// if a plugin chooses the secret and the text to make it slow.
const ENOUGH: usize = 64;

/// The most bytes at the beginning that spell a form, or [`ENOUGH`] of it. A sign may have several spellings, and only the
/// following bytes decide between them.
fn length(form: &[Sign], bytes: &[u8]) -> Option<usize> {
    if !form.first()?.begins(*bytes.first()?) {
        return None;
    }
    let mut ends = vec![0];
    for (matched, sign) in form.iter().enumerate() {
        let mut next = Vec::new();
        for end in &ends {
            sign.lengths(&bytes[*end..], &mut |length| {
                if !next.contains(&(*end + length)) {
                    next.push(*end + length);
                }
            });
        }
        if next.is_empty() && matched < ENOUGH {
            return None;
        }
        if next.is_empty() {
            break;
        }
        ends = next;
    }
    ends.into_iter().max()
}

impl Sign {
    /// Whether a spelling can begin with the byte.
    fn begins(self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => {
                byte.eq_ignore_ascii_case(&own) || b"%\\&".contains(&byte) || (own, byte) == (b' ', b'+')
            }
            Self::Digit(own) => b"-_\r\n".contains(&byte) || Self::Byte(own).begins(byte),
        }
    }

    /// Reports the length of each spelling at the beginning of the bytes.
    fn lengths(self, bytes: &[u8], found: &mut dyn FnMut(usize)) {
        match self {
            Self::Byte(byte) => escaped(byte, bytes, found),
            Self::Digit(digit) => {
                let blank = breaks(bytes);
                let bytes = &bytes[blank..];
                match (digit, bytes.first()) {
                    (b'+', Some(b'-')) | (b'/', Some(b'_')) => found(blank + 1),
                    _ => escaped(digit, bytes, &mut |length| found(blank + length)),
                }
            }
        }
    }
}

/// Matches a byte, plain or escaped.
fn escaped(byte: u8, bytes: &[u8], found: &mut dyn FnMut(usize)) {
    let Some(first) = bytes.first() else { return };
    if first.eq_ignore_ascii_case(&byte) || (*first == b'+' && byte == b' ') {
        found(1);
    }
    match first {
        b'%' => in_an_address(byte, bytes, found),
        b'\\' => in_json(byte, bytes, found),
        b'&' => in_html(byte, bytes, found),
        _ => {}
    }
}

/// The number of bytes of a line break, plain or escaped as in JSON.
fn breaks(bytes: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..2 {
        at += match &bytes[at..] {
            [b'\r' | b'\n', ..] => 1,
            [b'\\', b'r' | b'n', ..] => 2,
            _ => break,
        };
    }
    at
}

/// Parses two hexadecimal digits.
fn pair(bytes: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(bytes.get(..2)?).ok()?;
    u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

/// `%2f`, and `%252f` if it was encoded again.
fn in_an_address(byte: u8, bytes: &[u8], found: &mut dyn FnMut(usize)) {
    let mut at = 1;
    for _ in 0..4 {
        if pair(&bytes[at..]) == Some(byte) {
            found(at + 2);
        }
        if !bytes[at..].starts_with(b"25") {
            return;
        }
        at += 2;
    }
}

/// Matches `\/`, `\u002f` and `\x2f`.
fn in_json(byte: u8, bytes: &[u8], found: &mut dyn FnMut(usize)) {
    match &bytes[1..] {
        [b'u', b'0', b'0', rest @ ..] if pair(rest) == Some(byte) => found(6),
        [b'x', rest @ ..] if pair(rest) == Some(byte) => found(4),
        [same, ..] if *same == byte && byte.is_ascii_punctuation() => found(2),
        _ => {}
    }
}

/// Matches `&amp;`, `&#38;` and `&#x26;`.
fn in_html(byte: u8, bytes: &[u8], found: &mut dyn FnMut(usize)) {
    const LONGEST: usize = 12;
    let Some(end) = bytes.iter().take(LONGEST).position(|byte| *byte == b';') else { return };
    let Ok(name) = std::str::from_utf8(&bytes[1..end]) else { return };
    let number = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        },
        None => match name {
            "amp" => Some(38),
            "lt" => Some(60),
            "gt" => Some(62),
            "quot" => Some(34),
            "apos" => Some(39),
            _ => None,
        },
    };
    if number == Some(u32::from(byte)) {
        found(end + 1);
    }
}

/// The value in plain bytes, in hexadecimal digits, and in base64 at any position within the encoded bytes.
fn forms(value: &str) -> Vec<Vec<Sign>> {
    let bytes = value.as_bytes();
    let hexadecimal = bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes());
    let mut forms = vec![bytes.iter().copied().map(Sign::Byte).collect(), hexadecimal.map(Sign::Byte).collect()];
    forms.extend((0..3).map(|before| base64(bytes, before)));
    forms
}

/// The base64 digits of the value after `before` other bytes, without the digits that share bits with its neighbours.
fn base64(bytes: &[u8], before: usize) -> Vec<Sign> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |index: usize| usize::from(bytes[index / 8] >> (7 - index % 8) & 1);
    // The first digit that belongs to the value alone.
    let first = (6 - before * 8 % 6) % 6;
    let starts = (first..).step_by(6).take_while(|start| start + 6 <= bytes.len() * 8);
    starts.map(|start| Sign::Digit(ALPHABET[(start..start + 6).fold(0, |sum, index| sum << 1 | bit(index))])).collect()
}

#[cfg(test)]
#[path = "redaction_tests.rs"]
mod tests;
