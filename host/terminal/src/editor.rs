//! The input: editing over several lines, earlier inputs, pasted blocks and a menu of completions.

use std::borrow::Cow;
use std::cell::Cell;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::Line;
use ratatui_textarea::{CursorMove, DataCursor, Input, Key, TextArea};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::answer::Answer;
use crate::layout::{printable, shortened};
use crate::menu::{self, Candidate};
use crate::region::Place;
use crate::search::{Search, Searched};

/// In front of the input.
const PROMPT: &str = "> ";
/// In front of its other lines.
const MORE: &str = "  ";
/// A paste with more lines or characters is shown as one word.
const SHORT_PASTE: (usize, usize) = (5, 1_000);
/// The most rows of the menu.
const MENU_ROWS: usize = 8;
/// Stands for a typed `!` at the beginning of a command. A pasted `!` stays text. Keyboards do not produce this character and the
/// following ones, which are for private use.
const TYPED_SIGN: char = '\u{100000}';
/// The character that the user typed for it.
const SIGN: char = '!';
/// A long paste is this character in the text, or one after it: no key can change a part of it.
const FIRST_PASTE: char = '\u{100001}';
/// The width before the input was shown for the first time.
const WIDTH: usize = 80;

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The input may have changed.
    Edited,
    /// The user sends this text.
    Submitted(String),
    /// The user sends this command, which begins with a `!` that was typed.
    Command(String),
    /// The same command was not sent, because a pasted part of it was not on the screen. It is sent the next time, unless it changes.
    Unseen(String),
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
    /// The user answered the [`crate::Question`] of this number.
    Answered(u64, Answer),
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
    /// The shown earlier input, and what was written before.
    recalled: Option<(usize, Written)>,
    /// Long pastes, in the order of their characters.
    pastes: Vec<String>,
    /// Whether a part of the text was pasted.
    has_paste: bool,
    /// The command that was shown as a whole before it is sent.
    shown: Option<String>,
    /// The width at which the input was shown last, and the rows that it could have.
    width: Cell<usize>,
    most: Cell<usize>,
    completer: Completer,
    menu: Option<Menu>,
    /// Escape closed the menu for this text.
    dismissed: Option<String>,
    /// The search in earlier inputs, in place of the text.
    search: Option<Search>,
}

impl Editor {
    /// An empty input. The history has the oldest input first.
    pub fn new(history: Vec<String>, completer: Completer) -> Self {
        Self {
            area: TextArea::default(),
            history,
            recalled: None,
            pastes: Vec::new(),
            has_paste: false,
            shown: None,
            width: Cell::new(WIDTH),
            most: Cell::new(usize::MAX),
            completer,
            menu: None,
            dismissed: None,
            search: None,
        }
    }

