//! Recognises how a text file is encoded, and decodes it. The host searches files with it, and the bundled file tools show and change
//! files with it, so that both see the same text.
//!
//! UTF-8 and UTF-16 have rules that other encodings break, so they are recognised for certain. Everything else is a guess by the
//! frequency of letters (`chardetng`), and [`Charset::admits`] says which characters may be added in spite of that.
//!
//! ```
//! use hermes_charset::{Charset, detect};
//!
//! let found = detect(b"\xff\xfeo\0k\0", true).unwrap();
//! assert_eq!((found.charset, found.mark), (Charset::Utf16Le, 2));
//! assert_eq!(found.charset.decode(b"o\0k\0"), "ok");
//! ```

mod admission;
mod stream;

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE};

pub use admission::Refused;
pub use stream::Stream;

/// How a text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8 throughout.
    Utf8,
    /// UTF-8 but for a few bytes.
    Mixed,
    /// UTF-16, the low byte first.
    Utf16Le,
    /// UTF-16, the high byte first.
    Utf16Be,
    /// An older encoding, which was guessed. The whole text is valid in it.
    Legacy(&'static Encoding),
    /// A text whose encoding cannot be told. It decodes as UTF-8, with a replacement character for bytes that are not.
    Unknown,
}

/// What [`detect`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// How the bytes after the mark are encoded.
    pub charset: Charset,
    /// The length of the byte order mark in bytes; 0 without one.
    pub mark: usize,
}

/// Why bytes are not a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoText {
    /// There are NUL bytes, and the text is not UTF-16.
    Binary,
    /// The mark of UTF-32, which nothing here decodes.
    Utf32,
}

/// The most bytes whose letters are counted.
const SAMPLE: usize = 256 << 10;

/// Recognises the encoding of a text from its beginning. `whole` says whether the bytes are all of it.
///
/// # Errors
///
/// [`NoText`] if the bytes are not a text.
pub fn detect(bytes: &[u8], whole: bool) -> Result<Found, NoText> {
    let found = |charset, mark| Ok(Found { charset, mark });
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => return Err(NoText::Utf32),
        [0xff, 0xfe, text @ ..] if !has_nul_unit(text) => return found(Charset::Utf16Le, 2),
        [0xfe, 0xff, text @ ..] if !has_nul_unit(text) => return found(Charset::Utf16Be, 2),
        _ => {}
    }
    if bytes.contains(&0) {
        return unmarked_utf16(bytes, whole).map_or(Err(NoText::Binary), |charset| found(charset, 0));
    }
    match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(text) if is_utf8(text, whole) => found(Charset::Utf8, 3),
        Some(_) => found(Charset::Mixed, 3),
        None => found(without_nul(bytes, whole), 0),
    }
}

fn has_nul_unit(text: &[u8]) -> bool {
    text.chunks_exact(2).any(|unit| unit == [0, 0])
}

fn is_utf8(bytes: &[u8], whole: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => !whole && error.error_len().is_none(),
    }
}

/// UTF-16 without a mark: valid, without control characters, and with more ASCII in one order of the bytes than in the other.
fn unmarked_utf16(bytes: &[u8], whole: bool) -> Option<Charset> {
    if whole && !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units = |charset: Charset| bytes.chunks_exact(2).map(move |unit| charset.unit(unit));
    let ascii = |charset| units(charset).filter(|unit| matches!(unit, 0x09 | 0x0a | 0x0d | 0x20..0x7f)).count();
    let (little, big) = (ascii(Charset::Utf16Le), ascii(Charset::Utf16Be));
    let charset = if little > big { Charset::Utf16Le } else { Charset::Utf16Be };
    let mut text = char::decode_utf16(units(charset)).peekable();
    while let Some(letter) = text.next() {
        let is_text = match letter {
            Ok(letter) => !is_odd_control(letter) && !matches!(letter, '\u{fffe}' | '\u{ffff}'),
            // Half a character at the end of a part.
            Err(_) => !whole && text.peek().is_none(),
        };
        if !is_text {
            return None;
        }
    }
    // Two characters at least, because `a\0` alone is as well a text of C.
    (little.abs_diff(big) >= 2).then_some(charset)
}

