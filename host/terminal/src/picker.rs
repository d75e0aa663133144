//! A list to choose one row from, with the arrow keys or by typing words that it has.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::layout::{printable, shortened, width, wrapped};
use crate::menu::{self, Candidate};
use crate::region::Place;

/// In front of what is typed.
const PROMPT: &str = "> ";
/// In front of the lines below the title.
const MARGIN: &str = "  ";
/// Rows that a page key moves.
const PAGE: usize = 8;

/// A list to choose one row from.
#[derive(Debug, Clone)]
pub struct Picker {
    title: String,
    /// Lines below the title. A list that has any is short, and is not searched.
    details: Vec<String>,
    rows: Vec<Candidate>,
    /// The group of each row, if there are groups. Rows of one group are together.
    groups: Vec<String>,
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
        Self { title: title.to_owned(), details: Vec::new(), rows, groups: Vec::new(), typed: String::new(), selected }
    }

    /// A list in groups, whose names are above their rows and are searched, too. Rows of one group must be together.
    pub fn grouped(title: &str, rows: Vec<(String, Candidate)>, selected: usize) -> Self {
        let (groups, rows) = rows.into_iter().unzip();
        Self { groups, ..Self::new(title, rows, selected) }
    }

    /// A few things to do with something that the lines describe. It is not searched.
    pub fn of_actions(title: &str, details: Vec<String>, actions: Vec<Candidate>) -> Self {
        Self { details, ..Self::new(title, actions, 0) }
    }

    fn is_searched(&self) -> bool {
        self.details.is_empty()
    }

    fn group(&self, row: usize) -> &str {
        self.groups.get(row).map_or("", String::as_str)
    }

    /// Whether a text has all typed words, in any order and case.
    fn has_words(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.typed.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }

    /// The rows that have all typed words.
    fn found(&self) -> Vec<usize> {
        let has = |(at, row): (usize, &Candidate)| {
            self.has_words(&format!("{} {} {}", self.group(at), row.text, row.about)).then_some(at)
        };
        self.rows.iter().enumerate().filter_map(has).collect()
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
        if self.is_searched() && typed != self.typed {
            self.typed = typed;
            // A row with this name is meant, though the words of others have it too.
            let is_named = |at: &usize| self.has_words(&self.rows[*at].text);
            self.selected = self.found().iter().position(is_named).unwrap_or(0);
        }
    }

    /// The rows of the picker, at most so many, and the place of the cursor.
    pub(crate) fn picture(&self, columns: usize, most: usize) -> (Vec<Line<'static>>, Place) {
        let faint = Style::new().add_modifier(Modifier::DIM);
        let one = |text: &str, style: Style| Line::styled(shortened(&printable(text), columns), style);
        let found = self.found();
        let mut lines = vec![one(&self.title, Style::new())];
        let mut place = Place { row: 0, column: 0 };
        if self.is_searched() {
            // The end of a long text is where the user types.
            let mut typed = printable(&self.typed).into_owned();
            while width(&typed) + PROMPT.len() >= columns && !typed.is_empty() {
                typed.remove(0);
            }
            place = Place { row: lines.len(), column: PROMPT.len() + width(&typed) };
            lines.push(Line::from(format!("{PROMPT}{typed}")));
        }
        let details = self.details.iter().flat_map(|line| {
            let span = Span::styled(printable(line).into_owned(), faint);
            wrapped(&[span], columns, &[MARGIN.into()], &[MARGIN.into(), MARGIN.into()])
        });
        // The rows matter more than the details.
        lines.extend(details.take(most.saturating_sub(2 + self.rows.len().min(most))));
        let room = most.saturating_sub(lines.len() + 1).max(1);
        lines.extend(self.list(&found, columns, room));
        let keys = "enter chooses · esc leaves";
        let count = match found.len() {
            0 => "nothing has these words".to_owned(),
            found if found == self.rows.len() => format!("{found}"),
            found => format!("{found} of {}", self.rows.len()),
        };
        let last = match self.is_searched() {
            true => format!("{count} · type to search · {keys}"),
            false => keys.to_owned(),
        };
        lines.push(one(&last, faint));
        if !self.is_searched() {
            // There is nothing to type, so the cursor is out of the way.
            place = Place { row: lines.len() - 1, column: 0 };
        }
        (lines, place)
    }

    /// The rows around the selected one with the names of their groups, at most so many.
    fn list(&self, found: &[usize], columns: usize, most: usize) -> Vec<Line<'static>> {
        let mut entries = Vec::new();
        for (at, row) in found.iter().enumerate() {
            let is_first = at.checked_sub(1).is_none_or(|before| self.group(found[before]) != self.group(*row));
            if is_first && !self.group(*row).is_empty() {
                entries.push(Entry::Group(*row));
            }
            entries.push(Entry::Row(*row));
        }
        let selected = found.get(self.selected).copied();
        let at = entries.iter().position(|entry| matches!(entry, Entry::Row(row) if Some(*row) == selected));
        let hidden = at.map_or(0, |at| (at + 1).saturating_sub(most));
        let mut shown: Vec<Entry> = entries.into_iter().skip(hidden).take(most).collect();
        // The name of the first group stays in sight.
        if let Some(Entry::Row(row)) = shown.first().copied()
            && Some(row) != selected
            && !self.group(row).is_empty()
        {
            shown[0] = Entry::Group(row);
        }
        let of_rows = |entry: &Entry| if let Entry::Row(row) = entry { Some(*row) } else { None };
        let in_sight: Vec<usize> = shown.iter().filter_map(of_rows).collect();
        let rows: Vec<&Candidate> = in_sight.iter().filter_map(|row| self.rows.get(*row)).collect();
        let at = in_sight.iter().position(|row| Some(*row) == selected).unwrap_or(0);
        let mut rows = menu::rows(&rows, at, columns, rows.len()).into_iter();
        let faint = Style::new().add_modifier(Modifier::DIM);
        let line = |entry: &Entry| match entry {
            Entry::Group(row) => Some(Line::styled(shortened(&printable(self.group(*row)), columns), faint)),
            Entry::Row(_) => rows.next(),
        };
        shown.iter().filter_map(line).collect()
    }
}

