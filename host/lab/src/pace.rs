//! Measures the calls of an engine by the clock of this machine, through the component boundary.
//!
//! A long session is built as the host would build it, folded step by step, and its background preparation always
//! finishes in time. Then the session continues, and before each of its requests every function that a turn waits for is
//! timed. The figures exclude the host's own work and the model. The engine gets new messages within the first call after
//! them, as in a session.

use std::path::Path;
use std::time::Instant;

use hermes_conversation::{Conversation, Draft, MessageId, ToolCall, Usage, View};
use hermes_engine_trials::bench::{Bench, Setting};
use hermes_engine_trials::runtime;
use hermes_engine_trials::timing::Timing;
use hermes_engine_trials::watch::elapsed;
use hermes_plugin_host::{AssistDraft, CallError, ContextEngine as _, Outcome, PlanRequest, Plugins, Start, Storage};
use tokio::runtime::Runtime;

use crate::{FaultMode, StandIn, Terms};

/// Messages of a turn: a question, calls with their results, a reply.
const TURN: u64 = 10;
/// How many turns are timed at each length.
const TURNS: u64 = 250;
/// How many sessions are started to measure the start.
const STARTED: usize = 50;

/// The measurements of one engine at one length.
#[derive(Debug, Clone)]
pub struct Pace {
    /// The number of messages when the timing began.
    pub messages: u64,
    /// The number of views published until then.
    pub publications: u64,
    /// The timing of each contract function; `assess` includes passing the new messages.
    pub calls: Vec<(&'static str, Timing)>,
    /// The first call of an instance that resumes the whole session.
    pub resumed: Timing,
}

/// Measures the start of an empty session: creating an instance, configuring it and starting the session.
///
/// # Errors
///
/// Returns the reason if the session cannot be started.
pub fn creation(plugins: &Plugins, scratch: &Path) -> Result<Timing, String> {
    let runtime = runtime()?;
    let mut micros = Vec::new();
    for number in 0..STARTED {
        let session = Session::begin(plugins, scratch, &runtime, Storage::Memory(Default::default()), number)?;
        micros.push(timed(&runtime, session.bench.watched.status())?);
    }
    timing(micros)
}

/// Runs one session and measures it at each of these lengths, shortest first.
///
/// # Errors
///
/// Returns the reason if the session fails.
pub fn paces(plugins: &Plugins, scratch: &Path, lengths: &[u64]) -> Result<Vec<Pace>, String> {
    let runtime = runtime()?;
    let storage = Storage::Memory(Default::default());
    let mut session = Session::begin(plugins, scratch, &runtime, storage, 0)?;
    let mut paces = Vec::new();
    for length in lengths {
        while session.next < *length {
            session.turn(None)?;
        }
        let (messages, publications) = (session.next - 1, session.bench.target.views.len() as u64);
        let mut taken = Durations::default();
        for _ in 0..TURNS {
            session.turn(Some(&mut taken))?;
        }
        let resumed = (0..5).map(|_| session.resumed(plugins, scratch)).collect::<Result<_, _>>()?;
        let Durations { assist, assess, propose, plans, settled } = taken;
        let calls = [
            ("assess", assess),
            ("propose", propose),
            ("propose, with a plan", plans),
            ("settled", settled),
            ("assist", assist),
        ];
        let calls = calls.into_iter().filter_map(|(name, micros)| Some((name, Timing::of(micros)?))).collect();
        paces.push(Pace { messages, publications, calls, resumed: timing(resumed)? });
    }
    Ok(paces)
}

/// Durations of calls in microseconds.
#[derive(Default)]
struct Durations {
    assist: Vec<u64>,
    assess: Vec<u64>,
    propose: Vec<u64>,
    /// Calls of `propose` that returned a plan.
    plans: Vec<u64>,
    settled: Vec<u64>,
}

struct Session<'a> {
    runtime: &'a Runtime,
    storage: Storage,
    bench: Bench,
    /// The id of the next message.
    next: u64,
    now_ms: u64,
}

impl<'a> Session<'a> {
    fn begin(
        plugins: &Plugins,
        scratch: &Path,
        runtime: &'a Runtime,
        storage: Storage,
        number: usize,
    ) -> Result<Self, String> {
        let setting = setting(plugins, scratch, &storage, format!("pace-{number}"), Conversation::default());
        let _inside = runtime.enter();
        Ok(Self { runtime, bench: Bench::begin(setting)?, storage, next: 1, now_ms: 1_767_225_600_000 })
    }

