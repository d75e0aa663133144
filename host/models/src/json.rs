//! JSON as servers of models write it. Flaws that a strict parser refuses are mended first, if they have only one meaning: halves
//! of characters, control characters in texts, and numbers that JSON does not have.
//!
//! Servers cut a text between two tokens. That can split a character outside of the basic plane, so that its two `\u` escapes are
//! in two events. [`join`] puts such halves together; a half without a partner becomes U+FFFD.

use std::ops::Range;

use serde_json::Value;

/// A piece of a text that is not valid JSON, and what is written in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Flaw {
    place: Range<usize>,
    mended: String,
    half: Option<Half>,
}

/// An escape of one half of a character.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Half {
    unit: u16,
    /// The key before the text that it is in.
    key: Range<usize>,
    /// Whether the half is at an edge of its text, so that the other half can be in a neighbouring event.
    is_open: bool,
}

impl Half {
    fn is_first(&self) -> bool {
        (0xD800..0xDC00).contains(&self.unit)
    }
}

/// A text that is JSON once its flaws are mended.
#[derive(Debug, Clone)]
pub(crate) struct Flawed {
    text: String,
    flaws: Vec<Flaw>,
}

/// Puts U+FFFD where a half of a character was.
const REPLACED: &str = "\\ufffd";

/// Parses JSON, mended where it has to be.
pub(crate) fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|error| {
        let flawed = std::str::from_utf8(text).ok().and_then(|text| Flawed::new(text.to_owned()));
        flawed.and_then(|flawed| flawed.parse().ok()).ok_or(error)
    })
}

/// The arguments of a call that are a JSON object once they are mended; none where they are one or cannot become one.
pub(crate) fn mended_object(text: &str) -> Option<String> {
    if !text.trim_start().starts_with('{') || serde_json::from_str::<Value>(text).is_ok() {
        return None;
    }
    let mut flawed = Flawed::new(text.to_owned())?;
    // A number that JSON does not have may mean something to the tool: the model has to write it again.
    flawed.flaws.retain(|flaw| flaw.mended != "null");
    let mended = flawed.mended();
    serde_json::from_str::<Value>(&mended).is_ok().then_some(mended)
}

impl Flawed {
    /// None for a text without a flaw of the kinds that are mended.
    pub(crate) fn new(text: String) -> Option<Self> {
        let flaws = flaws(&text);
        (!flaws.is_empty()).then_some(Self { text, flaws })
    }

    /// Whether a text ends with the first half of a character, whose other half the next event may bring.
    pub(crate) fn is_open(&self) -> bool {
        self.flaws.iter().filter_map(|flaw| flaw.half.as_ref()).any(|half| half.is_open && half.is_first())
    }

    fn mended(&self) -> String {
        let (mut mended, mut at) = (String::with_capacity(self.text.len()), 0);
        for flaw in &self.flaws {
            mended.push_str(&self.text[at..flaw.place.start]);
            mended.push_str(&flaw.mended);
            at = flaw.place.end;
        }
        mended + &self.text[at..]
    }

    pub(crate) fn parse(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(&self.mended())
    }
}

/// Joins the halves of characters that two events share: each second half takes the first open half before it under the same key.
pub(crate) fn join(before: &mut Flawed, after: &mut Flawed) {
    for second in &mut after.flaws {
        let Some(half) = second.half.as_mut().filter(|half| half.is_open && !half.is_first()) else { continue };
        let key = &after.text[half.key.clone()];
        let first = before.flaws.iter_mut().find(|first| {
            first
                .half
                .as_ref()
                .is_some_and(|first| first.is_open && first.is_first() && before.text[first.key.clone()] == *key)
        });
        let Some(first) = first else { continue };
        let Some(unit) = first.half.as_mut().map(|first| {
            first.is_open = false;
            first.unit
        }) else {
            continue;
        };
        half.is_open = false;
        first.mended.clear();
        second.mended = format!("\\u{unit:04x}\\u{:04x}", half.unit);
    }
}

fn flaws(text: &str) -> Vec<Flaw> {
    let bytes = text.as_bytes();
    let mut flaws = Vec::new();
    let mut key = 0..0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let start = at + 1;
                let end = string(bytes, start, &key, &mut flaws);
                let behind = bytes[end.min(bytes.len())..].iter().skip(1).find(|byte| !byte.is_ascii_whitespace());
                if behind == Some(&b':') {
                    key = start..end;
                }
                at = end + 1;
            }
            b'N' | b'I' | b'-' => {
                let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| text[at..].starts_with(word));
                let length = word.map_or(1, str::len);
                if word.is_some() {
                    flaws.push(Flaw { place: at..at + length, mended: "null".to_owned(), half: None });
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    flaws
}

