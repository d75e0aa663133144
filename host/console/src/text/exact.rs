//! Foreign text in names, commands and consent: everything that a terminal would not show is written as an escape.
//!
//! A text here decides what a user agrees to. So nothing in it may look blank, hide or reorder other characters, or look
//! like a line of Hermes. Replies and files keep the joiners of emoji and scripts; they are not cleaned here.

use std::iter::Peekable;
use std::str::Chars;

use hermes_protocol::characters::{self, looks_blank};

/// Whether a terminal shows nothing for a character, or changes what it shows of others: control and format characters,
/// bidirectional marks, tags, spaces other than the usual one, fillers, and code points without a character.
pub fn is_deceptive(character: char) -> bool {
    // Behind another character, Rust escapes exactly what is not printable: the categories C and Z without the space.
    let is_unprintable = || ['a', character].iter().collect::<String>().escape_debug().nth(2).is_some();
    match character {
        ' '..='~' => false,
        // Blanks and stand-ins that Unicode counts among letters and symbols.
        '\u{fffc}' | '\u{13441}' | '\u{13442}' | '\u{1bc9d}' => true,
        _ => looks_blank(character) || is_unprintable(),
    }
}

/// Most marks on one letter. Scripts need up to three; more would cover the lines above and below.
const MOST_MARKS: usize = 3;

/// A mark that is drawn on the letter before it.
fn is_mark(character: char) -> bool {
    !character.is_ascii() && !is_deceptive(character) && character.escape_debug().nth(1).is_some()
}

/// A text on one line that shows every character: invisible ones as `\u{2800}`, with a count after a run of them. White
/// space of ASCII becomes single spaces.
pub fn exact(text: &str) -> String {
    let text = text.trim_matches(|character: char| character.is_ascii_whitespace());
    shown(text, |rest| while rest.next_if(char::is_ascii_whitespace).is_some() {})
}

/// The lines of a text, shown like [`exact`] but with their spaces. A tab becomes four.
pub fn exact_lines(text: &str) -> Vec<String> {
    text.lines().map(|line| shown(&line.replace('\t', "    "), |_| {})).collect()
}

/// Shows every character of a line of a file as [`exact`] does, a carriage return included.
pub fn exact_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\t' => shown.push_str("    "),
            '\r' => shown.push_str("\\r"),
            odd if is_deceptive(odd) => characters::escape(odd, &mut shown),
            plain => shown.push(plain),
        }
    }
    shown
}

type Rest<'a> = Peekable<Chars<'a>>;

/// Shows every character. `skip` is called behind each white space of ASCII, which becomes a space.
fn shown(text: &str, skip: impl Fn(&mut Rest<'_>)) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut marks = MOST_MARKS;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character.is_ascii_whitespace() {
            skip(&mut rest);
            shown.push(' ');
            marks = MOST_MARKS;
            continue;
        }
        let on_letter = is_mark(character);
        marks = if on_letter { marks + 1 } else { 0 };
        let is_one_of_many = on_letter && marks > MOST_MARKS;
        if !is_deceptive(character) && !is_one_of_many {
            shown.push(character);
            continue;
        }
        let mut count = 1usize;
        while rest.next_if_eq(&character).is_some() {
            count += 1;
        }
        shown.extend(character.escape_unicode());
        match count {
            1 => {}
            2 => shown.extend(character.escape_unicode()),
            _ => shown.push_str(&format!("×{count}")),
        }
    }
    shown
}

/// At most `most` characters of [`exact`], and the number of the others.
pub fn exact_within(text: &str, most: usize) -> String {
    let text = exact(text);
    match text.char_indices().nth(most) {
        None => text,
        Some((at, _)) => {
            let left_out = text[at..].chars().count() as u64;
            format!("{} … and {}", &text[..at], super::counted(left_out, "more character"))
        }
    }
}

#[cfg(test)]
mod attack {
    use super::*;

