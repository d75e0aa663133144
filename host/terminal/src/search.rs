//! Searching earlier inputs, from the newest one backwards.

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::layout::{printable, shortened, width, wrapped};
use crate::parts::{Part, joined};
use crate::region::Place;

/// In front of what is searched for.
const PROMPT: &str = "search: ";
/// In front of the rows of what was found.
const MARGIN: &str = "  ";
/// The most rows of what was found.
const MOST_ROWS: usize = 5;

/// The text that was searched for.
const FOUND: Style = Style::new().add_modifier(Modifier::BOLD);

/// A search in earlier inputs.
#[derive(Debug, Default)]
pub(crate) struct Search {
    typed: String,
    /// The input that was found.
    at: Option<usize>,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Searched {
    /// The search goes on.
    Open,
    /// The user wants this input.
    Taken(usize),
    /// The user wants none.
    Left,
}

impl Search {
    /// Finds the newest input. The history has the oldest input first.
    pub(crate) fn begin(history: &[String]) -> Self {
        Self { typed: String::new(), at: history.len().checked_sub(1) }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, history: &[String]) -> Searched {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return self.at.map_or(Searched::Open, Searched::Taken),
            KeyCode::Esc => return Searched::Left,
            KeyCode::Char('c' | 'g') if control => return Searched::Left,
            KeyCode::Char('r' | 'p') if control => self.older(history),
            KeyCode::Char('s' | 'n') if control => self.newer(history),
            KeyCode::Up => self.older(history),
            KeyCode::Down => self.newer(history),
            KeyCode::Char('u') if control => self.search_again("", history),
            KeyCode::Char('h') if control => self.shorten(history),
            KeyCode::Backspace => self.shorten(history),
            KeyCode::Char(character) if is_plain => self.narrow(character.encode_utf8(&mut [0; 4]), history),
            _ => {}
        }
        Searched::Open
    }

    /// Adds a pasted text to what is searched for.
    pub(crate) fn paste(&mut self, text: &str, history: &[String]) {
        self.narrow(text.trim_end_matches(['\r', '\n']), history);
    }

    /// Searches for a longer text, from what was found on.
    fn narrow(&mut self, more: &str, history: &[String]) {
        self.typed.push_str(more);
        let end = self.at.map_or(0, |at| at + 1);
        self.at = (0..end).rev().find(|at| self.is_in(&history[*at]));
    }

    fn shorten(&mut self, history: &[String]) {
        let mut typed = std::mem::take(&mut self.typed);
        typed.pop();
        self.search_again(&typed, history);
    }

    /// Searches for another text, from the newest input on.
    fn search_again(&mut self, typed: &str, history: &[String]) {
        *self = Self::begin(history);
        self.narrow(typed, history);
    }

    /// Finds the next older input that is another one.
    fn older(&mut self, history: &[String]) {
        let Some(now) = self.at else { return };
        let differs = |at: &usize| history[*at] != history[now] && self.is_in(&history[*at]);
        self.at = (0..now).rev().find(differs).or(self.at);
    }

    /// The same for the next newer one.
    fn newer(&mut self, history: &[String]) {
        let Some(now) = self.at else { return };
        let differs = |at: &usize| history[*at] != history[now] && self.is_in(&history[*at]);
        self.at = (now + 1..history.len()).find(differs).or(self.at);
    }

    fn is_in(&self, text: &str) -> bool {
        place(text, &self.typed).is_some()
    }

