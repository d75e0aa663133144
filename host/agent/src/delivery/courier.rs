//! Delivers the waiting turns of one session to one memory provider.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hermes_conversation::closing::INTERRUPTED_TURN;
use hermes_conversation::{Draft, MessageId, MessageRange, Origin, Role};
use hermes_diagnostic::{Action, Notice};
use hermes_plugin_host::services::History;
use hermes_plugin_host::{CallError, Cause, FaultKind, MemoryProvider, MemoryRewind, TurnRecord};
use hermes_session_store::{Delivery, Lease, QueueState, QueuedTurn, SessionError, StoreError};
use tokio::sync::watch;

use super::Deliverer;
use super::fate::{Fate, fate, pause};
use crate::turn::STOPPED;

/// The pause before another look when another task delivers the session's turns.
const LEASE_PAUSE: Duration = Duration::from_secs(1);
/// The pause after an error of the store.
const STORE_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause: the clock may have been set back.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);
/// The most bytes of a stored cause.
const CAUSE: usize = 1 << 10;

/// How far the deliveries to a provider are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Up to which signal all turns were tried.
    settled: u64,
    is_busy: bool,
}

impl Progress {
    /// Whether all turns up to a signal are stored, or wait for a later attempt.
    pub(super) fn has_settled(self, queued: u64) -> bool {
        self.settled >= queued && !self.is_busy
    }
}

/// What remains after a pass over the queue.
enum Rest {
    /// Nothing to do before the next signal.
    None,
    /// The next pass is due after this time.
    After(Duration),
}

/// How a turn can be read from the log.
enum Reading {
    Complete(TurnRecord),
    /// The turn's last message was stored, and is not in the conversation in memory yet.
    NotYet,
    /// The log lost the turn's first message.
    Gone,
}

/// A rewind that a provider does not know of yet.
#[derive(Clone)]
pub(super) struct Untold {
    pub(super) memory: Arc<dyn MemoryRewind>,
    /// The first message that is gone.
    first: Arc<Mutex<Option<MessageId>>>,
}

