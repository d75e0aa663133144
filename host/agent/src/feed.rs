//! The event feed of one session: numbered events in a bounded buffer, for any number of front ends.
//!
//! Publishing never waits. A front end that falls behind the buffer, or that names a position of another epoch, gets a
//! snapshot in place of the events that it missed, and every event after it.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hermes_conversation::{MessageId, SessionId};
use hermes_diagnostic::{Fix, Notice};
use hermes_protocol::{CallId, Epoch, Event, EventKind, Position, Snapshot, TurnNumber};
use tokio::sync::watch;

/// How many past events a session keeps for front ends that lag behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedLimits {
    /// The most events.
    pub events: usize,
    /// The most bytes of text in these events.
    pub bytes: usize,
}

impl FeedLimits {
    /// For one of many sessions: a few seconds of a fast reply, in at most 64 KiB of text.
    pub const SHARED: Self = Self { events: 512, bytes: 64 << 10 };
    /// For the only session of a process, whose reader may be a slow pipe.
    pub const SINGLE: Self = Self { events: 1 << 17, bytes: 32 << 20 };
}

/// Publishes the events of a session. Clones publish to the same front ends.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    epoch: Epoch,
    limits: FeedLimits,
    state: Mutex<State>,
    /// The newest sequence number; wakes the subscriptions.
    newest: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    session: Option<SessionId>,
    turn: Option<TurnNumber>,
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    newest: u64,
    snapshot: Snapshot,
    /// All notices so far. Each text is published once, so that a looping plugin cannot flood the conversation.
    notices: HashSet<String>,
}

/// What an event is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) message: Option<MessageId>,
    pub(crate) call: Option<CallId>,
}

impl About {
    pub(crate) fn message(id: MessageId) -> Self {
        Self { message: Some(id), call: None }
    }

    pub(crate) fn call(id: &str) -> Self {
        Self { message: None, call: Some(CallId(id.to_owned())) }
    }
}

