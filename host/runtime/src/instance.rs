//! Instances: each in a task that owns its store, calls in order, a fresh one after every failure.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::context::{Call, Context};
use crate::convert;
use crate::error::{CallError, Cause, Fault, FaultKind};
use crate::limits::{Limit, Limits, Tier};
use crate::live::{Body, Live};
use crate::loaded::{Code, Loaded};
use crate::native;
use crate::services::Services;
use crate::slots::SessionCalls;
use crate::tally::Tally;
use crate::types::{Ending, SessionInfo, Start};

/// How long a cancelled plugin may take to wind up before it is ended.
const GRACE: Duration = Duration::from_millis(250);

/// Everything it takes to make an instance, again and again.
#[derive(Clone)]
pub struct Recipe {
    /// The plugin's name, for messages.
    pub plugin: String,
    /// The plugin's version, for messages.
    pub version: String,
    /// Its code.
    pub loaded: Arc<Loaded>,
    /// Its section of the configuration, as JSON.
    pub config: String,
    /// The session it serves.
    pub session: SessionInfo,
    /// How its first instance is told of the session; later ones are told that it is resumed.
    pub start: Start,
    /// What it may reach.
    pub services: Services,
    /// What it may use.
    pub limits: Limits,
    /// Counts what all of its instances use.
    pub tally: Arc<Tally>,
    /// How many calls in instances of their own run at once.
    pub lanes: Lanes,
}

/// Limits the calls of one plugin in one session that run at once, and keeps the instance that the last of them used.
/// It belongs to one recipe: an instance with other code or other rights must not be reused here.
#[derive(Clone)]
pub struct Lanes {
    room: Arc<Semaphore>,
    session: SessionCalls,
    /// One only: most calls come one after the other, and what rests takes memory.
    resting: Arc<Mutex<Option<Live>>>,
}

impl Lanes {
    /// For one plugin of a session.
    pub fn new(limits: &Limits, session: &SessionCalls) -> Self {
        let room = Arc::new(Semaphore::new(limits.size(Limit::ParallelCalls)));
        Self { room, session: session.clone(), resting: Arc::default() }
    }

    /// For another recipe of the same plugin in the same session.
    #[must_use]
    pub fn renewed(&self, limits: &Limits) -> Self {
        Self::new(limits, &self.session)
    }

    fn resting(&self) -> MutexGuard<'_, Option<Live>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call as everybody on its way knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// The function of the contract.
    pub(crate) name: &'static str,
    /// The limit that says how long it may take.
    pub(crate) within: Limit,
    /// Bytes that it hands over.
    pub(crate) bytes: u64,
}

impl Recipe {
    /// Carries out one call in an instance that nobody else has meanwhile: that which the last such call left, else a new one.
    pub(crate) async fn once<R, F>(self: &Arc<Self>, asked: Asked, call: F) -> Result<R, CallError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
    {
        self.admit(asked)?;
        let cancelled = || self.error(asked.name, Cause::Cancelled);
        // The plugin's own limit comes first, so that a plugin with many calls does not delay the others.
        let own = Arc::clone(&self.lanes.room).acquire_owned().await.map_err(|_| cancelled())?;
        let shared = self.lanes.session.enter().await.map_err(|_| cancelled())?;
        // An engine or a memory reads at its start what its other instances keep in storage: it gets a new one.
        let lasts = self.loaded.exports().tier() == Tier::Tools;
        let live = if lasts { self.lanes.resting().take() } else { None };
        let mut slot = Slot { recipe: Arc::clone(self), live, start: Start::Resumed };
        let (reply, answer) = oneshot::channel();
        // In a task of its own, so that a caller who goes away leaves it time to wind up.
        tokio::spawn(async move {
            Envelope { asked, call, reply }.carry_out(&mut slot).await;
            // After a failure there is none. Of several that ran beside each other one is kept.
            if let Some(live) = slot.live.take().filter(|_| lasts) {
                slot.recipe.lanes.resting().get_or_insert(live);
            }
            drop((own, shared));
        });
        answer.await.unwrap_or_else(|_| Err(cancelled()))
    }

    /// A call that hands over too much is not made.
    fn admit(&self, asked: Asked) -> Result<(), CallError> {
        let most = self.limits.get(Limit::Input);
        match asked.bytes {
            bytes if bytes > most => Err(self.error(asked.name, Cause::Input { bytes, most })),
            _ => Ok(()),
        }
    }