    /// The rows of the search, at most so many, and the place of the cursor.
    pub(crate) fn picture(&self, history: &[String], columns: usize, most: usize) -> (Vec<Line<'static>>, Place) {
        let faint = Style::new().add_modifier(Modifier::DIM);
        // The end of a long text is where the user types.
        let mut typed = printable(&self.typed).into_owned();
        while PROMPT.len() + width(&typed) >= columns && !typed.is_empty() {
            typed.remove(0);
        }
        let prompt = shortened(PROMPT, columns.saturating_sub(1));
        let cursor = Place { row: 0, column: width(&prompt) + width(&typed) };
        let mut rows = vec![Line::from(prompt + &typed)];
        let found = self.at.and_then(|at| history.get(at));
        match found {
            Some(text) => rows.extend(self.found_rows(text, columns, most.saturating_sub(2).clamp(1, MOST_ROWS))),
            None => rows.push(Line::styled(shortened("  no earlier input has this", columns), faint)),
        }
        let mut keys = Vec::new();
        if let Some(text) = found {
            let lines = text.split('\n').count();
            keys.extend((lines > 1).then(|| Part::new(format!("{lines} lines"), 1)));
            keys.extend([Part::new("enter takes", 4), Part::new("ctrl-r older", 2)]);
        }
        keys.push(Part::new("esc leaves", 3));
        rows.push(Line::styled(joined(&keys, columns), faint));
        rows.truncate(most.max(1));
        (rows, cursor)
    }

    /// The rows of an input around the place where it has the text.
    fn found_rows(&self, text: &str, columns: usize, most: usize) -> Vec<Line<'static>> {
        let Range { start, end } = place(text, &self.typed).unwrap_or_default();
        // More than this cannot be on the screen with the place that was found.
        let reach = columns * most;
        let is_near = start < reach && text[..start].matches('\n').count() < most;
        let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let first = if is_near { 0 } else { line.max(text.floor_char_boundary(start.saturating_sub(columns / 2))) };
        let last = text.floor_char_boundary(end.saturating_add(reach).min(text.len()));
        let (mut rows, mut at): (Vec<Line<'static>>, _) = (Vec::new(), first);
        for line in text[first..last].split('\n') {
            let cut = |place: usize| place.clamp(at, at + line.len()) - at;
            let (before, rest) = line.split_at(cut(start));
            let (found, behind) = rest.split_at(cut(end) - cut(start));
            let spans = [(before, Style::new()), (found, FOUND), (behind, Style::new())];
            let spans = spans.map(|(text, style)| Span::styled(printable(text).into_owned(), style));
            rows.extend(wrapped(&spans, columns, &[MARGIN.into()], &[MARGIN.into()]));
            at += line.len() + 1;
        }
        let has_place = |row: &Line<'_>| row.spans.iter().any(|span| span.style == FOUND);
        let row_of_place = rows.iter().position(has_place).unwrap_or(0);
        let hidden = (row_of_place + 1).saturating_sub(most);
        rows.into_iter().skip(hidden).take(most).collect()
    }
}

