//! The simulated time of a column, and what waits for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_plugin_host::services::Clock;
use tokio::sync::oneshot;

/// A clock that stands still until it is moved, and lets those go on whose time has come.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    now_ms: u64,
    /// Slow work under way.
    slow: u32,
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slow work begins; it ends with the answer.
    pub(super) fn slow_work(&self) -> SlowWork<'_> {
        self.state().slow += 1;
        SlowWork(self)
    }

    /// Waits until so many milliseconds have passed. Where no slow work is under way the conversation itself waits, and what
    /// it waits for has to pass for it to go on.
    pub(super) async fn pass(&self, milliseconds: u64) {
        let (go, gone) = oneshot::channel();
        {
            let mut state = self.state();
            let due = state.now_ms.saturating_add(milliseconds);
            if state.slow == 0 {
                state.now_ms = due;
                return;
            }
            state.waiting.push((due, go));
        }
        let _ = gone.await;
    }

    /// Whether something waits. Who has gone away does not.
    pub(super) fn is_waited_at(&self) -> bool {
        let mut state = self.state();
        state.waiting.retain(|(_, go)| !go.is_closed());
        !state.waiting.is_empty()
    }

    /// Moves on to the next moment that something waits for, if that is not later than `until`, and lets it go on. False
    /// when there is none: then the clock shows `until`.
    pub(super) fn step(&self, until: u64) -> bool {
        let mut state = self.state();
        state.waiting.retain(|(_, go)| !go.is_closed());
        let next = state.waiting.iter().map(|(due, _)| *due).min().filter(|due| *due <= until);
        state.now_ms = state.now_ms.max(next.unwrap_or(until));
        let Some(next) = next else { return false };
        let (ready, later) = std::mem::take(&mut state.waiting).into_iter().partition(|(due, _)| *due <= next);
        state.waiting = later;
        for (_, go) in Vec::<(u64, oneshot::Sender<()>)>::into_iter(ready) {
            let _ = go.send(());
        }
        true
    }
}

/// Slow work, for which no conversation waits.
pub(super) struct SlowWork<'a>(&'a Gate);

impl Drop for SlowWork<'_> {
    fn drop(&mut self) {
        self.0.state().slow -= 1;
    }
}

impl Clock for Gate {
    fn now(&self) -> u64 {
        self.state().now_ms
    }

    fn utc_offset(&self) -> i32 {
        0
    }
}
