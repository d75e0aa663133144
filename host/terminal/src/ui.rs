//! The terminal while a chat runs: a thread reads keys and draws, so that neither waits for the session.

mod state;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use crossterm::{execute, terminal};
use ratatui_core::style::Style;
use ratatui_core::text::Line;

use self::state::State;
use crate::ansi::{Colours, sequence};
use crate::answer::Answer;
use crate::clipboard::{NotCopied, copy};
use crate::editor::{Candidates, Completer, Editor, Outcome, Written};
use crate::markdown::Stream;
use crate::parts::Part;
use crate::picker::Picker;
use crate::question::Question;

/// How long the thread waits for a key before it looks for something to draw.
const TICK: Duration = Duration::from_millis(16);
/// This wait is longer while nothing runs and nothing changes.
const REST: Duration = Duration::from_millis(100);
/// The sender waits while this many bytes are unread.
const MOST_WAITING: usize = 64 << 10;
/// The size of a terminal that does not know its own.
const SIZE: (u16, u16) = (80, 24);

/// Something that runs, with the time since it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// What it is.
    pub text: String,
    /// Since when.
    pub since: Instant,
}

/// The state that both threads use.
struct Shared {
    state: Mutex<State>,
    /// The text that streams. It is locked before the state, and read while the state is free: code with colours takes long, and
    /// keys must not wait for that.
    text: Mutex<Stream>,
    /// Held while keys are read.
    reading: Mutex<()>,
    is_closed: AtomicBool,
}

/// The terminal of a chat. Dropping it restores the terminal.
pub struct Ui {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Lists to choose from, outside of a chat. Dropping it restores the terminal.
pub struct Chooser {
    ui: Ui,
    picked: mpsc::Receiver<Option<usize>>,
}

impl Chooser {
    /// Takes over the terminal.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be switched to single keys.
    pub fn open(colours: Colours) -> io::Result<Self> {
        let (send, picked) = mpsc::channel();
        let report = move |outcome| match outcome {
            Outcome::Picked(row) => drop(send.send(row)),
            // The terminal is gone.
            Outcome::Ended => drop(send.send(None)),
            _ => {}
        };
        let ui = Ui::open(colours, Vec::new(), Box::new(|_| Candidates::default()), report)?;
        Ok(Self { ui, picked })
    }

    /// Waits until the user has chosen a row; `None` if the user wants none, or the terminal is gone.
    pub fn pick(&self, picker: Picker) -> Option<usize> {
        self.ui.pick(picker);
        self.picked.recv().unwrap_or_default()
    }
}

/// While it lives, the terminal is as it was before, and somebody else reads its keys.
pub struct Paused<'a> {
    ui: &'a Ui,
}

