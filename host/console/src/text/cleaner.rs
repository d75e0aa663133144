//! Cleans foreign text for a terminal: characters that control the terminal, reorder a line or carry hidden text are shown as
//! `\u{1b}`, so that a reader sees everything that is there. Joiners and variation selectors stay, because emoji and many
//! scripts need them. The output of programs loses its colours instead.

use hermes_protocol::characters::{self, is_reordering, is_tag};

/// How a carriage return is shown.
const RETURN: &str = "\\r";

/// The start of a flag such as that of Wales, which is written with tag characters.
const BLACK_FLAG: char = '\u{1f3f4}';
/// Ends the tags of a flag.
const CANCEL_TAG: char = '\u{e007f}';
/// The most tags of a flag before the last one: a code such as `gbwls`, with one to spare.
const MOST_TAGS: u8 = 6;

/// Cleans a text that arrives in pieces. Line feeds and tabs stay; a carriage return before a line feed belongs to it.
#[derive(Default)]
pub struct Cleaner {
    /// How many tags may still follow, inside a flag.
    tags: u8,
    /// Whether the last character was a carriage return, which is not shown yet.
    has_return: bool,
}

impl Cleaner {
    /// Cleans the next piece.
    pub fn clean(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for character in piece.chars() {
            let belongs_to_flag = self.belongs_to_flag(character);
            if std::mem::take(&mut self.has_return) && character != '\n' {
                shown.push_str(RETURN);
            }
            match character {
                '\r' => self.has_return = true,
                '\n' | '\t' => shown.push(character),
                _ if character.is_control() || is_reordering(character) || (is_tag(character) && !belongs_to_flag) => {
                    characters::escape(character, &mut shown);
                }
                plain => shown.push(plain),
            }
        }
        shown
    }

    /// Cleans a whole text.
    pub fn whole(text: &str) -> String {
        Self::default().last(text)
    }

    /// Cleans the last piece.
    fn last(mut self, piece: &str) -> String {
        let mut shown = self.clean(piece);
        if self.has_return {
            shown.push_str(RETURN);
        }
        shown
    }

    /// Cleans a whole text in which sequences for colours stay as `kept` says.
    fn with_colours(text: &str, kept: impl Fn(&str) -> Colours) -> String {
        let (mut cleaner, mut shown, mut rest) = (Self::default(), String::with_capacity(text.len()), text);
        while let Some(at) = rest.find('\u{1b}') {
            shown.push_str(&cleaner.clean(&rest[..at]));
            let sequence = colours(&rest[at..]).unwrap_or("\u{1b}");
            match kept(sequence) {
                _ if sequence.len() == 1 => shown.push_str(&cleaner.clean(sequence)),
                Colours::Kept => shown.push_str(sequence),
                Colours::Dropped => {}
                Colours::Shown => shown.push_str(&cleaner.clean(sequence)),
            }
            rest = &rest[at + sequence.len()..];
        }
        shown + &cleaner.last(rest)
    }

