//! The simulated clock of a column, and the tasks that wait for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_plugin_host::services::Clock;
use tokio::sync::oneshot;

/// A clock that is moved explicitly and wakes the tasks whose time has come.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    now_ms: u64,
    /// How many background tasks are running.
    slow: u32,
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the start of background work; dropping the result marks its end.
    pub(crate) fn slow_work(&self) -> SlowWork<'_> {
        self.state().slow += 1;
        SlowWork(self)
    }

    /// Waits until this many milliseconds have passed. Without background work, the conversation itself waits, and the clock
    /// moves at once.
    pub(crate) async fn pass(&self, milliseconds: u64) {
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

    /// Whether a task waits for the clock. Cancelled waits do not count.
    pub(crate) fn is_waited_at(&self) -> bool {
        let mut state = self.state();
        state.waiting.retain(|(_, go)| !go.is_closed());
        !state.waiting.is_empty()
    }

    /// Moves to the next time for which a task waits, if it is not later than `until`, and wakes the task. Otherwise moves
    /// to `until` and returns false.
    pub(crate) fn step(&self, until: u64) -> bool {
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

/// Background work, for which the conversation does not wait.
pub(crate) struct SlowWork<'a>(&'a Gate);

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

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.state().now_ms)
    }
}
