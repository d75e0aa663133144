//! Instances. Each has a task that owns its store and carries out its calls in order. After a failure, the next call gets
//! a new instance.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::context::{Call, Context};
use crate::convert;
use crate::crash::{Crash, EXIT};
use crate::error::{CallError, Cause, Fault, FaultKind};
use crate::limits::{Limit, Limits, Tier};
use crate::live::{Body, Live};
use crate::loaded::{Code, Loaded};
use crate::native;
use crate::services::{Level, Services};
use crate::slots::SessionCalls;
use crate::tally::Tally;
use crate::types::{Ending, SessionInfo, Start};

/// How long a cancelled plugin may take to finish before its instance is dropped.
const GRACE: Duration = Duration::from_millis(250);

/// Everything that is needed to create an instance, any number of times.
#[derive(Clone)]
pub struct Recipe {
    /// The plugin's name, for messages.
    pub plugin: String,
    /// The plugin's version, for messages.
    pub version: String,
    /// Its code.
    pub loaded: Arc<Loaded>,
    /// The plugin's section of the configuration, as JSON.
    pub config: String,
    /// The session that it serves.
    pub session: SessionInfo,
    /// The start argument of its first instance; later instances get `Resumed`.
    pub start: Start,
    /// The services that it may reach.
    pub services: Services,
    /// The limits of each instance and call.
    pub limits: Limits,
    /// Counts what all of its instances use.
    pub tally: Arc<Tally>,
    /// How many calls run at once, each in its own instance.
    pub lanes: Lanes,
}

/// Limits how many calls of one plugin in one session run at once, and keeps the last used instance for the next call.
/// It belongs to one recipe: an instance with other code or other rights must not be reused here.
#[derive(Clone)]
pub struct Lanes {
    room: Arc<Semaphore>,
    session: SessionCalls,
    /// Only one: most calls come one after the other, and an idle instance takes memory.
    idle: Arc<Mutex<Option<Live>>>,
}

impl Lanes {
    /// For one plugin of a session.
    pub fn new(limits: &Limits, session: &SessionCalls) -> Self {
        let room = Arc::new(Semaphore::new(limits.size(Limit::ParallelCalls)));
        Self { room, session: session.clone(), idle: Arc::default() }
    }

    /// For another recipe of the same plugin in the same session.
    #[must_use]
    pub fn renewed(&self, limits: &Limits) -> Self {
        Self::new(limits, &self.session)
    }

    fn idle(&self) -> MutexGuard<'_, Option<Live>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every part of the host that handles a call needs to know about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallInfo {
    /// The function of the contract.
    pub(crate) name: &'static str,
    /// The limit that sets the deadline.
    pub(crate) deadline: Limit,
    /// A longer deadline, which the plugin asked for.
    pub(crate) longer: Option<Duration>,
    /// The size of the input in bytes.
    pub(crate) bytes: u64,
}

impl Recipe {
    /// Carries out one call in an instance that serves no other call meanwhile. Reuses the idle instance if there is one.
    pub(crate) async fn call_once<R, F>(self: &Arc<Self>, info: CallInfo, call: F) -> Result<R, CallError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
    {
        self.admit(info)?;
        let cancelled = || self.error(info.name, Cause::Cancelled);
        // The plugin's own limit comes first, so that a plugin with many calls does not delay the others.
        let own = Arc::clone(&self.lanes.room).acquire_owned().await.map_err(|_| cancelled())?;
        let shared = self.lanes.session.enter().await.map_err(|_| cancelled())?;
        // An engine or a memory provider reads its stored state at its start, and other instances may have changed it:
        // each call gets a new instance.
        let reusable = self.loaded.exports().tier() == Tier::Tools;
        let live = if reusable { self.lanes.idle().take() } else { None };
        let mut slot = Slot { recipe: Arc::clone(self), live, start: Start::Resumed };
        let (reply, answer) = oneshot::channel();
        // Runs in its own task, so that the plugin has time to finish when the caller goes away.
        tokio::spawn(async move {
            QueuedCall { info, call, reply }.carry_out(&mut slot).await;
            // After a failure there is no instance. Of several parallel instances, one is kept.
            if let Some(live) = slot.live.take().filter(|_| reusable) {
                slot.recipe.lanes.idle().get_or_insert(live);
            }
            drop((own, shared));
        });
        answer.await.unwrap_or_else(|_| Err(cancelled()))
    }

