#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use hermes_plugin_host::{Cause, Fault, FaultKind};
use hermes_store::{SqliteSessions, Store};
use jiff::Timestamp;

use super::*;
use crate::feed::{Feed, FeedLimits};

/// A recall takes a second. The upkeep takes three steps. If `fails` is set, recalls and the second step fail.
#[derive(Default)]
struct Provider {
    steps: AtomicU32,
    fails: bool,
}

#[async_trait]
impl MemoryPrefetch for Provider {
    fn name(&self) -> &str {
        "slow"
    }

    async fn prefetch(&self, outlook: Outlook) -> Result<Vec<Recollection>, CallError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if self.fails {
            return Err(closed("prefetch"));
        }
        Ok(vec![Recollection { key: "k".to_owned(), text: outlook.text, extra: Vec::new() }])
    }
}

#[async_trait]
impl MemoryUpkeep for Provider {
    fn name(&self) -> &str {
        "slow"
    }

    async fn upkeep(&self) -> Result<Progress, CallError> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fails && step == 2 {
            return Err(closed("upkeep"));
        }
        tokio::task::yield_now().await;
        Ok(if step.is_multiple_of(3) { Progress::Done } else { Progress::More })
    }
}

fn closed(call: &'static str) -> CallError {
    let fault = Fault::new(FaultKind::Unavailable, "", "closed");
    let (plugin, version) = ("slow".to_owned(), "1.0.0".to_owned());
    CallError { plugin, version, call, cause: Cause::Fault(Box::new(fault)) }
}

fn outlook(text: &str) -> Outlook {
    Outlook { turn: 1, author: None, text: text.to_owned(), budget: 100, extra: Vec::new() }
}

