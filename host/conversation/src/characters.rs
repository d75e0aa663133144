//! Characters that a terminal does not show as they are: they reorder a line, hide text, or look like a blank.

use std::borrow::Cow;

/// Whether the character changes the order in which a line is displayed (Unicode's property `Bidi_Control`).
pub fn is_reordering(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether the character is an invisible copy of an ASCII character.
pub fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0000}'..='\u{e007f}')
}

/// Whether the character is usually not displayed (Unicode's property `Default_Ignorable_Code_Point`).
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the character looks like one or more spaces, but is not the space.
pub fn looks_blank(character: char) -> bool {
    let is_odd = matches!(character, '\u{2800}' | '\u{fff9}'..='\u{fffb}' | '\u{1d159}' | '\u{16fe4}');
    is_odd || (character.is_whitespace() && character != ' ') || is_invisible(character)
}

/// JSON text in which `\u` escapes, which mean the same, replace the characters that a terminal would obey, reorder or hide.
/// Outside of strings JSON has only ASCII characters, so every odd character is in a string.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_odd = |character: char| match character {
        '\n' | '\r' | '\t' => false,
        _ => character.is_control() || looks_blank(character),
    };
    if !json.chars().any(is_odd) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_odd(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

/// Appends the character as `\u{202e}`.
pub fn escape(character: char, text: &mut String) {
    text.extend(character.escape_unicode());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_emoji_are_ordinary() {
        for character in "aß漢ا\u{1f642}\u{1f3f4}\u{301}-\u{2014} ".chars() {
            assert!(!is_reordering(character) && !is_invisible(character) && !looks_blank(character), "{character:?}");
        }
    }

    #[test]
    fn every_reordering_character_and_tag_is_invisible() {
        let all = (0..=0x0010_ffff).filter_map(char::from_u32);
        for character in all.filter(|character| is_reordering(*character) || is_tag(*character)) {
            assert!(is_invisible(character) && looks_blank(character), "{character:?}");
        }
    }

    #[test]
    fn json_without_odd_characters_is_not_copied() {
        assert!(matches!(escaped_json("{\n\t\"a\": \"ä 🙂\"}"), Cow::Borrowed(_)));
    }
}
