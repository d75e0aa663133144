//! The optional functions of memory providers, which the host calls in the background: recalls ahead of the next message,
//! writes of other providers, and upkeep. Rewinds are delivered with the turns (`delivery.rs`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_plugin_host::{CallError, MemoryAction, MemoryMirror, MemoryPrefetch, MemoryUpkeep, MemoryWrite, Outlook};
use hermes_plugin_host::{Output, Progress, Recollection};
use hermes_session_store::SessionStore;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::report::NoticeSender;

/// Recalls ahead of the next message. Clones share them. Dropping the last one cancels those that still run.
#[derive(Clone, Default)]
pub(crate) struct Prefetches {
    providers: Arc<[Arc<dyn MemoryPrefetch>]>,
    running: Arc<Mutex<HashMap<String, Prefetch>>>,
}

struct Prefetch {
    running: JoinSet<Result<Vec<Recollection>, CallError>>,
    /// A turn began without it.
    is_late: bool,
}

impl Prefetches {
    pub(crate) fn new(providers: Vec<Arc<dyn MemoryPrefetch>>) -> Self {
        Self { providers: providers.into(), running: Arc::default() }
    }

    /// Starts a recall, unless the provider cannot, or is still busy with an earlier one.
    pub(crate) fn start(&self, provider: &str, outlook: Outlook) {
        let Some(memory) = self.providers.iter().find(|memory| memory.name() == provider).cloned() else { return };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = running.get_mut(provider)
            && earlier.running.try_join_next().is_none()
            && !earlier.running.is_empty()
        {
            return;
        }
        let mut task = JoinSet::new();
        task.spawn(async move { memory.prefetch(outlook).await });
        running.insert(provider.to_owned(), Prefetch { running: task, is_late: false });
    }

    /// What is ready, with whether it came late. What is not ready serves a later turn.
    pub(crate) fn take(&self) -> Vec<(String, bool, Vec<Recollection>)> {
        let mut ready = Vec::new();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|provider, prefetch| {
            let Some(answer) = prefetch.running.try_join_next() else {
                prefetch.is_late = true;
                return !prefetch.running.is_empty();
            };
            match answer {
                Ok(Ok(recollections)) => ready.push((provider.clone(), prefetch.is_late, recollections)),
                Ok(Err(error)) => tracing::warn!(%error, provider, "nothing was recalled ahead"),
                Err(ended) => tracing::warn!(%ended, provider, "a recall ahead ended without an answer"),
            }
            false
        });
        ready.sort_by(|one, other| one.0.cmp(&other.0));
        ready
    }

    /// Cancels recalls and drops their results.
    pub(crate) fn forget(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The key of a tool's output under which a memory provider says what it wrote.
const WRITE: &str = "memory-write";

/// A write as a provider's tool describes it.
#[derive(Deserialize)]
struct Described {
    action: String,
    #[serde(default)]
    target: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    previous: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Described),
    More(Vec<Described>),
}

/// Passes the writes of each memory provider to those of the session that mirror them.
pub(crate) struct Mirrors {
    session: String,
    clock: Clock,
    /// The memory providers of the session.
    providers: Vec<String>,
    notices: NoticeSender,
    queues: Mutex<Vec<(String, mpsc::UnboundedSender<MemoryWrite>)>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Mirrors {
    /// A task for each provider that mirrors, where its writes are delivered in order.
    pub(crate) fn start(
        session: String,
        clock: Clock,
        providers: Vec<String>,
        mirrors: Vec<Arc<dyn MemoryMirror>>,
        notices: NoticeSender,
    ) -> Self {
        let (mut queues, mut tasks) = (Vec::new(), JoinSet::new());
        for mirror in mirrors {
            let (sender, mut queue) = mpsc::unbounded_channel::<MemoryWrite>();
            queues.push((mirror.name().to_owned(), sender));
            let notices = notices.clone();
            tasks.spawn(async move {
                while let Some(write) = queue.recv().await {
                    let provider = write.provider.clone();
                    if let Err(error) = mirror.written(write).await {
                        notices.notice(format!("{error}; a write of the memory `{provider}` is missing there"));
                    }
                }
            });
        }
        Self { session, clock, providers, notices, queues: Mutex::new(queues), tasks: Mutex::new(tasks) }
    }

    /// Passes on what a tool's output says about writes, if the tool belongs to a memory provider.
    pub(crate) fn pass_on(&self, plugin: &str, output: &Output) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.is_empty() || !self.providers.iter().any(|provider| provider == plugin) {
            return;
        }
        for (_, described) in output.extra.iter().filter(|(key, _)| key == WRITE) {
            let writes = match serde_json::from_str(described) {
                Ok(OneOrMore::One(write)) => vec![write],
                Ok(OneOrMore::More(writes)) => writes,
                Err(error) => {
                    self.notices.notice(format!(
                        "plugin `{plugin}`: the value of `{WRITE}` in its output does not describe a write ({error}); other \
                         memories do not learn of it"
                    ));
                    continue;
                }
            };
            for write in writes {
                let write = self.write(plugin, write);
                for (_, queue) in queues.iter().filter(|(mirror, _)| mirror != plugin) {
                    // The task ends only with the session.
                    let _ = queue.send(write.clone());
                }
            }
        }
    }

