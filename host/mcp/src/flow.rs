//! What passes between the host and a server: counted, bounded, and with the reason of its end.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::Cause;
use crate::limits;
use crate::program::Child;

/// An amount that is used up, and that grows back with time.
#[derive(Debug)]
struct Allowance {
    most: f64,
    per_second: f64,
    left: f64,
    at: Instant,
}

impl Allowance {
    fn new(most: u64, per_second: u64) -> Self {
        // Both are far below the numbers that a float represents exactly.
        let (most, per_second) = (most as f64, per_second as f64);
        Self { most, per_second, left: most, at: Instant::now() }
    }

    /// Whether this much is left.
    fn take(&mut self, amount: u64) -> bool {
        let now = Instant::now();
        let grown = self.left + now.duration_since(self.at).as_secs_f64() * self.per_second;
        (self.left, self.at) = (grown.min(self.most) - amount as f64, now);
        self.left >= 0.0
    }
}

/// The state of one connection. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    state: Arc<Mutex<State>>,
    closed: Arc<watch::Sender<bool>>,
}

#[derive(Debug)]
struct State {
    bytes: Allowance,
    messages: Allowance,
    ended: Option<Cause>,
}

impl Flow {
    pub(crate) fn new() -> Self {
        let state = State {
            bytes: Allowance::new(limits::BYTES, limits::BYTES_PER_SECOND),
            messages: Allowance::new(limits::MESSAGES, limits::MESSAGES_PER_SECOND),
            ended: None,
        };
        Self { state: Arc::new(Mutex::new(state)), closed: Arc::new(watch::Sender::new(false)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the connection ended, if that is known.
    pub(crate) fn ended(&self) -> Option<Cause> {
        self.state().ended.clone()
    }

    /// Records why the connection ends. The first reason counts.
    fn record(&self, cause: Cause) {
        self.state().ended.get_or_insert(cause);
    }

    fn admit_bytes(&self, count: u64) -> bool {
        let admitted = self.state().bytes.take(count);
        if !admitted {
            self.record(Cause::Flood(format!("more than {} MiB without a pause", limits::BYTES >> 20)));
        }
        admitted
    }

    fn admit_message(&self) -> bool {
        let admitted = self.state().messages.take(1);
        if !admitted {
            self.record(Cause::Flood(format!("more than {} messages without a pause", limits::MESSAGES)));
        }
        admitted
    }

    /// Waits until the connection has ended, with everything that the server's program started.
    pub(crate) async fn closed(&self) {
        // The sender lives as long as this value.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }
}

impl Flow {
    /// Waits until the connection has ended. Returns why.
    pub(crate) async fn end(&self) -> Cause {
        self.closed().await;
        self.ended().unwrap_or_else(|| Cause::Ended("the connection ended".to_owned()))
    }
}

/// An output of a program that ends when the program writes too much.
pub(crate) struct Counted<R> {
    pub(crate) inner: R,
    pub(crate) flow: Flow,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        if !self.flow.admit_bytes(read as u64) {
            buffer.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

/// A transport that counts messages and knows why it ended.
pub(crate) struct Guarded<T> {
    pub(crate) inner: T,
    pub(crate) flow: Flow,
    /// The program behind it, if there is one. Dropping it kills what is left of it.
    pub(crate) child: Option<Child>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Guarded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if let Some(message) = self.inner.receive().await {
            return self.flow.admit_message().then_some(message);
        }
        // Also if this future is dropped here: the next call gets nothing either.
        let why = match &mut self.child {
            Some(child) => child.last_words().await,
            None => "the connection ended".to_owned(),
        };
        self.flow.record(Cause::Ended(why));
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let closed = self.inner.close().await;
        if let Some(mut child) = self.child.take() {
            child.end().await;
        }
        self.flow.closed.send_replace(true);
        closed
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        self.child = None;
        self.flow.closed.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_allowance_grows_back_up_to_its_most() {
        let mut allowance = Allowance::new(10, 2);
        assert!(allowance.take(10) && !allowance.take(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(allowance.take(3) && !allowance.take(1));
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(allowance.take(10) && !allowance.take(1));
    }

    #[tokio::test]
    async fn the_first_reason_of_an_end_counts() {
        let flow = Flow::new();
        flow.record(Cause::Flood("much".to_owned()));
        flow.record(Cause::Ended("the connection ended".to_owned()));
        assert_eq!(flow.ended(), Some(Cause::Flood("much".to_owned())));
    }
}