    pub(crate) fn error(&self, call: &'static str, cause: Cause) -> CallError {
        CallError { plugin: self.plugin.clone(), version: self.version.clone(), call, cause }
    }
}

pub(crate) type Work<'a, R> = Pin<Box<dyn Future<Output = wasmtime::Result<R>> + Send + 'a>>;

/// An instance of a plugin that lasts: calls queue and are carried out in order.
///
/// It is made at its first call. When it is dropped, the plugin is told that the session was left.
pub struct Instance {
    recipe: Arc<Recipe>,
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
}

impl Instance {
    /// Nothing runs before the first call.
    pub fn new(recipe: Arc<Recipe>) -> Self {
        let (jobs, mut queue) = mpsc::unbounded_channel::<Box<dyn Job>>();
        let mut slot = Slot { start: recipe.start.clone(), live: None, recipe: Arc::clone(&recipe) };
        tokio::spawn(async move {
            while let Some(job) = queue.recv().await {
                job.run(&mut slot).await;
            }
            slot.leave().await;
        });
        Self { recipe, jobs }
    }

    /// What its instances are made of.
    pub fn recipe(&self) -> &Arc<Recipe> {
        &self.recipe
    }

    pub(crate) async fn call<R, F>(&self, asked: Asked, call: F) -> Result<R, CallError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
    {
        self.recipe.admit(asked)?;
        let (reply, answer) = oneshot::channel();
        let cancelled = || self.recipe.error(asked.name, Cause::Cancelled);
        self.jobs.send(Box::new(Envelope { asked, call, reply })).map_err(|_| cancelled())?;
        answer.await.unwrap_or_else(|_| Err(cancelled()))
    }
}

/// A call on its way to an instance.
struct Envelope<R, F> {
    asked: Asked,
    call: F,
    reply: oneshot::Sender<Result<R, CallError>>,
}

#[async_trait]
trait Job: Send {
    async fn run(self: Box<Self>, slot: &mut Slot);
}

impl<R, F> Envelope<R, F>
where
    R: Send + 'static,
    F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
{
    async fn carry_out(self, slot: &mut Slot) {
        let Self { asked, call, mut reply } = self;
        let begun = Moment::now();
        let result = slot.carry_out(asked, reply.closed(), call).await;
        slot.recipe.tally.called(begun.elapsed());
        let _ = reply.send(result);
    }
}

#[async_trait]
impl<R, F> Job for Envelope<R, F>
where
    R: Send + 'static,
    F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
{
    async fn run(self: Box<Self>, slot: &mut Slot) {
        self.carry_out(slot).await;
    }
}

/// A place for an instance, empty before the first call and after every failure.
struct Slot {
    recipe: Arc<Recipe>,
    live: Option<Live>,
    start: Start,
}

/// How an attempt went wrong: in the guest, or by its own answer.
enum Failure {
    Trap(wasmtime::Error),
    Answer(Cause),
}

