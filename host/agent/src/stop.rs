//! How a command stops a turn.

use tokio_util::sync::CancellationToken;

/// Lets work finish, or drops it when it is stopped; work that is done at that moment counts as done.
pub(crate) async fn until_stopped<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = stop.cancelled() => None,
    }
}
