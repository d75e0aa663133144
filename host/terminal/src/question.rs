//! A question in place of the input: its text, what answers it, and when an answer counts.
//!
//! What the user was typing when the question appeared goes on into the input: a key answers only after a moment without keys,
//! and only if no other key follows at once. An answer that agrees counts only after every row of the text was on the screen.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::answer::Answer;
use crate::editor::{Candidates, Editor, Outcome};
use crate::layout::{printable, shortened, width, wrapped};
use crate::region::Place;

/// How long no key must be pressed before a key answers: a user in the middle of a word must not answer by accident.
const REST: Duration = Duration::from_millis(400);
/// Keys within this time of one another are pasted or typed text, and no answer.
const BURST: Duration = Duration::from_millis(30);
/// The fewest columns in which a question can be read.
const NARROWEST: usize = 10;
/// Most rows of a line that is typed as an answer.
const LINE_ROWS: usize = 3;
/// Between two keys of a prompt.
const BETWEEN: &str = "  ";

/// Says that a key came before it counts.
const AGAIN: &str = "that key came too soon: press it again";

/// The rows of a text, none wider than so many columns.
pub type Rows = Box<dyn Fn(usize) -> Vec<Line<'static>> + Send>;

/// Letters that answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The letters in words.
    pub prompt: String,
    /// The same while a part of the text is hidden.
    pub to_view: String,
    /// Shown when a letter of `yes` is pressed too early.
    pub view_first: String,
    /// Shown while the terminal is too small to read the text.
    pub too_small: String,
    /// Letters that count only after all of the text was shown.
    pub yes: Vec<char>,
    /// Letters that always count.
    pub no: Vec<char>,
    /// A letter that always counts and is answered with a line, and the words in front of the line.
    pub with_line: Option<(char, String)>,
}

/// Answers that are offered, and a line for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices {
    /// The offered answers.
    pub list: Vec<String>,
    /// Whether any other text is an answer.
    pub is_open: bool,
    /// Whether a typed line is a value, such as a number, so that it names a choice only by its mark or its exact words.
    pub takes_values: bool,
    /// How to answer, in a few words.
    pub hint: String,
}

/// The way in which the question is answered.
enum Way {
    Keys(Keys),
    Choices(Choices),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The user may still be typing: all keys go to the input.
    Typing,
    /// Letters answer.
    Keys,
    /// A line answers.
    Line,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// Nothing is decided.
    Open,
    /// These keys belong to the input.
    ToInput(Vec<KeyEvent>),
    Answered(Answer),
}

/// A question in place of the input.
pub struct Question {
    text: Rows,
    /// A text behind it, which need not be read, and whether the user wants to see it.
    more: Option<Rows>,
    shows_more: bool,
    way: Way,
    phase: Phase,
    /// When the last key was pressed that must not answer.
    since: Instant,
    /// A key that answers unless another one follows at once.
    pending: Option<(KeyEvent, Instant)>,
    /// Whether Enter was pressed while the user was typing: it sends nothing.
    held: bool,
    line: Editor,
    selected: Option<usize>,
    /// Whether the user agreed before everything was shown.
    is_early: bool,
    /// Whether a key that answers came before it counts.
    is_too_soon: bool,
    /// The width for which `rows` are; 0 if they are not on the screen.
    columns: usize,
    rows: Vec<Line<'static>>,
    /// How many of them must be read.
    needed: usize,
    /// The first row on the screen.
    top: usize,
    /// The rows of the text on the screen.
    room: usize,
    /// The rows that were on the screen so far, from the first one on without a gap.
    seen: usize,
    is_too_small: bool,
}

impl Question {
    /// A question that letters answer.
    pub fn with_keys(text: Rows, keys: Keys) -> Self {
        Self::new(text, Way::Keys(keys))
    }

    /// A question that a choice or a typed line answers.
    pub fn with_choices(text: Rows, choices: Choices) -> Self {
        Self::new(text, Way::Choices(choices))
    }

    /// Adds a second text, which need not be read before an answer counts. The key `v` shows it.
    pub fn with_more(self, more: Rows) -> Self {
        Self { more: Some(more), ..self }
    }

