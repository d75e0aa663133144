//! What passes between the host and a server: counted, bounded, and with the reason of its end.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::child::Child;
use crate::error::Cause;
use crate::limits;
use crate::open::OpenRequests;

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

fn too_large() -> String {
    format!("a message of more than {} MiB", limits::MESSAGE >> 20)
}

/// The state of one connection. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    state: Arc<Mutex<State>>,
    closed: Arc<watch::Sender<bool>>,
    /// Notified when a stream that the transport reads by itself has sent too much.
    flooded: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    bytes: Allowance,
    messages: Allowance,
    /// Lines of streams over HTTP that carry nothing, such as comments and those that end an event.
    idle_lines: Allowance,
    /// Whether a message could not be sent.
    is_broken: bool,
    open: OpenRequests,
    ended: Option<Cause>,
}

impl Flow {
    pub(crate) fn new() -> Self {
        let state = State {
            bytes: Allowance::new(limits::BYTES, limits::BYTES_PER_SECOND),
            messages: Allowance::new(limits::MESSAGES, limits::MESSAGES_PER_SECOND),
            idle_lines: Allowance::new(limits::IDLE_LINES, limits::IDLE_LINES_PER_SECOND),
            is_broken: false,
            open: OpenRequests::default(),
            ended: None,
        };
        let closed = Arc::new(watch::Sender::new(false));
        Self { state: Arc::new(Mutex::new(state)), closed, flooded: Arc::default() }
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

    /// Counts bytes of a stream over HTTP, and its lines that carry nothing. When it is too much, the connection ends.
    pub(crate) fn admit_stream(&self, bytes: usize, idle_lines: u64) -> bool {
        let is_few = self.state().idle_lines.take(idle_lines);
        if !is_few {
            let most = limits::IDLE_LINES;
            self.record(Cause::Flood(format!(
                "more than {most} lines of a stream without content and without a pause"
            )));
        }
        let admitted = is_few && self.admit_bytes(bytes as u64);
        if !admitted {
            self.flooded.notify_one();
        }
        admitted
    }

    /// An event of a stream over HTTP is too large: the connection ends.
    pub(crate) fn end_of_large_event(&self) {
        self.record(Cause::Flood(too_large()));
        self.flooded.notify_one();
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
    /// The bytes of the line that has begun.
    pub(crate) line: usize,
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
        let bytes = &buffer.filled()[before..];
        let mut line = self.line;
        let mut longest = 0;
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            line += part.len();
            longest = longest.max(line);
            if part.ends_with(b"\n") {
                line = 0;
            }
        }
        self.line = line;
        if longest > limits::MESSAGE {
            self.flow.record(Cause::Flood(too_large()));
            buffer.set_filled(before);
        } else if !self.flow.admit_bytes(read as u64) {
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
        self.flow.state().open.sent(&item);
        let id = if let JsonRpcMessage::Request(request) = &item { Some(request.id.clone()) } else { None };
        let (sending, flow) = (self.inner.send(item), self.flow.clone());
        async move {
            let sent = sending.await;
            if sent.is_err() {
                let mut state = flow.state();
                state.is_broken = true;
                id.iter().for_each(|id| state.open.close(id));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(error) = self.flow.state().open.meant() {
                return Some(error);
            }
            let message = tokio::select! {
                message = self.inner.receive() => message,
                () = self.flow.flooded.notified() => None,
            };
            let Some(message) = message else { break };
            if !self.flow.admit_message() {
                return None;
            }
            if let Some(message) = self.flow.state().open.received(message) {
                return Some(message);
            }
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
        let (child, flow) = (self.child.take(), self.flow.clone());
        // A program that ends at once may close its input before its output was read. Then its last words are not known yet.
        let is_unexplained = flow.state().is_broken && flow.ended().is_none();
        match (child, tokio::runtime::Handle::try_current()) {
            (Some(mut child), Ok(runtime)) if is_unexplained => {
                runtime.spawn(async move {
                    flow.record(Cause::Ended(child.last_words().await));
                    drop(child);
                    flow.closed.send_replace(true);
                });
            }
            _ => drop(flow.closed.send_replace(true)),
        }
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