    /// Refuses a call whose input exceeds the limit.
    fn admit(&self, info: CallInfo) -> Result<(), CallError> {
        let most = self.limits.get(Limit::Input);
        match info.bytes {
            bytes if bytes > most => Err(self.error(info.name, Cause::Input { bytes, most })),
            _ => Ok(()),
        }
    }

    pub(crate) fn error(&self, call: &'static str, cause: Cause) -> CallError {
        CallError { plugin: self.plugin.clone(), version: self.version.clone(), call, cause }
    }
}

pub(crate) type Work<'a, R> = Pin<Box<dyn Future<Output = wasmtime::Result<R>> + Send + 'a>>;

/// A lasting instance of a plugin: calls are queued and carried out in order.
///
/// It is created at its first call. When an instance from [`Instance::new`] is dropped, the plugin gets `session-end`.
pub struct Instance {
    recipe: Arc<Recipe>,
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
}

impl Instance {
    /// Queues calls for an instance; no code of the plugin runs before the first call.
    pub fn new(recipe: Arc<Recipe>) -> Self {
        Self::queue(recipe, true)
    }

    /// The same for an instance that serves other plugins: it does not get `session-end`.
    pub fn without_session_end(recipe: Arc<Recipe>) -> Self {
        Self::queue(recipe, false)
    }

    fn queue(recipe: Arc<Recipe>, gets_end: bool) -> Self {
        let (jobs, mut queue) = mpsc::unbounded_channel::<Box<dyn Job>>();
        let mut slot = Slot { start: recipe.start.clone(), live: None, recipe: Arc::clone(&recipe) };
        tokio::spawn(async move {
            while let Some(job) = queue.recv().await {
                job.run(&mut slot).await;
            }
            if gets_end {
                slot.leave().await;
            }
        });
        Self { recipe, jobs }
    }

    /// The recipe that its instances are created from.
    pub fn recipe(&self) -> &Arc<Recipe> {
        &self.recipe
    }

    pub(crate) async fn call<R, F>(&self, info: CallInfo, call: F) -> Result<R, CallError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
    {
        self.recipe.admit(info)?;
        let (reply, answer) = oneshot::channel();
        let cancelled = || self.recipe.error(info.name, Cause::Cancelled);
        self.jobs.send(Box::new(QueuedCall { info, call, reply })).map_err(|_| cancelled())?;
        answer.await.unwrap_or_else(|_| Err(cancelled()))
    }
}

impl Instance {
    /// Creates the instance without calling it. The first call would do the same.
    pub async fn begin(&self) -> Result<(), CallError> {
        let (reply, answer) = oneshot::channel();
        let cancelled = || self.recipe.error(BEGIN, Cause::Cancelled);
        self.jobs.send(Box::new(Beginning(reply))).map_err(|_| cancelled())?;
        answer.await.unwrap_or_else(|_| Err(cancelled()))
    }
}

/// The function that a plugin's start is reported under.
const BEGIN: &str = "configure";

/// The creation of an instance before its first call. It goes on if nobody waits for it any more.
struct Beginning(oneshot::Sender<Result<(), CallError>>);

#[async_trait]
impl Job for Beginning {
    async fn run(self: Box<Self>, slot: &mut Slot) {
        let info = CallInfo { name: BEGIN, deadline: Limit::StartTime, longer: None, bytes: 0 };
        let begun = slot.carry_out(info, std::future::pending(), |_| Box::pin(async { Ok(()) })).await;
        let _ = self.0.send(begun);
    }
}

/// A call in the queue of an instance, with the channel for its result.
struct QueuedCall<R, F> {
    info: CallInfo,
    call: F,
    reply: oneshot::Sender<Result<R, CallError>>,
}

#[async_trait]
trait Job: Send {
    async fn run(self: Box<Self>, slot: &mut Slot);
}

impl<R, F> QueuedCall<R, F>
where
    R: Send + 'static,
    F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
{
    async fn carry_out(self, slot: &mut Slot) {
        let Self { info, call, mut reply } = self;
        let begun = Moment::now();
        let result = slot.carry_out(info, reply.closed(), call).await;
        slot.recipe.tally.called(begun.elapsed());
        let _ = reply.send(result);
    }
}

#[async_trait]
impl<R, F> Job for QueuedCall<R, F>
where
    R: Send + 'static,
    F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
{
    async fn run(self: Box<Self>, slot: &mut Slot) {
        self.carry_out(slot).await;
    }
}

