//! How many tool calls run at once: limits for each plugin, each session and the process.
//!
//! A session that uses up its own limit delays no other session. When the process is at its limit, sessions take turns,
//! however many calls each of them has waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, oneshot};

/// Calls of one session that run at once, in instances of their own, over all of its plugins.
pub const CALLS_PER_SESSION: usize = 32;
/// Calls of all sessions that run at once. Each may use its plugin's memory limit: 8 GiB with the default of 64 MiB.
const CALLS_PER_PROCESS: usize = 128;

static PROCESS: LazyLock<Arc<FairSlots>> = LazyLock::new(|| Arc::new(FairSlots::new(CALLS_PER_PROCESS)));

/// The call limit of one session. Its clones count together.
#[derive(Clone)]
pub struct SessionCalls {
    id: u64,
    room: Arc<Semaphore>,
    process: Arc<FairSlots>,
}

impl SessionCalls {
    /// For a session that starts now.
    pub fn new() -> Self {
        Self::within(Arc::clone(&PROCESS), CALLS_PER_SESSION)
    }

    fn within(process: Arc<FairSlots>, calls: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id, room: Arc::new(Semaphore::new(calls)), process }
    }

    /// Waits until the session and the process have room for one more call.
    pub(crate) async fn enter(&self) -> Result<CallSlot, AcquireError> {
        let session = Arc::clone(&self.room).acquire_owned().await?;
        let process = self.process.take(self.id).await;
        Ok(CallSlot { _process: process, _session: session })
    }
}

impl Default for SessionCalls {
    fn default() -> Self {
        Self::new()
    }
}

/// Room for one call, returned when dropped.
pub(crate) struct CallSlot {
    _process: Slot,
    _session: OwnedSemaphorePermit,
}

/// A semaphore whose permits go to the waiting sessions in turn.
struct FairSlots {
    queue: Mutex<Queue>,
}

struct Queue {
    /// Slots that nobody holds; zero while a caller waits.
    free: usize,
    /// Callers that wait, by session.
    waiting: HashMap<u64, VecDeque<oneshot::Sender<Slot>>>,
    /// Sessions with waiting callers, the next one first.
    turns: VecDeque<u64>,
}

impl FairSlots {
    fn new(slots: usize) -> Self {
        Self { queue: Mutex::new(Queue { free: slots, waiting: HashMap::new(), turns: VecDeque::new() }) }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(self: &Arc<Self>, session: u64) -> Slot {
        let slot = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return Slot(Arc::clone(self));
            }
            let (sender, slot) = oneshot::channel();
            queue.add(session, sender);
            slot
        };
        slot.await.expect("the queue drops a sender only after its receiver")
    }

    fn release(self: &Arc<Self>) {
        let next = {
            let mut queue = self.queue();
            let next = queue.next();
            queue.free += usize::from(next.is_none());
            next
        };
        if let Some(next) = next {
            // A caller that has left meanwhile drops its slot, which releases it again.
            let _ = next.send(Slot(Arc::clone(self)));
        }
    }
}

impl Queue {
    fn add(&mut self, session: u64, sender: oneshot::Sender<Slot>) {
        let waiting = self.waiting.entry(session).or_default();
        if waiting.is_empty() {
            self.turns.push_back(session);
        }
        waiting.push_back(sender);
    }

    /// The first caller of the session whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        while let Some(session) = self.turns.pop_front() {
            let Some(waiting) = self.waiting.get_mut(&session) else { continue };
            waiting.retain(|sender| !sender.is_closed());
            let next = waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&session);
            } else {
                self.turns.push_back(session);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

/// One slot of the process.
struct Slot(Arc<FairSlots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;

    /// Starts a call that reports its name once it runs, and ends at once.
    fn call(session: &SessionCalls, name: &'static str, order: &mpsc::UnboundedSender<&'static str>) {
        let (session, order) = (session.clone(), order.clone());
        tokio::spawn(async move {
            let _slot = session.enter().await.unwrap();
            order.send(name).unwrap();
        });
    }

    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn sessions_take_turns_when_the_process_is_full() {
        let process = Arc::new(FairSlots::new(1));
        let (busy, other) = (SessionCalls::within(process.clone(), 8), SessionCalls::within(process.clone(), 8));
        let held = busy.enter().await.unwrap();
        let (order, mut started) = mpsc::unbounded_channel();
        for name in ["busy 1", "busy 2", "busy 3"] {
            call(&busy, name, &order);
        }
        settle().await;
        call(&other, "other", &order);
        settle().await;
        drop(held);
        let mut names = Vec::new();
        for _ in 0..4 {
            names.push(started.recv().await.unwrap());
        }
        assert_eq!(names, ["busy 1", "other", "busy 2", "busy 3"]);
        settle().await;
        assert_eq!(process.queue().free, 1);
    }

    #[tokio::test]
    async fn a_session_at_its_limit_delays_no_other() {
        let process = Arc::new(FairSlots::new(4));
        let (busy, other) = (SessionCalls::within(process.clone(), 2), SessionCalls::within(process, 2));
        let _held = (busy.enter().await.unwrap(), busy.enter().await.unwrap());
        assert!(tokio::time::timeout(Duration::from_millis(20), busy.enter()).await.is_err());
        assert!(tokio::time::timeout(Duration::from_millis(20), other.enter()).await.is_ok());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_the_queue_keeps_no_slot() {
        let process = Arc::new(FairSlots::new(1));
        let session = SessionCalls::within(process.clone(), 8);
        let held = session.enter().await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), session.enter()).await.is_err());
        drop(held);
        assert_eq!(process.queue().free, 1);
        assert!(tokio::time::timeout(Duration::from_millis(20), session.enter()).await.is_ok());
    }
}
