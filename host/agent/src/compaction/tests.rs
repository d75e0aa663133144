#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{
    Conversation, Draft, Item, Message, MessageId, MessageRange, Model, Plan, Segment, Summary, Usage, View,
};
use hermes_plugin_host::{
    Advice, CacheState, CallError, Cause, ContextEngine, Fault, FaultKind, MemoryEvents, Moment, Outcome, PlanRequest,
    Pressure, Progress, Timing,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::error::AgentError;
use crate::stop::{Steps, until_stopped};

/// How long a turn waits for an optional plan.
const PLAN_TIMEOUT: Duration = Duration::from_millis(300);

/// A conversation without a store.
struct MemoryTarget {
    conversation: RwLock<Conversation>,
    view: View,
    summaries: HashMap<String, Summary>,
    fixed_tokens: u32,
    faults: u32,
}

impl MemoryTarget {
    /// Creates a conversation: one message of the user, then answers of `words` words each, then another question.
    fn of(answers: u64, words: usize, fixed_tokens: u32) -> Self {
        let mut drafts = vec![Draft::user("begin", 1)];
        drafts.extend((0..answers).map(|at| Draft::assistant("word ".repeat(words), Vec::new(), at)));
        drafts.push(Draft::user("and now?", 9));
        let messages = drafts.into_iter().zip(1..).map(|(draft, id)| Message { id: MessageId(id), draft });
        let conversation = RwLock::new(Conversation::new(messages));
        Self { conversation, view: View::default(), summaries: HashMap::new(), fixed_tokens, faults: 0 }
    }
}

#[async_trait]
impl CompactionTarget for MemoryTarget {
    fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.conversation.read().unwrap()
    }

    fn view(&self) -> &View {
        &self.view
    }

    fn summaries(&self) -> &HashMap<String, Summary> {
        &self.summaries
    }

    async fn adopt(&mut self, view: View, _: &str, _: &str) -> Result<(), AgentError> {
        self.summaries.extend(view.summaries().map(|summary| (summary.key.clone(), summary.clone())));
        self.view = view;
        Ok(())
    }

    fn fixed_tokens(&self) -> u32 {
        self.fixed_tokens
    }

    fn cache(&self) -> CacheState {
        CacheState { warm_tokens: 1_000, warm_until: None, read_price: 0.1, write_price: 1.25, breaking: false }
    }

    fn faults(&self) -> u32 {
        self.faults
    }

    async fn keep_faults(&mut self, in_a_row: u32, _: &str) -> Result<(), AgentError> {
        self.faults = in_a_row;
        Ok(())
    }
}

/// What a call of `prepare` does.
#[derive(Clone)]
enum Work {
    Done,
    More,
    Hang,
    Fail(Cause),
}

/// An engine that follows a script: each plan folds the messages up to the next number of `folds`.
struct Scripted {
    work: Work,
    folds: Mutex<VecDeque<u64>>,
    prepared: AtomicUsize,
    proposed: AtomicUsize,
    hangs_at_settled: bool,
    pressures: Mutex<Vec<Pressure>>,
    /// What it says about plans, how long it takes for one, what it was asked for, and what became of its plans.
    timing: Timing,
    takes: Duration,
    asked: Mutex<Vec<(Moment, Option<String>)>>,
    outcomes: Mutex<Vec<Outcome>>,
}

impl Scripted {
    fn new(work: Work, folds: &[u64]) -> Self {
        Self {
            work,
            folds: Mutex::new(folds.to_vec().into()),
            prepared: AtomicUsize::new(0),
            proposed: AtomicUsize::new(0),
            hangs_at_settled: false,
            pressures: Mutex::default(),
            timing: Timing::NotNow,
            takes: Duration::ZERO,
            asked: Mutex::default(),
            outcomes: Mutex::default(),
        }
    }
}

fn error(cause: Cause) -> CallError {
    CallError { plugin: "scripted".to_owned(), version: "1.0.0".to_owned(), call: "prepare", cause }
}