impl Untold {
    pub(super) fn new(memory: Arc<dyn MemoryRewind>, first: MessageId) -> Self {
        Self { memory, first: Arc::new(Mutex::new(Some(first))) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<MessageId>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first message that is gone, as long as the provider does not know it.
    pub(super) fn first(&self) -> Option<MessageId> {
        *self.lock()
    }

    /// Tells the provider. An error is for the user; the host does not repeat the call.
    pub(super) async fn tell(&self, deliverer: &Deliverer) {
        let Some(first) = self.first() else { return };
        if let Err(error) = self.memory.turns_rewound(deliverer.session.to_string(), first).await {
            deliverer.notices.notice(format!("{error}; this memory still has what was taken back"));
        }
        *self.lock() = None;
    }
}

/// The turn that is being delivered, and since when. Clones share it.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<Option<(QueuedTurn, Instant)>>>);

impl UnderWay {
    fn set(&self, turn: Option<QueuedTurn>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = turn.map(|turn| (turn, Instant::now()));
    }

    pub(super) fn take(&self) -> Option<(QueuedTurn, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

pub(super) struct Courier {
    deliverer: Deliverer,
    under_way: UnderWay,
    memory: Arc<dyn MemoryProvider>,
    /// A rewind that the provider learns of between the turns before it and after it.
    rewind: Option<Untold>,
    /// Whether the user has seen that the provider fails.
    was_reported: AtomicBool,
}

impl Courier {
    pub(super) fn new(deliverer: Deliverer, memory: Arc<dyn MemoryProvider>, rewind: Option<Untold>) -> Self {
        Self { deliverer, under_way: UnderWay::default(), memory, rewind, was_reported: AtomicBool::new(false) }
    }

    /// The turn that a call is under way for.
    pub(super) fn under_way(&self) -> UnderWay {
        self.under_way.clone()
    }

    pub(super) fn provider(&self) -> &str {
        self.memory.name()
    }

    /// Delivers turns until it is dropped.
    pub(super) async fn run(self, mut signals: watch::Receiver<u64>, progress: watch::Sender<Progress>) {
        // Kept between two passes: as long as the session is awake, no other process delivers its turns.
        let mut lease = None;
        // The opening of a session tries every turn at once, also one that waits for a later moment.
        let mut is_opening = true;
        loop {
            let queued = *signals.borrow_and_update();
            progress.send_modify(|progress| progress.is_busy = true);
            let rest = self.deliver(&mut lease, is_opening).await.unwrap_or_else(|error| {
                tracing::warn!(%error, provider = self.memory.name(), "the outbox cannot be used");
                Rest::After(STORE_PAUSE)
            });
            progress.send_replace(Progress { settled: queued, is_busy: false });
            is_opening = false;
            let pause = match rest {
                Rest::None => Duration::MAX,
                Rest::After(pause) => pause,
            };
            tokio::select! {
                changed = signals.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Delivers waiting turns once, also those that wait for a later moment. Returns whether none has to wait longer.
    pub(super) async fn deliver_now(&self) -> Result<bool, StoreError> {
        Ok(matches!(self.deliver(&mut None, true).await?, Rest::None))
    }

    /// Delivers waiting turns in order, up to the first one that has to wait longer.
    async fn deliver(&self, lease: &mut Option<Lease>, is_opening: bool) -> Result<Rest, StoreError> {
        let Deliverer { store, session, clock, history, .. } = &self.deliverer;
        let mut last = None;
        loop {
            let next = store.next_turn(session, self.memory.name()).await?;
            if let Some(rewind) = &self.rewind
                && let Some(gone) = rewind.first()
                && next.as_ref().is_none_or(|turn| turn.messages.first >= gone)
            {
                rewind.tell(&self.deliverer).await;
                continue;
            }
            let Some(turn) = next else {
                // At an opening the next message is already there.
                if let Some(TurnRecord { number, author, user, .. }) = last.filter(|_| !is_opening) {
                    self.deliverer.prefetch(self.memory.name(), number, author, user);
                }
                return Ok(Rest::None);
            };
            let QueueState::Waiting { due_at } = turn.state else { return Ok(Rest::None) };
            let wait = Duration::from_millis(due_at.saturating_sub(clock.now()));
            if !is_opening && !wait.is_zero() {
                return Ok(Rest::After(wait.min(LONGEST_PAUSE)));
            }
            if lease.is_none() {
                *lease = match store.delivery_lease(session, self.memory.name()).await {
                    Ok(lease) => Some(lease),
                    Err(StoreError::Session(SessionError::InUse { .. })) => return Ok(Rest::After(LEASE_PAUSE)),
                    Err(error) => return Err(error),
                };
                // The previous holder may have delivered the turn meanwhile.
                continue;
            }
            let record = match read(history.as_ref(), &turn) {
                Reading::Complete(record) => record,
                Reading::NotYet => return Ok(Rest::None),
                Reading::Gone => {
                    tracing::warn!(%session, first = turn.messages.first.0, "a queued turn is not in the log any more");
                    store.record_delivery(&turn, &Delivery::Stored).await?;
                    continue;
                }
            };
            self.under_way.set(Some(turn.clone()));
            let answer = self.memory.sync_turn(&record).await;
            self.under_way.set(None);
            match answer {
                Ok(()) => {
                    if self.was_reported.swap(false, Ordering::Relaxed) {
                        let line = format!("the memory `{}` stores turns again", self.memory.name());
                        self.deliverer.notices.notice(line);
                    }
                    // The turn had failed before, perhaps in another process, so the provider has recovered.
                    if turn.attempts > 0 {
                        self.deliverer.prefetches.breakers().ask_again(self.memory.name());
                    }
                    store.record_delivery(&turn, &Delivery::Stored).await?;
                    last = Some(record);
                }
                Err(error) => {
                    if let Some(rest) = self.failed(&turn, &error).await? {
                        return Ok(rest);
                    }
                }
            }
        }
    }

    /// Handles a failed delivery. Returns `None` if the next turn can be delivered at once.
    async fn failed(&self, turn: &QueuedTurn, error: &CallError) -> Result<Option<Rest>, StoreError> {
        let Deliverer { store, clock, random, notices, .. } = &self.deliverer;
        let mut cause = error.cause.to_string();
        cause.truncate(cause.floor_char_boundary(CAUSE));
        match fate(&error.cause) {
            Fate::Retry { after, most } => {
                let mut bytes = [0; 8];
                random.fill(&mut bytes);
                let pause = pause(turn.attempts.saturating_add(1), after, most, u64::from_le_bytes(bytes));
                let due_at = clock.now().saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
                store.record_delivery(turn, &Delivery::Postponed { error: cause, due_at }).await?;
                if !self.was_reported.swap(true, Ordering::Relaxed) {
                    notices.notice(format!("{error}; Hermes keeps the turn and sends it to this memory again later"));
                }
                Ok(Some(Rest::After(pause)))
            }
            Fate::SetAside => {
                store.record_delivery(turn, &Delivery::SetAside { error: cause }).await?;
                notices.notice(Notice::new(
                    format!("{error}; the turn was set aside: this memory does not have it, and later turns go on"),
                    remedy(error),
                ));
                Ok(None)
            }
            Fate::Keep => Ok(Some(Rest::None)),
        }
    }
}

/// What the user can do about a rejected turn.
fn remedy(error: &CallError) -> Action {
    let plugin = error.plugin.clone();
    match &error.cause {
        Cause::Fault(fault) if fault.kind == FaultKind::Denied => Action::GrantPlugin { plugin },
        _ => Action::ReadPluginLog { plugin },
    }
}

/// Reads a turn from the conversation.
fn read(history: &dyn History, turn: &QueuedTurn) -> Reading {
    let messages = turn.messages;
    if history.whole().is_none_or(|whole| whole.last < messages.last) {
        return Reading::NotYet;
    }
    let headers = history.headers(messages);
    let (Some(first), Some(last)) = (headers.first(), headers.last()) else { return Reading::Gone };
    if first.id != messages.first {
        return Reading::Gone;
    }
    let draft = |id| {
        let (read, _) = history.read(MessageRange::one(id), usize::MAX);
        read.into_iter().next().map(|(message, _)| message.draft)
    };
    let question = draft(first.id);
    let answer = draft(last.id);
    let interrupted = answer.as_ref().is_some_and(is_stop);
    let assistant = match answer {
        Some(answer) if interrupted => written_before(&answer.content).map_or_else(
            || {
                // The user stopped a call, so the model's words are in an earlier reply.
                let replies =
                    headers.iter().rev().filter(|header| header.role == Role::Assistant && header.id != last.id);
                replies
                    .filter_map(|header| draft(header.id))
                    .find(|draft| !draft.content.is_empty())
                    .map(|draft| draft.content)
            },
            |written| Some(written.to_owned()),
        ),
        answer => answer.map(|draft| draft.content),
    };
    Reading::Complete(TurnRecord {
        session: turn.session.to_string(),
        number: first.turn,
        ended_at: turn.ended_at,
        author: question.as_ref().and_then(|draft| draft.author.clone()),
        user: question.map(|draft| draft.content).unwrap_or_default(),
        assistant: assistant.unwrap_or_default(),
        interrupted,
        messages,
    })
}

/// Whether a turn with this last message was stopped by the user.
fn is_stop(last: &Draft) -> bool {
    last.origin == Origin::Host && (last.content.ends_with(STOPPED) || last.content == INTERRUPTED_TURN)
}

/// What the model had written of a reply that was stopped; `None` if it had written nothing.
fn written_before(note: &str) -> Option<&str> {
    note.strip_suffix(STOPPED).map(str::trim_end).filter(|written| !written.is_empty())
}
