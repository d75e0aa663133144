//! Cleans foreign text for a terminal: escape sequences are removed, and characters that control the terminal, reorder a
//! line or carry hidden text are shown as `\u{202e}`. Joiners and variation selectors stay, because emoji and many
//! scripts need them.

use hermes_conversation::characters::{self, is_reordering, is_tag};

/// The start of a flag such as that of Wales, which is written with tag characters.
const BLACK_FLAG: char = '\u{1f3f4}';
/// Ends the tags of a flag.
const CANCEL_TAG: char = '\u{e007f}';
/// The most tags of a flag before the last one: a code such as `gbwls`, with one to spare.
const MOST_TAGS: u8 = 6;

/// Cleans a text that arrives in pieces. Line feeds and tabs stay.
#[derive(Default)]
pub(crate) struct Cleaner {
    parser: vte::Parser,
    /// How many tags may still follow, inside a flag.
    tags: u8,
    keeps_colours: bool,
}

impl Cleaner {
    /// A cleaner that keeps the colours of Hermes itself: the last check before a terminal.
    pub(crate) fn keeping_colours() -> Self {
        Self { keeps_colours: true, ..Self::default() }
    }

    /// Cleans the next piece.
    pub(crate) fn clean(&mut self, piece: &str) -> String {
        let mut shown = Shown { text: String::with_capacity(piece.len()), keeps_colours: self.keeps_colours };
        for character in piece.chars() {
            let belongs_to_flag = self.belongs_to_flag(character);
            if character == '\n' {
                // A line feed ends an unfinished sequence. Otherwise one character could hide everything after it.
                self.parser = vte::Parser::default();
                shown.text.push('\n');
            } else if is_c1(character) || is_reordering(character) || (is_tag(character) && !belongs_to_flag) {
                self.parser = vte::Parser::default();
                characters::escape(character, &mut shown.text);
            } else {
                self.parser.advance(&mut shown, character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        shown.text
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

fn is_c1(character: char) -> bool {
    matches!(character, '\u{80}'..='\u{9f}')
}

/// Collects what the parser prints. All other actions of a terminal are ignored.
struct Shown {
    text: String,
    keeps_colours: bool,
}

impl vte::Perform for Shown {
    fn print(&mut self, character: char) {
        if !character.is_control() {
            self.text.push(character);
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte == b'\t' {
            self.text.push('\t');
        }
    }

    fn csi_dispatch(&mut self, parameters: &vte::Params, intermediates: &[u8], ignored: bool, action: char) {
        if !self.keeps_colours || ignored || action != 'm' || !intermediates.is_empty() {
            return;
        }
        let mut parameters = parameters.iter();
        if let (Some([code @ (0 | 2 | 31 | 32 | 33)]), None) = (parameters.next(), parameters.next()) {
            self.text.push_str(&format!("\u{1b}[{code}m"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Cleaner::default().clean(text)
    }

    #[test]
    fn escape_sequences_and_control_characters_are_removed() {
        for (text, shown) in [
            ("plain\ttext\nnext", "plain\ttext\nnext"),
            ("a\u{1b}[31mred\u{1b}[0m", "ared"),
            ("a\u{1b}]0;title\u{7}b", "ab"),
            ("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb"),
            ("over\rwritten\u{8}\u{0}\u{7f}", "overwritten"),
            ("a\u{1b}(Bb\u{1b}c", "ab"),
            ("\u{1b}]0;never closed\nstill seen", "\nstill seen"),
            ("\u{1b}[12;\nseen", "\nseen"),
            ("äöü 漢字 🙂", "äöü 漢字 🙂"),
        ] {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_sequence_in_two_pieces_is_removed() {
        let text = "a\u{1b}[1;31mb\u{1b}]0;t\u{1b}\\c";
        for (cut, _) in text.char_indices() {
            let mut cleaner = Cleaner::default();
            let shown = cleaner.clean(&text[..cut]) + &cleaner.clean(&text[cut..]);
            assert_eq!(shown, "abc", "cut at {cut}");
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
        assert_eq!(Cleaner::keeping_colours().clean(own), own);
        for foreign in ["\u{1b}[8m", "\u{1b}[31;8m", "\u{1b}[?31m", "\u{1b}[2J", "\u{1b}]0;t\u{7}", "\u{1b}[31 m", "\r"]
        {
            assert_eq!(Cleaner::keeping_colours().clean(&format!("a{foreign}b")), "ab", "{foreign:?}");
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
                ("a\u{1b}Pq#0\u{9c}b", r"a\u{9c}b"),
                ("a\u{85}b", r"a\u{85}b"),
                ("x\u{e0069}\u{e0067}", r"x\u{e0069}\u{e0067}"),
                ("\u{e0001}x\u{e007f}", r"\u{e0001}x\u{e007f}"),
            ] {
                assert_eq!(clean(text), shown, "{text:?}");
            }
        }

        #[test]
        fn a_sequence_hides_no_character_that_must_be_visible() {
            assert_eq!(clean("\u{1b}]0;\u{202e}abc"), r"\u{202e}abc");
            assert_eq!(clean("\u{1b}[1\u{9b}31mabc"), r"\u{9b}31mabc");
            assert_eq!(clean("\u{1b}P\u{e0041}abc"), r"\u{e0041}abc");
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