/// A control character that texts do not have.
fn is_odd_control(letter: char) -> bool {
    matches!(letter, '\0'..='\u{7}' | '\u{e}'..='\u{19}' | '\u{1c}'..='\u{1f}' | '\u{7f}')
}

fn without_nul(bytes: &[u8], whole: bool) -> Charset {
    if is_utf8(bytes, whole) {
        // Its bytes are ASCII, so that they are valid UTF-8, too.
        let is_iso_2022 = bytes.contains(&0x1b) && bytes.is_ascii() && {
            let (text, failed) = decoded(ISO_2022_JP, bytes, whole);
            !failed && !text.is_ascii()
        };
        return if is_iso_2022 { Charset::Legacy(ISO_2022_JP) } else { Charset::Utf8 };
    }
    // In another encoding, few bytes happen to be valid UTF-8.
    let (mut valid, mut invalid) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| !byte.is_ascii()).count();
        invalid += chunk.invalid().len();
    }
    if valid >= 8 * invalid {
        return Charset::Mixed;
    }
    if valid > invalid || bytes.iter().any(|byte| is_odd_control(char::from(*byte))) {
        return Charset::Unknown;
    }
    let guess = guess(bytes, whole);
    match decoded(guess, bytes, whole).1 {
        false => Charset::Legacy(guess),
        true => Charset::Unknown,
    }
}

/// The guess goes by the lines from the first that is not ASCII on, since a long head of code says nothing.
fn guess(bytes: &[u8], whole: bool) -> &'static Encoding {
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let start = bytes[..first].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // A very long line begins with its last words before the first letter.
    let start = start.max(first.saturating_sub(SAMPLE / 2));
    let sample = &bytes[start..bytes.len().min(start + SAMPLE)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, whole && start + sample.len() == bytes.len());
    detector.guess(None, Utf8Detection::Deny)
}

