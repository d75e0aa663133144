//! Tests on generated conversations that compaction loses nothing.
//!
//! Each conversation goes through the host's compaction with the engine, with restarts, kills, rewinds, branches, model
//! changes and engine changes in between, and with a summariser that may be down, empty, oversized or hostile. After every
//! request, the view is checked independently of the host's own verifier. At the end of one conversation in ten, every
//! message is read back through the engine's tools.

mod judge;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hermes_conversation::{Conversation, Draft, MessageId, Role, Usage, View, closing, last_resort, plan};
use hermes_plugin_host::{ContextEngine as _, Plugins, Start, Storage};
use serde::Serialize;
use tokio::runtime::Runtime;

use self::judge::Judge;
use crate::bench::{Bench, Setting};
use crate::generate::{Dice, Event, Scenario};
use crate::recall::EngineTools;
use crate::trace::{Compaction, EventRow};
use crate::{FaultMode, StandIn, Terms, needles, runtime};

/// How many failures a report describes.
const NAMED: usize = 10;
/// One conversation in this many is read back through the engine's tools.
const READ_BACK: u64 = 10;

/// The parameters of a verification.
pub struct Trial<'a> {
    /// The engine.
    pub plugins: &'a Plugins,
    /// A second engine that takes over for parts of some conversations.
    pub other: Option<&'a Plugins>,
    /// The seed of the first conversation; the seeds of the others follow.
    pub seed: u64,
    /// The number of conversations.
    pub conversations: u64,
    /// Turns of each conversation; derived from its seed if absent.
    pub turns: Option<u32>,
    /// The number of threads.
    pub jobs: usize,
    /// Whether to record every event.
    pub trace: bool,
    /// A folder for temporary search indexes.
    pub scratch: &'a Path,
}

/// A conversation that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The seed that reproduces it.
    pub seed: u64,
    /// The fewest turns that reproduce it.
    pub turns: u32,
    /// The number of the event, starting at 1.
    pub event: usize,
    /// The reason.
    pub why: String,
}

/// The result of a verification. It is deterministic, except for the number of failures if there are many.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Proof {
    /// How often each event or check occurred.
    pub counts: BTreeMap<&'static str, u64>,
    /// The number of failed conversations.
    pub failed: u64,
    /// The first failures, by seed.
    pub failures: Vec<Failure>,
    /// Every event, by seed, if the trial records them.
    #[serde(skip)]
    pub trace: Vec<EventRow>,
}

impl Proof {
    fn count(&mut self, what: &'static str, times: u64) {
        *self.counts.entry(what).or_default() += times;
    }

    fn add(&mut self, other: Self) {
        for (what, times) in other.counts {
            self.count(what, times);
        }
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.failures.sort_by_key(|failure| failure.seed);
        self.failures.truncate(NAMED);
        self.trace.extend(other.trace);
    }
}

/// Verifies all conversations. `progress` gets the number of finished ones.
///
/// # Errors
///
/// Returns an error if the verification itself cannot run.
pub fn verify(trial: &Trial<'_>, progress: &(dyn Fn(u64) + Sync)) -> Result<Proof, String> {
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let work = || -> Result<Proof, String> {
        let runtime = runtime()?;
        let mut proof = Proof::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= trial.conversations {
                return Ok(proof);
            }
            let seed = trial.seed.wrapping_add(at);
            proof.add(verify_one(trial, &runtime, seed));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let proofs: Vec<Result<Proof, String>> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..trial.jobs.max(1)).map(|_| thread::Builder::new().spawn_scoped(scope, work)).collect();
        let ended = |worker: io::Result<thread::ScopedJoinHandle<'_, Result<Proof, String>>>| {
            let worker = worker.map_err(|error| format!("no thread can be started: {error}"))?;
            worker.join().unwrap_or_else(|_| Err("a thread of the laboratory ended in a panic".into()))
        };
        workers.into_iter().map(ended).collect()
    });
    let mut all = Proof::default();
    for proof in proofs {
        all.add(proof?);
    }
    // The sort keeps the order of a conversation's events.
    all.trace.sort_by_key(|row| row.seed);
    Ok(all)
}

/// Verifies a conversation. If it fails, finds the fewest turns that fail.
fn verify_one(trial: &Trial<'_>, runtime: &Runtime, seed: u64) -> Proof {
    let turns = trial.turns.unwrap_or_else(|| Scenario::usual_turns(seed));
    let mut proof = Proof::default();
    let Err((event, why)) = attempt(trial, runtime, seed, turns, &mut proof) else { return proof };
    let mut failure = Failure { seed, turns, event, why };
    for fewer in 1..turns {
        if let Err((event, why)) = attempt(trial, runtime, seed, fewer, &mut Proof::default()) {
            failure = Failure { seed, turns: fewer, event, why };
            break;
        }
    }
    proof.failed += 1;
    proof.failures.push(failure);
    proof
}