    /// The text as it would be sent.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for character in self.area.lines().join("\n").chars() {
            match self.pasted(character) {
                Some((_, whole)) => text.push_str(whole),
                None => text.push(as_typed(character)),
            }
        }
        text
    }

    /// Whether the text is a command of the user's own: it begins with a `!` that was typed.
    fn is_command(&self) -> bool {
        self.area.lines().first().is_some_and(|line| line.starts_with(TYPED_SIGN))
    }

    /// The text, and whether it is a command.
    pub fn written(&self) -> Written {
        Written { text: self.text(), is_command: self.is_command() }
    }

    /// Whether a pasted part of the text is not on the screen as it is.
    fn hides_paste(&self) -> bool {
        let lines = self.area.lines();
        let is_folded = || lines.iter().flat_map(|line| line.chars()).any(|character| self.pasted(character).is_some());
        self.has_paste && (lines.len() > 1 || is_folded() || self.layout(self.width.get()).len() > self.most.get())
    }

    /// The paste of a character: its number from 0, and its text.
    fn pasted(&self, character: char) -> Option<(usize, &str)> {
        let at = u32::from(character).checked_sub(FIRST_PASTE.into())? as usize;
        Some((at, self.pastes.get(at)?))
    }

    /// What is shown of a grapheme.
    fn shown<'a>(&self, grapheme: &'a str) -> Cow<'a, str> {
        let first = grapheme.chars().next();
        match first.and_then(|character| self.pasted(character)) {
            None if first == Some(TYPED_SIGN) => printable(&grapheme.replace(TYPED_SIGN, "!")).into_owned().into(),
            Some((at, text)) => format!("[paste {}: {} lines]", at + 1, text.split('\n').count()).into(),
            None => printable(grapheme),
        }
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Whether the user searches earlier inputs. The text is hidden meanwhile.
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Whether Escape closes something here: the menu, or the search.
    pub fn closes_at_escape(&self) -> bool {
        self.menu.is_some() || self.search.is_some()
    }

    /// Replaces the text. It is no command.
    pub fn set(&mut self, text: &str) {
        self.pastes.clear();
        (self.has_paste, self.shown) = (false, None);
        self.fill(own(text));
    }

    /// Replaces what was written. A command stays one.
    pub fn set_written(&mut self, written: &Written) {
        self.set(&written.text);
        self.has_paste = written.is_command;
        self.sign(written.is_command);
    }

    /// Makes the text a command, if it begins with the sign.
    fn sign(&mut self, is_command: bool) {
        if let Some(rest) = self.text().strip_prefix(SIGN).filter(|_| is_command) {
            self.fill(format!("{TYPED_SIGN}{}", own(rest)));
        }
    }

    fn fill(&mut self, text: String) {
        self.area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        (self.menu, self.search) = (None, None);
    }

    /// Takes the text out.
    pub fn take(&mut self) -> Written {
        let written = self.written();
        self.set("");
        self.recalled = None;
        written
    }

    /// Remembers an input for the history. One that begins with `!` is a command there.
    pub fn remember(&mut self, text: &str) {
        if self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
        }
    }

    /// A pasted text. A long one is shown as one word.
    pub fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            return search.paste(text, &self.history);
        }
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.has_paste |= !text.is_empty();
        let is_short = text.split('\n').count() <= SHORT_PASTE.0 && text.chars().count() <= SHORT_PASTE.1;
        let number = u32::try_from(self.pastes.len()).unwrap_or(u32::MAX);
        match u32::from(FIRST_PASTE).checked_add(number).and_then(char::from_u32).filter(|_| !is_short) {
            Some(character) => {
                self.pastes.push(text);
                self.area.insert_char(character);
            }
            None => {
                self.area.insert_str(own(&text));
            }
        }
        self.menu = None;
    }

    /// A key.
    pub fn key(&mut self, event: KeyEvent) -> Outcome {
        let (control, alt) =
            (event.modifiers.contains(KeyModifiers::CONTROL), event.modifiers.contains(KeyModifiers::ALT));
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        if let Some(search) = self.search.as_mut().filter(|_| event.code != KeyCode::BackTab) {
            match search.key(event, &self.history) {
                Searched::Open => {}
                Searched::Taken(at) => self.show_earlier(at),
                Searched::Left => self.search = None,
            }
            return Outcome::Edited;
        }
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
                let text = self.take().as_line();
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
                    return self.submit();
                }
            }
            KeyCode::Up if !control && !alt => {
                if !self.move_row(true) {
                    self.recall(true);
                }
            }
            KeyCode::Down if !control && !alt => {
                if !self.move_row(false) {
                    self.recall(false);
                }
            }
            KeyCode::Char('p') if control => self.recall(true),
            KeyCode::Char('n') if control => self.recall(false),
            KeyCode::Char('r') if control => {
                if !self.history.is_empty() {
                    (self.menu, self.search) = (None, Some(Search::begin(&self.history)));
                }
                return Outcome::Edited;
            }
            KeyCode::Char('u') if control => {
                self.area.delete_line_by_head();
            }
            // Ctrl-_ and Ctrl-/ are the same byte, which is read as Ctrl-7.
            KeyCode::Char('_' | '/' | '7') if control => {
                self.area.undo();
            }
            // Keys for pages and for a selection do nothing: the editor has neither.
            KeyCode::Char('v' | 'x') if control => {}
            KeyCode::Char('v') if alt => {}
            KeyCode::Backspace if control || alt => {
                self.area.delete_word();
            }
            KeyCode::Char('h') if control => self.backspace(),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete if !control && !alt => self.delete(),
            KeyCode::Left if !control && !alt => {
                let before = self.before_cursor();
                self.step(CursorMove::Back, length(before.graphemes(true).next_back()));
            }
            KeyCode::Right if !control && !alt => {
                let behind = self.behind_cursor();
                self.step(CursorMove::Forward, length(behind.graphemes(true).next()));
            }
            KeyCode::Left => self.area.move_cursor(CursorMove::WordBack),
            KeyCode::Right => self.area.move_cursor(CursorMove::WordForward),
            KeyCode::Char(SIGN) if !control && !alt && self.area.cursor() == DataCursor(0, 0) => {
                self.area.insert_char(TYPED_SIGN);
            }
            KeyCode::Char(character) if !control && !alt => self.area.insert_char(own_character(character)),
            code => {
                if let Some(key) = key_of(code) {
                    // With Shift it would select, which is not shown.
                    self.area.input(Input { key, ctrl: control, alt, shift: false });
                }
            }
        }
        self.suggest();
        Outcome::Edited
    }

    /// Sends the text. A command whose pasted part the user did not see is written out first.
    fn submit(&mut self) -> Outcome {
        let Written { text, is_command } = self.written();
        if is_command && self.hides_paste() && self.shown.as_ref() != Some(&text) {
            self.pastes.clear();
            self.fill(own(&text));
            self.sign(true);
            self.shown = Some(text.clone());
            return Outcome::Unseen(text);
        }
        drop(self.take());
        if is_command { Outcome::Command(text) } else { Outcome::Submitted(text) }
    }

    /// Whether a single backslash is before the cursor at the end.
    fn is_continued(&self) -> bool {
        let text = self.before_cursor();
        let is_at_end = self.area.cursor().0 + 1 == self.area.lines().len();
        is_at_end && text.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1
    }

    /// Removes what people see as one character before the cursor.
    fn backspace(&mut self) {
        let before = self.before_cursor();
        // At the begin of a line its line feed is removed.
        let length = length(before.graphemes(true).next_back());
        (0..length).for_each(|_| {
            self.area.delete_char();
        });
    }

    /// The same behind the cursor.
    fn delete(&mut self) {
        let behind = self.behind_cursor();
        let length = length(behind.graphemes(true).next());
        (0..length).for_each(|_| {
            self.area.delete_next_char();
        });
    }

    /// Moves over a grapheme, or over the end of a line.
    fn step(&mut self, way: CursorMove, length: usize) {
        (0..length).for_each(|_| self.area.move_cursor(way));
    }

    /// Moves to the row above or below, if there is one: a long line has several.
    fn move_row(&mut self, up: bool) -> bool {
        let rows = self.layout(self.width.get());
        let Some((now, column)) = self.place_in(&rows) else { return false };
        let next = if up { now.checked_sub(1) } else { Some(now + 1) };
        let Some(row) = next.and_then(|next| rows.get(next)) else { return false };
        let (mut at, mut used) = (row.begin, 0);
        let is_last = rows.get(next.map_or(0, |next| next + 1)).is_none_or(|after| after.line != row.line);
        for (number, cell) in row.cells.iter().enumerate() {
            // Behind the last cell of a broken row is the next row.
            if used + cell.width > column || (number + 1 == row.cells.len() && !is_last) {
                break;
            }
            used += cell.width;
            at += cell.characters;
        }
        let jump = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(jump(row.line), jump(at)));
        true
    }

    /// The rows of the text, broken by columns.
    fn layout(&self, width: usize) -> Vec<Row> {
        let room = room(width);
        let mut rows = Vec::new();
        for (line, text) in self.area.lines().iter().enumerate() {
            let mut row = Row { line, ..Row::default() };
            let mut at = 0;
            for grapheme in text.graphemes(true) {
                // The word of a paste may be wider than a narrow terminal.
                let shown = shortened(&self.shown(grapheme), room);
                let (width, characters) = (shown.width(), grapheme.chars().count());
                if row.width + width > room && row.width > 0 {
                    rows.push(std::mem::replace(&mut row, Row { line, begin: at, ..Row::default() }));
                }
                row.text.push_str(&shown);
                row.width += width;
                row.cells.push(Characters { characters, width });
                at += characters;
            }
            // The cursor is behind the last character, and needs a place.
            let is_full = row.width >= room && self.area.cursor() == DataCursor(line, at);
            rows.push(row);
            if is_full {
                rows.push(Row { line, begin: at, ..Row::default() });
            }
        }
        rows
    }

    /// The row of the cursor, and the columns before it in this row.
    fn place_in(&self, rows: &[Row]) -> Option<(usize, usize)> {
        let DataCursor(line, character) = self.area.cursor();
        let row = rows.iter().rposition(|row| row.line == line && row.begin <= character)?;
        let (mut at, mut used) = (rows[row].begin, 0);
        for cell in &rows[row].cells {
            if at >= character {
                break;
            }
            at += cell.characters;
            used += cell.width;
        }
        Some((row, used))
    }

    fn before_cursor(&self) -> String {
        let cursor = self.area.cursor();
        self.area
            .lines()
            .get(cursor.0)
            .map(|line| line.chars().take(cursor.1).map(as_typed).collect())
            .unwrap_or_default()
    }

    fn behind_cursor(&self) -> String {
        let cursor = self.area.cursor();
        self.area.lines().get(cursor.0).map(|line| line.chars().skip(cursor.1).collect()).unwrap_or_default()
    }

    /// Shows the next earlier input, or the next later one.
    fn recall(&mut self, earlier: bool) {
        let at = self.recalled.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let next = if earlier { at.checked_sub(1) } else { Some(at + 1) };
        if let Some(next) = next.filter(|next| *next <= self.history.len()) {
            self.show_earlier(next);
        }
    }

    /// Shows this earlier input; behind the last one is the text that was written before.
    fn show_earlier(&mut self, at: usize) {
        let written = self.recalled.take().map_or_else(|| self.written(), |(_, written)| written);
        match self.history.get(at).cloned() {
            Some(text) => {
                self.set(&text);
                self.sign(true);
            }
            None => self.set_written(&written),
        }
        self.recalled = (at < self.history.len()).then_some((at, written));
    }

    /// Shows completions that were not known when the text was written.
    pub fn look_again(&mut self) {
        if self.menu.is_none() && self.search.is_none() {
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
            // A name that is typed in full is selected, even if a longer name comes first.
            let typed = self.before_cursor();
            let typed = typed.get(candidates.begin..).unwrap_or_default();
            let exact = candidates.list.iter().position(|candidate| candidate.text.trim_end() == typed);
            self.menu = Some(Menu { candidates, selected: exact.unwrap_or(0) });
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
        // After a complete name, no menu is needed.
        if !self.changes_with_completion() {
            self.menu = None;
        }
    }

    /// The rows of the input, at most so many, and the place of the cursor.
    pub fn rows(&self, width: usize, most: usize) -> (Vec<Line<'static>>, Place) {
        self.width.set(width);
        self.most.set(most);
        if let Some(search) = &self.search {
            return search.picture(&self.history, width, most);
        }
        let rows = self.layout(width);
        let (row, column) = self.place_in(&rows).unwrap_or_default();
        let most = most.max(1);
        let hidden = (row + 1).saturating_sub(most);
        let marked = |(at, row): (usize, &Row)| {
            let mark = if at == 0 { PROMPT } else { MORE };
            Line::from(format!("{mark}{}", row.text))
        };
        let shown = rows.iter().enumerate().skip(hidden).take(most).map(marked).collect();
        (shown, Place { row: row - hidden, column: PROMPT.len() + column })
    }

    /// The rows of the menu, below the input.
    pub fn menu(&self, width: usize) -> Vec<Line<'static>> {
        let Some(menu) = &self.menu else { return Vec::new() };
        let list: Vec<&Candidate> = menu.candidates.list.iter().collect();
        menu::rows(&list, menu.selected, width, MENU_ROWS)
    }
}