/// Counts the running calls of `prepare`.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

static ALIVE: std::sync::LazyLock<Arc<AtomicUsize>> = std::sync::LazyLock::new(Arc::default);

#[async_trait]
impl ContextEngine for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn model_changed(&self, _: &Model) -> Result<(), CallError> {
        Ok(())
    }

    async fn rewound(&self, _: MessageId) -> Result<(), CallError> {
        Ok(())
    }

    async fn assess(&self, pressure: &Pressure) -> Result<Advice, CallError> {
        self.pressures.lock().unwrap().push(pressure.clone());
        Ok(Advice { prepare: true, propose: self.timing, extra: Vec::new() })
    }

    async fn prepare(&self, _: &PlanRequest) -> Result<Progress, CallError> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        match &self.work {
            Work::Done => Ok(Progress::Done),
            Work::More => Ok(Progress::More),
            Work::Fail(cause) => Err(error(cause.clone())),
            Work::Hang => {
                ALIVE.fetch_add(1, Ordering::Relaxed);
                let _alive = Alive(Arc::clone(&ALIVE));
                std::future::pending().await
            }
        }
    }

    async fn propose(&self, request: &PlanRequest) -> Result<Option<Plan>, CallError> {
        let count = self.proposed.fetch_add(1, Ordering::Relaxed);
        self.asked.lock().unwrap().push((request.pressure.moment, request.focus.clone()));
        tokio::time::sleep(self.takes).await;
        let Some(last) = self.folds.lock().unwrap().pop_front() else { return Ok(None) };
        let Some((Item::Messages(tail), _)) = request.view.last() else { return Ok(None) };
        let covers = vec![MessageRange::new(MessageId(1), MessageId(last))];
        let summary = Summary { key: format!("s{count}"), content: "short".to_owned(), covers };
        let rest = MessageRange::new(MessageId(last + 1), tail.last);
        let segments = vec![Segment::Summary(summary), Segment::Keep(rest)];
        Ok(Some(Plan { segments, reason: "folded".to_owned(), extra: Vec::new() }))
    }

    async fn settled(&self, outcome: &Outcome) -> Result<(), CallError> {
        self.outcomes.lock().unwrap().push(outcome.clone());
        match self.hangs_at_settled {
            true => std::future::pending().await,
            false => Ok(()),
        }
    }

    async fn status(&self) -> Result<String, CallError> {
        Ok("{}".to_owned())
    }
}

type Notices = Arc<Mutex<Vec<String>>>;

fn compactor(engine: Scripted, window: u32) -> (Compactor, Arc<Scripted>, Notices) {
    let engine = Arc::new(engine);
    let notices = Notices::default();
    let sink = Arc::clone(&notices);
    let notify: Notify = Arc::new(move |notice| sink.lock().unwrap().push(notice.to_string()));
    let rules = Rules { enabled: true, window, patience: PLAN_TIMEOUT };
    (Compactor::new(engine.clone(), Vec::new(), rules, Ruler::default(), notify), engine, notices)
}

