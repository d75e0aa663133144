//! The circuit breakers of memory providers.
//!
//! A provider that hangs or fails costs every turn the time that a turn waits. After three failures in a row its breaker opens:
//! turns go on without the provider for a pause, and then one turn asks it again. An open breaker is a note of the store, so that
//! later processes skip the provider too, and `hermes memory status` shows it.
//!
//! Optional calls that nothing depends on are left out as long as turns go on without the provider: recalls ahead, upkeep, and
//! what a summary should keep. What would be lost without the call is still delivered: turns, writes of other providers, rewinds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::MessageRange;
use hermes_plugin_host::{CallError, Cause, FaultKind, MemoryEvents};
use hermes_session_store::SessionStore;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

/// Failures in a row that open a breaker.
const STRIKES: u32 = 3;
/// The pause before the provider is asked again. It doubles with each further failure.
const PAUSE: Duration = Duration::from_secs(30);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10 * 60);

/// An open breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenBreaker {
    /// When it opened, in Unix milliseconds.
    pub since: u64,
    /// Before this moment, no turn asks the provider. In Unix milliseconds.
    pub retry_at: u64,
    /// The failures in a row.
    pub failures: u32,
    /// Why the last call failed.
    pub why: String,
}

impl OpenBreaker {
    /// The name of the store's note for a provider. Without a note the breaker is closed.
    pub fn note(provider: &str) -> String {
        format!("breaker {provider}")
    }

    /// The same breaker with its pause over: the next turn of a later session asks the provider.
    #[must_use]
    pub fn asking_again(self) -> Self {
        Self { retry_at: 0, ..self }
    }

    /// Reads a note.
    pub fn read(note: &str) -> Option<Self> {
        serde_json::from_str(note).ok()
    }
}

/// A breaker that opened, stays open, or closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) provider: String,
    /// None for a closed breaker.
    pub(crate) open: Option<OpenBreaker>,
    /// What the user reads, when the breaker opens and when it closes.
    pub(crate) line: Option<String>,
}

/// The breakers of a session's memory providers. Clones share them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Breakers {
    states: Arc<Mutex<HashMap<String, State>>>,
}

#[derive(Debug, Default)]
struct State {
    /// Failures in a row.
    failures: u32,
    open: Option<OpenBreaker>,
}

