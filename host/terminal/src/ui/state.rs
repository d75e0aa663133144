//! What the terminal of a chat shows: what keys change in it, and how it is drawn.

use std::borrow::Cow;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::{Activity, LONGEST_DRAWING, REST, TICK, begin, restore, size};
use crate::ansi::{Colours, sequence};
use crate::editor::{Editor, Outcome};
use crate::layout::{self, printable, shortened, wrapped};
use crate::parts::{Part, joined};
use crate::picker::{Picked, Picker};
use crate::question::{Pressed, Question};
use crate::region::{Picture, Place, Region};

/// How many bytes of a text are read for one drawing. Keys wait meanwhile.
const MOST_AT_ONCE: usize = 4 << 10;
/// How often what runs is drawn again.
const FRAME: Duration = Duration::from_millis(120);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The columns between what runs and what is beside it.
const BETWEEN: &str = " - ";
/// The most rows of the input below a question.
const DRAFT_ROWS: usize = 3;
/// The rows of a question that need more than what runs and the status.
const SMALL_QUESTION: usize = 8;

pub(super) struct State {
    pub(super) region: Region<Box<dyn Write + Send>>,
    pub(super) colours: Colours,
    pub(super) editor: Editor,
    /// The list that replaces the input while the user chooses.
    pub(super) picker: Option<Picker>,
    /// The question that replaces the input, with its number.
    pub(super) asking: Option<(u64, Question)>,
    /// How many questions were asked.
    pub(super) asked: u64,
    /// The size of the terminal when it was drawn.
    pub(super) size: (u16, u16),
    /// Whether the terminal is gone: no key can be read any more, and nothing is drawn.
    pub(super) is_gone: bool,
    /// Lines that are not printed yet.
    pub(super) above: Vec<String>,
    /// The part of the streaming text that has arrived and was not processed yet.
    pub(super) waiting: String,
    pub(super) style: Style,
    /// The unfinished end of the text, and the width for which it was broken.
    pub(super) tail: Vec<Line<'static>>,
    pub(super) tail_width: usize,
    pub(super) activities: Vec<Activity>,
    /// The words beside the activities.
    pub(super) hints: Vec<Part>,
    pub(super) status: Vec<Part>,
    pub(super) is_paused: bool,
    /// What Ctrl-O prints.
    pub(super) folded: Vec<Line<'static>>,
    /// Whether Ctrl-C stops something: it does not clear the input then.
    pub(super) is_busy: bool,
    /// Whether something is not on the screen yet.
    pub(super) changed: bool,
    pub(super) drawn: Instant,
    /// When the text was read last.
    pub(super) read: Instant,
    /// How long it waits before it is read again: longer, if reading takes long.
    pub(super) pace: Duration,
}

impl State {
    /// Nothing is shown yet.
    pub(super) fn new(output: Box<dyn Write + Send>, colours: Colours, editor: Editor) -> Self {
        Self {
            region: Region::new(output, colours),
            colours,
            editor,
            picker: None,
            asking: None,
            asked: 0,
            size: (0, 0),
            is_gone: false,
            above: Vec::new(),
            waiting: String::new(),
            style: Style::new(),
            tail: Vec::new(),
            tail_width: 0,
            activities: Vec::new(),
            hints: Vec::new(),
            status: Vec::new(),
            is_paused: false,
            folded: Vec::new(),
            is_busy: false,
            changed: true,
            drawn: Instant::now(),
            read: Instant::now(),
            pace: TICK,
        }
    }