async fn wait_for_preparation(compactor: &Compactor) {
    while compactor.is_preparing() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_overflowing_request_is_folded_by_the_engine_and_then_by_the_host() {
    let mut target = MemoryTarget::of(20, 100, 0);
    let (mut compactor, _, _) = compactor(Scripted::new(Work::Done, &[11]), 200_000);
    // The last request that fitted was much smaller.
    compactor.counted(50, None);
    let mut done = Vec::new();
    compactor.make_room(&mut target, Moment::Overflow, &mut done).await.unwrap();
    let by: Vec<&str> = done.iter().map(|done| done.by.as_str()).collect();
    assert_eq!(by, ["scripted"]);
    // The request is still too long, and the engine has no further plan.
    compactor.make_room(&mut target, Moment::Overflow, &mut done).await.unwrap();
    assert_eq!(done.len(), 2);
    assert_eq!(done[1].by, "host");
}

/// After a refusal it would drop what it has prepared.
#[tokio::test(start_paused = true)]
async fn an_engine_learns_that_a_plan_was_previewed_and_not_that_it_was_refused() {
    for (folded, is_valid) in [(11, true), (22, false)] {
        let target = MemoryTarget::of(20, 100, 0);
        let (mut compactor, engine, _) = compactor(Scripted::new(Work::Done, &[folded]), 200_000);
        let preview = compactor.preview(&target, None).await.unwrap();
        assert_eq!(preview.is_ok(), is_valid, "{preview:?}");
        assert!(matches!(engine.outcomes.lock().unwrap()[..], [Outcome::Deferred]), "{:?}", engine.outcomes);
        assert_eq!(target.view, View::default());
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_fills_the_window_does_not_rewrite_the_view_in_every_turn() {
    // The prompt takes nearly the whole share of the window with which a turn may begin.
    let mut target = MemoryTarget::of(20, 200, 169_500);
    let (mut compactor, engine, _) = compactor(Scripted::new(Work::Done, &[2, 3, 4, 5]), 200_000);
    let mut done = Vec::new();
    for _ in 0..4 {
        compactor.turn_begins();
        compactor.make_room(&mut target, Moment::TurnStart, &mut done).await.unwrap();
    }
    assert_eq!((done.len(), engine.proposed.load(Ordering::Relaxed)), (1, 1), "{done:?}");
    // The conversation has grown.
    let more =
        (30..85).map(|id| Message { id: MessageId(id), draft: Draft::assistant("word ".repeat(200), Vec::new(), id) });
    more.for_each(|message| target.conversation.write().unwrap().push(message));
    compactor.make_room(&mut target, Moment::TurnStart, &mut done).await.unwrap();
    assert!(engine.proposed.load(Ordering::Relaxed) > 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_preparation_counts_as_a_failure_and_a_missing_model_does_not() {
    let away = Cause::Fault(Box::new(Fault::new(FaultKind::Unavailable, "no-model", "no model is configured")));
    let crash = Cause::Trap(Box::new("unreachable".into()));
    for (cause, faults, calls) in [(away, 0, 6), (crash, STRIKES, STRIKES as usize)] {
        let mut target = MemoryTarget::of(5, 10, 0);
        let (mut compactor, engine, notices) = compactor(Scripted::new(Work::Fail(cause), &[]), 200_000);
        for _ in 0..6 {
            compactor.turn_begins();
            compactor.make_room(&mut target, Moment::TurnStart, &mut Vec::new()).await.unwrap();
            wait_for_preparation(&compactor).await;
            compactor.turn_begins();
            compactor.make_room(&mut target, Moment::MidTurn, &mut Vec::new()).await.unwrap();
            compactor.finish(Duration::ZERO).await;
        }
        assert_eq!(target.faults, faults);
        assert!(engine.prepared.load(Ordering::Relaxed) >= calls);
        let given_up = notices.lock().unwrap().iter().filter(|notice| notice.contains("is no longer called")).count();
        assert_eq!(given_up, usize::from(faults > 0));
        // A compaction on request reports the failed preparation and counts one failure.
        let adopted = compactor.compress(&mut target, None, &mut Vec::new()).await.unwrap();
        assert!(
            !adopted
                && notices.lock().unwrap().iter().any(|notice| notice.ends_with("what is prepared already counts"))
        );
        assert_eq!(target.faults, if faults > 0 { faults + 1 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn endless_preparation_is_limited() {
    let mut target = MemoryTarget::of(5, 10, 0);
    let (mut compactor, engine, notices) = compactor(Scripted::new(Work::More, &[]), 200_000);
    compactor.compress(&mut target, None, &mut Vec::new()).await.unwrap();
    assert_eq!(engine.prepared.load(Ordering::Relaxed), 256);
    assert!(notices.lock().unwrap()[0].contains("256 steps"));
    compactor.turn_ended(&mut target).await.unwrap();
    wait_for_preparation(&compactor).await;
    assert_eq!(engine.prepared.load(Ordering::Relaxed), 512);
}

#[tokio::test(start_paused = true)]
async fn background_work_ends_with_the_session() {
    let mut target = MemoryTarget::of(5, 10, 0);
    let (mut compactor, engine, _) = compactor(Scripted::new(Work::Hang, &[]), 200_000);
    compactor.turn_ended(&mut target).await.unwrap();
    while engine.prepared.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ALIVE.load(Ordering::Relaxed), 1);
    drop(compactor);
    tokio::task::yield_now().await;
    assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_view_adopted_before_a_stop_is_reported() {
    let mut target = MemoryTarget::of(20, 100, 0);
    let engine = Scripted { hangs_at_settled: true, ..Scripted::new(Work::Done, &[11]) };
    let (mut compactor, _, _) = compactor(engine, 200_000);
    let mut done = Vec::new();
    let token = CancellationToken::new();
    let stops = token.clone();
    let stop = async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        stops.cancel();
    };
    let steps = Steps::default();
    let work = until_stopped(&token, &steps, compactor.make_room(&mut target, Moment::Overflow, &mut done));
    let (outcome, ()) = tokio::join!(work, stop);
    assert!(outcome.is_none());
    assert_eq!(done.len(), 1);
    assert_eq!(target.view.summaries().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_learns_the_size_of_the_next_request() {
    let mut target = MemoryTarget::of(5, 10, 700);
    let (mut compactor, engine, _) = compactor(Scripted::new(Work::Done, &[]), 200_000);
    compactor.make_room(&mut target, Moment::TurnStart, &mut Vec::new()).await.unwrap();
    let usage = Usage { input: 900, output: 7, ..Usage::default() };
    compactor.counted(compactor.estimate(&target), Some(usage));
    compactor.turn_ended(&mut target).await.unwrap();
    let pressures = engine.pressures.lock().unwrap();
    let [before, after] = &pressures[..] else { panic!("{pressures:?}") };
    let estimate = 700 + target.conversation().view_tokens(target.view());
    assert_eq!((before.prompt_tokens, before.estimated, before.last), (estimate, true, None));
    assert_eq!((before.fixed_tokens, before.context_length, before.reserve), (700, 200_000, 8_192));
    assert_eq!((after.estimated, after.last), (false, Some(usage)));
    assert!(before.expected_requests > after.expected_requests);
    assert_eq!((before.moment, after.moment), (Moment::TurnStart, Moment::TurnEnd));
}

#[tokio::test(start_paused = true)]
async fn an_engine_is_not_asked_while_it_plans_or_after_a_failure_or_if_compaction_is_off() {
    let asked = |engine: &Scripted| engine.pressures.lock().unwrap().len();

    // It plans for a second.
    let mut target = MemoryTarget::of(20, 100, 0);
    let engine = Scripted { timing: Timing::Boundary, takes: Duration::from_secs(1), ..Scripted::new(Work::Done, &[]) };
    let (mut compactor, engine, _) = self::compactor(engine, 200_000);
    compactor.make_room(&mut target, Moment::TurnStart, &mut Vec::new()).await.unwrap();
    assert!(compactor.is_proposing());
    compactor.make_room(&mut target, Moment::MidTurn, &mut Vec::new()).await.unwrap();
    compactor.turn_ended(&mut target).await.unwrap();
    assert_eq!(asked(&engine), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    compactor.make_room(&mut target, Moment::TurnStart, &mut Vec::new()).await.unwrap();
    assert_eq!(asked(&engine), 2);

    // Each preparation crashes.
    let crash = Cause::Trap(Box::new("unreachable".into()));
    let (mut compactor, engine, _) = self::compactor(Scripted::new(Work::Fail(crash), &[]), 200_000);
    for expected in [1, 2, 3, 3, 3] {
        compactor.turn_begins();
        compactor.make_room(&mut target, Moment::TurnStart, &mut Vec::new()).await.unwrap();
        wait_for_preparation(&compactor).await;
        compactor.make_room(&mut target, Moment::MidTurn, &mut Vec::new()).await.unwrap();
        assert_eq!(asked(&engine), expected);
    }

    let engine = Arc::new(Scripted::new(Work::Done, &[]));
    let rules = Rules { enabled: false, window: 200_000, patience: PLAN_TIMEOUT };
    let mut compactor = Compactor::new(engine.clone(), Vec::new(), rules, Ruler::default(), Arc::new(|_| ()));
    compactor.make_room(&mut MemoryTarget::of(20, 100, 0), Moment::TurnStart, &mut Vec::new()).await.unwrap();
    assert_eq!(asked(&engine), 0);
}

/// A memory provider that counts how often it is asked.
struct Asked(AtomicUsize);

#[async_trait]
impl MemoryEvents for Asked {
    fn name(&self) -> &str {
        "memory"
    }

    async fn before_compact(&self, _: MessageRange) -> Result<String, CallError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok("tea".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn memories_are_asked_before_preparations_and_not_before_a_plan_without_one() {
    let memory = Arc::new(Asked(AtomicUsize::new(0)));
    let engine = Arc::new(Scripted::new(Work::Done, &[11]));
    let rules = Rules { enabled: true, window: 200_000, patience: PLAN_TIMEOUT };
    let memories: Vec<Arc<dyn MemoryEvents>> = vec![memory.clone()];
    let mut compactor = Compactor::new(engine.clone(), memories, rules, Ruler::default(), Arc::new(|_| ()));
    let mut target = MemoryTarget::of(20, 100, 0);
    let (mut done, asked) = (Vec::new(), || memory.0.load(Ordering::Relaxed));
    compactor.make_room(&mut target, Moment::Overflow, &mut done).await.unwrap();
    assert_eq!((done.len(), asked()), (1, 0));
    wait_for_preparation(&compactor).await;
    assert_eq!((engine.prepared.load(Ordering::Relaxed), asked()), (1, 1));
    compactor.compress(&mut target, None, &mut done).await.unwrap();
    assert_eq!(asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_plan_for_a_view_that_was_replaced_is_stale() {
    let mut target = MemoryTarget::of(20, 100, 0);
    let engine =
        Scripted { timing: Timing::Boundary, takes: Duration::from_secs(1), ..Scripted::new(Work::Done, &[11]) };
    let (mut compactor, engine, _) = compactor(engine, 200_000);
    let mut done = Vec::new();
    compactor.make_room(&mut target, Moment::TurnStart, &mut done).await.unwrap();
    assert!(compactor.is_proposing());
    let covers = vec![MessageRange::new(MessageId(1), MessageId(5))];
    let summary = Summary { key: "other".to_owned(), content: "short".to_owned(), covers };
    let other = View { items: vec![Item::Summary(summary)], through: Some(MessageId(5)) };
    target.view = other.clone();
    tokio::time::sleep(Duration::from_secs(2)).await;
    compactor.make_room(&mut target, Moment::MidTurn, &mut done).await.unwrap();
    assert!(matches!(engine.outcomes.lock().unwrap()[..], [Outcome::Stale]), "{:?}", engine.outcomes);
    assert_eq!((done.len(), target.view), (0, other));
}

#[tokio::test(start_paused = true)]
async fn a_refused_plan_is_reported_with_the_rule_that_it_breaks() {
    let mut target = MemoryTarget::of(20, 100, 0);
    // A plan of its own needs more messages than there are.
    let (mut compactor, engine, _) = compactor(Scripted::new(Work::Done, &[40]), 200_000);
    compactor.compress(&mut target, Some("the harbour"), &mut Vec::new()).await.unwrap();
    assert_eq!(*engine.asked.lock().unwrap(), [(Moment::Manual, Some("the harbour".to_owned()))]);
    let outcomes = engine.outcomes.lock().unwrap();
    let [Outcome::Refused(refusal)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(!refusal.code().is_empty(), "{refusal}");
    assert_eq!(target.view, View::default());
}
