//! A list to choose one row from, with the arrow keys or by typing words that it has.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;

use crate::editor::Candidate;
use crate::layout::{printable, shortened, width};
use crate::menu;
use crate::region::Place;

/// In front of what is typed.
const PROMPT: &str = "> ";
/// Rows that a page key moves.
const PAGE: usize = 8;

/// A list to choose one row from.
#[derive(Debug, Clone)]
pub struct Picker {
    title: String,
    rows: Vec<Candidate>,
    typed: String,
    /// The chosen one of the rows that have the typed words.
    selected: usize,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picked {
    /// Nothing is decided.
    Open,
    /// The user wants this row.
    Row(usize),
    /// The user wants none.
    None,
}

impl Picker {
    /// A list whose rows have a name and a few words about it. One of them is selected.
    pub fn new(title: &str, rows: Vec<Candidate>, selected: usize) -> Self {
        Self { title: title.to_owned(), rows, typed: String::new(), selected }
    }

    /// The rows that have all typed words, in any order and case.
    fn found(&self) -> Vec<usize> {
        let words: Vec<String> = self.typed.split_whitespace().map(str::to_lowercase).collect();
        let has = |row: &Candidate| {
            let text = format!("{} {}", row.text, row.about).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        (0..self.rows.len()).filter(|at| self.rows.get(*at).is_some_and(has)).collect()
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Picked {
        let found = self.found();
        let last = found.len().saturating_sub(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::None,
            KeyCode::Char('c' | 'd') if control => return Picked::None,
            KeyCode::Enter => return found.get(self.selected).map_or(Picked::Open, |at| Picked::Row(*at)),
            KeyCode::Up => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            KeyCode::Down => self.selected = if self.selected >= last { 0 } else { self.selected + 1 },
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(PAGE),
            KeyCode::PageDown => self.selected = (self.selected + PAGE).min(last),
            KeyCode::Char('p') if control => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            KeyCode::Char('n') if control => self.selected = if self.selected >= last { 0 } else { self.selected + 1 },
            KeyCode::Char('u') if control => self.search(String::new()),
            KeyCode::Backspace => {
                let mut typed = self.typed.clone();
                typed.pop();
                self.search(typed);
            }
            KeyCode::Char(character) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.search(format!("{}{character}", self.typed));
            }
            _ => {}
        }
        Picked::Open
    }

    /// Adds a pasted text to the words.
    pub(crate) fn paste(&mut self, text: &str) {
        let line: String = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
        self.search(format!("{}{line}", self.typed));
    }

    fn search(&mut self, typed: String) {
        if typed != self.typed {
            (self.typed, self.selected) = (typed, 0);
        }
    }

    /// The rows of the picker, at most so many, and the place of the cursor.
    pub(crate) fn picture(&self, columns: usize, most: usize) -> (Vec<Line<'static>>, Place) {
        let faint = Style::new().add_modifier(Modifier::DIM);
        let one = |text: String, style: Style| Line::styled(shortened(&printable(&text), columns), style);
        let found = self.found();
        // The end of a long text is where the user types.
        let mut typed = printable(&self.typed).into_owned();
        while width(&typed) + PROMPT.len() >= columns && !typed.is_empty() {
            typed.remove(0);
        }
        let column = PROMPT.len() + width(&typed);
        let mut lines = vec![one(self.title.clone(), Style::new()), Line::from(format!("{PROMPT}{typed}"))];
        let rows: Vec<&Candidate> = found.iter().filter_map(|at| self.rows.get(*at)).collect();
        lines.extend(menu::rows(&rows, self.selected, columns, most.saturating_sub(3).max(1)));
        let count = match found.len() {
            0 => "nothing has these words".to_owned(),
            found if found == self.rows.len() => format!("{found}"),
            found => format!("{found} of {}", self.rows.len()),
        };
        lines.push(one(format!("{count} · type to search · enter chooses · esc leaves"), faint));
        (lines, Place { row: 1, column })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker {
        let rows = [("Harbour", "2 h ago"), ("Tea", "1 d ago"), ("Green tea", "3 d ago · about the harbour")];
        let rows = rows.map(|(text, about)| Candidate { text: text.to_owned(), about: about.to_owned() });
        Picker::new("resume", rows.to_vec(), 0)
    }

    fn press(picker: &mut Picker, code: KeyCode) -> Picked {
        picker.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn shown(picker: &Picker) -> Vec<String> {
        picker.picture(40, 9).0.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn arrows_choose_and_words_search_names_and_what_is_about_them() {
        let mut picker = picker();
        assert_eq!(press(&mut picker, KeyCode::Up), Picked::Open);
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(2));
        assert_eq!(press(&mut picker, KeyCode::Down), Picked::Open);
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(0));
        "TEA harb".chars().for_each(|character| _ = press(&mut picker, KeyCode::Char(character)));
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(2));
        assert_eq!(
            shown(&picker)[1..],
            ["> TEA harb", "  Green tea  3 d ago · about the harbour", "1 of 3 · type to search · enter chooses…"]
        );
        picker.paste("our\nzzz");
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Open);
        assert!(shown(&picker)[2].starts_with("nothing has these words"));
        assert_eq!(press(&mut picker, KeyCode::Esc), Picked::None);
    }

    #[test]
    fn a_long_list_scrolls_and_no_row_is_wider_than_the_terminal() {
        let rows = (0..50).map(|at| Candidate { text: format!("row {at} {}", "x".repeat(60)), about: String::new() });
        let mut picker = Picker::new("a title that is wider than the terminal", rows.collect(), 30);
        picker.paste(&"row ".repeat(20));
        (0..30).for_each(|_| _ = press(&mut picker, KeyCode::Down));
        let (lines, place) = picker.picture(30, 10);
        assert_eq!(lines.len(), 10);
        assert!(lines.iter().all(|line| width(&line.to_string()) <= 30), "{lines:#?}");
        assert!(lines.iter().any(|line| line.to_string().contains("row 30 ")) && place.column < 30);
    }
}