/// Finds the flaws of a text that begins at `start`, and its end.
fn string(bytes: &[u8], start: usize, key: &Range<usize>, flaws: &mut Vec<Flaw>) -> usize {
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at,
            b'\\' => match unit(bytes, at) {
                Some(0xD800..0xDC00) if matches!(unit(bytes, at + 6), Some(0xDC00..0xE000)) => at += 12,
                Some(half @ 0xD800..0xE000) => {
                    let is_first = half < 0xDC00;
                    let is_open = if is_first { bytes.get(at + 6) == Some(&b'"') } else { at == start };
                    let half = Some(Half { unit: half, key: key.clone(), is_open });
                    flaws.push(Flaw { place: at..at + 6, mended: REPLACED.to_owned(), half });
                    at += 6;
                }
                _ => at += 2,
            },
            control @ 0..0x20 => {
                flaws.push(Flaw { place: at..at + 1, mended: format!("\\u{control:04x}"), half: None });
                at += 1;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The code unit of an escape `\uXXXX` at this place.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_wherever_they_are() {
        for (text, value) in [
            (r#"{"a":"x\ud83dy"}"#, json!({"a": "x\u{fffd}y"})),
            (r#"{"a":"\ude80","b":["\uD83D"]}"#, json!({"a": "\u{fffd}", "b": ["\u{fffd}"]})),
            (r#"{"a":"\ud83d\ude80\ud83d"}"#, json!({"a": "🚀\u{fffd}"})),
            (r#"{"a":"\ud83d\ud83d\ude80"}"#, json!({"a": "\u{fffd}🚀"})),
            (r#"{"\ud83d":1}"#, json!({"\u{fffd}": 1})),
            // An escaped backslash before `u` is no escape of a character.
            (r#"{"a":"\\ud83d\ud83d"}"#, json!({"a": "\\ud83d\u{fffd}"})),
            ("{\"a\":\"x\ny\t\"}", json!({"a": "x\ny\t"})),
            (r#"{"a":NaN,"b":-Infinity,"c":"NaN","d":-1}"#, json!({"a": null, "b": null, "c": "NaN", "d": -1})),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), value, "{text}");
        }
        for broken in [r#"{"a":"\ud83d"#, r#"{"a":"\ud8"}"#, r#"{"a":}"#, "NaNa", ""] {
            assert!(parse(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn halves_in_two_texts_are_joined_by_their_key() {
        let joined = |before: &str, after: &str| {
            let mut before = Flawed::new(before.to_owned()).unwrap();
            let mut after = Flawed::new(after.to_owned()).unwrap();
            assert!(before.is_open());
            join(&mut before, &mut after);
            (before.parse().unwrap(), after.parse().unwrap())
        };
        assert_eq!(
            joined(r#"{"c":"go \ud83d","t":"\ud83d"}"#, r#"{"t":"\ude80","c":"\ude80 now"}"#),
            (json!({"c": "go ", "t": ""}), json!({"t": "🚀", "c": "🚀 now"}))
        );
        assert_eq!(
            joined(r#"{"c":"go \ud83d"}"#, r#"{"other":"\ude80","c":" \ude80"}"#),
            (json!({"c": "go \u{fffd}"}), json!({"other": "\u{fffd}", "c": " \u{fffd}"}))
        );
    }

    #[test]
    fn arguments_are_mended_where_their_meaning_is_certain() {
        assert_eq!(mended_object(r#"{"a":"ok \ud99c end"}"#).unwrap(), r#"{"a":"ok \ufffd end"}"#);
        assert_eq!(mended_object("{\"a\":\"x\ny\"}").unwrap(), r#"{"a":"x\u000ay"}"#);
        for left in [r#"{"a":1}"#, r#"{"a":NaN}"#, r#"{"a":"#, r#""\ud83d""#, "", r#"{"a":1}{"b":2}"#] {
            assert_eq!(mended_object(left), None, "{left}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_good_json_is_never_changed(text in "[\\\\u\"d8DcC0a:{}\\[\\],NaInfity\n-]{0,40}", good in ".{0,20}") {
            let _ = parse(text.as_bytes());
            let _ = mended_object(&text);
            let good = json!({ "a": good, "b": [good] });
            prop_assert_eq!(parse(good.to_string().as_bytes()).unwrap(), good);
        }
    }
}