    /// The last check before a terminal: the colours of Hermes itself stay.
    pub fn but_own_colours(text: &str) -> String {
        const OWN: [&str; 5] = ["\u{1b}[0m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
        Self::with_colours(text, |sequence| if OWN.contains(&sequence) { Colours::Kept } else { Colours::Shown })
    }

    /// Cleans the output of a program, without its colours.
    pub fn output(text: &str) -> String {
        Self::with_colours(text, |_| Colours::Dropped)
    }

    /// Whether the character is a tag inside a flag.
    fn belongs_to_flag(&mut self, character: char) -> bool {
        match character {
            BLACK_FLAG => self.tags = MOST_TAGS + 1,
            CANCEL_TAG => return std::mem::take(&mut self.tags) > 0,
            '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}' if self.tags > 1 => {
                self.tags -= 1;
                return true;
            }
            _ => self.tags = 0,
        }
        false
    }
}

/// What becomes of a sequence for colours.
enum Colours {
    Kept,
    Dropped,
    /// It is shown like other foreign sequences.
    Shown,
}

/// The sequence at the begin of a text, if it only chooses colours and other styles.
fn colours(text: &str) -> Option<&str> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find(|character: char| !character.is_ascii_digit() && !";:".contains(character))?;
    codes[end..].starts_with('m').then(|| &text[..text.len() - codes.len() + end + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Cleaner::whole(text)
    }

    /// They disappeared, and what they hid in a file or a reply was not seen.
    #[test]
    fn escape_sequences_and_control_characters_are_shown() {
        for (text, shown) in [
            ("plain\ttext\r\nnext", "plain\ttext\nnext"),
            ("a\u{1b}[31mred\u{1b}[0m", r"a\u{1b}[31mred\u{1b}[0m"),
            ("a\u{1b}]0;title\u{7}b", r"a\u{1b}]0;title\u{7}b"),
            ("over\rwritten\u{8}\u{0}\u{7f}\r", r"over\rwritten\u{8}\u{0}\u{7f}\r"),
            ("a\r\rb\r\n", "a\\r\\rb\n"),
            ("\u{1b}]0;never closed\nstill seen", "\\u{1b}]0;never closed\nstill seen"),
            ("äöü 漢字 🙂", "äöü 漢字 🙂"),
        ] {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_text_in_two_pieces_is_cleaned_like_a_whole_one() {
        let text = "a\u{1b}[1;31mb\u{1b}]0;t\u{1b}\\c\rd\r\ne";
        for (cut, _) in text.char_indices() {
            let mut cleaner = Cleaner::default();
            let shown = cleaner.clean(&text[..cut]) + &cleaner.clean(&text[cut..]);
            assert_eq!(shown, clean(text), "cut at {cut}");
        }
    }

    #[test]
    fn the_output_of_a_program_loses_its_colours_and_nothing_else() {
        for (text, shown) in [
            ("\u{1b}[1;31merror\u{1b}[0m: \u{1b}[38:2:1:2:3mx\u{1b}[m", "error: x"),
            ("a\u{1b}[8mb\u{1b}[2Kc\u{1b}[", r"ab\u{1b}[2Kc\u{1b}["),
            ("a\u{1b}[?25lb\u{1b}", r"a\u{1b}[?25lb\u{1b}"),
            ("a\r\u{1b}[0mb\r", r"a\rb\r"),
        ] {
            assert_eq!(Cleaner::output(text), shown, "{text:?}");
        }
    }

    #[test]
    fn joiners_selectors_and_flags_stay() {
        for text in [
            "family \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "heart \u{2764}\u{fe0f}\u{200d}\u{1f525}, keycap 1\u{fe0f}\u{20e3}",
            "Persian می\u{200c}خواهم, Hindi क्\u{200d}ष, 葛\u{e0100}",
            "Wales \u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}, England \
             \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "soft\u{ad}hyphen and zero\u{200b}width",
        ] {
            assert_eq!(clean(text), text);
            let mut cleaner = Cleaner::default();
            assert_eq!(text.chars().map(|one| cleaner.clean(&one.to_string())).collect::<String>(), text);
        }
    }

    #[test]
    fn only_the_colours_of_hermes_pass_the_last_check() {
        let own = "\u{1b}[31mred\u{1b}[0m \u{1b}[2mfaint\u{1b}[0m\n";
        assert_eq!(Cleaner::but_own_colours(own), own);
        for foreign in ["\u{1b}[8m", "\u{1b}[31;8m", "\u{1b}[?31m", "\u{1b}[2J", "\u{1b}]0;t\u{7}", "\u{1b}[31 m", "\r"]
        {
            let shown = Cleaner::but_own_colours(&format!("a{foreign}b"));
            assert_eq!(shown, clean(&format!("a{foreign}b")), "{foreign:?}");
            assert!(!shown.contains(char::is_control), "{shown:?}");
        }
    }

    mod attack {
        use super::*;

        #[test]
        fn reordering_c1_and_tag_characters_become_visible() {
            for (text, shown) in [
                ("\u{202e}txt.exe", r"\u{202e}txt.exe"),
                ("a\u{2066}b\u{2069}c", r"a\u{2066}b\u{2069}c"),
                ("\u{200f}\u{200e}\u{61c}", r"\u{200f}\u{200e}\u{61c}"),
                ("a\u{9b}2Jb", r"a\u{9b}2Jb"),
                ("a\u{9d}52;c;eA==\u{9c}b", r"a\u{9d}52;c;eA==\u{9c}b"),
                ("a\u{1b}Pq#0\u{9c}b", r"a\u{1b}Pq#0\u{9c}b"),
                ("a\u{85}b", r"a\u{85}b"),
                ("x\u{e0069}\u{e0067}", r"x\u{e0069}\u{e0067}"),
                ("\u{e0001}x\u{e007f}", r"\u{e0001}x\u{e007f}"),
            ] {
                assert_eq!(clean(text), shown, "{text:?}");
            }
        }

        /// A terminal that counts what it obeys.
        #[derive(Default)]
        struct Obeyed(usize);

        impl vte::Perform for Obeyed {
            fn execute(&mut self, byte: u8) {
                self.0 += usize::from(!matches!(byte, b'\n' | b'\t'));
            }
            fn csi_dispatch(&mut self, _: &vte::Params, _: &[u8], _: bool, _: char) {
                self.0 += 1;
            }
            fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
                self.0 += 1;
            }
            fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
                self.0 += 1;
            }
            fn hook(&mut self, _: &vte::Params, _: &[u8], _: bool, _: char) {
                self.0 += 1;
            }
        }

        #[test]
        fn a_terminal_obeys_nothing_of_a_cleaned_text() {
            let parts = ["\u{1b}", "[", "]0;", "P", "2", ";", "m", "J", "\u{9b}", "\u{7}", "\r", "\u{1b}\\", "\u{8}"];
            for first in parts {
                for second in parts {
                    for third in parts {
                        let text = format!("a{first}{second}{third}\u{1b}[31mb\u{1b}[2Jc");
                        for shown in [Cleaner::whole(&text), Cleaner::output(&text)] {
                            let mut obeyed = Obeyed::default();
                            vte::Parser::new().advance(&mut obeyed, shown.as_bytes());
                            assert_eq!(obeyed.0, 0, "{text:?}");
                        }
                    }
                }
            }
        }

        #[test]
        fn a_flag_carries_no_hidden_text() {
            let hidden = "\u{e0068}\u{e0069}".repeat(10);
            let shown = clean(&format!("\u{1f3f4}{hidden}\u{e007f}"));
            assert_eq!(shown.chars().filter(|character| is_tag(*character)).count(), usize::from(MOST_TAGS), "{shown}");
            assert_eq!(clean("\u{1f3f4}a\u{e0068}"), "\u{1f3f4}a\\u{e0068}");
            assert_eq!(clean("\u{1f3f4}\u{e0041}"), "\u{1f3f4}\\u{e0041}");
        }
    }
}
