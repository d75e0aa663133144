//! The real binary on a terminal of the test's own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::process::Capture;

/// A process on a terminal; killed when dropped.
pub struct Terminal {
    child: Child,
    /// Writes key presses; `None` after the terminal was closed.
    keyboard: Option<File>,
    screen: Capture,
    /// Set when the screen is no longer read.
    gone: Arc<AtomicBool>,
    /// Set while the screen is not read.
    held: Arc<AtomicBool>,
    deadline: Instant,
    size: (u16, u16),
}

/// The screen until the terminal is closed. The terminal disappears only when all its handles are closed.
struct Screen {
    file: File,
    gone: Arc<AtomicBool>,
    held: Arc<AtomicBool>,
}

impl Read for Screen {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        while !self.gone.load(Ordering::Relaxed) {
            if self.held.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            } else if poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&LOOK))? > 0 {
                return self.file.read(buffer);
            }
        }
        Ok(0)
    }
}

impl Terminal {
    pub(crate) fn spawn(command: Command, timeout: Duration, size: (u16, u16)) -> Self {
        Self::spawn_with(command, timeout, size, OFlags::empty())
    }

    /// On a terminal with `O_NONBLOCK`.
    pub(crate) fn spawn_impatient(command: Command, timeout: Duration, size: (u16, u16)) -> Self {
        Self::spawn_with(command, timeout, size, OFlags::NONBLOCK)
    }

    fn spawn_with(mut command: Command, timeout: Duration, size: (u16, u16), more: OFlags) -> Self {
        let ours =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal can be made");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it can be opened");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | more;
        let theirs: OwnedFd = open(&name, flags, Mode::empty()).expect("its other end can be opened");
        resize(&ours, size);
        let end = || Stdio::from(theirs.try_clone().expect("a descriptor can be copied"));
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("the binary can be run");
        let keyboard = File::from(ours);
        let gone = Arc::<AtomicBool>::default();
        let file = keyboard.try_clone().expect("a descriptor can be copied");
        let held = Arc::<AtomicBool>::default();
        let screen = Capture::of(Screen { file, gone: Arc::clone(&gone), held: Arc::clone(&held) });
        Self { child, keyboard: Some(keyboard), screen, gone, held, deadline: Instant::now() + timeout, size }
    }

    /// Presses keys; Enter is `\r`, Ctrl-C `\u{3}`.
    #[track_caller]
    pub fn press(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().expect("the terminal is open");
        keyboard.write_all(keys.as_bytes()).expect("a key can be pressed");
    }

    /// Ctrl-C while no program reads single keys: the signal that a terminal sends then.
    #[track_caller]
    pub fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("the process runs");
    }

    /// Asks the process to end, as `kill` does.
    #[track_caller]
    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the process runs");
    }

    /// Presses keys a moment after earlier ones: keys that arrive together are a paste, which answers no question.
    #[track_caller]
    pub fn press_later(&mut self, keys: &str) {
        std::thread::sleep(Duration::from_secs(1));
        self.press(keys);
    }

    /// Presses keys again and again, as fast as a person types, until the screen is as expected. Returns how often.
    #[track_caller]
    pub fn press_until(&mut self, keys: &str, is_expected: impl Fn(&[String]) -> bool) -> usize {
        let mut times = 0;
        while !is_expected(&self.rows()) {
            assert!(Instant::now() < self.deadline, "not seen in time; shown was:\n{}", self.rows().join("\n"));
            self.press(keys);
            times += 1;
            std::thread::sleep(Duration::from_millis(100));
        }
        times
    }

    /// Changes the size of the window. 0 means that the terminal does not know its size.
    #[track_caller]
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let keyboard = self.keyboard.as_ref().expect("the terminal is open");
        resize(keyboard, (columns, rows));
    }

    /// Reads nothing from the screen, so that the terminal gets full, or reads it again.
    pub fn hold(&self, holds: bool) {
        self.held.store(holds, Ordering::Relaxed);
    }

    /// Closes the terminal.
    pub fn close(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        self.screen.rest();
        self.keyboard = None;
    }

    /// Waits until the screen has shown the text so many times.
    #[track_caller]
    pub fn wait_for(&self, text: &str, time: usize) {
        self.screen.wait_for(text, time, self.deadline);
    }

    /// Everything shown so far.
    pub fn shown(&self) -> String {
        self.screen.so_far()
    }

    /// What a person sees now, also what was scrolled away. Not after the window changed its size.
    pub fn rows(&self) -> Vec<String> {
        let (columns, _) = self.size;
        let mut parser = self.parsed();
        parser.screen_mut().set_scrollback(usize::MAX);
        let hidden = parser.screen().scrollback();
        let mut shown = Vec::new();
        for offset in (1..=hidden).rev() {
            parser.screen_mut().set_scrollback(offset);
            shown.extend(parser.screen().rows(0, columns).next());
        }
        parser.screen_mut().set_scrollback(0);
        shown.extend(parser.screen().rows(0, columns));
        let last = shown.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        shown.truncate(last);
        shown
    }

    /// Waits until the lowest row with this text is faint, or is not any more.
    #[track_caller]
    pub fn wait_until_faint(&self, text: &str, is_faint: bool) {
        self.wait_until(|_| self.is_faint(text) == Some(is_faint));
    }

    /// Whether the lowest row with this text is faint; `None` without such a row.
    fn is_faint(&self, text: &str) -> Option<bool> {
        let (columns, _) = self.size;
        let parser = self.parsed();
        let screen = parser.screen();
        let row = screen.rows(0, columns).collect::<Vec<_>>().iter().rposition(|row| row.contains(text))?;
        let cell = screen.cell(u16::try_from(row).ok()?, 0)?;
        Some(cell.dim())
    }

    /// What the terminal shows, up to the last complete update.
    fn parsed(&self) -> vt100::Parser {
        let (columns, rows) = self.size;
        let size = |length: u16| NonZeroU16::new(length).expect("a drawn terminal has a size");
        let mut parser = vt100::Parser::new(size(rows), size(columns), 10_000);
        let shown = self.screen.so_far();
        parser.process(complete(&shown).as_bytes());
        parser
    }

    /// Waits until what a person sees is as expected, and returns it.
    #[track_caller]
    pub fn wait_until(&self, is_expected: impl Fn(&[String]) -> bool) -> Vec<String> {
        loop {
            let rows = self.rows();
            if is_expected(&rows) {
                return rows;
            }
            assert!(Instant::now() < self.deadline, "not seen in time; shown was:\n{}", rows.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the process exits.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                // Its last words may still be on their way.
                self.screen.settle(Duration::from_secs(2));
                return status;
            }
            assert!(Instant::now() < self.deadline, "it did not end in time; shown was:\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// What a terminal was sent, without an update whose end is missing.
fn complete(sent: &str) -> &str {
    match sent.rfind("\u{1b}[?2026h") {
        Some(begin) if !sent[begin..].contains("\u{1b}[?2026l") => &sent[..begin],
        _ => sent,
    }
}

fn resize(terminal: impl AsFd, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a window has a size");
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}
