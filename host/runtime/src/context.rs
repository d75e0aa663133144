//! The data of an instance's store: its services, its limits and the current call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::error::{Fault, FaultKind};
use crate::generations::Generations;
use crate::limits::{Limit, Limits, Meter};
use crate::processor_time::ProcessorTime;
use crate::services::{Level, Services};
use crate::tally::Tally;
use crate::wasi::output::Output;
use crate::wasi::world;

/// Data of an instance's store.
pub(crate) struct Context {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) meter: Meter,
    pub(crate) services: Services,
    pub(crate) call: Call,
    pub(crate) generations: Generations,
    pub(crate) output: Output,
    pub(crate) tally: Arc<Tally>,
}

impl Context {
    pub(crate) fn new(services: Services, limits: Limits, tally: Arc<Tally>, call: Call) -> Self {
        let output = Output::default();
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.size(Limit::Handles));
        let wasi = world::empty(&services, &output);
        Self {
            wasi,
            table,
            meter: Meter::new(limits),
            services,
            call,
            generations: Generations::default(),
            output,
            tally,
        }
    }

    /// Starts another call. What the instance used for the last one is counted.
    pub(crate) fn begin(&mut self, call: Call) {
        self.account();
        self.output.begin();
        self.call = call;
    }

    /// Ends the current call: ends its generations, and adds what it used to the plugin's figures and what it printed to the
    /// plugin's log.
    pub(crate) fn account(&mut self) {
        self.generations.clear();
        for line in self.output.finish() {
            self.log(Level::Info, &line);
        }
        let host_calls = std::mem::take(&mut self.call.host_calls);
        self.tally.used(host_calls, self.meter.memory() as u64);
    }

    /// Adds the lines that the guest has printed to the plugin's log.
    fn log_printed(&mut self) {
        for line in self.output.lines() {
            self.log(Level::Info, &line);
        }
    }

    /// Runs at every tick of a computing guest. Returns whether its time or another limit is used up.
    pub(crate) fn tick(&mut self) -> bool {
        self.log_printed();
        if self.call.time_left().is_zero() {
            return true;
        }
        let limits = self.meter.limits();
        let computed = self.call.computed_at_tick();
        if self.call.host_calls > limits.get(Limit::HostCalls) {
            self.meter.refused = Some(Limit::HostCalls);
        } else if computed > limits.time(Limit::Cpu) {
            self.meter.refused = Some(Limit::Cpu);
        }
        self.meter.refused.is_some()
    }
}

impl Drop for Context {
    /// The last lines of an instance that crashed or did not start are logged too.
    fn drop(&mut self) {
        self.account();
    }
}

impl WasiView for Context {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.log_printed();
        self.call.host_calls += 1;
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The state of the call that an instance carries out.
#[derive(Clone)]
pub(crate) struct Call {
    /// The deadline, not counting the time during which the clock is paused.
    pub(crate) until: Instant,
    pause: Arc<Mutex<Pause>>,
    signals: Arc<Signals>,
    /// Import calls so far.
    pub(crate) host_calls: u64,
    /// What the call and, before it, the start of its instance compute.
    pub(crate) processor_time: Arc<ProcessorTime>,
    /// The part of it before this call began.
    computed_before: Duration,
    lines_left: u64,
    log_bytes_left: u64,
    /// The user has refused this call a program: it may not ask again.
    pub(crate) refused: bool,
}

/// Time that does not count against the plugin, because a person was asked.
#[derive(Default)]
struct Pause {
    before: Duration,
    since: Option<Instant>,
}

impl Pause {
    fn total(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[derive(Default)]
struct Signals {
    cancelled: AtomicBool,
    notify: Notify,
}

/// What happens to a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logged {
    Kept,
    /// The first line over the limit: the log says once that further lines are dropped.
    LimitReached,
    Dropped,
}

impl Call {
    pub(crate) fn new(deadline: Duration, limits: &Limits) -> Self {
        Self {
            until: Instant::now() + deadline,
            pause: Arc::default(),
            signals: Arc::default(),
            host_calls: 0,
            processor_time: Arc::default(),
            computed_before: Duration::ZERO,
            lines_left: limits.get(Limit::LogLines),
            log_bytes_left: limits.get(Limit::LogBytes),
            refused: false,
        }
    }

