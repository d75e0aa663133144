//! The input: editing over several lines, earlier inputs, pasted blocks and a menu of completions.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::Line;
use ratatui_textarea::{CursorMove, Input, Key, TextArea};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::layout::printable;
use crate::menu;
use crate::region::Place;

/// In front of the input.
const PROMPT: &str = "> ";
/// In front of its other lines.
const MORE: &str = "  ";
/// A paste with more lines or characters is shown as one word.
const SHORT_PASTE: (usize, usize) = (5, 1_000);
/// The most rows of the menu.
const MENU_ROWS: usize = 8;

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The input may have changed.
    Edited,
    /// The user sends this text.
    Submitted(String),
    /// Ctrl-C with nothing to clear.
    Interrupted,
    /// Ctrl-D without text.
    Ended,
    /// The user wants to write the text in an editor.
    Editor,
    /// Shift and Tab.
    NextMode,
    /// The user chose a row of a [`crate::Picker`], or none.
    Picked(Option<usize>),
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What takes the place of the typed word.
    pub text: String,
    /// What it means, in a few words.
    pub about: String,
}

/// Completions of the word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// Where the word begins, in bytes of the text before the cursor.
    pub begin: usize,
    /// The completions, the best first.
    pub list: Vec<Candidate>,
}

/// Finds completions. The text before the cursor is on one line.
pub type Completer = Box<dyn Fn(&str) -> Candidates + Send>;

/// The menu of completions.
struct Menu {
    candidates: Candidates,
    selected: usize,
}

/// The input.
pub struct Editor {
    area: TextArea<'static>,
    history: Vec<String>,
    /// The shown earlier input, and the text that was written before.
    recalled: Option<(usize, String)>,
    /// Long pastes: the word that is shown for each, and its text.
    pastes: Vec<(String, String)>,
    completer: Completer,
    menu: Option<Menu>,
    /// Escape closed the menu for this text.
    dismissed: Option<String>,
}

impl Editor {
    /// An empty input. The history has the oldest input first.
    pub fn new(history: Vec<String>, completer: Completer) -> Self {
        Self {
            area: TextArea::default(),
            history,
            recalled: None,
            pastes: Vec::new(),
            completer,
            menu: None,
            dismissed: None,
        }
    }

    /// The text as it would be sent.
    pub fn text(&self) -> String {
        let shown = self.area.lines().join("\n");
        self.pastes.iter().fold(shown, |text, (word, whole)| text.replace(word.as_str(), whole))
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Replaces the text.
    pub fn set(&mut self, text: &str) {
        let lines = text.split('\n').map(str::to_owned).collect();
        self.area = TextArea::new(lines);
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        self.menu = None;
    }

    /// Takes the text out.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.set("");
        self.pastes.clear();
        self.recalled = None;
        text
    }