impl Ui {
    /// Takes over the terminal. What the user does is reported from a thread of its own.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be switched to single keys.
    pub fn open(
        colours: Colours,
        history: Vec<String>,
        completer: Completer,
        report: impl Fn(Outcome) + Send + 'static,
    ) -> io::Result<Self> {
        begin()?;
        let state = State::new(Box::new(io::stdout()), colours, Editor::new(history, completer));
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            text: Mutex::default(),
            reading: Mutex::new(()),
            is_closed: AtomicBool::new(false),
        });
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&shared);
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("terminal".to_owned()).spawn(move || own.run(&report))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The columns for text. The last column of the terminal stays free.
    pub fn columns(&self) -> usize {
        width_of(size().0)
    }

    /// Prints lines that belong to the scrollback from now on.
    pub fn print(&self, lines: &[Line<'_>]) {
        let mut state = self.shared.state();
        let colours = state.colours;
        state.above.extend(lines.iter().map(|line| sequence(line, colours)));
        state.draw();
    }

    /// Prints text whose colours are in it already, and that contains nothing else that a terminal obeys.
    pub fn print_painted(&self, text: &str) {
        let mut state = self.shared.state();
        state.above.extend(text.lines().map(str::to_owned));
        state.draw();
    }

    /// Adds a piece of Markdown to the text that streams. Lines are printed as soon as nothing can change them.
    pub fn write(&self, piece: &str, style: Style) {
        let mut state = self.shared.state();
        if state.style != style {
            drop(state);
            self.end_text();
            state = self.shared.state();
            state.style = style;
        }
        state.waiting.push_str(piece);
        // A fast model sends more pieces than anybody can see.
        let waits = state.read.elapsed() < state.pace && state.waiting.len() < MOST_WAITING;
        drop(state);
        if !waits {
            self.shared.read();
        }
    }

    /// Ends the text that streams.
    pub fn end_text(&self) {
        self.shared.end_text(self.shared.text());
    }

    /// Hands a text to the terminal's clipboard.
    ///
    /// # Errors
    ///
    /// If the text is too long, or the terminal cannot be written.
    pub fn copy(&self, text: &str) -> Result<(), NotCopied> {
        let mut sequence = Vec::new();
        copy(text, &mut sequence)?;
        let mut state = self.shared.state();
        match state.region.pass(&sequence) {
            // The terminal takes the rest before the next picture.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => state.changed = true,
            passed => passed.map_err(NotCopied::Unwritable)?,
        }
        Ok(())
    }

    /// Shows what runs, and hints behind it as far as there is room.
    pub fn set_activities(&self, activities: Vec<Activity>, hints: Vec<Part>) {
        let mut state = self.shared.state();
        if state.activities != activities || state.hints != hints {
            (state.activities, state.hints) = (activities, hints);
            state.changed = true;
        }
    }

    /// Keeps lines that Ctrl-O prints, in place of those that it would have printed before.
    pub fn fold(&self, lines: Vec<Line<'static>>) {
        self.shared.state().folded = lines;
    }

    /// Shows the status below the input.
    pub fn set_status(&self, status: Vec<Part>) {
        let mut state = self.shared.state();
        state.status = status;
        state.changed = true;
    }

    /// Lets the user choose a row, which is reported as [`Outcome::Picked`]. The input is there again afterwards.
    pub fn pick(&self, picker: Picker) {
        let mut state = self.shared.state();
        state.picker = Some(picker);
        state.draw();
    }

    /// Asks a question in place of the input, which is there again afterwards as it was. The answer is reported as
    /// [`Outcome::Answered`] with the number of the question; `None` if the terminal is gone and nobody can answer.
    pub fn ask(&self, mut question: Question) -> Option<u64> {
        let mut state = self.shared.state();
        if state.is_gone {
            return None;
        }
        question.begin(Instant::now());
        state.asked += 1;
        let number = state.asked;
        state.asking = Some((number, question));
        state.draw();
        Some(number)
    }

    /// Takes a question away that nobody answers any more.
    pub fn withdraw(&self, number: u64) {
        let mut state = self.shared.state();
        if state.asking.take_if(|(asked, _)| *asked == number).is_some() {
            state.draw();
        }
    }

    /// Whether Ctrl-C stops something. The input stays then.
    pub fn set_busy(&self, is_busy: bool) {
        self.shared.state().is_busy = is_busy;
    }

    /// Puts a text into the input, if the user has written nothing.
    pub fn offer(&self, text: &str) {
        let mut state = self.shared.state();
        if state.editor.is_empty() && !state.editor.is_searching() {
            state.editor.set(text);
            state.changed = true;
        }
    }

    /// Looks for completions of what is written once more: there may be some now.
    pub fn look_again(&self) {
        let mut state = self.shared.state();
        state.editor.look_again();
        state.changed = true;
    }

    /// Puts back what the user had written, if the input is empty.
    pub fn put_back(&self, written: &Written) {
        let mut state = self.shared.state();
        if state.editor.is_empty() && !state.editor.is_searching() {
            state.editor.set_written(written);
            state.changed = true;
        }
    }

    /// Takes what the user has written.
    pub fn take(&self) -> Written {
        let mut state = self.shared.state();
        state.changed = true;
        state.editor.take()
    }

    /// Remembers an input, so that the up key shows it again.
    pub fn remember(&self, text: &str) {
        self.shared.state().editor.remember(text);
    }

    /// Gives the terminal back until the guard is dropped. What the user has written stays.
    pub fn pause(&self) -> Paused<'_> {
        self.shared.read();
        let mut state = self.shared.state();
        state.leave();
        state.is_paused = true;
        drop(state);
        // The thread may still wait for a key.
        drop(self.shared.reading.lock().unwrap_or_else(PoisonError::into_inner));
        restore();
        Paused { ui: self }
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        // The terminal was switched before, so it can be now, or it is gone.
        let _ = begin();
        let mut state = self.ui.shared.state();
        state.is_paused = false;
        state.draw();
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let mut state = self.shared.state();
        state.leave();
        state.is_paused = true;
        restore();
    }
}

