//! Columns, and lines broken to fit them.

use std::borrow::Cow;

use hermes_conversation::characters;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Spaces for a tab.
const TAB: &str = "    ";

/// The columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A text without line feeds that a terminal shows as it is: tabs become spaces, and what a terminal would obey, what reorders a
/// line and what hides text is escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_odd = |character: char| {
        character.is_control() || characters::is_reordering(character) || characters::is_tag(character)
    };
    if !text.chars().any(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\t' => shown.push_str(TAB),
            odd if is_odd(odd) => characters::escape(odd, &mut shown),
            plain => shown.push(plain),
        }
    }
    Cow::Owned(shown)
}

/// A text of at most so many columns; its end is `…` if it was cut.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    cut(text, columns, width)
}

/// A text of at most this size by a measure, such as [`width`]; its end is `…` if it was cut. No character that people see as one is
/// torn.
pub fn cut(text: &str, most: usize, measure: impl Fn(&str) -> usize) -> String {
    const MARK: &str = "…";
    if measure(text) <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(measure(MARK));
    let (mut used, mut end) = (0, 0);
    for (at, character) in text.grapheme_indices(true) {
        used += measure(character);
        if used > room {
            break;
        }
        end = at + character.len();
    }
    format!("{}{MARK}", text[..end].trim_end())
}

/// A part of a line that is not broken, with its columns.
struct Cell<'a> {
    text: &'a str,
    style: Style,
    width: usize,
}

impl<'a> Cell<'a> {
    /// A character as people see it.
    fn of(text: &'a str, style: Style) -> Self {
        Self { text, style, width: text.width() }
    }
}

impl Cell<'_> {
    fn is_space(&self) -> bool {
        self.text == " "
    }

    /// Whether a line may begin with it although no space is before it: scripts without spaces use wide characters.
    fn may_begin(&self) -> bool {
        self.text.width() == 2
            && !self.text.chars().any(|character| "、。，．！？：；）］｝」』】》〉・ー…".contains(character))
    }

    /// Whether a line may end with it although no space follows.
    fn may_end(&self) -> bool {
        self.text.width() == 2 && !self.text.chars().any(|character| "（［｛「『【《〈".contains(character))
    }
}

