//! Recall before a turn. A turn waits briefly for the memory providers; what comes later serves the next turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hermes_plugin_host::{CallError, MemoryProvider, Query, Recollection};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

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

/// What a turn gets from its memory providers.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    /// In the order of the providers. Late memories follow all others.
    pub(crate) recalled: Vec<Recalled>,
    /// The errors of providers. A turn continues without them.
    pub(crate) failed: Vec<CallError>,
    /// Providers for which the turn did not wait any longer.
    pub(crate) late: Vec<String>,
}

/// The recalls of a session. Dropping it cancels those that still run.
pub(crate) struct Recalls {
    /// The time that a turn waits, by provider.
    waits: HashMap<String, Duration>,
    /// Recalls for earlier messages, by provider.
    running: HashMap<String, JoinSet<Answer>>,
}

type Answer = Result<Vec<Recollection>, CallError>;

impl Recalls {
    pub(crate) fn new(waits: HashMap<String, Duration>) -> Self {
        Self { waits, running: HashMap::new() }
    }

    /// Cancels recalls for earlier messages and drops their results.
    pub(crate) fn forget(&mut self) {
        self.running.clear();
    }

    /// Queries all providers at once. A provider that is still busy with an earlier message is not queried again; the turn
    /// waits for its answer instead.
    pub(crate) async fn recall(&mut self, memories: &[Arc<dyn MemoryProvider>], query: &Query) -> Recall {
        let begun = Instant::now();
        let mut recall = Recall::default();
        let (mut asked, mut late) = (Vec::new(), Vec::new());
        for memory in memories {
            let name = memory.name().to_owned();
            let wait = self.waits.get(&name).copied().unwrap_or(WAIT);
            let mut earlier = self.running.remove(&name);
            if let Some(answer) = earlier.as_mut().and_then(JoinSet::try_join_next) {
                earlier = None;
                take(&name, true, answer, &mut late, &mut recall.failed);
            }
            let is_late = earlier.is_some();
            let running = earlier.unwrap_or_else(|| {
                let (memory, query) = (Arc::clone(memory), query.clone());
                let mut running = JoinSet::new();
                // Without this limit a call could keep the provider busy for the following turns.
                let longest = wait.saturating_mul(LATEST);
                running.spawn(async move {
                    let answer = tokio::time::timeout(longest, memory.recall(query));
                    answer.await.unwrap_or_else(|_| Ok(Vec::new()))
                });
                running
            });
            asked.push((name, wait, is_late, running));
        }
        for (name, wait, is_late, mut running) in asked {
            match tokio::time::timeout_at(begun + wait, running.join_next()).await {
                Ok(Some(answer)) => {
                    let recalled = if is_late { &mut late } else { &mut recall.recalled };
                    take(&name, is_late, answer, recalled, &mut recall.failed);
                }
                Ok(None) => {}
                Err(_) => {
                    recall.late.push(name.clone());
                    self.running.insert(name, running);
                }
            }
        }
        // A newer answer has the newer version of a memory.
        let is_known = |late: &Recalled| {
            recall.recalled.iter().any(|newer| (&newer.provider, &newer.key) == (&late.provider, &late.key))
        };
        late.retain(|late| !is_known(late));
        recall.recalled.append(&mut late);
        recall
    }
}

fn take(
    provider: &str,
    is_late: bool,
    answer: Result<Answer, JoinError>,
    recalled: &mut Vec<Recalled>,
    failed: &mut Vec<CallError>,
) {
    match answer {
        Ok(Ok(recollections)) => recalled.extend(recollections.into_iter().map(|Recollection { key, text }| Recalled {
            provider: provider.to_owned(),
            key,
            text,
            is_late,
        })),
        Ok(Err(error)) => failed.push(error),
        Err(ended) => tracing::warn!(%ended, provider, "a recall ended without an answer"),
    }
}
