//! Instances: each in a task that owns its store, calls in order, a fresh one after every failure.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_bindings::exports::hermes::plugin as exported;
use hermes_conversation::MessageId;
use tokio::sync::{mpsc, oneshot};
use wasmtime::{Store, UpdateDeadline};

use crate::component::Loaded;
use crate::context::{Call, Context};
use crate::convert;
use crate::error::{CallError, Cause};
use crate::limits::Limits;
use crate::services::Services;
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
}

impl Recipe {
    /// Carries out one call in an instance of its own.
    pub(crate) async fn once<R, F>(
        self: &Arc<Self>,
        name: &'static str,
        deadline: Duration,
        call: F,
    ) -> Result<R, CallError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
    {
        let mut slot = Slot { recipe: Arc::clone(self), live: None, start: Start::Resumed };
        let (reply, answer) = oneshot::channel();
        // In a task of its own, so that a caller who goes away leaves it time to wind up.
        tokio::spawn(async move { Envelope { name, deadline, call, reply }.carry_out(&mut slot).await });
        answer.await.unwrap_or_else(|_| Err(self.error(name, Cause::Cancelled)))
    }

    /// Makes an instance, has it read its configuration, and lets it go: whether it could serve, before it has to.
    pub async fn rehearse(self: &Arc<Self>) -> Result<(), CallError> {
        let deadline = self.limits.deadlines.start;
        let mut slot = Slot { recipe: Arc::clone(self), live: None, start: Start::Resumed };
        let made = tokio::time::timeout(deadline, slot.configured(Call::new(deadline))).await;
        let cause = match made {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(Failure::Answer(cause))) => cause,
            Ok(Err(Failure::Trap(error))) => Cause::Trap { why: first_line(&error) },
            Err(_) => Cause::Deadline(deadline),
        };
        Err(self.error("configure", cause))
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

    pub(crate) async fn call<R, F>(&self, name: &'static str, deadline: Duration, call: F) -> Result<R, CallError>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let cancelled = || self.recipe.error(name, Cause::Cancelled);
        self.jobs.send(Box::new(Envelope { name, deadline, call, reply })).map_err(|_| cancelled())?;
        answer.await.unwrap_or_else(|_| Err(cancelled()))
    }
}