/// A line broken at spaces, between wide characters, and inside a word that is longer than a line. `first` is in front of the
/// first line, and `rest` in front of the others; both are left out if they would take more than half of the width.
pub fn wrapped(spans: &[Span<'_>], width: usize, first: &[Span<'_>], rest: &[Span<'_>]) -> Vec<Line<'static>> {
    let cells: Vec<Cell<'_>> =
        spans.iter().flat_map(|span| span.content.graphemes(true).map(|text| Cell::of(text, span.style))).collect();
    broken_cells(&cells, width, first, rest)
}

/// A text broken like [`wrapped`], for terminals that may show a character wider than it should be, or in parts: `columns` says
/// how many columns a character takes at most, and a word that is too long is broken between any two.
pub fn broken(text: &str, width: usize, columns: impl Fn(char) -> usize) -> Vec<String> {
    let cell = |(at, character): (usize, char)| Cell {
        text: &text[at..at + character.len_utf8()],
        style: Style::new(),
        width: columns(character),
    };
    let cells: Vec<Cell<'_>> = text.char_indices().map(cell).collect();
    broken_cells(&cells, width, &[], &[]).iter().map(ToString::to_string).collect()
}

fn broken_cells(cells: &[Cell<'_>], width: usize, first: &[Span<'_>], rest: &[Span<'_>]) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut begin = 0;
    loop {
        let prefix = if lines.is_empty() { first } else { rest };
        let taken: usize = prefix.iter().map(Span::width).sum();
        let (prefix, room) = if taken * 2 > width { (&[][..], width.max(1)) } else { (prefix, width - taken) };
        let end = end_of_line(&cells[begin..], room) + begin;
        let mut shown = end;
        // Spaces at the end of a broken line are not shown.
        while end < cells.len() && shown > begin && cells[shown - 1].is_space() {
            shown -= 1;
        }
        lines.push(line(prefix, &cells[begin..shown]));
        begin = end;
        if begin >= cells.len() {
            return lines;
        }
    }
}

/// How many cells are on the first line.
fn end_of_line(cells: &[Cell<'_>], room: usize) -> usize {
    let mut used = 0;
    let mut last_break = None;
    // A line is not broken behind its indentation: code would lose it.
    let indent = cells.iter().take_while(|cell| cell.is_space()).count();
    for (at, cell) in cells.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| cells.get(before));
        if at != indent
            && before.is_some_and(|before| {
                (before.is_space() && !cell.is_space())
                    || (!before.is_space() && !cell.is_space() && (before.may_end() && cell.may_begin()))
            })
        {
            last_break = Some(at);
        }
        used += cell.width;
        // A space at the end of a line takes no room.
        if used > room && at > 0 && !cell.is_space() {
            return last_break.unwrap_or(at);
        }
    }
    cells.len()
}

fn line(prefix: &[Span<'_>], cells: &[Cell<'_>]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> =
        prefix.iter().map(|span| Span::styled(span.content.clone().into_owned(), span.style)).collect();
    let begin = spans.len();
    for cell in cells {
        match spans.get_mut(begin..).and_then(<[_]>::last_mut) {
            Some(last) if last.style == cell.style => last.content.to_mut().push_str(cell.text),
            _ => spans.push(Span::styled(cell.text.to_owned(), cell.style)),
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui_core::style::Stylize as _;

    use super::*;

    fn texts(text: &str, width: usize) -> Vec<String> {
        wrapped(&[text.into()], width, &[], &[]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_at_spaces_and_between_wide_characters() {
        assert_eq!(texts("one two three", 8), ["one two", "three"]);
        assert_eq!(texts("one two", 7), ["one two"]);
        assert_eq!(texts("incomprehensibility", 8), ["incompre", "hensibil", "ity"]);
        assert_eq!(texts("漢字漢字。漢字", 8), ["漢字漢", "字。漢字"]);
        assert_eq!(texts("", 8), [""]);
        assert_eq!(texts("👨‍👩‍👧‍👦 family", 8), ["👨‍👩‍👧‍👦", "family"]);
        // A space that does not fit any more is at the end of the line, and not shown.
        assert_eq!(texts("eightcol umns", 8), ["eightcol", "umns"]);
    }

    #[test]
    fn columns_can_be_counted_by_another_measure() {
        // Each letter may take two columns; a word that fits is not broken.
        assert_eq!(
            broken("žluťoučký kůň", 10, |character| if character.is_ascii() { 1 } else { 2 }),
            ["žluťouč", "ký kůň"]
        );
        assert_eq!(broken("one two", 5, |_| 1), ["one", "two"]);
        assert_eq!(broken("", 5, |_| 1), [""]);
    }

    #[test]
    fn a_text_that_is_cut_says_so() {
        for (text, columns, shown) in
            [("tea", 3, "tea"), ("green tea", 7, "green…"), ("漢字漢字", 5, "漢字…"), ("tea", 1, "…")]
        {
            assert_eq!(shortened(text, columns), shown);
        }
        let characters = |text: &str| text.chars().count();
        assert_eq!(cut("漢字漢字", 3, characters), "漢字…");
        assert_eq!(cut("tea 👩\u{200d}👩\u{200d}👧 time", 8, characters), "tea…");
    }

    #[test]
    fn styles_stay_with_their_text_and_prefixes_are_in_front() {
        let lines = wrapped(&["plain ".into(), "bold words".bold()], 9, &["- ".into()], &["  ".into()]);
        assert_eq!(
            lines,
            [
                Line::from(vec!["- ".into(), "plain".into()]),
                Line::from(vec!["  ".into(), "bold".bold()]),
                Line::from(vec!["  ".into(), "words".bold()]),
            ]
        );
    }

    #[test]
    fn a_line_keeps_its_indentation() {
        assert_eq!(texts("    deeply.indented()", 12), ["    deeply.i", "ndented()"]);
        assert_eq!(texts("    deep words", 12), ["    deep", "words"]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable("a\tb\u{1b}[31m\u{202e}c"), "a    b\\u{1b}[31m\\u{202e}c");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_word_is_lost(text in "[a-z漢字👍 ]{0,80}", width in 2_usize..40) {
            let lines = texts(&text, width);
            for line in &lines {
                prop_assert!(super::width(line.trim_end()) <= width, "{line:?}");
            }
            let letters = |text: &str| text.chars().filter(|character| *character != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