    /// Remembers an input for the history.
    pub fn remember(&mut self, text: &str) {
        if self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
        }
    }

    /// A pasted text. A long one is shown as one word.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.split('\n').count();
        if lines <= SHORT_PASTE.0 && text.chars().count() <= SHORT_PASTE.1 {
            self.area.insert_str(&text);
        } else {
            let word = format!("[paste {}: {lines} lines]", self.pastes.len() + 1);
            self.area.insert_str(&word);
            self.pastes.push((word, text));
        }
        self.menu = None;
    }

    /// A key.
    pub fn key(&mut self, event: KeyEvent) -> Outcome {
        let (control, alt) =
            (event.modifiers.contains(KeyModifiers::CONTROL), event.modifiers.contains(KeyModifiers::ALT));
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        if let Some(menu) = &mut self.menu {
            let count = menu.candidates.list.len();
            match event.code {
                KeyCode::Up => {
                    menu.selected = (menu.selected + count - 1) % count.max(1);
                    return Outcome::Edited;
                }
                KeyCode::Down => {
                    menu.selected = (menu.selected + 1) % count.max(1);
                    return Outcome::Edited;
                }
                KeyCode::Tab => {
                    self.complete();
                    return Outcome::Edited;
                }
                // Enter sends what is already complete.
                KeyCode::Enter if !alt && self.changes_with_completion() => {
                    self.complete();
                    return Outcome::Edited;
                }
                KeyCode::Esc => {
                    self.menu = None;
                    self.dismissed = Some(self.text());
                    return Outcome::Edited;
                }
                _ => {}
            }
        }
        match event.code {
            KeyCode::Char('c') if control => {
                if self.is_empty() {
                    return Outcome::Interrupted;
                }
                let text = self.take();
                self.remember(&text);
            }
            KeyCode::Char('d') if control && self.is_empty() => return Outcome::Ended,
            KeyCode::Char('g') if control => return Outcome::Editor,
            KeyCode::BackTab => return Outcome::NextMode,
            KeyCode::Tab => {}
            KeyCode::Enter if alt || shift => self.area.insert_newline(),
            KeyCode::Char('j') if control => self.area.insert_newline(),
            KeyCode::Enter => {
                if self.is_continued() {
                    self.area.delete_char();
                    self.area.insert_newline();
                } else {
                    let text = self.take();
                    return Outcome::Submitted(text);
                }
            }
            KeyCode::Up if self.area.cursor().0 == 0 => self.recall(true),
            KeyCode::Down if self.area.cursor().0 + 1 == self.area.lines().len() => self.recall(false),
            KeyCode::Char('p') if control => self.recall(true),
            KeyCode::Char('n') if control => self.recall(false),
            KeyCode::Char('u') if control => {
                self.area.delete_line_by_head();
            }
            KeyCode::Backspace => self.backspace(),
            code => {
                if let Some(key) = key_of(code) {
                    self.area.input(Input { key, ctrl: control, alt, shift });
                }
            }
        }
        self.suggest();
        Outcome::Edited
    }

    /// Whether a single backslash is before the cursor at the end.
    fn is_continued(&self) -> bool {
        let text = self.before_cursor();
        let is_at_end = self.area.cursor().0 + 1 == self.area.lines().len();
        is_at_end && text.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1
    }

    /// Removes a character, or the whole word of a paste.
    fn backspace(&mut self) {
        let before = self.before_cursor();
        match self.pastes.iter().find(|(word, _)| before.ends_with(word.as_str())).map(|(word, _)| word.chars().count())
        {
            Some(length) => (0..length).for_each(|_| {
                self.area.delete_char();
            }),
            None => {
                self.area.delete_char();
            }
        }
    }

    fn before_cursor(&self) -> String {
        let cursor = self.area.cursor();
        self.area.lines().get(cursor.0).map(|line| line.chars().take(cursor.1).collect()).unwrap_or_default()
    }

    fn recall(&mut self, earlier: bool) {
        let (at, written) = match self.recalled.take() {
            Some((at, written)) => (at, written),
            None => (self.history.len(), self.text()),
        };
        let next = if earlier { at.checked_sub(1) } else { Some(at + 1) };
        let at = next.map_or(at, |next| next.min(self.history.len()));
        let text = self.history.get(at).cloned();
        self.set(text.as_deref().unwrap_or(&written));
        self.recalled = (at < self.history.len()).then_some((at, written));
    }

    /// Shows completions that were not known when the text was written.
    pub fn look_again(&mut self) {
        if self.menu.is_none() {
            self.suggest();
        }
    }

    fn suggest(&mut self) {
        self.menu = None;
        if self.dismissed.as_ref().is_some_and(|dismissed| *dismissed == self.text()) {
            return;
        }
        self.dismissed = None;
        if self.recalled.is_some() {
            return;
        }
        let candidates = (self.completer)(&self.before_cursor());
        if !candidates.list.is_empty() {
            self.menu = Some(Menu { candidates, selected: 0 });
        }
    }

    /// The text before the cursor and what takes its place.
    fn completion(&self) -> Option<(String, String)> {
        let menu = self.menu.as_ref()?;
        let typed = self.before_cursor().get(menu.candidates.begin..)?.to_owned();
        Some((typed, menu.candidates.list.get(menu.selected)?.text.clone()))
    }

    fn changes_with_completion(&self) -> bool {
        self.completion().is_some_and(|(typed, text)| typed.trim_end() != text.trim_end())
    }

    fn complete(&mut self) {
        if let Some((typed, text)) = self.completion() {
            (0..typed.chars().count()).for_each(|_| {
                self.area.delete_char();
            });
            self.area.insert_str(&text);
        }
        self.menu = None;
        self.suggest();
        // What is complete needs no menu.
        if !self.changes_with_completion() {
            self.menu = None;
        }
    }

    /// The rows of the input, at most so many, and the place of the cursor.
    pub fn rows(&self, width: usize, most: usize) -> (Vec<Line<'static>>, Place) {
        let room = width.saturating_sub(PROMPT.len()).max(2);
        let cursor = self.area.cursor();
        let mut rows: Vec<Line<'static>> = Vec::new();
        let mut place = Place::default();
        for (number, line) in self.area.lines().iter().enumerate() {
            let is_here = number == cursor.0;
            let mut parts = vec![String::new()];
            let (mut used, mut characters) = (0, 0);
            let mut found = None;
            for grapheme in line.graphemes(true) {
                let shown = printable(grapheme);
                if used + shown.width() > room && used > 0 {
                    parts.push(String::new());
                    used = 0;
                }
                if is_here && found.is_none() && characters >= cursor.1 {
                    found = Some((parts.len() - 1, used));
                }
                if let Some(part) = parts.last_mut() {
                    part.push_str(&shown);
                }
                used += shown.width();
                characters += grapheme.chars().count();
            }
            if is_here {
                if found.is_none() && used >= room {
                    parts.push(String::new());
                    used = 0;
                }
                let (row, column) = found.unwrap_or((parts.len() - 1, used));
                place = Place { row: rows.len() + row, column: PROMPT.len() + column };
            }
            for part in parts {
                let mark = if rows.is_empty() { PROMPT } else { MORE };
                rows.push(Line::from(format!("{mark}{part}")));
            }
        }
        let most = most.max(1);
        let hidden = (place.row + 1).saturating_sub(most);
        let rows: Vec<Line<'static>> = rows.into_iter().skip(hidden).take(most).collect();
        (rows, Place { row: place.row - hidden, column: place.column })
    }

    /// The rows of the menu, below the input.
    pub fn menu(&self, width: usize) -> Vec<Line<'static>> {
        let Some(menu) = &self.menu else { return Vec::new() };
        let list: Vec<&Candidate> = menu.candidates.list.iter().collect();
        menu::rows(&list, menu.selected, width, MENU_ROWS)
    }
}

