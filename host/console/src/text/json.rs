//! JSON for standard output. Characters that a terminal would obey or hide are written as `\u` escapes, which mean the same.

use hermes_protocol::characters::escaped_json;
use serde::Serialize;

/// A value as indented JSON with a line feed.
pub fn json(value: &impl Serialize) -> String {
    // A map with keys that are no strings is the only error; no value of these commands has one.
    let json = serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{:?}", error.to_string()));
    escaped(&json) + "\n"
}

/// A JSON text with escapes.
pub fn escaped(json: &str) -> String {
    escaped_json(json).into_owned()
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
    }
}
