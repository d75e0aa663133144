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

use crate::breaker::Breakers;
use crate::clock::Clock;
use crate::report::NoticeSender;

/// Recalls ahead of the next message. Clones share them. Dropping the last one cancels those that still run.
#[derive(Clone, Default)]
pub(crate) struct Prefetches {
    providers: Arc<[Arc<dyn MemoryPrefetch>]>,
    breakers: Breakers,
    running: Arc<Mutex<HashMap<String, Prefetch>>>,
}

struct Prefetch {
    running: JoinSet<Result<Vec<Recollection>, CallError>>,
    /// A turn began without it.
    is_late: bool,
}

impl Prefetches {
    /// The breakers of the providers, which others share.
    pub(crate) fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    pub(crate) fn new(providers: Vec<Arc<dyn MemoryPrefetch>>, breakers: Breakers) -> Self {
        Self { providers: providers.into(), breakers, running: Arc::default() }
    }

    /// Starts a recall, unless the provider cannot, is still busy with an earlier one, or has an open breaker. `now` is in Unix
    /// milliseconds.
    pub(crate) fn start(&self, provider: &str, outlook: Outlook, now: u64) {
        if self.breakers.is_open(provider, now) {
            return;
        }
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

    /// The recalls that are ready, and whether each is late. The others go on and serve a later turn.
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

/// Lets the providers care for their stores, one after the other. The upkeep of a provider with an open breaker stays due.
/// Dropping the future interrupts it.
pub(crate) async fn upkeep(
    store: &dyn SessionStore,
    clock: Clock,
    breakers: &Breakers,
    providers: &[Arc<dyn MemoryUpkeep>],
) {
    for provider in providers {
        if breakers.is_open(provider.name(), clock.now()) {
            continue;
        }
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
mod tests;
