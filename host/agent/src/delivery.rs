//! Delivers the turns of the outbox to the memory providers of a session, in order and in the background.
//!
//! A turn enters the outbox in the write that ends it (`turn.rs`), so a failing provider or a killed process loses nothing.
//! Here a task for each provider delivers what waits, and decides after a failure what happens next.

pub(crate) mod backlog;
mod courier;
mod fate;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_conversation::{Author, MessageId, SessionId};
use hermes_diagnostic::Notice;
use hermes_plugin_host::services::{History, Random};
use hermes_plugin_host::{MemoryProvider, MemoryRewind, Outlook, Peer};
use hermes_session_store::{Delivery, QueueState, QueuedTurn, SessionStore, StoreError};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::backlog::Waiting;
use self::courier::{Courier, Progress, UnderWay, Untold};
use crate::clock::Clock;
use crate::memory_extras::Prefetches;
use crate::report::NoticeSender;

/// What a delivery needs of the session and of the host.
#[derive(Clone)]
pub(crate) struct Deliverer {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) session: SessionId,
    /// The session's conversation, from which the turns are read.
    pub(crate) history: Arc<dyn History>,
    pub(crate) clock: Clock,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) notices: NoticeSender,
    /// Started when all turns of the session are stored.
    pub(crate) prefetches: Prefetches,
    /// The most tokens of recalled texts.
    pub(crate) budget: u32,
}

impl Deliverer {
    /// Notes why a turn whose delivery was cut off still waits. The next opening sends it at once.
    async fn was_cut_off(&self, turn: &QueuedTurn, after: Duration) {
        let error = format!(
            "Hermes cut the call off after {:.0} s, because the session ended or changed",
            after.as_secs_f64().max(1.0)
        );
        if let Err(error) = self.store.record_delivery(turn, &Delivery::CutOff { error }).await {
            tracing::warn!(%error, "why a turn waits cannot be stored");
        }
    }

    /// Lets a provider recall for the turn after the one that began with this text.
    fn prefetch(&self, provider: &str, turn: u32, author: Option<Author>, text: String) {
        let author = author.map(|Author { id, name }| Peer { id, name, extra: Vec::new() });
        let outlook = Outlook { turn, author, text, budget: self.budget, extra: Vec::new() };
        self.prefetches.start(provider, outlook, self.clock.now());
    }
}

/// The deliveries of a session. Dropping it cancels them; turns that were not stored stay in the outbox.
pub(crate) struct Deliveries {
    deliverer: Deliverer,
    memories: Vec<Arc<dyn MemoryProvider>>,
    /// The providers that want to know about rewinds.
    rewinds: Vec<Arc<dyn MemoryRewind>>,
    /// The earliest message of rewinds since the deliveries were paused.
    rewound: Option<MessageId>,
    /// Earlier rewinds that providers do not know of.
    untold: Vec<Untold>,
    tasks: Vec<Task>,
    /// The deliveries of turns of other sessions, one task for each provider.
    backlog: JoinSet<()>,
}

/// The deliveries to one provider.
struct Task {
    /// How often turns were queued, counting the opening of the session.
    queued: watch::Sender<u64>,
    progress: watch::Receiver<Progress>,
    ended: JoinHandle<()>,
    rewind: Option<Untold>,
    under_way: UnderWay,
    provider: String,
    _cancel: DropGuard,
}

/// The wait that the user learns of.
const LONG: Duration = Duration::from_secs(2);

impl Deliveries {
    /// Delivers nothing before [`Deliveries::resume`].
    pub(crate) fn new(
        deliverer: Deliverer,
        memories: Vec<Arc<dyn MemoryProvider>>,
        rewinds: Vec<Arc<dyn MemoryRewind>>,
    ) -> Self {
        Self {
            deliverer,
            memories,
            rewinds,
            rewound: None,
            untold: Vec::new(),
            tasks: Vec::new(),
            backlog: JoinSet::new(),
        }
    }

    /// Notes that this message and all later ones are gone. The providers learn it before they get later turns.
    pub(crate) fn rewound(&mut self, first: MessageId) {
        self.rewound = Some(self.rewound.map_or(first, |earlier| earlier.min(first)));
    }

    /// Delivers the turns of other sessions.
    pub(crate) fn deliver_others(&mut self, mut waiting: Vec<Waiting>) {
        while let Some(first) = waiting.first() {
            let provider = first.provider().to_owned();
            let (own, others) = waiting.into_iter().partition(|waiting| waiting.provider() == provider);
            waiting = others;
            self.backlog.spawn(backlog::deliver(self.deliverer.clone(), own));
        }
    }

    /// The names of the providers that get each turn.
    pub(crate) fn providers(&self) -> Vec<String> {
        self.memories.iter().map(|memory| memory.name().to_owned()).collect()
    }

    /// Delivers turns that were queued since the last call.
    pub(crate) fn queued(&self) {
        for task in &self.tasks {
            task.queued.send_modify(|count| *count += 1);
        }
    }