fn key_of(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Delete => Key::Delete,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor() -> Editor {
        let completer = |typed: &str| {
            let names = ["/help", "/new", "/model"];
            let fits = names.iter().filter(|name| typed.starts_with('/') && name.starts_with(typed));
            let list = fits.map(|name| Candidate { text: (*name).to_owned(), about: "about".to_owned() }).collect();
            Candidates { begin: 0, list }
        };
        Editor::new(vec!["first".to_owned(), "second\nlines".to_owned()], Box::new(completer))
    }

    fn press(editor: &mut Editor, code: KeyCode) -> Outcome {
        editor.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn hold(editor: &mut Editor, modifier: KeyModifiers, code: KeyCode) -> Outcome {
        editor.key(KeyEvent::new(code, modifier))
    }

    fn write(editor: &mut Editor, text: &str) {
        text.chars().for_each(|character| {
            press(editor, KeyCode::Char(character));
        });
    }

    #[test]
    fn enter_sends_and_a_backslash_or_alt_continues() {
        let mut editor = editor();
        write(&mut editor, "one\\");
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Edited);
        write(&mut editor, "two");
        hold(&mut editor, KeyModifiers::ALT, KeyCode::Enter);
        write(&mut editor, "three\\\\");
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("one\ntwo\nthree\\\\".to_owned()));
        assert!(editor.is_empty());
    }

    #[test]
    fn ctrl_c_clears_the_text_and_keeps_it_in_the_history() {
        let mut editor = editor();
        write(&mut editor, "a long text");
        assert_eq!(hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Char('c')), Outcome::Edited);
        assert!(editor.is_empty());
        assert_eq!(hold(&mut editor, KeyModifiers::CONTROL, KeyCode::Char('c')), Outcome::Interrupted);
        press(&mut editor, KeyCode::Up);
        assert_eq!(editor.text(), "a long text");
    }

    #[test]
    fn earlier_inputs_are_recalled_and_the_written_text_comes_back() {
        let mut editor = editor();
        write(&mut editor, "new");
        press(&mut editor, KeyCode::Up);
        assert_eq!(editor.text(), "second\nlines");
        // The cursor moves through the lines first.
        press(&mut editor, KeyCode::Up);
        press(&mut editor, KeyCode::Up);
        assert_eq!(editor.text(), "first");
        press(&mut editor, KeyCode::Up);
        assert_eq!(editor.text(), "first");
        press(&mut editor, KeyCode::Down);
        press(&mut editor, KeyCode::Down);
        assert_eq!(editor.text(), "new");
    }

    #[test]
    fn a_long_paste_is_one_word_and_is_sent_whole() {
        let mut editor = editor();
        let pasted = "line\r\n".repeat(200);
        write(&mut editor, "see ");
        editor.paste(&pasted);
        assert_eq!(editor.rows(80, 9).0, [Line::from("> see [paste 1: 201 lines]")]);
        assert_eq!(editor.text(), format!("see {}", "line\n".repeat(200)));
        press(&mut editor, KeyCode::Backspace);
        assert_eq!(editor.text(), "see ");
        editor.paste("a\nb");
        assert_eq!(editor.text(), "see a\nb");
    }

    #[test]
    fn the_menu_follows_what_is_typed() {
        let mut editor = editor();
        write(&mut editor, "/");
        assert_eq!(editor.menu(40).len(), 3);
        write(&mut editor, "m");
        assert_eq!(editor.menu(40).len(), 1);
        press(&mut editor, KeyCode::Tab);
        assert_eq!(editor.text(), "/model");
        assert!(editor.menu(40).is_empty());
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("/model".to_owned()));
        write(&mut editor, "/");
        press(&mut editor, KeyCode::Down);
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Edited);
        assert_eq!(editor.text(), "/new");
        editor.set("");
        write(&mut editor, "/n");
        press(&mut editor, KeyCode::Esc);
        assert!(editor.menu(40).is_empty());
        assert_eq!(press(&mut editor, KeyCode::Enter), Outcome::Submitted("/n".to_owned()));
    }

    #[test]
    fn rows_are_broken_by_columns_and_the_cursor_is_where_the_next_character_will_be() {
        let mut editor = editor();
        write(&mut editor, "abcd漢字");
        let (rows, place) = editor.rows(8, 9);
        assert_eq!(rows, [Line::from("> abcd漢"), Line::from("  字")]);
        assert_eq!(place, Place { row: 1, column: 4 });
        press(&mut editor, KeyCode::Home);
        assert_eq!(editor.rows(8, 9).1, Place { row: 0, column: 2 });
        press(&mut editor, KeyCode::End);
        write(&mut editor, "ef");
        assert_eq!(editor.rows(8, 9).1, Place { row: 1, column: 6 });
        write(&mut editor, "gh");
        assert_eq!(editor.rows(8, 9).1, Place { row: 2, column: 2 });
        // Only so many rows are shown, with the cursor among them.
        let (rows, place) = editor.rows(8, 2);
        assert_eq!((rows.len(), place.row), (2, 1));
    }
}
