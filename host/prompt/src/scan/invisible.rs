//! Characters that a reader cannot see but a model can.
//!
//! Legitimate uses pass: joiners inside emoji and after letters of scripts that join, the tags of a flag after its emoji, and one
//! variation selector after a character. Every other use is a match.

use std::collections::BTreeSet;

use icu_properties::props::{BinaryProperty, EmojiModifier, EnumeratedProperty, ExtendedPictographic, Script};

/// The id used in reports.
pub(super) fn id(character: char) -> String {
    format!("invisible_unicode_U+{:04X}", u32::from(character))
}

/// The invisible characters that have no legitimate use at their position.
pub(super) fn characters(text: &str) -> BTreeSet<char> {
    let mut found = BTreeSet::new();
    if text.is_ascii() {
        return found;
    }
    let mut before = None;
    let mut in_flag = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        in_flag = character == '\u{1f3f4}' || (in_flag && is_tag(character));
        let hit = match character {
            '\u{200b}' | '\u{200c}' => !before.is_some_and(joins),
            '\u{200d}' => {
                let in_emoji = before.is_some_and(is_emoji)
                    && characters.peek().is_some_and(|next| ExtendedPictographic::for_char(*next));
                !in_emoji && !before.is_some_and(joins)
            }
            '\u{2060}' | '\u{2062}'..='\u{2064}' | '\u{feff}' => true,
            // Changes the display order of the text.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
            // An invisible copy of ASCII.
            '\u{e0000}'..='\u{e007f}' => !in_flag,
            // One selector chooses a glyph; several in a row can only hide text.
            '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => before.is_some_and(is_selector),
            _ => false,
        };
        if hit {
            found.insert(character);
        }
        before = Some(character);
    }
    found
}

fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0020}'..='\u{e007f}')
}

fn is_selector(character: char) -> bool {
    matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_emoji(character: char) -> bool {
    character == '\u{fe0f}' || EmojiModifier::for_char(character) || ExtendedPictographic::for_char(character)
}

/// Whether the letter belongs to a script whose spelling uses joiners and zero-width breaks: the Arabic family, and scripts of
/// India and South-East Asia. In other scripts they only split words.
fn joins(character: char) -> bool {
    let plain = [
        Script::Common,
        Script::Inherited,
        Script::Unknown,
        Script::Latin,
        Script::Greek,
        Script::Cyrillic,
        Script::Armenian,
        Script::Georgian,
        Script::Hebrew,
        Script::Han,
        Script::Hiragana,
        Script::Katakana,
        Script::Hangul,
        Script::Bopomofo,
    ];
    !plain.contains(&Script::for_char(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        characters(text).into_iter().map(id).collect()
    }

    #[test]
    fn legitimate_uses_pass() {
        let texts = [
            "family \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}, dark \u{1f469}\u{1f3ff}\u{200d}\u{1f52c}, \u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "Persian می\u{200c}خواهم, Hindi क्\u{200d}ष, Malayalam ന്\u{200d}, Thai ก\u{200b}ข",
            "England \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "葛\u{e0100} keycap 1\u{fe0f}\u{20e3}",
            "right-to-left \u{200f} and soft\u{ad}hyphen",
        ];
        for text in texts {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn hidden_characters_are_named() {
        let cases = [
            ("a\u{200d}b", "invisible_unicode_U+200D"),
            ("\u{1f468}\u{200d}b", "invisible_unicode_U+200D"),
            ("می\u{200c}\u{200c}", "invisible_unicode_U+200C"),
            ("i\u{200b}gnore", "invisible_unicode_U+200B"),
            ("\u{202e}txt.exe", "invisible_unicode_U+202E"),
            ("x\u{e0069}\u{e0067}", "invisible_unicode_U+E0067,invisible_unicode_U+E0069"),
            ("\u{1f3f4}x\u{e0067}", "invisible_unicode_U+E0067"),
            ("x\u{fe00}\u{fe01}", "invisible_unicode_U+FE01"),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text).join(","), expected, "{text:?}");
        }
    }
}
