//! Ctrl-C, whose effect depends on the current activity.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::failure::Kind;
use crate::{console, silence};

/// No turn runs: Ctrl-C ends the process.
const IDLE: u8 = 0;
/// A turn runs: the first Ctrl-C stops the turn. Another one ends the process, if stopping takes long.
const TURN: u8 = 1;
/// The line editor reads keys: Ctrl-C is a key.
const PROMPT: u8 = 2;
/// Another program has the terminal, and Ctrl-C is for that program.
const ELSEWHERE: u8 = 3;

/// How long stopping takes before another Ctrl-C ends the process. People press it twice.
const PATIENCE: Duration = Duration::from_secs(1);

/// Stops the current activity: a turn, a question, a compaction. All clones share one state.
#[derive(Clone, Default)]
pub(crate) struct StopSwitch(Arc<Mutex<Switch>>);

#[derive(Default)]
struct Switch {
    token: CancellationToken,
    triggered: Option<Instant>,
}

impl StopSwitch {
    /// The token of the current activity.
    pub(crate) fn token(&self) -> CancellationToken {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).token.clone()
    }

    /// Stops the current activity.
    pub(crate) fn trigger(&self) {
        let mut switch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        switch.triggered.get_or_insert_with(Instant::now);
        switch.token.cancel();
    }

    /// Whether the activity has been asked to stop only a moment ago.
    fn is_stopping(&self) -> bool {
        let switch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        switch.triggered.is_some_and(|triggered| triggered.elapsed() < PATIENCE)
    }

    pub(crate) fn is_triggered(&self) -> bool {
        self.token().is_cancelled()
    }

    /// Creates a new token for the next activity.
    fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Switch::default();
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
            TURN if self.stop.is_stopping() => {}
            ELSEWHERE => {}
            // All messages are stored already, and the next process repairs an open turn.
            _ => {
                if console::is_drawing() {
                    hermes_terminal::give_back();
                }
                silence::give_back();
                hermes_app::process::end_programs();
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

    /// Stops the turn, and waits a moment for its end, so that the part of a reply that has arrived is stored.
    pub(crate) async fn end_the_turn(&self) {
        const LOOK: Duration = Duration::from_millis(10);
        let begun = Instant::now();
        while self.state.load(Ordering::Relaxed) == TURN && begun.elapsed() < PATIENCE {
            self.stop.trigger();
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ctrl-C is for another program on the terminal until the guard is dropped.
    pub(crate) fn is_for_another(&self) -> During<'_> {
        self.enter(ELSEWHERE)
    }

    /// The line editor handles Ctrl-C until the guard is dropped.
    pub(crate) fn is_a_key(&self) -> During<'_> {
        self.enter(PROMPT)
    }

    fn enter(&self, state: u8) -> During<'_> {
        During { before: self.state.swap(state, Ordering::Relaxed), state: &self.state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_press_counts_only_if_stopping_takes_long() {
        let stop = StopSwitch::default();
        assert!(!stop.is_triggered() && !stop.is_stopping());
        stop.trigger();
        assert!(stop.is_triggered() && stop.is_stopping());
        if let Ok(mut switch) = stop.0.lock() {
            switch.triggered = Instant::now().checked_sub(PATIENCE);
        }
        stop.trigger();
        assert!(stop.is_triggered() && !stop.is_stopping(), "the first press counts");
        stop.reset();
        assert!(!stop.is_triggered() && !stop.is_stopping());
    }
}
