//! The simulated time of a column, and what waits for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_plugins::services::Clock;
use tokio::sync::oneshot;

/// A clock that stands still until it is moved, and lets those go on whose time has come.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    now_ms: u64,
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many milliseconds have passed.
    pub(super) async fn pass(&self, milliseconds: u64) {
        let (go, gone) = oneshot::channel();
        {
            let mut state = self.state();
            let due = state.now_ms.saturating_add(milliseconds);
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

impl Clock for Gate {
    fn now(&self) -> u64 {
        self.state().now_ms
    }

    fn utc_offset(&self) -> i32 {
        0
    }
}