fn attempt(
    trial: &Trial<'_>,
    runtime: &Runtime,
    seed: u64,
    turns: u32,
    proof: &mut Proof,
) -> Result<(), (usize, String)> {
    let scenario = Scenario::new(seed, turns);
    let mut play = Play::begin(trial, runtime, &scenario).map_err(|why| (0, why))?;
    proof.count("conversations", 1);
    for (at, event) in scenario.events.iter().enumerate() {
        let outcome = play.apply(event, proof);
        if trial.trace {
            let error = outcome.as_ref().err().cloned();
            proof.trace.push(EventRow {
                seed,
                event: at + 1,
                kind: event.name(),
                error,
                ..std::mem::take(&mut play.row)
            });
        }
        match outcome {
            Ok(true) => {}
            // The user's message exceeds the window: the host reports it, and nothing is lost.
            Ok(false) => {
                proof.count("conversations that ended in a window too small", 1);
                break;
            }
            Err(why) => return Err((at + 1, why)),
        }
    }
    proof.count("conversations that were compacted", u64::from(play.compacted));
    if !Dice::new(seed ^ 0x7265_6164).one_in(READ_BACK) {
        return Ok(());
    }
    play.read_back(proof).map_err(|why| (scenario.events.len() + 1, why))
}

/// A running conversation.
struct Play<'a> {
    trial: &'a Trial<'a>,
    runtime: &'a Runtime,
    storage: Storage,
    terms: Terms,
    stand_in: StandIn,
    bench: Option<Bench>,
    judge: Judge,
    session: u32,
    /// Whether the second engine is in use.
    other: bool,
    compacted: bool,
    next_id: u64,
    now_ms: u64,
    /// What the trace shows of the present event.
    row: EventRow,
}

impl<'a> Play<'a> {
    fn begin(trial: &'a Trial<'a>, runtime: &'a Runtime, scenario: &Scenario) -> Result<Self, String> {
        let terms = terms(scenario.window);
        let modes = [
            FaultMode::Sound,
            FaultMode::Sound,
            FaultMode::None,
            FaultMode::Down,
            FaultMode::Slow,
            FaultMode::Empty,
            FaultMode::Oversized,
            FaultMode::Hostile,
        ];
        let mode = *Dice::new(scenario.seed ^ 0x7465_6d70_6572).pick(&modes);
        let mut play = Self {
            trial,
            runtime,
            storage: Storage::Memory(Arc::default()),
            terms,
            stand_in: StandIn::new(terms.bytes_per_token, mode),
            bench: None,
            judge: Judge::default(),
            session: 1,
            other: false,
            compacted: false,
            next_id: 1,
            now_ms: 0,
            row: EventRow::default(),
        };
        play.resume(Start::Fresh, Conversation::default(), Vec::new())?;
        Ok(play)
    }

    /// Starts a process that resumes the stored conversation.
    fn resume(&mut self, start: Start, conversation: Conversation, views: Vec<View>) -> Result<(), String> {
        let plugins = if self.other { self.trial.other.unwrap_or(self.trial.plugins) } else { self.trial.plugins };
        let setting = Setting {
            plugins,
            terms: self.terms,
            stand_in: self.stand_in,
            home: self.trial.scratch,
            storage: self.storage.clone(),
            session: format!("verify-{}", self.session),
            start,
            view: views.last().cloned().unwrap_or_default(),
            conversation,
            views,
            now_ms: self.now_ms,
        };
        let _inside = self.runtime.enter();
        self.bench = Some(Bench::begin(setting)?);
        Ok(())
    }

    /// Ends the process, and returns what is stored: the messages and the views.
    fn end(&mut self, gracefully: bool) -> (Conversation, Vec<View>) {
        let Some(mut bench) = self.bench.take() else { return Default::default() };
        if gracefully {
            self.runtime.block_on(bench.advance(self.now_ms));
        }
        let conversation = bench.log.conversation().clone();
        let views = std::mem::take(&mut bench.target.views);
        self.runtime.block_on(bench.kill());
        (conversation, views)
    }

    fn restart(&mut self, gracefully: bool) -> Result<(), String> {
        let (conversation, views) = self.end(gracefully);
        self.resume(Start::Resumed, conversation, views)
    }

    /// Applies an event. Returns false if the conversation must end for a reason that is not a failure.
    fn apply(&mut self, event: &Event, proof: &mut Proof) -> Result<bool, String> {
        match event {
            Event::Said(draft) => self.add_message(draft, proof)?,
            Event::Request { now_ms } => return self.request(*now_ms, proof),
            Event::Rewind(turns) => {
                proof.count("rewinds", 1);
                self.rewind(*turns)?;
            }
            Event::Branch => {
                proof.count("branches", 1);
                let (conversation, views) = self.end(true);
                let parent = format!("verify-{}", self.session);
                self.session += 1;
                self.resume(Start::Continued(parent), conversation, views)?;
            }
            Event::Restart => {
                proof.count("restarts", 1);
                self.restart(true)?;
            }
            Event::Kill => {
                proof.count("kills", 1);
                self.restart(false)?;
            }
            Event::Model(window) => {
                proof.count("switches of the model", 1);
                self.terms = terms(*window);
                self.restart(true)?;
            }
            Event::SwitchEngine if self.trial.other.is_some() => {
                proof.count("switches of the engine", 1);
                self.other = !self.other;
                self.restart(true)?;
            }
            Event::SwitchEngine => {
                proof.count("folds by the host", 1);
                self.fold_by_rule();
            }
        }
        Ok(true)
    }

