//! Recall before a turn. A turn waits briefly for the memory providers; what comes later serves the next turn.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hermes_plugin_host::{CallError, MemoryProvider, Query, Recollection};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::breaker::{self, Breakers, Change};
use crate::memory_extras::Prefetches;

/// How long a recall may take in all, as a multiple of the time that a turn waits for it.
const LATEST: u32 = 10;
/// The time that a turn waits for a provider without a limit of its own.
const WAIT: Duration = Duration::from_secs(2);

/// A memory that a provider found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recalled {
    pub(crate) provider: String,
    pub(crate) key: String,
    pub(crate) text: String,
    /// It was recalled for an earlier message and came late.
    pub(crate) is_late: bool,
}

impl Recalled {
    /// The provider and its key.
    fn identity(&self) -> (&str, &str) {
        (&self.provider, &self.key)
    }
}

/// What a turn gets from its memory providers.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    /// In the order of the providers. Late memories follow all others.
    pub(crate) recalled: Vec<Recalled>,
    /// The errors of providers. A turn continues without them.
    pub(crate) failed: Vec<CallError>,
    /// Providers for which the turn did not wait any longer.
    pub(crate) late: Vec<String>,
    /// Breakers that opened, stay open, or closed. Their providers are not among the failed and late ones.
    pub(crate) breakers: Vec<Change>,
}

/// The recalls of a session. Dropping it cancels those that still run.
pub(crate) struct Recalls {
    /// The time that a turn waits, by provider.
    waits: HashMap<String, Duration>,
    /// Recalls for earlier messages, by provider.
    running: HashMap<String, JoinSet<Answer>>,
    /// Recalls ahead of the next message.
    prefetches: Prefetches,
    /// Providers that turns go on without.
    breakers: Breakers,
    /// The notices of suspicious memories that the user has seen.
    noticed: HashSet<String>,
}

/// None if the recall took too long and was dropped.
type Answer = Option<Result<Vec<Recollection>, CallError>>;

impl Recalls {
    pub(crate) fn new(waits: HashMap<String, Duration>, prefetches: Prefetches, breakers: Breakers) -> Self {
        Self { waits, running: HashMap::new(), prefetches, breakers, noticed: HashSet::new() }
    }

    /// The breakers, which others share.
    pub(crate) fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    /// Whether the user has not seen this notice in this session.
    pub(crate) fn is_new(&mut self, notice: &str) -> bool {
        self.noticed.insert(notice.to_owned())
    }

    /// Cancels recalls for earlier messages and ahead of the next one, and drops their results.
    pub(crate) fn forget(&mut self) {
        self.running.clear();
        self.prefetches.forget();
    }

    /// Queries all providers at once, but those with an open breaker. A provider that is still busy with an earlier message is
    /// not queried again; the turn waits for its answer instead. `now` is in Unix milliseconds.
    pub(crate) async fn recall(&mut self, memories: &[Arc<dyn MemoryProvider>], query: &Query, now: u64) -> Recall {
        let begun = Instant::now();
        let mut recall = Recall::default();
        let (mut asked, mut late) = (Vec::new(), Vec::new());
        for memory in memories {
            let name = memory.name().to_owned();
            let wait = self.waits.get(&name).copied().unwrap_or(WAIT);
            let mut earlier = self.running.remove(&name);
            if let Some(answer) = earlier.as_mut().and_then(JoinSet::try_join_next) {
                earlier = None;
                late.extend(self.take(&name, true, answer, &mut recall, now));
            }
            if self.breakers.is_open(&name, now) {
                // A recall that is still running serves a later turn.
                self.running.extend(earlier.map(|earlier| (name, earlier)));
                continue;
            }
            let is_late = earlier.is_some();
            let running = earlier.unwrap_or_else(|| {
                let (memory, query) = (Arc::clone(memory), query.clone());
                let mut running = JoinSet::new();
                // Without this limit a call could keep the provider busy for the following turns.
                let longest = wait.saturating_mul(LATEST);
                running.spawn(async move {
                    let answer = tokio::time::timeout(longest, memory.recall(query));
                    answer.await.ok()
                });
                running
            });
            asked.push((name, wait, is_late, running));
        }
        for (name, wait, is_late, mut running) in asked {
            match tokio::time::timeout_at(begun + wait, running.join_next()).await {
                Ok(Some(answer)) => {
                    let recalled = self.take(&name, is_late, answer, &mut recall, now);
                    let place = if is_late { &mut late } else { &mut recall.recalled };
                    place.extend(recalled);
                }
                Ok(None) => {}
                Err(_) => {
                    let why = format!("it did not answer within {} ms", wait.as_millis());
                    match self.breakers.failed(&name, &why, now) {
                        Some(change) => recall.breakers.push(change),
                        None => recall.late.push(name.clone()),
                    }
                    self.running.insert(name, running);
                }
            }
        }
        let mut ahead = Vec::new();
        for (provider, is_late, recollections) in self.prefetches.take() {
            let place = if is_late { &mut late } else { &mut ahead };
            place.extend(found(&provider, is_late, recollections));
        }
        // A newer answer has the newer version of a memory.
        for mut older in [ahead, late] {
            let known: HashSet<(&str, &str)> = recall.recalled.iter().map(Recalled::identity).collect();
            older.retain(|older| !known.contains(&older.identity()));
            recall.recalled.append(&mut older);
        }
        recall
    }