    pub(super) fn event(&mut self, event: Event) -> Option<Outcome> {
        let outcome = match event {
            Event::Key(key) if self.is_busy && self.picker.is_none() && is_control(&key, 'c') => Outcome::Interrupted,
            // Escape stops like Ctrl-C, unless something else is open that it closes.
            Event::Key(key) if key.code == KeyCode::Esc && self.escape_stops() => Outcome::Interrupted,
            Event::Key(key) if is_control(&key, 'o') => {
                self.unfold();
                Outcome::Edited
            }
            Event::Key(key) if is_control(&key, 'l') => {
                // Bytes that the terminal does not accept now are written before the next picture.
                let _ = self.region.clear_screen(usize::from(size().0));
                Outcome::Edited
            }
            #[cfg(unix)]
            Event::Key(key) if is_control(&key, 'z') => {
                self.suspend();
                Outcome::Edited
            }
            Event::Key(key) if key.kind != KeyEventKind::Release && self.asking.is_some() => self.asked_key(key),
            Event::Key(key) if key.kind != KeyEventKind::Release => match &mut self.picker {
                Some(picker) => match picker.key(key) {
                    Picked::Open => Outcome::Edited,
                    picked => {
                        self.picker = None;
                        Outcome::Picked(if let Picked::Row(at) = picked { Some(at) } else { None })
                    }
                },
                None => self.editor.key(key),
            },
            Event::Paste(text) => {
                let is_answer = self.asking.as_mut().map(|(_, question)| question.paste(&text, Instant::now()));
                if is_answer == Some(false) && self.asking.as_mut().is_some_and(|(_, question)| question.take_held()) {
                    drop(self.editor.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
                }
                match (is_answer, &mut self.picker) {
                    (Some(true), _) => {}
                    (None, Some(picker)) => picker.paste(&text),
                    _ => self.editor.paste(&text),
                }
                Outcome::Edited
            }
            Event::Resize(..) => Outcome::Edited,
            _ => return None,
        };
        let outcome = match outcome {
            Outcome::Unseen(command) => {
                self.show_command(&command);
                Outcome::Edited
            }
            outcome => outcome,
        };
        self.draw();
        (outcome != Outcome::Edited).then_some(outcome)
    }

    fn escape_stops(&self) -> bool {
        self.is_busy && self.picker.is_none() && self.asking.is_none() && !self.editor.closes_at_escape()
    }

    /// Prints what is folded. It belongs to the scrollback from now on.
    fn unfold(&mut self) {
        let columns = super::width_of(size().0);
        let lines = match std::mem::take(&mut self.folded) {
            lines if lines.is_empty() => {
                let faint = Style::new().add_modifier(Modifier::DIM);
                vec![Line::styled("nothing is folded", faint)]
            }
            lines => lines,
        };
        let rows = lines.iter().flat_map(|line| {
            let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            let indent = text.chars().take_while(|letter| *letter == ' ').count();
            let spans: Vec<Span<'_>> = line
                .spans
                .iter()
                .map(|span| Span::styled(span.content.clone(), line.style.patch(span.style)))
                .collect();
            wrapped(&spans, columns, &[], &[" ".repeat(indent).into()])
        });
        let rows: Vec<String> = rows.map(|row| sequence(&row, self.colours)).collect();
        self.above.extend(rows);
    }

    /// Shows a command as a whole before it runs.
    fn show_command(&mut self, command: &str) {
        let faint = Style::new().add_modifier(Modifier::DIM);
        let columns = super::width_of(size().0);
        let head = Line::styled("a part of this command was pasted; enter runs all of it:", faint);
        let rows = command
            .split('\n')
            .flat_map(|line| wrapped(&[printable(line).into_owned().into()], columns, &["  ".into()], &["  ".into()]));
        let rows: Vec<Line<'static>> = std::iter::once(head).chain(rows).collect();
        self.above.extend(rows.iter().map(|row| sequence(row, self.colours)));
    }

    /// A key while a question is asked.
    fn asked_key(&mut self, key: KeyEvent) -> Outcome {
        // The key answers what the user saw, so draw again first if the size has changed.
        if self.size != size() {
            self.draw();
            return Outcome::Edited;
        }
        let pressed = self.asking.as_mut().map(|(_, question)| question.key(key, Instant::now()));
        self.pressed(pressed.unwrap_or(Pressed::Open))
    }

    fn pressed(&mut self, pressed: Pressed) -> Outcome {
        match pressed {
            Pressed::Open => Outcome::Edited,
            Pressed::ToInput(keys) => {
                // The input sends nothing meanwhile.
                keys.into_iter().for_each(|key| drop(self.editor.key(key)));
                Outcome::Edited
            }
            Pressed::Answered(answer) => {
                self.asking.take().map_or(Outcome::Edited, |(number, _)| Outcome::Answered(number, answer))
            }
        }
    }

    /// Stops the process until the shell continues it. The terminal is the shell's meanwhile.
    #[cfg(unix)]
    fn suspend(&mut self) {
        self.leave();
        restore();
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        // The signal may reach another thread first. The terminal must not be switched before all of them have stopped.
        thread::sleep(REST);
        let _ = begin();
    }

    /// The next part of the text that was not read.
    pub(super) fn taken(&mut self) -> String {
        let end = self.waiting.floor_char_boundary(MOST_AT_ONCE);
        self.waiting.drain(..end).collect()
    }

    /// Shows what was read of the text since `begun`.
    pub(super) fn show(&mut self, lines: &[Line<'static>], tail: Vec<Line<'static>>, width: usize, begun: Instant) {
        let (style, colours) = (self.style, self.colours);
        self.above.extend(lines.iter().map(|line| sequence(&line.clone().style(style), colours)));
        self.tail = tail.into_iter().map(|line| line.style(style)).collect();
        self.tail_width = width;
        self.draw();
        self.read = Instant::now();
        self.pace = TICK.max(begun.elapsed() * 2);
    }

    /// Whether a part of the text waits longer than its sender would let it.
    pub(super) fn is_stalled(&self) -> bool {
        !self.waiting.is_empty() && !self.is_paused && self.read.elapsed() >= self.pace + TICK
    }

    pub(super) fn tick(&mut self) -> Option<Outcome> {
        let mut outcome = Outcome::Edited;
        if let Some((_, question)) = &mut self.asking {
            let pressed = question.tick(Instant::now());
            outcome = self.pressed(pressed);
            self.changed = true;
        }
        let moves = !self.activities.is_empty() && self.drawn.elapsed() >= FRAME;
        if self.changed || moves {
            self.draw();
        }
        (outcome != Outcome::Edited).then_some(outcome)
    }

    /// Draws what is not on the screen yet. A terminal that takes nothing at the moment is tried again with the next tick.
    pub(super) fn draw(&mut self) {
        if self.is_paused || self.is_gone {
            return;
        }
        // The rest of an earlier picture comes first, and no further one is added to it.
        let drawn = self.region.resume().and_then(|()| self.draw_newest());
        self.changed = drawn.is_err();
        if let (true, Some((_, question))) = (self.changed, &mut self.asking) {
            question.was_not_drawn();
        }
        self.drawn = Instant::now();
    }

    fn draw_newest(&mut self) -> io::Result<()> {
        self.size = size();
        let (columns, rows) = self.size;
        let picture = self.picture(usize::from(columns), usize::from(rows));
        let above = std::mem::take(&mut self.above);
        self.region.draw(&above, picture, usize::from(columns))
    }

    /// Draws what is not on the screen yet, and removes the region. A terminal that takes nothing at the moment is waited for, but
    /// not for long.
    pub(super) fn leave(&mut self) {
        let begun = Instant::now();
        let may_wait = |state: &Self| !state.is_gone && !state.is_paused && begun.elapsed() < LONGEST_DRAWING;
        self.draw();
        while self.changed && may_wait(self) {
            thread::sleep(Duration::from_millis(1));
            self.draw();
        }
        let mut cleared = self.region.clear(usize::from(size().0));
        while cleared.is_err() && may_wait(self) {
            thread::sleep(Duration::from_millis(1));
            cleared = self.region.resume();
        }
        self.region.forget();
    }

    pub(super) fn picture(&mut self, columns: usize, rows: usize) -> Picture {
        let width = columns.saturating_sub(1).max(2);
        // The region is never higher than the terminal, or its upper rows could not be drawn again.
        let room = rows.saturating_sub(1).max(1);
        if self.asking.is_some() {
            return self.picture_of_question(width, room, rows);
        }
        let faint = Style::new().add_modifier(Modifier::DIM);
        let (input, cursor) = match &self.picker {
            Some(picker) => picker.picture(width, (rows / 2).max(4)),
            None => self.editor.rows(width, (rows / 2).max(1)),
        };
        let menu = if self.picker.is_some() { Vec::new() } else { self.editor.menu(width) };
        let mut below: Vec<Line<'static>> = Vec::new();
        for activity in &self.activities {
            below.push(self.activity(activity, width));
        }
        let before_input = below.len();
        below.extend(input);
        match menu.is_empty() {
            true if !self.status.is_empty() => below.push(Line::from(joined(&self.status, width)).style(faint)),
            true => {}
            false => below.extend(menu),
        }
        let tail = self.tail_for(width);
        let left = room.saturating_sub(below.len());
        let hidden = tail.len().saturating_sub(room_for_tail(rows, below.len()).min(left));
        let mut shown: Vec<Line<'static>> = tail.iter().skip(hidden).cloned().collect();
        let row = shown.len() + before_input + cursor.row;
        shown.extend(below);
        let above = (row + 1).saturating_sub(room);
        let rows: Vec<Line<'static>> = shown.into_iter().skip(above).take(room).collect();
        Picture { rows, cursor: Some(Place { row: row - above, column: cursor.column }) }
    }

    /// Draws the activities, the question, and the input as it will be afterwards.
    fn picture_of_question(&mut self, width: usize, room: usize, rows_of_window: usize) -> Picture {
        let faint = Style::new().add_modifier(Modifier::DIM);
        let now = Instant::now();
        let is_typing = self.asking.as_ref().is_some_and(|(_, question)| question.is_typing());
        let has_draft = !self.editor.is_empty() || self.editor.is_searching();
        let (draft, place) = match (!has_draft, is_typing) {
            (true, _) => (Vec::new(), Place::default()),
            (false, true) => self.editor.rows(width, DRAFT_ROWS),
            (false, false) => {
                let (rows, place) = self.editor.rows(width, 1);
                (rows.into_iter().map(|row| row.style(faint)).collect(), place)
            }
        };
        let mut status =
            Vec::from_iter((!self.status.is_empty()).then(|| Line::from(joined(&self.status, width)).style(faint)));
        let mut activities: Vec<Line<'static>> =
            self.activities.iter().map(|activity| self.activity(activity, width)).collect();
        let least = draft.len() + status.len() + activities.len().min(1);
        if room < least + SMALL_QUESTION {
            status.clear();
            activities.clear();
        }
        let around = draft.len() + status.len() + activities.len().min(1);
        let Some((_, question)) = &mut self.asking else { return Picture::default() };
        let (asked, cursor) = question.picture(width, room.saturating_sub(around).max(1), now);
        let without = asked.len() + draft.len() + status.len();
        activities.truncate(room.saturating_sub(without));
        if without + activities.len() > rows_of_window / 2 {
            // A smaller window may move it to the scrollback, and it would stay there.
            activities.clear();
        }
        let below = activities.len() + asked.len() + draft.len() + status.len();
        let tail = self.tail_for(width);
        let left = room.saturating_sub(below);
        let hidden = tail.len().saturating_sub(room_for_tail(rows_of_window, below).min(left));
        let mut rows: Vec<Line<'static>> = tail.iter().skip(hidden).cloned().collect();
        rows.extend(activities);
        let before = rows.len();
        rows.extend(asked);
        let behind = rows.len();
        let of_draft =
            (is_typing && !draft.is_empty()).then_some(Place { row: behind + place.row, column: place.column });
        rows.extend(draft);
        rows.extend(status);
        rows.truncate(room);
        let cursor = cursor.map(|place| Place { row: before + place.row, column: place.column }).or(of_draft);
        Picture { rows, cursor: cursor.filter(|place| place.row < room) }
    }

    /// The unfinished end of the text. In a window that just became narrower its lines are broken once more.
    pub(super) fn tail_for(&self, width: usize) -> Cow<'_, [Line<'static>]> {
        if self.tail.iter().all(|line| line.width() <= width) {
            return Cow::Borrowed(&self.tail);
        }
        let broken = |line: &Line<'static>| {
            let style = line.style;
            wrapped(&line.spans, width, &[], &[]).into_iter().map(move |line| line.style(style))
        };
        Cow::Owned(self.tail.iter().flat_map(broken).collect())
    }