impl Feed {
    /// Creates an empty feed with a new epoch.
    pub fn new(limits: FeedLimits) -> Self {
        Self(Arc::new(Shared { epoch: epoch(), limits, state: Mutex::default(), newest: watch::Sender::new(0) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the session of later events.
    pub(crate) fn set_session(&self, session: &SessionId) {
        self.state().session = Some(session.clone());
    }

    /// Later events belong to no session: it was deleted, because it had no message.
    pub(crate) fn forget_session(&self) {
        self.state().session = None;
    }

    pub(crate) fn session(&self) -> Option<SessionId> {
        self.state().session.clone()
    }

    /// Sets the turn of later events.
    pub(crate) fn set_turn(&self, turn: Option<TurnNumber>) {
        self.state().turn = turn;
    }

    /// Publishes an event about the session or the turn.
    pub(crate) fn publish(&self, kind: EventKind) {
        self.publish_about(About::default(), kind);
    }

    /// Publishes an event about a message or a call.
    pub(crate) fn publish_about(&self, about: About, kind: EventKind) {
        let mut state = self.state();
        if state.snapshot.ended {
            return;
        }
        if let EventKind::Notice { text, .. } = &kind
            && !state.notices.insert(text.clone())
        {
            return;
        }
        state.newest += 1;
        let event = Event {
            position: Position { epoch: self.0.epoch.clone(), sequence: state.newest },
            session: state.session.clone(),
            turn: state.turn,
            message: about.message,
            call: about.call,
            kind,
        };
        state.snapshot.apply(&event);
        state.bytes += size_of(&event);
        state.events.push_back(Arc::new(event));
        while state.events.len() > self.0.limits.events || state.bytes > self.0.limits.bytes {
            let Some(oldest) = state.events.pop_front() else { break };
            state.bytes -= size_of(&oldest);
        }
        let newest = state.newest;
        drop(state);
        self.0.newest.send_replace(newest);
    }

    /// Publishes a notice for the user. A feed publishes each text once.
    pub(crate) fn notice(&self, notice: impl Into<Notice>) {
        let Notice { text, fix } = notice.into();
        self.publish(EventKind::Notice { text, fix });
    }

    /// Publishes a notice about something that happens again, also if it has been published before.
    pub(crate) fn notice_again(&self, text: String) {
        self.state().notices.remove(&text);
        self.publish(EventKind::Notice { text, fix: Fix::default() });
    }

    /// Whether a front end is connected.
    pub(crate) fn has_readers(&self) -> bool {
        self.0.newest.receiver_count() > 0
    }

    /// Drops the buffered events. Front ends that lag behind get a snapshot.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.events = VecDeque::new();
        state.bytes = 0;
    }

    /// The position before the first event.
    pub(crate) fn beginning(&self) -> Position {
        Position { epoch: self.0.epoch.clone(), sequence: 0 }
    }

    /// The session's state after all events so far.
    pub fn snapshot(&self) -> Snapshot {
        self.state().snapshot.clone()
    }

    /// Reads the events after a position. A snapshot comes first if the position is missing, too old or of another epoch.
    pub fn subscribe(&self, after: Option<&Position>) -> Subscription {
        let newest = self.state().newest;
        let known = after.filter(|after| after.epoch == self.0.epoch && after.sequence <= newest);
        // Before the first event a snapshot would be empty.
        let from_start = (after.is_none() && newest == 0).then_some(0);
        Subscription {
            seen: known.map(|after| after.sequence).or(from_start),
            changed: self.0.newest.subscribe(),
            feed: self.clone(),
            ended: false,
        }
    }

    /// The next event after a sequence number, or a snapshot; `None` if there is nothing new.
    fn after(&self, seen: Option<u64>) -> Option<Arc<Event>> {
        let state = self.state();
        let oldest = state.newest + 1 - state.events.len() as u64;
        match seen {
            Some(seen) if seen == state.newest => None,
            Some(seen) if seen + 1 >= oldest => state.events.get((seen + 1 - oldest) as usize).cloned(),
            _ => Some(Arc::new(Event {
                position: Position { epoch: self.0.epoch.clone(), sequence: state.newest },
                session: state.session.clone(),
                turn: state.turn,
                message: None,
                call: None,
                kind: EventKind::Snapshot(Box::new(state.snapshot.clone())),
            })),
        }
    }
}

/// One front end's reader of a feed.
pub struct Subscription {
    feed: Feed,
    /// The sequence number of the last returned event; `None` if the front end knows nothing yet.
    seen: Option<u64>,
    changed: watch::Receiver<u64>,
    ended: bool,
}

impl Subscription {
    /// Waits for the next event; `None` after the session's last event. The future may be dropped at any time.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            // The sender lives as long as this feed.
            if self.ended || self.changed.changed().await.is_err() {
                return None;
            }
        }
    }

    /// Reads all notices so far, for work without a front end.
    pub(crate) fn notices(&mut self) -> Vec<Notice> {
        let events = std::iter::from_fn(|| self.try_next());
        let notice = |event: Arc<Event>| match &event.kind {
            EventKind::Notice { text, fix } => Some(Notice { text: text.clone(), fix: fix.clone() }),
            _ => None,
        };
        events.filter_map(notice).collect()
    }

    /// The next event, if it has been published.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        self.changed.mark_unchanged();
        let event = self.feed.after(self.seen)?;
        self.seen = Some(event.position.sequence);
        self.ended = match &event.kind {
            EventKind::Ended => true,
            EventKind::Snapshot(snapshot) => snapshot.ended,
            _ => false,
        };
        Some(event)
    }
}

/// The approximate size of an event: its texts, and a constant for the rest.
fn size_of(event: &Event) -> usize {
    const OVERHEAD: usize = 128;
    let texts = match &event.kind {
        EventKind::Text { text }
        | EventKind::Reasoning { text }
        | EventKind::Notice { text, .. }
        | EventKind::Progress { text } => text.len(),
        EventKind::ToolStarted { name, arguments } => name.len() + arguments.len(),
        EventKind::ToolFinished { name, content, changes, .. } => {
            let changed = changes.iter().flat_map(|change| &change.lines).map(String::len);
            name.len() + content.len() + changed.sum::<usize>()
        }
        EventKind::TaskChanged { task } => task.goal.len() + task.why.as_ref().map_or(0, String::len),
        EventKind::Steered { texts } => texts.iter().map(String::len).sum(),
        EventKind::TurnEnded { unsent, .. } => (1 << 10) + unsent.iter().map(String::len).sum::<usize>(),
        EventKind::Asked { .. } | EventKind::CompressionPreviewed { .. } => 1 << 10,
        _ => 0,
    };
    OVERHEAD + texts
}

/// A new id that differs between processes and between the feeds of a process.
fn epoch() -> Epoch {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let seed = format!("{} {now} {count}", std::process::id());
    Epoch(blake3::hash(seed.as_bytes()).to_hex()[..16].to_owned())
}

#[cfg(test)]
mod tests;
