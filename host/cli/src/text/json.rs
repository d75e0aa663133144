//! JSON for standard output. Characters that a terminal would obey or hide are written as `\u` escapes, which mean the same.

use std::io::{self, Write};

use serde::Serialize;

use super::characters::looks_blank;

/// A value as indented JSON with a line feed.
pub(crate) fn json(value: &impl Serialize) -> String {
    // A map with keys that are no strings is the only error; no value of these commands has one.
    let json = serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{:?}", error.to_string()));
    escaped(&json) + "\n"
}

/// A JSON text with escapes. Outside of strings JSON has only ASCII characters, so every odd character is in a string.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\n' | '\r' | '\t' => text.push(character),
            _ if character.is_control() || looks_blank(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => text.push(character),
        }
    }
    text
}

/// Escapes a JSON text that is written in pieces.
pub(crate) struct EscapedJson<W> {
    out: W,
    /// The first bytes of a character whose other bytes have not arrived.
    begun: Vec<u8>,
}

impl<W: Write> EscapedJson<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }
}

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&all) {
            Ok(_) => all.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        };
        self.begun = all.split_off(valid);
        let text = std::str::from_utf8(&all).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.out.write_all(escaped(text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json as value};

    use super::*;

    #[test]
    fn ordinary_text_is_not_escaped() {
        assert_eq!(json(&value!({"a": "äöü 漢字 🙂\n"})), "{\n  \"a\": \"äöü 漢字 🙂\\n\"\n}\n");
    }

    mod attack {
        use super::*;

        const ODD: &str =
            "\u{202e}a\u{9b}2J\u{85}\u{7f}\u{1b}]0;t\u{7}\u{e0041}\u{200b}\u{2800}\u{3164}\u{2028}\u{feff}";

        #[test]
        fn odd_characters_are_escaped_in_keys_and_values_and_keep_their_meaning() {
            let text = json(&value!({ODD: [ODD]}));
            assert!(text.chars().all(|character| character == '\n' || (' '..='~').contains(&character)), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value!({ODD: [ODD]}));
            assert!(text.contains(r"\u202ea\u009b2J\u0085\u007f") && text.contains(r"\udb40\udc41"), "{text}");
        }

        #[test]
        fn a_text_in_pieces_is_escaped_like_a_whole_one() {
            let whole = serde_json::to_string(ODD).unwrap();
            for cut in 0..=whole.len() {
                let mut out = EscapedJson::new(Vec::new());
                out.write_all(&whole.as_bytes()[..cut]).unwrap();
                out.write_all(&whole.as_bytes()[cut..]).unwrap();
                assert_eq!(out.out, escaped(&whole).into_bytes(), "cut at {cut}");
            }
            assert!(EscapedJson::new(Vec::new()).write_all(b"\"\xff\"").is_err());
        }
    }
}