    fn activity(&self, activity: &Activity, width: usize) -> Line<'static> {
        let elapsed = activity.since.elapsed();
        let frame = usize::try_from(elapsed.as_millis() / FRAME.as_millis()).unwrap_or(0) % FRAMES.len();
        let elapsed = seconds(elapsed);
        let text = format!("{} {}", FRAMES[frame], printable(&activity.text));
        // The activity keeps up to half of the line. Hints are left out before the time is.
        let least = layout::width(&text).min(width / 2);
        let room = width.saturating_sub(least + BETWEEN.len());
        let time = std::iter::once(Part::new(elapsed, u8::MAX));
        let beside = joined(&time.chain(self.hints.iter().cloned()).collect::<Vec<_>>(), room);
        let text = shortened(&text, width.saturating_sub(layout::width(&beside) + BETWEEN.len()));
        Line::from(format!("{text} · {beside}")).style(Style::new().add_modifier(Modifier::DIM))
    }
}

/// The rows for the unfinished end of a text above so many others. Together they fill half of the window at most: a window of half
/// the size moves none of them to the scrollback, where they would stay.
fn room_for_tail(rows: usize, below: usize) -> usize {
    (rows / 2).saturating_sub(below).max(1)
}

fn is_control(key: &KeyEvent, character: char) -> bool {
    let is_held = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && key.code == KeyCode::Char(character) && is_held
}

/// `3 s`, `2 min 5 s`.
fn seconds(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