    fn new(text: Rows, way: Way) -> Self {
        Self {
            text,
            more: None,
            shows_more: false,
            way,
            phase: Phase::Typing,
            since: Instant::now(),
            pending: None,
            held: false,
            line: Editor::new(Vec::new(), Box::new(|_| Candidates::default())),
            selected: None,
            is_early: false,
            is_too_soon: false,
            columns: 0,
            rows: Vec::new(),
            needed: 0,
            top: 0,
            room: 0,
            seen: 0,
            is_too_small: false,
        }
    }

    /// Counts the time without keys from now on.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// Whether keys go to the input.
    pub(crate) fn is_typing(&self) -> bool {
        self.phase == Phase::Typing
    }

    /// Whether something changes without a key.
    pub(crate) fn is_waiting(&self, now: Instant) -> bool {
        self.is_typing() || self.pending.is_some() || now.duration_since(self.since) < REST
    }

    /// Whether all of the text was on the screen that must be read.
    fn is_shown(&self) -> bool {
        self.columns > 0 && !self.is_too_small && self.seen >= self.needed
    }

    /// The rows of the text behind the first one, if the user wants to see it.
    fn rows_of_more(&self, columns: usize) -> Vec<Line<'static>> {
        let more = self.more.as_ref().filter(|_| self.shows_more);
        more.map(|more| fitting(more(columns), columns)).unwrap_or_default()
    }

    /// The last picture did not reach the screen: nothing counts as shown.
    pub(crate) fn was_not_drawn(&mut self) {
        self.columns = 0;
    }

    /// Applies the changes that only the time since the last key causes.
    pub(crate) fn tick(&mut self, now: Instant) -> Pressed {
        if self.is_typing() && now.duration_since(self.since) >= REST {
            self.phase = if matches!(self.way, Way::Keys(_)) { Phase::Keys } else { Phase::Line };
        }
        if let Some((key, _)) = self.pending.take_if(|(_, at)| now.duration_since(*at) >= BURST) {
            return self.counts(key);
        }
        Pressed::Open
    }

    /// A key that no other one followed.
    fn counts(&mut self, key: KeyEvent) -> Pressed {
        let Way::Keys(keys) = &self.way else { return Pressed::Open };
        let KeyCode::Char(letter) = key.code else { return Pressed::Answered(Answer::Left) };
        let letter = letter.to_ascii_lowercase();
        if keys.with_line.as_ref().is_some_and(|(key, _)| *key == letter) {
            self.phase = Phase::Line;
        } else if keys.no.contains(&letter) || self.is_shown() {
            return Pressed::Answered(Answer::Key(letter));
        } else {
            self.is_early = true;
        }
        Pressed::Open
    }

    pub(crate) fn key(&mut self, key: KeyEvent, now: Instant) -> Pressed {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Pressed::Answered(Answer::Stopped);
        }
        match (self.phase, &self.way) {
            (Phase::Typing, _) => self.typed(vec![key], now),
            (Phase::Keys, _) => self.letter(key, now),
            (Phase::Line, Way::Keys(_)) => self.line_after_letter(key, now),
            (Phase::Line, Way::Choices(_)) => self.choice(key),
        }
    }

    /// A pasted text. True if it belongs to the answer, false if to the input.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) -> bool {
        if self.phase == Phase::Line {
            self.line.paste(text);
            return true;
        }
        self.pending = None;
        (self.phase, self.since) = (Phase::Typing, now);
        false
    }

    /// Whether a line break belongs before a text that goes to the input.
    pub(crate) fn take_held(&mut self) -> bool {
        std::mem::take(&mut self.held)
    }

    /// Keys of the input. Enter sends nothing now, and is a line break if more follows.
    fn typed(&mut self, keys: Vec<KeyEvent>, now: Instant) -> Pressed {
        (self.phase, self.since) = (Phase::Typing, now);
        let mut typed = Vec::new();
        for key in keys {
            match key.code {
                KeyCode::Enter => self.held = true,
                // It takes back the line break that is not there yet.
                KeyCode::Backspace if std::mem::take(&mut self.held) => {}
                KeyCode::Char(_) if std::mem::take(&mut self.held) => {
                    typed.extend([KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT), key]);
                }
                _ => typed.push(key),
            }
        }
        Pressed::ToInput(typed)
    }

    fn letter(&mut self, key: KeyEvent, now: Instant) -> Pressed {
        let Way::Keys(keys) = &self.way else { return Pressed::Open };
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if let Some((earlier, _)) = self.pending.take() {
            return self.typed(vec![earlier, key], now);
        }
        (self.is_early, self.is_too_soon) = (false, false);
        let last = self.rows.len().saturating_sub(self.room);
        let is_viewing = self.top > 0 && !(self.is_shown() && self.seen >= self.rows.len());
        let top = match key.code {
            KeyCode::Char('v' | 'V') if is_plain && self.more.is_some() && !self.shows_more && self.is_shown() => {
                self.shows_more = true;
                self.rows.extend(self.rows_of_more(self.columns));
                (self.top, self.since) = (self.needed, now);
                return Pressed::Open;
            }
            KeyCode::Char('q' | 'Q') if is_plain && self.shows_more => 0,
            KeyCode::Esc => return Pressed::Answered(Answer::Left),
            KeyCode::Char('d') if !is_plain => return Pressed::Answered(Answer::Left),
            KeyCode::Char('q') if is_viewing => return Pressed::Answered(Answer::Left),
            KeyCode::Char(' ' | 'v' | 'V') if is_plain => self.top + self.room,
            KeyCode::Enter if is_viewing => self.top + self.room,
            KeyCode::PageDown => self.top + self.room,
            KeyCode::PageUp => self.top.saturating_sub(self.room),
            KeyCode::Down => self.top + 1,
            KeyCode::Up => self.top.saturating_sub(1),
            KeyCode::Home => 0,
            KeyCode::End => last,
            KeyCode::Enter | KeyCode::Char(_) | KeyCode::Backspace if now.duration_since(self.since) < REST => {
                // A key that turned a page is perhaps not the last one.
                (self.since, self.is_too_soon) = (now, true);
                return Pressed::Open;
            }
            KeyCode::Enter => {
                self.pending = Some((key, now));
                return Pressed::Open;
            }
            KeyCode::Char(letter) if is_plain => {
                let letter = letter.to_ascii_lowercase();
                let has_line = keys.with_line.as_ref().is_some_and(|(key, _)| *key == letter);
                if has_line || keys.yes.contains(&letter) || keys.no.contains(&letter) {
                    self.pending = Some((key, now));
                    return Pressed::Open;
                }
                return self.typed(vec![key], now);
            }
            KeyCode::Backspace => return self.typed(vec![key], now),
            _ => return Pressed::Open,
        };
        (self.top, self.since) = (top.min(last), now);
        Pressed::Open
    }

    /// A key of the line behind a letter.
    fn line_after_letter(&mut self, key: KeyEvent, now: Instant) -> Pressed {
        match key.code {
            KeyCode::Esc => (self.phase, self.since) = (Phase::Keys, now),
            _ => match self.line.key(key) {
                Outcome::Submitted(text) | Outcome::Command(text) | Outcome::Unseen(text) => {
                    return Pressed::Answered(Answer::Line(text));
                }
                Outcome::Ended => return Pressed::Answered(Answer::Left),
                _ => {}
            },
        }
        Pressed::Open
    }

    /// A key of a question with choices.
    fn choice(&mut self, key: KeyEvent) -> Pressed {
        let Way::Choices(choices) = &self.way else { return Pressed::Open };
        let (count, is_empty) = (choices.list.len(), self.line.is_empty());
        let last = count.checked_sub(1);
        match key.code {
            KeyCode::Up if is_empty => self.selected = self.selected.and_then(|at| at.checked_sub(1)).or(last),
            KeyCode::Down if is_empty => {
                self.selected = self.selected.map(|at| at + 1).filter(|at| *at < count).or(last.map(|_| 0));
            }
            KeyCode::PageDown => {
                self.top = (self.top + self.room).min(self.rows.len().saturating_sub(self.room));
            }
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.room),
            KeyCode::Esc => {
                self.line.take();
                self.selected = None;
            }
            KeyCode::Enter if is_empty => {
                return self.selected.map_or(Pressed::Open, |at| Pressed::Answered(Answer::Choice(at)));
            }
            KeyCode::Enter if !choices.is_open && count > 0 && self.meant().is_none() => {}
            _ => {
                let meant = self.meant();
                if let Outcome::Submitted(text) | Outcome::Command(text) | Outcome::Unseen(text) = self.line.key(key) {
                    let text = text.trim();
                    return match meant {
                        Some(at) => Pressed::Answered(Answer::Choice(at)),
                        None if text.is_empty() => Pressed::Open,
                        None => Pressed::Answered(Answer::Line(text.to_owned())),
                    };
                }
            }
        }
        Pressed::Open
    }

    /// The choice that the typed line names by its number or its words; without a line, the selected one.
    fn meant(&self) -> Option<usize> {
        let Way::Choices(choices) = &self.way else { return None };
        if self.line.is_empty() {
            return self.selected;
        }
        named_choice(&self.line.text(), &choices.list, choices.takes_values)
    }

    /// The rows of the question, at most so many, and the place of the cursor if the question has it. What these rows show counts
    /// as shown from now on.
    pub(crate) fn picture(&mut self, columns: usize, most: usize, now: Instant) -> (Vec<Line<'static>>, Option<Place>) {
        let faint = Style::new().add_modifier(Modifier::DIM);
        if columns != self.columns {
            self.rows = fitting((self.text)(columns), columns);
            self.needed = self.rows.len();
            self.rows.extend(self.rows_of_more(columns));
            // The rows are new, so the user has not read them yet.
            (self.since, self.pending) = (now, None);
            (self.columns, self.top, self.seen) = (columns, 0, 0);
        }
        let reserved = self.reserved(columns, most);
        let room = most.saturating_sub(reserved);
        let is_long = self.rows.len() > room;
        self.room = if is_long { room.saturating_sub(1) } else { self.rows.len() };
        self.is_too_small = columns + 1 < NARROWEST || (self.room == 0 && !self.rows.is_empty());
        self.top = self.top.min(self.rows.len() - self.room);
        if self.top <= self.seen {
            self.seen = self.seen.max(self.top + self.room);
        }
        let mut rows: Vec<Line<'static>> = self.rows.iter().skip(self.top).take(self.room).cloned().collect();
        if is_long && self.room > 0 {
            let (first, last) = (self.top + 1, self.top + self.room);
            let turn = if matches!(self.way, Way::Keys(_)) { "space" } else { "page down" };
            let place = format!("rows {first} to {last} of {}", self.rows.len());
            let place = if last < self.rows.len() { format!("{place} · {turn} for more") } else { place };
            let place = if self.is_too_soon { AGAIN.to_owned() } else { place };
            rows.push(Line::styled(shortened(&place, columns), faint));
        }
        let (foot, cursor) = self.foot(columns, most, now);
        let above = rows.len();
        rows.extend(foot);
        rows.truncate(most.max(1));
        let last = rows.len() - 1;
        let cursor = cursor.map(|place| Place { row: (above + place.row).min(last), column: place.column });
        (rows, cursor.filter(|_| !self.is_typing()))
    }

    /// The rows that the text always leaves free below it.
    fn reserved(&self, columns: usize, most: usize) -> usize {
        match &self.way {
            Way::Keys(keys) => {
                let prompts =
                    [&keys.prompt, &keys.to_view, &keys.view_first].map(|prompt| prompted(prompt, columns).len());
                let line = if self.phase == Phase::Line { self.line.rows(columns, LINE_ROWS).0.len() + 1 } else { 0 };
                prompts.into_iter().max().unwrap_or(0).max(line)
            }
            Way::Choices(choices) => self.choices(choices, columns, most).0.len(),
        }
    }

    /// What is below the text.
    fn foot(&self, columns: usize, most: usize, now: Instant) -> (Vec<Line<'static>>, Option<Place>) {
        let keys = match &self.way {
            Way::Keys(keys) => keys,
            Way::Choices(choices) => return self.choices(choices, columns, most),
        };
        if let (Phase::Line, Some((_, words))) = (self.phase, &keys.with_line) {
            let (line, place) = self.line.rows(columns, LINE_ROWS);
            let mut rows = vec![Line::from(shortened(words.trim_end(), columns))];
            rows.extend(line);
            return (rows, Some(Place { row: place.row + 1, column: place.column }));
        }
        let prompt = match (self.is_too_small, self.is_shown(), self.is_early) {
            (true, ..) => &keys.too_small,
            (_, true, _) => &keys.prompt,
            (_, _, true) => &keys.view_first,
            (_, _, false) => &keys.to_view,
        };
        let counts = self.phase == Phase::Keys && now.duration_since(self.since) >= REST;
        let style = if counts { Style::new() } else { Style::new().add_modifier(Modifier::DIM) };
        let rows = prompted(prompt, columns);
        let column = rows.last().map_or(0, |row| width(row) + 1).min(columns.saturating_sub(1));
        let place = Place { row: rows.len().saturating_sub(1), column };
        (rows.into_iter().map(|row| Line::styled(row, style)).collect(), Some(place))
    }

    /// The offered answers, the line, and how to answer.
    fn choices(&self, choices: &Choices, columns: usize, most: usize) -> (Vec<Line<'static>>, Option<Place>) {
        let faint = Style::new().add_modifier(Modifier::DIM);
        let meant = self.meant();
        let (mut rows, mut chosen) = (Vec::new(), 0..0);
        for (at, choice) in choices.list.iter().enumerate() {
            let is_meant = meant == Some(at);
            let style = if is_meant { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
            let mark = format!("  {} ", choice_mark(at, &choices.list, choices.takes_values));
            let indent = " ".repeat(mark.len());
            let text = Span::styled(printable(choice).into_owned(), style);
            let begin = rows.len();
            rows.extend(wrapped(&[text], columns, &[mark.into()], &[indent.into()]));
            if is_meant {
                chosen = begin..rows.len();
            }
        }
        // A long list scrolls, with the chosen row in sight.
        let (list, all) = ((most / 2).max(1), rows.len());
        let hidden = chosen.end.saturating_sub(list).min(chosen.start);
        let mut rows: Vec<Line<'static>> = rows.into_iter().skip(hidden).take(list).collect();
        if all > list {
            let place = format!("  rows {} to {} of {all} · up and down move", hidden + 1, hidden + rows.len());
            rows.push(Line::styled(shortened(&place, columns), faint));
        }
        let (line, place) = self.line.rows(columns, LINE_ROWS);
        let place = Place { row: rows.len() + place.row, column: place.column };
        rows.extend(line);
        rows.extend(wrapped(&[Span::styled(choices.hint.clone(), faint)], columns, &[], &[]));
        (rows, Some(place))
    }
}

