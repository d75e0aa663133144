//! Stops a turn on a command.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio_util::sync::CancellationToken;

/// Runs work until it is done or stopped. A stop drops the work after its open `steps` have ended. Returns `None` for
/// stopped work.
pub(crate) async fn until_stopped<T>(
    stop: &CancellationToken,
    steps: &Steps,
    work: impl Future<Output = T>,
) -> Option<T> {
    let (mut work, mut stopped) = (pin!(work), pin!(stop.cancelled()));
    let mut stopping = false;
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        stopping = stopping || stopped.as_mut().poll(context).is_ready();
        if stopping && steps.none_is_open() { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

/// Counts open steps. A step is a write to the store together with the matching change in memory: after an interruption
/// between the two, memory and store would disagree.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<AtomicUsize>);

impl Steps {
    /// Opens a step until the guard is dropped.
    pub(crate) fn begin(&self) -> Step {
        self.0.fetch_add(1, Ordering::Relaxed);
        Step(Arc::clone(&self.0))
    }

    fn none_is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// An open step.
pub(crate) struct Step(Arc<AtomicUsize>);

impl Drop for Step {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stop_finishes_the_open_step_and_drops_the_rest() {
        let (stop, steps) = (CancellationToken::new(), Steps::default());
        let mut reached = Vec::new();
        let work = async {
            {
                let _step = steps.begin();
                reached.push("stored");
                tokio::time::sleep(Duration::from_secs(1)).await;
                reached.push("in memory");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            reached.push("next");
        };
        stop.cancel();
        assert_eq!(until_stopped(&stop, &steps, work).await, None);
        assert_eq!(reached, ["stored", "in memory"]);
    }
}