impl Breakers {
    /// The breakers as other processes left them.
    pub(crate) async fn load(store: &dyn SessionStore, providers: impl Iterator<Item = &str>) -> Self {
        let mut states = HashMap::new();
        for provider in providers {
            // Without a readable note the breaker is closed, which costs at most the wait of a few turns.
            let note = store.note(&OpenBreaker::note(provider)).await.ok().flatten();
            if let Some(open) = note.as_deref().and_then(OpenBreaker::read) {
                states.insert(provider.to_owned(), State { failures: open.failures, open: Some(open) });
            }
        }
        Self { states: Arc::new(Mutex::new(states)) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether turns go on without this provider.
    pub(crate) fn is_open(&self, provider: &str, now: u64) -> bool {
        let states = self.lock();
        let open = states.get(provider).and_then(|state| state.open.as_ref());
        // A moment further away than any pause means that the clock was set back.
        open.is_some_and(|open| open.retry_at > now && open.retry_at - now <= milliseconds(LONGEST_PAUSE))
    }

    /// Counts a failure. Returns a change if the breaker opens, or stays open for a longer pause.
    pub(crate) fn failed(&self, provider: &str, why: &str, now: u64) -> Option<Change> {
        let mut states = self.lock();
        let state = states.entry(provider.to_owned()).or_default();
        state.failures = state.failures.saturating_add(1);
        let since = state.open.as_ref().map(|open| open.since);
        let doublings = match state.failures.checked_sub(STRIKES) {
            None if since.is_none() => return None,
            doublings => doublings.unwrap_or(0),
        };
        let doubled = 2u32.checked_pow(doublings).and_then(|times| PAUSE.checked_mul(times));
        let pause = doubled.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
        let open = OpenBreaker {
            since: since.unwrap_or(now),
            retry_at: now.saturating_add(milliseconds(pause)),
            failures: state.failures,
            why: why.to_owned(),
        };
        state.open = Some(open.clone());
        let line = since.is_none().then(|| {
            format!(
                "the memory `{provider}` failed {} times in a row, the last time because {why}; turns and summaries go on without \
                 it, and Hermes asks it again in {} s",
                open.failures,
                pause.as_secs(),
            )
        });
        Some(Change { provider: provider.to_owned(), open: Some(open), line })
    }

    /// Lets the next turn ask a provider whose breaker is open: what it failed at before works again.
    pub(crate) fn ask_again(&self, provider: &str) {
        if let Some(open) = self.lock().get_mut(provider).and_then(|state| state.open.as_mut()) {
            open.retry_at = 0;
        }
    }

    /// Ends a row of failures. Returns a change if the breaker closes.
    pub(crate) fn answered(&self, provider: &str) -> Option<Change> {
        self.lock().remove(provider)?.open?;
        let line = Some(format!("the memory `{provider}` answers again"));
        Some(Change { provider: provider.to_owned(), open: None, line })
    }
}

/// A provider that adds nothing to summaries while its breaker is open.
pub(crate) struct UnlessOpen {
    memory: Arc<dyn MemoryEvents>,
    breakers: Breakers,
    clock: Clock,
}

impl UnlessOpen {
    pub(crate) fn new(memory: Arc<dyn MemoryEvents>, breakers: Breakers, clock: Clock) -> Self {
        Self { memory, breakers, clock }
    }
}

#[async_trait]
impl MemoryEvents for UnlessOpen {
    fn name(&self) -> &str {
        self.memory.name()
    }

    async fn before_compact(&self, messages: MessageRange) -> Result<String, CallError> {
        if self.breakers.is_open(self.memory.name(), self.clock.now()) {
            return Ok(String::new());
        }
        self.memory.before_compact(messages).await
    }
}

/// Whether an error says something about the provider's health. A suspended plugin was not asked, and `invalid-input` is about
/// the question.
pub(crate) fn counts(cause: &Cause) -> bool {
    match cause {
        Cause::Suspended { .. } | Cause::Revoked | Cause::Cancelled | Cause::NotExported(_) => false,
        Cause::Fault(fault) => !matches!(fault.kind, FaultKind::InvalidInput | FaultKind::Cancelled),
        _ => true,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::MessageId;
    use hermes_session_store::Ledger as _;
    use hermes_store::{SqliteSessions, Store};

    use super::*;

    #[test]
    fn three_failures_in_a_row_open_a_breaker_with_one_line_and_an_answer_closes_it() {
        let breakers = Breakers::default();
        for _ in 0..2 {
            assert_eq!(breakers.failed("mem", "it hangs", 5), None);
            assert_eq!(breakers.failed("mem", "it hangs", 5), None);
            // An answer ends the row.
            assert_eq!(breakers.answered("mem"), None);
        }
        breakers.failed("mem", "it hangs", 5);
        breakers.failed("mem", "it hangs", 5);
        let opened = breakers.failed("mem", "it hangs", 5).unwrap();
        let open = OpenBreaker { since: 5, retry_at: 30_005, failures: 3, why: "it hangs".to_owned() };
        assert_eq!(opened.open, Some(open.clone()));
        assert!(opened.line.unwrap().contains("failed 3 times in a row, the last time because it hangs"));
        assert!(breakers.is_open("mem", 30_004) && !breakers.is_open("other", 5));
        // A turn asks again, and fails: the pause doubles without another line.
        assert!(!breakers.is_open("mem", 30_005));
        let longer = breakers.failed("mem", "it is away", 30_005).unwrap();
        assert_eq!((longer.line, longer.open.unwrap().retry_at), (None, 90_005));
        let closed = breakers.answered("mem").unwrap();
        assert_eq!((closed.open, closed.line.unwrap().contains("answers again")), (None, true));
        assert!(!breakers.is_open("mem", 30_006));
    }

    #[test]
    fn a_provider_that_stores_again_is_asked_by_the_next_turn() {
        let breakers = Breakers::default();
        for _ in 0..4 {
            breakers.failed("mem", "the key is refused", 5);
        }
        assert!(breakers.is_open("mem", 6));
        breakers.ask_again("mem");
        assert!(!breakers.is_open("mem", 6));
        // Permission to ask is not an answer: the next failure opens the breaker for longer.
        let longer = breakers.failed("mem", "the key is refused", 6).unwrap();
        assert_eq!(longer.open.unwrap().retry_at, 120_006);
    }

    #[test]
    fn pauses_are_bounded_and_a_clock_that_was_set_back_does_not_extend_them() {
        let breakers = Breakers::default();
        let last =
            (0..200).filter_map(|_| breakers.failed("mem", "it hangs", 1_000_000)).reduce(|_, next| next).unwrap();
        assert_eq!(last.open.unwrap().retry_at, 1_600_000);
        assert!(breakers.is_open("mem", 1_000_001) && !breakers.is_open("mem", 10));
    }

    /// Has something to keep.
    struct Keeper;

    #[async_trait]
    impl MemoryEvents for Keeper {
        fn name(&self) -> &str {
            "mem"
        }

        async fn before_compact(&self, _: MessageRange) -> Result<String, CallError> {
            Ok("likes tea".to_owned())
        }
    }

    #[tokio::test]
    async fn a_summary_goes_on_without_a_provider_whose_breaker_is_open() {
        let breakers = Breakers::default();
        let clock = Clock::set_to(jiff::Timestamp::from_second(1_700_000_000).unwrap());
        let keeper = UnlessOpen::new(Arc::new(Keeper), breakers.clone(), clock);
        let range = MessageRange::new(MessageId(1), MessageId(2));
        for _ in 0..2 {
            breakers.failed("mem", "it hangs", clock.now());
            assert_eq!(keeper.before_compact(range).await.unwrap(), "likes tea");
        }
        breakers.failed("mem", "it hangs", clock.now());
        assert_eq!(keeper.before_compact(range).await.unwrap(), "");
        breakers.answered("mem");
        assert_eq!(keeper.before_compact(range).await.unwrap(), "likes tea");
    }

    #[tokio::test]
    async fn a_later_process_finds_the_breaker_open() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteSessions::new(Arc::new(Store::open(home.path()).unwrap()));
        let first = Breakers::default();
        let open =
            (0..3).filter_map(|_| first.failed("mem", "it hangs", 7)).reduce(|_, next| next).unwrap().open.unwrap();
        store.set_note(&OpenBreaker::note("mem"), Some(&serde_json::to_string(&open).unwrap())).await.unwrap();
        store.set_note(&OpenBreaker::note("other"), Some("damaged")).await.unwrap();
        let later = Breakers::load(&store, ["mem", "other"].into_iter()).await;
        assert!(later.is_open("mem", 8) && !later.is_open("other", 8));
    }
}
