//! What the store of an instance holds: its services, its limits and the call at hand.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant};

use tokio::io::AsyncWrite;
use tokio::sync::Notify;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::error::{Fault, FaultKind};
use crate::limits::{Limits, Meter};
use crate::services::Services;

/// Data of an instance's store.
pub(crate) struct Context {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) meter: Meter,
    pub(crate) services: Services,
    pub(crate) call: Call,
    pub(crate) stderr: Stderr,
}

impl Context {
    pub(crate) fn new(services: Services, limits: Limits, call: Call) -> Self {
        let stderr = Stderr::default();
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        // Empty: no arguments, no environment, no folders, no network; what is written to stderr is kept for
        // the message of a crash.
        let wasi = WasiCtx::builder().stderr(stderr.clone()).build();
        Self { wasi, table, meter: Meter::new(limits), services, call, stderr }
    }
}

impl WasiView for Context {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The call that an instance carries out.
#[derive(Clone)]
pub(crate) struct Call {
    /// When it must have answered, but for the time for which it stands still.
    pub(crate) until: Instant,
    still: Arc<Mutex<Still>>,
    cancel: Arc<Cancel>,
    /// Lines it may still write to the log.
    pub(crate) lines_left: u32,
    /// The user has refused it something: it may not ask again.
    pub(crate) refused: bool,
}

/// Time that is not the plugin's own: somebody was asked.
#[derive(Default)]
struct Still {
    before: Duration,
    since: Option<Instant>,
}

impl Still {
    fn total(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[derive(Default)]
struct Cancel {
    flag: AtomicBool,
    notify: Notify,
}

/// Log lines that one call may write.
const LINES: u32 = 256;

impl Call {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self {
            until: Instant::now() + deadline,
            still: Arc::default(),
            cancel: Arc::default(),
            lines_left: LINES,
            refused: false,
        }
    }

    /// Tells imports that wait, and `task.cancelled`, that nobody waits for the answer.
    pub(crate) fn cancel(&self) {
        self.cancel.flag.store(true, Ordering::Release);
        self.cancel.notify.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.flag.load(Ordering::Acquire)
    }

    pub(crate) fn time_left(&self) -> Duration {
        (self.until + self.still().total()).saturating_duration_since(Instant::now())
    }

    fn still(&self) -> MutexGuard<'_, Still> {
        self.still.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until its time is up.
    pub(crate) async fn expired(&self) {
        /// How soon it is looked again while the time stands still.
        const LOOK: Duration = Duration::from_millis(50);
        loop {
            let left = self.time_left();
            if left.is_zero() {
                return;
            }
            let still = self.still().since.is_some();
            tokio::time::sleep(if still { left.max(LOOK) } else { left }).await;
        }
    }

    /// Waits for a person, for as long as that takes: meanwhile the call's time stands still.
    pub(crate) async fn asking<T>(&self, question: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        struct Asked<'a>(&'a Call);
        impl Drop for Asked<'_> {
            fn drop(&mut self) {
                let mut still = self.0.still();
                *still = Still { before: still.total(), since: None };
            }
        }
        let cancelled = self.cancel.notify.notified();
        if self.is_cancelled() {
            return Err(gone());
        }
        self.still().since = Some(Instant::now());
        let _asked = Asked(self);
        tokio::select! {
            answer = question => answer,
            () = cancelled => Err(gone()),
        }
    }

    /// When work that stops by itself should: a little before [`Call::bounded`] stops waiting for it.
    pub(crate) fn work_until(&self) -> Instant {
        let left = self.time_left();
        let until = Instant::now() + left;
        until.checked_sub(margin(left) * 2).unwrap_or(until)
    }

    /// Waits for an import's work, but answers in time for the plugin to wind up by itself.
    pub(crate) async fn bounded<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let left = self.time_left();
        let margin = margin(left);
        let cancelled = self.cancel.notify.notified();
        if self.is_cancelled() {
            return Err(gone());
        }
        tokio::select! {
            result = work => result,
            () = tokio::time::sleep(left.saturating_sub(margin)) =>
                Err(Fault::new(FaultKind::Timeout, "", "the call's time is up")),
            () = cancelled => Err(gone()),
        }
    }
}

fn gone() -> Fault {
    Fault::new(FaultKind::Cancelled, "", "the user no longer waits for this")
}

/// What is left of a call's time when imports stop waiting.
pub(crate) fn margin(left: Duration) -> Duration {
    (left / 10).min(Duration::from_millis(250))
}

/// The end of what a guest writes to stderr: a panic's message is there.
#[derive(Clone, Default)]
pub(crate) struct Stderr(Arc<Mutex<Vec<u8>>>);

/// Bytes that are kept.
const KEPT: usize = 8 << 10;

impl Stderr {
    /// The last lines, as text.
    pub(crate) fn tail(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

impl IsTerminal for Stderr {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stderr {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Stderr {
    fn poll_write(self: Pin<&mut Self>, _: &mut Task<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Task<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Task<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
