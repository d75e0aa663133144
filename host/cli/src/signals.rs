//! Ctrl-C, whose effect depends on the current activity.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::console;
use crate::failure::Kind;

/// No turn runs: Ctrl-C ends the process.
const IDLE: u8 = 0;
/// A turn runs: the first Ctrl-C stops the turn, the second ends the process.
const TURN: u8 = 1;
/// The line editor reads keys: Ctrl-C is a key.
const PROMPT: u8 = 2;

/// Stops the current activity: a turn, a question, a compaction. All clones share one state.
#[derive(Clone, Default)]
pub(crate) struct StopSwitch(Arc<Mutex<CancellationToken>>);

impl StopSwitch {
    /// The token of the current activity.
    pub(crate) fn token(&self) -> CancellationToken {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the current activity.
    pub(crate) fn trigger(&self) {
        self.token().cancel();
    }

    pub(crate) fn is_triggered(&self) -> bool {
        self.token().is_cancelled()
    }

    /// Creates a new token for the next activity.
    fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
    }
}

/// Listens for Ctrl-C until the process ends.
#[derive(Clone)]
pub(crate) struct CtrlC {
    state: Arc<AtomicU8>,
    stop: StopSwitch,
}

/// Restores the previous state when dropped.
pub(crate) struct During<'a> {
    state: &'a AtomicU8,
    before: u8,
}

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.state.store(self.before, Ordering::Relaxed);
    }
}

impl CtrlC {
    /// Starts to listen.
    pub(crate) fn listen() -> Self {
        let listener = Self { state: Arc::new(AtomicU8::new(IDLE)), stop: StopSwitch::default() };
        let own = listener.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                own.pressed();
            }
        });
        listener
    }

    /// Does what Ctrl-C means now. True if it is a key.
    pub(crate) fn pressed(&self) -> bool {
        match self.state.load(Ordering::Relaxed) {
            PROMPT => return true,
            TURN if !self.stop.is_triggered() => self.stop.trigger(),
            // All messages are stored already, and the next process repairs an open turn.
            _ => {
                if console::is_drawing() {
                    hermes_terminal::restore();
                }
                hermes_capabilities::process::end_all();
                std::process::exit(Kind::Interrupted as i32)
            }
        }
        false
    }

    /// The switch that stops a turn.
    pub(crate) fn switch(&self) -> &StopSwitch {
        &self.stop
    }

    /// Ctrl-C stops the turn until the guard is dropped.
    pub(crate) fn stops_the_turn(&self) -> During<'_> {
        self.stop.reset();
        self.enter(TURN)
    }

    /// The line editor handles Ctrl-C until the guard is dropped.
    pub(crate) fn is_a_key(&self) -> During<'_> {
        self.enter(PROMPT)
    }

    fn enter(&self, state: u8) -> During<'_> {
        During { before: self.state.swap(state, Ordering::Relaxed), state: &self.state }
    }
}
