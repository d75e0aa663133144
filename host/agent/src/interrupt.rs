//! How a person stops a turn.

use std::sync::Arc;

use tokio::sync::watch;

/// A switch that whoever listens for Ctrl-C shares with the turn.
#[derive(Clone)]
pub struct Interrupt(Arc<watch::Sender<bool>>);

impl Default for Interrupt {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Interrupt {
    /// Stops the turn that runs.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Makes it ready for the next turn.
    pub fn reset(&self) {
        self.0.send_replace(false);
    }

    /// Whether it was triggered.
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Lets work be done, or none where it is triggered before: the work is dropped then.
    pub(crate) async fn or_done<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.triggered() => None,
        }
    }

    /// Waits until it is triggered.
    pub async fn triggered(&self) {
        let mut watched = self.0.subscribe();
        // The sender lives as long as `self`.
        let _ = watched.wait_for(|triggered| *triggered).await;
    }
}