    /// Plays one turn. If `taken` is given, the calls before its requests are timed.
    fn turn(&mut self, mut taken: Option<&mut Durations>) -> Result<(), String> {
        let number = self.next;
        self.now_ms += 60_000;
        let question =
            format!("in part {number} the case of #{} breaks: look why, and mend it", number.saturating_sub(600));
        if let (Some(taken), Some(assist)) = (&mut taken, self.bench.assist().cloned()) {
            let call = assist.assist(AssistDraft::User(question.clone()), 1_000);
            taken.assist.push(timed(self.runtime, call)?);
        }
        self.add_message(Draft::user(question, self.now_ms))?;
        for step in 0..(TURN - 2) / 2 {
            self.request(taken.as_deref_mut())?;
            let call = ToolCall {
                id: format!("call-{number}-{step}"),
                name: "read".to_owned(),
                arguments: format!(r#"{{"path":"src/part_{}/step_{step}.rs","offset":{number}}}"#, number % 97),
            };
            self.add_message(Draft::assistant("", vec![call.clone()], self.now_ms))?;
            let lines =
                (0..20 + number % 30).map(|line| format!("    let value_{line} = take({number}, {step}, {line});\n"));
            self.add_message(Draft::result(&call, lines.collect::<String>(), self.now_ms))?;
        }
        self.request(taken)?;
        let reply = format!("The case of part {number} is mended: value_{} was taken twice.", number % 20);
        self.add_message(Draft::assistant(reply, Vec::new(), self.now_ms))
    }

    fn add_message(&mut self, draft: Draft) -> Result<(), String> {
        self.now_ms += 2_000;
        let id = MessageId(self.next);
        self.next += 1;
        self.runtime.block_on(self.bench.add_message(id, &Draft { created_at: self.now_ms, ..draft }))
    }

    fn request(&mut self, taken: Option<&mut Durations>) -> Result<(), String> {
        self.now_ms += 5_000;
        self.runtime.block_on(self.bench.make_room(self.now_ms))?;
        let estimate = self.bench.tokens();
        self.bench.counted(Usage { input: estimate, ..Usage::default() });
        let assessed = self.bench.watched.take_assess();
        let (Some(taken), Some(pressure)) = (taken, self.bench.watched.pressure()) else { return Ok(()) };
        taken.assess.extend(assessed);
        // An extra call, which the host would not make, so that plans are measured at every length of the unfolded part.
        let view = self.bench.log.conversation().priced_items(&self.bench.target.view);
        let request = PlanRequest { pressure, view, focus: None, memory_context: String::new() };
        let engine = &self.bench.watched;
        let begun = Instant::now();
        let plan = self.runtime.block_on(engine.propose(&request)).map_err(|error| error.to_string())?;
        let micros = elapsed(begun);
        taken.propose.push(micros);
        if plan.is_some() {
            taken.plans.push(micros);
            taken.settled.push(timed(self.runtime, engine.settled(&Outcome::Deferred))?);
        }
        Ok(())
    }

    /// Resumes the session in another instance, as another process would, and times its first call.
    fn resumed(&mut self, plugins: &Plugins, scratch: &Path) -> Result<u64, String> {
        let conversation = self.bench.log.conversation().clone();
        let setting = Setting {
            start: Start::Resumed,
            view: self.bench.target.view.clone(),
            views: self.bench.target.views.clone(),
            now_ms: self.now_ms,
            ..setting(plugins, scratch, &self.storage, "pace-0".to_owned(), conversation)
        };
        let other = {
            let _inside = self.runtime.enter();
            Bench::begin(setting)?
        };
        let Some(pressure) = self.bench.watched.pressure() else { return Err("no request was due yet".to_owned()) };
        timed(self.runtime, other.watched.assess(&pressure))
    }
}

fn setting<'a>(
    plugins: &'a Plugins,
    scratch: &'a Path,
    storage: &Storage,
    session: String,
    conversation: Conversation,
) -> Setting<'a> {
    Setting {
        plugins,
        terms: Terms::STANDARD,
        stand_in: StandIn::new(Terms::STANDARD.bytes_per_token, FaultMode::Sound),
        home: scratch,
        storage: storage.clone(),
        session,
        start: Start::Fresh,
        conversation,
        view: View::default(),
        views: Vec::new(),
        now_ms: 0,
    }
}

fn timed<T>(runtime: &Runtime, call: impl Future<Output = Result<T, CallError>>) -> Result<u64, String> {
    let begun = Instant::now();
    runtime.block_on(call).map_err(|error| error.to_string())?;
    Ok(elapsed(begun))
}

fn timing(micros: Vec<u64>) -> Result<Timing, String> {
    Timing::of(micros).ok_or_else(|| "nothing was timed".to_owned())
}