/// The text, and whether bytes of it are invalid. Only a whole text must not end amid a character.
fn decoded<'t>(encoding: &'static Encoding, bytes: &'t [u8], whole: bool) -> (Cow<'t, str>, bool) {
    if whole {
        let (text, failed) = encoding.decode_without_bom_handling(bytes);
        return (text, failed);
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
    let (_, _, failed) = decoder.decode_to_string(bytes, &mut text, false);
    (text.into(), failed)
}

impl Charset {
    /// The name to show, such as `Shift_JIS`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 | Self::Mixed => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Legacy(encoding) => encoding.name(),
            Self::Unknown => "an unknown encoding",
        }
    }

    /// Whether it was recognised by the frequency of letters, which can be wrong. Say so wherever you name it.
    pub fn is_guess(self) -> bool {
        matches!(self, Self::Legacy(_)) && !self.is_stateful()
    }

    /// The name in a sentence, such as `is probably in Shift_JIS`.
    pub fn is_in(self) -> String {
        format!("is {}in {}", if self.is_guess() { "probably " } else { "" }, self.name())
    }

    /// Whether a text in it is stored as UTF-8, but perhaps for some bytes.
    pub fn is_stored_as_utf8(self) -> bool {
        matches!(self, Self::Utf8 | Self::Mixed | Self::Unknown)
    }

    /// Whether what a character becomes depends on the characters before it.
    pub fn is_stateful(self) -> bool {
        self == Self::Legacy(ISO_2022_JP)
    }

    /// The text of bytes without their mark. Every part that is invalid becomes U+FFFD.
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Utf8 | Self::Mixed | Self::Unknown => String::from_utf8_lossy(bytes),
            Self::Utf16Le => UTF_16LE.decode_without_bom_handling(bytes).0,
            Self::Utf16Be => UTF_16BE.decode_without_bom_handling(bytes).0,
            Self::Legacy(encoding) => encoding.decode_without_bom_handling(bytes).0,
        }
    }

    /// The bytes of a text. `None` if a character has none.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Utf8 | Self::Mixed | Self::Unknown => Some(text.as_bytes().to_vec()),
            Self::Utf16Le => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Legacy(encoding) if self.is_stateful() => {
                let (bytes, _, failed) = encoding.encode(text);
                (!failed).then(|| bytes.into_owned())
            }
            Self::Legacy(encoding) => legacy_bytes(encoding, text),
        }
    }

    /// The byte order mark of the encoding; empty for one that has none.
    pub fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 | Self::Mixed | Self::Unknown => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
            Self::Legacy(_) => b"",
        }
    }

    /// A code unit of UTF-16.
    fn unit(self, bytes: &[u8]) -> u16 {
        let bytes = [bytes[0], bytes[1]];
        if self == Self::Utf16Le { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    /// Where in `bytes` each of these places of the decoded `text` is. The places are in ascending order.
    ///
    /// `None` if a place is inside a group of characters that the bytes encode together.
    pub fn places(self, bytes: &[u8], text: &str, places: &[usize]) -> Option<Vec<usize>> {
        match self {
            Self::Utf8 => Some(places.to_vec()),
            Self::Utf16Le | Self::Utf16Be => {
                let (mut in_text, mut in_bytes) = (0, 0);
                let mut place = |at: usize| {
                    in_bytes += 2 * text[in_text..at].encode_utf16().count();
                    in_text = at;
                    // Half a unit can be left at the end.
                    if at == text.len() { bytes.len() } else { in_bytes }
                };
                Some(places.iter().map(|at| place(*at)).collect())
            }
            Self::Mixed | Self::Unknown => {
                let mut found = Vec::with_capacity(places.len());
                let mut wanted = places.iter().copied().peekable();
                let (mut in_text, mut in_bytes) = (0, 0);
                for chunk in bytes.utf8_chunks() {
                    let valid = chunk.valid().len();
                    while let Some(at) = wanted.next_if(|at| *at <= in_text + valid) {
                        found.push(in_bytes + at.checked_sub(in_text)?);
                    }
                    in_text += valid + char::REPLACEMENT_CHARACTER.len_utf8();
                    in_bytes += valid + chunk.invalid().len();
                }
                // Behind invalid bytes at the end.
                found.extend(wanted.map(|_| bytes.len()));
                Some(found)
            }
            Self::Legacy(encoding) => legacy_places(encoding, bytes, text, places),
        }
    }
}

/// The places in bytes that are valid in an encoding without state.
fn legacy_places(encoding: &'static Encoding, bytes: &[u8], text: &str, places: &[usize]) -> Option<Vec<usize>> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let (mut in_text, mut in_bytes, mut buffer) = (0, 0, [0; 16]);
    let mut found = Vec::with_capacity(places.len());
    for at in places {
        // Whole lines are skipped: no character has a line feed in it.
        if let Some(length) = text[in_text..*at].rfind('\n').map(|end| end + 1) {
            for _ in text[in_text..in_text + length].matches('\n') {
                in_bytes += bytes[in_bytes..].iter().position(|byte| *byte == b'\n')? + 1;
            }
            in_text += length;
            decoder = encoding.new_decoder_without_bom_handling();
        }
        while in_text < *at {
            let byte = bytes.get(in_bytes)?;
            in_text += decoder.decode_to_utf8_without_replacement(&[*byte], &mut buffer, false).2;
            in_bytes += 1;
        }
        if in_text != *at {
            return None;
        }
        found.push(in_bytes);
    }
    Some(found)
}

/// The bytes of a text in an encoding without state. Looking a character up takes long where an encoding has many, so each is
/// looked up once.
fn legacy_bytes(encoding: &'static Encoding, text: &str) -> Option<Vec<u8>> {
    let mut known: HashMap<char, Vec<u8>> = HashMap::new();
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() {
            bytes.push(letter as u8);
            continue;
        }
        let own = match known.entry(letter) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(admission::bytes_of(encoding, letter)?),
        };
        bytes.extend_from_slice(own);
    }
    Some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