fn taken(prefetches: &Prefetches) -> Vec<(String, bool)> {
    let text = |(_, is_late, found): (String, bool, Vec<Recollection>)| (found[0].text.clone(), is_late);
    prefetches.take().into_iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_recall_ahead_serves_the_next_turn_once_or_a_later_one_as_late() {
    let prefetches = Prefetches::new(vec![Arc::new(Provider::default())], Breakers::default());
    prefetches.start("slow", outlook("one"), 0);
    prefetches.start("other", outlook("one"), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(taken(&prefetches), [("one".to_owned(), false)]);
    assert_eq!(taken(&prefetches), []);

    prefetches.start("slow", outlook("two"), 0);
    tokio::task::yield_now().await;
    assert_eq!(taken(&prefetches), []);
    // It is still busy, so it is not called again.
    prefetches.start("slow", outlook("three"), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(taken(&prefetches), [("two".to_owned(), true)]);

    // Nobody took the result, and a newer one replaces it.
    prefetches.start("slow", outlook("four"), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    prefetches.start("slow", outlook("five"), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(taken(&prefetches), [("five".to_owned(), false)]);

    prefetches.start("slow", outlook("six"), 0);
    prefetches.forget();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(taken(&prefetches), []);
}

/// Fails to take the first write.
#[derive(Default)]
struct Mirror(Mutex<Vec<MemoryWrite>>);

#[async_trait]
impl MemoryMirror for Mirror {
    fn name(&self) -> &str {
        "mirror"
    }

    async fn written(&self, write: MemoryWrite) -> Result<(), CallError> {
        let mut writes = self.0.lock().unwrap();
        writes.push(write);
        if writes.len() > 1 {
            return Ok(());
        }
        Err(closed("written"))
    }
}

#[tokio::test]
async fn a_write_that_fails_is_reported_once_and_later_writes_go_on() {
    let home = tempfile::tempdir().unwrap();
    let feed = Feed::new(FeedLimits::SHARED);
    let mut events = feed.subscribe(None);
    let notices = NoticeSender::new(home.path(), "s", feed);
    let mirror = Arc::new(Mirror::default());
    let providers = ["builtin", "mirror"].map(str::to_owned).to_vec();
    let mirrors = Mirrors::start("s".to_owned(), Clock::default(), providers, vec![mirror.clone()], notices);
    let output = |writes: &str| Output { extra: vec![(WRITE.to_owned(), writes.to_owned())], ..Output::default() };
    mirrors.pass_on("builtin", &output(r#"{"action": "added", "target": "user", "text": "tea"}"#));
    mirrors.pass_on(
        "builtin",
        &output(r#"[{"action": "replaced", "text": "mate", "previous": "tea"}, {"action": "merged"}]"#),
    );
    // A provider does not learn of its own writes, and other plugins cannot report any.
    mirrors.pass_on("mirror", &output(r#"{"action": "added", "text": "own"}"#));
    mirrors.pass_on("stranger", &output(r#"{"action": "added", "text": "strange"}"#));
    mirrors.stop(Duration::from_secs(60)).await;
    let writes = mirror.0.lock().unwrap();
    let seen: Vec<_> =
        writes.iter().map(|write| (&write.action, write.text.as_str(), write.previous.as_deref())).collect();
    let merged = MemoryAction::Other("merged".to_owned());
    let expected =
        [(&MemoryAction::Added, "tea", None), (&MemoryAction::Replaced, "mate", Some("tea")), (&merged, "", None)];
    assert_eq!(seen, expected);
    assert!(writes.iter().all(|write| write.provider == "builtin" && write.session_id == "s" && write.at > 0));
    let notices = events.notices();
    assert!(notices.len() == 1 && notices[0].to_string().contains("closed"), "{notices:?}");
}

/// Keeps the texts of all events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<String>>);

impl tracing::Subscriber for Events {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut texts = self.0.lock().unwrap();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            texts.push_str(&format!("{field}={value:?} "));
        });
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn an_optional_call_that_fails_is_logged() {
    let events = Events::default();
    let _guard = tracing::subscriber::set_default(events.clone());
    let (_home, store) = store();
    steps_after(&store, Clock::default(), true).await;
    let prefetches =
        Prefetches::new(vec![Arc::new(Provider { fails: true, ..Provider::default() })], Breakers::default());
    prefetches.start("slow", outlook("one"), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(taken(&prefetches), []);
    let logged = events.0.lock().unwrap();
    assert!(logged.contains("upkeep failed") && logged.contains("nothing was recalled ahead"), "{logged}");
    assert_eq!(logged.matches("closed").count(), 2, "{logged}");
}

fn store() -> (tempfile::TempDir, SqliteSessions) {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteSessions::new(Arc::new(Store::open(home.path()).unwrap()));
    (home, store)
}

async fn steps_after(store: &SqliteSessions, clock: Clock, fails: bool) -> u32 {
    steps_with(store, clock, &Breakers::default(), fails).await
}

async fn steps_with(store: &SqliteSessions, clock: Clock, breakers: &Breakers, fails: bool) -> u32 {
    let provider = Arc::new(Provider { steps: AtomicU32::new(0), fails });
    upkeep(store, clock, breakers, &[Arc::clone(&provider) as Arc<dyn MemoryUpkeep>]).await;
    provider.steps.load(Ordering::SeqCst)
}

/// The breakers of a provider that failed three times in a row at this moment.
fn opened(at: u64) -> Breakers {
    let breakers = Breakers::default();
    let changes: Vec<_> = (0..3).filter_map(|_| breakers.failed("slow", "it hangs", at)).collect();
    assert_eq!(changes.len(), 1);
    breakers
}

#[tokio::test(start_paused = true)]
async fn nothing_is_recalled_ahead_while_a_breaker_is_open() {
    let breakers = opened(1_000);
    let prefetches = Prefetches::new(vec![Arc::new(Provider::default())], breakers.clone());
    let ahead = async |text, now| {
        prefetches.start("slow", outlook(text), now);
        tokio::time::sleep(Duration::from_secs(2)).await;
        taken(&prefetches)
    };
    assert_eq!(ahead("one", 30_999).await, []);
    // One turn may ask it again.
    assert_eq!(ahead("two", 31_000).await, [("two".to_owned(), false)]);
    breakers.failed("slow", "it hangs", 31_000);
    assert_eq!(ahead("three", 90_999).await, []);
    breakers.answered("slow");
    assert_eq!(ahead("four", 90_999).await, [("four".to_owned(), false)]);
}

#[tokio::test]
async fn upkeep_stays_due_while_a_breaker_is_open() {
    let (_home, store) = store();
    let at = |second: i64| Clock::set_to(Timestamp::from_second(1_700_000_000 + second).unwrap());
    let breakers = opened(at(0).now());
    assert_eq!(steps_with(&store, at(29), &breakers, false).await, 0);
    assert_eq!(steps_with(&store, at(30), &breakers, false).await, 3);
}

#[tokio::test]
async fn upkeep_goes_on_until_it_is_done_and_then_rests_for_an_hour_whatever_session_asks() {
    let (_home, store) = store();
    let at = |minute: i64| Clock::set_to(Timestamp::from_second(1_700_000_000 + minute * 60).unwrap());
    assert_eq!(steps_after(&store, at(0), false).await, 3);
    assert_eq!(steps_after(&store, at(59), false).await, 0);
    assert_eq!(steps_after(&store, at(62), true).await, 2, "an error ends it");
    assert_eq!(steps_after(&store, at(63), false).await, 0);
    assert_eq!(steps_after(&store, at(0), false).await, 3, "the clock was set back");
}

#[tokio::test]
async fn an_interrupted_upkeep_is_due_again() {
    let (_home, store) = store();
    let provider: Arc<dyn MemoryUpkeep> = Arc::new(Provider::default());
    let breakers = Breakers::default();
    tokio::select! {
        biased;
        () = upkeep(&store, Clock::default(), &breakers, std::slice::from_ref(&provider)) => panic!("it yields before its third step"),
        () = async { tokio::task::yield_now().await } => {}
    }
    assert!(steps_after(&store, Clock::default(), false).await > 0);
    assert_eq!(steps_after(&store, Clock::default(), false).await, 0);
}