/// A line of the list.
#[derive(Debug, Clone, Copy)]
enum Entry {
    /// The name of a row's group.
    Group(usize),
    /// A row.
    Row(usize),
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
        let typed = |picker: &mut Picker, text: &str| {
            picker.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
            picker.paste(text);
        };
        typed(&mut picker, "tea");
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(1));
        typed(&mut picker, "ago");
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(0), "no name has it");
        typed(&mut picker, "TEA harb");
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

    #[test]
    fn groups_have_their_names_above_them_and_are_searched() {
        let row =
            |group: &str, text: &str| (group.to_owned(), Candidate { text: text.to_owned(), about: String::new() });
        let rows = ["one", "two", "three", "four"].map(|text| row("acme", text)).to_vec();
        let mut picker = Picker::grouped("model", [rows, vec![row("zeta", "one"), row("zeta", "six")]].concat(), 0);
        let list = |picker: &Picker, most: usize| -> Vec<String> {
            let (lines, _) = picker.picture(40, most);
            lines[2..lines.len() - 1].iter().map(|line| line.to_string().trim_end().to_owned()).collect()
        };
        assert_eq!(list(&picker, 20), ["acme", "  one", "  two", "  three", "  four", "zeta", "  one", "  six"]);
        assert_eq!(list(&picker, 6), ["acme", "  one", "  two"]);
        (0..3).for_each(|_| _ = press(&mut picker, KeyCode::Down));
        // The group of the first row in sight is named although its begin is not in sight.
        assert_eq!(list(&picker, 6), ["acme", "  three", "  four"]);
        (0..2).for_each(|_| _ = press(&mut picker, KeyCode::Down));
        assert_eq!(list(&picker, 5), ["zeta", "  six"]);
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(5));
        picker.paste("ZETA one");
        assert_eq!(list(&picker, 20), ["zeta", "  one"]);
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(4));
    }

    #[test]
    fn actions_are_below_what_they_are_about_and_are_not_searched() {
        let actions = ["enable", "back"].map(|text| Candidate { text: text.to_owned(), about: String::new() });
        let details = vec!["Looks at tea, and at nothing else.".to_owned(), "runs kettle".to_owned()];
        let mut picker = Picker::of_actions("tea", details, actions.to_vec());
        "back".chars().for_each(|character| _ = press(&mut picker, KeyCode::Char(character)));
        let shown: Vec<String> = picker.picture(24, 12).0.iter().map(|line| line.to_string()).collect();
        assert_eq!(shown[..4], ["tea", "  Looks at tea, and at", "    nothing else.", "  runs kettle"]);
        assert_eq!(
            shown[4..].iter().map(|row| row.trim()).collect::<Vec<_>>(),
            ["enable", "back", "enter chooses · esc lea…"]
        );
        // On a low terminal the actions stay.
        let low: Vec<String> = picker.picture(24, 4).0.iter().map(|line| line.to_string().trim().to_owned()).collect();
        assert_eq!(low[..3], ["tea", "enable", "back"]);
        assert_eq!(press(&mut picker, KeyCode::Down), Picked::Open);
        assert_eq!(press(&mut picker, KeyCode::Enter), Picked::Row(1));
    }
}
