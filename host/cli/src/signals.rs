//! Ctrl-C: what it means depends on what goes on.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::failure::Kind;

/// Nothing that could be stopped by half: the process ends.
const IDLE: u8 = 0;
/// A turn runs: it is stopped, and a second time the process ends.
const TURN: u8 = 1;
/// A terminal is read in raw mode, where Ctrl-C is a key.
const PROMPT: u8 = 2;

/// Stops what the terminal waits for: a turn, a question, a compaction. Clones are the same switch.
#[derive(Clone, Default)]
pub(crate) struct StopSwitch(Arc<Mutex<CancellationToken>>);

impl StopSwitch {
    /// The token of what runs now.
    pub(crate) fn token(&self) -> CancellationToken {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops what runs.
    pub(crate) fn trigger(&self) {
        self.token().cancel();
    }

    pub(crate) fn is_triggered(&self) -> bool {
        self.token().is_cancelled()
    }

    /// A new token, for what runs next.
    fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
    }
}

/// Listens for Ctrl-C as long as the process runs.
#[derive(Clone)]
pub(crate) struct CtrlC {
    state: Arc<AtomicU8>,
    stop: StopSwitch,
}

/// The state as it was before, when dropped.
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
    /// Begins to listen.
    pub(crate) fn listen() -> Self {
        let listening = Self { state: Arc::new(AtomicU8::new(IDLE)), stop: StopSwitch::default() };
        let heard = listening.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                match heard.state.load(Ordering::Relaxed) {
                    PROMPT => {}
                    TURN if !heard.stop.is_triggered() => heard.stop.trigger(),
                    // What was said is stored already, and the next process closes what is open.
                    _ => {
                        hermes_capabilities::process::end_all();
                        std::process::exit(Kind::Interrupted as i32)
                    }
                }
            }
        });
        listening
    }

    /// The switch that a turn watches.
    pub(crate) fn switch(&self) -> &StopSwitch {
        &self.stop
    }

    /// While it is held, Ctrl-C stops the turn.
    pub(crate) fn stops_the_turn(&self) -> During<'_> {
        self.stop.reset();
        self.enter(TURN)
    }

    /// While it is held, the line editor sees to Ctrl-C.
    pub(crate) fn is_a_key(&self) -> During<'_> {
        self.enter(PROMPT)
    }

    fn enter(&self, state: u8) -> During<'_> {
        During { before: self.state.swap(state, Ordering::Relaxed), state: &self.state }
    }
}