    /// Starts the deliveries of this session, or starts them again after [`Deliveries::pause`]. Running tasks go on.
    pub(crate) fn resume(&mut self) {
        if self.tasks.is_empty() {
            let rewound = self.rewound.take();
            let untold = std::mem::take(&mut self.untold);
            let start = |memory: &Arc<dyn MemoryProvider>| {
                let rewind = self.rewinds.iter().find(|rewind| rewind.name() == memory.name());
                let earlier = untold.iter().find(|untold| untold.memory.name() == memory.name());
                let first = earlier.and_then(Untold::first).into_iter().chain(rewound).min();
                let rewind = rewind.zip(first).map(|(rewind, first)| Untold::new(Arc::clone(rewind), first));
                Task::start(Courier::new(self.deliverer.clone(), Arc::clone(memory), rewind.clone()), rewind)
            };
            self.tasks = self.memories.iter().map(start).collect();
        }
    }

    /// Whether a turn is being delivered.
    pub(crate) fn is_working(&mut self) -> bool {
        while self.backlog.try_join_next().is_some() {}
        !self.backlog.is_empty() || self.tasks.iter().any(|task| !task.has_settled())
    }

    /// Waits until all turns are stored or wait for a later attempt, at most `patience`, and then cancels the rest.
    pub(crate) async fn stop(&mut self, patience: Duration) {
        let begun = Instant::now();
        self.pause(patience).await;
        // Turns before a rewind still wait. The next process does not know of the rewind.
        let told = async {
            for untold in std::mem::take(&mut self.untold) {
                untold.tell(&self.deliverer).await;
            }
        };
        let _ = tokio::time::timeout(patience.saturating_sub(begun.elapsed()), told).await;
        let others = async { while self.backlog.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(patience.saturating_sub(begun.elapsed()), others).await;
        self.backlog.shutdown().await;
    }

    /// The same for the turns of this session.
    pub(crate) async fn pause(&mut self, patience: Duration) {
        if !self.have_settled_within(LONG.min(patience)).await && patience > LONG {
            let rest = patience - LONG;
            let slow = self.tasks.iter().filter(|task| !task.has_settled()).map(|task| format!("`{}`", task.provider));
            let slow: Vec<String> = slow.collect();
            let text =
                format!("waiting up to {} s until the memory {} has stored the turn", rest.as_secs(), slow.join(", "));
            self.deliverer.notices.notice(text);
            self.have_settled_within(rest).await;
        }
        // Turns that are not stored by then stay in the outbox.
        for Task { ended, rewind, under_way, _cancel: cancel, .. } in self.tasks.drain(..) {
            drop(cancel);
            // A cancelled task ends at once: dropping the call cancels it in the plugin.
            let _ = ended.await;
            self.untold.extend(rewind.filter(|rewind| rewind.first().is_some()));
            if let Some((turn, since)) = under_way.take() {
                self.deliverer.was_cut_off(&turn, since.elapsed()).await;
            }
        }
    }

    /// Whether all turns are stored, or wait for a later attempt, within this time.
    async fn have_settled_within(&mut self, patience: Duration) -> bool {
        let settled = async {
            for task in &mut self.tasks {
                task.settle().await;
            }
        };
        tokio::time::timeout(patience, settled).await.is_ok()
    }
}

/// A notice for each of these providers that still has turns to store, of any session. Rejected turns are not counted.
pub(crate) async fn unstored(store: &dyn SessionStore, providers: &[String]) -> Result<Vec<Notice>, StoreError> {
    let queued = store.outbox().await?;
    let line = |provider: &String| {
        let waits = |turn: &&QueuedTurn| turn.provider == *provider && turn.state != QueueState::SetAside;
        let (count, last) = (queued.iter().filter(waits).count(), queued.iter().rfind(waits));
        let why = last.and_then(|turn| turn.error.as_ref()).map_or_else(String::new, |error| format!(" ({error})"));
        let (turns, them) = match count {
            0 => return None,
            1 => ("1 turn waits".to_owned(), "it"),
            count => (format!("{count} turns wait"), "them"),
        };
        let text = format!("{turns} for the memory `{provider}`{why}; Hermes delivers {them} at its next start");
        Some(Notice::from(text))
    };
    Ok(providers.iter().filter_map(line).collect())
}

impl Task {
    fn start(courier: Courier, rewind: Option<Untold>) -> Self {
        let (under_way, provider) = (courier.under_way(), courier.provider().to_owned());
        let (queued, signals) = watch::channel(1);
        let (sender, progress) = watch::channel(Progress::default());
        let cancel = CancellationToken::new();
        let cancelled = cancel.clone();
        let ended = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {}
                () = courier.run(signals, sender) => {}
            }
        });
        Self { queued, progress, ended, rewind, under_way, provider, _cancel: cancel.drop_guard() }
    }

    fn has_settled(&self) -> bool {
        self.ended.is_finished() || self.progress.borrow().has_settled(*self.queued.borrow())
    }

    async fn settle(&mut self) {
        let queued = *self.queued.borrow();
        // An error means that the task has ended.
        let _ = self.progress.wait_for(|progress| progress.has_settled(queued)).await;
    }
}