    /// The processor time of this call, without the start of its instance.
    fn computed_at_tick(&self) -> Duration {
        self.processor_time.total_at_tick().saturating_sub(self.computed_before)
    }

    /// Begins with this deadline, after the instance has started: what it computed until now does not count.
    pub(crate) fn restart(&mut self, until: Instant) {
        self.until = until;
        self.computed_before = self.processor_time.total();
    }

    /// Counts a line of this many bytes, and decides what happens to it.
    pub(crate) fn log(&mut self, bytes: usize) -> Logged {
        if self.lines_left == 0 {
            return Logged::Dropped;
        }
        self.lines_left -= 1;
        let left = self.log_bytes_left.checked_sub(bytes as u64);
        match left {
            Some(left) if self.lines_left > 0 => {
                self.log_bytes_left = left;
                Logged::Kept
            }
            _ => {
                self.lines_left = 0;
                Logged::LimitReached
            }
        }
    }

    /// Wakes waiting imports, and makes `task.cancelled` return true: the caller no longer waits.
    pub(crate) fn cancel(&self) {
        self.signals.cancelled.store(true, Ordering::Release);
        self.signals.notify.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.signals.cancelled.load(Ordering::Acquire)
    }

    pub(crate) fn time_left(&self) -> Duration {
        (self.until + self.pause().total()).saturating_duration_since(Instant::now())
    }

    fn pause(&self) -> MutexGuard<'_, Pause> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the deadline has passed.
    pub(crate) async fn expired(&self) {
        /// How often the deadline is checked while the clock is paused.
        const POLL: Duration = Duration::from_millis(50);
        loop {
            let left = self.time_left();
            if left.is_zero() {
                return;
            }
            let paused = self.pause().since.is_some();
            tokio::time::sleep(if paused { left.max(POLL) } else { left }).await;
        }
    }

    /// Waits for a person's answer, for as long as it takes. The call's clock is paused meanwhile.
    pub(crate) async fn ask_user<T>(&self, question: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.pausing(question).await
    }

    /// Waits for what the plugin is not to blame for. The call's clock is paused meanwhile.
    pub(crate) async fn pausing<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        struct Resume<'a>(&'a Call);
        impl Drop for Resume<'_> {
            fn drop(&mut self) {
                let mut pause = self.0.pause();
                *pause = Pause { before: pause.total(), since: None };
            }
        }
        let cancelled = self.signals.notify.notified();
        if self.is_cancelled() {
            return Err(cancelled_fault());
        }
        self.pause().since = Some(Instant::now());
        let _resume = Resume(self);
        tokio::select! {
            done = work => done,
            () = cancelled => Err(cancelled_fault()),
        }
    }

    /// The deadline for work that stops by itself: a little before [`Call::bounded`] stops waiting for it.
    pub(crate) fn work_until(&self) -> Instant {
        let left = self.time_left();
        let until = Instant::now() + left;
        until.checked_sub(margin(left) * 2).unwrap_or(until)
    }

    /// Waits for an import's work, but returns early enough for the plugin to finish its call.
    pub(crate) async fn bounded<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let left = self.time_left();
        let margin = margin(left);
        let cancelled = self.signals.notify.notified();
        if self.is_cancelled() {
            return Err(cancelled_fault());
        }
        tokio::select! {
            result = work => result,
            () = tokio::time::sleep(left.saturating_sub(margin)) =>
                Err(Fault::new(FaultKind::Timeout, "", "the call's time is up")),
            () = cancelled => Err(cancelled_fault()),
        }
    }
}

fn cancelled_fault() -> Fault {
    Fault::new(FaultKind::Cancelled, "", "the user no longer waits for this")
}

/// The part of a call's remaining time that is reserved for the plugin after an import.
pub(crate) fn margin(left: Duration) -> Duration {
    (left / 10).min(Duration::from_millis(250))
}