/// What the user has written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// The text as it would be sent.
    pub text: String,
    /// Whether it begins with a `!` that was typed.
    pub is_command: bool,
}

impl Written {
    /// The text as a line of the history and of a chat: one that begins with `!` is a command there, so other texts have a space in
    /// front.
    pub fn as_line(&self) -> String {
        match self.text.starts_with(SIGN) && !self.is_command {
            true => format!(" {}", self.text),
            false => self.text.clone(),
        }
    }
}

/// A row of the input.
#[derive(Default)]
struct Row {
    /// The line that it is a part of.
    line: usize,
    /// The character of the line that it begins with.
    begin: usize,
    text: String,
    width: usize,
    cells: Vec<Characters>,
}

/// The characters of one grapheme, and its columns.
struct Characters {
    characters: usize,
    width: usize,
}

/// The columns for text beside the prompt.
fn room(width: usize) -> usize {
    width.saturating_sub(PROMPT.len()).max(2)
}

/// The characters of a grapheme, or of the line feed that is there without one.
fn length(grapheme: Option<&str>) -> usize {
    grapheme.map_or(1, |grapheme| grapheme.chars().count())
}

/// The character that the user typed.
fn as_typed(character: char) -> char {
    if character == TYPED_SIGN { SIGN } else { character }
}

/// A text in which no character stands for a paste or a sign.
fn own(text: &str) -> String {
    text.chars().map(own_character).collect()
}

fn own_character(character: char) -> char {
    if character >= TYPED_SIGN { char::REPLACEMENT_CHARACTER } else { character }
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
mod tests;