fn begin() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    execute!(io::stdout(), EnableBracketedPaste)
}

/// The terminal of this process, if it is drawn.
static OPEN: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

/// How long the end of the process, and a pause, wait for something that is being drawn.
const LONGEST_DRAWING: Duration = Duration::from_millis(500);

/// Restores the terminal of this process, before it ends without dropping [`Ui`]. Nothing is drawn afterwards.
pub fn give_back() {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
    let begun = Instant::now();
    // Another thread may hold the lock for ever, if the terminal takes nothing more.
    while let Some(shared) = &open {
        let free = try_lock(&shared.text).and_then(|text| Some((text, try_lock(&shared.state)?)));
        match free {
            Some((text, state)) => {
                drop(state);
                shared.end_text(text);
                if let Some(mut state) = try_lock(&shared.state) {
                    if !state.is_paused {
                        (state.picker, state.asking, state.activities) = (None, None, Vec::new());
                        state.leave();
                    }
                    // Nothing is drawn while the process ends.
                    state.is_paused = true;
                }
                break;
            }
            None if begun.elapsed() < LONGEST_DRAWING => thread::sleep(Duration::from_millis(1)),
            None => break,
        }
    }
    restore();
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn restore() {
    let _ = execute!(io::stdout(), DisableBracketedPaste, crossterm::cursor::Show);
    let _ = terminal::disable_raw_mode();
}

fn size() -> (u16, u16) {
    terminal::size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(SIZE)
}

/// The next key or change of size, if one comes within this time.
///
/// # Errors
/// If the terminal is gone. crossterm reads from such a terminal forever, so it is asked only while somebody is at the other end.
fn next_event(time: Duration) -> io::Result<Option<Event>> {
    // Events that crossterm has already read come first.
    for time in [Duration::ZERO, time] {
        if is_gone_within(time) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if event::poll(Duration::ZERO)? {
            return event::read().map(Some);
        }
    }
    Ok(None)
}

/// Waits for a key. Returns whether the other end of the terminal is closed. No signal reports this if the terminal does not
/// control this process.
#[cfg(unix)]
fn is_gone_within(time: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    // A signal ends the wait early, which harms nothing.
    Timespec::try_from(time).is_ok_and(|time| poll(&mut terminal, Some(&time)).is_ok())
        && terminal[0].revents().contains(PollFlags::HUP)
}

#[cfg(not(unix))]
fn is_gone_within(time: Duration) -> bool {
    let _ = event::poll(time);
    false
}

/// The columns for text in a terminal with so many. The last one stays free.
fn width_of(columns: u16) -> usize {
    usize::from(columns).saturating_sub(1).max(2)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> MutexGuard<'_, Stream> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what has arrived of the text, or a part of much, and draws it.
    fn read(&self) {
        self.read_into(&mut self.text());
    }

    fn read_into(&self, text: &mut Stream) {
        let begun = Instant::now();
        let width = width_of(size().0);
        let piece = {
            let mut state = self.state();
            if state.waiting.is_empty() && state.tail_width == width {
                return;
            }
            state.taken()
        };
        let lines = text.push(&piece, width);
        let tail = text.rest(width);
        self.state().show(&lines, tail, width, begun);
    }

    /// Reads all of the text, and ends it.
    fn end_text(&self, mut text: MutexGuard<'_, Stream>) {
        while !self.state().waiting.is_empty() {
            self.read_into(&mut text);
        }
        let width = width_of(size().0);
        let lines = text.finish(width);
        self.state().show(&lines, Vec::new(), width, Instant::now());
    }

    fn run(&self, report: &dyn Fn(Outcome)) {
        while !self.is_closed.load(Ordering::Relaxed) {
            let wait = {
                let state = self.state();
                let is_text = !state.tail.is_empty() || !state.waiting.is_empty();
                let changes = state.changed || !state.activities.is_empty() || is_text;
                let waits = state.asking.as_ref().is_some_and(|(_, question)| question.is_waiting(Instant::now()));
                match (state.is_paused, changes || waits) {
                    (true, _) => None,
                    (false, true) => Some(TICK),
                    (false, false) => Some(REST),
                }
            };
            let Some(wait) = wait else {
                thread::sleep(TICK);
                continue;
            };
            let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            if self.state().is_paused {
                continue;
            }
            let event = match next_event(wait) {
                Ok(Some(event)) => Ok(event),
                Ok(None) => {
                    drop(reading);
                    // Usually the sender reads. It has nothing to do if no piece follows.
                    if self.state().is_stalled() {
                        self.read();
                    }
                    let outcome = self.state().tick();
                    if let Some(outcome) = outcome {
                        report(outcome);
                    }
                    continue;
                }
                Err(error) => Err(error),
            };
            drop(reading);
            match event {
                Ok(event) => {
                    if matches!(event, Event::Resize(..)) {
                        self.read();
                    }
                    // The lock is free again before the report, which may end the process.
                    let outcome = self.state().event(event);
                    if let Some(outcome) = outcome {
                        report(outcome);
                    }
                }
                // The terminal is gone.
                Err(_) => {
                    let asking = {
                        let mut state = self.state();
                        state.is_gone = true;
                        state.asking.take()
                    };
                    if let Some((number, _)) = asking {
                        report(Outcome::Answered(number, Answer::Left));
                    }
                    report(Outcome::Ended);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::size as size_of_terminal;
    use super::*;

    fn state(output: impl io::Write + Send + 'static) -> State {
        let editor = Editor::new(Vec::new(), Box::new(|_| crate::editor::Candidates::default()));
        State::new(Box::new(output), Colours::Off, editor)
    }

    fn shared(waiting: String) -> Shared {
        let state = state(io::sink());
        Shared {
            state: Mutex::new(State { waiting, is_paused: true, ..state }),
            text: Mutex::default(),
            reading: Mutex::new(()),
            is_closed: AtomicBool::new(false),
        }
    }

    /// A terminal that takes only so many bytes until somebody reads them.
    #[derive(Clone, Default)]
    struct Full(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Full {
        fn takes(&self, bytes: usize) {
            self.0.lock().unwrap().0 = bytes;
        }

        fn shown(&self) -> String {
            let size = |length: u16| length.try_into().unwrap();
            let (columns, rows) = size_of_terminal();
            let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
            parser.process(&self.0.lock().unwrap().1);
            parser.screen().contents().trim_end().to_owned()
        }
    }

    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, taken) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            *room -= count;
            taken.extend(&bytes[..count]);
            if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The terminal could not be written once, and the chat never drew again.
    #[test]
    fn a_terminal_that_takes_nothing_for_a_moment_is_drawn_again_and_loses_nothing() {
        let terminal = Full::default();
        let mut state = state(terminal.clone());
        for (number, room) in (0..8).zip([3, 0, 40, 1, 0, 17, 2, 9]) {
            terminal.takes(room);
            state.above.push(format!("line {number}"));
            state.editor.set(&format!("input {number}"));
            state.draw();
            assert!(state.changed, "{number}");
        }
        terminal.takes(usize::MAX);
        while state.changed {
            assert_eq!(state.tick(), None);
        }
        let lines: String = (0..8).map(|number| format!("line {number}\n")).collect();
        assert_eq!(terminal.shown(), format!("{lines}> input 7"));
        state.leave();
        assert_eq!(terminal.shown(), lines.trim_end());
        // Nothing is drawn on a terminal that is gone, and nobody waits for it.
        terminal.takes(0);
        state.is_gone = true;
        state.above.push("line 8".to_owned());
        state.draw();
        state.leave();
        terminal.takes(usize::MAX);
        state.draw();
        assert_eq!(terminal.shown(), lines.trim_end());
    }

    /// A smaller window moved the begin of a long table to the scrollback, where it stayed beside the finished table.
    #[test]
    fn an_unfinished_text_fills_half_of_the_window_at_most() {
        let mut state = state(io::sink());
        state.tail = (0..100).map(|number| Line::from(format!("row {number}"))).collect();
        state.activities = vec![Activity { text: "answering".to_owned(), since: Instant::now() }];
        for rows in [4, 10, 20, 24, 60] {
            let picture = state.picture(80, rows);
            let shown: Vec<String> = picture.rows.iter().map(ToString::to_string).collect();
            assert!(shown.len() <= (rows / 2).max(3), "{rows}: {shown:?}");
            assert!(shown.contains(&"row 99".to_owned()), "{rows}: {shown:?}");
        }
    }

    fn press(state: &mut State, code: KeyCode, modifiers: KeyModifiers) -> Option<Outcome> {
        state.event(Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn ctrl_c_closes_an_open_list_before_it_stops_the_turn() {
        let mut state = state(io::sink());
        state.is_busy = true;
        state.picker = Some(Picker::new("sessions", Vec::new(), 0));
        assert_eq!(press(&mut state, KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Outcome::Picked(None)));
        assert!(state.picker.is_none());
        assert_eq!(press(&mut state, KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Outcome::Interrupted));
    }

    #[test]
    fn a_key_answers_no_question_that_was_drawn_for_another_size() {
        let mut state = state(io::sink());
        let choices = crate::question::Choices {
            list: vec!["this".to_owned(), "that".to_owned()],
            is_open: false,
            takes_values: false,
            hint: String::new(),
        };
        state.asking = Some((7, Question::with_choices(Box::new(|_| vec![Line::from("which?")]), choices)));
        state.draw();
        // The user has been reading it for a while.
        let begun = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        state.asking.iter_mut().for_each(|(_, question)| question.begin(begun));
        assert_eq!(state.tick(), None);
        assert_eq!(press(&mut state, KeyCode::Down, KeyModifiers::NONE), None);
        // The terminal has another size now, and no event has said so yet.
        let (columns, rows) = state.size;
        state.size = (columns + 1, rows);
        assert_eq!(press(&mut state, KeyCode::Enter, KeyModifiers::NONE), None);
        assert_eq!(state.size, (columns, rows), "it is drawn again");
        let answered = press(&mut state, KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(answered, Some(Outcome::Answered(7, Answer::Choice(0))));
    }

    /// It stayed in the scrollback above the answered question.
    #[test]
    fn a_question_that_fills_more_than_half_of_the_window_hides_what_runs() {
        let ask = |count: usize| {
            let text = move |_| (0..count).map(|number| Line::from(format!("row {number}"))).collect();
            let choices = crate::question::Choices {
                list: Vec::new(),
                is_open: true,
                takes_values: false,
                hint: "type".to_owned(),
            };
            Question::with_choices(Box::new(text), choices)
        };
        for (count, is_shown) in [(3, true), (8, true), (12, false), (40, false)] {
            let mut state = state(io::sink());
            state.activities = vec![Activity { text: "patch".to_owned(), since: Instant::now() }];
            state.asking = Some((1, ask(count)));
            let picture = state.picture(80, 24);
            assert_eq!(picture.rows.iter().any(|row| row.to_string().contains("patch")), is_shown, "{count}");
        }
    }

    #[test]
    fn the_unfinished_end_of_a_text_fits_a_window_that_became_narrower() {
        let shared = shared("some words of a reply ".repeat(20));
        shared.read();
        let state = shared.state();
        assert!(state.above.is_empty() && state.tail.len() > 2);
        for width in [60, 9, 40] {
            let tail = state.tail_for(width);
            assert!(tail.iter().all(|line| line.width() <= width), "{tail:?}");
            let words = tail.iter().map(|line| line.to_string().split_whitespace().count()).sum::<usize>();
            assert_eq!(words, 100, "{width}");
        }
    }

    #[test]
    fn a_long_text_is_read_in_parts_and_whole_at_its_end() {
        let shared = shared("漢字 and a few words\n\n".repeat(2_000));
        shared.read();
        assert!(!shared.state().above.is_empty() && shared.state().waiting.len() > 40_000);
        shared.end_text(shared.text());
        let state = shared.state();
        // Every paragraph but the first has an empty line before it.
        assert_eq!(state.above.len(), 2 * 2_000 - 1);
        assert!(state.waiting.is_empty() && state.tail.is_empty());
    }
}
