//! How far a fetch is: a bar on a terminal, a line for each step elsewhere.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hermes_install::Progress;

use crate::bars;
use crate::console::Console;
use crate::text;

/// Often enough to be seen moving.
const EVERY: Duration = Duration::from_millis(80);
const COLUMNS: usize = 24;
const CLEAR: &str = "\r\u{1b}[K";

/// Shows steps and bytes on standard error; what is left of it is wiped away when it is dropped.
pub(super) struct Bar {
    console: Console,
    on_terminal: bool,
    drawn: Mutex<Option<Instant>>,
}

impl Bar {
    pub(super) fn new(console: Console) -> Self {
        Self { console, on_terminal: io::stderr().is_terminal(), drawn: Mutex::new(None) }
    }

    fn wipe(&self) {
        if self.drawn.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }
}

impl Progress for Bar {
    fn step(&self, what: &str) {
        self.wipe();
        self.console.note(what);
    }

    fn bytes(&self, done: u64, all: Option<u64>) {
        if !self.on_terminal {
            return;
        }
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.is_some_and(|at| at.elapsed() < EVERY) && all != Some(done) {
            return;
        }
        *drawn = Some(Instant::now());
        let _ = write!(io::stderr(), "{CLEAR}{}", shown(done, all)).and_then(|()| io::stderr().flush());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.wipe();
    }
}

fn shown(done: u64, all: Option<u64>) -> String {
    match all {
        Some(all) if all > 0 => {
            let share = done as f64 / all as f64;
            format!("{} {} of {}", bars::bar(share, COLUMNS), text::bytes(done), text::bytes(all))
        }
        _ => text::bytes(done),
    }
}