    fn write(&self, provider: &str, described: Described) -> MemoryWrite {
        let Described { action, target, text, previous } = described;
        let action = match action.as_str() {
            "added" => MemoryAction::Added,
            "replaced" => MemoryAction::Replaced,
            "removed" => MemoryAction::Removed,
            _ => MemoryAction::Other(action),
        };
        let (provider, session_id) = (provider.to_owned(), self.session.clone());
        MemoryWrite { provider, session_id, action, target, text, previous, at: self.clock.now(), extra: Vec::new() }
    }

    /// Waits until all writes are delivered, at most `patience`, and then cancels the rest.
    pub(crate) async fn stop(&self, patience: Duration) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let delivered = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, delivered).await.is_err() {
            tracing::warn!("writes were not passed on to all memories before the session ended");
        }
    }
}

/// The pause after a provider's upkeep is done, in all sessions.
const UPKEEP_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Lets the providers care for their stores, one after the other. Dropping the future interrupts it.
pub(crate) async fn upkeep(store: &dyn SessionStore, clock: Clock, providers: &[Arc<dyn MemoryUpkeep>]) {
    for provider in providers {
        let note = format!("upkeep {}", provider.name());
        let last = store.note(&note).await.ok().flatten().and_then(|at| at.parse::<u64>().ok());
        let now = clock.now();
        // A time in the future means that the clock was set back.
        let is_due = last.is_none_or(|last| last > now || Duration::from_millis(now - last) >= UPKEEP_PAUSE);
        if !is_due {
            continue;
        }
        loop {
            match provider.upkeep().await {
                Ok(Progress::More) => tokio::task::yield_now().await,
                Ok(Progress::Done) => break,
                Err(error) => {
                    tracing::warn!(%error, provider = provider.name(), "upkeep failed");
                    break;
                }
            }
        }
        if let Err(error) = store.set_note(&note, Some(&clock.now().to_string())).await {
            tracing::warn!(%error, provider = provider.name(), "the time of the upkeep is not stored");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use hermes_plugin_host::{Cause, Fault, FaultKind};
    use hermes_store::{SqliteSessions, Store};
    use jiff::Timestamp;

    use super::*;

    /// A recall takes a second. The upkeep takes three steps; if `fails` is set, the second one fails.
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
                let fault = Fault::new(FaultKind::Unavailable, "", "closed");
                let (plugin, version) = ("slow".to_owned(), "1.0.0".to_owned());
                return Err(CallError { plugin, version, call: "upkeep", cause: Cause::Fault(Box::new(fault)) });
            }
            tokio::task::yield_now().await;
            Ok(if step.is_multiple_of(3) { Progress::Done } else { Progress::More })
        }
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
        let prefetches = Prefetches::new(vec![Arc::new(Provider::default())]);
        prefetches.start("slow", outlook("one"));
        prefetches.start("other", outlook("one"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(taken(&prefetches), [("one".to_owned(), false)]);
        assert_eq!(taken(&prefetches), []);

        prefetches.start("slow", outlook("two"));
        tokio::task::yield_now().await;
        assert_eq!(taken(&prefetches), []);
        // It is still busy, so it is not called again.
        prefetches.start("slow", outlook("three"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(taken(&prefetches), [("two".to_owned(), true)]);

        // Nobody took the result, and a newer one replaces it.
        prefetches.start("slow", outlook("four"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        prefetches.start("slow", outlook("five"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(taken(&prefetches), [("five".to_owned(), false)]);

        prefetches.start("slow", outlook("six"));
        prefetches.forget();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(taken(&prefetches), []);
    }

    fn store() -> (tempfile::TempDir, SqliteSessions) {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteSessions::new(Arc::new(Store::open(home.path()).unwrap()));
        (home, store)
    }

    async fn steps_after(store: &SqliteSessions, clock: Clock, fails: bool) -> u32 {
        let provider = Arc::new(Provider { steps: AtomicU32::new(0), fails });
        upkeep(store, clock, &[Arc::clone(&provider) as Arc<dyn MemoryUpkeep>]).await;
        provider.steps.load(Ordering::SeqCst)
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
        tokio::select! {
            biased;
            () = upkeep(&store, Clock::default(), std::slice::from_ref(&provider)) => panic!("it yields before its third step"),
            () = async { tokio::task::yield_now().await } => {}
        }
        assert!(steps_after(&store, Clock::default(), false).await > 0);
        assert_eq!(steps_after(&store, Clock::default(), false).await, 0);
    }
}