/// A call on its way to an instance.
struct Envelope<R, F> {
    name: &'static str,
    deadline: Duration,
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
        let Self { name, deadline, call, mut reply } = self;
        let result = slot.carry_out(name, deadline, reply.closed(), call).await;
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

/// An instance with what it exports.
pub(crate) struct Live {
    pub(crate) store: Store<Context>,
    pub(crate) lifecycle: exported::lifecycle::Guest,
    pub(crate) context_engine: Option<exported::context_engine::Guest>,
    pub(crate) context_assist: Option<exported::context_assist::Guest>,
    pub(crate) memory_provider: Option<exported::memory_provider::Guest>,
    pub(crate) memory_events: Option<exported::memory_events::Guest>,
    pub(crate) tools: Option<exported::tools::Guest>,
    pub(crate) skills: Option<exported::skills::Guest>,
    pub(crate) hooks: Option<exported::hooks::Guest>,
    /// The newest message that a context engine was told of.
    pub(crate) observed: Option<MessageId>,
}

/// How an attempt went wrong: in the guest, or by its own answer.
enum Failure {
    Trap(wasmtime::Error),
    Answer(Cause),
}

impl Slot {
    async fn carry_out<R, F>(
        &mut self,
        name: &'static str,
        deadline: Duration,
        gone: impl Future<Output = ()>,
        call: F,
    ) -> Result<R, CallError>
    where
        F: for<'a> FnOnce(&'a mut Live) -> Work<'a, R>,
    {
        let mut allowed = deadline;
        if self.live.is_none() {
            allowed += self.recipe.limits.deadlines.start;
        }
        let state = Call::new(allowed);
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
                () = tokio::time::sleep(allowed) => None,
                () = gone => {
                    state.cancel();
                    tokio::time::timeout(GRACE, &mut attempt).await.ok()
                }
            }
        };
        let cause = match outcome {
            Some(Ok(result)) => return Ok(result),
            Some(Err(Failure::Answer(cause))) => cause,
            Some(Err(Failure::Trap(error))) => self.why(&error, &state, deadline),
            None if state.is_cancelled() => Cause::Cancelled,
            None => Cause::Deadline(deadline),
        };
        self.live = None;
        Err(self.recipe.error(name, cause))
    }

    /// The instance, made when there is none, with its clock set for the call.
    async fn live(&mut self, mut state: Call, deadline: Duration) -> Result<&mut Live, Failure> {
        if self.live.is_none() {
            let mut making = state.clone();
            making.until = std::time::Instant::now() + self.recipe.limits.deadlines.start;
            let live = self.make(making).await?;
            self.live = Some(live);
            self.start = Start::Resumed;
            state.until = std::time::Instant::now() + deadline;
        }
        let live = self.live.as_mut().expect("made above");
        live.store.data_mut().call = state;
        live.store.set_epoch_deadline(1);
        Ok(live)
    }

    async fn make(&mut self, state: Call) -> Result<Live, Failure> {
        let mut live = self.configured(state).await?;
        let recipe = &self.recipe;
        let session = convert::session(&recipe.session);
        let started = live.lifecycle.call_session_start(&mut live.store, &session, &self.start).await;
        let answer = started.map_err(|error| self.trapped(&live.store, error))?;
        answer.map_err(|error| Failure::Answer(Cause::Fault(Box::new(convert::fault_back(error)))))?;
        Ok(live)
    }

    /// An instance that knows its configuration and of no session.
    async fn configured(&mut self, state: Call) -> Result<Live, Failure> {
        let recipe = &self.recipe;
        let loaded = &recipe.loaded;
        let context = Context::new(recipe.services.clone(), recipe.limits, state);
        let mut store = Store::new(loaded.pre.engine(), context);
        store.limiter(|context| &mut context.meter);
        store.set_hostcall_fuel(recipe.limits.import_bytes);
        store.set_epoch_deadline(1);
        // At every tick: stop when the time is up, else let other tasks run.
        store.epoch_deadline_callback(|store| {
            let call = &store.data().call;
            Ok(if call.time_left().is_zero() { UpdateDeadline::Interrupt } else { UpdateDeadline::Yield(1) })
        });
        let instance = loaded.pre.instantiate_async(&mut store).await.map_err(|error| self.trapped(&store, error))?;
        macro_rules! bind {
            ($field:ident) => {
                match &loaded.$field {
                    Some(indices) => Some(indices.load(&mut store, &instance).map_err(Failure::Trap)?),
                    None => None,
                }
            };
        }
        let mut live = Live {
            lifecycle: loaded.lifecycle.load(&mut store, &instance).map_err(Failure::Trap)?,
            context_engine: bind!(context_engine),
            context_assist: bind!(context_assist),
            memory_provider: bind!(memory_provider),
            memory_events: bind!(memory_events),
            tools: bind!(tools),
            skills: bind!(skills),
            hooks: bind!(hooks),
            observed: None,
            store,
        };
        let configured = live.lifecycle.call_configure(&mut live.store, &recipe.config).await;
        let answer = configured.map_err(|error| self.trapped(&live.store, error))?;
        answer.map_err(|error| Failure::Answer(Cause::Fault(Box::new(convert::fault_back(error)))))?;
        Ok(live)
    }

    /// A crash while the instance is not yet in its slot, where [`Slot::why`] could not find its words.
    fn trapped(&self, store: &Store<Context>, error: wasmtime::Error) -> Failure {
        let context = store.data();
        if context.call.time_left().is_zero() {
            return Failure::Answer(Cause::Deadline(self.recipe.limits.deadlines.start));
        }
        Failure::Answer(reason(context, &error, self.recipe.limits))
    }

    fn why(&self, error: &wasmtime::Error, state: &Call, deadline: Duration) -> Cause {
        if state.is_cancelled() {
            return Cause::Cancelled;
        }
        let Some(live) = &self.live else { return Cause::Trap { why: first_line(error) } };
        if matches!(error.downcast_ref(), Some(wasmtime::Trap::Interrupt)) {
            return Cause::Deadline(deadline);
        }
        reason(live.store.data(), error, self.recipe.limits)
    }

    async fn leave(mut self) {
        let Some(live) = &mut self.live else { return };
        let deadline = self.recipe.limits.deadlines.turn;
        live.store.data_mut().call = Call::new(deadline);
        live.store.set_epoch_deadline(1);
        let told = live.lifecycle.call_session_end(&mut live.store, Ending::Left);
        match tokio::time::timeout(deadline, told).await {
            Ok(Ok(Ok(()))) => {}
            other => tracing::debug!(plugin = self.recipe.plugin, ?other, "session-end"),
        }
    }
}

fn reason(context: &Context, error: &wasmtime::Error, limits: Limits) -> Cause {
    if context.meter.refused {
        return Cause::Memory { limit: limits.memory };
    }
    let said = panic_text(&context.stderr.tail());
    if !said.is_empty() {
        return Cause::Trap { why: said };
    }
    Cause::Trap {
        why: match error.downcast_ref::<wasmtime::Trap>() {
            // A guest's own stack runs out before the machine's does, and looks like either.
            Some(wasmtime::Trap::StackOverflow | wasmtime::Trap::MemoryOutOfBounds) => {
                "stack or memory fault, such as endless recursion".to_owned()
            }
            Some(trap) => trap.to_string(),
            None => first_line(error),
        },
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