/// A row that is too wide is broken, and never cut.
fn fitting(rows: Vec<Line<'static>>, columns: usize) -> Vec<Line<'static>> {
    rows.into_iter()
        .flat_map(|row| match row.width() > columns {
            true => wrapped(&row.spans, columns, &[], &[]).into_iter().map(|line| line.style(row.style)).collect(),
            false => vec![row],
        })
        .collect()
}

/// Whether letters mark the choices in place of numbers: where a typed number is a value, or a choice itself begins with a digit.
pub fn are_lettered(choices: &[String], takes_values: bool) -> bool {
    takes_values || choices.iter().any(|choice| choice.trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

/// The mark before a choice: `1)`, or `a)` if numbers are answers themselves.
pub fn choice_mark(at: usize, choices: &[String], takes_values: bool) -> String {
    if !are_lettered(choices, takes_values) {
        return format!("{})", at + 1);
    }
    let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap_or(0));
    match at.checked_sub(26) {
        Some(beyond) => format!("{}{})", letter(beyond / 26), letter(beyond)),
        None => format!("{})", letter(at)),
    }
}

/// The choice that a line names by its mark or its words. Where a typed line is a value, a mark needs its bracket, and the words
/// must be exact.
pub fn named_choice(line: &str, choices: &[String], takes_values: bool) -> Option<usize> {
    let line = line.trim();
    if are_lettered(choices, takes_values) {
        let exact = choices.iter().position(|choice| choice.trim() == line);
        let marked = |at: usize| {
            let mark = choice_mark(at, choices, takes_values);
            line.eq_ignore_ascii_case(&mark) || (!takes_values && line.eq_ignore_ascii_case(mark.trim_end_matches(')')))
        };
        return exact.or_else(|| (0..choices.len()).find(|at| marked(*at)));
    }
    let number = line.trim_end_matches([')', '.']).parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let named = || choices.iter().position(|choice| choice.to_lowercase() == line.to_lowercase());
    number.filter(|at| *at < choices.len()).or_else(named)
}

/// The rows of a prompt, broken between its keys.
fn prompted(prompt: &str, columns: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for part in prompt.trim_end().split(BETWEEN) {
        match rows.last_mut() {
            Some(row) if width(row) + BETWEEN.len() + width(part) < columns => {
                row.push_str(BETWEEN);
                row.push_str(part);
            }
            _ => rows.extend(wrapped(&[part.to_owned().into()], columns, &[], &[]).iter().map(ToString::to_string)),
        }
    }
    rows
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