    fn bench(&mut self) -> Result<&mut Bench, String> {
        self.bench.as_mut().ok_or_else(|| "the conversation has not begun".to_owned())
    }

    fn add_message(&mut self, draft: &Draft, proof: &mut Proof) -> Result<(), String> {
        proof.count("messages", 1);
        proof.count("pictures and files", draft.media().count() as u64);
        self.now_ms = draft.created_at;
        let id = MessageId(self.next_id);
        self.next_id += 1;
        let runtime = self.runtime;
        let bench = self.bench()?;
        runtime.block_on(bench.add_message(id, draft))?;
        let stored = bench.log.conversation().get(id).map(|message| message.draft.clone());
        if stored
            .is_some_and(|stored| stored.text_sent().starts_with(draft.text_sent()) && stored.content == draft.content)
        {
            Ok(())
        } else {
            Err(format!("message {id} was not added to the conversation unchanged"))
        }
    }

    fn request(&mut self, now_ms: u64, proof: &mut Proof) -> Result<bool, String> {
        self.now_ms = now_ms;
        let runtime = self.runtime;
        let Some(bench) = self.bench.as_mut() else { return Err("the conversation has not begun".to_owned()) };
        let done = match runtime.block_on(bench.make_room(now_ms)) {
            Ok(done) => done,
            Err(why) if why.contains("window") => return Ok(false),
            Err(why) => return Err(why),
        };
        proof.count("requests", 1);
        let by_rule = done.iter().filter(|compacted| compacted.by == "host").count() as u64;
        proof.count("publications by the host's last resort", by_rule);
        proof.count("publications", done.len() as u64);
        self.compacted |= !done.is_empty();
        self.row.compactions = done.iter().cloned().map(Compaction::from).collect();
        self.row.plans = Some(bench.watched.take_plans());
        let tokens = {
            let conversation = bench.log.conversation();
            self.judge.request(&conversation, &bench.target.view, &bench.target.views, !done.is_empty())?
        };
        self.row.tokens = Some(tokens);
        bench.counted(Usage { input: tokens, ..Usage::default() });
        Ok(true)
    }

    /// Rewinds the newest turns, as a user does between two processes.
    fn rewind(&mut self, turns: u32) -> Result<(), String> {
        let (conversation, mut views) = self.end(true);
        let messages = conversation.messages();
        let begins: Vec<usize> =
            (0..messages.len()).filter(|at| messages[*at].role == Role::User).rev().take(turns as usize).collect();
        let end = begins.last().copied().unwrap_or(messages.len());
        let kept = Conversation::new(messages[..end].iter().cloned());
        let last = kept.messages().last().map(|message| message.id);
        // A view that reaches beyond the end of the conversation is no longer valid.
        views.retain(|view| view.through <= last);
        self.judge.rewound();
        self.resume(Start::Resumed, kept, views)
    }

    /// Lets the host make a view by rule, as when an engine proposes none.
    fn fold_by_rule(&mut self) {
        let Some(bench) = self.bench.as_mut() else { return };
        let conversation = bench.log.conversation().clone();
        if !closing::close(&conversation, self.now_ms).is_empty() {
            return;
        }
        let target = &bench.target;
        let limit = conversation.view_tokens(&target.view) / 2;
        let summaries = hermes_agent::compaction::CompactionTarget::summaries(target);
        let Some(made) = last_resort::plan(&conversation, &target.view, summaries, limit) else { return };
        let ground = plan::ReferenceState {
            conversation: &conversation,
            view: &target.view,
            summaries,
            limit,
            must_shrink: false,
        };
        if let Ok(view) = plan::verify(&made, &ground) {
            bench.target.take_view(view);
            self.judge.rewound();
        }
    }

    /// Reads every message back through the engine's tools, if it has them, and compares it byte for byte.
    fn read_back(mut self, proof: &mut Proof) -> Result<(), String> {
        self.other = false;
        self.restart(true)?;
        let Some(bench) = &self.bench else { return Ok(()) };
        let conversation = bench.log.conversation().clone();
        let name = bench.watched.name().to_owned();
        let tools = EngineTools::find(self.runtime, &name, bench.tools(), &conversation);
        if let Some(mut tools) = tools {
            for message in conversation.messages() {
                proof.count("messages read back", 1);
                needles::is_whole(message, &mut tools).map_err(|why| format!("message {}: {why}", message.id))?;
            }
        }
        self.end(true);
        Ok(())
    }
}

/// Terms with a small window. The system prompt and tools fill a tenth of it.
fn terms(window: u32) -> Terms {
    Terms { window, fixed_tokens: window / 10, ..Terms::STANDARD }
}