/// Holds an instance; empty before the first call and after every failure.
struct Slot {
    recipe: Arc<Recipe>,
    live: Option<Live>,
    start: Start,
}

/// How an attempt failed: by a trap in the guest, or by an error that the plugin returned.
enum Failure {
    Trap(wasmtime::Error),
    Answer(Cause),
}

impl Slot {
    async fn carry_out<R, F>(&mut self, info: CallInfo, gone: impl Future<Output = ()>, call: F) -> Result<R, CallError>
    where
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R>,
    {
        let limits = self.recipe.limits;
        let deadline = info.longer.unwrap_or_else(|| limits.time(info.deadline));
        let starting = if self.live.is_none() { limits.time(Limit::StartTime) } else { Duration::ZERO };
        let allowed = deadline + starting;
        let state = Call::new(allowed, &limits);
        let attempt = {
            let state = state.clone();
            async {
                let live = self.live(state, deadline).await?;
                call(live).await.map_err(Failure::Trap)
            }
        };
        let outcome = {
            let attempt = state.processor_time.of(attempt);
            tokio::pin!(attempt);
            tokio::select! {
                outcome = &mut attempt => Some(outcome),
                () = state.expired() => None,
                () = gone => {
                    state.cancel();
                    tokio::time::timeout(GRACE, &mut attempt).await.ok()
                }
            }
        };
        if let Some(live) = &mut self.live {
            live.account();
        }
        let cause = match outcome {
            Some(Ok(result)) => return Ok(result),
            Some(Err(Failure::Answer(cause))) => cause,
            Some(Err(Failure::Trap(error))) => self.call_failure(&error, &state, (info.deadline, deadline)),
            None if state.is_cancelled() => Cause::Cancelled,
            None => Cause::Deadline { limit: info.deadline, after: deadline },
        };
        self.live = None;
        Err(self.recipe.error(info.name, cause))
    }

    /// The instance, created if necessary, with its clock set for the call.
    async fn live(&mut self, mut state: Call, deadline: Duration) -> Result<&mut Live, Failure> {
        if self.live.is_none() {
            let mut making = state.clone();
            making.until = Moment::now() + self.recipe.limits.time(Limit::StartTime);
            let live = self.make(making).await?;
            self.live = Some(live);
            self.start = Start::Resumed;
            state.restart(Moment::now() + deadline);
        }
        let live = self.live.as_mut().expect("made above");
        live.begin(state);
        Ok(live)
    }

    async fn make(&mut self, state: Call) -> Result<Live, Failure> {
        let recipe = &self.recipe;
        let context = Context::new(recipe.services.clone(), recipe.limits, Arc::clone(&recipe.tally), state);
        let mut live = Live::new(match &recipe.loaded.code {
            Code::Component(component) => {
                let mut store = component.store(context).map_err(|error| exhausted("memory", "memory", &error))?;
                let instance = component.pre.instantiate_async(&mut store).await;
                let instance = instance.map_err(|error| self.start_failure(store.data(), &error))?;
                Body::Component(Box::new(
                    component.bind(store, &instance).map_err(|(name, error)| shape_failure(name, &error))?,
                ))
            }
            Code::Native(library) => {
                let guest = native::Guest::start(*library, &recipe.plugin, context);
                Body::Native(Box::new(guest.map_err(|error| exhausted("threads", "thread", &error))?))
            }
        });
        let refused = |error| Failure::Answer(Cause::Start(Box::new(convert::fault_back(error))));
        let configured = live.configure(&recipe.config).await;
        configured.map_err(|error| self.start_failure(live.context(), &error))?.map_err(refused)?;
        let session = convert::session(&recipe.session);
        let started = live.session_start(&session, &self.start).await;
        started.map_err(|error| self.start_failure(live.context(), &error))?.map_err(refused)?;
        Ok(live)
    }

    /// The failure of an instance that is not in its slot yet, where [`Slot::call_failure`] cannot read what it printed.
    fn start_failure(&self, context: &Context, error: &wasmtime::Error) -> Failure {
        let limit = Limit::StartTime;
        Failure::Answer(self.cause(context, error, (limit, self.recipe.limits.time(limit))))
    }

    fn call_failure(&self, error: &wasmtime::Error, state: &Call, deadline: (Limit, Duration)) -> Cause {
        if state.is_cancelled() {
            return Cause::Cancelled;
        }
        match &self.live {
            Some(live) => self.cause(live.context(), error, deadline),
            None => Cause::Trap(Box::new(first_line(error).into())),
        }
    }

