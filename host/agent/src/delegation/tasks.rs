//! The delegated tasks of a session that wait or run in this process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::host_source::{Choice, HostSource};

/// How long a session that is being closed waits for its tasks.
const PATIENCE: Duration = Duration::from_secs(15);

/// The tasks of a session.
#[derive(Default)]
pub(crate) struct Tasks {
    state: Mutex<State>,
    /// The number of tasks that are not over.
    open: watch::Sender<usize>,
    /// Stopped when the session is closed.
    all: CancellationToken,
    /// Whether results of tasks in the background may wait in the store.
    has_reports: AtomicBool,
}

#[derive(Default)]
struct State {
    connected: Option<Connected>,
    running: BTreeMap<u32, CancellationToken>,
}

/// What sessions are made from.
struct Connected {
    source: Arc<dyn HostSource>,
    choice: Choice,
    permits: Arc<Semaphore>,
}

impl Tasks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session is made from this source and choice, and runs at most so many tasks beside each other.
    pub(crate) fn connect(&self, most: u32, (source, choice): &(Arc<dyn HostSource>, Choice)) {
        let most = most.max(1);
        let permits = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)));
        let (source, choice) = (Arc::clone(source), choice.clone());
        self.state().connected = Some(Connected { source, choice, permits });
    }

    /// The session uses another model, engine or effort from now on.
    pub(crate) fn choose(&self, choice: &Choice) {
        if let Some(connected) = &mut self.state().connected {
            connected.choice = choice.clone();
        }
    }

    /// What the session uses.
    pub(super) fn choice(&self) -> Choice {
        self.state().connected.as_ref().map(|connected| connected.choice.clone()).unwrap_or_default()
    }

    pub(super) fn source(&self) -> Option<Arc<dyn HostSource>> {
        self.state().connected.as_ref().map(|connected| Arc::clone(&connected.source))
    }

    /// Waits until the task may run. Others wait while the permit is held.
    pub(super) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let permits = Arc::clone(&self.state().connected.as_ref()?.permits);
        permits.acquire_owned().await.ok()
    }

    /// What stops the tasks of a call, which the end of the session stops too.
    pub(super) fn stop_of_call(&self) -> CancellationToken {
        self.all.child_token()
    }

    /// Adds a task; false if the session is being closed.
    pub(super) fn begin(&self, number: u32, stop: CancellationToken) -> bool {
        let mut state = self.state();
        if self.all.is_cancelled() {
            return false;
        }
        state.running.insert(number, stop);
        self.open.send_replace(state.running.len());
        true
    }

    /// Removes a task that is over.
    pub(super) fn end(&self, number: u32) {
        let mut state = self.state();
        state.running.remove(&number);
        self.open.send_replace(state.running.len());
    }

    /// Whether the session is being closed.
    pub(super) fn is_closing(&self) -> bool {
        self.all.is_cancelled()
    }

    /// Results of tasks in the background may wait in the store, or none does.
    pub(super) fn set_reports(&self, waiting: bool) {
        self.has_reports.store(waiting, Ordering::Release);
    }

    pub(super) fn has_reports(&self) -> bool {
        self.has_reports.load(Ordering::Acquire)
    }

    /// Stops a task; false if it does not run.
    pub(crate) fn stop(&self, number: u32) -> bool {
        let state = self.state();
        let running = state.running.get(&number).filter(|stop| !stop.is_cancelled());
        running.inspect(|stop| stop.cancel()).is_some()
    }

    /// Stops all tasks and waits for their ends in bounded time. No task begins afterwards.
    pub(crate) async fn close(&self) {
        // Under the lock, so that no task begins between the two.
        {
            let _state = self.state();
            self.all.cancel();
        }
        let mut open = self.open.subscribe();
        let ended = open.wait_for(|count| *count == 0);
        if tokio::time::timeout(PATIENCE, ended).await.is_err() {
            tracing::warn!("a delegated task has not ended in time");
        }
    }
}
