//! Texts on one line, for messages, tables and lists.

/// A text on one line: each run of white space and control characters becomes one space.
pub fn one_line(text: &str) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The same with at most `most` bytes, and `…` after them if the text was cut.
pub fn one_line_within(text: &str, most: usize) -> String {
    let mut line = one_line(text);
    if line.len() > most {
        line.truncate(line.floor_char_boundary(most));
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_control_characters_become_single_spaces() {
        assert_eq!(one_line("  a\r\n\tb \u{1b}[1m\u{85}c\u{a0}d "), "a b [1m c d");
        assert_eq!(one_line("\n \t"), "");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        assert_eq!(one_line_within("äöü ß", 9), "äöü ß");
        assert_eq!(one_line_within("äöü ß", 3), "ä…");
        assert_eq!(one_line_within("a\n\n\nb", 3), "a b");
    }
}