    /// Why a guest ended: a limit, its deadline or its own crash.
    fn cause(&self, context: &Context, error: &wasmtime::Error, deadline: (Limit, Duration)) -> Cause {
        let limits = &self.recipe.limits;
        if let Some(limit) = context.meter.refused.or_else(|| limit_in(error)) {
            return Cause::Limit { limit, value: limits.get(limit) };
        }
        if matches!(error.downcast_ref(), Some(wasmtime::Trap::Interrupt)) {
            let (limit, after) = deadline;
            return Cause::Deadline { limit, after };
        }
        Cause::Trap(Box::new(crash(context, error)))
    }

    async fn leave(mut self) {
        let Some(live) = &mut self.live else { return };
        let limits = self.recipe.limits;
        let deadline = limits.time(Limit::TurnTime);
        let call = Call::new(deadline, &limits);
        let processor_time = Arc::clone(&call.processor_time);
        live.begin(call);
        let ended = processor_time.of(live.session_end(&Ending::Left));
        match tokio::time::timeout(deadline, ended).await {
            Ok(Ok(Ok(()))) => {}
            other => tracing::debug!(plugin = self.recipe.plugin, ?other, "session-end"),
        }
    }
}

/// The code of the failure of a plugin that does not fit the contract.
pub const SHAPE: &str = "shape";

/// The system lacks something that a start needs.
fn exhausted(code: &str, what: &str, error: &dyn std::fmt::Display) -> Failure {
    let why = format!("the system gives it no {what}: {error}");
    Failure::Answer(Cause::Start(Box::new(Fault::new(FaultKind::Exhausted, code, why))))
}

/// The failure of a plugin whose export has the right name but another shape.
fn shape_failure(name: &str, error: &wasmtime::Error) -> Failure {
    let why = format!("its export `{name}` does not fit the contract: {}", first_line(error));
    Failure::Answer(Cause::Start(Box::new(Fault::new(FaultKind::InvalidInput, SHAPE, why))))
}

/// The limit that wasmtime enforces itself and that its error names. The tests of each limit pin these messages.
fn limit_in(error: &wasmtime::Error) -> Option<Limit> {
    const WORDS: [(&str, Limit); 6] = [
        ("fuel allocated for hostcalls has been exhausted", Limit::Output),
        ("store handle limit exceeded", Limit::Handles),
        ("resource table has no free keys", Limit::Handles),
        ("resource limit exceeded: instance count", Limit::Instances),
        ("resource limit exceeded: memory count", Limit::Memories),
        ("resource limit exceeded: table count", Limit::Tables),
    ];
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    let contains = |words: &str| chain.iter().any(|line| line.contains(words));
    WORDS.iter().find(|(words, _)| contains(words)).map(|(_, limit)| *limit)
}

/// Why a guest crashed: what it wrote to standard error, such as a panic message or a traceback, else the trap.
fn crash(context: &Context, error: &wasmtime::Error) -> Crash {
    let has_exited = error.is::<wasmtime_wasi::I32Exit>();
    if let Some(crash) = Crash::read(&context.output.tail()) {
        return if has_exited { crash.by_exit() } else { crash };
    }
    let what = if has_exited {
        EXIT.to_owned()
    } else {
        match error.downcast_ref::<wasmtime::Trap>() {
            // A guest's own stack may overflow before the machine's stack does, and looks like either fault.
            Some(wasmtime::Trap::StackOverflow | wasmtime::Trap::MemoryOutOfBounds) => {
                "stack or memory fault, such as endless recursion".to_owned()
            }
            Some(trap) => trap.to_string().trim_start_matches("wasm trap: ").to_owned(),
            // The message of a native library.
            None => return Crash::read(&first_line(error)).unwrap_or_else(|| "it ended without a reason".into()),
        }
    };
    let frames =
        error.downcast_ref::<wasmtime::WasmBacktrace>().map(wasmtime::WasmBacktrace::frames).unwrap_or_default();
    let functions: Vec<String> = frames.iter().filter_map(|frame| frame.func_name().map(str::to_owned)).collect();
    let crash = Crash::of_trap(what, &functions);
    // Nothing else says it to the author.
    if !functions.is_empty() {
        context.services.reporter.log(Level::Info, crash.raw.trim_end());
    }
    crash
}

fn first_line(error: &wasmtime::Error) -> String {
    error.root_cause().to_string().lines().next().unwrap_or_default().to_owned()
}