impl Slot {
    async fn carry_out<R, F>(&mut self, asked: Asked, gone: impl Future<Output = ()>, call: F) -> Result<R, CallError>
    where
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R>,
    {
        let limits = self.recipe.limits;
        let deadline = limits.time(asked.within);
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
            Some(Err(Failure::Trap(error))) => self.why(&error, &state, asked.within),
            None if state.is_cancelled() => Cause::Cancelled,
            None => Cause::Deadline { limit: asked.within, after: deadline },
        };
        self.live = None;
        Err(self.recipe.error(asked.name, cause))
    }

    /// The instance, made when there is none, with its clock set for the call.
    async fn live(&mut self, mut state: Call, deadline: Duration) -> Result<&mut Live, Failure> {
        if self.live.is_none() {
            let mut making = state.clone();
            making.until = Moment::now() + self.recipe.limits.time(Limit::StartTime);
            let live = self.make(making).await?;
            self.live = Some(live);
            self.start = Start::Resumed;
            state.until = Moment::now() + deadline;
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
                let mut store = component.store(context);
                let instance = component.pre.instantiate_async(&mut store).await;
                let instance = instance.map_err(|error| self.trapped(store.data(), &error))?;
                Body::Component(Box::new(component.bind(store, &instance).map_err(|(name, error)| odd(name, &error))?))
            }
            Code::Native(library) => {
                let guest = native::Guest::start(*library, &recipe.plugin, context);
                Body::Native(Box::new(guest.map_err(|error| {
                    let why = format!("the system gives it no thread: {error}");
                    Failure::Answer(Cause::Start(Box::new(Fault::new(FaultKind::Exhausted, "threads", why))))
                })?))
            }
        });
        let refused = |error| Failure::Answer(Cause::Start(Box::new(convert::fault_back(error))));
        let configured = live.configure(&recipe.config).await;
        configured.map_err(|error| self.trapped(live.context(), &error))?.map_err(refused)?;
        let session = convert::session(&recipe.session);
        let started = live.session_start(&session, &self.start).await;
        started.map_err(|error| self.trapped(live.context(), &error))?.map_err(refused)?;
        Ok(live)
    }

    /// A crash while the instance is not yet in its slot, where [`Slot::why`] could not find its words.
    fn trapped(&self, context: &Context, error: &wasmtime::Error) -> Failure {
        Failure::Answer(self.reason(context, error, Limit::StartTime))
    }

    fn why(&self, error: &wasmtime::Error, state: &Call, within: Limit) -> Cause {
        if state.is_cancelled() {
            return Cause::Cancelled;
        }
        match &self.live {
            Some(live) => self.reason(live.context(), error, within),
            None => Cause::Trap { why: first_line(error) },
        }
    }

    /// Why a guest was ended: by a limit, by its time, or by itself.
    fn reason(&self, context: &Context, error: &wasmtime::Error, within: Limit) -> Cause {
        let limits = &self.recipe.limits;
        if let Some(limit) = context.meter.refused.or_else(|| limit_in(error)) {
            return Cause::Limit { limit, value: limits.get(limit) };
        }
        if matches!(error.downcast_ref(), Some(wasmtime::Trap::Interrupt)) {
            return Cause::Deadline { limit: within, after: limits.time(within) };
        }
        Cause::Trap { why: crash(context, error) }
    }

    async fn leave(mut self) {
        let Some(live) = &mut self.live else { return };
        let limits = self.recipe.limits;
        let deadline = limits.time(Limit::TurnTime);
        live.begin(Call::new(deadline, &limits));
        let told = live.session_end(Ending::Left);
        match tokio::time::timeout(deadline, told).await {
            Ok(Ok(Ok(()))) => {}
            other => tracing::debug!(plugin = self.recipe.plugin, ?other, "session-end"),
        }
    }
}

/// An export that is there by name and not by shape.
fn odd(name: &str, error: &wasmtime::Error) -> Failure {
    let why = format!("its export `{name}` does not fit the contract: {}", first_line(error));
    Failure::Answer(Cause::Start(Box::new(Fault::new(FaultKind::InvalidInput, "shape", why))))
}

/// The limit that wasmtime itself keeps and that an error of it tells of; its words are held by the tests of each limit.
fn limit_in(error: &wasmtime::Error) -> Option<Limit> {
    const WORDS: [(&str, Limit); 6] = [
        ("fuel allocated for hostcalls has been exhausted", Limit::Output),
        ("store handle limit exceeded", Limit::Handles),
        ("resource table has no free keys", Limit::Handles),
        ("resource limit exceeded: instance count", Limit::Instances),
        ("resource limit exceeded: memory count", Limit::Memories),
        ("resource limit exceeded: table count", Limit::Tables),
    ];
    let told: Vec<String> = error.chain().map(ToString::to_string).collect();
    let tells = |words: &str| told.iter().any(|line| line.contains(words));
    WORDS.iter().find(|(words, _)| tells(words)).map(|(_, limit)| *limit)
}

/// Why a guest crashed: its own words, where it had any.
fn crash(context: &Context, error: &wasmtime::Error) -> String {
    /// Bytes of a panic's words that a line for people has room for.
    const WORDS: usize = 1 << 10;
    let said = panic_text(&context.stderr.tail());
    if !said.is_empty() {
        return said[..said.floor_char_boundary(WORDS)].to_owned();
    }
    match error.downcast_ref::<wasmtime::Trap>() {
        // A guest's own stack runs out before the machine's does, and looks like either.
        Some(wasmtime::Trap::StackOverflow | wasmtime::Trap::MemoryOutOfBounds) => {
            "stack or memory fault, such as endless recursion".to_owned()
        }
        Some(trap) => trap.to_string(),
        None => first_line(error),
    }
}

/// A panic's words without the advice that only its author could follow.
fn panic_text(stderr: &str) -> String {
    let lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("note: run with"));
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("thread '<unnamed>' (1) ").to_owned()
}

fn first_line(error: &wasmtime::Error) -> String {
    error.root_cause().to_string().lines().next().unwrap_or_default().to_owned()
}