    /// The memories of an answer. An error goes into `recall`.
    fn take(
        &mut self,
        provider: &str,
        is_late: bool,
        answer: Result<Answer, JoinError>,
        recall: &mut Recall,
        now: u64,
    ) -> Vec<Recalled> {
        match answer {
            Ok(Some(Ok(recollections))) => {
                recall.breakers.extend(self.breakers.answered(provider));
                return found(provider, is_late, recollections).collect();
            }
            Ok(Some(Err(error))) => {
                // A turn that did not wait for a late answer has counted it already.
                let counts = !is_late && breaker::counts(&error.cause);
                match counts.then(|| self.breakers.failed(provider, &error.cause.to_string(), now)).flatten() {
                    Some(change) => recall.breakers.push(change),
                    None => recall.failed.push(error),
                }
            }
            Ok(None) => {}
            Err(ended) => tracing::warn!(%ended, provider, "a recall ended without an answer"),
        }
        Vec::new()
    }
}

fn found(provider: &str, is_late: bool, recollections: Vec<Recollection>) -> impl Iterator<Item = Recalled> {
    recollections.into_iter().map(move |Recollection { key, text, .. }| Recalled {
        provider: provider.to_owned(),
        key,
        text,
        is_late,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use hermes_plugin_host::{Cause, Fault, FaultKind, MemoryPrefetch, Outlook, TurnRecord};

    use super::*;

    /// Takes so many milliseconds for the next recalls, and finds the question.
    struct Slow(Mutex<Vec<u64>>, Mutex<Vec<String>>);

    impl Slow {
        fn new(takes_ms: &[u64]) -> Arc<Self> {
            Arc::new(Self(Mutex::new(takes_ms.iter().rev().copied().collect()), Mutex::default()))
        }
    }

    #[async_trait]
    impl MemoryProvider for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        async fn system_prompt(&self) -> Result<String, CallError> {
            Ok(String::new())
        }

        async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
            self.1.lock().unwrap().push(query.text.clone());
            let takes = self.0.lock().unwrap().pop().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(takes)).await;
            let (key, text) = (query.text.chars().take(1).collect(), query.text);
            Ok(vec![Recollection { key, text, extra: Vec::new() }])
        }

        async fn sync_turn(&self, _: &TurnRecord) -> Result<(), CallError> {
            Ok(())
        }
    }

    struct Scene(Arc<Slow>, Recalls, u64, Vec<String>);

    impl Scene {
        fn new(takes_ms: &[u64]) -> Self {
            Self(
                Slow::new(takes_ms),
                Recalls::new(HashMap::new(), Prefetches::default(), Breakers::default()),
                0,
                Vec::new(),
            )
        }

        /// The found texts, late ones with a mark, and whether the turn stopped waiting.
        async fn ask(&mut self, text: &str) -> (Vec<String>, bool) {
            let memories = [Arc::clone(&self.0) as Arc<dyn MemoryProvider>];
            let query = Query { turn: 1, author: None, text: text.to_owned(), budget: 100, extra: Vec::new() };
            let Recall { recalled, failed, late, breakers } = self.1.recall(&memories, &query, self.2).await;
            assert!(failed.is_empty());
            self.3.extend(breakers.into_iter().filter_map(|change| change.line));
            let mark = |recalled: Recalled| format!("{}{}", if recalled.is_late { "late " } else { "" }, recalled.text);
            (recalled.into_iter().map(mark).collect(), !late.is_empty())
        }

        fn asked(&self) -> Vec<String> {
            self.0.1.lock().unwrap().clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_serves_the_next_turn_beside_the_answer_for_it() {
        let mut scene = Scene::new(&[3_000, 10]);
        let begun = Instant::now();
        assert_eq!(scene.ask("first").await, (vec![], true));
        assert_eq!(begun.elapsed(), WAIT);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(scene.ask("second").await, (vec!["second".to_owned(), "late first".to_owned()], false));
        assert_eq!(scene.ask("third").await, (vec!["third".to_owned()], false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_provider_is_not_asked_again_and_its_late_answer_is_awaited() {
        let mut scene = Scene::new(&[5_000]);
        assert_eq!(scene.ask("first").await, (vec![], true));
        assert_eq!(scene.ask("second").await, (vec![], true));
        assert_eq!(scene.ask("third").await, (vec!["late first".to_owned()], false));
        assert_eq!(scene.asked(), ["first"]);
        assert_eq!(scene.ask("fourth").await.0, ["fourth"]);
    }

    #[tokio::test(start_paused = true)]
    async fn turns_do_not_wait_while_a_breaker_is_open_and_it_closes_by_itself() {
        let hour = 3_600_000;
        let mut scene = Scene::new(&[hour, hour]);
        for text in ["1", "2", "3"] {
            let begun = Instant::now();
            scene.ask(text).await;
            assert_eq!(begun.elapsed(), WAIT);
        }
        assert!(scene.3.len() == 1 && scene.3[0].contains("`slow` failed 3 times in a row"), "{:?}", scene.3);
        let begun = Instant::now();
        for text in ["4", "5"] {
            assert_eq!(scene.ask(text).await, (vec![], false));
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        // After the pause a turn asks again, and waits no longer than any other. The next pause is longer.
        tokio::time::sleep(WAIT * LATEST).await;
        scene.2 = 30_000;
        assert_eq!(scene.ask("6").await, (vec![], false));
        assert_eq!(begun.elapsed(), WAIT * (LATEST + 1));
        scene.2 = 89_000;
        assert_eq!(scene.ask("7").await, (vec![], false));
        tokio::time::sleep(WAIT * LATEST).await;
        scene.2 = 90_000;
        assert_eq!(scene.ask("8").await, (vec!["8".to_owned()], false));
        assert!(scene.3.len() == 2 && scene.3[1].contains("answers again"), "{:?}", scene.3);
        assert_eq!(scene.asked(), ["1", "6", "8"]);
    }

    /// Fails after a while, when no turn waits for it any more.
    struct Fails;

    #[async_trait]
    impl MemoryProvider for Fails {
        fn name(&self) -> &str {
            "fails"
        }

        async fn system_prompt(&self) -> Result<String, CallError> {
            Ok(String::new())
        }

        async fn recall(&self, _: Query) -> Result<Vec<Recollection>, CallError> {
            tokio::time::sleep(WAIT + Duration::from_secs(1)).await;
            let (plugin, version) = ("fails".to_owned(), "1.0.0".to_owned());
            let cause = Cause::Fault(Box::new(Fault::new(FaultKind::Unavailable, "", "closed")));
            Err(CallError { plugin, version, call: "recall", cause })
        }

        async fn sync_turn(&self, _: &TurnRecord) -> Result<(), CallError> {
            Ok(())
        }
    }

    /// The turn that did not wait for it has counted it.
    #[tokio::test(start_paused = true)]
    async fn a_failure_that_comes_late_is_counted_once() {
        let mut recalls = Recalls::new(HashMap::new(), Prefetches::default(), Breakers::default());
        let memories = [Arc::new(Fails) as Arc<dyn MemoryProvider>];
        let query = Query { turn: 1, author: None, text: "tea".to_owned(), budget: 100, extra: Vec::new() };
        let mut opened = Vec::new();
        for _ in 0..3 {
            recalls.recall(&memories, &query, 0).await;
            opened.push(recalls.breakers().is_open("fails", 0));
            tokio::time::sleep(WAIT).await;
        }
        assert_eq!(opened, [false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_memory_replaces_a_late_one_with_its_key() {
        let mut scene = Scene::new(&[3_000]);
        scene.ask("tea without sugar").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(scene.ask("tea with sugar").await.0, ["tea with sugar"]);
    }

    #[async_trait]
    impl MemoryPrefetch for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        async fn prefetch(&self, outlook: Outlook) -> Result<Vec<Recollection>, CallError> {
            let found = |key: &str| Recollection {
                key: key.to_owned(),
                text: format!("{key} after {}", outlook.text),
                extra: Vec::new(),
            };
            Ok(vec![found("s"), found("t")])
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_recalled_ahead_follows_the_answer_and_yields_to_it_under_the_same_key() {
        let mut scene = Scene::new(&[]);
        let prefetches = Prefetches::new(vec![Arc::clone(&scene.0) as Arc<dyn MemoryPrefetch>], Breakers::default());
        scene.1 = Recalls::new(HashMap::new(), prefetches.clone(), Breakers::default());
        let outlook = Outlook { turn: 1, author: None, text: "first".to_owned(), budget: 100, extra: Vec::new() };
        prefetches.start("slow", outlook, 0);
        tokio::task::yield_now().await;
        // The key of an answer is its first letter.
        assert_eq!(scene.ask("second").await.0, ["second", "t after first"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_recall_ends_after_ten_times_the_wait_or_when_it_is_forgotten() {
        let mut scene = Scene::new(&[3_600_000, 3_600_000]);
        scene.ask("first").await;
        tokio::time::sleep(WAIT * LATEST).await;
        assert_eq!(scene.ask("second").await, (vec![], true));
        scene.1.forget();
        assert_eq!(scene.ask("third").await.0, ["third"]);
    }
}
