//! Splits a text into passages, the units that are blocked: the lines between two blank lines, or between two lines with a lone
//! `§`, which separate notes in memory.

/// A stretch of whole lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Lines with content.
    Passage(&'a str),
    /// A separator line.
    Border(&'a str),
}

impl<'a> Piece<'a> {
    pub(super) fn text(&self) -> &'a str {
        match self {
            Piece::Passage(text) | Piece::Border(text) => text,
        }
    }

    pub(super) fn is_border(&self) -> bool {
        matches!(self, Piece::Border(_))
    }

    pub(super) fn lines(&self) -> usize {
        self.text().split_inclusive('\n').count()
    }

    /// The line ending of its last line.
    pub(super) fn ending(&self) -> &'a str {
        let text = self.text();
        &text[text.trim_end_matches(['\r', '\n']).len()..]
    }
}

/// The pieces in order; joined they give the text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if matches!(line.trim(), "" | "§") {
            if start < at {
                pieces.push(Piece::Passage(&text[start..at]));
            }
            pieces.push(Piece::Border(line));
            start = end;
        }
        at = end;
    }
    if start < text.len() {
        pieces.push(Piece::Passage(&text[start..]));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blank_lines_and_lone_section_signs_separate_passages() {
        use Piece::{Border, Passage};
        assert_eq!(
            pieces("a\r\nb\n \t\n§\nc\n\n"),
            [Passage("a\r\nb\n"), Border(" \t\n"), Border("§\n"), Passage("c\n"), Border("\n")]
        );
        assert_eq!(pieces(""), []);
    }

    proptest! {
        #[test]
        fn the_pieces_joined_give_the_text(text in "[a \r\n§]{0,20}") {
            let pieces = pieces(&text);
            prop_assert_eq!(pieces.iter().map(Piece::text).collect::<String>(), text.clone());
            prop_assert_eq!(pieces.iter().map(Piece::lines).sum::<usize>(), text.split_inclusive('\n').count());
        }
    }
}