    #[test]
    fn nothing_invisible_reaches_a_name_or_a_question() {
        for (text, shown) in [
            ("plain text, ümläut, 漢字, 🙂", "plain text, ümläut, 漢字, 🙂"),
            ("  a\r\n\t b ", "a b"),
            ("Good\u{2800}tool", "Good\\u{2800}tool"),
            (&format!("x{}signed by", "\u{2800}".repeat(57)), "x\\u{2800}×57signed by"),
            ("a\u{3164}\u{3164}b", "a\\u{3164}\\u{3164}b"),
            ("a\u{200b}b\u{feff}c\u{2060}d", "a\\u{200b}b\\u{feff}c\\u{2060}d"),
            ("a\u{202e}gnp.exe", "a\\u{202e}gnp.exe"),
            ("\u{2066}a\u{2069}\u{200e}\u{200f}\u{61c}", "\\u{2066}a\\u{2069}\\u{200e}\\u{200f}\\u{61c}"),
            ("a\u{9b}2Jb", "a\\u{9b}2Jb"),
            ("a\u{1b}[2Jb\u{7}", "a\\u{1b}[2Jb\\u{7}"),
            ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
            ("a\u{a0}b\u{2003}c\u{3000}d\u{1680}e", "a\\u{a0}b\\u{2003}c\\u{3000}d\\u{1680}e"),
            ("a\u{2028}b\u{2029}c\u{85}d", "a\\u{2028}b\\u{2029}c\\u{85}d"),
            ("\u{115f}\u{1160}\u{ffa0}", "\\u{115f}\\u{1160}\\u{ffa0}"),
            ("👩\u{200d}💻 \u{2764}\u{fe0f}", "👩\\u{200d}💻 \u{2764}\\u{fe0f}"),
            ("\u{e000}\u{10ffff}", "\\u{e000}\\u{10ffff}"),
            ("a\u{ad}b\u{34f}c\u{180e}d", "a\\u{ad}b\\u{34f}c\\u{180e}d"),
        ] {
            assert_eq!(exact(text), shown, "{text:?}");
        }
    }

    #[test]
    fn marks_stay_on_their_letter_and_do_not_cover_other_lines() {
        assert_eq!(exact("re\u{301}sume\u{301} नमस्ते ที่นี่"), "re\u{301}sume\u{301} नमस्ते ที่นี่");
        assert_eq!(exact("\u{301}a"), "\\u{301}a");
        let tower = format!("a{}", "\u{301}".repeat(100));
        assert_eq!(exact(&tower), "a\u{301}\u{301}\u{301}\\u{301}×97");
    }

    #[test]
    fn lines_keep_their_spaces_and_show_every_selector() {
        let text = "  - a\u{e0120}b\r\n\n\tc\u{200b}  d\u{b}e";
        assert_eq!(exact_lines(text), ["  - a\\u{e0120}b", "", "    c\\u{200b}  d\\u{b}e"]);
    }

    #[test]
    fn a_line_of_a_file_shows_every_character() {
        let hidden = "if a:\tb\u{1b}[2K\u{1b}[1Gx\ry\u{200b}\u{202e}z\u{a0}";
        assert_eq!(exact_line(hidden), r"if a:    b\u{1b}[2K\u{1b}[1Gx\ry\u{200b}\u{202e}z\u{a0}");
    }

    #[test]
    fn every_character_has_a_visible_shape_afterwards() {
        for character in '\0'..=char::MAX {
            let shown = exact(&format!("a{character}b"));
            assert!(!shown.chars().any(is_deceptive), "{character:?}");
            assert!(shown.chars().count() >= 3 && shown.starts_with('a') && shown.ends_with('b'), "{character:?}");
        }
    }

    #[test]
    fn a_long_text_ends_with_the_number_of_the_rest() {
        assert_eq!(exact_within("abc", 3), "abc");
        assert_eq!(exact_within("abcd", 3), "abc … and 1 more character");
        let long = exact_within(&"word ".repeat(1_000), 20);
        assert_eq!(long, "word word word word  … and 4,979 more characters");
    }
}
