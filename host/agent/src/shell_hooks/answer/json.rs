//! The output of a program as text, and the JSON objects in it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value that keeps members which an object names twice: the stricter of two answers counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Text(String),
    Number,
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// The objects of a text, and the text around them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// The objects that are inside no other, in their order.
    pub(super) objects: Vec<Vec<(String, Json)>>,
    /// The text around them.
    pub(super) around: String,
}

/// The text of an output, whichever of Unicode's forms a shell of Windows writes, without marks and colours.
pub(super) fn text_of(output: &[u8]) -> String {
    let text = match output {
        [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        // Without a mark, the zeros of ASCII characters tell the order of the bytes.
        [0, _, ..] if output.len().is_multiple_of(2) => utf_16(output, u16::from_be_bytes),
        [_, 0, ..] if output.len().is_multiple_of(2) => utf_16(output, u16::from_le_bytes),
        _ => String::from_utf8_lossy(output).into_owned(),
    };
    without_sequences(&text)
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16_lossy(&units)
}

/// The text without byte order marks and without the sequences that colour it on a terminal.
fn without_sequences(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().filter(|character| *character != '\u{feff}').peekable();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            kept.push(character);
        } else if characters.next_if_eq(&'[').is_some() {
            while characters.next().is_some_and(|next| !('@'..='~').contains(&next)) {}
        }
    }
    kept
}

/// Finds the objects of a text.
///
/// # Errors
///
/// With the fault of the first brace that begins no object.
pub(super) fn objects(text: &str) -> Result<Found, serde_json::Error> {
    let mut found = Found::default();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        found.around.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        if let Some(value) = values.next()
            && let Json::Object(members) = value?
        {
            found.objects.push(members);
        }
        // An object has two bytes or more.
        rest = &rest[values.byte_offset().max(1)..];
    }
    found.around.push_str(rest);
    Ok(found)
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_text_are_one_text() {
        let text = "{\"decision\": \"block\"}\r\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [
            text.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            [b"\xff\xfe", little.as_slice()].concat(),
            [b"\xfe\xff", big.as_slice()].concat(),
            little,
            big,
            format!("\u{1b}[32;1m{text}\u{1b}[0m").into_bytes(),
        ] {
            assert_eq!(text_of(&bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn objects_are_found_anywhere_in_a_text_with_members_that_come_twice() {
        let found = objects("a {\"x\": {\"y\": 1}, \"x\": null} b\n[{}, {\"z\": \"}\"}]").unwrap();
        let named: Vec<Vec<&str>> =
            found.objects.iter().map(|object| object.iter().map(|(name, _)| name.as_str()).collect()).collect();
        assert_eq!(named, [vec!["x", "x"], vec![], vec!["z"]]);
        assert_eq!(found.around, "a  b\n[, ]");
        for broken in ["{", "a {b} c", "{'decision': 'deny'}", "{} {\"a\": 1,}", &"{".repeat(1 << 20)] {
            assert!(objects(broken).is_err(), "{broken:.20}");
        }
    }
}