/// Where a text has another one, in upper or lower case.
fn place(text: &str, wanted: &str) -> Option<Range<usize>> {
    let wanted: Vec<char> = wanted.chars().flat_map(char::to_lowercase).collect();
    let begins_at = |begin: usize| {
        let mut left = wanted.iter();
        for (at, character) in text[begin..].char_indices() {
            if left.as_slice().is_empty() {
                return Some(begin..begin + at);
            }
            if !character.to_lowercase().all(|lower| left.next() == Some(&lower)) {
                return None;
            }
        }
        left.as_slice().is_empty().then_some(begin..text.len())
    };
    text.char_indices().find_map(|(begin, _)| begins_at(begin)).or_else(|| wanted.is_empty().then_some(0..0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> Vec<String> {
        let inputs =
            ["sail to the Harbour", "green tea", "the harbour\nand the quay", "green tea", "tea at the harbour"];
        inputs.map(str::to_owned).to_vec()
    }

    fn press(search: &mut Search, code: KeyCode) -> Searched {
        search.key(KeyEvent::new(code, KeyModifiers::NONE), &history())
    }

    fn hold(search: &mut Search, character: char) -> Searched {
        search.key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL), &history())
    }

    fn write(search: &mut Search, text: &str) {
        text.chars().for_each(|character| assert_eq!(press(search, KeyCode::Char(character)), Searched::Open));
    }

    fn shown(search: &Search, columns: usize, most: usize) -> Vec<String> {
        search.picture(&history(), columns, most).0.iter().map(|row| row.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn typing_narrows_from_the_newest_input_on_and_ctrl_r_goes_to_older_ones() {
        let mut search = Search::begin(&history());
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(4));
        write(&mut search, "tea");
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(4));
        hold(&mut search, 'r');
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(3));
        // The next one is the same text, and the oldest match stays.
        hold(&mut search, 'r');
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(3));
        press(&mut search, KeyCode::Down);
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(4));
        hold(&mut search, 'u');
        write(&mut search, "HARBOUR");
        [1, 2].iter().for_each(|_| _ = hold(&mut search, 'r'));
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(0));
        write(&mut search, "x");
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Open);
        assert_eq!(shown(&search, 39, 9)[1..], ["  no earlier input has this", "esc leaves"]);
        press(&mut search, KeyCode::Backspace);
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(4));
        search.paste(" zzz\n", &history());
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Open);
        assert_eq!(
            (press(&mut search, KeyCode::Esc), hold(&mut search, 'g'), hold(&mut search, 'c')),
            (Searched::Left, Searched::Left, Searched::Left)
        );
    }

    #[test]
    fn what_is_typed_after_going_back_is_found_from_there_on() {
        let mut search = Search::begin(&history());
        write(&mut search, "har");
        hold(&mut search, 'r');
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(2));
        // The newest input has this too, but the user has left it behind.
        write(&mut search, "bour");
        assert_eq!(press(&mut search, KeyCode::Enter), Searched::Taken(2));
    }

    #[test]
    fn what_was_found_is_below_the_search_on_a_narrow_terminal_too() {
        let mut search = Search::begin(&history());
        write(&mut search, "quay");
        let rows = ["search: quay", "  the harbour", "  and the quay", "enter takes · ctrl-r older · esc leaves"];
        assert_eq!(shown(&search, 39, 15), rows);
        assert_eq!(shown(&search, 80, 15)[3], "2 lines · enter takes · ctrl-r older · esc leaves");
        assert_eq!(search.picture(&history(), 39, 15).1, Place { row: 0, column: 12 });
        // The row with the place that was found stays.
        assert_eq!(shown(&search, 39, 3), ["search: quay", "  and the quay", rows[3]]);
        assert_eq!(shown(&search, 39, 1), ["search: quay"]);
    }

    #[test]
    fn no_row_is_too_wide_and_the_place_in_a_long_input_is_in_sight() {
        let long = format!("{}Needle 漢字 {}", "hay \u{1b}[2J ".repeat(2_000), "hay\n".repeat(2_000));
        let history = [long, "漢字 needle".repeat(50)];
        for columns in [2, 9, 20, 39, 80] {
            for most in [1, 2, 3, 15] {
                let mut search = Search::begin(&history);
                search.paste("needle", &history);
                for _ in 0..2 {
                    let (rows, cursor) = search.picture(&history, columns, most);
                    assert!(rows.len() <= most && cursor.row == 0 && cursor.column < columns, "{columns}, {most}");
                    assert!(rows.iter().all(|row| width(&row.to_string()) <= columns.max(2)), "{columns}: {rows:#?}");
                    let text: String = rows.iter().map(|row| format!("{}\n", row.to_string().trim())).collect();
                    assert!(!text.contains('\u{1b}'), "{text}");
                    if columns >= 20 && most >= 3 {
                        assert!(text.to_lowercase().contains("needle"), "{columns}, {most}: {text}");
                    }
                    search.older(&history);
                }
            }
        }
    }

    #[test]
    fn a_text_is_found_in_upper_and_lower_case_and_at_every_place() {
        for (text, wanted, found) in [
            ("Green TEA", "tea", Some(6..9)),
            ("aab", "AB", Some(1..3)),
            ("Straße Über", "über", Some(8..13)),
            ("İstanbul", "stan", Some(2..6)),
            ("tea", "teas", None),
            ("", "", Some(0..0)),
            ("tea", "", Some(0..0)),
        ] {
            assert_eq!(place(text, wanted), found, "{text}, {wanted}");
        }
    }
}
